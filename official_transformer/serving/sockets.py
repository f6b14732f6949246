"""The socket that a service listens at, alone or as one of several workers."""

from __future__ import annotations

import contextlib
import os
import socket

from official_transformer.errors import InputError

# Where a worker finds the number of the socket that it shares.
SOCKET_VARIABLE = "TRANSLATION_SERVER_SOCKET"


def bind(host: str, port: int) -> socket.socket:
  """Returns a bound socket that does not listen until a model is loaded.

  Raises:
    InputError: if the address cannot be had.
  """
  family = socket.AF_INET6 if ":" in host else socket.AF_INET
  with contextlib.ExitStack() as on_failure:
    try:
      listener = socket.socket(family, socket.SOCK_STREAM)
      on_failure.callback(listener.close)
      listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
      listener.bind((host, port))
    except (OSError, UnicodeError) as error:
      raise InputError(
        f"--host={host} --port={port} cannot be had ({error}): does another "
        "service run there?"
      ) from None
    on_failure.pop_all()
  return listener


def inherited_socket() -> socket.socket | None:
  """Returns the socket of the parent, if this is one of several workers.

  Raises:
    InputError: if the socket that the environment names does not exist.
  """
  number = os.environ.get(SOCKET_VARIABLE)
  if not number:
    return None
  try:
    return socket.socket(fileno=int(number))
  except (ValueError, OverflowError, OSError) as error:
    raise InputError(
      f"{SOCKET_VARIABLE}={number!r} in the environment is the number of no "
      f"open socket ({error}): the service sets it for its own workers; unset "
      "it"
    ) from None
