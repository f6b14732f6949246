"""The directions that a service translates in, each by a model of its own."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import NamedTuple

from official_transformer.errors import InputError
from official_transformer.storage import file_system

# A language has no hyphen here: `zh_Hant-en=DIR`.
_CODE = r"([A-Za-z]{2,3}(?:_[A-Za-z0-9]{2,8})*)"
_DIRECTION = re.compile(rf"\s*{_CODE}-{_CODE}=(.+)", re.DOTALL)


class Direction(NamedTuple):
  """A pair of languages, as codes such as `de` or `pt-BR`.

  Attributes:
    source: language of the source.
    target: the language of a translation.
  """

  source: str
  target: str

  def __str__(self) -> str:
    """Returns the direction in the form of `--model_dir`."""
    if self == UNNAMED:
      return ""
    return "-".join(code.replace("-", "_") for code in self)


# Of a model whose languages nobody has named.
UNNAMED = Direction("", "")


def parse_directions(model_dir: str) -> dict[Direction, str]:
  """Returns the value of `--model_dir` for each direction.

  Args:
    model_dir: such as `en-de=models/en_de,de-en=models/de_en`; or one model, or
      several that decide together, without a direction.

  Raises:
    InputError: if a direction is named twice, or only some are named.
  """
  found: dict[Direction, list[str]] = {}
  direction = UNNAMED
  for part in model_dir.split(","):
    is_path = "=" not in part or file_system.is_directory(part.strip())
    if not is_path:
      direction, part = _named(part)
      if direction in found:
        raise InputError(f"--model_dir names {direction} twice")
    found.setdefault(direction, []).append(os.path.expanduser(part))
  if UNNAMED in found and len(found) > 1:
    raise InputError(
      f"--model_dir={model_dir}: {','.join(found[UNNAMED])} has no direction: "
      "name one for each, such as en-de=DIR,de-en=DIR"
    )
  return {direction: ",".join(parts) for direction, parts in found.items()}


def _named(part: str) -> tuple[Direction, str]:
  """Returns the direction and the directory of a part of a flag."""
  match = _DIRECTION.fullmatch(part)
  if match is None:
    raise InputError(
      f"--model_dir={part}: there is no such directory, and a direction is "
      "written as en-de=DIR or zh_Hant-en=DIR"
    )
  source, target, path = match.groups()
  return Direction(_as_code(source), _as_code(target)), path


def _as_code(language: str) -> str:
  """Returns a code as the standard writes it (BCP 47): `zh-Hant`, `pt-BR`."""
  first, *others = language.lower().split("_")
  cases = {2: str.upper, 4: str.title}
  return "-".join([first, *(cases.get(len(o), str)(o) for o in others)])


def choose_direction(
  directions: Collection[Direction], source: str | None, target: str | None
) -> Direction:
  """Returns the direction that is meant.

  A variant matches its language, and a language its only variant: `de-AT`
  matches `de`, and `pt` matches `pt-BR`.

  Args:
    directions: all directions of the service.
    source: a language; None is any.
    target: a language; None is any.

  Raises:
    InputError: if there is no such direction, or more than one.
  """
  if UNNAMED in directions:
    if source is None and target is None:
      return UNNAMED
    raise InputError(
      "this service does not know the languages of its model: start it with "
      "a direction, such as --model_dir=en-de=DIR, or leave source and "
      "target out"
    )
  sources = _meant(source, {d.source for d in directions})
  targets = _meant(target, {d.target for d in directions})
  found = [d for d in directions if d.source in sources and d.target in targets]
  if len(found) == 1:
    return found[0]
  known = ", ".join(map(str, directions))
  asked = f"from {source or 'any language'} to {target or 'any language'}"
  if found:
    raise InputError(f"name source and target: there are {known}")
  raise InputError(f"no model translates {asked}: there are {known}")


def _meant(asked: str | None, languages: Collection[str]) -> Collection[str]:
  """Returns the languages that a code may mean; None means any."""
  if asked is None:
    return languages
  asked = asked.lower().replace("_", "-")
  base = asked.partition("-")[0]
  exact = [known for known in languages if known.lower() == asked]
  whole = [known for known in languages if known.lower() == base]
  variants = [k for k in languages if k.lower().partition("-")[0] == base]
  return exact or whole or (variants if len(variants) == 1 else [])
