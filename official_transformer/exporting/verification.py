"""Verifies that an export translates as its model does.

Sentences go through the export in a new process, and through the model in this
one. An export that differs is refused.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from official_transformer.decoding.batching import pad
from official_transformer.decoding.hypotheses import (
  FoundSequence,
  as_one_line,
  found_sequences,
  without_end,
)
from official_transformer.decoding.loading import LoadedModel
from official_transformer.decoding.searcher import Searcher
from official_transformer.errors import InputError, RunError
from official_transformer.exporting.formats import SAVED_MODEL
from official_transformer.model_params import EOS_ID

MOST_SAMPLES = 200
BATCH_SIZE = 32
# Largest accepted difference of a hypothesis' score, by the type of the
# computation: products are rounded differently in batches of different size.
TOLERANCES = {"float32": 1e-4, "bfloat16": 0.1, "float16": 0.02}

# Of so many lines, one may have another translation of the same score.
_LINES_FOR_A_TIE = 20

_READ_BACK = pathlib.Path(__file__).with_name("read_back.py")
_NOTHING = FoundSequence([], float("nan"), False)
# Characters that are shown of a failed process' last output.
_SAID = 300


@dataclasses.dataclass(frozen=True)
class Samples:
  """Lines, and the model's translations of them.

  Attributes:
    lines: not blank, and no longer than the model has learnt.
    ids: ids of each, with EOS.
    found: the hypotheses of each, the best first.
    texts: the text of the best, one line each.
    dtype: type of the model's computation.
  """

  lines: list[str]
  ids: list[list[int]]
  found: list[list[FoundSequence]]
  texts: list[str]
  dtype: str

  @property
  def pairs(self) -> list[tuple[list[int], list[int]]]:
    """The ids of each line and of its translation, both with EOS."""
    return [
      (source, [*best.ids, EOS_ID])
      for source, (best, *_) in zip(self.ids, self.found, strict=True)
    ]

  def length_power(self, alpha: float) -> float:
    """Returns the power of the length that divides scores most like ours.

    Around the mean length of translations, it falls and rises as ((5 + length)
    / 6) ** alpha does.
    """
    length = np.mean([len(found.ids) + 1 for found, *_ in self.found])
    return round(float(alpha * length / (5 + length)), 2)

  @classmethod
  def of(cls, model: LoadedModel, lines: Iterable[str]) -> Samples:
    """Translates the first lines that can be compared.

    Raises:
      InputError: if there are no samples.
    """
    kept: list[str] = []
    ids: list[list[int]] = []
    for line in lines:
      encoded = model.tokenizers.source.encode(line.strip(), add_eos=True)
      if 1 < len(encoded) <= model.longest_piece:
        kept.append(line)
        ids.append(encoded)
      if len(kept) == MOST_SAMPLES:
        break
    if not kept:
      raise InputError(
        "none of the lines to verify the export with has from one token to "
        f"{model.longest_piece} tokens, as nearly all training lines had"
      )
    searcher = Searcher(model.transformer, model.tokenizers.target.vocab_size)
    found = [s for rows in batched(ids) for s in searcher.search(rows)]
    texts = [
      as_one_line(model.tokenizers.target.decode(s[0].ids)) for s in found
    ]
    dtype = model.transformer.compute_dtype
    return cls(kept, ids, found, texts, dtype)


def batched(rows: Sequence[Any]) -> list[Any]:
  """Cuts rows into batches; the first batch is a single row."""
  starts = range(1, len(rows), BATCH_SIZE)
  return [rows[:1], *(rows[start : start + BATCH_SIZE] for start in starts)]


def read_back(
  kind: str, directory: str, questions: Mapping[str, Any]
) -> dict[str, Any]:
  """Uses an export in a process of its own.

  Args:
    kind: kind of export.
    directory: where it is.
    questions: input of `read_back.py`.

  Returns:
    Its answers.

  Raises:
    RunError: if it cannot.
  """
  with tempfile.TemporaryDirectory() as place:
    asked, answered = (os.path.join(place, n) for n in ("asked", "answered"))
    with open(asked, "w", encoding="utf-8") as stream:
      json.dump(questions, stream)
    # -P: the script's directory is not searched for modules, because those of
    # this package are not meant for the export's process.
    command = [sys.executable, "-P", str(_READ_BACK), kind, directory]
    done = subprocess.run(
      [*command, asked, answered],
      capture_output=True,
      text=True,
      errors="replace",
      env={
        **os.environ,
        # The expected values were computed on the CPU.
        "CUDA_VISIBLE_DEVICES": "-1",
      },
      check=False,
    )
    if done.returncode:
      said = done.stderr.strip()[-_SAID:]
      raise RunError(
        f"the export cannot be used (status {done.returncode}), and was "
        f"removed: {said}"
      )
    with open(answered, encoding="utf-8") as stream:
      return json.load(stream)


def verify_search(
  directory: str, samples: Samples, texts: Sequence[Sequence[str]]
) -> str:
  """Compares a SavedModel's translations with the model's.

  One line in 20 may have another translation whose score differs by rounding
  alone.

  Args:
    directory: where it is.
    samples: sentences to translate.
    texts: batches of lines to translate as text, beside batches of ids.

  Returns:
    A finding: one sentence, without a full stop, about what was equal.

  Raises:
    RunError: at the first difference.
  """
  batches = [pad(rows).tolist() for rows in batched(samples.ids)]
  questions = {"batches": batches, "texts": texts}
  answers = read_back(SAVED_MODEL, directory, questions)
  farthest, tolerance = 0.0, TOLERANCES[samples.dtype]
  ties, most_ties = 0, len(samples.lines) // _LINES_FOR_A_TIE
  for number, (hypotheses, text) in enumerate(
    zip(samples.found, samples.texts, strict=True)
  ):
    best = hypotheses[0]
    ids, score = answers["ids"][number]
    ids = without_end(ids)
    if ids != best.ids and abs(score - best.score) <= tolerance:
      ties += 1
      if ties <= most_ties:
        continue
    pairs: list[tuple[Any, Any]] = [((ids, score), (best.ids, best.score))]
    if texts:
      pairs.append((answers["texts"][number], (text, best.score)))
    if number < len(answers["n_best"]):
      pairs += _n_best_pairs(answers["n_best"][number], hypotheses)
    for (found, score), (expected, wanted_score) in pairs:
      distance = abs(score - wanted_score)
      farthest = max(farthest, distance)
      # NaN is not within anything.
      if found != expected or not distance <= tolerance:
        raise RunError(
          "the export does not translate as the model does, and was removed: "
          f"{samples.lines[number]!r} becomes {found!r}, score {score:.6f}, "
          f"not {expected!r} with {wanted_score:.6f}"
        )
  return (
    f"{len(samples.lines)} sentences, one by itself and the others in batches "
    f"of {BATCH_SIZE}, were translated as the model translates them; their "
    f"scores differ by {farthest:.1e} at most"
    + f"; {ties} had another translation of nearly the same score"
    * (ties > 0)
  )


def _n_best_pairs(
  answer: Sequence[Any], hypotheses: Sequence[FoundSequence]
) -> list[tuple[Any, Any]]:
  """Returns pairs of an export's and the model's hypotheses.

  Of the hypotheses after the best, only scores are compared, because those of
  nearly the same score may be in another order.
  """
  found = found_sequences(*zip(*answer, strict=True))
  both = itertools.zip_longest(found, hypotheses, fillvalue=_NOTHING)
  pairs: list[tuple[Any, Any]] = [
    ((one.finished, one.score), (other.finished, other.score))
    for one, other in both
  ]
  best = found[0].ids, hypotheses[0].ids
  return [*pairs, tuple((ids, hypotheses[0].score) for ids in best)]
