"""A small trained model, with what upstream makes of 300 lines by it.

`fidelity/make_trained_model.py` made it: a subtoken vocabulary, the decoder
starts from row 0 of the table.
"""

from __future__ import annotations

import pathlib

import numpy as np

from official_transformer.importing.importer import (
  ImportRequest,
  import_checkpoint,
)
from official_transformer.model_directory.checkpoint_writing import (
  write_bundle,
)
from official_transformer.text.vocabulary_files import VocabFiles

_FIXTURES = pathlib.Path(__file__).parent / "fidelity" / "fixtures"


def read_frozen() -> dict[str, np.ndarray]:
  """Returns weights, vocabulary, lines, and upstream's answers."""
  with np.load(_FIXTURES / "trained_model.npz") as arrays:
    return dict(arrays)


def lines_of(frozen: dict[str, np.ndarray], name: str) -> list[str]:
  """Returns lines of text that are stored as bytes."""
  return frozen[name].tobytes().decode("utf-8").split("\n")


def make_model_dir(directory: pathlib.Path) -> None:
  """Imports the model into `directory / "model"`."""
  frozen = read_frozen()
  prefix = str(directory / "cp.ckpt")
  write_bundle(
    prefix,
    {
      name.removeprefix("weights/"): value
      for name, value in frozen.items()
      if name.startswith("weights/")
    },
  )
  vocabulary = directory / "vocab"
  vocabulary.write_bytes(frozen["vocabulary"].tobytes())
  import_checkpoint(
    ImportRequest(
      "v2", prefix, VocabFiles.joint(str(vocabulary)), None, {}, None
    ),
    str(directory / "model"),
  )
