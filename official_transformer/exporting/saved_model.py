"""A SavedModel that translates, beam search and tokenizer inside.

The signature `translate` is the one of the official model's first version. The
two other signatures are new: they return all hypotheses of a beam, and map text
to text.

Shapes: B lines, K beam, S source length, L longest limit of a batch.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import tensorflow as tf
from absl import logging

from official_transformer.decoding.loading import LoadedModel
from official_transformer.hardware.processor import Target, traced_for
from official_transformer.model.transformer import Transformer
from official_transformer.model_params import EOS_ID, PAD_ID
from official_transformer.search.beam_search import SearchResult
from official_transformer.storage import file_system
from official_transformer.text.vocabulary_files import VocabFiles

# Where the first version put the vocabulary.
EXTRA_ASSETS = "assets.extra"
EXTRA_VOCABULARY = "vocab.txt"

Tensors = dict[str, tf.Tensor]


class TranslationModule(tf.Module):
  """The saved module: a model's search, and its tokenizer if wanted.

  Attributes:
    vocabularies: the vocabularies' files, assets.
    text: a `TextInGraph`, or None.
  """

  def __init__(
    self,
    transformer: Transformer,
    vocabulary_size: int,
    longest_piece: int,
    vocabularies: list[tf.saved_model.Asset],
    text: tf.Module | None,
  ) -> None:
    super().__init__()
    # Tracked as plain variables, because a Keras layer would be saved, too.
    self.weights = [weight.value for weight in transformer.weights]
    self.vocabularies = vocabularies
    self.text = text
    self._longest_piece = longest_piece
    self._longest = transformer.params.longest
    self._search_rows = lambda ids: transformer.beam_search(
      ids, vocabulary_size
    )

  def signatures(self) -> dict[str, Any]:
    """Returns the signatures by name."""
    of_ids = [tf.TensorSpec([None, None], tf.int64, name="input")]
    translate = _traced(self.translate, of_ids)
    found = {
      "serving_default": translate,
      "translate": translate,
      "translate_n_best": _traced(self.translate_n_best, of_ids),
    }
    if self.text is not None:
      of_text = [tf.TensorSpec([None], tf.string, name="text")]
      found["translate_text"] = _traced(self.translate_text, of_text)
    return found

  def translate(self, ids: tf.Tensor) -> Tensors:
    """Maps ids [B, S] to the best `outputs`, int32 [B, L], and `scores` [B]."""
    found = self._search(ids)
    return {"outputs": found.ids[:, 0], "scores": found.scores[:, 0]}

  def translate_n_best(self, ids: tf.Tensor) -> Tensors:
    """Maps ids [B, S] to all hypotheses, best first; see `SearchResult`."""
    found = self._search(ids)
    return {
      "outputs": found.ids,
      "scores": found.scores,
      "finished": found.finished,
    }

  def translate_text(self, lines: tf.Tensor) -> Tensors:
    """Maps lines, string [B], to translations, string [B], and more of each."""
    text: Any = self.text
    encoded = text.encode(lines)
    lengths = tf.cast(encoded.row_lengths(), tf.int32)
    blank = tf.equal(lengths, 1)  # EOS alone.
    # Such a row fills the batch up: it is not searched.
    ids = tf.where(blank[:, None], 0, encoded.to_tensor())
    found = self._search(ids)
    # A sentence without a finished hypothesis returns all alive ones.
    there = found.finished | ~tf.reduce_any(found.finished, 1, keepdims=True)
    beam = tf.shape(found.scores)[1]
    flat = tf.reshape(found.ids, [-1, tf.shape(found.ids)[2]])
    decoded = tf.reshape(text.decode(flat), [-1, beam])
    first = tf.equal(tf.range(beam), 0)
    there = tf.where(blank[:, None], first, there)
    scores = tf.where(blank[:, None], 0.0, found.scores)
    hypotheses = tf.where(there & ~blank[:, None], decoded, "")
    finished = tf.where(blank[:, None], first, found.finished)
    return {
      "translations": hypotheses[:, 0],
      "scores": scores[:, 0],
      "finished": finished[:, 0],
      "blank": blank,
      "long": lengths > self._longest_piece,
      "n_best_translations": hypotheses,
      "n_best_scores": tf.where(there, scores, float("-inf")),
      "n_best_finished": finished,
    }

  def _search(self, ids: tf.Tensor) -> SearchResult:
    """Searches; of no lines there is nothing to find."""
    batch = tf.shape(ids)[0]
    # A server that makes batches may pad with anything.
    ended = tf.cumsum(tf.cast(ids == EOS_ID, tf.int32), axis=1, exclusive=True)
    ids = tf.where(ended > 0, tf.cast(PAD_ID, ids.dtype), ids)
    if self._longest is not None:
      ids = _within_positions(ids, self._longest)
    # The loop needs a row and a column.
    lacking = tf.maximum(1 - tf.shape(ids), 0)
    padding = tf.stack([tf.zeros_like(lacking), lacking], axis=1)
    found = self._search_rows(tf.pad(ids, padding))
    return SearchResult(*(tensor[:batch] for tensor in found))


def _within_positions(ids: tf.Tensor, longest: int) -> tf.Tensor:
  """Cuts padding off that a model has no positions for; refuses tokens."""
  fits = tf.reduce_all(ids[:, longest:] == PAD_ID)
  check = tf.debugging.Assert(
    fits,
    [
      f"a line is longer than the {longest} positions that the model has learnt"
    ],
  )
  with tf.control_dependencies([check]):
    return ids[:, :longest]


@contextlib.contextmanager
def _silence() -> Iterator[None]:
  """Keeps TensorFlow from listing the names of everything it saves."""
  verbosity = logging.get_verbosity()
  logging.set_verbosity(logging.ERROR)
  try:
    yield
  finally:
    logging.set_verbosity(verbosity)


def _traced(method: Any, signature: list[tf.TensorSpec]) -> Any:
  # A bound method's first argument is taken for its owner if it has another
  # name; AutoGraph has nothing to convert.
  return tf.function(method, input_signature=signature, autograph=False)


def write_saved_model(
  model: LoadedModel, vocab_files: VocabFiles, directory: str, with_text: bool
) -> None:
  """Writes a SavedModel.

  Args:
    model: to write.
    vocab_files: files of its vocabularies.
    directory: exists, and is empty.
    with_text: whether the tokenizer is in it, which needs tensorflow-text,
      here and wherever it is loaded.
  """
  text = None
  if with_text:
    # It may not be installed.
    from official_transformer.exporting.text_in_graph import text_in_graph

    text = text_in_graph(model.tokenizers)
  module = TranslationModule(
    model.transformer,
    model.tokenizers.target.vocab_size,
    model.longest_piece,
    [tf.saved_model.Asset(path) for path in vocab_files.different],
    text,
  )
  with _silence(), traced_for(Target.ANY_PROCESSOR):
    tf.saved_model.save(module, directory, signatures=module.signatures())
  extra = os.path.join(directory, EXTRA_ASSETS)
  file_system.make_directories(extra)
  if len(vocab_files.different) == 1:
    # The first version knew no other case.
    copy = os.path.join(extra, EXTRA_VOCABULARY)
    file_system.copy(vocab_files.source, copy)
    return
  for path in vocab_files:
    file_system.copy(path, os.path.join(extra, os.path.basename(path)))
