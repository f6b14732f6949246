"""A window of lines, translated in batches of similar length, side by side."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from official_transformer.decoding.batching import batches_by_length
from official_transformer.decoding.line_preparation import (
  PieceToTranslate,
  PreparedLine,
)
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.pipeline import Started
from official_transformer.decoding.translation import (
  Hypothesis,
  Translation,
  join_pieces,
)
from official_transformer.model_params import TransformerParams

# Maps a batch, and whether alignments are needed, to hypotheses of each piece.
TranslateBatch = Callable[
  [Sequence[PieceToTranslate], bool], list[list[Hypothesis]]
]


def start_window(
  window: Sequence[PreparedLine],
  pool: ThreadPoolExecutor,
  options: DecodingOptions,
  params: TransformerParams,
  translate_batch: TranslateBatch,
  on_decoded: Callable[[int], object],
) -> Started[Translation]:
  """Hands a window to the pool, in batches; returns at once.

  Args:
    window: lines.
    pool: works on the batches.
    options: say how large they are.
    params: hyper-parameters of the model.
    translate_batch: translates one.
    on_decoded: as in `Translator.translate_stream`.
  """
  sources = [piece for line in window for piece in line.to_translate()]
  on_decoded(sum(not line.ids for line in window))
  ends = itertools.accumulate(len(line.ids) for line in window if line.ids)
  last = {end - 1 for end in ends}
  shapes = options.static_shapes(params)
  # Lines that are padded to the same width count alike.
  lengths = [
    shapes.shape(len(piece.ids))[1] if shapes else len(piece.ids)
    for piece in sources
  ]
  batches = batches_by_length(lengths, options.limits, options.workers)
  is_asked = options.alignment is not None
  aligned = is_asked or any(line.runs for line in window)

  def translate(batch: list[int]) -> list[list[Hypothesis]]:
    found = translate_batch([sources[i] for i in batch], aligned)
    on_decoded(len(last.intersection(batch)))
    return found

  work = [pool.submit(translate, batch) for batch in batches]

  def results() -> list[Translation]:
    found: dict[int, list[Hypothesis]] = {}
    for batch, future in zip(batches, work, strict=True):
      found.update(zip(batch, future.result(), strict=True))
    pieces = (found[i] for i in range(len(sources)))
    return [
      join_pieces(line, list(itertools.islice(pieces, len(line.ids))), is_asked)
      for line in window
    ]

  return Started(work, results)
