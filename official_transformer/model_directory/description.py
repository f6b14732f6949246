"""model.json, the description of a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from absl import logging

import official_transformer
from official_transformer.data.buckets import Batching
from official_transformer.data.trained_lines import TrainedLines
from official_transformer.errors import InputError
from official_transformer.model_params import (
  DEFAULT_MAX_LENGTH,
  TransformerParams,
)
from official_transformer.storage.typed_json import read_record
from official_transformer.text.identity import (
  DataIdentity,
  Vocabularies,
)
from official_transformer.text.text_form import TextForm

DESCRIPTION_FILE = "model.json"
# Tokens up to which no sentence is cut, however short a model's training lines.
_SHORTEST_CUT = 20
# Parameters that earlier versions had, and the value that changed nothing.
_REMOVED_PARAMS = {"r_drop_alpha": 0.0}


@dataclasses.dataclass(frozen=True)
class Origin:
  """The checkpoint that a model's first weights were read from.

  Attributes:
    format: origin of the weights: `official_transformer`, or a `--format` of
      `import_checkpoint`.
    checkpoint: absolute path of the checkpoint.
    step: updates that the checkpoint had seen; None if unknown.
  """

  format: str
  checkpoint: str
  step: int | None


@dataclasses.dataclass(frozen=True)
class ModelDescription:
  """The content of model.json.

  Attributes:
    params: the model's hyper-parameters, vocabulary size included.
    vocabularies: vocabularies of the two sides; their files are in the
      directory.
    batching: settings that decide, with the seed, which examples each step
      trains on; None before the first training in this directory.
    versions: versions of TensorFlow, Keras and this package, for the record.
    origin: origin of the first weights, if they come from another model.
    data: identity of the training data; None before the first training in this
      directory, and for models of early versions.
    form: form that all text has before it is tokenized.
    lines: lengths and sentences of its training lines; None if unknown.
    flags: further flags that its training began with; empty before it, and for
      models of early versions.
  """

  params: TransformerParams
  vocabularies: Vocabularies
  batching: Batching | None = None
  versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
  origin: Origin | None = None
  data: DataIdentity | None = None
  form: TextForm = dataclasses.field(default_factory=TextForm)
  lines: TrainedLines | None = None
  flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  @property
  def longest_piece(self) -> int:
    """Most tokens of text that is translated in one piece, EOS included.

    It is the 99.9th percentile of the training lines' lengths, but not so few
    that words would be cut; if a model does not remember them, the longest line
    that its training can have had.
    """
    if self.lines:
      return max(self.lines.usual_length, _SHORTEST_CUT)
    if self.batching:
      return self.batching.max_length
    return min(DEFAULT_MAX_LENGTH, self.params.longest or DEFAULT_MAX_LENGTH)

  @property
  def splits_sentences(self) -> bool:
    """Whether each sentence of a line is translated by itself by default."""
    return self.lines is None or self.lines.are_sentences

  def check_vocabularies(
    self, given: Vocabularies, paths: str, where: str
  ) -> None:
    """Refuses vocabularies that the model was not trained with.

    Args:
      given: identity of the given ones.
      paths: files of the vocabularies, for the message.
      where: the model directory, for the message.

    Raises:
      InputError: if the contents differ, with size and SHA-256 of both.
    """
    if not given.are_as(self.vocabularies):
      raise InputError(
        f"the vocabulary {paths} has {given} but the model in {where} was "
        f"trained with {self.vocabularies} ({DESCRIPTION_FILE}). Give the "
        "vocabulary it was trained with, or name another --model_dir"
      )

  def to_json(self) -> dict[str, Any]:
    """Returns the description as JSON has it."""

    def fields(record: Any) -> dict[str, Any]:
      return dataclasses.asdict(record) if record else {}

    content = {
      "params": fields(self.params),
      "vocabulary": self.vocabularies.to_json(),
      "batching": fields(self.batching),
      "versions": dict(self.versions),
      "origin": fields(self.origin),
      "data": fields(self.data),
    }
    if not self.form.is_plain:
      content["text"] = self.form.to_json()
    if self.lines:
      content["lines"] = fields(self.lines)
    if self.flags:
      content["flags"] = dict(self.flags)
    return content

  @classmethod
  def from_json(cls, content: Mapping[str, Any]) -> ModelDescription:
    """Reads the result of `to_json`, of this or an earlier version.

    Raises:
      InputError: if a value is out of range.
      ValueError, KeyError, TypeError, AttributeError: if it is anything else.
    """
    batching, origin, data, lines = (
      content.get(name) or None
      for name in ("batching", "origin", "data", "lines")
    )
    description = cls(
      read_record(TransformerParams, _without_removed(content["params"])),
      Vocabularies.from_json(content["vocabulary"]),
      read_record(Batching, batching) if batching else None,
      dict(content["versions"]),
      read_record(Origin, origin) if origin else None,
      read_record(DataIdentity, data) if data else None,
      # Earlier versions did nothing to text.
      read_record(TextForm, content.get("text", {})),
      read_record(TrainedLines, lines) if lines else None,
      dict(content.get("flags") or {}),
    )
    description.check_rows()
    return description

  def check_rows(self) -> None:
    """Raises a `ValueError` if a table has fewer rows than its vocabulary."""
    own = self.params.source_vocab_size
    source, target = self.vocabularies.sizes
    # Two that number their entries alike may share a table: Marian's do.
    shares = self.vocabularies.is_joint or source == target
    if (not own and not shares) or (own and self.vocabularies.is_joint):
      raise ValueError(f"a source table of {own} rows for {self.vocabularies}")
    rows = self.params.vocab_size
    for size, there in zip(
      self.vocabularies.sizes, (own or rows, rows), strict=True
    ):
      if not 0 < size <= there:
        raise ValueError(f"{size} entries for a table of {there} rows")


def _without_removed(params: Mapping[str, Any]) -> dict[str, Any]:
  """Removes parameters that no longer exist; warns if one mattered."""
  for name, neutral in _REMOVED_PARAMS.items():
    if params.get(name, neutral) != neutral:
      logging.log_first_n(
        logging.WARNING,
        "%s: %s=%s is no longer supported; training goes on without it",
        1,
        DESCRIPTION_FILE,
        name,
        params[name],
      )
  return {k: v for k, v in params.items() if k not in _REMOVED_PARAMS}


def current_versions() -> dict[str, str]:
  """Returns the versions of the packages that define a model."""
  from importlib import metadata  # Which --help need not wait for.

  versions = {name: metadata.version(name) for name in ("tensorflow", "keras")}
  return {**versions, "official_transformer": official_transformer.__version__}
