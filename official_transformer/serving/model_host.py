"""The model that a service translates with, and the next one.

A newer checkpoint is loaded beside the one in use, and replaces it when it is
ready: earlier requests use the old one, later requests the new one, and none is
refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from absl import logging

from official_transformer.decoding.requests import TranslationRequest
from official_transformer.decoding.translator import Translator
from official_transformer.errors import InputError, RunError
from official_transformer.hardware.memory import release_unused
from official_transformer.serving.batcher import Batcher, ClosedError, Job
from official_transformer.serving.settings import ServiceLimits


class Newest(NamedTuple):
  """The newest checkpoint, with the state of its files.

  Attributes:
    step: updates that it has seen.
    state: sizes and times of its files, which change if one is written again.
  """

  step: int
  state: tuple[object, ...] = ()


class ModelHost:
  """Holds the model in use; all methods may be called from any thread.

  Attributes:
    reloads: models that took the place of another, which is gone.
    failed_reloads: models that could not be loaded.
  """

  def __init__(
    self,
    load: Callable[[int | None], Translator],
    newest: Callable[[], Newest],
    limits: ServiceLimits,
    on_batch: Callable[[int, int, int], object] = lambda *_: None,
  ) -> None:
    """Loads the model.

    Args:
      load: loads the checkpoint of a step or, given None, the newest that can
        be read.
      newest: which one is the newest; raises an `InputError` if there is none.
      limits: limits of the service.
      on_batch: as in `Batcher`.
    """
    self._load = load
    self._newest = newest
    self._limits = limits
    self._on_batch = on_batch
    self._stopping = threading.Event()
    self._swap = threading.Lock()
    self._watcher: threading.Thread | None = None
    self.reloads = 0
    self.failed_reloads = 0
    found = newest()
    self._batcher = self._start(None)
    # If an older one was loaded instead, the newest is tried again, because it
    # may have been incomplete.
    checkpoint = self.translator.checkpoint
    is_newest = checkpoint is not None and checkpoint.step == found.step
    self._loaded = found if is_newest else None

  @property
  def batcher(self) -> Batcher:
    """Translates with the model in use."""
    return self._batcher

  @property
  def translator(self) -> Translator:
    """The model in use."""
    return self._batcher.translator

  @property
  def is_ready(self) -> bool:
    """Whether requests are taken on."""
    return self._batcher.is_alive and not self._stopping.is_set()

  def submit(self, request: TranslationRequest) -> Job:
    """Takes lines on; as `Batcher.submit`."""
    while True:
      batcher = self._batcher
      try:
        return batcher.submit(request)
      except ClosedError:
        # Another took its place meanwhile.
        if batcher is self._batcher:
          raise

  def watch(
    self, seconds: float, on_look: Callable[[], object] = lambda: None
  ) -> None:
    """Looks for a newer model in the background.

    Args:
      seconds: between two looks.
      on_look: called after each.
    """

    def look() -> None:
      while not self._stopping.wait(seconds):
        self.reload_if_newer()
        on_look()

    self._watcher = threading.Thread(target=look, name="reload")
    self._watcher.start()

  def reload_if_newer(self) -> bool:
    """Loads a newer model if there is one; returns whether it is in use."""
    try:
      newest = self._newest()
      if newest == self._loaded:
        return False
      batcher = self._start(newest.step)
    except Exception as error:  # The next check may succeed.
      self.failed_reloads += 1
      known = isinstance(error, (InputError, RunError, OSError))
      logging.error(
        "the model in use stays: %s", error, exc_info=None if known else error
      )
      return False
    with self._swap:
      if self._stopping.is_set():
        batcher.close()
        return False
      old, self._batcher, self._loaded = self._batcher, batcher, newest
    old.close()  # Once all that it has taken on is translated.
    del old
    release_unused()
    self.reloads += 1
    logging.info("now in use: %s", batcher.translator.checkpoint)
    return True

  def close(self) -> None:
    """Takes no more on; returns when all that waits has been translated."""
    with self._swap:
      self._stopping.set()
    self._batcher.close()
    if self._watcher is not None:
      self._watcher.join()

  def _start(self, step: int | None) -> Batcher:
    translator = self._load(step)
    translator.warm_up()
    return Batcher(translator, self._limits, self._on_batch)
