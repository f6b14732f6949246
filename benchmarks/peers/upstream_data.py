"""Times upstream's preparation of data: encoding, writing and shuffling.

Run in an environment of its own, see README.md here. Prints one JSON line.
"""

import argparse
import glob
import hashlib
import itertools
import os
import random
import resource
import time

from measuring import report
from official.legacy.transformer import data_download
from official.legacy.transformer.utils import tokenizer


def time_encoding(arguments):
  """Returns the seconds of encoding alone, and what tells the ids apart."""
  subtokenizer = tokenizer.Subtokenizer(arguments.vocab_file)
  lines = []
  for path in (arguments.source, arguments.target):
    with open(path, encoding="utf-8") as stream:
      some = itertools.islice(stream, arguments.encode)
      lines += [line.strip() for line in some]
  start = time.perf_counter()
  ids = [subtokenizer.encode(line, add_eos=True) for line in lines]
  seconds = time.perf_counter() - start
  return {
    "seconds": seconds,
    "sha256": hashlib.sha256(repr(ids).encode()).hexdigest(),
  }


def main():
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--source", required=True)
  parser.add_argument("--target", required=True)
  parser.add_argument("--vocab_file", required=True)
  parser.add_argument("--data_dir", required=True)
  parser.add_argument("--shards", type=int, default=8)
  parser.add_argument(
    "--build", type=int, default=0, help="make a vocabulary so large, no data"
  )
  parser.add_argument(
    "--encode", type=int, default=0, help="encode so many pairs, write none"
  )
  arguments = parser.parse_args()
  if arguments.build:
    start = time.perf_counter()
    tokenizer.Subtokenizer.init_from_files(
      arguments.vocab_file,
      [arguments.source, arguments.target],
      arguments.build,
      max(1, arguments.build // 100),
    )
    report({"seconds": time.perf_counter() - start})
    return
  if arguments.encode:
    report(time_encoding(arguments))
    return
  os.makedirs(arguments.data_dir, exist_ok=True)
  for path in glob.glob(f"{arguments.data_dir}/*"):
    os.remove(path)
  random.seed(1)
  subtokenizer = tokenizer.Subtokenizer(arguments.vocab_file)
  start = time.perf_counter()
  paths = data_download.encode_and_save_files(
    subtokenizer,
    arguments.data_dir,
    (arguments.source, arguments.target),
    "train",
    arguments.shards,
  )
  for path in paths:
    data_download.shuffle_records(path)
  seconds = time.perf_counter() - start
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  report({"seconds": seconds, "peak_kib": peak})


if __name__ == "__main__":
  main()
