"""What `translation_server` does first: its address, key and processes.

Nothing here imports TensorFlow: what watches over workers needs none.
"""

from __future__ import annotations

import importlib
import os
import sys

from absl import logging

from official_transformer.commands.serving_flags import (
  LOCAL_HOSTS,
  ServiceOptions,
)
from official_transformer.errors import InputError
from official_transformer.hardware.startup import start_tensorflow
from official_transformer.serving.settings import API_KEY_VARIABLE
from official_transformer.serving.sockets import bind, inherited_socket
from official_transformer.serving.supervisor import Supervisor, end_with_parent
from official_transformer.storage import file_system

_MODULE = "official_transformer.translation_server"


def read_api_key(path: str | None) -> str | None:
  """Reads the key that clients must send, if there is one.

  Args:
    path: of its file; None looks in the environment.

  Raises:
    InputError: if the file is missing, or what there is can be no key.
  """
  where = f"--api_key_file={path}"
  if path is None:
    where, key = API_KEY_VARIABLE, os.environ.get(API_KEY_VARIABLE, "").strip()
    if not key:
      return None
  else:
    try:
      with file_system.open_file(path) as stream:
        key = stream.read().strip()
    except (OSError, UnicodeDecodeError) as error:
      raise InputError(f"{where}: {error}") from None
  # What could not be sent in a header could never be right.
  if not key or not key.isprintable():
    raise InputError(f"{where} holds no key, which is one line of text")
  return key


def start_service(options: ServiceOptions) -> None:
  """Answers requests, or has workers do so."""
  key = read_api_key(options.api_key_file)
  listener = inherited_socket()
  if listener is not None:
    end_with_parent()
  else:
    listener = bind(options.host, options.port)
    if options.host not in LOCAL_HOSTS and key is None:
      logging.warning(
        "--host=%s and no API key: whoever reaches this machine may translate",
        options.host,
      )
    if options.server_workers > 1:
      command = [sys.executable, "-m", _MODULE, *sys.argv[1:]]
      Supervisor(listener, command, options.server_workers).run()
      return
  start_tensorflow()
  serve = importlib.import_module("official_transformer.commands.serve")
  serve.serve_requests(options, listener, key)
