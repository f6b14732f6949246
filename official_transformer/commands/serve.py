"""The service: its address, key, processes and models.

The process that supervises workers imports no TensorFlow.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import ipaddress
import itertools
import os
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from absl import logging

from official_transformer.commands.decoding_options import EngineOptions
from official_transformer.commands.flag_records import REQUIRED, Options, flag
from official_transformer.errors import InputError
from official_transformer.hardware.startup import start_tensorflow
from official_transformer.model_directory.directory import LATEST
from official_transformer.serving.directions import (
  UNNAMED,
  Direction,
  parse_directions,
)
from official_transformer.serving.settings import (
  API_KEY_VARIABLE,
  LOCAL_HOSTS,
  LONGEST_SECONDS,
  Access,
  ServiceLimits,
  checked_key,
  host_of,
  key_of_environment,
)
from official_transformer.storage import file_system

if TYPE_CHECKING:
  from official_transformer.decoding.translator import Translator
  from official_transformer.serving.local_service import LocalService
  from official_transformer.serving.model_host import Newest

_MODULE = "official_transformer.translation_server"

_GRANTED = ServiceLimits()


@dataclasses.dataclass(frozen=True, kw_only=True)
class LimitOptions(Options):
  """Limits of requests."""

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
    "Tokens that may wait for a model, of all requests; more: 429.",
    lower_bound=1,
  )
  max_connections: int = flag(
    _GRANTED.connections,
    "Connections open at a time; more: 503.",
    lower_bound=1,
    upper_bound=2**31 - 1,
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
    upper_bound=LONGEST_SECONDS * 1000,
  )

  @property
  def granted(self) -> ServiceLimits:
    """These flags as `ServiceLimits`."""
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
class ServiceOptions(LimitOptions, EngineOptions):
  """Flags of the service: its address, its access, and its processes."""

  heading = "translation_server"

  model_dir: str = flag(
    REQUIRED,
    "The model directory; or several, each with its direction: "
    "en-de=DIR,de-en=DIR.",
    path=True,
    short_name="md",
  )
  host: str = flag(
    LOCAL_HOSTS[0],
    "Address to listen on; 0.0.0.0 is every address of this machine, open to "
    "everyone who can reach it.",
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
  allowed_hosts: tuple[str, ...] | None = flag(
    None,
    "Names by which requests may call this service (the Host header); more "
    "than one by commas, * is any; others: 421. Unset: localhost, 127.0.0.1 "
    "and ::1 where --host is one of them, else any.",
  )
  reload_secs: float = flag(
    10.0,
    "How often to look for a newer checkpoint, which then takes the place of "
    "the one in use; 0 is never.",
    lower_bound=0.0,
    upper_bound=86_400.0,
  )

  def check(self) -> None:
    """Refuses a service that lacks a package, or a model.

    Raises:
      InputError: for the first thing that is wrong.
    """
    try:
      import babel  # noqa: F401
      import fastapi  # noqa: F401
      import fastapi_offline  # noqa: F401
      import prometheus_client  # noqa: F401
      import py3langid  # noqa: F401
      import uvicorn  # noqa: F401
    except ImportError as error:
      raise InputError(
        f"the service needs more packages ({error}): pip install "
        "'official-transformer[server]'"
      ) from None
    if self.allowed_hosts is not None and not all(
      map(host_of, self.allowed_hosts or ("",))
    ):
      raise InputError(
        "--allowed_hosts names an empty host; * is any, and without the flag "
        "the default holds"
      )
    for options in self.by_direction.values():
      options.check_engine()
      options.check_model()

  @functools.cached_property
  def by_direction(self) -> dict[Direction, ServiceOptions]:
    """The options of each model, which name it alone.

    Raises:
      InputError: if directions are not as they should be.
    """
    return {
      direction: dataclasses.replace(self, model_dir=path)
      for direction, path in parse_directions(self.model_dir).items()
    }

  def run(self) -> None:
    """Answers requests, or has workers do so."""
    # Optional packages of these modules are known to be installed by now.
    from official_transformer.serving.sockets import bind, inherited_socket
    from official_transformer.serving.supervisor import (
      Supervisor,
      end_with_parent,
    )

    key = read_api_key(self.api_key_file)
    listener = inherited_socket()
    if listener is not None:
      end_with_parent()
    else:
      listener = bind(self.host, self.port)
      if not is_local(self.host) and key is None:
        logging.warning(
          "--host=%s and no API key: everyone who can reach this machine may "
          "translate",
          self.host,
        )
      if self.server_workers > 1:
        command = [sys.executable, "-m", _MODULE, *sys.argv[1:]]
        Supervisor(listener, command, self.server_workers).run()
        return
    if self.needs_tensorflow:
      start_tensorflow()
    self._serve(listener, key)

  def _serve(self, listener: socket.socket, key: str | None) -> None:
    """Loads the models and answers.

    Args:
      listener: a bound socket.
      key: API key that clients must send; None requires none.
    """
    from official_transformer.hardware.cpu_threads import (
      limit_processors,
      processors,
    )
    from official_transformer.serving.application import create_application
    from official_transformer.serving.http_server import serve
    from official_transformer.serving.local_service import LocalService
    from official_transformer.serving.metrics import Metrics
    from official_transformer.serving.model_host import ModelHost

    limits = self.granted
    limit_processors(max(1, processors() // self.server_workers))
    metrics = Metrics()
    services: dict[Direction, LocalService] = {}
    with contextlib.ExitStack() as hosts:
      for direction, options in self.by_direction.items():
        on_batch = functools.partial(metrics.on_batch, str(direction))
        host = ModelHost(options.loader(), options.newest, limits, on_batch)
        hosts.callback(host.close)
        service = LocalService(host, str(direction))
        # Another of the service's processes may be asked for them.
        service.measure(metrics)
        services[direction] = service
      application = create_application(
        services, limits, metrics, Access(key, self._hosts())
      )
      # Before the address is announced: a socket that does not listen refuses
      # connections.
      listener.listen(limits.connections)
      address, port = listener.getsockname()[:2]
      logging.info(
        "ready: http://%s:%d/ answers with %s (process %d)",
        f"[{address}]" if ":" in address else address,
        port,
        ", ".join(_named(*item) for item in services.items()),
        os.getpid(),
      )
      if self.reload_secs:
        for service in services.values():
          service.host.watch(
            self.reload_secs, functools.partial(service.measure, metrics)
          )
      serve(application, listener, limits)

  def _hosts(self) -> frozenset[str]:
    """Returns the names that requests may give the service; none is any."""
    names = self.allowed_hosts
    if names is None:
      names = (*LOCAL_HOSTS, self.host) if is_local(self.host) else ("*",)
    return frozenset() if "*" in names else frozenset(map(host_of, names))

  def loader(self) -> Callable[[int | None], Translator]:
    """Returns the function that loads the model from its directory."""
    # The first load uses what `check` has read; later ones use new copies of
    # the record, which read the files again.
    anew = iter(lambda: dataclasses.replace(self), None)
    records = itertools.chain([self], anew)
    return lambda step: next(records)._load(step)

  def _load(self, step: int | None) -> Translator:
    """Loads the checkpoint of a step; None is the newest that can be read."""
    plan = self.plan()
    # Of the best and the averaged, there is one of each.
    is_one_of_many = self.checkpoint == LATEST and not self.model[0].is_finished
    if step is not None and is_one_of_many:
      plan = dataclasses.replace(plan, checkpoint=str(step))
    return plan.load()

  def newest(self) -> Newest:
    """Returns the step and the files' state of the newest checkpoint."""
    from official_transformer.serving.model_host import Newest

    directory = self.model_directories[0]
    kind, steps = directory.choose_checkpoints(self.checkpoint)
    path = directory.checkpoint_directory(steps[0], kind)
    # Files may be copied into their places, and the directory stay.
    files = sorted(file_system.names_in(path))
    states = (file_system.state(os.path.join(path, n)) for n in files)
    return Newest(steps[0], (*files, *map(tuple, states)))


def _named(direction: Direction, service: LocalService) -> str:
  """Returns the name of a direction's model for the log."""
  name = "" if direction == UNNAMED else f"{direction}: "
  return f"{name}{service.host.translator.checkpoint}"


def is_local(host: str) -> bool:
  """Returns whether an address is this machine's for itself alone."""
  try:
    return ipaddress.ip_address(host).is_loopback
  except ValueError:
    return host.lower() == "localhost"


def read_api_key(path: str | None) -> str | None:
  """Reads the key that clients must send, if there is one.

  Args:
    path: path of its file; None looks in the environment.

  Raises:
    InputError: if the file is missing, or its content cannot be a key.
  """
  if path is None:
    return key_of_environment()
  where = f"--api_key_file={path}"
  try:
    with file_system.open_file(path) as stream:
      content = stream.read()
  except (OSError, UnicodeDecodeError) as error:
    raise InputError(f"{where}: {error}") from None
  return checked_key(content, where)
