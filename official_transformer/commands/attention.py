"""`--mode=attention`: writes attention weights and pictures of them."""

from __future__ import annotations

import dataclasses
import io
import itertools
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from absl import logging

from official_transformer.commands.decoding_options import TranslatorOptions
from official_transformer.commands.text_options import (
  PictureOptions,
  ReferenceOptions,
)
from official_transformer.errors import InputError
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import write_bytes

if TYPE_CHECKING:
  from official_transformer.decoding.attention import LineAttention


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttentionOptions(ReferenceOptions, PictureOptions, TranslatorOptions):
  """Flags of `--mode=attention`."""

  summary = "write what the model attends to, as numbers and as pictures"

  def check(self) -> None:
    """Refuses missing files, pictures that cannot be made, a missing model.

    Raises:
      InputError: for the first thing that is wrong.
    """
    demand = (
      "--mode=attention needs --file, the sources, and --output_dir, where "
      "weights and pictures go"
    )
    if self.file is None or not self.output_dir:
      raise InputError(demand)
    self.check_inputs()
    self.check_pictures(demand)
    self.check_model()

  def run(self) -> None:
    """Writes weights and pictures of each line.

    With a reference they are of that, else of the model's own translation.
    """
    from official_transformer.plotting.heat_maps import (
      heat_maps_of,
      save_heat_map,
    )

    translator = self.load_one_by_one()
    directory = str(self.output_dir)
    file_system.make_directories(directory)
    written = blank = 0
    for number, (source, target) in enumerate(self._pairs(), start=1):
      if not source.strip():
        blank += 1
        continue
      found = translator.attention(source, target)
      path = os.path.join(directory, f"{number:06}")
      _write_weights(found, f"{path}.npz")
      if self.picture_formats:
        for part, heat_map in heat_maps_of(found).items():
          save_heat_map(heat_map, f"{path}.{part}", self.picture_formats)
      written += 1
    logging.info(
      "wrote the attention over %d lines into %s%s",
      written,
      directory,
      f"; {blank} are blank" if blank else "",
    )

  def _pairs(self) -> Iterator[tuple[str, str | None]]:
    if self.reference_file is not None:
      yield from self.lines_beside(self.reference_file)
    else:
      yield from zip(self.lines(), itertools.repeat(None), strict=False)


def _write_weights(found: LineAttention, path: str) -> None:
  """Writes the arrays of a `LineAttention` as `.npz`."""
  import numpy as np

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
  write_bytes(path, buffer.getvalue())
