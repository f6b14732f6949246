r"""Makes a model directory of a checkpoint that another Transformer trained.

    import_checkpoint --format=v2 --checkpoint=/old/cp-0020.ckpt \
      --vocab_file=/old/vocab.ende.32768 --model_dir=model
"""

from __future__ import annotations

import dataclasses
from typing import Any

from official_transformer.commands import flags_core
from official_transformer.commands.flag_records import (
  REQUIRED,
  Options,
  flag,
)
from official_transformer.errors import InputError, describe_failures
from official_transformer.hardware.startup import start_tensorflow
from official_transformer.importing.formats import (
  FORMATS,
  MARIAN,
  MARIAN_HF,
  PEGASUS_HF,
  ROUNDED_ROWS,
)
from official_transformer.model_params import (
  PARAM_SETS,
  START_SYMBOLS,
  parse_override,
)
from official_transformer.storage.standard_streams import show_result
from official_transformer.text.vocabulary_files import VocabFiles

# Formats whose files need no further flags.
SELF_DESCRIBED = (MARIAN, MARIAN_HF, PEGASUS_HF)
_OWN_VOCABULARY = (
  "Instead of --vocab_file: the vocabulary of the {}, if the model has two."
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ImportOptions(Options):
  """Flags of `import_checkpoint`."""

  heading = "import_checkpoint"

  format: str = flag(
    REQUIRED,
    "Who wrote the checkpoint. v2: the official model on TensorFlow 2. v1: "
    "the official model on TensorFlow 1. t2t: Tensor2Tensor, with the "
    "settings of transformer_base: no name shows others, such as a proximity "
    "bias. marian_hf: a Marian model in Hugging Face's files. pegasus_hf: what "
    "--export_format=huggingface has written, trained further by transformers "
    "or not. marian: Marian's own .npz, with one SentencePiece vocabulary.",
    choices=(*FORMATS, *SELF_DESCRIBED),
  )
  checkpoint: str = flag(
    REQUIRED,
    "Its path without .index, or the directory of the newest one. With "
    "marian_hf: the directory with config.json, model.safetensors, source.spm, "
    "target.spm and vocab.json; with pegasus_hf: that of the export; with "
    "marian: the .npz file, or the directory with model.npz and vocab.spm.",
    path=True,
  )
  vocab_file: str | None = flag(
    None,
    "The vocabulary it was trained with.",
    path=True,
    short_name="vf",
  )
  source_vocab_file: str | None = flag(
    None, _OWN_VOCABULARY.format("source"), path=True
  )
  target_vocab_file: str | None = flag(
    None, _OWN_VOCABULARY.format("target"), path=True
  )
  model_dir: str = flag(
    REQUIRED, "The model directory to make.", path=True, short_name="md"
  )
  param_set: str | None = flag(
    None,
    "The set it was trained with. Unset: sizes are read off the checkpoint, "
    "the rest is the set's of the same hidden size.",
    choices=tuple(PARAM_SETS),
    short_name="mp",
  )
  params_override: str = flag(
    "", "Fields it was trained with, e.g. beam_size=5,alpha=1."
  )
  num_heads: int | None = flag(
    None,
    "Number of attention heads. Unset: read from the checkpoint if a shape "
    "there shows it, else that of the parameter set with the same hidden size.",
    lower_bound=1,
  )
  start_symbol: str | None = flag(
    None,
    "First input of the decoder. Unset: pad_row for v2 models with "
    "three-dimensional kernels and Keras' layer norms, zero for all others. A "
    "v2 model whose embedding_layer.py masks padding needs zero.",
    choices=START_SYMBOLS,
  )
  target_space_id: int | None = flag(
    None,
    "For t2t: the SpaceID of the problem's target, 8 for German.",
    lower_bound=0,
  )
  spare_rows: int | None = flag(
    None,
    "How many rows the checkpoint's table has more than the vocabulary has "
    "entries, where a constant decided its size. Unset: up to "
    f"{ROUNDED_ROWS}, which rounding adds.",
    lower_bound=0,
  )

  def __post_init__(self) -> None:
    parse_override(self.params_override)  # Raises InputError if it is invalid.
    if self.format in SELF_DESCRIBED:
      given = [
        f"--{name}"
        for name in (
          *("vocab_file", "source_vocab_file", "target_vocab_file"),
          *("param_set", "target_space_id", "spare_rows"),
          *("num_heads", "start_symbol"),
        )
        if getattr(self, name) is not None
        and (self.format, name) != (MARIAN, "vocab_file")
      ]
      if given:
        raise InputError(
          f"{', '.join(given)}: the files of --format={self.format} say that; "
          "leave it out"
        )
      return
    both = self.source_vocab_file, self.target_vocab_file
    if any(both) if self.vocab_file else not all(both):
      raise InputError(
        "give --vocab_file, or both --source_vocab_file and "
        "--target_vocab_file if source and target have vocabularies of their "
        "own"
      )

  @property
  def overrides(self) -> dict[str, Any]:
    """The user's values of parameters, by field."""
    overrides = parse_override(self.params_override)
    if self.num_heads is not None:
      overrides["num_heads"] = self.num_heads
    if self.start_symbol is not None:
      overrides["start_symbol"] = self.start_symbol
    return overrides

  @property
  def vocab_files(self) -> VocabFiles:
    """The vocabularies of a model that does not bring them along."""
    if self.vocab_file:
      return VocabFiles.joint(self.vocab_file)
    assert self.source_vocab_file and self.target_vocab_file
    return VocabFiles(self.source_vocab_file, self.target_vocab_file)


OPTIONS = ImportOptions


def main(_: list[str]) -> None:
  """Imports the checkpoint and reports the result."""
  options: ImportOptions = flags_core.begin(OPTIONS)
  start_tensorflow()
  show_result(_import(options))


def _import(options: ImportOptions) -> str:
  """Imports a checkpoint; returns the report."""
  if options.format == MARIAN_HF:
    from official_transformer.importing.marian import import_marian

    return import_marian(
      options.checkpoint, options.model_dir, options.overrides
    )
  if options.format == PEGASUS_HF:
    from official_transformer.importing.pegasus import import_pegasus

    return import_pegasus(
      options.checkpoint, options.model_dir, options.overrides
    )
  if options.format == MARIAN:
    from official_transformer.importing.marian_native import (
      import_marian_files,
    )

    return import_marian_files(
      options.checkpoint,
      options.vocab_file,
      options.model_dir,
      options.overrides,
    )
  from official_transformer.importing.importer import (
    ImportRequest,
    import_checkpoint,
  )

  request = ImportRequest(
    options.format,
    options.checkpoint,
    options.vocab_files,
    options.param_set,
    options.overrides,
    options.target_space_id,
    options.spare_rows,
  )
  return import_checkpoint(request, options.model_dir)


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(OPTIONS, describe_failures(main))


if __name__ == "__main__":
  run()
