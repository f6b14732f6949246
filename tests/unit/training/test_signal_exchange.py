"""When workers learn of each other's signals."""

import signal
import types

from official_transformer.training.signal_exchange import SignalExchange


class Workers:
  """Processes that update in step, with clocks of their own."""

  def __init__(self, seconds):
    self.seconds = seconds  # An update of each process.
    self.times = [0.0] * len(seconds)
    self.exchanges = []
    self._said = []
    self.members = [self._member(rank) for rank in range(len(seconds))]

  def _member(self, rank):
    def exchange(number, pause):
      self._said.append((number, pause))
      chiefs = self._said[0][1]
      return next((n for n, _ in self._said if n is not None), None), chiefs

    process = types.SimpleNamespace(cluster="two", exchange_signals=exchange)
    return SignalExchange(process, 0, lambda: self.times[rank])

  def update(self, step, received=()):
    """Makes an update; returns what each process learns, the last one first.

    The last one learns what all have said; so would they all.
    """
    self._said = []
    found = []
    for rank, member in enumerate(self.members):
      self.times[rank] += self.seconds[rank]
      number = signal.SIGTERM if rank in received else None
      found.append(member.received(step, number))
    assert len(self._said) in (0, len(self.members))
    if self._said:
      self.exchanges.append(step)
    return found[-1]


def test_signals_are_exchanged_about_once_a_second():
  workers = Workers([0.01, 0.25])  # The chief's clock counts.
  for step in range(1, 1001):
    assert workers.update(step) is None
  assert workers.exchanges[:7] == [1, 3, 7, 15, 31, 63, 127]
  assert {
    b - a
    for a, b in zip(workers.exchanges[8:], workers.exchanges[9:], strict=False)
  } == {100}


def test_slow_updates_exchange_each_time():
  workers = Workers([2.0, 2.0])
  for step in range(1, 11):
    workers.update(step)
  assert workers.exchanges == list(range(1, 11))


def test_a_signal_is_learnt_at_the_next_exchange():
  workers = Workers([0.1, 0.1])
  learnt = [
    step
    for step in range(1, 60)
    if workers.update(step, received=(1,) if step >= 20 else ())
  ]
  assert learnt[0] in workers.exchanges
  assert 20 <= learnt[0] < 30


def test_after_an_evaluation_signals_are_exchanged_in_any_case():
  """Else one that has broken it off would end the run steps later."""
  asked = []

  def exchange(number, pause):
    asked.append(number)
    return number, 1000

  process = types.SimpleNamespace(cluster="two", exchange_signals=exchange)
  member = SignalExchange(process, 0, lambda: 0.0)
  assert member.received(1, None) is None
  assert member.received(2, signal.SIGTERM) is None
  assert member.received(3, signal.SIGTERM, must=True) == signal.SIGTERM
  assert asked == [None, signal.SIGTERM]


def test_one_process_learns_at_once():
  alone = types.SimpleNamespace(cluster=None)
  exchange = SignalExchange(alone, 0)
  assert exchange.received(1, None) is None
  assert exchange.received(2, signal.SIGINT) == signal.SIGINT
