"""Lengths and sentences of training lines, which a model remembers."""

from __future__ import annotations

import dataclasses
import io
from typing import TYPE_CHECKING

from absl import logging

from official_transformer.storage import file_system

if TYPE_CHECKING:
  import numpy as np

# Share of the pairs whose lengths count as usual: the few lines that are longer
# than these, a model has hardly seen.
_USUAL = 0.999
# From this share on, training text is paragraphs.
_PARAGRAPHS = 0.3


@dataclasses.dataclass(frozen=True)
class TrainedLines:
  """Lengths and sentences of the lines that a model was trained with.

  Attributes:
    usual_length: the 99.9th percentile of the pairs' lengths: tokens of the
      longer side, EOS included.
    several_sentences: share of pairs whose source has more than one sentence;
      None if it was not counted.

  Raises:
    ValueError: if a value is out of range.
  """

  usual_length: int
  several_sentences: float | None = None

  def __post_init__(self) -> None:
    if self.usual_length < 1:
      raise ValueError(f"usual_length is {self.usual_length}, at least 1")
    if not 0 <= (self.several_sentences or 0) <= 1:
      raise ValueError(f"several_sentences is {self.several_sentences}")

  @classmethod
  def of(
    cls,
    lengths: np.ndarray,
    max_length: int,
    several_sentences: float | None = None,
  ) -> TrainedLines | None:
    """Describes pairs by their lengths; None if there are none.

    Args:
      lengths: int [N], tokens of each pair's longer side; 0 of one that cannot
        be used.
      max_length: `max_length` of the training, which leaves longer ones out.
      several_sentences: as in the attribute.
    """
    import numpy as np  # Which --help need not wait for.

    used = lengths[(lengths > 0) & (lengths <= max_length)]
    if not len(used):
      return None
    usual = np.quantile(used, _USUAL, method="inverted_cdf")
    return cls(int(usual), several_sentences)

  @classmethod
  def of_index(cls, path: str, max_length: int) -> TrainedLines | None:
    """Reads the lengths of an index; None if there is none, or it is damaged.

    Args:
      path: path of the file that `check_cache.save_check` has written.
      max_length: `max_length` of the training, as in `of`.
    """
    if not file_system.exists(path):
      return None
    import numpy as np

    try:
      with file_system.open_file(path, "rb") as stream:
        content = io.BytesIO(stream.read())
      lengths = np.load(content, allow_pickle=False)["lengths"]
      return cls.of(lengths, max_length)
    except Exception as error:
      # NumPy and zipfile raise errors of any type for a damaged archive.
      logging.warning("%s is damaged (%r)", path, error)
      return None

  def after(self, before: TrainedLines | None) -> TrainedLines:
    """Returns the lines of a model that was trained with others before.

    It still knows the longer ones of both. Sentences are as in the newest data
    in which they were counted.
    """
    if before is None:
      return self
    share = self.several_sentences
    return TrainedLines(
      max(self.usual_length, before.usual_length),
      before.several_sentences if share is None else share,
    )

  @property
  def are_sentences(self) -> bool:
    """Whether most are single sentences, or the share is unknown."""
    share = self.several_sentences
    return share is None or share < _PARAGRAPHS
