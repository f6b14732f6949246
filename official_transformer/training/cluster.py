"""The machines that share a run, as TF_CONFIG names them."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import time
from collections.abc import Mapping

from official_transformer.errors import InputError

_HELP = (
  'TF_CONFIG is JSON such as {"cluster": {"worker": ["host1:2222", '
  '"host2:2222"]}, "task": {"type": "worker", "index": 0}}, the same on all '
  "workers but for the index"
)
_KINDS = ("chief", "worker")  # In the order of TensorFlow's numbering.
_PROBE_SECONDS = 1.0


@dataclasses.dataclass(frozen=True)
class Worker:
  """One process of a run.

  Attributes:
    kind: `chief` or `worker`.
    index: among its kind.
    address: host:port.
  """

  kind: str
  index: int
  address: str

  def __str__(self) -> str:
    return f"{self.kind} {self.index} ({self.address})"

  def answers(self) -> bool:
    """Returns whether it listens at its address."""
    host, port = self.address.rsplit(":", 1)
    try:
      address = (host.strip("[]"), int(port))
      socket.create_connection(address, _PROBE_SECONDS).close()
    except (OSError, UnicodeError):  # UnicodeError: no name of a host.
      return False
    return True


@dataclasses.dataclass(frozen=True)
class Cluster:
  """All processes of a run, and which of them this is.

  Attributes:
    workers: the chief, if there is one, then the workers.
    here: name of this process.
  """

  workers: tuple[Worker, ...]
  here: Worker

  @classmethod
  def from_environment(
    cls, environment: Mapping[str, str] = os.environ
  ) -> Cluster:
    """Reads TF_CONFIG.

    Raises:
      InputError: if it is missing or cannot be understood.
    """
    text = environment.get("TF_CONFIG", "")
    if not text:
      raise InputError(
        "--distribution_strategy=multi_worker_mirrored: TF_CONFIG is not set; "
        + _HELP
      )
    try:
      config = json.loads(text)
      groups, task = config["cluster"], config["task"]
      workers = tuple(
        Worker(kind, index, address)
        for kind in _KINDS
        for index, address in enumerate(groups.get(kind, []))
      )
      others = set(groups) - set(_KINDS)
      kind, index = str(task["type"]), int(task["index"])
      ports = [int(worker.address.rsplit(":", 1)[1]) for worker in workers]
    except (ValueError, KeyError, TypeError, AttributeError, IndexError) as e:
      raise InputError(f"TF_CONFIG={text}: {e!r}; {_HELP}") from None
    if others:
      raise InputError(
        f"TF_CONFIG has {', '.join(sorted(others))}; only chief and worker "
        f"take part. {_HELP}"
      )
    here = [w for w in workers if (w.kind, w.index) == (kind, index)]
    if not here or not all(0 < port < 2**16 for port in ports):
      raise InputError(
        f"TF_CONFIG={text}: its task is not in its cluster, or a port is out "
        f"of range; {_HELP}"
      )
    return cls(workers, here[0])

  @property
  def is_chief(self) -> bool:
    """Whether this process writes the files of the run."""
    return self.here == self.workers[0]

  def silent_peers(self) -> list[Worker]:
    """Returns the other processes that do not listen."""
    return [w for w in self.workers if w != self.here and not w.answers()]

  def wait_for_peers(self, seconds: float) -> None:
    """Returns once all other processes listen, as this one does meanwhile.

    TensorFlow itself would wait for them for hours, without a word, in a call
    that nothing interrupts.

    Args:
      seconds: to wait, in all.

    Raises:
      InputError: if one stays silent, or this address is taken.
    """
    port = int(self.here.address.rsplit(":", 1)[1])
    try:
      listener = socket.create_server(("", port))
    except OSError as error:
      raise InputError(
        f"{self.here} cannot listen at port {port} ({error}); does an earlier "
        "run still go on, or is TF_CONFIG's task index that of another worker?"
      ) from None
    listener.setblocking(False)
    deadline = time.monotonic() + seconds
    with listener:
      while silent := self.silent_peers():
        # Probes that wait would fill the queue, and later ones be dropped.
        with contextlib.suppress(BlockingIOError):
          while True:
            listener.accept()[0].close()
        if time.monotonic() > deadline:
          names = ", ".join(map(str, silent))
          raise InputError(
            f"{self.here} has waited {seconds:g} s for {names}. Start it, with "
            "the same TF_CONFIG but for the task's index, check that its "
            "address can be reached from here, or wait longer with "
            "--connect_timeout"
          )
        time.sleep(0.2)
