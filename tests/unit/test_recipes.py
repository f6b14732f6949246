"""The recipes are command lines that can be run as they stand."""

import pathlib

import pytest

from official_transformer.flag_effects import without_effect
from official_transformer.requested_params import requested_params

RECIPES = sorted(
  (pathlib.Path(__file__).parents[2] / "recipes").glob("*.flags")
)


@pytest.fixture
def flags(transformer_flags):
  yield transformer_flags
  for name in transformer_flags:
    transformer_flags[name].unparse()


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_every_flag_of_a_recipe_is_read(recipe, flags):
  rest = flags(["command", f"--flagfile={recipe}"])
  assert rest == ["command"]
  assert flags.mode == "train"
  assert list(without_effect(flags)) == []
  params = requested_params().for_new_model("big")
  # A warm-up of half the run or more never comes down from its peak.
  assert params.learning_rate_warmup_steps * 2 < flags.train_steps
  # What is averaged in the end is kept.
  assert flags.save_checkpoints_steps * flags.keep_checkpoint_max < (
    flags.train_steps
  )


def test_there_are_recipes():
  assert len(RECIPES) >= 2
