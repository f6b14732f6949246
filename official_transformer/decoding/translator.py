"""Lines in, translated lines out, one for one and in order.

translator = Translator.load("my_model")
translator.translate(["A dog runs.", "Two men sit."])
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
import tensorflow as tf

from official_transformer.data.tokenizer import Tokenizer
from official_transformer.decoding.batching import map_by_length, pad, windows
from official_transformer.decoding.loading import load_model
from official_transformer.model.transformer import Transformer
from official_transformer.model_params import EOS_ID, PAD_ID


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
    padded_length: tokens each line is padded to at least; it changes shapes
      and nothing else.
  """

  def __init__(
    self,
    transformer: Transformer,
    tokenizer: Tokenizer,
    decode_batch_size: int = 32,
    padded_length: int = 0,
  ) -> None:
    if decode_batch_size < 1:
      raise ValueError(f"decode_batch_size is {decode_batch_size}, below 1")
    self.transformer = transformer
    self.tokenizer = tokenizer
    self.decode_batch_size = decode_batch_size
    self.padded_length = padded_length
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
    padded_length: int = 0,
  ) -> Translator:
    """Loads the newest checkpoint of a model directory.

    Args:
      model_dir: as training made it; nothing else is needed.
      beam_size: instead of the model's own, as the two below.
      alpha: strength of the length normalisation.
      extra_decode_length: tokens a translation may be longer than its source.
      decode_batch_size: lines decoded at once.
      padded_length: tokens each line is padded to at least.

    Raises:
      InputError: where the directory holds no usable model.
    """
    transformer, tokenizer = load_model(
      model_dir,
      beam_size=beam_size,
      alpha=alpha,
      extra_decode_length=extra_decode_length,
    )
    return cls(transformer, tokenizer, decode_batch_size, padded_length)

  def translate(self, lines: Iterable[str]) -> list[str]:
    """Returns one translation for each line, in order."""
    return [t.text for t in self.translate_stream(lines)]

  def translate_stream(self, lines: Iterable[str]) -> Iterator[Translation]:
    """Yields one translation for each line, in order, window by window."""
    for window in windows(lines, self.decode_batch_size):
      yield from self._translate_window(window)

  def _translate_window(self, lines: Sequence[str]) -> list[Translation]:
    """Translates lines sorted by length; returns them in their own order."""
    # A blank line has nothing to translate: it stays blank.
    sources = [
      self.tokenizer.encode(line, add_eos=True) if line.strip() else [EOS_ID]
      for line in lines
    ]
    found = iter(
      map_by_length(
        [ids for ids in sources if ids != [EOS_ID]],
        len,
        self.decode_batch_size,
        self._translate_batch,
      )
    )
    blank = Translation("", 0.0, True)
    return [blank if ids == [EOS_ID] else next(found) for ids in sources]

  def _translate_batch(
    self, sources: Sequence[Sequence[int]]
  ) -> list[Translation]:
    """Decodes one batch of token lists, each ending in EOS."""
    result = self._search(pad(sources, self.padded_length))
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
