"""Flags of the model and its weights."""

from __future__ import annotations

import dataclasses
import functools

from official_transformer.commands.flag_records import Options, flag
from official_transformer.commands.shared_options import ModelDirOptions
from official_transformer.errors import InputError
from official_transformer.model_directory.description import ModelDescription
from official_transformer.model_directory.directory import (
  LATEST,
  ModelDirectory,
)
from official_transformer.model_directory.requested_params import (
  RequestedParams,
)
from official_transformer.model_params import (
  DECODING_FIELDS,
  DEFAULT_PARAM_SET,
  PARAM_SETS,
  parse_override,
)
from official_transformer.storage import file_system
from official_transformer.text.vocabulary_files import VocabFiles, describe

Opened = tuple[ModelDirectory, ModelDescription]


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelOptions(ModelDirOptions):
  """Flags of the model, or of several models that decide together."""

  heading = "What to do, with which model"

  param_set: str = flag(
    DEFAULT_PARAM_SET,
    "The hyper-parameters to start from.",
    choices=tuple(PARAM_SETS),
    short_name="mp",
  )
  params_override: str = flag(
    "",
    "Fields of the parameter set to change, e.g. hidden_size=128,num_heads=4.",
  )
  vocab_file: str | None = flag(
    None,
    "The vocabulary. Unset: the model directory's own, else the one that the "
    "data directory names.",
    (
      lambda o: hasattr(o, "plots"),
      "--mode=plot reads the model's own vocabulary",
    ),
    path=True,
    short_name="vf",
  )

  @property
  def takes_several(self) -> bool:
    """Whether several models may decide together."""
    return False

  @property
  def names_params(self) -> bool:
    """Whether `--param_set` or `--params_override` is given."""
    return bool(self.given & {"param_set", "params_override"})

  @functools.cached_property
  def requested_params(self) -> RequestedParams:
    """The hyper-parameters that are asked for; some are flags of their own."""
    overrides = parse_override(self.params_override)
    for name in DECODING_FIELDS:
      # Each command has only the fields that it needs.
      value = getattr(self, name, None)
      if value is None:
        continue
      override = overrides.setdefault(name, value)
      if override != value and name in self.given:
        raise InputError(
          f"--{name}={value} contradicts --params_override={name}={override}"
        )
    named = self.param_set if "param_set" in self.given else None
    return RequestedParams(named, overrides)

  @functools.cached_property
  def model_directories(self) -> list[ModelDirectory]:
    """The directories that `model_dir` names, between commas.

    Raises:
      InputError: if there are several where only one is possible.
    """
    path = self.model_dir
    if "," not in path or file_system.is_directory(path):
      return [ModelDirectory(path)]
    parts = [part.strip() for part in path.split(",")]
    if not all(parts):
      raise InputError(
        f"--model_dir={path}: there is nothing between two commas, or behind "
        "the last: name a directory, or several with a comma between each two"
      )
    if len(parts) > 1 and not self.takes_several:
      raise InputError(
        f"--model_dir={path}: several models decide together with "
        "--mode=predict alone, and without --runner"
      )
    return [ModelDirectory(part) for part in parts]

  @functools.cached_property
  def models(self) -> list[Opened]:
    """The directories' models, with the decoding settings of the flags.

    Files are read once for each record; a copy of the record reads them again.

    Raises:
      InputError: if there is no model, or flags contradict it.
    """
    opened = []
    for directory in self.model_directories:
      stored = directory.describe()
      params = self.requested_params.for_decoding(stored.params, directory.path)
      opened.append((directory, dataclasses.replace(stored, params=params)))
    return opened

  @property
  def model(self) -> Opened:
    """The first of them."""
    return self.models[0]


@dataclasses.dataclass(frozen=True, kw_only=True)
class CheckpointOptions(Options):
  """Flag of the weights to use."""

  heading = "Decoding: what is read and written"

  checkpoint: str = flag(
    LATEST,
    "The weights to use: latest (the average, if a model has nothing else), "
    "best (of training's evaluations, by BLEU if it was measured, else by "
    "validation loss), average (see --mode=average), or the step of a "
    "checkpoint.",
    (
      lambda o: "neighbours" not in getattr(o, "plots", ("neighbours",)),
      "--mode=plot reads weights for --plots=neighbours alone",
    ),
    (
      lambda o: not getattr(o, "model_dir", True),
      "translation_report reads weights for --model_dir alone",
    ),
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class StoredModelOptions(ModelOptions, CheckpointOptions):
  """A model that has been trained."""

  def check_model(self) -> None:
    """Refuses flags that contradict the model, and a directory without one."""
    for directory, _ in self.models:
      directory.choose_checkpoints(self.checkpoint)
    if self.vocab_file:
      directory, description = self.model
      given = describe(VocabFiles.joint(self.vocab_file))
      description.check_vocabularies(given, self.vocab_file, directory.path)
