"""What a process of `translation_server` does: answers with translations."""

from __future__ import annotations

import os
import socket

from absl import flags, logging

from official_transformer.commands.flag_readers import (
  model_directories,
  read_model,
)
from official_transformer.commands.loading import load_translator
from official_transformer.commands.serving_flags import ServiceOptions
from official_transformer.decoding.translator import Translator
from official_transformer.hardware.cpu_threads import (
  limit_processors,
  processors,
)
from official_transformer.model_directory.directory import LATEST
from official_transformer.serving.application import create_application
from official_transformer.serving.http_server import serve
from official_transformer.serving.local_service import LocalService
from official_transformer.serving.metrics import Metrics
from official_transformer.serving.model_host import ModelHost, Newest
from official_transformer.storage import file_system

FLAGS = flags.FLAGS


def serve_requests(
  options: ServiceOptions, listener: socket.socket, key: str | None
) -> None:
  """Loads the model and answers.

  Args:
    options: what the command line says.
    listener: a bound socket.
    key: what clients must send, if anything.
  """
  limits = options.limits
  limit_processors(max(1, processors() // options.server_workers))
  metrics = Metrics()
  # How many hypotheses it gives of a line, each request says.
  host = ModelHost(_load, _newest, limits, metrics.on_batch)
  service = LocalService(host)
  # Another of the service's processes may be asked for them.
  service.measure(metrics)
  application = create_application(service, limits, metrics, key)
  # Before anybody is told: a socket that does not listen refuses.
  listener.listen(limits.connections)
  address, port = listener.getsockname()[:2]
  logging.info(
    "ready: http://%s:%d/ answers with %s (process %d)",
    f"[{address}]" if ":" in address else address,
    port,
    host.translator.checkpoint,
    os.getpid(),
  )
  try:
    if options.reload_secs:
      host.watch(options.reload_secs, lambda: service.measure(metrics))
    serve(application, listener, limits)
  finally:
    host.close()


def _load(step: int | None) -> Translator:
  """Loads the checkpoint of a step; None is the newest that can be read."""
  # Of the best and the averaged, there is one of each.
  (directory,) = model_directories()
  is_one_of_many = FLAGS.checkpoint == LATEST and not directory.is_finished
  return load_translator(step=step if is_one_of_many else None)


def _newest() -> Newest:
  """Tells the newest checkpoint from others."""
  directory, _ = read_model()
  kind, steps = directory.choose_checkpoints(FLAGS.checkpoint)
  path = directory.checkpoint_directory(steps[0], kind)
  return Newest(steps[0], file_system.modified(path))
