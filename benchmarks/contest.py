"""Contestants that take turns, each command a process of its own."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys


def measure(command: list[str]) -> dict | None:
  """Runs one contestant; returns what it prints, or None where it fails."""
  environment = {
    **os.environ,
    "TF_USE_LEGACY_KERAS": "1",  # Upstream's; ours does not look at it.
    "TF_CPP_MIN_LOG_LEVEL": "3",
  }
  done = subprocess.run(
    command, capture_output=True, text=True, env=environment, check=False
  )
  if done.returncode:
    print(f"{' '.join(command)}\n{done.stderr[-3000:]}", file=sys.stderr)
    return None
  return json.loads(done.stdout.strip().split("\n")[-1])


def take_turns(
  commands: dict[str, list[str]], rounds: int
) -> dict[str, list[dict]]:
  """Runs every contestant in every round, so that noise hits all alike.

  Args:
    commands: by the contestants' names.
    rounds: how many.

  Returns:
    What each printed in each round; those that failed are left out.
  """
  found: dict[str, list[dict]] = {name: [] for name in commands}
  for _ in range(rounds):
    for name, command in commands.items():
      if printed := measure(command):
        found[name].append(printed)
  return {name: printed for name, printed in found.items() if printed}


def median_seconds(found: dict[str, list[dict]]) -> dict[str, float]:
  """Returns each contestant's median of its rounds' medians."""
  return {
    name: statistics.median(statistics.median(p["seconds"]) for p in printed)
    for name, printed in found.items()
  }


def peak_megabytes(printed: list[dict], name: str = "peak_kib") -> float:
  """Returns the median of some rounds' peaks."""
  return statistics.median(p[name] for p in printed) / 1024
