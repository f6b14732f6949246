"""Trains as one of two workers; run twice by `test_workers.py`.

Usage: two_workers.py INDEX PORTS DATA_DIR OUT. INDEX is 0 or 1, or `alone` for
a run of one process on the same batches. Writes the weights to OUT, before and
after training.
"""

import json
import os
import sys

import numpy as np
from two_devices import UNDROPPED, train

from official_transformer.training.settings import Execution
from official_transformer.training.strategy import create_distribution


def main():
  index, ports, data_dir, out = sys.argv[1:]
  name = "off"
  if index != "alone":
    name = "multi_worker_mirrored"
    addresses = [f"127.0.0.1:{port}" for port in ports.split(",")]
    os.environ["TF_CONFIG"] = json.dumps(
      {
        "cluster": {"worker": addresses},
        "task": {"type": "worker", "index": int(index)},
      }
    )
  distribution = create_distribution(name, ["CPU:0"], connect_timeout=60.0)
  before, after, _ = train(data_dir, distribution, UNDROPPED, Execution())
  np.savez(out, *before, *after[: len(before)])


if __name__ == "__main__":
  main()
