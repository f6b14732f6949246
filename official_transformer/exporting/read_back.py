"""Uses an export as a stranger would, in a process of its own.

    python -P read_back.py FORMAT DIRECTORY QUESTIONS ANSWERS

QUESTIONS and ANSWERS are JSON files. An export must do without this project:
nothing here imports it.
"""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any


def read_saved_model(directory: str, questions: Any) -> Any:
  """Answers with a SavedModel: batches of ids, and of lines."""
  import tensorflow as tf

  if questions["texts"]:
    # It registers the operations that tokenizers are made of.
    importlib.import_module("tensorflow_text")
  signatures = tf.saved_model.load(directory).signatures
  # One sentence alone, and a batch.
  n_best = []
  for batch in questions["batches"][:2]:
    found = signatures["translate_n_best"](input=tf.constant(batch, tf.int64))
    n_best += _n_best(found)
  ids, texts = [], []
  for batch in questions["batches"]:
    found = signatures["translate"](input=tf.constant(batch, tf.int64))
    ids += _rows(found["outputs"].numpy(), found["scores"].numpy())
  for batch in questions["texts"]:
    found = signatures["translate_text"](text=tf.constant(batch))
    decoded = [text.decode("utf-8") for text in found["translations"].numpy()]
    texts += list(zip(decoded, found["scores"].numpy().tolist(), strict=True))
  return {"ids": ids, "texts": texts, "n_best": n_best}


def _n_best(found: Any) -> list[Any]:
  """Returns each row's hypotheses: ids, score and whether it is finished."""
  parts = (found[name].numpy() for name in ("outputs", "scores", "finished"))
  return [
    list(zip(*(part.tolist() for part in row), strict=True))
    for row in zip(*parts, strict=True)
  ]


def read_ctranslate2(directory: str, questions: Any) -> Any:
  """Answers with a CTranslate2 model: scores, and translations by settings."""
  import ctranslate2

  translator = ctranslate2.Translator(directory)
  scored = translator.score_batch(
    questions["sources"],
    questions["targets"],
    max_batch_size=questions["batch_size"],
    max_input_length=0,
  )
  translations = {}
  for penalty in questions["length_penalties"]:
    found = translator.translate_batch(
      questions["sources"],
      max_batch_size=questions["batch_size"],
      beam_size=questions["beam_size"],
      patience=questions["patience"],
      length_penalty=penalty,
      suppress_sequences=questions["suppress_sequences"],
      max_input_length=0,
      max_decoding_length=questions["longest"],
    )
    translations[str(penalty)] = [result.hypotheses[0] for result in found]
  return {
    "compute_type": translator.compute_type,
    "scores": [result.log_probs for result in scored],
    "translations": translations,
  }


def _rows(ids: Any, scores: Any) -> list[Any]:
  """Returns each row's ids and score."""
  return list(zip(ids.tolist(), scores.tolist(), strict=True))


READERS = {
  "saved_model": read_saved_model,
  "ctranslate2": read_ctranslate2,
}


def main() -> None:
  """Runs the command."""
  kind, directory, questions, answers = sys.argv[1:]
  with open(questions, encoding="utf-8") as stream:
    found = READERS[kind](directory, json.load(stream))
  with open(answers, "w", encoding="utf-8") as stream:
    json.dump(found, stream)


if __name__ == "__main__":
  main()
