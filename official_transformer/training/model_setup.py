"""Opening or making the model directory that a run trains."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from absl import logging

from official_transformer.data.data_directory import DataDirectory
from official_transformer.data.prepared_data import PreparedData
from official_transformer.data.trained_lines import TrainedLines
from official_transformer.errors import InputError
from official_transformer.model_directory.description import (
  DESCRIPTION_FILE,
  ModelDescription,
  current_versions,
)
from official_transformer.model_directory.directory import (
  IMPORT_FIRST,
  ModelDirectory,
)
from official_transformer.model_directory.requested_params import (
  RequestedParams,
)
from official_transformer.model_params import (
  DECODING_FIELDS,
  DEFAULT_PARAM_SET,
  TransformerParams,
)
from official_transformer.storage.file_system import absolute
from official_transformer.text.text_form import TextForm
from official_transformer.text.tokenizer import fitting_params
from official_transformer.text.vocabulary_files import (
  LoadedVocabularies,
  Tokenizers,
  VocabFiles,
  load_vocabularies,
)
from official_transformer.training.initial_weights import (
  Source,
  copy_weights,
  find_source,
)
from official_transformer.training.requested_batching import RequestedBatching


@dataclasses.dataclass(frozen=True)
class ModelRequest:
  """A user's choices for the model to train.

  Attributes:
    params: the parameters that were chosen.
    batching: the settings of batches that were chosen.
    data: the prepared data; None if none are read.
    vocab_file: as given, or None: an existing model's own, else the one that
      the data names.
    init_checkpoint: the model, or the checkpoint of one, whose weights a new
      one is to start from.
    flags: further flags that decide what is learned, by name.
    clean: whether a model that is there will be removed.
    num_gpus: above 1, the parameter sets tuned for several GPUs are used.
    num_replicas: devices that share a batch.
  """

  params: RequestedParams
  batching: RequestedBatching
  data: DataDirectory | None
  vocab_file: str | None = None
  init_checkpoint: str | None = None
  flags: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  clean: bool = False
  num_gpus: int = 1
  num_replicas: int = 1


@dataclasses.dataclass(frozen=True)
class DirectoryPlan:
  """A model directory as it will be, once everything has been checked.

  Attributes:
    directory: where the model is or will be.
    description: description of the model to train.
    vocabularies: vocabularies of its two sides.
    changes: whether the directory has to be written.
    initial: the checkpoint that the first weights come from, if they do.
  """

  directory: ModelDirectory
  description: ModelDescription
  vocabularies: LoadedVocabularies
  changes: bool
  initial: str | None = None

  @property
  def tokenizers(self) -> Tokenizers:
    """The tokenizers of the model."""
    return self.vocabularies.tokenizers.formed(self.description.form)

  def carry_out(self) -> None:
    """Writes the directory, if there is anything to write."""
    if not self.changes:
      return
    self.directory.write(self.description, self.vocabularies)
    logging.info("wrote the model directory %s", self.directory.path)
    if self.initial:
      copy_weights(self.initial, self.directory)
      logging.info("the first weights come from %s", self.initial)

  def with_data(self, data: PreparedData) -> DirectoryPlan:
    """Returns the plan for training on some data.

    Raises:
      InputError: if the model has been trained on others so far.
    """
    given, stored = data.identity(), self.description.data
    if not stored:
      # Models of early versions do not name their data, and stay without.
      description = dataclasses.replace(
        self.description, data=given, lines=self._lines(data)
      )
      return (
        dataclasses.replace(self, description=description)
        if self.changes
        else self
      )
    # Damage takes away, and adds nothing.
    if not data.is_whole and given.may_be_part_of(stored):
      logging.warning(
        "some records or shards are left out, so the data are not compared "
        "with those that the model was trained on"
      )
    elif given != stored:
      raise InputError(
        f"{data.data_dir} holds {given}; {self.directory.path}/"
        f"{DESCRIPTION_FILE} says that the model is trained on {stored}. A "
        "resumed run goes through the data where it stopped, and needs the "
        "same. To go on with its weights on others, name another --model_dir, "
        f"and this one as --init_checkpoint={self.directory.path}"
      )
    return self

  def _lines(self, data: PreparedData) -> TrainedLines | None:
    """Returns the description's lines once the model has seen some data.

    The lengths of earlier data count, too, because the model has learnt them.
    """
    before, batching = self.description.lines, self.description.batching
    assert batching  # Descriptions for training always have it.
    found = data.lines(batching.max_length)
    return found.after(before) if found else before


def plan_directory(
  directory: ModelDirectory, request: ModelRequest
) -> DirectoryPlan:
  """Checks a model directory against the request, or plans a new one.

  Args:
    directory: where the model is or will be.
    request: the user's request.

  Returns:
    The plan. Its parameters are those of the existing model, if there is one,
    with the user's choices for decoding. Nothing is written.

  Raises:
    InputError: if model, flags and data contradict each other.
  """
  if directory.has_foreign_checkpoints():
    raise InputError(
      f"{directory.path}: {IMPORT_FIRST}ANOTHER_DIR, or name another "
      "--model_dir to train a new model"
    )
  steps = [] if request.clean else directory.checkpoint_steps()
  if not steps and not request.clean:
    directory.check_nothing_derived()
  # A description without a checkpoint is from a run that never started
  # training, and is ignored.
  stored = directory.describe() if steps else None
  source = None
  if request.init_checkpoint and stored:
    _check_origin(request.init_checkpoint, stored, directory.path)
  elif request.init_checkpoint:
    source = find_source(request.init_checkpoint, directory)
    stored = source.description
  model = source.directory if source else directory
  vocabularies = _find_vocabularies(request, stored, model)
  if stored and steps and max(steps) > 0:
    params = request.params.for_existing_model(stored.params, model.path)
    _tell_search(params, stored.params, model)
    _tell_flags(request.flags, stored.flags, model)
    if stored.batching:
      request.batching.check(stored.batching, model.path)
    else:
      batching = request.batching.for_new_model(params, 1)
      stored = dataclasses.replace(stored, batching=batching)
    params = fitting_params(params, vocabularies.tokenizers.target)
    description = dataclasses.replace(stored, params=params)
    return DirectoryPlan(directory, description, vocabularies, changes=False)
  description = _new_description(request, stored, vocabularies, source, model)
  initial = source.prefix if source else None
  return DirectoryPlan(directory, description, vocabularies, True, initial)


def _tell_search(
  params: TransformerParams, stored: TransformerParams, model: ModelDirectory
) -> None:
  """Logs the search settings of this run that the model does not keep."""
  for name in DECODING_FIELDS:
    kept, here = getattr(stored, name), getattr(params, name)
    if here != kept:
      logging.info(
        "%s=%s is for this run's translations; %s keeps %s: edit it there to "
        "change the model's own",
        *(name, here, model.join(DESCRIPTION_FILE), kept),
      )


def _tell_flags(
  given: Mapping[str, Any], stored: Mapping[str, Any], model: ModelDirectory
) -> None:
  """Warns of flags that were others when the training began."""
  for name, began in stored.items():
    if name not in given or given[name] == began:
      continue
    flags = (
      f"--{name}={value}" if value is not None else f"no --{name}"
      for value in (given[name], began)
    )
    logging.warning(
      "this run has %s; the training began with %s (%s)",
      *flags,
      model.join(DESCRIPTION_FILE),
    )


def _find_vocabularies(
  request: ModelRequest, stored: ModelDescription | None, model: ModelDirectory
) -> LoadedVocabularies:
  """Loads the model's vocabularies, and checks them."""
  if request.vocab_file is not None:
    files = VocabFiles.joint(request.vocab_file)
  elif stored:
    files = VocabFiles.within(model.path, stored.vocabularies)
  else:
    assert request.data  # Or there would be a vocabulary.
    files = request.data.vocab_files()
  found = load_vocabularies(files)
  if stored:
    stored.check_vocabularies(found.identity, str(files), model.path)
  if request.data:
    _check_data(request.data, found, stored)
  return found


