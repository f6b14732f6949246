"""A directory of prepared data: TFRecord shards, vocabulary, data.json.

Shards are named `PREFIX-TAG-00001-of-00100`, with TAG `train` or `dev`, as
upstream names them, so that its data directories serve as they are.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
from collections.abc import Mapping
from typing import Any

from absl import logging

from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import write_text
from official_transformer.storage.typed_json import DAMAGE, read_record
from official_transformer.text.identity import Vocabularies
from official_transformer.text.text_form import TextForm
from official_transformer.text.vocabulary_files import VocabFiles

DESCRIPTION_FILE = "data.json"
TRAIN_TAG = "train"
DEV_TAG = "dev"
HOW_TO_MAKE = (
  "prepare_data --train_source=... --train_target=... --data_dir=DIR"
)

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")


def shard_name(prefix: str, tag: str, number: int, count: int) -> str:
  """Returns the name of shard `number` of `count`, counted from 1."""
  return f"{prefix}-{tag}-{number:05d}-of-{count:05d}"


def is_shard(name: str, tag: str) -> bool:
  """Returns whether a file of this name is a whole shard of a tag."""
  return bool(re.search(rf"-{tag}{_SHARD.pattern}", name))


def _found_shards(data_dir: str, tag: str) -> list[str]:
  """Returns the paths of a tag's existing shards, sorted."""
  return [
    os.path.join(data_dir, name)
    for name in file_system.names_in(data_dir)
    if is_shard(name, tag)
  ]


def has_shards(data_dir: str, tag: str) -> bool:
  """Returns whether there are any shards of a tag."""
  return bool(_found_shards(data_dir, tag))


def shard_paths(
  data_dir: str, tag: str, may_lack_some: bool = False
) -> list[str]:
  """Returns the paths of a tag's shards, sorted.

  Args:
    data_dir: the prepared data.
    tag: `TRAIN_TAG` or `DEV_TAG`.
    may_lack_some: whether a missing shard is reported only.

  Raises:
    InputError: if there are no shards, or one is missing and `may_lack_some` is
      False.
  """
  found = _found_shards(data_dir, tag)
  if not found:
    raise InputError(
      f"no *{tag}*-of-* files in --data_dir={data_dir}. Make them with: "
      + HOW_TO_MAKE
    )
  missing = missing_shards(data_dir, tag)
  if missing and may_lack_some:
    logging.warning("missing, and left out: %s", ", ".join(missing))
  elif missing:
    raise InputError(
      f"{data_dir} lacks {len(missing)} of its {tag} shards, {missing[0]} "
      "among them; prepare the data again, or do without with "
      "--skip_bad_records"
    )
  return found


def missing_shards(data_dir: str, tag: str) -> list[str]:
  """Returns the missing shards, according to the names of the others."""
  found = _found_shards(data_dir, tag)
  missing = []
  for path in found:
    stem, count = _SHARD.sub("", path), int(path[-5:])
    missing += [
      name
      for name in (f"{stem}-{n + 1:05d}-of-{count:05d}" for n in range(count))
      if name not in found
    ]
  return sorted(set(missing))


@dataclasses.dataclass(frozen=True)
class CorpusDescription:
  """The part of data.json about training or development data.

  Attributes:
    pairs: pairs that were written.
    source_tokens: source tokens of these pairs, EOS included.
    target_tokens: target tokens of these pairs, EOS included.
    dropped: pairs that were left out, by reason.
    lengths: pairs by the length of their longer side.
    several_sentences: share of the text's pairs whose source has more than one
      sentence, before any are joined; None if it was not counted.
  """

  pairs: int
  source_tokens: int
  target_tokens: int
  dropped: Mapping[str, int]
  lengths: Mapping[int, int]
  several_sentences: float | None = None

  def to_json(self) -> dict[str, Any]:
    """Returns the corpus' part of data.json."""
    fields = dataclasses.asdict(self)
    del fields["lengths"]
    histogram = {str(n): self.lengths[n] for n in sorted(self.lengths)}
    return {**fields, "length_histogram": histogram}

  @classmethod
  def from_json(cls, content: Mapping[str, Any]) -> CorpusDescription:
    """Reads the result of `to_json`."""
    dropped, histogram = content["dropped"], content["length_histogram"]
    pairs, source_tokens, target_tokens = (
      content[name] for name in ("pairs", "source_tokens", "target_tokens")
    )
    counts = (pairs, source_tokens, target_tokens)
    for number in (*counts, *dropped.values(), *histogram.values()):
      if type(number) is not int or number < 0:
        raise TypeError(f"{number!r:.50} is no number of anything")
    lengths = {int(length): n for length, n in histogram.items()}
    share = content.get("several_sentences")
    if share is not None and not 0 <= share <= 1:
      raise ValueError(f"{share!r:.50} is no share of several_sentences")
    return cls(
      pairs=pairs,
      source_tokens=source_tokens,
      target_tokens=target_tokens,
      dropped=dict(dropped),
      lengths=lengths,
      several_sentences=share,
    )


