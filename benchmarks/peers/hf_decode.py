"""Decodes with Hugging Face's Marian classes of random weights, and times it.

Runs in an environment of its own, with torch and transformers. Prints one JSON
object.
"""

import argparse

import hf_train
import measuring
import torch


def main():
  """Runs the command."""
  parser = argparse.ArgumentParser()
  measuring.add_shape_flags(parser)
  measuring.add_decoding_flags(parser, repeats=2)
  parser.add_argument("--dtype", default="fp32", choices=["fp32", "bf16"])
  arguments = parser.parse_args()
  torch.manual_seed(0)
  model = hf_train.model_of(arguments).eval()
  if arguments.dtype == "bf16":
    model = model.to(torch.bfloat16)
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
    measuring.report(measuring.time_job(job, arguments.repeats))


if __name__ == "__main__":
  main()
