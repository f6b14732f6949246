"""Decodes with tensorflow/models' own Transformer, and times it.

Runs in an environment of its own, with tf-models-official 2.20 and tf-keras,
and TF_USE_LEGACY_KERAS=1. Prints one JSON object.
"""

import argparse
import tempfile

import measuring
import numpy as np
import upstream_train
from official.legacy.transformer import transformer, translate
from official.legacy.transformer.utils import tokenizer


def parameters(arguments):
  """Returns upstream's parameters for what was asked for."""
  return {
    **upstream_train.parameters(arguments),
    "beam_size": arguments.beam_size,
    "extra_decode_length": arguments.extra,
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
    # Traces it; a first run of the file would take minutes.
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

  return one_by_one


def random_job(arguments, params, model):
  """Returns the decoding of random sentences."""
  rng = np.random.default_rng(0)
  size = (arguments.sentences, arguments.length)
  source = rng.integers(2, params["vocab_size"], size).astype(np.int32)

  def job():
    outputs, _ = model.predict(source, verbose=0)
    return len(outputs), int((outputs > 0).sum())

  return job


def main():
  """Runs the command."""
  parser = argparse.ArgumentParser()
  measuring.add_shape_flags(parser)
  measuring.add_decoding_flags(parser, repeats=1)
  parser.add_argument("--checkpoint", default="")
  parser.add_argument("--vocab_file", default="")
  parser.add_argument("--text", default="")
  parser.add_argument("--words", type=int, default=0, help="of each line")
  arguments = parser.parse_args()
  params = parameters(arguments)
  model = transformer.create_model(params, is_train=False)
  make = text_job if arguments.text else random_job
  job = make(arguments, params, model)
  whole_file = bool(arguments.text) and not arguments.words
  measuring.report(
    measuring.time_job(job, arguments.repeats, first_run=not whole_file)
  )


if __name__ == "__main__":
  main()
