"""The flags of the service."""

from __future__ import annotations

import dataclasses

from official_transformer.commands.decoding_flags import (
  define_checkpoint_flag,
  define_search_flags,
)
from official_transformer.commands.transformer_flags import define_model_flags
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.core import define_flags, start_section
from official_transformer.flag_groups.records import REQUIRED, Options, flag
from official_transformer.serving.settings import (
  API_KEY_VARIABLE,
  LONGEST_SECONDS,
  ServiceLimits,
)

LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
_GRANTED = ServiceLimits()


@dataclasses.dataclass(frozen=True, kw_only=True)
class LimitOptions(Options):
  """What requests are granted."""

  heading = "What a request is granted"

  max_body_bytes: int = flag(
    _GRANTED.body_bytes, "Bytes a request may have; more: 413.", lower_bound=1
  )
  max_lines: int = flag(
    _GRANTED.lines, "Lines a request may have; more: 413.", lower_bound=1
  )
  max_line_characters: int = flag(
    _GRANTED.line_characters,
    "Characters a line may have; more: 422.",
    lower_bound=1,
  )
  max_queued_tokens: int = flag(
    _GRANTED.queued_tokens,
    "Tokens that may wait, of all requests; more: 429.",
    lower_bound=1,
  )
  max_connections: int = flag(
    _GRANTED.connections,
    "Connections open at a time; more: 503.",
    lower_bound=1,
  )
  request_secs: float = flag(
    _GRANTED.seconds,
    "Seconds until a request is answered, else: 504; and for it to arrive, "
    "else: 408.",
    lower_bound=0.001,
    upper_bound=LONGEST_SECONDS,
  )
  batch_wait_ms: float = flag(
    _GRANTED.batch_wait * 1000,
    "Milliseconds a line waits at most for others to be translated with, while "
    "something is free to translate it.",
    lower_bound=0.0,
  )

  @property
  def limits(self) -> ServiceLimits:
    """The same, as the service takes it."""
    return ServiceLimits(
      body_bytes=self.max_body_bytes,
      lines=self.max_lines,
      line_characters=self.max_line_characters,
      queued_tokens=self.max_queued_tokens,
      connections=self.max_connections,
      seconds=self.request_secs,
      batch_wait=self.batch_wait_ms / 1000,
    )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServiceOptions(LimitOptions):
  """Who is answered, where, and by how many processes."""

  heading = "translation_server"

  model_dir: str = flag(
    REQUIRED, "The model directory.", path=True, short_name="md"
  )
  host: str = flag(
    LOCAL_HOSTS[0],
    "The address to answer at; 0.0.0.0 is every one of this machine, for "
    "everyone who reaches it.",
  )
  port: int = flag(
    8000, "The port to answer at.", lower_bound=0, upper_bound=65535
  )
  server_workers: int = flag(
    1, "Processes that answer, each with a model of its own.", lower_bound=1
  )
  api_key_file: str | None = flag(
    None,
    "A file with the key that clients must send, as Authorization: Bearer "
    f"KEY. The environment variable {API_KEY_VARIABLE} does the same. Unset: "
    "none.",
    path=True,
  )
  reload_secs: float = flag(
    10.0,
    "How often to look for a newer checkpoint, which then takes the place of "
    "the one in use; 0 is never.",
    lower_bound=0.0,
  )


def define_serving_flags() -> None:
  """Defines the command's flags."""
  define_flags(ServiceOptions)
  start_section("The service's model")
  define_model_flags()
  define_checkpoint_flag()
  define_search_flags()
  flags_core.define_num_gpus()
