"""Exchange of signals between the workers of a run."""

from __future__ import annotations

import time
from collections.abc import Callable

from official_transformer.training.strategy import Distribution

SECONDS_BETWEEN_EXCHANGES = 1.0


class SignalExchange:
  """Passes a signal to all workers, after the same update.

  Workers exchange signals by a sum over all processes, which waits for the
  devices of each: once a second is enough. The chief's clock decides after how
  many updates the next exchange is, for all workers alike.
  """

  def __init__(
    self,
    distribution: Distribution,
    step: int,
    clock: Callable[[], float] = time.monotonic,
  ) -> None:
    """Begins at a step.

    Args:
      distribution: the processes of the run.
      step: updates made so far.
      clock: returns seconds.
    """
    self._distribution = distribution
    self._clock = clock
    self._last = self._next = step
    self._time = clock()
    self._pause = 1

  def received(
    self, step: int, number: int | None, must: bool = False
  ) -> int | None:
    """Returns the signal that ends the run now, if any does.

    Every process must call this after the same updates.

    Args:
      step: updates made so far.
      number: number of the signal that this process has received, if it has.
      must: whether signals are exchanged now in any case; the same to all.
    """
    if self._distribution.cluster is None:
      return number
    if step < self._next and not must:
      return None
    found, self._pause = self._distribution.exchange_signals(
      number, self._pause_for(step)
    )
    self._last, self._time = step, self._clock()
    self._next = step + self._pause
    return found

  def _pause_for(self, step: int) -> int:
    """Returns after how many updates the chief would exchange again.

    They are at most twice as many as before: the first updates say little, as
    they are slow.
    """
    seconds = max(self._clock() - self._time, 1e-6)
    a_second = SECONDS_BETWEEN_EXCHANGES * (step - self._last) / seconds
    return max(1, min(int(a_second), 2 * self._pause))
