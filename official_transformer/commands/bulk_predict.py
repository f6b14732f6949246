"""`--mode=predict --runner`: translating many files as a pipeline.

    files -> each file, by any worker -> its translation

The translation of a file has the file's name and appears when it is complete:
the same command continues with the missing ones. Lines keep their order. Model,
files and translations must be where all workers find them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import os
import threading
import uuid
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from absl import logging

from official_transformer.data.trained_lines import TrainedLines
from official_transformer.decoding.output import lines_of
from official_transformer.decoding.translator import Translator
from official_transformer.decoding.translator_plan import TranslatorPlan
from official_transformer.errors import InputError, RunError
from official_transformer.model_directory.directory import (
  AVERAGE,
  LATEST,
  ModelDirectory,
)
from official_transformer.model_params import (
  TransformerParams,
)
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import INCOMPLETE, write_text
from official_transformer.storage.file_lock import FileLock
from official_transformer.storage.typed_json import DAMAGE
from official_transformer.text import text_files

# In the directory of the translations: the settings of the run, and the state
# of each source file.
DESCRIPTION_FILE = "bulk_translation.json"
_UNFINISHED = "bulk_translation" + INCOMPLETE


class Weights(NamedTuple):
  """The checkpoint that translates all files, with its checksum.

  Attributes:
    kind: kind of checkpoint.
    step: step of the checkpoint.
    sha256: SHA-256 of its index, which holds a checksum of each tensor.
  """

  kind: str
  step: int
  sha256: str

  @classmethod
  def of(cls, directory: ModelDirectory, checkpoint: str) -> Weights:
    """Returns the weights that `--checkpoint` names."""
    kind, steps = directory.choose_checkpoints(checkpoint)
    index = directory.checkpoint_prefix(steps[0], kind) + ".index"
    return cls(kind, steps[0], file_system.sha256(index))


class BulkJob(NamedTuple):
  """Settings for translating files; sent to other processes.

  Attributes:
    plan: plan of the translator.
    weights: weights that it must have.
    output_format: `text` or `jsonl`.
    replace_invalid: whether bytes that are not UTF-8 are replaced.
    directory: directory of the translations.
  """

  plan: TranslatorPlan
  weights: Weights
  output_format: str
  replace_invalid: bool
  directory: str

  def output(self, path: str) -> str:
    """Returns where the translation of a file goes."""
    name, ending = os.path.splitext(os.path.basename(path))
    if ending not in text_files.COMPRESSED:
      name += ending
    return os.path.join(self.directory, name)

  def settings(self) -> Mapping[str, Any]:
    """Returns all that a translation depends on, besides its source."""
    return {
      "model": self.plan.model_dir,
      "weights": list(self.weights),
      "output_format": self.output_format,
      "replace_invalid": self.replace_invalid,
      **self.plan.settings(),
    }

  def load(self) -> Translator:
    """Loads the translator.

    Raises:
      InputError: if the model has other weights by now.
    """
    directory = ModelDirectory(self.plan.model_dir)
    translator = self.plan.load()
    if Weights.of(directory, self.plan.checkpoint) != self.weights:
      raise InputError(
        f"{directory.path} has other weights now than when this run began; "
        "start it again once the training has ended, or name the step of a "
        "checkpoint that is kept, with --checkpoint"
      )
    return translator


class Described(NamedTuple):
  """The description of a directory of translations.

  Attributes:
    settings: `BulkJob.settings` of the run that made them.
    files: `file_system.state` of each source, by path.
  """

  settings: Mapping[str, Any]
  files: Mapping[str, Any]


def bulk_predict(
  plan: TranslatorPlan,
  patterns: str,
  file_out: str,
  *,
  output_format: str,
  replace_invalid: bool,
  run_pipeline: Callable[[Callable[[Any], None]], None],
) -> None:
  """Translates all files that have no translation yet.

  Args:
    plan: plan of the translator, as `--mode=predict` has it.
    patterns: patterns of the files, as `find_files` takes them.
    file_out: the directory of the translations.
    output_format: `text` or `jsonl`.
    replace_invalid: whether bytes that are not UTF-8 are replaced.
    run_pipeline: runs a Beam pipeline that its argument has built.

  Raises:
    InputError: if the files, the directory, or the remains of an earlier run do
      not allow it.
    RunError: if the pipeline ended without all translations.
  """
  paths = find_files(patterns)
  directory = file_system.absolute(file_out)
  file_system.make_directories(directory)
  with _alone(directory):
    earlier = _read_description(directory)
    plan, weights = _as_earlier(plan, earlier)
    job = BulkJob(plan, weights, output_format, replace_invalid, directory)
    _check_names(job, paths, file_out)
    missing = _missing(job, paths, earlier)
    logging.info(
      "%d of %d files are to be translated", len(missing), len(paths)
    )
    unfinished = os.path.join(directory, _UNFINISHED)
    file_system.remove_tree(unfinished)
    if missing:
      file_system.make_directories(unfinished)
      run_pipeline(functools.partial(build_pipeline, job=job, paths=missing))
      file_system.remove_tree(unfinished)
    lost = [p for p in missing if not file_system.exists(job.output(p))]
  if lost:
    raise RunError(
      f"the pipeline has ended without {job.output(lost[0])} and "
      f"{len(lost) - 1} more; the same command goes on"
    )
  logging.info("%s has all %d translations", file_out, len(paths))


def find_files(patterns: str) -> list[str]:
  """Returns the files that `--file` names.

  Args:
    patterns: patterns of names, between commas, or one name.

  Raises:
    InputError: if a pattern matches no file, or a file cannot be read.
  """
  paths: list[str] = []
  parts = [patterns] if file_system.exists(patterns) else patterns.split(",")
  for pattern in filter(None, parts):
    found = file_system.matching(pattern)
    if not found:
      raise InputError(f"--file: there is no file {pattern}; check the path")
    paths += map(file_system.absolute, found)
  if not paths:
    raise InputError("--file names no file to translate")
  for path in paths:
    text_files.check_input(path)
  return list(dict.fromkeys(paths))


def _as_earlier(
  plan: TranslatorPlan, earlier: Described | None
) -> tuple[TranslatorPlan, Weights]:
  """Returns a plan that translates all files alike.

  The plan has a checkpoint in the place of `latest`, the length of a piece,
  and, if the user leaves that open, whether sentences are split and capitals
  translated as sentences. A run that continues takes these from the earlier
  run.
  """
  options = plan.options
  if earlier:
    # Runs of versions that had no choice say nothing of it.
    options = dataclasses.replace(
      options,
      **{
        name: earlier.settings.get(name, False)
        for name in ("split_sentences", "recase")
        if getattr(options, name) is None
      },
    )
  options = options.as_trained(plan.description.splits_sentences)
  description = plan.description
  if earlier:
    before = dataclasses.replace(description, lines=None).longest_piece
    usual = earlier.settings.get("longest_piece", before) or before
    description = dataclasses.replace(description, lines=TrainedLines(usual))
  model = ModelDirectory(file_system.absolute(plan.model_dir))
  checkpoint = plan.checkpoint
  if checkpoint == LATEST:
    # All files by the same weights, though a training may go on meanwhile.
    if earlier and earlier.settings.get("model") == model.path:
      step = earlier.settings["weights"][1]
    else:
      _, (step, *_) = model.choose_checkpoints(LATEST)
    checkpoint = AVERAGE if model.is_finished else str(step)
  plan = dataclasses.replace(
    plan,
    model_dir=model.path,
    description=description,
    checkpoint=checkpoint,
    options=options,
  )
  return plan, Weights.of(model, checkpoint)


def _check_names(job: BulkJob, paths: list[str], file_out: str) -> None:
  """Refuses files whose translations would be one another's, or a source."""
  ours = [DESCRIPTION_FILE, DESCRIPTION_FILE + ".lock", _UNFINISHED]
  sources = {os.path.join(job.directory, name): "this command" for name in ours}
  for path in paths:
    output = job.output(path)
    if other := sources.get(output):
      raise InputError(
        f"the translation of {path} would be {output}, a name that {other} "
        f"needs, too; translate {path} into another directory"
      )
    sources[output] = path
    if file_system.is_same(os.path.dirname(path), job.directory):
      raise InputError(
        f"--file_out={file_out} is where {path} is; name another directory"
      )


