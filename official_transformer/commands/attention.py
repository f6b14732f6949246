"""What `--mode=attention` does: writes what a model attends to."""

from __future__ import annotations

import io
import itertools
import os
from collections.abc import Iterator

import numpy as np
from absl import flags, logging

from official_transformer.commands.loading import load_translator
from official_transformer.commands.output import parallel_lines
from official_transformer.data import text_files
from official_transformer.decoding.attention import LineAttention
from official_transformer.plotting.heat_maps import heat_maps_of, save_heat_map
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import new_file

FLAGS = flags.FLAGS


def attention() -> None:
  """Writes weights and pictures of each line of `--file` into `--output_dir`.

  With `--reference_file` they are of its translations, else of the model's own.
  """
  translator = load_translator(one_by_one=True)
  file_system.make_directories(FLAGS.output_dir)
  written = blank = 0
  for number, (source, target) in enumerate(_pairs(), start=1):
    if not source.strip():
      blank += 1
      continue
    found = translator.attention(source, target)
    path = os.path.join(FLAGS.output_dir, f"{number:06}")
    _write_weights(found, f"{path}.npz")
    if FLAGS.picture_formats:
      for part, heat_map in heat_maps_of(found).items():
        save_heat_map(heat_map, f"{path}.{part}", FLAGS.picture_formats)
    written += 1
  logging.info(
    "wrote the attention over %d lines into %s%s",
    written,
    FLAGS.output_dir,
    f"; {blank} are blank" if blank else "",
  )


def _pairs() -> Iterator[tuple[str, str | None]]:
  if FLAGS.reference_file is not None:
    yield from parallel_lines(FLAGS.file, FLAGS.reference_file)
  else:
    lines = text_files.read_lines(FLAGS.file, FLAGS.invalid_utf8 == "replace")
    yield from zip(lines, itertools.repeat(None), strict=False)


def _write_weights(found: LineAttention, path: str) -> None:
  """Writes an `.npz` of what `LineAttention` holds."""
  buffer = io.BytesIO()
  np.savez_compressed(
    buffer,
    source=np.array(found.source),
    target=np.array(found.target),
    inputs=np.array(found.inputs),
    encoder=found.encoder,
    decoder=found.decoder,
    cross=found.cross,
  )
  with (
    new_file(path) as aside,
    file_system.open_file(aside, "wb") as stream,
  ):
    stream.write(buffer.getvalue())
