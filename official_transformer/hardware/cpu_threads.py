"""Sharing a machine's processors out among batches decoded side by side.

A decoding step is many small operations between a few large products. Two
batches with a thread each keep two processors busier than one batch with two
threads, which wait for each other at every operation's end.

TensorFlow is imported only where its own threads are set.
"""

from __future__ import annotations

import os

from absl import logging

from official_transformer.hardware import control_groups

# Each worker holds a batch in memory.
MOST_WORKERS = 4
# From this width on, a single line's products are large enough to be shared.
WIDE = 512
# Processors that are used at most; 0 is all.
_most = 0


def serve_single_lines(hidden_size: int) -> None:
  """Sets TensorFlow's threads for one line at a time.

  A narrow model's operations take less time than one thread's waiting for
  another. Takes no effect once TensorFlow has computed anything.
  """
  if hidden_size < WIDE:
    _set_threads(intra_op=1, inter_op=1)


def default_workers() -> int:
  """Returns how many batches are decoded side by side.

  It is one a processor, up to `MOST_WORKERS`.
  """
  return min(processors(), MOST_WORKERS)


def share_processors(workers: int) -> None:
  """Gives each of so many workers its share of TensorFlow's threads.

  Takes no effect once TensorFlow has computed anything.
  """
  _set_threads(threads_of_each(workers), max(2, workers))


def threads_of_each(workers: int) -> int:
  """Returns the threads of each of so many workers."""
  return max(1, processors() // workers)


def limit_processors(number: int) -> None:
  """Leaves all processors but so many to other processes."""
  global _most
  _most = number


def processors() -> int:
  """Returns how many processors this process may use."""
  return min(_found(), _most) if _most else _found()


def _found() -> int:
  number = os.cpu_count() or 1
  if hasattr(os, "sched_getaffinity"):  # Where a process may be confined.
    number = len(os.sched_getaffinity(0))
  return min(number, control_groups.most_processors() or number)


def _set_threads(intra_op: int, inter_op: int) -> None:
  import tensorflow as tf

  # TensorFlow that computes already, as in a process with other work, keeps
  # the threads that it has.
  try:
    tf.config.threading.set_intra_op_parallelism_threads(intra_op)
    tf.config.threading.set_inter_op_parallelism_threads(inter_op)
  except RuntimeError as error:
    logging.info("TensorFlow's threads stay as they are: %s", error)
