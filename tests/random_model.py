"""Model directories with random weights and a small vocabulary."""

import numpy as np

from official_transformer.decoding.loading import load_model, open_model
from official_transformer.importing.model_writing import write_model
from official_transformer.model.building import build_transformer
from official_transformer.model_directory.description import Origin
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_params import TransformerParams
from official_transformer.text.tokenizer import (
  SentencePieceTokenizer,
  train_sentencepiece,
)
from official_transformer.text.vocabulary_files import (
  VocabFiles,
  load_vocabularies,
)

LINES = [
  "A dog runs along the beach.",
  "Two men sit on a bench, and read.",
  "Ein Hund läuft über den Strand: schön!",
  "Zwei Männer sitzen auf einer Bank.",
]


def train_vocabulary(directory):
  """Returns the path of a SentencePiece model of 60 pieces."""
  text, path = directory / "text", str(directory / "vocab.model")
  text.write_text("\n".join(LINES), "utf-8")
  train_sentencepiece([str(text)], path, 60)
  return path


def random_model(directory, vocabulary, **changed):
  """Writes and loads a model of one small layer.

  Args:
    directory: to make.
    vocabulary: path of a SentencePiece model.
    **changed: parameters.
  """
  params = TransformerParams(
    **{
      "vocab_size": SentencePieceTokenizer(vocabulary).vocab_size,
      "hidden_size": 16,
      "num_hidden_layers": 1,
      "num_heads": 2,
      "filter_size": 24,
      "beam_size": 2,
      "extra_decode_length": 5,
      **changed,
    }
  )
  transformer = build_transformer(params)
  rng = np.random.default_rng(1)
  values = {
    w.path: rng.normal(size=w.shape).astype(np.float32) / 4
    for w in transformer.weights
  }
  write_model(
    ModelDirectory(directory),
    transformer,
    values,
    load_vocabularies(VocabFiles.joint(vocabulary)),
    Origin("random", directory, None),
  )
  return load_model(*open_model(directory))
