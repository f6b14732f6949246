"""Measures how the time of a search grows with the beam.

  python benchmarks/beams.py --beams=4,8,16,32,64,128

Prints a JSON object a line: the beam, the median seconds for 16 sentences of 12
random tokens, and the seconds a hypothesis as a multiple of those at the first
beam.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time

from official_transformer.hardware.processor import prefer_onednn

prefer_onednn()  # As the commands do, before TensorFlow is imported.

import keras
import numpy as np
import tensorflow as tf

from official_transformer.model.building import build_transformer
from official_transformer.model_params import TransformerParams

SENTENCES, LENGTH = 16, 12


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--beams", default="4,8,16,32,64,128")
  parser.add_argument("--hidden_size", type=int, default=128)
  parser.add_argument("--layers", type=int, default=3)
  parser.add_argument("--heads", type=int, default=4)
  parser.add_argument("--vocab_size", type=int, default=4000)
  parser.add_argument("--repeats", type=int, default=3)
  arguments = parser.parse_args()
  rng = np.random.default_rng(0)
  ids = rng.integers(2, arguments.vocab_size, [SENTENCES, LENGTH])
  ids[:, -1] = 1
  source = tf.constant(ids, tf.int32)
  base = None
  for beam in map(int, arguments.beams.split(",")):
    keras.utils.set_random_seed(1)
    transformer = build_transformer(
      TransformerParams(
        vocab_size=arguments.vocab_size,
        hidden_size=arguments.hidden_size,
        num_hidden_layers=arguments.layers,
        num_heads=arguments.heads,
        filter_size=4 * arguments.hidden_size,
        extra_decode_length=30,
        beam_size=beam,
      ),
      is_train=False,
    )
    search = tf.function(
      transformer.beam_search,
      input_signature=[tf.TensorSpec([None, None], tf.int32)],
      autograph=False,
    )
    search(source[:1])  # Traces it.
    times = []
    for _ in range(arguments.repeats):
      start = time.perf_counter()
      search(source)
      times.append(time.perf_counter() - start)
    median = statistics.median(times)
    base = base or median / beam
    result = {"beam": beam, "seconds": median, "growth": median / beam / base}
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
  main()
