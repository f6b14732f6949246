"""Lines too long for the memory, known before it is gone.

Attention takes memory by the square of a line's length. Linux grants more
memory than it has, and kills a process that uses it, without an error message.

Shapes: B lines, L tokens, N heads.
"""

from __future__ import annotations

from official_transformer.errors import InputError
from official_transformer.hardware.memory import (
  available_bytes,
  computes_on_cpu,
)
from official_transformer.model_params import TransformerParams

# Tensors [B, N, L, L] that exist at a time: logits, scaled logits, weights.
_COPIES = 3
_FLOAT32 = 4


def attention_bytes(params: TransformerParams, lines: int, length: int) -> int:
  """Returns the bytes of attention between all positions of lines."""
  return _COPIES * _FLOAT32 * lines * params.num_heads * length * length


def lacks_memory(params: TransformerParams, lines: int, length: int) -> bool:
  """Returns whether attention needs more memory than is free, if known."""
  needed = attention_bytes(params, lines, length)
  if needed < 2**28 or not computes_on_cpu():  # GPUs report it themselves.
    return False
  available = available_bytes()
  return available is not None and needed > available


def lacks_positions(params: TransformerParams, longest: int) -> bool:
  """Returns whether a model has learnt too few positions for a text."""
  return params.longest is not None and longest > params.longest


def check_positions(params: TransformerParams, longest: int) -> None:
  """Raises an `InputError` if a model has learnt too few positions."""
  if lacks_positions(params, longest):
    raise InputError(
      f"a line of {longest} tokens, its end included, is longer than the "
      f"{params.longest} positions that the model has learnt (max_positions in "
      "model.json): let long lines be split, which those with a prefix or "
      "required phrases are not, or take shorter ones"
    )


def check_batch(params: TransformerParams, lines: int, longest: int) -> None:
  """Refuses a batch that cannot be searched.

  Args:
    params: hyper-parameters of the model.
    lines: decoded together.
    longest: tokens of the longest line.

  Raises:
    InputError: if positions or memory do not suffice.
  """
  check_positions(params, longest)
  if lacks_memory(params, lines, longest):
    raise InputError(
      f"a line of {longest} tokens is too long for the memory there is, of "
      "which it takes a share by the square of its length: let long lines be "
      "split"
    )


def out_of_memory(lines: int, longest: int, said: object) -> InputError:
  """Returns the error of a search that lacked memory.

  Args:
    lines: decoded together.
    longest: tokens of the longest line.
    said: message of the library.
  """
  return InputError(
    f"out of memory while decoding {lines} lines of up to {longest} tokens "
    f"({said}); lower --decode_batch_tokens or --beam_size, or let long lines "
    "be split"
  )