def _alone(directory: str) -> FileLock:
  """Returns the lock of a directory of translations."""
  return FileLock(
    os.path.join(directory, DESCRIPTION_FILE + ".lock"),
    f"another run, {{holder}}, translates into {directory}; wait for it, stop "
    "it, or name another --file_out",
  )


def _missing(
  job: BulkJob, paths: list[str], earlier: Described | None
) -> list[str]:
  """Returns the files without a translation, and writes the description.

  Raises:
    InputError: if there are translations of something else, or made otherwise.
  """
  settings = job.settings()
  files = dict(earlier.files) if earlier else {}
  if earlier:
    # How they were made before there was a choice.
    before = {f.name: f.default for f in dataclasses.fields(TransformerParams)}
    before |= dict.fromkeys(
      ("split_sentences", "recase", "replace_unk", "markup"), False
    )
    # Descriptions of earlier versions lack this entry; see `_as_earlier`.
    before["longest_piece"] = settings["longest_piece"]
    for name, value in settings.items():
      if (had := earlier.settings.get(name, before.get(name))) != value:
        raise InputError(
          f"{job.directory} has translations by {name} {had}, not {value}; "
          "name another --file_out, or remove it"
        )
  missing = []
  for path in paths:
    output, state = job.output(path), file_system.state(path)
    if not file_system.exists(output):
      missing.append(path)
    elif files.get(path) != state:
      raise InputError(
        f"{output} is not a translation of {path} in its present state; name "
        f"another --file_out, or remove {output}"
      )
    files[path] = state
  write_text(
    os.path.join(job.directory, DESCRIPTION_FILE),
    json.dumps(Described(settings, files)._asdict(), indent=2),
  )
  return missing


