"""One trained model, written for use without this project.

An export appears under its name only when it is complete and verified.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable

from official_transformer.decoding.engines import QUANTIZATIONS
from official_transformer.decoding.loading import LoadedModel
from official_transformer.exporting import readme
from official_transformer.exporting.formats import (
  BERGAMOT,
  CTRANSLATE2,
  HUGGINGFACE,
  MARIAN,
  SAVED_MODEL,
)
from official_transformer.exporting.marian_export import (
  LONGEST,
  check_vocabulary,
  export_bergamot,
  export_marian,
)
from official_transformer.exporting.saved_model import write_saved_model
from official_transformer.exporting.verification import (
  Samples,
  batched,
  verify_search,
)
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import (
  new_directory,
  write_text,
)
from official_transformer.text.vocabulary_files import VocabFiles


@dataclasses.dataclass(frozen=True)
class ExportRequest:
  """The format of an export, and its directory.

  Attributes:
    directory: to make.
    format: one of `FORMATS`.
    with_text: whether a SavedModel takes text as well as ids.
    quantization: how a CTranslate2 model keeps its weights.
  """

  directory: str
  format: str
  with_text: bool = True
  quantization: str = QUANTIZATIONS[0]


@dataclasses.dataclass(frozen=True)
class _Job:
  """An unfinished export.

  Attributes:
    request: the export that was asked for.
    model: of which.
    vocab_files: files of its vocabularies.
    samples: sentences for the verification.
    directory: where, until it is whole.
  """

  request: ExportRequest
  model: LoadedModel
  vocab_files: VocabFiles
  samples: Samples
  directory: str


def export_model(
  model: LoadedModel,
  vocab_files: VocabFiles,
  lines: Iterable[str],
  request: ExportRequest,
) -> list[str]:
  """Writes an export, and proves it.

  Args:
    model: with weights in float32, but for a SavedModel.
    vocab_files: files of its vocabularies.
    lines: to prove it with.
    request: the export that is asked for.

  Returns:
    Verified facts, as sentences without a full stop.

  Raises:
    InputError: if no line can be compared.
    RunError: if the export does not do as the model does; nothing is left.
  """
  if request.format == HUGGINGFACE:
    _check_huggingface(model, vocab_files)
  elif request.format in (MARIAN, BERGAMOT):
    check_vocabulary(model.tokenizers.source)
  samples = Samples.of(model, lines)
  with new_directory(request.directory, replace=False) as directory:
    job = _Job(request, model, vocab_files, samples, directory)
    use, findings = _WRITERS[request.format](job)
    text = readme.text(model, use, findings)
    if request.format == HUGGINGFACE:
      text = readme.FRONT_MATTER + text
    write_text(os.path.join(directory, readme.README), text)
  return findings


def _saved_model(job: _Job) -> tuple[str, list[str]]:
  """Writes and proves a SavedModel; returns how to use it, and findings."""
  with_text = job.request.with_text
  write_saved_model(job.model, job.vocab_files, job.directory, with_text)
  texts = batched(job.samples.lines) if with_text else []
  finding = verify_search(job.directory, job.samples, texts)
  use = readme.saved_model(job.model, job.vocab_files, with_text)
  return use, [finding]


def _ctranslate2(job: _Job) -> tuple[str, list[str]]:
  """Writes and proves a CTranslate2 model; returns use and findings."""
  # They may not be installed.
  from official_transformer.exporting import ctranslate2_export

  quantization = job.request.quantization
  found = ctranslate2_export.export_ctranslate2(
    job.model, job.directory, job.samples, quantization
  )
  _copy_vocabulary(job)
  use = readme.ctranslate2_model(
    job.model,
    job.vocab_files,
    quantization,
    found.setting,
    ctranslate2_export.POSITIONS,
  )
  return use, found.findings


def _check_huggingface(model: LoadedModel, files: VocabFiles) -> None:
  """Refuses a model that cannot be exported, before anything is translated."""
  from official_transformer.exporting import huggingface_export

  huggingface_export.check(model, files)


def _huggingface(job: _Job) -> tuple[str, list[str]]:
  """Writes and proves a `transformers` model; returns use and findings."""
  # They may not be installed.
  from official_transformer.exporting import huggingface_export
  from official_transformer.exporting.huggingface_model import longest

  findings = huggingface_export.export_huggingface(
    job.model, job.vocab_files, job.directory, job.samples
  )
  use = readme.huggingface_model(longest(job.model.transformer.params))
  return use, findings


def _marian(job: _Job) -> tuple[str, list[str]]:
  """Writes and proves Marian's own files; returns use and findings."""
  findings = export_marian(
    job.model, job.vocab_files, job.directory, job.samples
  )
  return readme.marian_model(LONGEST), findings


def _bergamot(job: _Job) -> tuple[str, list[str]]:
  """Writes and proves Bergamot's files; returns use and findings."""
  findings = export_bergamot(
    job.model, job.vocab_files, job.directory, job.samples
  )
  return readme.bergamot_model(), findings


def _copy_vocabulary(job: _Job) -> None:
  """Copies the vocabularies beside a model that takes tokens, not text."""
  for path in job.vocab_files.different:
    name = os.path.basename(path)
    file_system.copy(path, os.path.join(job.directory, name))


_WRITERS = {
  SAVED_MODEL: _saved_model,
  CTRANSLATE2: _ctranslate2,
  HUGGINGFACE: _huggingface,
  MARIAN: _marian,
  BERGAMOT: _bergamot,
}
