"""What `--mode=export` does: writes a model for use without this package."""

from __future__ import annotations

from collections.abc import Iterable

from absl import flags

from official_transformer.commands.flag_readers import read_model
from official_transformer.data import text_files
from official_transformer.data.dev_text import dev_sources
from official_transformer.data.tokenizer import Tokenizer
from official_transformer.decoding.loading import load_model
from official_transformer.exporting.export import ExportRequest, export_model
from official_transformer.hardware.devices import hide_gpus
from official_transformer.storage import file_system
from official_transformer.storage.standard_streams import show_result

FLAGS = flags.FLAGS


def export() -> None:
  """Exports a checkpoint as the flags say, and tells what was proven."""
  # What is traced on a processor runs on either, and no GPU is needed.
  hide_gpus()
  directory, description = read_model()
  model = load_model(
    directory, description, FLAGS.dtype, FLAGS.checkpoint, as_asked=True
  )
  request = ExportRequest(
    file_system.absolute(FLAGS.export_dir),
    FLAGS.export_format,
    FLAGS.export_text,
    FLAGS.quantization,
  )
  findings = export_model(
    model,
    directory.vocab_files(),
    _lines(model.tokenizers.source),
    request,
  )
  show_result(f"{FLAGS.export_dir} holds {model.checkpoint}")
  for finding in findings:
    show_result(finding)


def _lines(tokenizer: Tokenizer) -> Iterable[str]:
  """Returns what the export is verified with."""
  if FLAGS.file is not None:
    return text_files.read_lines(FLAGS.file, FLAGS.invalid_utf8 == "replace")
  return dev_sources(FLAGS.data_dir, tokenizer)
