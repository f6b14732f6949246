"""The official beam search's call: a function of whole hypotheses and a cache.

Shapes: B batch, K beam, L longest limit, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from official_transformer.search.beam_search import SequenceBeamSearch
from official_transformer.search.state import DecoderState, SearchState


class _WholeBatchSearch(SequenceBeamSearch):
  """A search whose step function sees all sentences until the end."""

  def _advance_and_release(self, state: SearchState) -> SearchState:
    return self._advance(state)


def sequence_beam_search(
  symbols_to_logits_fn: Callable[
    [tf.Tensor, tf.Tensor, Any], tuple[tf.Tensor, Any]
  ],
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

  Args:
    symbols_to_logits_fn: `(ids int32 [B * K, i + 1], i int32 [], cache) ->
      (logits [B * K, V], cache)`, where `ids` holds the initial id and the `i`
      tokens of each hypothesis. With `padded_decode`, `ids` is [B * K, 1], the
      newest token alone.
    initial_ids: int32 [B], what each sequence starts from.
    initial_cache: any nest of tensors [B, ...]. The function gets them with
      rows [B * K, ...], those of a hypothesis at its place, and may return them
      with another size where a size was 0: a cache that grows begins empty.
    vocab_size: V.
    beam_size: K.
    alpha: strength of the length normalisation.
    max_decode_length: most tokens of a sequence, the initial id not counted.
    eos_id: the token that ends a sequence.
    padded_decode: whether all shapes stay static, as TPUs need them.

  Returns:
    int32 [B, K, L + 1], best first: the initial id, the tokens, zeros after
    EOS; and their scores, float32 [B, K]. If a sentence finished nothing, its
    rows are what was alive at the limit, with plain log-probabilities.
  """

  def step(
    ids: tf.Tensor, index: tf.Tensor, state: DecoderState
  ) -> tuple[tf.Tensor, DecoderState]:
    history, cache = state.per_beam
    newest = tf.cast(ids, tf.int32)[:, None]
    if not padded_decode:
      newest = history = tf.concat([history, newest], axis=1)
    logits, cache = symbols_to_logits_fn(newest, index, cache)
    cache = tf.nest.map_structure(of_its_shape, cache, shapes)
    return logits, DecoderState((history, cache), state.per_sentence)

  def of_its_shape(tensor: tf.Tensor, shape: tf.TensorShape) -> tf.Tensor:
    """Tells the loop what it cannot see: only sizes that were 0 may change."""
    sizes = [None if size == 0 else size for size in shape[1:]]
    return tf.ensure_shape(tensor, [None, *sizes])

  def of_each_beam(tensor: tf.Tensor) -> tf.Tensor:
    return tf.repeat(tf.convert_to_tensor(tensor), beam_size, axis=0)

  initial_ids = tf.cast(initial_ids, tf.int32)
  batch = tf.shape(initial_ids)[0]
  cache = tf.nest.map_structure(of_each_beam, initial_cache)
  shapes = tf.nest.map_structure(lambda tensor: tensor.shape, cache)
  nothing = tf.zeros([batch * beam_size, 0], tf.int32)
  found = _WholeBatchSearch(step, vocab_size, beam_size, alpha, eos_id).search(
    initial_ids,
    tf.fill([batch], max_decode_length),
    DecoderState((nothing, cache), []),
    max_decode_length if padded_decode else None,
  )
  first = tf.tile(initial_ids[:, None, None], [1, beam_size, 1])
  return tf.concat([first, found.ids], axis=2), found.scores
