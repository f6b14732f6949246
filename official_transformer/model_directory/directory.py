"""A model directory: complete in itself, so that translating needs only it.

DIR/model.json             parameters, vocabulary, versions
DIR/VOCABULARY             a copy of the vocabulary file
DIR/checkpoints/step-N/    one directory a checkpoint
DIR/best/step-N/           the weights that an evaluation found best
DIR/average/step-N/        the mean of several checkpoints, N the newest
DIR/measurements.jsonl     what every evaluation measured
DIR/data_index.npz         where the training data's records are, and how long
DIR/translations/          the hypotheses of every evaluation, and scores.json
DIR/nonfinite-step-N.jsonl the ids of a batch whose loss was not finite
DIR/train.lock             while somebody trains it
DIR/logs/                  TensorBoard
"""

from __future__ import annotations

import dataclasses
import json
import os
import re

from official_transformer.data.trained_lines import TrainedLines
from official_transformer.errors import InputError
from official_transformer.model_directory.description import (
  DESCRIPTION_FILE,
  ModelDescription,
)
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import (
  is_whole,
  remove_directory,
  write_bytes,
  write_text,
)
from official_transformer.storage.typed_json import DAMAGE
from official_transformer.text.vocabulary_files import (
  LoadedVocabularies,
  VocabFiles,
)

CHECKPOINTS = "checkpoints"
BEST = "best"
AVERAGE = "average"
LATEST = "latest"
LOCK_FILE = "train.lock"
NONFINITE = "nonfinite-step-"
MEASUREMENTS_FILE = "measurements.jsonl"
DATA_INDEX = "data_index.npz"
TRANSLATIONS = "translations"
SCORES_FILE = "scores.json"  # Among them.
LOGS = "logs"

IMPORT_FIRST = (
  "It holds another Transformer's checkpoints: import one with python -m "
  "official_transformer.import_checkpoint --format=... --checkpoint=... "
  "--vocab_file=... --model_dir="
)

_CHECKPOINT = re.compile(r"step-(\d+)$")
_BUNDLE = "model"
# The description of a model that is being removed.
_REMOVED = f"{DESCRIPTION_FILE}.removed"
# The names of a run's own files, whole, damaged, or left by an interruption.
_OWN_NAMES = re.compile(r"step-\d+(\.\w+)*$|events\.out\.|plugins$")
_OWN_TRANSLATIONS = re.compile(
  rf"((.+-)?step-\d+.*\.txt|{re.escape(SCORES_FILE)})(\.\w+\.incomplete)?$"
)

# A file in the directory of a checkpoint that only serves to go on from: the
# next one takes its place.
INTERIM = "interim"

# Why there may be no checkpoint of a kind.
_REASONS = {
  CHECKPOINTS: "the model has not been trained, or its training stopped before "
  "the first checkpoint",
  BEST: "no evaluation of its training has measured anything",
  AVERAGE: "make it with --mode=average",
}


