"""Upstream's functions that translate, for code that was written for them.

They take a Keras model that `create_model(params, is_train=False)` has made, or
a `Transformer`. `Translator` does more, and faster.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from official_transformer.data.text_files import read_lines, write_lines
from official_transformer.data.tokenizer import Tokenizer
from official_transformer.decoding.batching import pad
from official_transformer.decoding.hypotheses import as_one_line
from official_transformer.model.transformer import Transformer
from official_transformer.model_params import EOS_ID

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
    model: as this module says.
    params: a dictionary whose `decode_batch_size` says how many lines a batch
      has; 32 if it does not.
    subtokenizer: of the model.
    input_file: text, a sentence a line.
    output_file: gets a translation for each line, in their order.
    print_all_translations: whether the log shows each line and its translation.
    distribution_strategy: not read: one device translates.

  Returns:
    The translations; that of an empty line is empty.
  """
  lines = [line.strip() for line in read_lines(input_file)]
  ids = [subtokenizer.encode(line, add_eos=True) for line in lines]
  real = [number for number, line in enumerate(lines) if line]
  order = sorted(real, key=lambda number: -len(ids[number]))
  size = params.get("decode_batch_size") or _BATCH_SIZE
  search = _search(model)
  translations = [""] * len(lines)
  for first in range(0, len(order), size):
    numbers = order[first : first + size]
    outputs = search(tf.constant(pad([ids[n] for n in numbers]), tf.int64))
    for number, row in zip(numbers, outputs.numpy(), strict=True):
      translations[number] = _text(row, subtokenizer)
      if print_all_translations:
        logging.info(
          "%d: %s -> %s", number + 1, lines[number], translations[number]
        )
  if output_file is not None:
    write_lines(output_file, translations)
  return translations


def translate_from_text(model: Any, subtokenizer: Tokenizer, txt: str) -> str:
  """Returns the translation of a line, which the log shows too."""
  logging.info("Original: %s", txt)
  ids = tf.constant([subtokenizer.encode(txt.strip(), add_eos=True)], tf.int64)
  if isinstance(model, Transformer):
    return translate_from_input(model([ids])["outputs"], subtokenizer)
  # Keras keeps what it has traced for the next line.
  return translate_from_input(model.predict_on_batch(ids)[0], subtokenizer)


def translate_from_input(outputs: Any, subtokenizer: Tokenizer) -> str:
  """Returns the text of a line's ids, [L] or [1, L]; the log shows it."""
  translation = _text(tf.reshape(outputs, [-1]).numpy(), subtokenizer)
  logging.info("Translation: %s", translation)
  return translation


def _search(model: Any) -> Callable[[tf.Tensor], tf.Tensor]:
  """Returns what maps source ids [B, S] to those of translations [B, L]."""

  @tf.function(
    input_signature=[tf.TensorSpec([None, None], tf.int64)], autograph=False
  )
  def search(ids: tf.Tensor) -> tf.Tensor:
    if isinstance(model, Transformer):
      return model([ids])["outputs"]
    return model(ids)[0]

  return search


def _text(ids: Sequence[int], subtokenizer: Tokenizer) -> str:
  """Returns the text of ids up to EOS, or to the padding behind them."""
  found = list(map(int, ids))
  if EOS_ID in found:
    found = found[: found.index(EOS_ID)]
  return as_one_line(subtokenizer.decode([i for i in found if i]))
