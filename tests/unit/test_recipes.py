"""The recipes are command lines that can be run as they stand."""

import importlib
import pathlib
import re

import pytest

from official_transformer.commands.flags_core import parsed, without_effect
from official_transformer.commands.modes import MODES

FOLDER = pathlib.Path(__file__).parents[2] / "recipes"
RECIPES = sorted(FOLDER.glob("*.flags"))


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_every_flag_of_a_recipe_is_read(recipe, transformer_flags, monkeypatch):
  flags = transformer_flags
  rest = flags(["command", f"--flagfile={recipe}"])
  assert rest == ["command"]
  assert flags.mode == "train"
  options = parsed(MODES)
  assert list(without_effect(options)) == []
  params = options.requested_params.for_new_model("big")
  # A warm-up of half the run or more never comes down from its peak.
  assert params.learning_rate_warmup_steps * 2 < flags.train_steps
  # An update takes what is aimed at, in full batches.
  batches = flags.target_batch_tokens or flags.batch_size
  assert batches % (flags.batch_size or params.default_batch_size) == 0
  # All that is averaged, by the script or by hand, is kept.
  if recipe.stem.startswith("multi30k"):
    monkeypatch.syspath_prepend(FOLDER)
    averaged = importlib.import_module("diversification").AVERAGED
  else:
    said = re.search(r"--average_last=(\d+)", recipe.read_text())
    averaged = int(said[1])
  assert averaged <= flags.keep_checkpoint_max


def test_every_recipe_is_found():
  multi30k = {"teacher", "student", "tuned_teacher", "tuned_student"}
  assert {path.stem for path in RECIPES} == {
    *(f"multi30k_{name}" for name in multi30k),
    *("wmt14_ende_base", "wmt14_ende_big", "tatoeba_enzh"),
    *("everyday", "student"),
  }
