"""What the flags say, as the records that everything else takes.

Nothing here imports TensorFlow: what is wrong with flags is said at once.
"""

from __future__ import annotations

import dataclasses
import sys
from typing import Any

from absl import flags

from official_transformer.data import text_files
from official_transformer.data.buckets import Batching
from official_transformer.data.segmentation import SubwordSampling
from official_transformer.errors import InputError
from official_transformer.flag_groups import core as flags_core
from official_transformer.model_directory.description import ModelDescription
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_directory.measurements import (
  BLEU,
  VALIDATION_LOSS,
)
from official_transformer.model_directory.requested_params import (
  RequestedParams,
)
from official_transformer.model_params import DECODING_FIELDS, parse_override
from official_transformer.storage import file_system
from official_transformer.training.requested_batching import RequestedBatching
from official_transformer.training.settings import (
  EarlyStopping,
  Execution,
  TrainingSettings,
)

FLAGS = flags.FLAGS


def read_requested_params() -> RequestedParams:
  """Reads `--param_set`, `--params_override` and the decoding flags."""
  overrides = parse_override(FLAGS.params_override)
  for name in DECODING_FIELDS:
    if FLAGS[name].value is not None:
      overrides[name] = FLAGS[name].value
  param_set = FLAGS.param_set if FLAGS["param_set"].present else None
  return RequestedParams(param_set, overrides)


def read_model() -> tuple[ModelDirectory, ModelDescription]:
  """Reads what `--model_dir` says of its model, decoded as the flags say.

  Raises:
    InputError: if there is no model, or the flags contradict it.
  """
  first, *others = model_directories()
  if others and (not predicts() or ("runner" in FLAGS and FLAGS.runner)):
    raise InputError(
      f"--model_dir={FLAGS.model_dir}: several models decide together with "
      "--mode=predict alone, and without --runner"
    )
  return _read_model(first)


def answers_lines() -> bool:
  """Returns whether predict answers line by line, each at once."""
  return FLAGS.interactive or (
    FLAGS.file == text_files.STANDARD_STREAM and sys.stdin.isatty()
  )


def predicts() -> bool:
  """Returns whether this command translates lines that it is given."""
  # translate.py has no modes; a service neither, nor lines.
  return "text" in FLAGS and ("mode" not in FLAGS or FLAGS.mode == "predict")


def read_other_models() -> list[tuple[ModelDirectory, ModelDescription]]:
  """Reads the models that decide with the first one of `--model_dir`.

  Raises:
    InputError: as `read_model`.
  """
  return [_read_model(directory) for directory in model_directories()[1:]]


def model_directories() -> list[ModelDirectory]:
  """Returns what `--model_dir` names: one, or several between commas."""
  path = FLAGS.model_dir
  if "," not in path or file_system.is_directory(path):
    return [ModelDirectory(path)]
  parts = [part.strip() for part in path.split(",")]
  if not all(parts):
    raise InputError(
      f"--model_dir={path}: there is nothing between two commas, or behind the "
      "last: name a directory, or several with a comma between each two"
    )
  return [ModelDirectory(part) for part in parts]


def _read_model(
  directory: ModelDirectory,
) -> tuple[ModelDirectory, ModelDescription]:
  stored = directory.read()
  requested = read_requested_params()
  params = requested.for_decoding(stored.params, directory.path)
  if predicts() and FLAGS.sample and FLAGS.beam_size is None:
    # As many as are told, if none is to be chosen.
    number = params.beam_size if FLAGS.mbr else FLAGS.n_best
    params = dataclasses.replace(params, beam_size=max(number, FLAGS.n_best))
  return directory, dataclasses.replace(stored, params=params)


def read_averaged_steps() -> tuple[ModelDirectory, list[int]]:
  """Reads which checkpoints of `--model_dir` are to be averaged, ascending.

  Raises:
    InputError: if there is no model, or not as many checkpoints.
  """
  directory = ModelDirectory(FLAGS.model_dir)
  directory.read()  # Says what it is, if it is no model.
  if FLAGS.average_checkpoints is None:
    return directory, last_steps(directory, FLAGS.average_last)
  return directory, listed_steps(directory, FLAGS.average_checkpoints)


