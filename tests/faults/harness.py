"""Disturbs the real command line at seeded random moments.

A `Trial` is a model directory that one command trains, again and again, each
time with another fault: killed, told to stop, out of space, with a checkpoint
cut off or a shard overwritten, stopped for a while. At last the command may end
by itself, and its directory must equal that of an undisturbed run: the bits of
all that is saved, which checkpoints there are, what was measured.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import tensorflow as tf

from official_transformer.model_directory.directory import DATA_INDEX

ROOT = pathlib.Path(__file__).parents[2]
MAIN = ROOT / "official_transformer" / "transformer_main.py"
PROGRESS = re.compile(r"step (\d+) of \d+: loss")
SECONDS = 300.0
# As seen from the outside: after this, a process has imported TensorFlow.
STARTING_SECONDS = 5.0

# What trains by `fit`, by the loop, and from several batches an update.
WAYS = {
  "fit": (),
  "loop": ("--use_ctl",),
  "accumulated": ("--use_ctl", "--accumulate_steps=2", "--steps_per_loop=2"),
}


def make_data(directory: pathlib.Path) -> pathlib.Path:
  """Makes a small corpus and prepares it; returns the data directory."""
  text, data = directory / "text", directory / "data"
  for command in (
    (
      *("-m", "data_prep.demo_corpus", f"--output_dir={text}"),
      *("--train_size=1500", "--dev_size=40", "--test_size=20"),
    ),
    (
      *("-m", "data_prep.prepare_data", f"--data_dir={data}"),
      *(f"--train_source={text}/train.en", f"--train_target={text}/train.de"),
      *(f"--dev_source={text}/dev.en", f"--dev_target={text}/dev.de"),
      *("--vocab_size=400", "--shards=3"),
    ),
  ):
    subprocess.run(
      [sys.executable, *command], check=True, cwd=ROOT, capture_output=True
    )
  return data


class Process:
  """A training command that runs, and its log."""

  def __init__(
    self, command: list[str], log: pathlib.Path, file_bytes: int | None = None
  ) -> None:
    def prepare() -> None:
      # A process in the background would ignore it, and ours with it.
      signal.signal(signal.SIGINT, signal.default_int_handler)
      if file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, file_bytes))

    self.log = log
    with open(log, "w", encoding="utf-8") as stream:
      self.process = subprocess.Popen(
        command,
        # A file would be limited too.
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE if file_bytes is not None else stream,
        preexec_fn=prepare,
      )
    self.limited = file_bytes is not None

  def said(self) -> str:
    """Returns what it has logged so far."""
    return self.log.read_text(encoding="utf-8", errors="replace")

  def wait_for_reports(self, number: int = 1) -> None:
    """Returns once it has reported so often how far it is."""
    deadline = time.monotonic() + SECONDS
    while len(PROGRESS.findall(self.said())) < number:
      assert self.process.poll() is None, f"it has ended:\n{self.said()}"
      if time.monotonic() > deadline:
        self.process.kill()
        raise AssertionError(f"no progress:\n{self.said()}")
      time.sleep(0.02)

  def end(self) -> tuple[int, str]:
    """Waits for its end; returns its status and its log."""
    try:
      _, error = self.process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
      self.process.kill()
      raise AssertionError(f"it does not end:\n{self.said()}") from None
    if self.limited:
      self.log.write_bytes(error)
    said = self.said()
    assert "Traceback" not in said, said
    return self.process.returncode, said


class Trial:
  """A model directory, the command that trains it, and what befell it.

  Attributes:
    directory: holds the model directory and the logs.
    data: the prepared data.
    rng: decides all moments.
    model: the model directory.
    events: what happened, in order.
  """

  def __init__(
    self,
    directory: pathlib.Path,
    data: pathlib.Path,
    flags: tuple[str, ...],
    steps: int,
    seed: int,
  ) -> None:
    directory.mkdir(parents=True)
    self.directory = directory
    self.data = data
    self.rng = random.Random(seed)
    self.model = directory / "model"
    self.events: list[str] = []
    self.command = [
      sys.executable,
      str(MAIN),
      "--mode=train",
      f"--data_dir={data}",
      f"--model_dir={self.model}",
      "--param_set=tiny",
      "--params_override=num_hidden_layers=1,learning_rate_warmup_steps=100",
      "--batch_size=1024",
      "--max_length=60",
      "--distribution_strategy=off",
      "--seed=7",
      "--deterministic",
      f"--train_steps={steps}",
      "--steps_between_evals=50",
      "--save_checkpoints_steps=10",
      "--save_checkpoints_secs=1",
      "--keep_checkpoint_max=3",
      "--log_steps=4",
      *flags,
    ]

  def start(self, file_bytes: int | None = None) -> Process:
    """Starts the command, always the same."""
    log = self.directory / f"run-{len(list(self.directory.glob('run-*')))}.log"
    return Process(self.command, log, file_bytes)

  def saved_steps(self) -> list[int]:
    """Returns the steps of the checkpoints there are."""
    found = self.model.glob("checkpoints/step-*")
    names = (path.name.removeprefix("step-") for path in found)
    return sorted(int(name) for name in names if name.isdigit())

  def note(self, event: str) -> None:
    """Keeps what happened, for the tally."""
    steps = self.saved_steps()
    self.events.append(f"{event} (saved: {steps[-1] if steps else 'nothing'})")

  def finish(self) -> str:
    """Lets the command end by itself; returns its log."""
    status, said = self.start().end()
    assert status == 0, said
    self.note("ended by itself")
    return said

  def wait_for_any_moment(self, process: Process) -> None:
    """Returns after a random number of steps, and in the middle of one."""
    process.wait_for_reports(self.rng.randint(1, 10))
    time.sleep(self.rng.uniform(0, 0.2))

  # What befalls it. Each fault ends with the command not running.

  def kill(self) -> None:
    """SIGKILL, at any moment, half-way through a start too."""
    process = self.start()
    if self.rng.random() < 0.2:
      time.sleep(self.rng.uniform(0, STARTING_SECONDS))
    else:
      self.wait_for_any_moment(process)
    assert process.process.poll() is None, "it ended before: give more steps"
    process.process.kill()
    process.process.wait()
    self.note("SIGKILL")

  def terminate(self) -> None:
    """SIGTERM: the step is finished and saved, the status is 143."""
    self._ask_to_stop(signal.SIGTERM)

  def interrupt(self) -> None:
    """SIGINT: likewise, with 130."""
    self._ask_to_stop(signal.SIGINT)

  def _ask_to_stop(self, number: signal.Signals) -> None:
    process = self.start()
    self.wait_for_any_moment(process)
    process.process.send_signal(number)
    status, said = process.end()
    assert status == 128 + number, said
    found = re.search(
      rf"stopped by {number.name}: step (\d+) of \d+ was the last, and is",
      said,
    )
    assert found, said
    assert self.saved_steps()[-1] == int(found.group(1))
    self.note(number.name)

  def fill_the_disk(self) -> None:
    """No file may grow beyond a few kilobytes: no checkpoint fits."""
    before = self.saved_steps()
    status, said = self.start(file_bytes=20_000).end()
    assert status == 1, said
    assert "no checkpoint after step" in said, said
    assert "training goes on, and the next one" in said, said
    assert re.search(r"error: .*(cannot write|too large)", said), said
    assert self.saved_steps() == before
    self.note("no space")

  def cut_off_newest_checkpoint(self) -> None:
    """Truncates a file of it; the command must report that and do without."""
    process = self.start()
    while len(self.saved_steps()) < 2:
      assert process.process.poll() is None, process.said()
      time.sleep(0.02)
    process.process.kill()
    process.process.wait()
    steps = self.saved_steps()
    newest = self.model / "checkpoints" / f"step-{steps[-1]}"
    files = [path for path in newest.iterdir() if path.stat().st_size]
    path = self.rng.choice(sorted(files))
    os.truncate(path, self.rng.randrange(path.stat().st_size))
    process = self.start()
    process.wait_for_reports()
    process.process.kill()
    process.process.wait()
    said = process.said()
    assert "damaged" in said and f"step-{steps[-1]}/" in said, said
    assert f"resuming after step {steps[-2]}\n" in said, said
    self.note("checkpoint cut off")

  def overwrite_a_shard(self) -> None:
    """Changes a byte; the command names shard and record, and does nothing."""
    path = self.rng.choice(sorted(self.data.glob("*-train-*")))
    content = path.read_bytes()
    place = self.rng.randrange(len(content))
    damaged = bytearray(content)
    damaged[place] ^= 1 << self.rng.randrange(8)
    before = self.saved_steps()
    path.write_bytes(damaged)
    try:
      status, said = self.start().end()
    finally:
      path.write_bytes(content)
    assert status == 2, said
    assert re.search(rf"{path.name}, record \d+: ", said), said
    assert self.saved_steps() == before
    self.note("shard overwritten")

  def suspend(self) -> None:
    """SIGSTOP for a while, as a machine that is put to sleep; then SIGKILL."""
    process = self.start()
    self.wait_for_any_moment(process)
    process.process.send_signal(signal.SIGSTOP)
    time.sleep(self.rng.uniform(1, 3))
    seen = len(PROGRESS.findall(process.said()))
    process.process.send_signal(signal.SIGCONT)
    process.wait_for_reports(seen + 1)
    process.process.kill()
    process.process.wait()
    self.note("SIGSTOP, SIGCONT")


def contents(model: pathlib.Path) -> dict[str, object]:
  """Returns all that two runs must have alike, by name."""
  found: dict[str, object] = {}
  for path in sorted(model.rglob("*")):
    name = str(path.relative_to(model))
    if path.name == DATA_INDEX:
      continue  # Of when the shards were written, among others.
    if name.endswith(".index"):
      reader = tf.train.load_checkpoint(str(path.with_suffix("")))
      for key in reader.get_variable_to_shape_map():
        found[f"{name}: {key}"] = reader.get_tensor(key)
    elif path.is_dir() or ".data-" in name:
      found[name] = None  # That it is there is all.
    else:
      found[name] = path.read_text(encoding="utf-8", errors="replace")
  return found


def assert_equal(trial: Trial, undisturbed: Trial) -> None:
  """Checks that a disturbed run has made what an undisturbed one made."""
  ours, theirs = contents(trial.model), contents(undisturbed.model)
  assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
  for name, value in ours.items():
    if value is None or isinstance(value, str):
      assert value == theirs[name], name
    else:
      # Of all bits: a NaN too would have to be the same.
      np.testing.assert_array_equal(
        np.asarray(value), np.asarray(theirs[name]), err_msg=name
      )


def run_trials(
  directory: pathlib.Path,
  ways: dict[str, list[Callable[[Trial], None]]],
  steps: int,
  seed: int,
  say: Callable[[str], None] = lambda line: None,
) -> dict[str, list[str]]:
  """Disturbs a run in each way of training, and compares it.

  Args:
    directory: holds everything.
    ways: keys of `WAYS`, and the faults for each, in order.
    steps: updates of each run.
    seed: decides all moments.
    say: told of each event.

  Returns:
    What happened, by way.
  """
  data = make_data(directory)
  tally: dict[str, list[str]] = {}
  for number, (way, faults) in enumerate(ways.items()):
    flags = WAYS[way]
    calm = Trial(directory / f"{way}-calm", data, flags, steps, seed)
    calm.finish()
    trial = Trial(directory / way, data, flags, steps, seed + number)
    for fault in faults:
      fault(trial)
      say(f"{way}: {trial.events[-1]}")
    said = trial.finish()
    assert "resuming after step" in said, said
    assert_equal(trial, calm)
    say(f"{way}: the same as undisturbed")
    tally[way] = trial.events
  return tally


def main() -> None:
  """The long form; prints what happened."""
  import argparse
  import collections
  import tempfile

  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("--kills", type=int, default=30, help="in all")
  parser.add_argument("--steps", type=int, default=1500, help="of each run")
  parser.add_argument("--seed", type=int, default=1)
  arguments = parser.parse_args()
  rng = random.Random(arguments.seed)
  others = (
    *(Trial.terminate, Trial.interrupt, Trial.cut_off_newest_checkpoint),
    *(Trial.overwrite_a_shard, Trial.suspend, Trial.fill_the_disk),
  )
  ways = {}
  for number, way in enumerate(WAYS):
    kills = len(range(number, arguments.kills, len(WAYS)))
    faults = [Trial.kill] * kills + list(others)
    rng.shuffle(faults)
    # There must be checkpoints to cut off, and room for what comes last.
    faults.sort(key=lambda fault: fault is Trial.cut_off_newest_checkpoint)
    faults.sort(key=lambda fault: fault is Trial.fill_the_disk)
    ways[way] = faults
  started = time.monotonic()
  with tempfile.TemporaryDirectory() as directory:
    tally = run_trials(
      pathlib.Path(directory) / "trials",
      ways,
      arguments.steps,
      arguments.seed,
      lambda line: print(line, flush=True),
    )
  counts = collections.Counter(
    event.split(" (")[0] for events in tally.values() for event in events
  )
  print(json.dumps({**counts, "seconds": round(time.monotonic() - started)}))


if __name__ == "__main__":
  main()
