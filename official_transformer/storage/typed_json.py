"""Records read from JSON that anybody may have written."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, TypeVar

Record = TypeVar("Record")

# Errors of reading JSON that is too deep, too large, or of another structure.
DAMAGE = (
  ValueError,
  KeyError,
  TypeError,
  AttributeError,
  OverflowError,
  RecursionError,
)

# Types of values for each type of field. Python counts bool as int.
_MAY_BE: Mapping[str, tuple[type, ...]] = {
  "int": (int,),
  "float": (int, float),
  "str": (str,),
  "bool": (bool,),
}


def read_record(kind: type[Record], content: Any) -> Record:
  """Makes a frozen record of a JSON object.

  Args:
    kind: a dataclass of numbers, strings and truth values.
    content: fields of the record by name; fields with a default may be missing.

  Raises:
    TypeError: if it is no object, or a field is unknown, missing or of
      another type.
  """
  if not isinstance(content, Mapping):
    raise TypeError(f"{kind.__name__} is no object but {content!r:.50}")
  values = {}
  for field in dataclasses.fields(kind):  # type: ignore[arg-type]
    if field.name not in content:
      continue
    value = content[field.name]
    name, _, optional = str(field.type).partition(" | ")
    is_none = value is None and optional == "None"
    fits = isinstance(value, _MAY_BE[name]) and (
      name == "bool" or not isinstance(value, bool)
    )
    if not (fits or is_none):
      raise TypeError(f"{field.name} is {value!r:.50}, must be of type {name}")
    values[field.name] = float(value) if name == "float" and fits else value
  unknown = content.keys() - {f.name for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
  if unknown:
    raise TypeError(f"{kind.__name__} has no {', '.join(sorted(unknown)):.50}")
  return kind(**values)


def check_plain_name(name: str) -> None:
  """Raises a `ValueError` unless a name leads to a file beside its owner."""
  if name in ("", ".", "..") or any(c in name for c in "/\\\0"):
    raise ValueError(f"{name!r:.80} is no plain file name")
