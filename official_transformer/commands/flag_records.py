"""Records that flags are made from: a field is a flag.

    @dataclasses.dataclass(frozen=True, kw_only=True)
    class DemoOptions(Options):
      heading = "demo_corpus"
      output_dir: str = flag(REQUIRED, "Where to write.", path=True)
      seed: int = flag(1, "Of the grammar.", lower_bound=0)

    define_flags(DemoOptions)  # --output_dir and --seed
    options = parsed(DemoOptions)  # Once absl has read the command line.

The work of a command gets the record and never reads flags itself. All flags of
the official model are accepted, so that its scripts run unchanged; a flag
without effect is reported once, at start. The condition and the reason are part
of the flag's definition.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import os
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

from absl import flags

REQUIRED = dataclasses.MISSING
MODE = "mode"
_KEY = "flag"

# Takes a command's record; a reason follows "--NAME has no effect: ".
IdleReason = tuple[Callable[[Any], bool], str]


@dataclasses.dataclass(frozen=True)
class FlagSpec:
  """The properties of a flag besides name, type and default.

  Attributes:
    text: help of the flag, on one line.
    idle: conditions under which the flag has no effect.
    never: why nothing reads it any more; empty if something does.
    definer: absl's own arguments: short name, bounds, whether case counts.
    choices: the possible values of a text flag; empty if any is possible.
    repeated: whether it may be given several times, instead of a list.
    path: whether it names files: `~` is the home directory then.
  """

  text: str
  idle: tuple[IdleReason, ...] = ()
  never: str = ""
  definer: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  choices: tuple[str, ...] = ()
  repeated: bool = False
  path: bool = False


def flag(
  default: Any,
  text: str,
  *idle: IdleReason,
  never: str = "",
  choices: tuple[str, ...] = (),
  repeated: bool = False,
  path: bool = False,
  **definer: Any,
) -> Any:
  """Returns the field of a flag.

  Args:
    default: value of the flag if it is not given; `REQUIRED` if it must be.
    text: help of the flag.
    *idle: condition under which the flag has no effect: a predicate of the
      record, and the reason, which follows "--NAME has no effect: ".
    never: why nothing reads the flag any more.
    choices: the possible values of a text flag.
    repeated: whether it may be given several times, instead of a list.
    path: whether it names files, between commas if several.
    **definer: absl's own arguments, such as `short_name` and `lower_bound`.
  """
  spec = FlagSpec(text, idle, never, definer, choices, repeated, path)
  return dataclasses.field(default=default, metadata={_KEY: spec})


class Demand(typing.NamedTuple):
  """A condition on flags that absl checks as it reads them, as upstream does.

  Attributes:
    names: names of the flags.
    holds: takes their values by name.
    message: error if the condition does not hold.
  """

  names: tuple[str, ...]
  holds: Callable[[Mapping[str, Any]], bool]
  message: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """The base of all records of a command's flags, one field a flag.

  A record may have a `__post_init__` that reports contradictions before any
  slow import.

  Attributes:
    given: the names of the flags that were given, other modes' among them.
  """

  # Heading of the class's flags in the manual. Flags of a class without one are
  # listed under the heading of the record.
  heading: ClassVar[str] = ""
  # Purpose of a mode, on one line without a full stop, and the flags that
  # --help lists first.
  summary: ClassVar[str] = ""
  most_used: ClassVar[tuple[str, ...]] = ()
  demands: ClassVar[tuple[Demand, ...]] = ()

  given: frozenset[str] = dataclasses.field(
    default=frozenset(), compare=False, repr=False
  )

  @property
  def needs_tensorflow(self) -> bool:
    """Whether TensorFlow, which takes seconds, is imported before it runs."""
    return True

  def __post_init__(self) -> None:
    """Ends the chain of `__post_init__` methods of records."""


Record = TypeVar("Record", bound=Options)


@dataclasses.dataclass(frozen=True)
class Modes:
  """A command with several modes, chosen by `--mode`.

  Attributes:
    records: the record of each mode, the default first. Every mode accepts the
      flags of all; a flag that the mode's record lacks has no effect.
    headings: headings of all records, in the manual's order; `--mode` is listed
      under the first.
    most_used: flags that `--help` lists if no mode is given.
    accepted: the record of flags that nothing reads any more.
  """

  records: Mapping[str, type[Options]]
  headings: tuple[str, ...]
  most_used: tuple[str, ...] = ()
  accepted: type[Options] = Options


Command = type[Record] | Modes


@dataclasses.dataclass(frozen=True)
class Definition:
  """A flag's place in the manual, its specification, and its modes.

  Attributes:
    section: heading of its section.
    spec: specification of its field.
    modes: modes that read the flag; none is all.
  """

  section: str
  spec: FlagSpec
  modes: tuple[str, ...] = ()


# Flags are global to the process, and so are their definitions.
_definitions: dict[str, Definition] = {}


def definition_of(name: str) -> Definition:
  """Returns the definition of a flag.

  Raises:
    KeyError: if no record has it.
  """
  return _definitions[name]


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


def spec_of(record: type[Options], name: str) -> FlagSpec:
  """Returns the properties of a record's flag."""
  return _field(record, name).metadata[_KEY]


def _field(record: type[Options], name: str) -> dataclasses.Field:
  (field,) = (f for f in dataclasses.fields(record) if f.name == name)
  return field


