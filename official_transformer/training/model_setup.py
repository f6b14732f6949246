"""Opening or making the model directory that a run trains."""

from __future__ import annotations

import dataclasses
import os
from typing import Any

from absl import logging

from official_transformer.data import data_directory
from official_transformer.data.prepared_data import PreparedData
from official_transformer.data.tokenizer import load_tokenizer
from official_transformer.errors import InputError
from official_transformer.model_directory.directory import (
  IMPORT_FIRST,
  ModelDescription,
  ModelDirectory,
  check_vocabulary,
  current_versions,
  vocabulary_identity,
)
from official_transformer.model_directory.requested_params import (
  RequestedParams,
)
from official_transformer.model_params import (
  DECODING_FIELDS,
  DEFAULT_MAX_LENGTH,
  DEFAULT_PARAM_SET,
  TRAINING_FIELDS,
  TransformerParams,
)
from official_transformer.training.initial_weights import (
  copy_weights,
  find_source,
)


@dataclasses.dataclass(frozen=True)
class DirectoryPlan:
  """A model directory as it will be, once everything has been checked.

  Attributes:
    directory: where the model is or will be.
    description: what to train with.
    vocab_file: the vocabulary's path.
    changes: whether the directory has to be written.
    initial: the checkpoint that the first weights come from, where they do.
  """

  directory: ModelDirectory
  description: ModelDescription
  vocab_file: str
  changes: bool
  initial: str | None = None

  def carry_out(self) -> None:
    """Writes the directory, where there is anything to write."""
    if not self.changes:
      return
    self.directory.write(self.description, self.vocab_file)
    logging.info("wrote the model directory %s", self.directory.path)
    if self.initial:
      copy_weights(self.initial, self.directory)
      logging.info("the first weights are those of %s", self.initial)

  def with_data(self, data: PreparedData) -> DirectoryPlan:
    """Returns the plan for training on some data.

    Raises:
      InputError: where the model has been trained on others so far.
    """
    given, stored = data.identity(), self.description.data
    if not stored:
      # A model of before data were remembered stays as it is.
      description = dataclasses.replace(self.description, data=given)
      return (
        dataclasses.replace(self, description=description)
        if self.changes
        else self
      )
    # Damage takes away, and adds nothing.
    sizes = ("pairs", "source_tokens", "target_tokens", "shards")
    if not data.is_whole and all(given[n] <= stored[n] for n in sizes):
      logging.warning("as something is left out, the data are not compared")
    elif given != stored:
      raise InputError(
        f"{data.data_dir} holds {_show_data(given)}; {self.directory.path}/"
        f"model.json says that the model is trained on {_show_data(stored)}. A "
        "resumed run goes through the data where it stopped, and needs the "
        "same. To go on with its weights on others, name another --model_dir, "
        f"and this one as --init_checkpoint={self.directory.path}"
      )
    return self


def plan_directory(
  directory: ModelDirectory,
  request: RequestedParams,
  batching: dict[str, Any],
  vocab_file: str | None,
  data_dir: str,
  num_gpus: int = 1,
  num_replicas: int = 1,
  anew: bool = False,
  init_checkpoint: str | None = None,
) -> DirectoryPlan:
  """Checks a model directory against the flags, or plans a new one.

  Args:
    directory: where the model is or will be.
    request: the parameters the user chose.
    batching: `batch_size`, `max_length`, `static_batch`, `accumulate_steps`
      and `target_batch_tokens`, those the user chose.
    vocab_file: as the user gave it, or None: an existing model's own, else
      the one that the data names.
    data_dir: the prepared data.
    num_gpus: above 1, `base` and `big` are the sets tuned for several.
    num_replicas: devices that share a batch.
    anew: whether a model that is there will be removed.
    init_checkpoint: the model, or the checkpoint of one, whose weights a new
      one is to start from.

  Returns:
    What to train with: the model's own parameters where it exists, decoded as
    the user chose. Nothing has been written.

  Raises:
    InputError: where model, flags and data contradict each other.
  """
  if directory.has_foreign_checkpoints():
    raise InputError(
      f"{directory.path}: {IMPORT_FIRST}ANOTHER_DIR, or name another "
      "--model_dir to train a new model"
    )
  steps = [] if anew else directory.checkpoint_steps()
  # A description without a checkpoint is what a run left that never started
  # training: it binds nobody.
  stored = directory.read() if steps else None
  source = None
  if init_checkpoint and stored:
    _check_origin(init_checkpoint, stored, directory.path)
  elif init_checkpoint:
    source = find_source(init_checkpoint, directory)
    stored = source.description
  model = source.directory if source else directory
  if vocab_file is None:
    vocab_file = (
      model.vocab_file() if stored else data_directory.find_vocabulary(data_dir)
    )
  tokenizer = load_tokenizer(vocab_file)
  vocabulary = vocabulary_identity(vocab_file, tokenizer.vocab_size)
  if stored:
    check_vocabulary(vocab_file, tokenizer.vocab_size, stored, model.path)
  _check_data(data_dir, vocab_file, vocabulary["sha256"])
  if stored and steps and max(steps) > 0:
    description = _resumed_description(stored, request, batching, model.path)
    return DirectoryPlan(directory, description, vocab_file, changes=False)
  if stored:  # Imported or another model's, and not trained here yet.
    params = request.for_existing_model(
      stored.params, model.path, (*DECODING_FIELDS, *TRAINING_FIELDS)
    )
    vocabulary = stored.vocabulary
  else:
    params = request.for_new_model(DEFAULT_PARAM_SET, num_gpus)
    params = dataclasses.replace(params, vocab_size=tokenizer.vocab_size)
  default = _default_batching(params, num_replicas)
  description = ModelDescription(
    params,
    vocabulary,
    {**default, **_resolve_target(batching, default)},
    current_versions(),
    source.origin if source else stored.origin if stored else {},
  )
  initial = source.prefix if source else None
  return DirectoryPlan(directory, description, vocab_file, True, initial)


