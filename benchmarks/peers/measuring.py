"""What the measured scripts share, in any environment: flags and timing."""

import json
import resource
import time


def add_shape_flags(parser):
  """Adds the flags of a model's shape; the base model's, unless given."""
  parser.add_argument("--hidden_size", type=int, default=512)
  parser.add_argument("--filter_size", type=int, default=2048)
  parser.add_argument("--num_heads", type=int, default=8)
  parser.add_argument("--num_hidden_layers", type=int, default=6)
  parser.add_argument("--vocab_size", type=int, default=32768)


def add_training_flags(parser):
  """Adds the flags of a few training steps on random pairs."""
  add_shape_flags(parser)
  parser.add_argument("--sentences", type=int, default=64)
  parser.add_argument("--length", type=int, default=32)
  parser.add_argument("--steps", type=int, default=8)
  parser.add_argument("--warmup", type=int, default=2)


def add_decoding_flags(parser, repeats):
  """Adds the flags of decoding random sentences, `repeats` times."""
  parser.add_argument("--sentences", type=int, default=32)
  parser.add_argument("--length", type=int, default=32)
  parser.add_argument("--extra", type=int, default=30)
  parser.add_argument("--beam_size", type=int, default=4)
  parser.add_argument("--repeats", type=int, default=repeats)


def time_job(job, repeats, first_run=True):
  """Times a job.

  Args:
    job: returns the sentences and the tokens it has decoded.
    repeats: how often it is timed.
    first_run: whether it runs once before, untimed.

  Returns:
    The seconds of each repetition, what was decoded in each, and the process'
    largest resident memory.
  """
  if first_run:
    job()
  seconds = []
  for _ in range(repeats):
    start = time.perf_counter()
    sentences, tokens = job()
    seconds.append(time.perf_counter() - start)
  return {
    "seconds": seconds,
    "sentences": sentences,
    "tokens": tokens,
    "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
  }


def report(found):
  """Prints what was found as the one line that is read."""
  print(json.dumps(found))
