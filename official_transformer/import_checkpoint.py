r"""Makes a model directory of a checkpoint that another Transformer trained.

python import_checkpoint.py --format=v2 --checkpoint=/old/cp-0020.ckpt \
  --vocab_file=/old/vocab.ende.32768 --model_dir=model
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official_transformer.data.vocabulary_files import VocabFiles
from official_transformer.errors import InputError, describe_failures
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.core import define, start_section
from official_transformer.hardware.startup import start_tensorflow
from official_transformer.importing.formats import (
  FORMATS,
  MARIAN_HF,
  ROUNDED_ROWS,
)
from official_transformer.model_params import (
  PARAM_SETS,
  START_SYMBOLS,
  parse_override,
)
from official_transformer.storage.standard_streams import show_result

FLAGS = flags.FLAGS


def define_import_flags() -> None:
  """Defines the command's flags."""
  start_section("import_checkpoint")
  define(
    flags.DEFINE_enum,
    "format",
    None,
    "Who wrote the checkpoint. v2: the official model on TensorFlow 2. v1: "
    "the official model on TensorFlow 1. t2t: Tensor2Tensor, with the "
    "settings of transformer_base: no name shows others, such as a proximity "
    "bias. marian_hf: a Marian model in Hugging Face's files.",
    enum_values=[*FORMATS, MARIAN_HF],
    required=True,
  )
  define(
    flags.DEFINE_string,
    "checkpoint",
    None,
    "Its path without .index, or the directory of the newest one. With "
    "marian_hf: the directory with config.json, model.safetensors, source.spm, "
    "target.spm and vocab.json.",
    required=True,
  )
  define(
    flags.DEFINE_string,
    "vocab_file",
    None,
    "The vocabulary it was trained with.",
    short_name="vf",
  )
  for side in ("source", "target"):
    define(
      flags.DEFINE_string,
      f"{side}_vocab_file",
      None,
      f"In place of --vocab_file: that of the {side}, if the model has two.",
    )
  define(
    flags.DEFINE_string,
    "model_dir",
    None,
    "The model directory to make.",
    short_name="md",
    required=True,
  )
  _define_settings_flags()


def _define_settings_flags() -> None:
  """Defines what no name and no size in a checkpoint shows."""
  define(
    flags.DEFINE_enum,
    "param_set",
    None,
    "The set it was trained with. Unset: sizes are read off the checkpoint, "
    "the rest is the set's of the same hidden size.",
    enum_values=list(PARAM_SETS),
    short_name="mp",
  )
  define(
    flags.DEFINE_string,
    "params_override",
    "",
    "Fields it was trained with, e.g. beam_size=5,alpha=1.",
  )
  define(
    flags.DEFINE_integer,
    "num_heads",
    None,
    "Attention heads. Unset: read off the checkpoint if it shows them, "
    "else those of the parameter set with its hidden size.",
    lower_bound=1,
  )
  define(
    flags.DEFINE_enum,
    "start_symbol",
    None,
    "What the decoder starts from. Unset: pad_row for v2 models with "
    "three-dimensional kernels and Keras' layer norms, zero for all others. "
    "A v2 model whose embedding_layer.py masks padding needs zero.",
    enum_values=list(START_SYMBOLS),
  )
  define(
    flags.DEFINE_integer,
    "target_space_id",
    None,
    "For t2t: the SpaceID of the problem's target, 8 for German.",
    lower_bound=0,
  )
  define(
    flags.DEFINE_integer,
    "spare_rows",
    None,
    "How many rows the checkpoint's table has more than the vocabulary has "
    "entries, where a constant decided its size. Unset: up to "
    f"{ROUNDED_ROWS}, which rounding adds.",
    lower_bound=0,
  )


def _vocab_files() -> VocabFiles:
  """Reads which vocabularies the model has."""
  both = FLAGS.source_vocab_file, FLAGS.target_vocab_file
  if FLAGS.vocab_file and not any(both):
    return VocabFiles.joint(FLAGS.vocab_file)
  if all(both) and not FLAGS.vocab_file:
    return VocabFiles(*both)
  raise InputError(
    "give --vocab_file, or both --source_vocab_file and --target_vocab_file if "
    "source and target have vocabularies of their own"
  )


def main(_: list[str]) -> None:
  """Imports the checkpoint and says what came of it."""
  overrides = parse_override(FLAGS.params_override)
  for name in ("num_heads", "start_symbol"):
    if FLAGS[name].value is not None:
      overrides[name] = FLAGS[name].value

  start_tensorflow()
  if FLAGS.format == MARIAN_HF:
    _import_marian(overrides)
    return
  from official_transformer.importing.importer import (
    ImportRequest,
    import_checkpoint,
  )

  request = ImportRequest(
    FLAGS.format,
    FLAGS.checkpoint,
    _vocab_files(),
    FLAGS.param_set,
    overrides,
    FLAGS.target_space_id,
    FLAGS.spare_rows,
  )
  show_result(import_checkpoint(request, FLAGS.model_dir))


def _import_marian(overrides: dict[str, Any]) -> None:
  """Imports a Marian model, which brings its sizes and vocabularies along."""
  from official_transformer.importing.marian import import_marian

  given = [
    f"--{name}"
    for name in (
      *("vocab_file", "source_vocab_file", "target_vocab_file"),
      *("param_set", "target_space_id", "spare_rows"),
    )
    if FLAGS[name].value is not None
  ]
  if given:
    raise InputError(
      f"{', '.join(given)}: a Marian model's directory says that; leave it out"
    )
  show_result(import_marian(FLAGS.checkpoint, FLAGS.model_dir, overrides))


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_import_flags, describe_failures(main))


if __name__ == "__main__":
  run()