def last_steps(directory: ModelDirectory, number: int) -> list[int]:
  """Returns the steps of the newest checkpoints, ascending.

  Those that only serve to go on from are left out, because when they were saved
  is chance, and the weights that training began with.
  """
  steps = [
    n
    for n in directory.checkpoint_steps()
    if n > 0 and not directory.is_interim(n)
  ]
  if len(steps) < number:
    raise InputError(
      f"--average_last={number}: {directory.path} has {len(steps)} checkpoints "
      "that count"
      + (f", of the steps {', '.join(map(str, steps))}. " if steps else ". ")
      + "That of step 0 does not, nor do those saved at an interruption or "
      "by --save_checkpoints_secs. "
      + ("Give a smaller number; " if steps else "")
      + "--keep_checkpoint_max and --save_checkpoints_steps have training keep "
      "more"
    )
  return steps[-number:]


def listed_steps(directory: ModelDirectory, listed: list[str]) -> list[int]:
  """Returns the steps that the user names, ascending."""
  steps = directory.checkpoint_steps()
  unknown = [text for text in listed if text not in map(str, steps)]
  if unknown or not listed:
    raise InputError(
      f"--average_checkpoints={','.join(listed)}: "
      + (f"no checkpoint of step {', '.join(unknown)}; " if unknown else "")
      + f"{directory.path} has "
      + (", ".join(map(str, steps)) or "none")
    )
  if len(set(listed)) < len(listed):
    raise InputError("--average_checkpoints names a step twice")
  return sorted(map(int, listed))


def read_requested_batching() -> RequestedBatching:
  """Reads what was given of what decides the order of the data."""
  given = {
    field.name: FLAGS[field.name].value
    for field in dataclasses.fields(RequestedBatching)
    if FLAGS[field.name].present
  }
  if FLAGS.distribution_strategy == "tpu":
    given["static_batch"] = True  # It compiles the step for one shape.
  return RequestedBatching(**given)


def read_profile_steps() -> tuple[int, int] | None:
  """Reads the first and the last step to record.

  Raises:
    InputError: if they are no two steps in order.
  """
  if not FLAGS.profile_steps:
    return None
  try:
    first, last = (int(text) for text in FLAGS.profile_steps)
  except ValueError:
    first, last = 0, 0
  if not 1 <= first <= last:
    raise InputError(
      f"--profile_steps={','.join(FLAGS.profile_steps)}: give the first and "
      "the last step to record, such as 10,12"
    )
  return first, last


def read_early_stopping() -> EarlyStopping | None:
  """Reads what ends the run early."""
  if FLAGS.early_stopping_patience is None:
    return None
  measure = FLAGS.early_stopping_measure
  by_loss = measure == "loss" or (measure is None and not FLAGS.bleu_source)
  return EarlyStopping(
    VALIDATION_LOSS if by_loss else BLEU, FLAGS.early_stopping_patience
  )


def read_subword_sampling() -> SubwordSampling | None:
  """Reads how segmentations are drawn, if they are."""
  if FLAGS.sampling_alpha is None:
    return None
  return SubwordSampling(
    FLAGS.sampling_alpha, FLAGS.sampling_nbest, FLAGS.sampling_sides
  )


def read_training_settings(
  batching: Batching, seed: int, replicas: int, evaluated_steps: tuple[int, ...]
) -> TrainingSettings:
  """Reads how a run goes.

  Args:
    batching: of the model.
    seed: of the run.
    replicas: that share a batch.
    evaluated_steps: of all evaluations, the last step last, if epochs decide
      them.
  """
  settings = {
    **_values_of_fields(TrainingSettings),
    "batching": batching,
    "seed": seed,
    "early_stopping": read_early_stopping(),
    "execution": _read_execution(batching, replicas),
    "profile_steps": read_profile_steps(),
    "freeze": tuple(FLAGS.freeze or ()),
    # What has been trained on ones must not be gone on with.
    "enable_checkpointing": FLAGS.enable_checkpointing
    and not FLAGS.use_synthetic_data,
  }
  if evaluated_steps:
    settings["train_steps"] = evaluated_steps[-1]
    settings["evaluated_steps"] = evaluated_steps
  return TrainingSettings(**settings)


def _read_execution(batching: Batching, replicas: int) -> Execution:
  """Reads how updates are computed."""
  is_static = batching.static_batch or FLAGS.use_synthetic_data
  loss_scale = None
  if FLAGS.dtype == "fp16":
    loss_scale = flags_core.fixed_loss_scale(FLAGS.loss_scale)
  return Execution(
    **{
      **_values_of_fields(Execution),
      "loss_scale": loss_scale,
      # XLA compiles no exchange between devices, but on TPUs, unasked.
      "compile": FLAGS.enable_xla and is_static and replicas == 1,
    }
  )


def _values_of_fields(record: type) -> dict[str, Any]:
  """Returns the values of the flags that are named as a record's fields."""
  names = (field.name for field in dataclasses.fields(record))
  return {name: FLAGS[name].value for name in names if name in FLAGS}
