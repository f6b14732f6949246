"""Sentences that have stopped leave the batch of a search.

The results of a finished sentence are recorded at its row of the caller's
batch; the remaining sentences move up.

Shapes: as in `beam_search`.
"""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from official_transformer.search.state import (
  ActiveSentences,
  DecoderState,
  SearchResult,
  SearchState,
  growing_shapes,
)

# Finished sentences are dropped once they are 1 in so many: until then they are
# computed in vain, but dropping them copies the rest.
DROPPED_SHARE = 8


def drop_finished(state: SearchState, beam_size: int) -> SearchState:
  """Returns the state without its finished sentences, once they are many."""
  active = state.sentences.active
  present = tf.size(active)
  stopped = present - tf.math.count_nonzero(active, dtype=tf.int32)

  def drop() -> SearchState:
    staying = tf.cast(tf.where(active)[:, 0], tf.int32)
    beams = staying[:, None] * beam_size + tf.range(beam_size)
    beams = tf.reshape(beams, [-1])
    recorded = record(state)
    return recorded._replace(
      sentences=gather_rows(state.sentences, staying),
      decoder=DecoderState(
        per_beam=gather_rows(state.decoder.per_beam, beams),
        per_sentence=gather_rows(state.decoder.per_sentence, staying),
      ),
    )

  return tf.cond(
    tf.logical_and(stopped < present, stopped * DROPPED_SHARE >= present),
    drop,
    lambda: state,
  )


def results_of(sentences: ActiveSentences) -> SearchResult:
  """Returns the results of each sentence so far."""
  finished = sentences.finished_flags
  any_finished = tf.reduce_any(finished, axis=1, keepdims=True)
  return SearchResult(
    ids=tf.where(
      any_finished[..., None], sentences.finished_ids, sentences.alive_ids
    ),
    scores=tf.where(
      any_finished, sentences.finished_scores, sentences.alive_log_probs
    ),
    finished=finished,
  )


def record(state: SearchState) -> SearchState:
  """Brings the results of the present sentences up to date."""
  rows = state.sentences.rows[:, None]
  return state._replace(
    results=tf.nest.map_structure(
      lambda old, new: _scatter(old, rows, new),
      state.results,
      results_of(state.sentences),
    )
  )


def _scatter(old: tf.Tensor, rows: tf.Tensor, new: tf.Tensor) -> tf.Tensor:
  """Replaces the given rows."""
  if old.dtype != tf.bool:
    return tf.tensor_scatter_nd_update(old, rows, new)
  # GPUs have no kernel for it with truth values.
  old, new = tf.cast(old, tf.float32), tf.cast(new, tf.float32)
  return tf.tensor_scatter_nd_update(old, rows, new) > 0.5


def gather_rows(nest: Any, rows: tf.Tensor) -> Any:
  """Returns the given rows of every tensor."""
  return tf.nest.map_structure(lambda t: tf.gather(t, rows), nest)


def loop_shapes(state: SearchState) -> SearchState:
  """Returns shapes that let sentences leave and the decoder's state grow."""

  def leaving(tensor: tf.Tensor) -> tf.TensorShape:
    return tf.TensorShape([None, *tensor.shape[1:]])

  return SearchState(
    index=state.index.shape,
    sentences=tf.nest.map_structure(leaving, state.sentences),
    decoder=growing_shapes(state.decoder),
    results=tf.nest.map_structure(lambda t: t.shape, state.results),
  )
