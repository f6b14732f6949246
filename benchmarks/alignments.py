"""Which layer, row and joining of pieces tell best which words belong together.

    python benchmarks/alignments.py --model_dir=quickstart/model --demo
    python benchmarks/alignments.py --model_dir=MODEL --source=val.en \
      --target=val.de

With --demo, precision and recall of the true alignments of sentences of the
demo grammar. Of other text, of links that are hardly ever wrong: words that are
the same on both sides, and pairs of words that each occur in the same lines as
the other and as no third (Dice's coefficient of 0.7 or more, best both ways).
"""

from __future__ import annotations

import argparse
import itertools
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from demo_alignments import AlignedPair, draw_aligned

from official_transformer.decoding.alignment import (
  Link,
  Words,
  link_words,
  piece_weights,
  word_weights,
)
from official_transformer.decoding.attention import AttentionReader
from official_transformer.decoding.loading import (
  LoadedModel,
  load_model,
  open_model,
)
from official_transformer.decoding.options import AlignmentRule
from official_transformer.model_directory.directory import LATEST
from official_transformer.model_params import EOS_ID
from official_transformer.text.text_files import read_parallel
from official_transformer.text.words import words_of

LEAST_DICE = 0.7
_MARKS = ".,?!;:\"'()“”„"


def known_pairs(sources: list[str], targets: list[str]) -> list[AlignedPair]:
  """Returns lines with the links that their words alone give away."""
  lines = [
    (
      [s.of(a).strip(_MARKS).lower() for s in words_of(a)],
      [s.of(b).strip(_MARKS).lower() for s in words_of(b)],
    )
    for a, b in zip(sources, targets, strict=True)
  ]
  counts: list[Counter[str]] = [Counter(), Counter()]
  both: Counter[tuple[str, ...]] = Counter()
  for pair in lines:
    for count, words in zip(counts, pair, strict=True):
      count.update(set(words))
    both.update(itertools.product(*map(set, pair)))
  best: list[dict[str, tuple[str, ...]]] = [{}, {}]
  dice = {
    pair: 2 * n / (counts[0][pair[0]] + counts[1][pair[1]])
    for pair, n in both.items()
    if n > 2
  }
  for linked, value in dice.items():
    for side, word in enumerate(linked):
      rival = best[side].get(word)
      if rival is None or value > dice[rival]:
        best[side][word] = linked
  dictionary = {
    pair
    for pair, value in dice.items()
    if value >= LEAST_DICE and all(best[n][pair[n]] == pair for n in range(2))
  }
  found = []
  for (a, b), source, target in zip(lines, sources, targets, strict=True):
    sure = {
      Link(i, j)
      for i, x in enumerate(a)
      for j, y in enumerate(b)
      if x
      and a.count(x) == b.count(y) == 1
      and ((x, y) in dictionary or (x == y and len(x) > 2))
    }
    found.append(AlignedPair(source, target, sure, sure))
  return found


class Reading(NamedTuple):
  """One way to read alignments from attention.

  Attributes:
    name: of it.
    layers: whose attention.
    heads: whose attention, of each layer.
    row: `own` predicts a piece, `next` reads it.
    mutual: whether weights are multiplied by their share of the column.
  """

  name: str
  layers: tuple[int, ...]
  heads: tuple[int, ...]
  row: str = "own"
  mutual: bool = False

  def piece_weights(self, cross: np.ndarray) -> np.ndarray:
    """Returns the weights of pieces, [T - 1, S - 1]."""
    shift = self.row == "next"
    weights = cross[list(self.layers)][:, list(self.heads)].mean(1)
    weights = weights[:, shift:, :-1][:, : cross.shape[2] - 1]
    if self.mutual:
      weights = weights * weights / (weights.sum(1, keepdims=True) + 1e-6)
    return weights.sum(0)


def readings(layers: int, heads: int) -> Iterable[Reading]:
  """Yields what is compared."""
  every, all_heads = tuple(range(layers)), tuple(range(heads))
  for mutual in (False, True):
    for row in ("own", "next"):
      for layer in every:
        yield Reading(f"layer {layer}", (layer,), all_heads, row, mutual)
      yield Reading("all layers", every, all_heads, row, mutual)
      for layer, head in itertools.product(every, all_heads):
        name = f"layer {layer} head {head}"
        yield Reading(name, (layer,), (head,), row, mutual)


def by_any_piece(
  weights: np.ndarray, source: Words, target: Words
) -> set[Link]:
  """Links words if any piece of the one attends most to one of the other."""
  found = set()
  for piece, row in enumerate(weights):
    for s in source.of_piece[int(row.argmax())]:
      found |= {Link(s, t) for t in target.of_piece[piece]}
  return found


