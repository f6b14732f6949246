"""Limits of the service for a request, and for all requests together."""

from __future__ import annotations

import dataclasses
import os

from official_transformer.errors import InputError

# The environment's name of the key that clients must send.
API_KEY_VARIABLE = "TRANSLATION_SERVER_API_KEY"
# Names of this machine for itself.
LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
LONGEST_SECONDS = 3600.0
# Seconds, where asking again may help.
RETRY_AFTER = "1"


@dataclasses.dataclass(frozen=True)
class Access:
  """The API key, and the allowed hosts.

  Attributes:
    key: key that `/translate`, `/detect` and `/metrics` require; None requires
      none.
    hosts: names that requests may give this service, in small letters; empty
      allows any.
  """

  key: str | None = None
  hosts: frozenset[str] = frozenset()


ANYONE = Access()


def key_of_environment() -> str | None:
  """Returns the key in `API_KEY_VARIABLE`, or None if it is unset or empty.

  Raises:
    InputError: if its value cannot be a key.
  """
  value = os.environ.get(API_KEY_VARIABLE, "")
  return checked_key(value, API_KEY_VARIABLE) if value.strip() else None


def checked_key(value: str, where: str) -> str:
  """Returns a key without blanks around it.

  Args:
    value: the content of a file or an environment variable.
    where: its name, for the error message.

  Raises:
    InputError: if no header can contain the key, so that it would never match.
  """
  key = value.strip()
  if not key or not key.isprintable():
    raise InputError(f"{where} holds no key, which is one line of text")
  return key


def host_of(field: str) -> str:
  """Returns the host that a `Host` field names: small letters, no port."""
  if field.startswith("["):
    return field[1:].partition("]")[0].lower()
  if field.count(":") > 1:  # An address of version 6, as flags have it.
    return field.lower()
  return field.partition(":")[0].rstrip(".").lower()


@dataclasses.dataclass(frozen=True)
class ServiceLimits:
  """The limits of a service.

  Attributes:
    body_bytes: bytes of a request; a larger one gets 413.
    lines: lines of a request; more get 413.
    line_characters: characters of a line; a longer one gets 422.
    phrases: required of a line, or forbidden; more get 422.
    phrase_characters: characters of a phrase; a longer one gets 422.
    queued_tokens: tokens of all lines that wait for a model; a request beyond
      gets 429.
    seconds: until a request is answered, else it gets 504; its own time to
      arrive is the same, else it gets 408.
    connections: open at a time; one beyond gets 503.
    batch_wait: seconds that a line waits, at most, for others to be translated
      with, while something is free to translate it.
  """

  body_bytes: int = 1 << 20
  lines: int = 256
  line_characters: int = 10_000
  phrases: int = 64
  phrase_characters: int = 200
  queued_tokens: int = 16_384
  seconds: float = 30.0
  connections: int = 1024
  batch_wait: float = 0.005

  def __post_init__(self) -> None:
    for name, value in dataclasses.asdict(self).items():
      least = 0 if name == "batch_wait" else 1e-9
      if value < least:
        raise InputError(f"{name} is {value}, but must be positive")
    if self.seconds > LONGEST_SECONDS:
      raise InputError(
        f"seconds is {self.seconds}; a request may take {LONGEST_SECONDS:g}"
      )