def _new_description(
  request: ModelRequest,
  stored: ModelDescription | None,
  loaded: LoadedVocabularies,
  source: Source | None,
  model: ModelDirectory,
) -> ModelDescription:
  """Describes a model that has not been trained here yet.

  Args:
    request: the user's request.
    stored: description of the imported or other model that its weights come
      from, if any.
    loaded: the model's vocabularies.
    source: the other model, if it is one of ours.
    model: the model that `stored` describes.
  """
  if stored:
    params = request.params.for_weights_of(
      stored.params, model.path, request.num_gpus
    )
    vocabularies, form = stored.vocabularies, stored.form
  else:
    params = request.params.for_new_model(DEFAULT_PARAM_SET, request.num_gpus)
    vocabularies = loaded.identity
    source_size, size = vocabularies.sizes
    params = dataclasses.replace(
      params,
      vocab_size=size,
      source_vocab_size=0 if vocabularies.is_joint else source_size,
    )
    form = TextForm()
    if request.data and request.data.description:
      form = request.data.description.form
  return ModelDescription(
    fitting_params(params, loaded.tokenizers.target),
    vocabularies,
    request.batching.for_new_model(params, request.num_replicas),
    current_versions(),
    source.origin if source else stored.origin if stored else None,
    form=form,
    lines=_lines_so_far(stored),
    flags=request.flags,
  )


def _lines_so_far(stored: ModelDescription | None) -> TrainedLines | None:
  """Returns the lines that a model has been trained with, or may have been."""
  if stored is None:
    return None
  return stored.lines or TrainedLines(stored.longest_piece)


def _check_data(
  data: DataDirectory,
  vocabularies: LoadedVocabularies,
  model: ModelDescription | None,
) -> None:
  """Refuses data with other vocabularies or another form than the model's.

  Args:
    data: data that are to be trained on.
    vocabularies: vocabularies of the model.
    model: description of an existing model.
  """
  description = data.description
  if not description:
    return
  if model and description.form != model.form:
    raise InputError(
      f"the text of the data in {data.path} is in another form "
      f"({description.form}) than the model's ({model.form}); prepare the data "
      "with the model's --normalize and --lowercase, or train a new model"
    )
  files, identity = vocabularies.files, vocabularies.identity
  if not identity.are_as(description.vocabularies):
    options = (
      f"--vocab_file={files.source}"
      if identity.is_joint
      else f"--source_vocab_file={files.source} --target_vocab_file="
      f"{files.target}"
    )
    raise InputError(
      f"the data in {data.path} was tokenized with another vocabulary, "
      f"{description.vocabularies}, than {files}, {identity}; prepare the "
      f"data with {options}, or train a new model"
    )


def _check_origin(path: str, stored: ModelDescription, where: str) -> None:
  """Refuses first weights for a model that has others.

  Paths are compared, not contents: the checkpoint that the model started from
  may no longer exist, because its own model may have been trained further.
  """
  given = absolute(path)
  origin = stored.origin.checkpoint if stored.origin else None
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
