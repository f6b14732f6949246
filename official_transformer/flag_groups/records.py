"""Records that flags are made from: a field is a flag.

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class DemoOptions(Options):
      heading = "demo_corpus"
      output_dir: str = flag(REQUIRED, "Where to write.", path=True)
      seed: int = flag(1, "Of the grammar.", lower_bound=0)

    define_flags(DemoOptions)  # --output_dir and --seed
    options = parsed(DemoOptions)  # Once absl has read the command line.

What a command does takes the instance: it never looks at flags.
"""

from __future__ import annotations

import dataclasses
import inspect
import types
import typing
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from absl import flags

from official_transformer.flag_groups._conventions import (
  Effect,
  Idle,
  define,
  start_section,
)

REQUIRED = dataclasses.MISSING
_KEY = "flag"


@dataclasses.dataclass(frozen=True)
class FlagSpec:
  """What a flag has beside its name, its type and its default.

  Attributes:
    text: its help.
    definer: absl's own arguments: short name, bounds, whether case counts.
    choices: what a word may be; none is anything.
    repeated: whether it may be given several times, instead of a list.
    path: whether it names files: `~` is the home directory then.
    effect: when it changes anything.
  """

  text: str
  definer: dict[str, Any]
  choices: tuple[str, ...]
  repeated: bool
  path: bool
  effect: Effect


def flag(
  default: Any,
  text: str,
  *idle: tuple[Callable[[Any], bool], str],
  choices: tuple[str, ...] = (),
  repeated: bool = False,
  path: bool = False,
  **definer: Any,
) -> Any:
  """Returns the field of a flag.

  Args:
    default: its value if it is not given; `REQUIRED` if it must be.
    text: its help.
    *idle: what may keep it from having an effect: a predicate of all flags'
      values, and the reason, which follows "--NAME has no effect: ".
    choices: what a word may be.
    repeated: whether it may be given several times, instead of a list.
    path: whether it names files, between commas if several.
    **definer: absl's own arguments, such as `short_name` and `lower_bound`.
  """
  effect = Effect(idle=tuple(Idle(*reason) for reason in idle))
  spec = FlagSpec(text, definer, choices, repeated, path, effect)
  return dataclasses.field(default=default, metadata={_KEY: spec})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """What a command line says; a command's record has its flags as fields.

  What contradicts itself is said by `__post_init__`, which a record may have:
  before anything slow is imported.

  Attributes:
    given: the names of the flags that were given.
  """

  # Stands above the flags that a class adds, in the manual. Those of a class
  # without one stand under that of the record.
  heading: ClassVar[str] = ""

  given: frozenset[str] = dataclasses.field(
    default=frozenset(), compare=False, repr=False
  )


Record = TypeVar("Record", bound=Options)


def fields_of(record: type[Options]) -> dict[str, dict[str, FlagSpec]]:
  """Returns a record's flags by the heading they stand under."""
  specs = {
    field.name: field.metadata[_KEY]
    for field in dataclasses.fields(record)
    if _KEY in field.metadata
  }
  found: dict[str, dict[str, FlagSpec]] = {}
  for owner in record.__mro__:
    for name in inspect.get_annotations(owner):
      if name in specs:
        heading = owner.__dict__.get("heading", record.heading)
        found.setdefault(heading, {})[name] = specs.pop(name)
  return found


def define_flags(record: type[Options], effect: Effect | None = None) -> None:
  """Defines a record's flags.

  Args:
    record: whose fields they are.
    effect: which modes read them, where a command has modes.
  """
  hints = typing.get_type_hints(record)
  defaults = {field.name: field.default for field in dataclasses.fields(record)}
  for heading, specs in fields_of(record).items():
    if heading:
      start_section(heading)
    for name, spec in specs.items():
      _define(name, hints[name], defaults[name], spec, effect)


def _define(
  name: str, hint: Any, default: Any, spec: FlagSpec, effect: Effect | None
) -> None:
  kind = _kind(hint)
  definer: Callable[..., Any] = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_enum if spec.choices else flags.DEFINE_string,
    tuple: flags.DEFINE_multi_string if spec.repeated else flags.DEFINE_list,
  }[kind]
  arguments = dict(spec.definer)
  if spec.choices:
    arguments["enum_values"] = list(spec.choices)
  if default is REQUIRED:
    default, arguments["required"] = None, True
  if isinstance(default, tuple):
    default = list(default)
  both = spec.effect
  if effect is not None:
    both = dataclasses.replace(effect, idle=(*effect.idle, *both.idle))
  define(definer, name, default, spec.text, both, spec.path, **arguments)


def _kind(hint: Any) -> type:
  """Returns what a field's values are, when there is one: `int`, say."""
  parts = [hint]
  if isinstance(hint, types.UnionType):
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
  (part,) = parts
  return typing.get_origin(part) or part


def parsed(record: type[Record]) -> Record:
  """Returns what the command line said, as a record.

  Raises:
    InputError: if it contradicts itself.
  """
  values: dict[str, Any] = {}
  given = set()
  for specs in fields_of(record).values():
    for name in specs:
      value = flags.FLAGS[name].value
      values[name] = tuple(value) if isinstance(value, list) else value
      if flags.FLAGS[name].present:
        given.add(name)
  return record(given=frozenset(given), **values)
