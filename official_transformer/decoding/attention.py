"""Attention weights of pairs of lines, with their pieces.

Shapes: L layers, N heads, S source pieces, T target pieces, both with EOS.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from official_transformer.decoding.batching import map_by_length, pad
from official_transformer.decoding.memory_bounds import (
  check_positions,
  lacks_memory,
)
from official_transformer.decoding.options import BatchLimits
from official_transformer.errors import InputError
from official_transformer.model.attention_weights import attention_weights
from official_transformer.model.transformer import Transformer
from official_transformer.model_params import EOS_ID
from official_transformer.text.tokenizer import Tokenizer
from official_transformer.text.vocabulary_files import Tokenizers

# How EOS and the start symbol are shown among pieces.
END = "</s>"
START = "<s>"

Ids = Sequence[int]


@dataclasses.dataclass(frozen=True)
class LineAttention:
  """The attention of all layers and heads over one pair of lines.

  Row t of the targets is the position that predicts target t. Each row adds up
  to 1.

  Attributes:
    source: S pieces, the last of them EOS.
    target: T pieces, the last of them EOS: the prediction of each position.
    inputs: T pieces: the decoder's input at each position, the start symbol
      first.
    encoder: float32 [L, N, S, S].
    decoder: float32 [L, N, T, T]; its columns are `inputs`.
    cross: float32 [L, N, T, S].
  """

  source: list[str]
  target: list[str]
  inputs: list[str]
  encoder: np.ndarray
  decoder: np.ndarray
  cross: np.ndarray


class AttentionReader:
  """Computes attention; safe to call from several threads.

  Attributes:
    transformer: the model.
    tokenizers: tokenizers of source and target.
    limits: how many pairs are computed at once.
  """

  def __init__(
    self,
    transformer: Transformer,
    tokenizers: Tokenizers,
    limits: BatchLimits | None = None,
  ) -> None:
    self.transformer = transformer
    self.tokenizers = tokenizers
    self.limits = limits or BatchLimits()
    signature = [tf.TensorSpec([None, None], tf.int32)] * 2
    self._all = tf.function(
      lambda source, target: attention_weights(transformer, source, target),
      input_signature=signature,
      autograph=False,
    )
    # Weights that are not requested are not computed.
    self._cross = tf.function(
      lambda source, target: (
        attention_weights(transformer, source, target).cross
      ),
      input_signature=signature,
      autograph=False,
    )

  def read(self, source: Ids, target: Ids) -> LineAttention:
    """Returns the attention over a pair of token lists, each ending in EOS.

    Raises:
      InputError: if the memory does not suffice.
    """
    self._check_memory([(source, target)])
    try:
      found = self._all(pad([source]), pad([target]))
      encoder, decoder, cross = (weights[0].numpy() for weights in found)
    except tf.errors.ResourceExhaustedError:
      raise _out_of_memory(max(len(source), len(target))) from None
    written = pieces_with_end(self.tokenizers.target, target)
    return LineAttention(
      source=pieces_with_end(self.tokenizers.source, source),
      target=written,
      inputs=[START, *written[:-1]],
      encoder=encoder,
      decoder=decoder,
      cross=cross,
    )

  def read_cross(self, pairs: Sequence[tuple[Ids, Ids]]) -> list[np.ndarray]:
    """Returns the attention to the source alone, of many pairs.

    Args:
      pairs: token lists, each ending in EOS.

    Returns:
      For each, float32 [L, N, T, S].

    Raises:
      InputError: if the memory does not suffice.
    """
    return map_by_length(
      pairs,
      lambda pair: max(map(len, pair)),
      self.limits,
      self._read_cross_of_batch,
    )

  def _read_cross_of_batch(
    self, pairs: Sequence[tuple[Ids, Ids]]
  ) -> list[np.ndarray]:
    self._check_memory(pairs)
    sources, targets = zip(*pairs, strict=True)
    try:
      found = self._cross(pad(sources), pad(targets)).numpy()
    except tf.errors.ResourceExhaustedError:
      raise _out_of_memory(max(map(len, (*sources, *targets)))) from None
    return [
      weights[:, :, : len(target), : len(source)]
      for weights, (source, target) in zip(found, pairs, strict=True)
    ]

  def _check_memory(self, pairs: Sequence[tuple[Ids, Ids]]) -> None:
    longest = max(len(ids) for pair in pairs for ids in pair)
    params = self.transformer.params
    check_positions(params, longest)
    layers = (params.encoder_layers + 2 * params.decoder_layers) * len(pairs)
    if lacks_memory(params, layers, longest):
      raise _out_of_memory(longest)


def _out_of_memory(longest: int) -> InputError:
  return InputError(
    f"the attention of all layers over {longest} tokens, which grows with "
    "their square, does not fit into the memory there is: take shorter lines"
  )


def pieces_with_end(tokenizer: Tokenizer, ids: Ids) -> list[str]:
  """Returns the pieces of ids, EOS by its sign."""
  return [
    END if i == EOS_ID else "".join(tokenizer.pieces([i])) or f"<{i}>"
    for i in ids
  ]
