"""What `--mode=predict --runner` does: translates many files as a pipeline.

Each file becomes one of the same name, which is there once it is whole: the same
command goes on with those that are not. Lines keep their order.
"""

from __future__ import annotations

import functools
import glob
import importlib
import logging as python_logging
import os
import threading
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from absl import flags, logging

from official_transformer.commands.flag_readers import read_model
from official_transformer.commands.loading import decoding_options, dtype
from official_transformer.data import text_files
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.output import json_line, text_lines
from official_transformer.errors import InputError, RunError
from official_transformer.flag_groups import core as flags_core
from official_transformer.model_directory.directory import LATEST
from official_transformer.model_params import DECODING_FIELDS
from official_transformer.storage import file_system

FLAGS = flags.FLAGS


class BulkJob(NamedTuple):
  """How files are translated; it travels to other processes.

  Attributes:
    model_dir: where all workers find it.
    dtype: what to compute in.
    checkpoint: which one; the same for all, whatever comes meanwhile.
    decoding: beam, alpha and limit.
    options: how lines are brought to the model.
    workers: batches decoded side by side in each process; None is one a
      processor.
    output_format: `text` or `jsonl`.
    replace_invalid: whether bytes that are not UTF-8 are replaced.
    directory: of the translations.
  """

  model_dir: str
  dtype: str
  checkpoint: str
  decoding: Mapping[str, float]
  options: DecodingOptions
  workers: int | None
  output_format: str
  replace_invalid: bool
  directory: str

  def output(self, path: str) -> str:
    """Returns where the translation of a file goes."""
    return os.path.join(self.directory, os.path.basename(path))


def find_files(pattern: str) -> list[str]:
  """Returns the files that `--file` names: some between commas, or a pattern.

  Raises:
    InputError: if there are none, or two of one name.
  """
  paths: list[str] = []
  for part in filter(None, pattern.split(",")):
    if file_system.is_remote(part):
      found = importlib.import_module("tensorflow").io.gfile.glob(part)
    else:
      found = sorted(glob.glob(part))
    if not found:
      raise InputError(f"there is no file {part}; check the path")
    paths += [file_system.absolute(path) for path in found]
  names = [os.path.basename(path) for path in paths]
  if twice := {name for name in names if names.count(name) > 1}:
    raise InputError(
      f"two files are named {min(twice)}: their translations would have one "
      "name, too"
    )
  for path in paths:
    text_files.check_input(path)
  return paths


def bulk_predict() -> None:
  """Translates all files that have no translation yet."""
  paths = find_files(FLAGS.file)
  directory, description = read_model()
  checkpoint = FLAGS.checkpoint
  if checkpoint == LATEST:
    # A training may go on meanwhile.
    checkpoint = str(max(directory.choose_checkpoints(LATEST)[1]))
  job = BulkJob(
    file_system.absolute(directory.path),
    dtype(),
    checkpoint,
    {name: getattr(description.params, name) for name in DECODING_FIELDS},
    decoding_options(FLAGS.n_best),
    FLAGS.decode_workers,
    FLAGS.output_format,
    FLAGS.invalid_utf8 == "replace",
    file_system.absolute(FLAGS.file_out),
  )
  file_system.make_directories(job.directory)
  missing = [p for p in paths if not file_system.exists(job.output(p))]
  logging.info("%d of %d files are to be translated", len(missing), len(paths))
  if missing:
    _run(job, missing)
  logging.info("%s has all %d translations", FLAGS.file_out, len(paths))


def _run(job: BulkJob, paths: list[str]) -> None:
  """Runs the pipeline.

  Raises:
    RunError: if it fails; what is whole stays.
  """
  import apache_beam as beam
  from apache_beam.options.pipeline_options import PipelineOptions
  from apache_beam.runners.portability.fn_api_runner import FnApiRunner

  python_logging.getLogger("apache_beam").setLevel(python_logging.WARNING)
  # DirectRunner would look for another on the network first.
  runner: Any = FnApiRunner() if FLAGS.runner == "DirectRunner" else FLAGS.runner
  options = PipelineOptions(flags_core.read_beam_options())
  pipeline = beam.Pipeline(runner, options=options)
  _ = (
    pipeline
    | "files" >> beam.Create(paths)
    | "each file" >> beam.Reshuffle()
    | "translate" >> beam.Map(functools.partial(translate_file, job))
  )
  try:
    pipeline.run().wait_until_finish()
  except Exception as error:
    last = (str(error).strip().splitlines() or [repr(error)])[-1]
    raise RunError(
      f"the pipeline has failed: {last}. What is whole stays; the same command "
      "goes on"
    ) from error


_loading = threading.Lock()
_translators: dict[str, Any] = {}


def translate_file(job: BulkJob, path: str) -> str:
  """Translates a file, unless it is; returns where its translation is."""
  output = job.output(path)
  if file_system.exists(output):
    return output
  with _loading:  # One model a process, whatever its threads.
    key = repr(job)
    if key not in _translators:
      _translators[key] = _load(job)
  lines = text_files.read_lines(path, job.replace_invalid)
  text_files.write_lines(output, _written(job, _translators[key], lines))
  return output


def _load(job: BulkJob) -> Any:
  """Loads the model, as a process of its own would."""
  from official_transformer.startup import start_tensorflow

  start_tensorflow()
  import dataclasses

  from official_transformer.decoding.translator import Translator
  from official_transformer.distribution.cpu_threads import share_processors

  options = dataclasses.replace(
    job.options, workers=share_processors(job.workers)
  )
  return Translator.load(
    job.model_dir, job.dtype, options, job.checkpoint, **job.decoding
  )


def _written(job: BulkJob, translator: Any, lines: Any) -> Iterator[str]:
  """Yields the lines of a file's translation."""
  n_best = job.options.n_best
  for translation in translator.translate_stream(lines):
    if job.output_format == "text":
      yield from text_lines(translation, n_best)
    else:
      yield json_line(translation, n_best)
