r"""Makes a model directory of a checkpoint that another Transformer trained.

python import_checkpoint.py --format=v2 --checkpoint=/old/cp-0020.ckpt \
  --vocab_file=/old/vocab.ende.32768 --model_dir=model
"""

from __future__ import annotations

from absl import flags

from flags import core as flags_core
from flags.core import help_wrap
from official_transformer.errors import describe_failures
from official_transformer.importing.formats import FORMATS
from official_transformer.model_params import (
  PARAM_SETS,
  START_SYMBOLS,
  parse_override,
)

FLAGS = flags.FLAGS


def define_import_flags() -> None:
  """Defines the command's flags."""
  flags.DEFINE_enum(
    "format",
    None,
    list(FORMATS),
    help_wrap(
      "Who wrote the checkpoint. v2: the official model on TensorFlow 2. v1: "
      "the official model on TensorFlow 1. t2t: Tensor2Tensor, with the "
      "settings of transformer_base: no name shows others, such as a proximity "
      "bias."
    ),
    required=True,
  )
  flags.DEFINE_string(
    "checkpoint",
    None,
    help_wrap("Its path without .index, or the directory of the newest one."),
    required=True,
  )
  flags.DEFINE_string(
    "vocab_file",
    None,
    help_wrap("The vocabulary it was trained with."),
    short_name="vf",
    required=True,
  )
  flags.DEFINE_string(
    "model_dir",
    None,
    help_wrap("The model directory to make."),
    short_name="md",
    required=True,
  )
  flags.DEFINE_enum(
    "param_set",
    None,
    list(PARAM_SETS),
    help_wrap(
      "The set it was trained with. Unset: sizes are read off the checkpoint, "
      "the rest is the set's of the same hidden size."
    ),
    short_name="mp",
  )
  flags.DEFINE_string(
    "params_override",
    "",
    help_wrap("Fields it was trained with, e.g. beam_size=5,alpha=1."),
  )
  flags.DEFINE_integer(
    "num_heads",
    None,
    help_wrap(
      "Attention heads. Unset: read off the checkpoint where it shows them, "
      "else those of the parameter set with its hidden size."
    ),
    lower_bound=1,
  )
  flags.DEFINE_enum(
    "start_symbol",
    None,
    list(START_SYMBOLS),
    help_wrap(
      "What the decoder starts from. Unset: pad_row for v2 models with "
      "three-dimensional kernels and Keras' layer norms, zero for all others. "
      "A v2 model whose embedding_layer.py masks padding needs zero."
    ),
  )
  flags.DEFINE_integer(
    "target_space_id",
    None,
    help_wrap("For t2t: the SpaceID of the problem's target, 8 for German."),
    lower_bound=0,
  )


def main(_: list[str]) -> None:
  """Imports the checkpoint and says what came of it."""
  overrides = parse_override(FLAGS.params_override)
  for name in ("num_heads", "start_symbol"):
    if FLAGS[name].value is not None:
      overrides[name] = FLAGS[name].value

  from official_transformer.importing.importer import (
    ImportRequest,
    import_checkpoint,
  )

  request = ImportRequest(
    FLAGS.format,
    FLAGS.checkpoint,
    FLAGS.vocab_file,
    FLAGS.param_set,
    overrides,
    FLAGS.target_space_id,
  )
  print(import_checkpoint(request, FLAGS.model_dir))


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_import_flags, describe_failures(main))


if __name__ == "__main__":
  run()
