"""Which text becomes training data, and of what kind; without TensorFlow."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from official_transformer.data.text_files import check_input
from official_transformer.data.tokenizer import load_tokenizer
from official_transformer.errors import InputError


@dataclasses.dataclass(frozen=True)
class Corpus:
  """Parallel text: line n of a source file translates as line n of its target.

  Attributes:
    sources: paths, plain or .gz.
    targets: as many paths.
  """

  sources: Sequence[str]
  targets: Sequence[str]


@dataclasses.dataclass(frozen=True)
class DataSettings:
  """What to make of the text.

  Attributes:
    data_dir: where to write.
    vocab_type: `sentencepiece` or `subtoken`.
    vocab_size: entries of a vocabulary that is made.
    vocab_file: an existing vocabulary to use instead, or None.
    shards: files the training data is spread over.
    seed: of the shuffle.
  """

  data_dir: str
  vocab_type: str = "sentencepiece"
  vocab_size: int = 8000
  vocab_file: str | None = None
  shards: int = 8
  seed: int = 1


def check(corpora: Mapping[str, Corpus], settings: DataSettings) -> None:
  """Raises an `InputError` if a corpus lacks a side or a file."""
  if "train" not in corpora:
    raise InputError("--train_source and --train_target are needed")
  for tag, corpus in corpora.items():
    if len(corpus.sources) != len(corpus.targets):
      raise InputError(
        f"--{tag}_source names {len(corpus.sources)} files and --{tag}_target "
        f"{len(corpus.targets)}: each source file needs its target file"
      )
    for path in (*corpus.sources, *corpus.targets):
      check_input(path)
  if settings.vocab_file:
    load_tokenizer(settings.vocab_file)  # Raises if it is none.
