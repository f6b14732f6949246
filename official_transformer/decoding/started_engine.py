"""What an engine offers once it has a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from official_transformer.decoding.engines import SequenceSearcher

if TYPE_CHECKING:
  from official_transformer.decoding.attention import AttentionReader
  from official_transformer.decoding.guided_searcher import GuidedSearcher


class StartedEngine(NamedTuple):
  """An engine with a model, or with several, ready to search.

  Attributes:
    plain: the search of lines without guidance.
    guided: the search under constraints; None if the engine has none.
    attention_reader: computes the first model's attention; None if the engine
      shows none.
    dtype: type of TensorFlow's computation, such as `float32`; None if another
      library computes.
  """

  plain: SequenceSearcher
  guided: GuidedSearcher | None = None
  attention_reader: AttentionReader | None = None
  dtype: str | None = None
