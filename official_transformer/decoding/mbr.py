"""Minimum Bayes risk: the hypothesis that is most like all the others.

Each hypothesis' utility is its mean chrF against all of them as references
(Kumar and Byrne 2004; with samples, Eikema and Aziz 2020). The scores are
sacreBLEU's, of all pairs at once.

Shapes: K hypotheses, U different n-grams.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from official_transformer.decoding.hypotheses import FoundSequence

# Of sacreBLEU's chrF2: characters alone, recall weighted by 2.
_ORDER = 6
_BETA = 2


def by_risk(
  sequences: Sequence[FoundSequence], text: Callable[[FoundSequence], str]
) -> list[FoundSequence]:
  """Returns hypotheses of one line with their utility, the most useful first.

  Args:
    sequences: one or more.
    text: text of one.
  """
  found = utilities([text(sequence) for sequence in sequences])
  # The first of equals stays first.
  order = sorted(range(len(found)), key=lambda n: -found[n])
  return [dataclasses.replace(sequences[n], utility=found[n]) for n in order]


def utilities(texts: Sequence[str]) -> list[float]:
  """Returns each text's mean chrF2 against all of them, itself among them."""
  return [float(row.mean()) for row in chrf_matrix(texts)]


def chrf_matrix(texts: Sequence[str]) -> np.ndarray:
  """Returns chrF2 of each text, by rows, against each as its reference.

  As `sacrebleu.sentence_chrf`: 0 to 100; blanks are not counted.
  """
  packed = ["".join(text.split()) for text in texts]
  precision = np.zeros([len(texts)] * 2)
  recall = np.zeros([len(texts)] * 2)
  orders = np.zeros([len(texts)] * 2)
  for order in range(1, _ORDER + 1):
    counts = _counts(packed, order)
    totals = counts.sum(1)
    matches = np.stack([np.minimum(counts, row).sum(1) for row in counts])
    both = (totals[:, None] > 0) & (totals[None] > 0)
    orders += both
    precision += np.where(both, matches / np.maximum(totals[:, None], 1), 0)
    recall += np.where(both, matches / np.maximum(totals[None], 1), 0)
  precision /= np.maximum(orders, 1)
  recall /= np.maximum(orders, 1)
  factor = _BETA**2
  below = factor * precision + recall
  scores = (1 + factor) * precision * recall / np.where(below > 0, below, 1)
  return 100 * scores


def _counts(texts: Sequence[str], order: int) -> np.ndarray:
  """Returns how often each text has each n-gram, int64 [K, U]."""
  known: dict[str, int] = {}
  rows = [
    collections.Counter(
      known.setdefault(text[i : i + order], len(known))
      for i in range(len(text) - order + 1)
    )
    for text in texts
  ]
  counts = np.zeros([len(texts), max(len(known), 1)], np.int64)
  for row, found in zip(counts, rows, strict=True):
    for gram, number in found.items():
      row[gram] = number
  return counts
