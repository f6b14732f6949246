"""What a run of the tests costs: a pytest plugin.

Starts the files that take longest first, so that the last process to end ends
soon after the others. Marks as slow each test that `durations.json` says takes
more than `QUICK` seconds, so that the quick tests stay quick as they become
more. Reports at the end the tests that have taken more than twice their budget,
compared with all other tests of the run, and the memory of each process.

    bash run_tests.sh --all --record_durations   # writes durations.json anew
"""

from __future__ import annotations

import collections
import json
import pathlib
import resource
import sys
from collections.abc import Mapping
from typing import Any

import pytest

_BUDGETS = pathlib.Path(__file__).with_name("durations.json")
# Tests below so many seconds have no budget of their own, and no test is told
# of that takes fewer seconds more than its budget.
_SMALLEST = 1.0
# Tests with a larger budget are slow: `bash run_tests.sh` leaves them out.
QUICK = 1.5
_ROOT = pathlib.Path(__file__).parents[1]


def pytest_addoption(parser: pytest.Parser) -> None:
  """Adds the flag that records."""
  parser.addoption(
    "--record_durations",
    action="store_true",
    help="write what each test has taken to tests/durations.json",
  )


def pytest_configure(config: pytest.Config) -> None:
  """Registers the plugin's state."""
  config.pluginmanager.register(_Costs(config), "costs")


def read_budgets() -> dict[str, float]:
  """Returns the seconds of each test that has a budget, by its name."""
  if not _BUDGETS.exists():
    return {}
  return json.loads(_BUDGETS.read_text("utf-8"))


def by_file(budgets: Mapping[str, float]) -> collections.Counter[str]:
  """Returns the seconds of each file's tests together."""
  seconds: collections.Counter[str] = collections.Counter()
  for name, budget in budgets.items():
    seconds[name.partition("::")[0]] += budget
  return seconds


def doubled(
  taken: Mapping[str, float], budgets: Mapping[str, float]
) -> dict[str, float]:
  """Returns tests that took over twice their budget, and how often it.

  A machine that is slower makes all tests slower: budgets are first multiplied
  by what all tests together took of all their budgets.

  Args:
    taken: seconds of tests by their names.
    budgets: likewise; those of other tests do not count.
  """
  common = taken.keys() & budgets.keys()
  if not common:
    return {}
  pace = sum(taken[n] for n in common) / sum(budgets[n] for n in common)
  ratios = {n: taken[n] / (pace * budgets[n]) for n in common}
  return {
    name: ratio
    for name, ratio in sorted(ratios.items(), key=lambda item: -item[1])
    if ratio > 2 and taken[name] - pace * budgets[name] > _SMALLEST
  }


class _Costs:
  """Collects seconds and memory of one run."""

  def __init__(self, config: pytest.Config) -> None:
    self._config = config
    self._seconds: collections.Counter[str] = collections.Counter()
    self._peaks: dict[str, float] = {}

  @pytest.hookimpl(tryfirst=True)
  def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
    """Puts the files that take longest first, and marks the slow tests."""
    budgets = read_budgets()
    for item in items:
      if budgets.get(item.nodeid, 0) > QUICK:
        item.add_marker(pytest.mark.slow)
    seconds = by_file(budgets)
    items.sort(key=lambda item: -seconds[item.nodeid.partition("::")[0]])

  def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
    """Adds what one part of a test has taken."""
    self._seconds[report.nodeid] += report.duration

  @pytest.hookimpl(trylast=True)
  def pytest_sessionfinish(self, session: pytest.Session) -> None:
    """Notes this process' memory; a worker hands it to who controls it."""
    if hasattr(session.config, "workeroutput"):
      session.config.workeroutput["peak_gigabytes"] = _peak_gigabytes()
    else:
      self._peaks["this process"] = _peak_gigabytes()

  @pytest.hookimpl(optionalhook=True)
  def pytest_testnodedown(self, node: Any) -> None:
    """Takes over what a worker has noted."""
    output = getattr(node, "workeroutput", {})
    if "peak_gigabytes" in output:
      self._peaks[node.gateway.id] = output["peak_gigabytes"]

  def pytest_terminal_summary(
    self, terminalreporter: pytest.TerminalReporter
  ) -> None:
    """Tells all of it, and records it if that is asked for."""
    told = ", ".join(f"{k} {v:.2f} GB" for k, v in sorted(self._peaks.items()))
    terminalreporter.write_line(f"peak memory: {told}")
    for name, ratio in doubled(self._seconds, read_budgets()).items():
      terminalreporter.write_line(
        f"slower than it was: {name} took {self._seconds[name]:.1f} s, "
        f"{ratio:.1f} times its budget"
      )
    if self._config.getoption("--record_durations"):
      self._record()

  def _record(self) -> None:
    """Writes the budgets of this run's tests; others that exist keep theirs."""
    kept = {
      name: seconds
      for name, seconds in read_budgets().items()
      if name not in self._seconds and _exists(name)
    }
    found = {
      name: round(seconds, 1)
      for name, seconds in self._seconds.items()
      if seconds >= _SMALLEST
    }
    content = json.dumps(dict(sorted((kept | found).items())), indent=0)
    _BUDGETS.write_text(content + "\n", "utf-8")


def _exists(name: str) -> bool:
  """Tells whether there is a test of such a name, whatever its parameters."""
  file, _, test = name.partition("::")
  function = test.partition("[")[0]
  path = _ROOT / file
  return path.exists() and f"def {function}(" in path.read_text("utf-8")


def _peak_gigabytes() -> float:
  """Returns the most memory this process has had."""
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  return peak / (2**30 if sys.platform == "darwin" else 2**20)
