"""How every flag is defined: its help text, and when it does nothing.

All flags of the official model are accepted, so that its scripts run as they
stand; one that changes nothing says so once, at start. What says so stands
where the flag is defined.
"""

from __future__ import annotations

import dataclasses
import os
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

from absl import flags


def help_wrap(text: str) -> str:
  """Wraps a help text to the width of absl's help page."""
  return flags.text_wrap(textwrap.dedent(text), length=80)


@dataclasses.dataclass(frozen=True)
class Idle:
  """A reason for which a flag may do nothing.

  Attributes:
    applies: takes the values of all flags.
    reason: follows "--NAME has no effect: ".
  """

  applies: Callable[[flags.FlagValues], bool]
  reason: str


@dataclasses.dataclass(frozen=True)
class Effect:
  """When a flag that was given changes anything.

  Attributes:
    modes: the values of `--mode` that read it; empty means all of them.
    never: why nothing reads it any more; empty if something does.
    idle: reasons for which it may still do nothing.
  """

  modes: tuple[str, ...] = ()
  never: str = ""
  idle: tuple[Idle, ...] = ()

  def idle_if(
    self, applies: Callable[[flags.FlagValues], bool], reason: str
  ) -> Effect:
    """Returns the same with one more reason to do nothing."""
    return dataclasses.replace(self, idle=(*self.idle, Idle(applies, reason)))


def read_by(*modes: str) -> Effect:
  """Returns the effect of a flag that some modes read."""
  return Effect(modes)


def accepted_only(reason: str) -> Effect:
  """Returns the effect of a flag that nothing reads any more."""
  return Effect(never=reason)


@dataclasses.dataclass(frozen=True)
class Definition:
  """What is known of a flag beside absl's own record.

  Attributes:
    name: of the flag.
    section: the heading under which the documentation has it.
    text: its help, on one line.
    effect: when it changes anything.
    path: whether it names files.
  """

  name: str
  section: str
  text: str
  effect: Effect
  path: bool


# Flags are the process's, and so is what is known of them.
_definitions: dict[str, Definition] = {}
_section = ""


def start_section(title: str) -> None:
  """Gives the flags defined from here on a heading in the documentation."""
  global _section
  _section = title


def define(
  definer: Callable[..., Any],
  name: str,
  default: Any,
  text: str,
  effect: Effect = Effect(),  # It is frozen.
  path: bool = False,
  **options: Any,
) -> None:
  """Defines a flag.

  Args:
    definer: one of absl's, such as `flags.DEFINE_integer`.
    name: of the flag.
    default: its value if it is not given.
    text: its help text.
    effect: when it changes anything.
    path: whether it names files, between commas if several.
    **options: `short_name`, `lower_bound`, `enum_values` and what else the
      definer takes.
  """
  definer(name=name, default=default, help=help_wrap(text), **options)
  _definitions[name] = Definition(name, _section, text, effect, path)


def definition_of(name: str) -> Definition:
  """Returns what is known of a flag.

  Raises:
    KeyError: if it was not defined by `define`.
  """
  return _definitions[name]


def expand_home(values: flags.FlagValues) -> None:
  """Puts the home directory in the place of `~` in all paths.

  A shell does so for words that begin with it, and leaves it as it is behind
  "=" and behind commas.
  """
  for name in values:
    flag = values[name]
    if name not in _definitions or not _definitions[name].path:
      continue
    if isinstance(flag.value, str):
      flag.value = _expanded(flag.value)
    elif flag.value is not None:
      flag.value = [_expanded(part) for part in flag.value]


def _expanded(paths: str) -> str:
  return ",".join(map(os.path.expanduser, paths.split(",")))


def without_effect(values: flags.FlagValues) -> Iterator[str]:
  """Yields one line for each flag that was given and changes nothing."""
  # translate.py has no modes: it predicts.
  mode = values["mode"].value if "mode" in values else "predict"
  for name in sorted(values):
    if not values[name].present or name not in _definitions:
      continue
    effect = _definitions[name].effect
    if effect.never:
      yield f"--{name} has no effect: {effect.never}"
    elif effect.modes and mode not in effect.modes:
      yield f"--{name} has no effect with --mode={mode}"
    else:
      reasons = (i.reason for i in effect.idle if i.applies(values))
      if reason := next(reasons, None):
        yield f"--{name} has no effect: {reason}"
