"""Decodes with tensorflow/models' own Transformer, and times it.

Runs in an environment of its own, with tf-models-official 2.20 and tf-keras,
and TF_USE_LEGACY_KERAS=1. Prints one JSON object.
"""

import argparse
import json
import resource
import tempfile
import time

import numpy as np
import tensorflow as tf
from official.legacy.transformer import model_params, transformer, translate
from official.legacy.transformer.utils import tokenizer


def parameters(arguments):
  """Returns upstream's parameters for the shapes asked for."""
  return {
    **model_params.BASE_PARAMS,
    "hidden_size": arguments.hidden_size,
    "filter_size": arguments.filter_size,
    "num_heads": arguments.num_heads,
    "num_hidden_layers": arguments.num_hidden_layers,
    "vocab_size": arguments.vocab_size,
    "beam_size": arguments.beam_size,
    "extra_decode_length": arguments.extra,
    "dtype": tf.float32,
    "padded_decode": False,
    "enable_metrics_in_training": False,
    "decode_batch_size": 32,
    "decode_max_length": 97,
  }


def text_job(arguments, params, model):
  """Returns the translation of a file, or of its lines one at a time."""
  subtokenizer = tokenizer.Subtokenizer(arguments.vocab_file)
  model.load_weights(arguments.checkpoint).expect_partial()

  def whole():
    with tempfile.NamedTemporaryFile() as output:
      translate.translate_file(
        model, params, subtokenizer, arguments.text, output.name, False
      )
      lines = output.read().decode("utf-8").split("\n")[:-1]
    pieces = [subtokenizer.encode(line, add_eos=True) for line in lines]
    return len(lines), sum(map(len, pieces))

  if not arguments.words:
    # Instead of a first run, which would take minutes.
    model.predict(np.ones([32, 97], np.int32), verbose=0)
    return whole
  with open(arguments.text, encoding="utf-8") as stream:
    lines = stream.read().split("\n")[:-1]
  sources = [
    np.array([subtokenizer.encode(line, add_eos=True)], np.int32)
    for line in lines
    if len(line.split()) == arguments.words
  ]

  def one_by_one():
    outputs = [model.predict(s, verbose=0)[0] for s in sources]
    return len(outputs), sum(int((o > 0).sum()) for o in outputs)

  one_by_one()
  return one_by_one


def random_job(arguments, params, model):
  """Returns the decoding of random sentences."""
  rng = np.random.default_rng(0)
  size = (arguments.sentences, arguments.length)
  source = rng.integers(2, params["vocab_size"], size).astype(np.int32)

  def job():
    outputs, _ = model.predict(source, verbose=0)
    return len(outputs), int((outputs > 0).sum())

  job()
  return job


def main():
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--hidden_size", type=int, default=512)
  parser.add_argument("--filter_size", type=int, default=2048)
  parser.add_argument("--num_heads", type=int, default=8)
  parser.add_argument("--num_hidden_layers", type=int, default=6)
  parser.add_argument("--vocab_size", type=int, default=32768)
  parser.add_argument("--sentences", type=int, default=32)
  parser.add_argument("--length", type=int, default=32)
  parser.add_argument("--extra", type=int, default=30)
  parser.add_argument("--beam_size", type=int, default=4)
  parser.add_argument("--checkpoint", default="")
  parser.add_argument("--vocab_file", default="")
  parser.add_argument("--text", default="")
  parser.add_argument("--words", type=int, default=0, help="of each line")
  parser.add_argument("--repeats", type=int, default=1)
  arguments = parser.parse_args()
  params = parameters(arguments)
  model = transformer.create_model(params, is_train=False)
  make = text_job if arguments.text else random_job
  job = make(arguments, params, model)
  seconds = []
  for _ in range(arguments.repeats):
    start = time.perf_counter()
    sentences, tokens = job()
    seconds.append(time.perf_counter() - start)
  memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  print(
    json.dumps(
      {
        "seconds": seconds,
        "sentences": sentences,
        "tokens": tokens,
        "peak_kib": memory,
      }
    )
  )


if __name__ == "__main__":
  main()
