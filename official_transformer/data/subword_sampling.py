"""Subword regularisation: another segmentation of each line at every epoch.

Kudo 2018 (unigram models) and Provilkov et al. 2020 (BPE-dropout), as
SentencePiece implements them. Records hold ids; the ids of a batch are decoded
to text, and the text is encoded again by sampling.

Shapes: B batch, S source length, T target length.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import sentencepiece
import tensorflow as tf

from official_transformer.data.segmentation import SubwordSampling
from official_transformer.errors import InputError
from official_transformer.model_params import EOS_ID, PAD_ID, UNK_ID
from official_transformer.text.tokenizer import (
  SentencePieceTokenizer,
  plain_tokenizer,
)
from official_transformer.text.vocabulary_files import Tokenizers

_SEEDS = 2**32
# SentencePiece has one generator of random numbers for a whole process.
_generator = threading.Lock()


class SubwordSampler:
  """Draws segmentations of batches.

  Attributes:
    sampling: how.
    max_length: most tokens; a line that would become longer keeps its ids.
    seed: seed of the run: it and a batch's number decide its segmentations.

  Raises:
    InputError: if a vocabulary is no SentencePiece model.
  """

  def __init__(
    self,
    tokenizers: Tokenizers,
    sampling: SubwordSampling,
    max_length: int,
    seed: int,
  ) -> None:
    self.sampling = sampling
    self.max_length = max_length
    self.seed = seed
    self._processors = [
      _processor(tokenizer) if sampling.sides in ("both", side) else None
      for side, tokenizer in zip(("source", "target"), tokenizers, strict=True)
    ]
    try:
      for processor in filter(None, self._processors):
        self._encode(processor, ["a"], seed)
    except RuntimeError as error:
      raise InputError(
        f"--sampling_alpha: SentencePiece cannot sample so ({error}); it can "
        "with vocabularies of the types unigram and bpe"
      ) from None

  def resegment(self, batches: tf.data.Dataset, first: int) -> tf.data.Dataset:
    """Returns batches with other segmentations of the same text.

    Args:
      batches: batches of inputs [B, S] and targets [B, T], int64, padded with
        0.
      first: the number of the first batch, counted from the run's beginning.
    """
    shapes = [spec.shape for spec in batches.element_spec]

    def draw(number: tf.Tensor, sides: Sequence[tf.Tensor]) -> Any:
      drawn = tf.numpy_function(
        self.draw, [number, *sides], [tf.int64, tf.int64], stateful=False
      )
      return tuple(
        tf.ensure_shape(ids, shape)
        for ids, shape in zip(drawn, shapes, strict=True)
      )

    numbered = batches.enumerate(start=first)
    return numbered.map(lambda n, sides: draw(n, sides)).prefetch(2)

  def draw(
    self, number: int, inputs: np.ndarray, targets: np.ndarray
  ) -> tuple[np.ndarray, np.ndarray]:
    """Returns a batch with other segmentations.

    Args:
      number: number of the batch.
      inputs: int64 [B, S].
      targets: int64 [B, T].
    """
    drawn = []
    for side, (ids, processor) in enumerate(
      zip((inputs, targets), self._processors, strict=True)
    ):
      if processor:
        seed = np.random.SeedSequence([self.seed, int(number), side])
        ids = self._draw_side(processor, ids, int(seed.generate_state(1)[0]))
      drawn.append(ids)
    return drawn[0], drawn[1]

  def _draw_side(
    self,
    processor: sentencepiece.SentencePieceProcessor,
    ids: np.ndarray,
    seed: int,
  ) -> np.ndarray:
    rows = [row[row != PAD_ID].tolist() for row in ids]
    # EOS is a control piece, of which nothing is decoded.
    texts = processor.DecodeIds(rows)
    drawn = self._encode(processor, texts, seed)
    kept = [
      # The text of an unknown token is lost.
      row if UNK_ID in row or len(new) >= self.max_length else [*new, EOS_ID]
      for row, new in zip(rows, drawn, strict=True)
    ]
    # Static batches keep their width, which is `max_length`.
    width = max(map(len, kept), default=0)
    if ids.shape[1] >= self.max_length:
      width = max(width, ids.shape[1])
    found = np.full([len(ids), width], PAD_ID, np.int64)
    for row, new in zip(found, kept, strict=True):
      row[: len(new)] = new
    return found

  def _encode(
    self,
    processor: sentencepiece.SentencePieceProcessor,
    texts: Sequence[str],
    seed: int,
  ) -> list[list[int]]:
    """Draws a segmentation of each text; the seed decides."""
    with _generator:
      sentencepiece.set_random_generator_seed(seed % _SEEDS)
      return processor.Encode(
        list(texts),
        enable_sampling=True,
        alpha=self.sampling.alpha,
        nbest_size=self.sampling.nbest,
        num_threads=1,
      )


def _processor(tokenizer: object) -> sentencepiece.SentencePieceProcessor:
  plain = plain_tokenizer(tokenizer)  # type: ignore[arg-type]
  if not isinstance(plain, SentencePieceTokenizer):
    raise InputError(
      "--sampling_alpha needs SentencePiece vocabularies: others cut a text in "
      "one way only"
    )
  return plain.processor
