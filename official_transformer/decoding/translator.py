"""Lines in, translated lines out, one for one and in order.

translator = Translator.load("my_model")
translator.translate(["A dog runs.", "Two men sit."])
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from official_transformer.data.tokenizer import Tokenizer, load_tokenizer
from official_transformer.model.transformer import (
  Transformer,
  build_transformer,
)
from official_transformer.model.weights import WEIGHTS, restore_variables
from official_transformer.model_directory import (
  ModelDirectory,
  check_vocabulary,
)
from official_transformer.model_params import EOS_ID, PAD_ID

# Batches are sorted by length inside a window of this many of them; memory
# is bounded by the window, not by the file.
BATCHES_PER_WINDOW = 64
# Up to this many tokens a line, batches are full. Longer lines come in smaller
# batches: the memory of attention grows with the square of the length.
FULL_BATCH_LINE_LENGTH = 256


@dataclasses.dataclass(frozen=True)
class Translation:
  """What became of one line.

  Attributes:
    text: the translation; never holds a line feed.
    score: of the hypothesis: normalised by length where `finished`, else its
      log-probability; 0 for a blank line, which is not decoded.
    finished: whether the model ended it by itself, below its limit.
  """

  text: str
  score: float
  finished: bool


class Translator:
  """A model, its tokenizer, and how to decode.

  Attributes:
    transformer: the model; its `params` decide beam, alpha and limit.
    tokenizer: of source and target.
    decode_batch_size: lines decoded at once.
  """

  def __init__(
    self,
    transformer: Transformer,
    tokenizer: Tokenizer,
    decode_batch_size: int = 32,
  ) -> None:
    if decode_batch_size < 1:
      raise ValueError(f"decode_batch_size is {decode_batch_size}, below 1")
    self.transformer = transformer
    self.tokenizer = tokenizer
    self.decode_batch_size = decode_batch_size
    # Traced once, for batches of any shape.
    self._search = tf.function(
      transformer.beam_search,
      input_signature=[tf.TensorSpec([None, None], tf.int32)],
      autograph=False,  # Nothing to convert, and tracing takes half the time.
    )

  @classmethod
  def load(
    cls,
    model_dir: str,
    beam_size: int | None = None,
    alpha: float | None = None,
    extra_decode_length: int | None = None,
    decode_batch_size: int = 32,
  ) -> Translator:
    """Loads the newest checkpoint of a model directory.

    Args:
      model_dir: as training made it; nothing else is needed.
      beam_size: instead of the model's own, as the two below.
      alpha: strength of the length normalisation.
      extra_decode_length: tokens a translation may be longer than its source.
      decode_batch_size: lines decoded at once.

    Raises:
      InputError: where the directory holds no usable model.
    """
    directory = ModelDirectory(model_dir)
    changes: dict[str, Any] = {
      "beam_size": beam_size,
      "alpha": alpha,
      "extra_decode_length": extra_decode_length,
    }
    stored = directory.read()
    params = dataclasses.replace(
      stored.params,
      **{k: v for k, v in changes.items() if v is not None},
    )
    checkpoint = directory.latest_checkpoint()
    vocab_file = directory.join(stored.vocabulary["file"])
    tokenizer = load_tokenizer(vocab_file)
    check_vocabulary(vocab_file, tokenizer.vocab_size, stored, model_dir)
    transformer = build_transformer(params)
    restore_variables(checkpoint, WEIGHTS, transformer.weights)
    return cls(transformer, tokenizer, decode_batch_size)

  def translate(self, lines: Iterable[str]) -> list[str]:
    """Returns one translation for each line, in order."""
    return [t.text for t in self.translate_stream(lines)]

  def translate_stream(self, lines: Iterable[str]) -> Iterator[Translation]:
    """Yields one translation for each line, in order, window by window."""
    lines = iter(lines)
    size = BATCHES_PER_WINDOW * self.decode_batch_size
    while window := list(itertools.islice(lines, size)):
      yield from self._translate_window(window)

  def _translate_window(self, lines: Sequence[str]) -> list[Translation]:
    """Translates lines sorted by length; returns them in their own order."""
    # A blank line has nothing to translate: it stays blank.
    sources = [
      self.tokenizer.encode(line, add_eos=True) if line.strip() else [EOS_ID]
      for line in lines
    ]
    results = [Translation("", 0.0, True)] * len(lines)
    order = [i for i, ids in enumerate(sources) if ids != [EOS_ID]]
    # Longest first: a lack of memory shows at once.
    order.sort(key=lambda i: len(sources[i]), reverse=True)
    while order:
      batch, order = self._next_batch(order, len(sources[order[0]]))
      found = self._translate_batch([sources[i] for i in batch])
      for i, translation in zip(batch, found, strict=True):
        results[i] = translation
    return results

  def _next_batch(
    self, order: list[int], length: int
  ) -> tuple[list[int], list[int]]:
    """Splits off the next batch, whose longest line has `length` tokens."""
    tokens = self.decode_batch_size * FULL_BATCH_LINE_LENGTH
    size = max(1, min(self.decode_batch_size, tokens // length))
    return order[:size], order[size:]

  def _translate_batch(
    self, sources: Sequence[Sequence[int]]
  ) -> list[Translation]:
    """Decodes one batch of token lists, each ending in EOS."""
    width = max(map(len, sources))
    batch = np.full([len(sources), width], PAD_ID, np.int32)
    for row, ids in enumerate(sources):
      batch[row, : len(ids)] = ids
    result = self._search(batch)
    return [
      Translation(self._text(ids), float(score), bool(finished))
      for ids, score, finished in zip(
        result.ids[:, 0].numpy(),
        result.scores[:, 0].numpy(),
        result.finished[:, 0].numpy(),
        strict=True,
      )
    ]

  def _text(self, ids: np.ndarray) -> str:
    """Returns the text of ids up to EOS, as one line."""
    kept = list(itertools.takewhile(lambda i: i != EOS_ID, map(int, ids)))
    text = self.tokenizer.decode([i for i in kept if i != PAD_ID])
    # A vocabulary can spell a line feed; a translation is one line.
    return " ".join(text.replace("\r", "\n").split("\n"))
