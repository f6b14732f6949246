"""The directions that a service translates in, each by a model of its own."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import NamedTuple

from official_transformer.errors import InputError

# Languages have no hyphen here: `zh_Hant-en=DIR`.
_DIRECTION = re.compile(r"\s*([A-Za-z]\w+)-([A-Za-z]\w+)=(.+)", re.DOTALL)


class Direction(NamedTuple):
  """A pair of languages, as codes such as `de` or `pt-BR`.

  Attributes:
    source: the language of what is translated.
    target: the language of a translation.
  """

  source: str
  target: str

  def __str__(self) -> str:
    """Returns it as `--model_dir` names it."""
    if self == UNNAMED:
      return ""
    return "-".join(code.replace("-", "_") for code in self)


# Of a model whose languages nobody has named.
UNNAMED = Direction("", "")


def parse_directions(model_dir: str) -> dict[Direction, str]:
  """Returns the value of `--model_dir` for each direction.

  Args:
    model_dir: such as `en-de=models/en_de,de-en=models/de_en`, or what names
      one model, or several that decide together, without a direction.

  Raises:
    InputError: if a direction is named twice, or only some are named.
  """
  found: dict[Direction, list[str]] = {}
  direction = UNNAMED
  for part in model_dir.split(","):
    if match := _DIRECTION.fullmatch(part):
      source, target, part = match.groups()
      direction = Direction(source.replace("_", "-"), target.replace("_", "-"))
      if direction in found:
        raise InputError(f"--model_dir names {source}-{target} twice")
      found[direction] = []
    found.setdefault(direction, []).append(part)
  if UNNAMED in found and len(found) > 1:
    raise InputError(
      f"--model_dir={model_dir}: {','.join(found[UNNAMED])} has no direction: "
      "name one for each, such as en-de=DIR,de-en=DIR"
    )
  return {direction: ",".join(parts) for direction, parts in found.items()}


def choose_direction(
  directions: Collection[Direction], source: str | None, target: str | None
) -> Direction:
  """Returns the direction that is meant.

  A language's variant stands for the language: `de-AT` for `de`.

  Args:
    directions: those there are.
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
      "--model_dir=en-de=DIR, say, or leave source and target out"
    )
  found = [
    direction
    for direction in directions
    if _fits(source, direction.source, {d.source for d in directions})
    and _fits(target, direction.target, {d.target for d in directions})
  ]
  if len(found) == 1:
    return found[0]
  known = ", ".join(map(str, directions))
  asked = f"from {source or 'any language'} to {target or 'any language'}"
  if found:
    raise InputError(f"name source and target: there are {known}")
  raise InputError(f"no model translates {asked}: there are {known}")


def _fits(asked: str | None, language: str, languages: Collection[str]) -> bool:
  """Returns whether a language is the one that is asked for."""
  if asked is None:
    return True
  asked = asked.lower().replace("_", "-")
  if asked not in {known.lower() for known in languages}:
    asked = asked.partition("-")[0]
  return language.lower() == asked
