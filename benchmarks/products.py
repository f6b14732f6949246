"""Times matrix products alone: the ceiling of what a training step can reach.

python benchmarks/products.py
"""

from __future__ import annotations

import os
import time

from official_transformer.hardware.processor import prefer_onednn

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
prefer_onednn()  # As the commands do, before TensorFlow is imported.

import tensorflow as tf

# Tokens, input and output size, as in the base model.
SHAPES = ((2048, 512, 512), (2048, 512, 2048), (2048, 512, 32768))
ROUNDS = 5


def flops_per_second(
  dtype: tf.DType, rows: int, inner: int, columns: int
) -> float:
  """Returns the best rate of several rounds."""
  a = tf.cast(tf.random.normal([rows, inner]), dtype)
  b = tf.cast(tf.random.normal([inner, columns]), dtype)
  product = tf.function(tf.matmul)
  product(a, b).numpy()
  work = 2 * rows * inner * columns
  repeats = max(3, int(1e10 / work))
  best = float("inf")
  for _ in range(ROUNDS):
    started = time.perf_counter()
    for _ in range(repeats):
      result = product(a, b)
    result.numpy()
    best = min(best, (time.perf_counter() - started) / repeats)
  return work / best


def main() -> None:
  """Runs the command."""
  for dtype in (tf.float32, tf.bfloat16):
    for shape in SHAPES:
      rate = flops_per_second(dtype, *shape) / 1e9
      print(
        f"{dtype.name:9} {' x '.join(map(str, shape)):>18} {rate:7.0f} GF/s"
      )


if __name__ == "__main__":
  main()
