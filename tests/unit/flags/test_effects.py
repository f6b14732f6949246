import pytest

from flags import _effects as flag_effects
from official_transformer.commands.transformer_flags import MODES


@pytest.fixture
def said(transformer_flags):
  """Returns what is said of a command line."""

  def said(*arguments):
    transformer_flags(["command", *arguments])
    return list(flag_effects.without_effect(transformer_flags))

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


def test_only_flags_that_exist_are_described(transformer_flags):
  described = set(flag_effects.INERT) | set(flag_effects.MODES_OF_FLAG)
  assert described <= set(transformer_flags)
  modes = {m for ms in flag_effects.MODES_OF_FLAG.values() for m in ms}
  assert modes <= set(MODES)
