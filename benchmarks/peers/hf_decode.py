"""Decodes with Hugging Face's Marian classes of random weights, and times it.

Runs in an environment of its own, with torch and transformers. Prints one JSON
object.
"""

import argparse
import json
import resource
import time

import torch
from transformers import MarianConfig, MarianMTModel


def model_of(arguments):
  """Returns the base model with random weights."""
  torch.manual_seed(0)
  config = MarianConfig(
    vocab_size=arguments.vocab_size,
    d_model=512,
    encoder_layers=6,
    decoder_layers=6,
    encoder_attention_heads=8,
    decoder_attention_heads=8,
    encoder_ffn_dim=2048,
    decoder_ffn_dim=2048,
    activation_function="relu",
    max_position_embeddings=512,
    pad_token_id=0,
    eos_token_id=1,
    bos_token_id=2,
    decoder_start_token_id=0,
    forced_eos_token_id=None,
    scale_embedding=True,
    share_encoder_decoder_embeddings=True,
  )
  model = MarianMTModel(config).eval()
  if arguments.dtype == "bf16":
    model = model.to(torch.bfloat16)
  return model


def main():
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--vocab_size", type=int, default=32768)
  parser.add_argument("--sentences", type=int, default=32)
  parser.add_argument("--length", type=int, default=32)
  parser.add_argument("--extra", type=int, default=30)
  parser.add_argument("--beam_size", type=int, default=4)
  parser.add_argument("--dtype", default="fp32", choices=["fp32", "bf16"])
  parser.add_argument("--repeats", type=int, default=2)
  arguments = parser.parse_args()
  model = model_of(arguments)
  size = (arguments.sentences, arguments.length)
  source = torch.randint(2, arguments.vocab_size, size)
  steps = arguments.length + arguments.extra

  def job():
    # The start symbol counts as a token here.
    outputs = model.generate(
      source,
      num_beams=arguments.beam_size,
      min_length=steps + 1,
      max_length=steps + 1,
      do_sample=False,
    )
    return len(outputs), outputs[:, 1:].numel()

  with torch.no_grad():
    sentences, tokens = job()
    seconds = []
    for _ in range(arguments.repeats):
      start = time.perf_counter()
      job()
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