def _resumed_description(
  stored: ModelDescription,
  request: RequestedParams,
  batching: dict[str, Any],
  where: str,
) -> ModelDescription:
  """Returns a trained model's own description, decoded as the user chose."""
  params = request.for_existing_model(stored.params, where)
  stored_batching = {**_default_batching(params, 1), **stored.batching}
  given = _resolve_target(batching, stored_batching)
  _check_batching(given, stored_batching, where)
  return dataclasses.replace(stored, params=params)


def prepare_directory(
  directory: ModelDirectory,
  request: RequestedParams,
  batching: dict[str, Any],
  vocab_file: str | None,
  data_dir: str,
) -> ModelDescription:
  """Plans a directory for one device and writes it at once.

  The arguments are those of `plan_directory`.
  """
  plan = plan_directory(directory, request, batching, vocab_file, data_dir)
  plan.carry_out()
  return plan.description


def _default_batching(
  params: TransformerParams, num_replicas: int
) -> dict[str, Any]:
  """Returns what decides the order of the data, where a user does not."""
  return {
    "batch_size": params.default_batch_size,
    "max_length": DEFAULT_MAX_LENGTH,
    "static_batch": False,
    "batch_divisor": num_replicas,
    "accumulate_steps": 1,
  }


def _resolve_target(
  given: dict[str, Any], default: dict[str, Any]
) -> dict[str, Any]:
  """Turns `target_batch_tokens` into as many batches an update as it takes."""
  if "target_batch_tokens" not in given:
    return given
  batching = dict(given)
  target = batching.pop("target_batch_tokens")
  batch_size = batching.get("batch_size", default["batch_size"])
  return {**batching, "accumulate_steps": max(1, -(-target // batch_size))}


def _check_batching(
  given: dict[str, Any], stored: dict[str, Any], where: str
) -> None:
  """Refuses batches that would change which examples a step trains on."""
  differences = [
    f"--{name}={value} given, {stored[name]} stored"
    for name, value in given.items()
    if name in stored and value != stored[name]
  ]
  if differences:
    raise InputError(
      f"{'; '.join(differences)} in {where}/model.json: a resumed run goes "
      "through the data where it stopped, and needs the same batches. Leave "
      "the flags out, or name another --model_dir"
    )


def _check_data(data_dir: str, vocab_file: str, digest: str) -> None:
  """Refuses data that another vocabulary has tokenized."""
  description = data_directory.read_description(data_dir)
  if description and description["vocabulary"]["sha256"] != digest:
    raise InputError(
      f"the data in {data_dir} was tokenized with another vocabulary (sha256 "
      f"{description['vocabulary']['sha256'][:12]}...) than {vocab_file} "
      f"({digest[:12]}...); prepare the data with --vocab_file="
      f"{vocab_file}, or train a new model"
    )


def _check_origin(path: str, stored: ModelDescription, where: str) -> None:
  """Refuses first weights for a model that has others.

  Those that it had need not exist any more: their model may have gone on.
  """
  given, origin = os.path.abspath(path), stored.origin.get("checkpoint")
  if given != origin:
    raise InputError(
      f"--init_checkpoint={given}, but the model in {where} "
      + (f"started from {origin}" if origin else "started from none")
      + "; name another --model_dir, or leave the flag out to go on with it"
    )
  logging.info(
    "%s goes on from its own newest checkpoint; --init_checkpoint was for its "
    "start",
    where,
  )


def _show_data(identity: dict[str, Any]) -> str:
  """Returns what identifies data, for a message."""
  return (
    f"{identity['pairs']} pairs of {identity['source_tokens']} and "
    f"{identity['target_tokens']} tokens in {identity['shards']} shards "
    f"(fingerprint {identity['fingerprint']})"
  )
