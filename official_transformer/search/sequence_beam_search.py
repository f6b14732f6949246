"""The official beam search's calls: a function of whole hypotheses and a cache.

Shapes: B batch, K beam, L longest limit, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from official_transformer.search.beam_search import BeamSearch
from official_transformer.search.state import DecoderState

SymbolsToLogits = Callable[[tf.Tensor, tf.Tensor, Any], tuple[tf.Tensor, Any]]


class SequenceBeamSearch:
  """Searches for the most probable sequences, as upstream's class does.

  Attributes:
    symbols_to_logits_fn: `(ids int32 [B * K, i + 1], i int32 [], cache) ->
      (logits [B * K, V], cache)`, where `ids` holds the initial id and the `i`
      tokens of each hypothesis. With `padded_decode`, `ids` is [B * K, 1], the
      newest token alone.
    vocab_size: V.
    batch_size: not read, because `initial_ids` has the batch. An argument of
      the class in the main course notebook.
    beam_size: K.
    alpha: strength of the length normalisation.
    max_decode_length: most tokens of a sequence, the initial id not counted.
    eos_id: the token that ends a sequence.
    padded_decode: whether all shapes stay static, as TPUs need them.
  """

  def __init__(
    self,
    symbols_to_logits_fn: SymbolsToLogits,
    vocab_size: int,
    batch_size: int | tf.Tensor | None = None,
    beam_size: int = 4,
    alpha: float = 0.6,
    max_decode_length: int | tf.Tensor = 50,
    eos_id: int = 1,
    padded_decode: bool = False,
  ) -> None:
    self.symbols_to_logits_fn = symbols_to_logits_fn
    self.vocab_size = vocab_size
    self.batch_size = batch_size
    self.beam_size = beam_size
    self.alpha = alpha
    self.max_decode_length = max_decode_length
    self.eos_id = eos_id
    self.padded_decode = padded_decode

  def search(
    self, initial_ids: tf.Tensor, initial_cache: Any
  ) -> tuple[tf.Tensor, tf.Tensor]:
    """Searches.

    Args:
      initial_ids: int32 [B], the first token of each sequence.
      initial_cache: any nest of tensors [B, ...]. The function gets them as [B
        * K, ...], one row a hypothesis, and may return them with other sizes;
        the last size is fixed, and with `padded_decode` all sizes are.

    Returns:
      int32 [B, K, L + 1], best first: the initial id, the tokens, zeros after
      EOS; and their scores, float32 [B, K]. The rows of a sentence without a
      finished hypothesis are those that were alive at the limit, with plain
      log-probabilities.
    """
    initial_ids = tf.cast(initial_ids, tf.int32)
    batch = tf.shape(initial_ids)[0]
    cache = tf.nest.map_structure(self._of_each_beam, initial_cache)
    search = BeamSearch(
      self._step_of(tf.nest.map_structure(lambda t: t.shape, cache)),
      self.vocab_size,
      self.beam_size,
      self.alpha,
      self.eos_id,
    )
    search.drops_finished = False  # The function may count on all rows.
    found = search.search(
      initial_ids,
      tf.fill([batch], self.max_decode_length),
      DecoderState(
        (tf.zeros([batch * self.beam_size, 0], tf.int32), cache), []
      ),
      self.max_decode_length if self.padded_decode else None,
    )
    first = tf.tile(initial_ids[:, None, None], [1, self.beam_size, 1])
    return tf.concat([first, found.ids], axis=2), found.scores

  def _of_each_beam(self, tensor: Any) -> tf.Tensor:
    """Returns a cache's rows of each beam, of sizes that may change."""
    tensor = tf.repeat(tf.convert_to_tensor(tensor), self.beam_size, axis=0)
    shape = self._sizes(tensor.shape)
    return tf.raw_ops.PlaceholderWithDefault(input=tensor, shape=shape)

  def _sizes(self, shape: tf.TensorShape) -> list[int | None]:
    """Returns the sizes that do not change."""
    inner = shape[1:] if self.padded_decode else shape[-1:]
    return [None] * (len(shape) - len(inner)) + list(inner)

  def _step_of(self, shapes: Any) -> Any:
    """Returns the step function of a search, for a cache of given shapes."""

    def step(
      ids: tf.Tensor, index: tf.Tensor, state: DecoderState
    ) -> tuple[tf.Tensor, DecoderState]:
      history, cache = state.per_beam
      newest = tf.cast(ids, tf.int32)[:, None]
      if not self.padded_decode:
        newest = history = tf.concat([history, newest], axis=1)
      logits, cache = self.symbols_to_logits_fn(newest, index, cache)
      # The shapes that the loop cannot infer.
      cache = tf.nest.map_structure(
        lambda t, shape: tf.ensure_shape(t, self._sizes(shape)), cache, shapes
      )
      return logits, DecoderState((history, cache), state.per_sentence)

    return step


def sequence_beam_search(
  symbols_to_logits_fn: SymbolsToLogits,
  initial_ids: tf.Tensor,
  initial_cache: Any,
  vocab_size: int,
  beam_size: int,
  alpha: float,
  max_decode_length: int,
  eos_id: int,
  padded_decode: bool = False,
) -> tuple[tf.Tensor, tf.Tensor]:
  """Searches for the most probable sequences, called as upstream's function.

  Arguments and results as in `SequenceBeamSearch` and its `search`.
  """
  return SequenceBeamSearch(
    symbols_to_logits_fn,
    vocab_size,
    beam_size=beam_size,
    alpha=alpha,
    max_decode_length=max_decode_length,
    eos_id=eos_id,
    padded_decode=padded_decode,
  ).search(initial_ids, initial_cache)