@dataclasses.dataclass(frozen=True)
class DataDescription:
  """The content of data.json.

  Attributes:
    vocabularies: vocabularies that the data were tokenized with.
    train: the training data.
    dev: the development data, if there are any.
    form: form that all text was brought into.
    filters: which pairs were to be left out, by the names of the settings.
    augmentation: how training pairs were rewritten, by its settings; nothing if
      they were not.
  """

  vocabularies: Vocabularies
  train: CorpusDescription
  dev: CorpusDescription | None = None
  form: TextForm = dataclasses.field(default_factory=TextForm)
  filters: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  augmentation: Mapping[str, Any] = dataclasses.field(default_factory=dict)


def read_description(data_dir: str) -> DataDescription | None:
  """Returns the content of data.json; None if upstream made the directory.

  Raises:
    InputError: if data.json cannot be read.
  """
  path = os.path.join(data_dir, DESCRIPTION_FILE)
  if not file_system.exists(path):
    return None
  try:
    with file_system.open_file(path) as stream:
      content = json.load(stream)
    dev = content.get(DEV_TAG)
    return DataDescription(
      Vocabularies.from_json(content["vocabulary"]),
      CorpusDescription.from_json(content[TRAIN_TAG]),
      CorpusDescription.from_json(dev) if dev else None,
      # Earlier versions had none of these.
      read_record(TextForm, content.get("text", {})),
      dict(content.get("filters", {})),
      dict(content.get("augmentation", {})),
    )
  except DAMAGE as error:
    raise InputError(
      f"{path} is damaged ({error!r:.200}); prepare the data again"
    ) from None


def write_description(data_dir: str, description: DataDescription) -> None:
  """Writes data.json.

  Raises:
    OSError: if the system refuses.
  """
  content = {
    "vocabulary": description.vocabularies.to_json(),
    "text": description.form.to_json(),
    "filters": dict(description.filters),
    "augmentation": dict(description.augmentation),
    TRAIN_TAG: description.train.to_json(),
  }
  if description.dev:
    content[DEV_TAG] = description.dev.to_json()
  text = json.dumps(content, indent=2, ensure_ascii=False)
  write_text(os.path.join(data_dir, DESCRIPTION_FILE), text + "\n")


@dataclasses.dataclass(frozen=True)
class DataDirectory:
  """Prepared data, whose data.json is read once.

  Attributes:
    path: path of the directory.
  """

  path: str

  @functools.cached_property
  def description(self) -> DataDescription | None:
    """The content of data.json; None if upstream made the directory.

    Raises:
      InputError: if data.json cannot be read.
    """
    return read_description(self.path)

  def vocab_files(self) -> VocabFiles:
    """Returns the paths of the vocabularies that data.json names.

    Raises:
      InputError: if it names none that exist.
    """
    if self.description is None:
      raise InputError(
        f"no {DESCRIPTION_FILE} in --data_dir={self.path}, which would name "
        "the vocabulary. Pass --vocab_file, or make the data with: "
        + HOW_TO_MAKE
      )
    files = VocabFiles.within(self.path, self.description.vocabularies)
    for path in files:
      if not file_system.exists(path):
        raise InputError(
          f"{self.path}/{DESCRIPTION_FILE} names the vocabulary {path}, which "
          "is not there; prepare the data again or pass --vocab_file"
        )
    return files
