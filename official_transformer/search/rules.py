"""What is drawn from, and what a search may not choose, as numbers.

Without TensorFlow, which takes seconds to import: a mistyped flag is answered
before.
"""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class SamplingRule:
  """What is drawn from.

  The order is that of Hugging Face's and CTranslate2's: the temperature, then
  the k most probable tokens, then of those the fewest that sum up to p.

  Attributes:
    temperature: divides log-probabilities; above 0.
    top_k: tokens to draw from; 0 is all.
    top_p: their probability, once it is reached; the token that crosses it
      stays (nucleus sampling, Holtzman et al. 2020).
  """

  temperature: float = 1.0
  top_k: int = 0
  top_p: float = 1.0


@dataclasses.dataclass(frozen=True)
class SearchControls:
  """What holds for all sentences; the defaults change nothing.

  Attributes:
    no_repeat_ngram_size: no hypothesis has an n-gram of so many tokens twice; 0
      allows it.
    repetition_penalty: logits of tokens that a hypothesis holds are divided by
      it if they are above 0, and multiplied if below (Keskar et al. 2019).
    min_length: tokens before a hypothesis may end.
  """

  no_repeat_ngram_size: int = 0
  repetition_penalty: float = 1.0
  min_length: int = 0


def length_penalty(length: Any, alpha: float) -> Any:
  """Returns `((5 + length) / 6)^alpha` (Wu et al. 2016, equation 14).

  It must never fall with the length: the search ends early on that condition.

  Args:
    length: tokens, EOS included; a number or a float tensor.
    alpha: strength of the normalisation; 0 is none.
  """
  return ((5.0 + length) / 6.0) ** alpha


def finishes_for_patience(beam_size: int, patience: float) -> int:
  """Returns how many hypotheses of a sentence have to end; at least 1."""
  return max(int(beam_size * patience + 0.5), 1)