class ModelDirectory:
  """Paths and description of one model directory.

  Attributes:
    path: the directory.
  """

  def __init__(self, path: str) -> None:
    self.path = path

  def join(self, *names: str) -> str:
    """Returns the path of something inside."""
    return os.path.join(self.path, *names)

  def exists(self) -> bool:
    """Returns whether the directory has a description."""
    return file_system.exists(self.join(DESCRIPTION_FILE))

  def read(self) -> ModelDescription:
    """Reads model.json.

    Raises:
      InputError: if there is no model, or it is damaged or of another kind.
    """
    path = self.join(DESCRIPTION_FILE)
    if not self.exists():
      raise InputError(
        f"{self.path} is no model directory: it has no {DESCRIPTION_FILE}. "
        + (
          f"{IMPORT_FIRST}DIR, and name DIR"
          if self.has_foreign_checkpoints()
          else "Train a model with --mode=train --model_dir=DIR, or check the "
          "path"
        )
      )
    try:
      with file_system.open_file(path) as stream:
        content = json.load(stream)
      return ModelDescription.from_json(content)
    except InputError as error:
      raise InputError(f"{path}: {error}") from None
    except DAMAGE as error:
      raise InputError(f"{path} is damaged: {error!r:.200}") from None

  def describe(self) -> ModelDescription:
    """Reads model.json, and the lengths of the training lines if it lacks them.

    Models of earlier versions lack the lengths. The index of their data may
    have them; it is not used if the model started from another model's weights,
    which had other data.

    Raises:
      InputError: as `read`.
    """
    description = self.read()
    if description.lines or description.origin or not description.batching:
      return description
    lines = TrainedLines.of_index(
      self.join(DATA_INDEX), description.batching.max_length
    )
    return dataclasses.replace(description, lines=lines)

  def has_foreign_checkpoints(self) -> bool:
    """Returns whether there are checkpoints of another implementation."""
    return not self.exists() and any(
      name.endswith(".index") for name in file_system.names_in(self.path)
    )

  def write(
    self, description: ModelDescription, vocabularies: LoadedVocabularies
  ) -> None:
    """Makes the directory: copies the vocabularies, writes model.json last.

    Raises:
      InputError: if a file that is no model's has a vocabulary's name.
    """
    file_system.make_directories(self.path)
    copies = VocabFiles.within(self.path, description.vocabularies)
    pairs = zip(vocabularies.files, copies, strict=True)
    for vocab_file, copy in dict.fromkeys(pairs):
      content = vocabularies.contents[vocab_file]
      if file_system.exists(copy):
        if file_system.read_bytes(copy) == content:
          continue
        if not self.exists():
          raise InputError(
            f"{copy} is another file than {vocab_file}, which would be copied "
            "there; move it away or name another --model_dir"
          )
      write_bytes(copy, content)
    text = json.dumps(description.to_json(), indent=2)
    write_text(self.join(DESCRIPTION_FILE), text + "\n")

  def check_removable(self) -> None:
    """Raises an `InputError` if there are files but no model."""
    names = set(file_system.names_in(self.path))
    is_model = self.exists() or _REMOVED in names
    if names - {LOCK_FILE} and not is_model:
      raise InputError(
        f"--clean: {self.path} holds files but no {DESCRIPTION_FILE}, so it is "
        "no model directory; nothing was deleted. Check --model_dir"
      )

  def remove_model(self) -> None:
    """Removes a model, if there is one, and nothing else.

    The vocabulary stays: it may be the one that the next model is to have.

    Raises:
      InputError: if the directory holds other files and no model.
    """
    self.check_removable()
    # Nothing describes the rest any more, should this be broken off, and the
    # next attempt knows that a model was here.
    if self.exists():
      file_system.rename(self.join(DESCRIPTION_FILE), self.join(_REMOVED))
    for name in (MEASUREMENTS_FILE, DATA_INDEX):
      file_system.remove_if_there(self.join(name))
    for name in (CHECKPOINTS, BEST, AVERAGE, LOGS):
      _empty(self.join(name), _OWN_NAMES)
    _empty(self.join(TRANSLATIONS), _OWN_TRANSLATIONS)
    for name in file_system.names_in(self.path):
      if name.startswith(NONFINITE):
        file_system.remove_if_there(self.join(name))
    file_system.remove_if_there(self.join(_REMOVED))

  def vocab_files(self) -> VocabFiles:
    """Returns the paths of the vocabularies' copies."""
    return VocabFiles.within(self.path, self.read().vocabularies)

  def checkpoint_steps(self, kind: str = CHECKPOINTS) -> list[int]:
    """Returns the steps of all whole checkpoints, ascending.

    Args:
      kind: `CHECKPOINTS`, `BEST` or `AVERAGE`.
    """
    directory = self.join(kind)
    names = file_system.names_in(directory)
    found = (_CHECKPOINT.match(name) for name in names)
    return sorted(
      int(match.group(1))
      for match in found
      if match and is_whole(os.path.join(directory, match.string))
    )

  def checkpoint_directory(self, step: int, kind: str = CHECKPOINTS) -> str:
    """Returns the directory of the checkpoint of a step."""
    return self.join(kind, f"step-{step}")

  def checkpoint_prefix(self, step: int, kind: str = CHECKPOINTS) -> str:
    """Returns the checkpoint's path without `.index`."""
    return self.prefix_in(self.checkpoint_directory(step, kind))

  @staticmethod
  def prefix_in(checkpoint_directory: str) -> str:
    """Returns the path without `.index` of the checkpoint in its directory."""
    return os.path.join(checkpoint_directory, _BUNDLE)

  def remove_checkpoint(self, step: int, kind: str = CHECKPOINTS) -> None:
    """Removes a step's checkpoint; after a crash, no part passes for it."""
    remove_directory(self.checkpoint_directory(step, kind))

  def is_interim(self, step: int) -> bool:
    """Returns whether a checkpoint only serves to go on from."""
    return file_system.exists(
      os.path.join(self.checkpoint_directory(step), INTERIM)
    )

  def latest_checkpoint(self) -> str:
    """Returns the prefix of the newest checkpoint.

    Raises:
      InputError: if there is none.
    """
    kind, steps = self.choose_checkpoints(LATEST)
    return self.checkpoint_prefix(steps[0], kind)

  @property
  def is_finished(self) -> bool:
    """Whether there is an average, and none of the checkpoints it averages."""
    return bool(
      self.checkpoint_steps(AVERAGE) and not self.checkpoint_steps(CHECKPOINTS)
    )

  def check_nothing_derived(self) -> None:
    """Checks a directory without checkpoints, before training writes to it.

    Raises:
      InputError: if there are weights that training would remove.
    """
    checkpoints = self.join(CHECKPOINTS)
    if os.path.islink(checkpoints) and not os.path.exists(checkpoints):
      raise InputError(
        f"{checkpoints} is a link to {os.path.realpath(checkpoints)}, which "
        "does not exist: mount that disk, or remove the link"
      )
    for kind, noun in ((AVERAGE, "an average"), (BEST, "a best checkpoint")):
      if self.checkpoint_steps(kind):
        raise InputError(
          f"{self.path} holds {noun}, and no checkpoint to go on from: start "
          f"from it with --init_checkpoint={self.join(kind)}, in another "
          "--model_dir, or remove it with --clean"
        )

  def choose_checkpoints(self, which: str) -> tuple[str, list[int]]:
    """Returns the kind and the steps of the checkpoints to try, in turn.

    Args:
      which: `latest`, for which each older one may stand in, and the average
        if there is nothing else, as in models that others have trained; `best`;
        `average`; or a step.

    Raises:
      InputError: if there is none.
    """
    kind = which if which in (BEST, AVERAGE) else CHECKPOINTS
    steps = self.checkpoint_steps(kind)
    if not steps and kind != AVERAGE:
      average = self.checkpoint_steps(AVERAGE)
      if average and which == LATEST:
        return AVERAGE, average[-1:]
      if average:
        raise InputError(
          f"--checkpoint={which}: {self.path} has no such checkpoint, but an "
          f"average: --checkpoint={AVERAGE}"
        )
    if not steps:
      reason = _REASONS[kind]
      if kind == CHECKPOINTS and self.checkpoint_steps(BEST):
        reason = f"but there is a best one: --checkpoint={BEST}"
      raise InputError(f"no checkpoint in {self.join(kind)}: {reason}")
    if kind != CHECKPOINTS:
      return kind, steps[-1:]
    if which == LATEST:
      return kind, steps[::-1]
    if which not in map(str, steps):
      raise InputError(
        f"--checkpoint={which}: {self.path} has "
        + ", ".join([LATEST, *filter(self.checkpoint_steps, (BEST, AVERAGE))])
        + " and the steps "
        + ", ".join(map(str, steps))
      )
    return kind, [int(which)]


def _empty(directory: str, own: re.Pattern[str]) -> None:
  """Removes a run's own files from a directory, and then an empty directory.

  Others' files stay, and so does a link, to a larger disk for instance.

  Raises:
    OSError: if the system refuses.
  """
  names = file_system.names_in(directory)
  found = [name for name in names if own.match(name)]
  for name in found:
    file_system.remove(os.path.join(directory, name))
  if len(found) == len(names) and not os.path.islink(directory):
    file_system.remove_tree(directory)
