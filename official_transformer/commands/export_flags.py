"""The flags of `--mode=export`, and of the export at a training's end."""

from __future__ import annotations

from absl import flags

from official_transformer.exporting.formats import FORMATS, SAVED_MODEL
from official_transformer.flag_groups.core import (
  define,
  read_by,
  start_section,
)


def define_export_flags() -> None:
  """Defines what is exported, and where to."""
  start_section("Exporting")
  define(
    flags.DEFINE_string,
    "export_dir",
    None,
    "With --mode=export: the directory to make; one that exists is refused. "
    "With --mode=train: where a SavedModel is put when training ends, in a "
    "directory of its own that is named by the time.",
    read_by("train", "export"),
    short_name="ed",
    path=True,
  )
  define(
    flags.DEFINE_enum,
    "export_format",
    SAVED_MODEL,
    "saved_model: TensorFlow's, with the search and, unless --noexport_text, "
    "the tokenizer inside. ctranslate2: a model for CTranslate2, in "
    "--quantization. keras: a .keras file.",
    read_by("export"),
    enum_values=list(FORMATS),
  )
  define(
    flags.DEFINE_bool,
    "export_text",
    True,
    "Whether a SavedModel takes text as well as ids, which needs "
    "tensorflow-text (extra [serving]) here and wherever it is loaded.",
    read_by("train", "export")
    .idle_if(
      lambda v: v.mode == "train" and not v.export_dir,
      "nothing is exported without --export_dir",
    )
    .idle_if(
      lambda v: v.mode == "export" and v.export_format != SAVED_MODEL,
      "it is about --export_format=saved_model",
    ),
  )
