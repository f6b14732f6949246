"""Beam search that translates to given phrases (Post and Vilar 2018).

The tokens that would continue a phrase join the candidates, even if they are
improbable. The beam is divided among banks: a bank has the hypotheses that have
met the same number of tokens of phrases, and the best of each bank come first
(Hu et al. 2019). No hypothesis ends before it has met all phrases. The tokens
met are counted from the hypothesis itself, so that the search carries no
further state.

Shapes: B batch, K beam, M candidates, L longest limit, V vocabulary, C phrases,
Q longest phrase; C and Q are at least 1.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from official_transformer.model_params import EOS_ID, PAD_ID
from official_transformer.search.state import NEG_INF


class Progress(NamedTuple):
  """Progress of hypotheses through the required phrases.

  Attributes:
    met: bool [B, M, C], phrases that they hold.
    begun: int32 [B, M, C], tokens of each other phrase that they end in.
    bank: int32 [B, M], tokens met: of met phrases, and of the longest begun.
  """

  met: tf.Tensor
  begun: tf.Tensor
  bank: tf.Tensor


def progress(
  history: tf.Tensor, length: tf.Tensor, required: tf.Tensor
) -> Progress:
  """Reads off how far hypotheses have come.

  Args:
    history: int32 [B, M, L].
    length: int32 [], tokens there are.
    required: int32 [B, C, Q], zeros behind phrases that are shorter.
  """
  sizes = tf.reduce_sum(tf.cast(required != PAD_ID, tf.int32), axis=2)
  longest = tf.shape(required)[2]
  places = tf.shape(history)[2]
  padded = tf.pad(history, [[0, 0], [0, 0], [0, longest]])
  # Where each phrase's first tokens stand: [B, M, L, Q] windows.
  window = tf.range(places)[:, None] + tf.range(longest)
  windows = tf.gather(padded, window, axis=2)[:, :, None]  # [B, M, 1, L, Q]
  phrases = required[:, None, :, None]  # [B, 1, C, 1, Q]
  there = window < length
  equal = (windows == phrases) & there
  whole = tf.reduce_all(equal | (phrases == PAD_ID), axis=4)
  met = tf.reduce_any(whole, axis=3) | (sizes[:, None] == 0)
  # Windows that reach to the end, as far as they go, are beginnings.
  begins = tf.reduce_all(equal | tf.logical_not(there), axis=4)
  left = length - tf.range(places)
  begins = begins & (left > 0) & (left < sizes[:, None, :, None])
  begun = tf.reduce_max(tf.where(begins, left, 0), axis=3)
  begun = tf.where(met, 0, begun)
  done = tf.reduce_sum(tf.where(met, sizes[:, None], 0), axis=2)
  # The extra column makes the maximum over zero phrases 0.
  most = tf.reduce_max(tf.pad(begun, [[0, 0], [0, 0], [0, 1]]), axis=2)
  return Progress(met, begun, done + most)


def best_with_required(
  log_probs: tf.Tensor,
  history: tf.Tensor,
  required: tf.Tensor,
  index: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns 2K continuations: K that go on and K that end, where there are.

  Args:
    log_probs: float32 [B, K, V], of the hypotheses with each next token.
    history: int32 [B, K, L], the hypotheses.
    required: int32 [B, C, Q].
    index: int32 [], tokens there are.

  Returns:
    Log-probabilities, sorted, new tokens and parents, [B, 2K] each.
  """
  k = log_probs.shape[1]
  totals, tokens, parents = _candidates(log_probs, history, required, index)
  extended = tf.gather(history, parents, batch_dims=1)  # [B, M, L]
  here = tf.range(tf.shape(history)[2]) == index
  extended = tf.where(here, tokens[:, :, None], extended)
  found = progress(extended, index + 1, required)
  ends = tf.equal(tokens, EOS_ID)
  may_end = tf.reduce_all(found.met, axis=2)
  # Where no phrase is required, hypotheses end as in plain beam search.
  threshold = tf.math.top_k(totals, 2 * k).values[:, -1:]
  anything = tf.reduce_any(required != PAD_ID, axis=[1, 2])
  may_end &= anything[:, None] | (totals >= threshold)
  ending = tf.where(ends & may_end, totals, NEG_INF)
  going_on = tf.where(ends, NEG_INF, totals)
  _, alive = tf.math.top_k(turns(going_on, found.bank), k)
  _, finishing = tf.math.top_k(ending, k)
  chosen = tf.concat([alive, finishing], axis=1)  # [B, 2K]
  best = tf.concat(
    [
      tf.gather(going_on, alive, batch_dims=1),
      tf.gather(ending, finishing, batch_dims=1),
    ],
    axis=1,
  )
  best, order = tf.math.top_k(best, 2 * k)
  chosen = tf.gather(chosen, order, batch_dims=1)
  return (
    best,
    tf.gather(tokens, chosen, batch_dims=1),
    tf.gather(parents, chosen, batch_dims=1),
  )


