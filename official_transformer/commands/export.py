"""`--mode=export`: writes a model for use without this package."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from absl import logging

from official_transformer.commands.decoding_options import (
  BeamSearchOptions,
  QuantizationOptions,
)
from official_transformer.commands.flag_records import Options, flag, parsed
from official_transformer.commands.log_options import LogOptions
from official_transformer.commands.model_options import StoredModelOptions
from official_transformer.commands.shared_options import (
  DataDirOptions,
  DtypeOptions,
)
from official_transformer.commands.text_options import InputOptions
from official_transformer.data.data_directory import DEV_TAG, has_shards
from official_transformer.errors import InputError, RunError
from official_transformer.exporting.formats import (
  CTRANSLATE2,
  FORMATS,
  SAVED_MODEL,
  TEXT_MODULE,
  check_extras,
  check_params,
  check_text_in_graph,
  is_installed,
)
from official_transformer.model_params import DECODING_FIELDS
from official_transformer.storage import file_system
from official_transformer.storage.standard_streams import show_result
from official_transformer.text import text_files

if TYPE_CHECKING:
  from official_transformer.text.tokenizer import Tokenizer


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportDirOptions(Options):
  """Flags of an export's directory, and of its tokenizer."""

  heading = "Exporting"

  export_dir: str | None = flag(
    None,
    "With --mode=export: the directory to make; one that exists is refused. "
    "With --mode=train: where a SavedModel is put when training ends, in a "
    "directory of its own that is named by the time.",
    path=True,
    short_name="ed",
  )
  export_text: bool = flag(
    True,
    "Whether a SavedModel takes text as well as ids, which needs "
    "tensorflow-text (extra [serving]) here and wherever it is loaded.",
    (
      lambda o: not o.export_dir,
      "nothing is exported without --export_dir",
    ),
    (
      lambda o: getattr(o, "export_format", SAVED_MODEL) != SAVED_MODEL,
      "it is about --export_format=saved_model",
    ),
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportOptions(
  ExportDirOptions,
  StoredModelOptions,
  DataDirOptions,
  InputOptions,
  BeamSearchOptions,
  QuantizationOptions,
  DtypeOptions,
):
  """Flags of `--mode=export`."""

  heading = "Exporting"
  summary = "write the model for use without this package"

  export_format: str = flag(
    SAVED_MODEL,
    "saved_model: TensorFlow's, with the search and, unless --noexport_text, "
    "the tokenizer inside. ctranslate2: a model for CTranslate2, in "
    "--quantization. huggingface: a model for transformers, and its tokenizer "
    "(extra [huggingface]). marian: Marian's own files. bergamot: Marian's "
    "binary in 8 bits, for Firefox's engine and web pages. Both take post-norm "
    "models, such as those of --param_set=student.",
    choices=FORMATS,
  )

  @property
  def is_quantized(self) -> bool:
    """Whether CTranslate2 has the weights."""
    return self.export_format == CTRANSLATE2

  def check(self) -> None:
    """Refuses an export that cannot be written or verified.

    Raises:
      InputError: for the first thing that is wrong.
    """
    if not self.export_dir:
      raise InputError(
        "--mode=export needs --export_dir, the directory to make"
      )
    if file_system.exists(self.export_dir):
      raise InputError(
        f"--export_dir={self.export_dir} exists; name another, or remove it"
      )
    check_extras(self.export_format, self.export_text)
    if self.export_format != SAVED_MODEL and self.dtype != "fp32":
      kept = "--quantization" if self.is_quantized else "float32"
      raise InputError(
        f"--dtype={self.dtype}: a model of --export_format={self.export_format}"
        f" keeps its weights in {kept}; leave --dtype out"
      )
    if self.file is not None:
      text_files.check_input(self.file)
    elif not has_shards(self.data_dir, DEV_TAG):
      raise InputError(
        "an export is compared with its model before it is kept: pass "
        "--data_dir with development data, or lines to translate in --file"
      )
    self.check_model()
    check_params(self.export_format, self.model[1].params)
    if self.export_format == SAVED_MODEL and self.export_text:
      directory, description = self.model
      check_text_in_graph(description.form, directory.vocab_files())

  def run(self) -> None:
    """Exports a checkpoint, and reports the verified facts."""
    from official_transformer.decoding.loading import load_model
    from official_transformer.exporting.export import (
      ExportRequest,
      export_model,
    )
    from official_transformer.hardware.devices import hide_gpus

    # A graph that is traced on a CPU runs on GPUs, too: exporting needs none.
    hide_gpus()
    model = load_model(*self.model, self.dtype, self.checkpoint, as_asked=True)
    request = ExportRequest(
      file_system.absolute(str(self.export_dir)),
      self.export_format,
      self.export_text,
      self.quantization,
    )
    findings = export_model(
      model,
      self.model[0].vocab_files(),
      self._proof(model.tokenizers.source),
      request,
    )
    show_result(f"{self.export_dir} holds {model.checkpoint}")
    for finding in findings:
      show_result(finding)

  def _proof(self, tokenizer: Tokenizer) -> Iterable[str]:
    """Returns the lines that the export is verified with."""
    from official_transformer.data.dev_text import dev_sources

    if self.file is not None:
      return self.lines()
    return dev_sources(self.data_dir, tokenizer)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FinalExportOptions(ExportDirOptions):
  """The SavedModel at a training's end, as the first version made it."""

  @property
  def exports_text(self) -> bool:
    """Whether it takes text.

    The first version's commands do not have the flag, and must run unchanged.
    """
    if "export_text" in self.given:
      return self.export_text
    return is_installed(TEXT_MODULE)

  def export_newest(self, model_dir: str, data_dir: str) -> None:
    """Exports the newest checkpoint into a directory named by the time.

    In a new process, because the graphs of this one belong to devices, and its
    memory is in use.

    Raises:
      RunError: if it fails; the training is done and saved.
    """
    path = os.path.join(str(self.export_dir), str(int(time.time())))
    if not self.exports_text:
      logging.warning("the export takes ids alone: --export_text adds text")
    command = [
      *(sys.executable, "-m", "official_transformer.transformer_main"),
      *("--mode=export", "--export_format=saved_model"),
      f"--export_dir={path}",
      f"--export_text={self.exports_text}",
      f"--model_dir={model_dir}",
      f"--data_dir={data_dir}",
      f"--log_format={parsed(LogOptions).log_format}",
    ]
    for name in DECODING_FIELDS:
      if (value := getattr(self, name)) is not None:
        command.append(f"--{name}={value}")
    done = subprocess.run(
      command,
      env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1"},
      stdout=subprocess.PIPE,
      text=True,
      check=False,
    )
    if done.returncode:
      raise RunError(
        f"the model is trained and saved; exporting it to {path} failed, as "
        "said above. --mode=export exports it"
      )
    show_result(done.stdout.rstrip())
