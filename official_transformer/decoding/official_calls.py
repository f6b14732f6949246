"""Upstream's functions that translate, for code that was written for them.

They take a Keras model that `create_model(params, is_train=False)` has made, or
a `Transformer`. `Translator` does more, and faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf
from absl import logging

from official_transformer.decoding.batching import map_by_length, pad
from official_transformer.decoding.hypotheses import as_one_line, without_end
from official_transformer.decoding.options import BatchLimits
from official_transformer.model.transformer import Transformer
from official_transformer.text.text_files import read_lines, write_lines
from official_transformer.text.tokenizer import Tokenizer

_BATCH_SIZE = 32


def translate_file(
  model: Any,
  params: Mapping[str, Any],
  subtokenizer: Tokenizer,
  input_file: str,
  output_file: str | None = None,
  print_all_translations: bool = True,
  distribution_strategy: Any = None,
) -> list[str]:
  """Translates the lines of a file.

  Args:
    model: translating model, as the module's docstring describes it.
    params: a dictionary; its `decode_batch_size` is the most lines of a batch,
      32 by default. Long lines are fewer: a batch has at most 2,048 tokens.
    subtokenizer: tokenizer of the model.
    input_file: text, a sentence a line.
    output_file: gets a translation for each line, in their order.
    print_all_translations: whether the log shows each line and its translation.
    distribution_strategy: not read: one device translates.

  Returns:
    The translations; an empty line has an empty one.
  """
  lines = [line.strip() for line in read_lines(input_file)]
  search = _search(model)

  def translate(batch: Sequence[list[int]]) -> list[str]:
    outputs = search(tf.constant(pad(batch), tf.int64))
    return [_text(row, subtokenizer) for row in outputs.numpy()]

  size = params.get("decode_batch_size") or _BATCH_SIZE
  found = map_by_length(
    [subtokenizer.encode(line, add_eos=True) for line in lines if line],
    len,
    BatchLimits(lines=size),
    translate,
  )
  following = iter(found)
  translations = [next(following) if line else "" for line in lines]
  if print_all_translations:
    for line, translation in zip(lines, translations, strict=True):
      logging.info("%s -> %s", line, translation)
  if output_file is not None:
    write_lines(output_file, translations)
  return translations


def translate_from_text(model: Any, subtokenizer: Tokenizer, txt: str) -> str:
  """Returns the translation of a line, which the log shows too."""
  logging.info("Original: %s", txt)
  ids = tf.constant([subtokenizer.encode(txt.strip(), add_eos=True)], tf.int64)
  if isinstance(model, Transformer):
    return translate_from_input(model([ids])["outputs"], subtokenizer)
  # Keras keeps the traced function for the next line.
  return translate_from_input(model.predict_on_batch(ids)[0], subtokenizer)


def translate_from_input(outputs: Any, subtokenizer: Tokenizer) -> str:
  """Returns the text of a line's ids, [L] or [1, L]; the log shows it."""
  translation = _text(tf.reshape(outputs, [-1]).numpy(), subtokenizer)
  logging.info("Translation: %s", translation)
  return translation


def _search(model: Any) -> Callable[[tf.Tensor], tf.Tensor]:
  """Returns the function from source ids [B, S] to translations [B, L]."""

  @tf.function(
    input_signature=[tf.TensorSpec([None, None], tf.int64)], autograph=False
  )
  def search(ids: tf.Tensor) -> tf.Tensor:
    if isinstance(model, Transformer):
      return model([ids])["outputs"]
    return model(ids)[0]

  return search


def _text(ids: np.ndarray, subtokenizer: Tokenizer) -> str:
  """Returns the text of ids [L], which EOS ends."""
  return as_one_line(subtokenizer.decode(without_end(ids.tolist())))
