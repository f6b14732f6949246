"""Beam search of batches of token lists, in one of two forms.

The dynamic form takes batches of any shape, and finished sentences leave the
batch. The static form has one shape for each batch size and each multiple of a
width, and is compiled by XLA, as TPUs require. Both give the same results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from official_transformer.decoding.batching import pad
from official_transformer.decoding.hypotheses import (
  FoundSequence,
  found_sequences,
)
from official_transformer.decoding.memory_bounds import (
  check_batch,
  out_of_memory,
)
from official_transformer.decoding.options import StaticShapes
from official_transformer.model.transformer import Transformer


class Searcher:
  """Searches with one model; safe to call from several threads.

  Attributes:
    transformer: the model.
    params: hyper-parameters of the model; they decide beam, alpha, patience and
      limit.
    static_shapes: shapes of batches in the static form, or None for the dynamic
      form.
    search_function: ids, int32 [B, S], to a `SearchResult`, traced.
  """

  def __init__(
    self,
    transformer: Transformer,
    vocabulary_size: int | None = None,
    static_shapes: StaticShapes | None = None,
  ) -> None:
    self.transformer = transformer
    self.params = transformer.params
    self.static_shapes = static_shapes
    # AutoGraph has nothing to convert, and tracing takes half the time.
    if static_shapes:
      self.search_function = tf.function(
        lambda ids: transformer.beam_search(ids, vocabulary_size, static=True),
        autograph=False,
        jit_compile=True,
      )
    else:
      # Traced once, for batches of any shape.
      self.search_function = tf.function(
        lambda ids: transformer.beam_search(ids, vocabulary_size),
        input_signature=[tf.TensorSpec([None, None], tf.int32)],
        autograph=False,
      )

  def search(
    self, sources: Sequence[Sequence[int]]
  ) -> list[list[FoundSequence]]:
    """Returns each source's best sequences; see `SequenceSearcher`."""
    longest = max(map(len, sources))
    check_batch(self.params, len(sources), longest)
    try:
      result = self.search_function(tf.constant(self.prepare_kernel(sources)))
      # Rows that fill a batch up come last.
      arrays = [tensor.numpy()[: len(sources)] for tensor in result]
    except tf.errors.ResourceExhaustedError as error:
      said = error.message.splitlines()[0]
      raise out_of_memory(len(sources), longest, said) from None
    return [
      found_sequences(*(part.tolist() for part in row))
      for row in zip(*arrays, strict=True)
    ]

  def prepare_kernel(self, sources: Sequence[Sequence[int]]) -> np.ndarray:
    """Returns a batch of token lists as `search_function` takes it."""
    if not self.static_shapes:
      return pad(sources)
    rows, columns = self.static_shapes.shape(max(map(len, sources)))
    return pad(sources, columns, rows)