def _read_description(directory: str) -> Described | None:
  """Reads the description of an earlier run, if there was one."""
  path = os.path.join(directory, DESCRIPTION_FILE)
  if not file_system.exists(path):
    return None
  try:
    with file_system.open_file(path) as stream:
      told = json.load(stream)
    found = Described(dict(told["settings"]), dict(told["files"]))
    Weights(*found.settings["weights"])
    return found
  except DAMAGE:
    raise InputError(
      f"{path} is damaged: remove the directory, or name another --file_out"
    ) from None


def build_pipeline(pipeline: Any, job: BulkJob, paths: list[str]) -> None:
  """Adds the translation of files to a pipeline."""
  import apache_beam as beam

  _ = (
    pipeline
    | "files" >> beam.Create(paths)
    | "each file" >> beam.Reshuffle()
    | "translate" >> beam.Map(functools.partial(translate_file, job))
  )


_loading = threading.Lock()
_translators: dict[str, Translator] = {}


def translate_file(job: BulkJob, path: str) -> str:
  """Translates a file; returns where its translation is."""
  with _loading:  # One model a process, shared by its threads.
    key = repr(job)
    if key not in _translators:
      _translators[key] = job.load()
  output = job.output(path)
  # A runner may have two workers try the same.
  name = f"{os.path.basename(output)}.{uuid.uuid4().hex}"
  aside = os.path.join(job.directory, _UNFINISHED, name)
  lines = text_files.read_lines(path, job.replace_invalid)
  n_best = job.plan.options.n_best
  with contextlib.closing(_translators[key].translate_stream(lines)) as stream:
    text_files.write_lines(aside, lines_of(stream, job.output_format, n_best))
  file_system.rename(aside, output)
  return output