def define_flags(record: type[Options], **defaults: Any) -> None:
  """Defines a record's flags.

  Args:
    record: whose fields they are.
    **defaults: others than the fields have.
  """
  hints = typing.get_type_hints(record)
  for section, specs in fields_of(record).items():
    for name, spec in specs.items():
      definition = Definition(section, spec)
      _define(record, name, definition, hints[name], defaults.get(name))
  _demand([record])


def define_modes(command: Modes) -> None:
  """Defines `--mode`, and the flags of all its records."""
  text = " ".join(f"{m}: {r.summary}." for m, r in command.records.items())
  spec = FlagSpec(text, choices=tuple(command.records))
  _definitions[MODE] = Definition(command.headings[0], spec)
  flags.DEFINE_enum(MODE, spec.choices[0], list(spec.choices), text)
  found: dict[str, dict[str, type[Options]]] = {
    heading: {} for heading in command.headings
  }
  readers: dict[str, list[str]] = {}
  for mode, record in command.records.items():
    for section, specs in fields_of(record).items():
      for name in specs:
        found[section].setdefault(name, record)
        readers.setdefault(name, []).append(mode)
  for section, specs in fields_of(command.accepted).items():
    for name, spec in specs.items():
      if spec.never:
        found[section][name] = command.accepted
  records = [*command.records.values(), command.accepted]
  hints: dict[str, Any] = {}
  for record in records:  # Once each: they take a while to find.
    hints.update(typing.get_type_hints(record))
  for section, named in found.items():
    for name, record in named.items():
      modes = tuple(readers.get(name, ()))
      if len(modes) == len(command.records):
        modes = ()
      definition = Definition(section, spec_of(record, name), modes)
      _define(record, name, definition, hints[name])
  _demand(records)


def _define(
  record: type[Options],
  name: str,
  definition: Definition,
  hint: Any,
  default: Any = None,
) -> None:
  """Defines one flag of a type, perhaps with another default than its field."""
  spec = definition.spec
  definer: Callable[..., Any] = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    str: flags.DEFINE_enum if spec.choices else flags.DEFINE_string,
    tuple: flags.DEFINE_multi_string if spec.repeated else flags.DEFINE_list,
  }[_kind(hint)]
  arguments = dict(spec.definer)
  if spec.choices:
    arguments["enum_values"] = list(spec.choices)
  if default is None:
    default = _field(record, name).default
  if default is REQUIRED:
    default, arguments["required"] = None, True
  if isinstance(default, tuple):
    default = list(default)
  _definitions[name] = definition
  definer(name=name, default=default, help=spec.text, **arguments)
  if definer is flags.DEFINE_float:
    # NaN is within all bounds that absl compares it with.
    flags.register_validator(
      name,
      lambda value: value is None or math.isfinite(value),
      "must be a finite number",
    )


def _kind(hint: Any) -> type:
  """Returns the type of a field's values, without None: `int`, for example."""
  parts = [hint]
  if isinstance(hint, types.UnionType):
    parts = [part for part in typing.get_args(hint) if part is not type(None)]
  (part,) = parts
  return typing.get_origin(part) or part


def _demand(records: list[type[Options]]) -> None:
  """Registers the records' conditions with absl, once."""
  owners = dict.fromkeys(o for record in records for o in record.__mro__)
  for owner in owners:
    for names, holds, message in owner.__dict__.get("demands", ()):
      flags.register_multi_flags_validator(list(names), holds, message)


def chosen_record(command: Command) -> type[Options]:
  """Returns the record of the mode that the command line names."""
  if isinstance(command, Modes):
    return command.records[flags.FLAGS[MODE].value]
  return command


def parsed(command: Command) -> Any:
  """Returns the parsed command line as a record.

  Raises:
    InputError: if it contradicts itself.
  """
  record = chosen_record(command)
  values: dict[str, Any] = {}
  for specs in fields_of(record).values():
    for name in specs:
      value = flags.FLAGS[name].value
      values[name] = tuple(value) if isinstance(value, list) else value
  given = {
    n for n in _definitions if n in flags.FLAGS and flags.FLAGS[n].present
  }
  return record(given=frozenset(given), **values)


def expand_home(values: flags.FlagValues) -> None:
  """Replaces `~` by the home directory in all paths.

  A shell expands `~` at the start of a word, but not after "=" or a comma.
  """
  for name in values:
    flag = values[name]
    if name not in _definitions or not _definitions[name].spec.path:
      continue
    if isinstance(flag.value, str):
      flag.value = _expanded(flag.value)
    elif flag.value is not None:
      flag.value = [_expanded(part) for part in flag.value]


def _expanded(paths: str) -> str:
  return ",".join(map(os.path.expanduser, paths.split(",")))


def without_effect(options: Options) -> Iterator[str]:
  """Yields one line for each flag that was given and changes nothing.

  Args:
    options: result of `parsed`.
  """
  values = flags.FLAGS
  for name in sorted(values):
    if not values[name].present or name not in _definitions:
      continue
    definition = _definitions[name]
    if definition.spec.never:
      yield f"--{name} has no effect: {definition.spec.never}"
    elif definition.modes and values[MODE].value not in definition.modes:
      yield f"--{name} has no effect with --mode={values[MODE].value}"
    else:
      idle = definition.spec.idle
      if reason := next((why for applies, why in idle if applies(options)), ""):
        yield f"--{name} has no effect: {reason}"