def _candidates(
  log_probs: tf.Tensor,
  history: tf.Tensor,
  required: tf.Tensor,
  index: tf.Tensor,
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
  """Returns the candidates, [B, M] each.

  Of each hypothesis, its best continuations, its end, and the next token of
  each phrase that is not met.
  """
  k, vocab_size = log_probs.shape[1:]
  number = min(2 * k, vocab_size)
  found = progress(history, index, required)
  # [B, K, C]: the next token of each phrase, its first if it is not begun.
  following = tf.gather(
    tf.tile(required[:, None], [1, k, 1, 1]), found.begun, batch_dims=3
  )
  following = tf.where(found.met, -1, following)
  asked = tf.reduce_any(
    tf.equal(following[:, :, :, None], tf.range(vocab_size)), axis=2
  )
  best, best_tokens = tf.math.top_k(tf.where(asked, NEG_INF, log_probs), number)
  # Two phrases may go on alike: the token counts once.
  earlier = tf.linalg.band_part(
    tf.ones([tf.shape(following)[2]] * 2, tf.int32), -1, 0
  ) - tf.eye(tf.shape(following)[2], dtype=tf.int32)
  same = tf.equal(following[:, :, :, None], following[:, :, None])
  again = tf.reduce_any(same & (earlier > 0), axis=3)
  wanted = tf.gather(log_probs, tf.maximum(following, 0), batch_dims=2)
  wanted = tf.where(again | (following < 0), NEG_INF, wanted)
  ends = log_probs[:, :, EOS_ID : EOS_ID + 1]
  ends = tf.where(
    tf.reduce_any(best_tokens == EOS_ID, 2)[:, :, None], NEG_INF, ends
  )
  totals = tf.concat([best, wanted, ends], axis=2)
  tokens = tf.concat(
    [best_tokens, tf.maximum(following, 0), tf.fill(tf.shape(ends), EOS_ID)],
    axis=2,
  )
  parents = tf.broadcast_to(tf.range(k)[None, :, None], tf.shape(tokens))
  batch = tf.shape(totals)[0]
  return tuple(tf.reshape(t, [batch, -1]) for t in (totals, tokens, parents))


def turns(totals: tf.Tensor, bank: tf.Tensor) -> tf.Tensor:
  """Returns when each candidate's turn is, float32 [B, M]; larger is sooner.

  First the best of each bank, the fullest bank before the others, then the
  second of each, and so on.

  Args:
    totals: float32 [B, M].
    bank: int32 [B, M].
  """
  # Sorted by bank, and within each by total: a place there, less the place of
  # its bank's first, is a rank.
  by_total = tf.argsort(totals, direction="DESCENDING", stable=True)
  by_bank = tf.argsort(tf.gather(bank, by_total, batch_dims=1), stable=True)
  order = tf.gather(by_total, by_bank, batch_dims=1)
  banks = tf.gather(bank, order, batch_dims=1)
  first = tf.searchsorted(banks, banks)
  place = tf.argsort(order)
  rank = place - tf.gather(first, place, batch_dims=1)
  width = tf.reduce_max(bank, axis=1, keepdims=True) + 1
  turn = tf.cast(bank - rank * width, tf.float32)
  return tf.where(totals > NEG_INF, turn, NEG_INF)
