"""Errors that end a run, and saving before them."""

from __future__ import annotations

from collections.abc import Iterator

from absl import logging

from official_transformer.data.record_check import READ_ERRORS
from official_transformer.errors import InputError, RunError
from official_transformer.storage.durable_files import write_text
from official_transformer.training.data_feed import DataFeed
from official_transformer.training.divergence import Divergence
from official_transformer.training.run_control import RunControl


def diverged(
  found: Divergence, feed: DataFeed, path: str, control: RunControl
) -> RunError:
  """Returns the error of a run whose updates were not finite.

  The ids of the first of these updates are stored, so that the cause can be
  found.

  Args:
    found: the updates that were not finite.
    feed: the batches of the run.
    path: how the name of the file of ids begins.
    control: control of the run.
  """
  error = found.error(control.settings.batching.accumulate_steps)
  if not control.distribution.is_chief or not feed.data:
    return error
  path = f"{path}{found.first}.jsonl"
  lines = feed.lines_of_update(found.first)
  return RunError(str(error) + keep_ids(path, lines, found.first))


def keep_ids(path: str, lines: Iterator[str], step: int) -> str:
  """Writes the ids of an update's batches.

  Args:
    path: path of the file.
    lines: a line of JSON for each pair.
    step: the update.

  Returns:
    Text for an error message; empty if reading or writing fails.
  """
  try:
    write_text(path, "".join(lines))
  except (OSError, InputError, *READ_ERRORS) as error:
    logging.error("cannot write %s: %s", path, error)
    return ""
  return f". The ids of step {step} are in {path}"


def data_have_changed(change: str, control: RunControl) -> InputError:
  """Saves the model, and returns the error of a run whose data have changed.

  In a call that makes several updates, the weights may be between two steps
  that callbacks have seen: then nothing is saved, and the newest checkpoint is
  an earlier one.

  Args:
    change: description of the change of the data, for the error.
    control: control of the run.
  """
  if not control.saver.enabled:
    return InputError(change)
  if control.settings.execution.steps_per_loop > 1:
    return InputError(
      f"{change}\nWith --steps_per_loop nothing is saved here: the newest "
      "checkpoint is what there is"
    )
  try:
    control.save_last(interim=True)
  except (OSError, RunError) as error:
    return InputError(f"{change}\nStep {control.step} is not saved: {error}")
  return InputError(f"{change}\nStep {control.step} was the last, and is saved")
