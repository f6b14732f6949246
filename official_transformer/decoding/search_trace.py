"""A record of a beam search: the candidates of every step.

The search runs eagerly, one sentence at a time, and tells its candidates: it is
slower, but it is the same search.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from official_transformer.decoding.attention import pieces_with_end
from official_transformer.decoding.hypotheses import found_sequences
from official_transformer.model.transformer import Transformer
from official_transformer.model_params import EOS_ID
from official_transformer.search.beam_search import length_normalization
from official_transformer.search.state import SearchHooks, SearchStep
from official_transformer.text.tokenizer import Tokenizer

# Fates of a candidate.
KEPT, FINISHED, PRUNED = "kept", "finished", "pruned"


@dataclasses.dataclass(frozen=True)
class TracedCandidate:
  """One of the 2K best continuations of a step.

  Attributes:
    parent: the beam that it continues, from 0.
    piece: the token that it adds.
    log_probability: log-probability of all its pieces so far, by the natural
      logarithm.
    step_log_probability: log-probability of the new piece.
    fate: `kept`, it is alive; `finished`, it has ended and is among the best
      that have; `pruned`, it is neither.
    beam: if it is kept, which it is from now on.
    score: if it has ended, normalised by length.
  """

  parent: int
  piece: str
  log_probability: float
  step_log_probability: float
  fate: str
  beam: int | None = None
  score: float | None = None


@dataclasses.dataclass(frozen=True)
class TracedHypothesis:
  """A hypothesis that the search returns.

  Attributes:
    pieces: pieces of the hypothesis, the end among them if it has ended.
    text: text of the hypothesis.
    score: normalised by length if it is finished.
    finished: whether it has ended.
  """

  pieces: list[str]
  text: str
  score: float
  finished: bool


@dataclasses.dataclass(frozen=True)
class SearchTrace:
  """A whole search.

  Attributes:
    source: pieces of the source, the end among them.
    beam_size: K.
    alpha: alpha of the normalisation of lengths.
    limit: largest number of pieces of a hypothesis.
    steps: the candidates of each step, best first.
    found: the hypotheses that it returns, best first.
  """

  source: list[str]
  beam_size: int
  alpha: float
  limit: int
  steps: list[list[TracedCandidate]]
  found: list[TracedHypothesis]

  def to_json(self) -> dict[str, Any]:
    """Returns the trace as a dictionary for JSON."""
    return dataclasses.asdict(self)

  def best_path(self) -> list[int]:
    """Returns, for each step, which candidate the best hypothesis took."""
    pieces = self.found[0].pieces
    paths: dict[int, list[int]] = {0: []}  # Of each beam that is alive.
    texts: dict[int, list[str]] = {0: []}
    for candidates in self.steps:
      next_paths, next_texts = {}, {}
      for number, candidate in enumerate(candidates):
        if candidate.parent not in paths:
          continue
        path = [*paths[candidate.parent], number]
        text = [*texts[candidate.parent], candidate.piece]
        if text == pieces and (
          candidate.fate == FINISHED or not self.found[0].finished
        ):
          return path
        if candidate.beam is not None:
          next_paths[candidate.beam] = path
          next_texts[candidate.beam] = text
      paths, texts = next_paths, next_texts
    return []


class SearchTracer:
  """Watches the searches of one model.

  Attributes:
    transformer: the model.
    source: tokenizer of the source.
    target: tokenizer of the target.
  """

  def __init__(
    self, transformer: Transformer, source: Tokenizer, target: Tokenizer
  ) -> None:
    self.transformer = transformer
    self.source = source
    self.target = target

  def trace(self, ids: Sequence[int]) -> SearchTrace:
    """Searches for a source's translation.

    Args:
      ids: ending in EOS.
    """
    params = self.transformer.params
    steps: list[list[TracedCandidate]] = []
    result = self.transformer.beam_search(
      tf.constant([list(ids)], tf.int32),
      self.target.vocab_size,
      hooks=SearchHooks(lambda step: steps.append(self._candidates(step))),
    )
    rows, scores, flags = (part[0].numpy().tolist() for part in result)
    limit = len(ids) + params.extra_decode_length
    found = [
      TracedHypothesis(
        self._pieces([*f.ids, EOS_ID] if f.finished else f.ids),
        self.target.decode(f.ids),
        f.score,
        f.finished,
      )
      for f in found_sequences(rows, scores, flags)
    ]
    return SearchTrace(
      pieces_with_end(self.source, ids),
      params.beam_size,
      params.alpha,
      min(limit, params.longest_output or limit),
      steps,
      found,
    )

  def _pieces(self, ids: Sequence[int]) -> list[str]:
    return pieces_with_end(self.target, ids)

  def _candidates(self, step: SearchStep) -> list[TracedCandidate]:
    """Reads the candidates of one step of a sentence."""
    candidates = step.candidates
    length = int(step.index) + 1
    norm = float(
      length_normalization(self.transformer.params.alpha, tf.constant(length))
    )
    before = step.before.alive_log_probs[0].numpy().tolist()
    finished = {
      tuple(row)
      for row, flag in zip(
        step.after.finished_ids[0].numpy().tolist(),
        step.after.finished_flags[0].numpy().tolist(),
        strict=True,
      )
      if flag
    }
    told = []
    alive = 0
    for row, token, total, parent in zip(
      candidates.ids[0].numpy().tolist(),
      candidates.tokens[0].numpy().tolist(),
      candidates.log_probs[0].numpy().tolist(),
      candidates.parents[0].numpy().tolist(),
      strict=True,
    ):
      if total == float("-inf"):
        continue  # It is no hypothesis.
      fate, beam, score = PRUNED, None, None
      if token == EOS_ID:
        score = total / norm
        fate = FINISHED if tuple(row) in finished else PRUNED
      elif alive < len(before):
        fate, beam = KEPT, alive
        alive += 1
      told.append(
        TracedCandidate(
          parent,
          self._pieces([token])[0],
          total,
          total - before[parent],
          fate,
          beam,
          score,
        )
      )
    return told
