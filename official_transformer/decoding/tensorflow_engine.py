"""The reference engine: this project's search, in TensorFlow."""

from __future__ import annotations

from collections.abc import Sequence

from official_transformer.decoding.attention import AttentionReader
from official_transformer.decoding.guided_searcher import GuidedSearcher
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.searcher import Searcher
from official_transformer.decoding.started_engine import StartedEngine
from official_transformer.errors import InputError
from official_transformer.model.transformer import Transformer
from official_transformer.text.vocabulary_files import Tokenizers


def start_tensorflow_engine(
  transformers: Sequence[Transformer],
  tokenizers: Tokenizers,
  options: DecodingOptions,
) -> StartedEngine:
  """Returns the search of a model, or of several that decide together.

  Raises:
    InputError: if several models cannot decide together.
  """
  first = transformers[0]
  guided = GuidedSearcher(transformers, tokenizers)
  reader = AttentionReader(first, tokenizers, options.limits)
  if len(transformers) > 1:
    if options.padded_length:
      raise InputError(
        "several models decide together in a search that XLA does not "
        "compile: leave --padded_decode out"
      )
    for model in transformers:
      options.check_length(options.search, model.params)
    return StartedEngine(guided, guided, reader, first.compute_dtype)
  shapes = options.static_shapes(first.params)
  plain = Searcher(first, tokenizers.target.vocab_size, shapes)
  return StartedEngine(plain, guided, reader, first.compute_dtype)
