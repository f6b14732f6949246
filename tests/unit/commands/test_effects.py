import pathlib
import re

import command_line
import pytest

from data_prep import prepare_data
from official_transformer.commands import flags_core as core
from official_transformer.commands.modes import MODES

ROOT = pathlib.Path(__file__).parents[3]


@pytest.fixture
def said(transformer_flags):
  """Returns what is said of a command line."""

  def said(*arguments):
    transformer_flags(["command", *arguments])
    return list(core.without_effect(core.parsed(MODES)))

  return said


@pytest.mark.parametrize(
  ("arguments", "beginning"),
  [
    (["--gcp_project=x"], "--gcp_project has no effect: results go to"),
    (["--nosave_weights_only"], "--save_weights_only has no effect: every"),
    (["--mode=predict", "--batch_size=9"],
     "--batch_size has no effect with --mode=predict"),
    (["--mode=score", "--beam_size=9"],
     "--beam_size has no effect with --mode=score"),
    (["--loss_scale=8"], "--loss_scale has no effect: only --dtype=fp16"),
    (["--decode_max_length=9"], "--decode_max_length has no effect: lines"),
    (["--mode=predict", "--sample", "--patience=1"],
     "--patience has no effect: samples end one by one"),
    (["--epochs_between_evals=2"], "--epochs_between_evals has no effect: it"),
    (["--per_gpu_thread_count=2"], "--per_gpu_thread_count has no effect: it"),
    (["--all_reduce_alg=NCCL"], "--all_reduce_alg has no effect: one device"),
    (["--padded_decode"], "--padded_decode has no effect: training translates"),
    (["--use_synthetic_data", "--validation_steps=2"],
     "--validation_steps has no effect: no data"),
    (["--enable_checkpointing=false", "--keep_checkpoint_max=2"],
     "--keep_checkpoint_max has no effect: nothing is saved"),
    (["--train_epochs=2", "--steps_between_evals=2"],
     "--steps_between_evals has no effect: with"),
    (["--mode=average", "--checkpoint=9"],
     "--checkpoint has no effect with --mode=average"),
    (["--mode=average", "--alpha=1"],
     "--alpha has no effect with --mode=average"),
    (["--average_last=9"], "--average_last has no effect with --mode=train"),
    (["--mode=average", "--average_checkpoints=9", "--average_last=2"],
     "--average_last has no effect: --average_checkpoints"),
    (["--early_stopping_measure=loss"],
     "--early_stopping_measure has no effect: it goes with"),
    (["--tpu=x"], "--tpu has no effect: it goes with"),
  ],
)  # fmt: skip
def test_a_flag_without_effect_says_so_once(said, arguments, beginning):
  (line,) = said(*arguments)
  assert line.startswith(beginning)


@pytest.mark.parametrize(
  "arguments",
  [
    [],
    ["--mode=train", "--batch_size=9", "--beam_size=2"],
    ["--mode=predict", "--beam_size=9", "--alpha=1", "--file=x"],
    ["--dtype=fp16", "--loss_scale=8"],
    ["--mode=predict", "--padded_decode", "--decode_max_length=9"],
    ["--num_gpus=2", "--all_reduce_alg=nccl"],
    ["--early_stopping_patience=2", "--early_stopping_measure=loss"],
    ["--mode=average", "--average_last=3"],
    ["--train_epochs=4", "--epochs_between_evals=2"],
  ],
)
def test_flags_that_are_read_say_nothing(said, arguments):
  assert said(*arguments) == []


@pytest.mark.parametrize(
  ("arguments", "reason"),
  [
    (["--source_vocab_type=char", "--target_vocab_type=char"], "each side has"),
    (["--source_vocab_type=char", "--target_vocab_file=v"], "each side has"),
    (["--vocab_file=v"], "--vocab_file is a vocabulary that exists"),
    (["--source_vocab_type=char", "--target_vocab_size=99"], None),
    (["--vocab_size=99"], None),
  ],
)
def test_the_kind_of_a_vocabulary_that_none_has_is_idle(arguments, reason):
  with command_line.fresh_flags(command_line.PREPARE):
    command = ["", "--data_dir=d", "--vocab_type=subtoken", *arguments]
    core.parse_flags(command)
    lines = list(core.without_effect(core.parsed(prepare_data.OPTIONS)))
  if reason is None:
    assert lines == []
  else:
    (line,) = lines
    assert line.startswith(f"--vocab_type has no effect: {reason}")


def own_flags(values):
  """Yields the names of the flags that are not absl's."""
  for name in command_line.ours():
    if values[name].name == name:  # No short name.
      yield name


PRODUCT = ROOT / "official_transformer"


def test_every_flag_is_known_and_read_or_said_to_be_idle(transformer_flags):
  """A flag that somebody defined and forgot fails here."""
  texts = [path.read_text(encoding="utf-8") for path in PRODUCT.rglob("*.py")]
  for name in own_flags(transformer_flags):
    definition = core.definition_of(name)
    assert definition.section
    # Of a record, in whatever does what it says, or by name where several are
    # handed on together.
    use = re.compile(rf"(?<!\bo)\.{name}\b|\"{name}\"")
    read = any(use.search(text) for text in texts)
    if name == "fp16_implementation":
      continue  # Its one value left is what happens anyway; see its validator.
    assert read or definition.spec.never, name