class AlignmentScores(NamedTuple):
  """How good alignments are: shares, and the error rate (Och and Ney 2003)."""

  precision: float
  recall: float
  error: float


def measure(
  pairs: list[AlignedPair], found: list[set[Link]]
) -> AlignmentScores:
  """Scores alignments.

  Target words of which nothing is known count for nothing.
  """
  hits = sure_hits = links = sure = 0
  for pair, alignment in zip(pairs, found, strict=True):
    known = {link.target for link in pair.possible}
    alignment = {link for link in alignment if link.target in known}
    hits += len(alignment & pair.possible)
    sure_hits += len(alignment & pair.sure)
    links += len(alignment)
    sure += len(pair.sure)
  error = 1 - (hits + sure_hits) / (links + sure)
  return AlignmentScores(hits / max(links, 1), sure_hits / max(sure, 1), error)


class Attended(NamedTuple):
  """Pairs as a model attends to them, and their words."""

  crosses: list[np.ndarray]
  words: list[tuple[Words, Words]]


def load(model_dir: str, checkpoint: str = LATEST) -> LoadedModel:
  """Loads a model directory's checkpoint."""
  directory, description = open_model(model_dir)
  return load_model(directory, description, checkpoint=checkpoint)


def attend(model: LoadedModel, pairs: list[AlignedPair]) -> Attended:
  """Computes attention, by teacher forcing of the targets."""
  source, target = model.tokenizers
  encoded = [(source.encode(p.english), target.encode(p.german)) for p in pairs]
  reader = AttentionReader(model.transformer, model.tokenizers)
  return Attended(
    reader.read_cross([([*a, EOS_ID], [*b, EOS_ID]) for a, b in encoded]),
    [
      (Words.of_source(source, p.english), Words.of_source(target, p.german))
      for p in pairs
    ],
  )


def scores_of(
  model: LoadedModel, pairs: list[AlignedPair], rule: Reading | AlignmentRule
) -> AlignmentScores:
  """Scores one rule, its words joined as the product does."""
  return measure(pairs, join(attend(model, pairs), rule)["by words"])


def join(
  attended: Attended, rule: Reading | AlignmentRule
) -> dict[str, list[set[Link]]]:
  """Returns the links of each pair, by how pieces are joined to words."""
  if isinstance(rule, Reading):
    weights = [rule.piece_weights(cross) for cross in attended.crosses]
  else:
    weights = [piece_weights(rule, cross) for cross in attended.crosses]
  both = list(zip(weights, attended.words, strict=True))
  return {
    "by words": [set(link_words(word_weights(w, *sides))) for w, sides in both],
    "any piece": [by_any_piece(w, *sides) for w, sides in both],
  }


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--model_dir", required=True)
  parser.add_argument("--checkpoint", default=LATEST)
  parser.add_argument("--demo", action="store_true")
  parser.add_argument("--pairs", type=int, default=50)
  parser.add_argument("--source")
  parser.add_argument("--target")
  parser.add_argument("--best_heads", type=int, default=5)
  given = parser.parse_args()
  if given.demo:
    pairs = draw_aligned(seed=12345, count=given.pairs)
  else:
    pairs = known_pairs(*read_parallel(given.source, given.target))
  model = load(given.model_dir, given.checkpoint)
  attended = attend(model, pairs)
  sure = sum(len(p.sure) for p in pairs)
  print(f"{len(pairs)} pairs, {sure} sure links")
  print(f"{'':19}{'row':>6}{'mutual':>8} {'joined':>10} precision recall   AER")
  heads = []
  params = model.transformer.params
  for reading in readings(params.num_hidden_layers, params.num_heads):
    for how, found in join(attended, reading).items():
      scores = measure(pairs, found)
      line = f"{reading.name:19}{reading.row:>6}"
      line += f"{'yes' if reading.mutual else 'no':>8} {how:>10}    "
      line += "{:.3f}  {:.3f} {:.3f}".format(*scores)
      if len(reading.heads) > 1:
        print(line)
      else:
        heads.append((scores.error, line))
  print(f"the best {given.best_heads} single heads:")
  for _, line in sorted(heads)[: given.best_heads]:
    print(line)
  chosen = scores_of(model, pairs, AlignmentRule())
  print("what --alignments does:", "{:.3f} {:.3f} {:.3f}".format(*chosen))


if __name__ == "__main__":
  main()
