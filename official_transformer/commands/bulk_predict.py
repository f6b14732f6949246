"""What `--mode=predict --runner` does: translates many files as a pipeline.

    files -> each file, by any worker -> its translation

A file's translation has its name and is there once it is whole: the same
command goes on with those that are not there. Lines keep their order. Model,
files and translations must be where all workers find them.
"""

from __future__ import annotations

import functools
import glob
import importlib
import json
import os
import threading
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from absl import flags, logging

from official_transformer.commands.loading import TranslatorPlan, read_plan
from official_transformer.data import text_files
from official_transformer.decoding.output import lines_of
from official_transformer.decoding.translator import Translator
from official_transformer.distribution import beam_pipeline
from official_transformer.errors import InputError
from official_transformer.model_directory.directory import (
  LATEST,
  ModelDirectory,
)
from official_transformer.model_params import DECODING_FIELDS
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import INCOMPLETE, write_text
from official_transformer.storage.file_lock import FileLock, HeldError

FLAGS = flags.FLAGS
# In the directory of the translations: how and of what they were made.
DESCRIPTION_FILE = "bulk_translation.json"
_UNFINISHED = "bulk_translation" + INCOMPLETE


class BulkJob(NamedTuple):
  """How files are translated; it travels to other processes.

  Attributes:
    plan: of the translator.
    output_format: `text` or `jsonl`.
    replace_invalid: whether bytes that are not UTF-8 are replaced.
    directory: of the translations.
  """

  plan: TranslatorPlan
  output_format: str
  replace_invalid: bool
  directory: str

  def output(self, path: str) -> str:
    """Returns where the translation of a file goes."""
    name, ending = os.path.splitext(os.path.basename(path))
    if ending not in text_files.COMPRESSED:
      name += ending
    return os.path.join(self.directory, name)

  def description(self) -> Mapping[str, Any]:
    """Returns all that a translation depends on, besides its source."""
    plan = self.plan
    kind, steps = ModelDirectory(plan.model_dir).choose_checkpoints(
      plan.checkpoint
    )
    params = plan.description.params
    return {
      "model": plan.model_dir,
      "checkpoint": [kind, steps[0]],
      "dtype": plan.dtype,
      "engine": [plan.options.engine.name, plan.options.engine.quantization],
      "n_best": plan.options.n_best,
      "split_long_lines": plan.options.split_long_lines,
      "output_format": self.output_format,
      "replace_invalid": self.replace_invalid,
      **{name: getattr(params, name) for name in DECODING_FIELDS},
    }


def bulk_predict() -> None:
  """Translates all files that have no translation yet."""
  options = beam_pipeline.check(FLAGS.runner, FLAGS.beam_options)
  paths = find_files(FLAGS.file)
  job = _read_job()
  _check_names(job, paths)
  file_system.make_directories(job.directory)
  with _alone(job.directory):
    missing = _missing(job, paths)
    logging.info(
      "%d of %d files are to be translated", len(missing), len(paths)
    )
    unfinished = os.path.join(job.directory, _UNFINISHED)
    file_system.remove_tree(unfinished)
    if missing:
      file_system.make_directories(unfinished)
      build = functools.partial(build_pipeline, job=job, paths=missing)
      beam_pipeline.run(FLAGS.runner, options, build)
      file_system.remove_tree(unfinished)
  logging.info("%s has all %d translations", FLAGS.file_out, len(paths))


def find_files(patterns: str) -> list[str]:
  """Returns the files that `--file` names.

  Args:
    patterns: of names, between commas.

  Raises:
    InputError: if there are none of a pattern, or one cannot be read.
  """
  paths: list[str] = []
  for pattern in filter(None, patterns.split(",")):
    if file_system.is_remote(pattern):
      found = importlib.import_module("tensorflow").io.gfile.glob(pattern)
    else:
      found = glob.glob(pattern)
    if not found:
      raise InputError(f"--file: there is no file {pattern}; check the path")
    paths += [file_system.absolute(path) for path in sorted(found)]
  for path in paths:
    text_files.check_input(path)
  return list(dict.fromkeys(paths))


def _read_job() -> BulkJob:
  """Reads how files are translated."""
  plan = read_plan(FLAGS.n_best)
  if plan.checkpoint == LATEST:
    # All files by the same weights, though a training may go on meanwhile.
    _, steps = ModelDirectory(plan.model_dir).choose_checkpoints(LATEST)
    plan = plan.of_checkpoint(str(steps[0]))
  return BulkJob(
    plan,
    FLAGS.output_format,
    FLAGS.invalid_utf8 == "replace",
    file_system.absolute(FLAGS.file_out),
  )


def _check_names(job: BulkJob, paths: list[str]) -> None:
  """Refuses files whose translations would be one another's, or a source."""
  sources: dict[str, str] = {}
  for path in paths:
    output = job.output(path)
    if other := sources.get(output):
      raise InputError(
        f"the translations of {other} and {path} would both be {output}; "
        "translate them into two directories"
      )
    sources[output] = path
    if file_system.is_same(os.path.dirname(path), job.directory):
      raise InputError(
        f"--file_out={FLAGS.file_out} is where {path} is; name another "
        "directory"
      )


def _alone(directory: str) -> FileLock:
  """Returns a lock, taken, that keeps others out of a directory."""
  lock = FileLock(os.path.join(directory, DESCRIPTION_FILE + ".lock"))
  try:
    lock.acquire()
  except HeldError as holder:
    raise InputError(
      f"another run, {holder}, translates into {directory}; wait for it, stop "
      "it, or name another --file_out"
    ) from None
  return lock


def _missing(job: BulkJob, paths: list[str]) -> list[str]:
  """Returns the files without a translation; writes down what will be made.

  Raises:
    InputError: if there are translations of something else, or made otherwise.
  """
  described = os.path.join(job.directory, DESCRIPTION_FILE)
  told: dict[str, Any] = {"settings": job.description(), "files": {}}
  if file_system.exists(described):
    settings, told["files"] = _read_description(described)
    for name, value in told["settings"].items():
      if settings.get(name) != value:
        raise InputError(
          f"{job.directory} has translations by {name} {settings.get(name)}, "
          f"not {value}; name another --file_out, or remove it"
        )
  missing = []
  for path in paths:
    output, state = job.output(path), file_system.state(path)
    if not file_system.exists(output):
      missing.append(path)
    elif told["files"].get(path) != state:
      raise InputError(
        f"{output} is not the translation of {path} as it is now; name another "
        "--file_out, or remove it"
      )
    told["files"][path] = state
  write_text(described, json.dumps(told, indent=2))
  return missing


def _read_description(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
  """Reads settings and files of an earlier run."""
  try:
    with file_system.open_file(path) as stream:
      told = json.load(stream)
    return dict(told["settings"]), dict(told["files"])
  except (ValueError, KeyError, TypeError):
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
  with _loading:  # One model a process, whatever its threads.
    key = repr(job.plan)
    if key not in _translators:
      _translators[key] = job.plan.load()
  output = job.output(path)
  # A runner may have two workers try the same.
  name = f"{os.path.basename(output)}.{uuid.uuid4().hex}"
  aside = os.path.join(job.directory, _UNFINISHED, name)
  lines = text_files.read_lines(path, job.replace_invalid)
  text_files.write_lines(aside, _translated(job, _translators[key], lines))
  file_system.rename(aside, output)
  return output


def _translated(
  job: BulkJob, translator: Translator, lines: Iterator[str]
) -> Iterator[str]:
  """Yields the lines of a file's translation."""
  stream = translator.translate_stream(lines)
  return lines_of(stream, job.output_format, job.plan.options.n_best)
