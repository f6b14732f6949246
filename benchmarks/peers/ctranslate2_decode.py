"""Decodes with CTranslate2, and times it.

Runs in an environment of its own, with ctranslate2. The model has random
weights, or those that `measure_decoding.py --save_weights` has written, with
the lines to translate. Prints one JSON object.
"""

import argparse
import json
import tempfile

import ctranslate2
import measuring
import numpy as np
from ctranslate2.specs import common_spec, transformer_spec


class RandomWeights(dict):
  """Weights of the base model, made when they are asked for."""

  def __init__(self, vocab_size):
    super().__init__()
    self.rng = np.random.default_rng(0)
    self.vocab_size = vocab_size

  def __missing__(self, path):
    """Returns random values of the shape that belongs to the path."""
    name = path.split("/")[-1]
    if name in ("gamma", "beta", "filter_bias", "output_bias"):
      size = 2048 if name == "filter_bias" else 512
      return np.full([size], float(name == "gamma"), np.float32)
    shape = {
      "weights": (self.vocab_size, 512),
      "filter_kernel": (512, 2048),
    }.get(name, (512, 512))
    if "network" in path and name == "output_kernel":
      shape = (2048, 512)
    scale = 512**-0.5 if name == "weights" else shape[0] ** -0.5
    return (self.rng.normal(size=shape) * scale).astype(np.float32)


def set_norm(spec, weights, path):
  """Fills a layer norm."""
  spec.gamma, spec.beta = weights[f"{path}/gamma"], weights[f"{path}/beta"]


def set_linear(spec, kernels, bias=None):
  """Fills a product with kernels side by side; CTranslate2 has [out, in]."""
  spec.weight = np.concatenate(kernels, axis=1).T.copy()
  spec.bias = np.zeros(len(spec.weight), np.float32) if bias is None else bias


def set_attention(spec, weights, path, own):
  """Fills attention to itself or to the source."""
  set_norm(spec.layer_norm, weights, f"{path}/layer_norm")
  query, key, value, output = (
    weights[f"{path}/attention/{name}_kernel"]
    for name in ("query", "key", "value", "output")
  )
  if own:
    set_linear(spec.linear[0], [query, key, value])
  else:
    set_linear(spec.linear[0], [query])
    set_linear(spec.linear[1], [key, value])
  set_linear(spec.linear[-1], [output])


def set_network(spec, weights, path):
  """Fills a feed-forward network."""
  set_norm(spec.layer_norm, weights, f"{path}/layer_norm")
  for linear, name in ((spec.linear_0, "filter"), (spec.linear_1, "output")):
    set_linear(
      linear,
      [weights[f"{path}/network/{name}_kernel"]],
      weights[f"{path}/network/{name}_bias"],
    )


def positions(hidden_size):
  """Returns the timing signal of 600 positions."""
  steps = np.arange(hidden_size // 2) / (hidden_size // 2 - 1)
  times = np.arange(600)[:, None] * np.exp(-np.log(1e4) * steps)
  return np.concatenate([np.sin(times), np.cos(times)], 1).astype(np.float32)


def specification(weights, layers, heads, zero_start):
  """Returns the pre-norm model."""
  spec = transformer_spec.TransformerSpec.from_config(
    num_layers=layers,
    num_heads=heads,
    pre_norm=True,
    activation=common_spec.Activation.RELU,
  )
  table = weights["transformer/embedding/weights"]
  for stack, name in ((spec.encoder, "encoder"), (spec.decoder, "decoder")):
    path = f"transformer/{name}_stack"
    set_norm(stack.layer_norm, weights, f"{path}/output_norm")
    stack.position_encodings.encodings = positions(table.shape[1])
    embeddings = stack.embeddings
    one = embeddings[0] if isinstance(embeddings, list) else embeddings
    one.weight = table
    stack.scale_embeddings = True
    for n, layer in enumerate(stack.layer):
      where = f"{path}/layer_{n}"
      set_attention(
        layer.self_attention, weights, f"{where}/self_attention", own=True
      )
      if name == "decoder":
        set_attention(
          layer.attention, weights, f"{where}/cross_attention", own=False
        )
      set_network(layer.ffn, weights, f"{where}/ffn")
  set_linear(spec.decoder.projection, [table.T])
  spec.decoder.start_from_zero_embedding = zero_start
  return spec


def prepare(arguments):
  """Returns the model's specification, the lines, and how to decode them."""
  if arguments.weights:
    weights = np.load(arguments.weights)
    pieces = json.loads(str(weights["pieces"]))
    lines = json.loads(str(weights["lines"]))
    layers = sum("decoder" in name and "ffn/layer_norm/gamma" in name
                 for name in weights)  # fmt: skip
    spec = specification(
      weights, layers, int(weights["num_heads"]), bool(weights["zero_start"])
    )
    settings = {"max_batch_size": 2048, "batch_type": "tokens"}
  else:
    pieces = [f"piece{n}" for n in range(arguments.vocab_size)]
    rng = np.random.default_rng(0)
    size = (arguments.sentences, arguments.length)
    lines = [
      [pieces[n] for n in row]
      for row in rng.integers(2, arguments.vocab_size, size)
    ]
    spec = specification(RandomWeights(arguments.vocab_size), 6, 8, True)
    steps = arguments.length + arguments.extra
    settings = {
      "max_batch_size": arguments.sentences // arguments.workers,
      "min_decoding_length": steps,
      "max_decoding_length": steps,
    }
  spec.register_source_vocabulary(pieces)
  spec.register_target_vocabulary(pieces)
  spec.config.add_source_eos = bool(arguments.weights)
  spec.config.eos_token = pieces[1]
  spec.config.bos_token = spec.config.decoder_start_token = pieces[0]
  spec.config.unk_token = pieces[2]
  spec.validate()
  spec.optimize(quantization=None)
  return spec, lines, settings


def main():
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--vocab_size", type=int, default=32768)
  measuring.add_decoding_flags(parser, repeats=3)
  parser.add_argument("--weights", default="")
  parser.add_argument("--compute_type", default="float32")
  parser.add_argument("--workers", type=int, default=1)
  parser.add_argument("--threads", type=int, default=2, help="of each worker")
  arguments = parser.parse_args()
  spec, lines, settings = prepare(arguments)
  with tempfile.TemporaryDirectory() as directory:
    spec.save(directory)
    translator = ctranslate2.Translator(
      directory,
      compute_type=arguments.compute_type,
      inter_threads=arguments.workers,
      intra_threads=arguments.threads,
    )

  def job():
    found = translator.translate_batch(
      lines, beam_size=arguments.beam_size, length_penalty=0.6, **settings
    )
    # Trained, it ends each with EOS, which it does not return.
    ends = bool(arguments.weights)
    return len(found), sum(len(f.hypotheses[0]) + ends for f in found)

  measuring.report(measuring.time_job(job, arguments.repeats))


if __name__ == "__main__":
  main()
