"""Engines that compute a search: TensorFlow, or CTranslate2.

Both engines take token lists and find hypotheses behind one interface.
TensorFlow and CTranslate2 are imported only if they are used.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol

from official_transformer.decoding.hypotheses import FoundSequence
from official_transformer.errors import InputError
from official_transformer.model_params import TransformerParams

TENSORFLOW = "tensorflow"
CTRANSLATE2 = "ctranslate2"
ENGINES = (TENSORFLOW, CTRANSLATE2)
# Types of CTranslate2's weights; the first does not round them.
QUANTIZATIONS = (
  "float32",
  "int8",
  "int8_float16",
  "int16",
  "float16",
  "bfloat16",
)


@dataclasses.dataclass(frozen=True)
class Engine:
  """The choice of an engine.

  Attributes:
    name: one of `ENGINES`.
    quantization: one of `QUANTIZATIONS`; for CTranslate2.
    on_gpu: whether CTranslate2 computes on a GPU; TensorFlow decides this
      itself.
  """

  name: str = TENSORFLOW
  quantization: str = QUANTIZATIONS[0]
  on_gpu: bool = False

  def __post_init__(self) -> None:
    for value, known in (
      (self.name, ENGINES),
      (self.quantization, QUANTIZATIONS),
    ):
      if value not in known:
        raise InputError(f"{value!r} is none of {', '.join(known)}")


class SequenceSearcher(Protocol):
  """The interface of all engines; safe to call from several threads.

  Attributes:
    params: hyper-parameters of its model; they decide beam, alpha, patience and
      limit.
  """

  params: TransformerParams

  def search(
    self, sources: Sequence[Sequence[int]]
  ) -> list[list[FoundSequence]]:
    """Searches for each source's best sequences.

    Args:
      sources: token lists, each ending in EOS.

    Returns:
      For each source, one to K hypotheses, best first: the finished ones or, if
      none finished, those that were alive at the limit.

    Raises:
      InputError: if the memory does not suffice.
    """


def check_number(engine: str, models: int) -> None:
  """Raises an `InputError` if an engine cannot search with so many models."""
  if engine != TENSORFLOW and models > 1:
    raise InputError(
      "several models decide together in TensorFlow's search alone: leave "
      f"--engine={engine} out"
    )


def check_installed() -> None:
  """Raises an `InputError` if CTranslate2 is not installed."""
  try:
    import ctranslate2  # noqa: F401
  except ImportError as error:
    raise InputError(
      f"CTranslate2 cannot be imported ({error}): pip install "
      "'official-transformer[ctranslate2]'"
    ) from None
