"""Trains Hugging Face's Marian classes for a few steps and times them.

Runs in an environment of its own, with torch and transformers. Prints one JSON
object.
"""

import argparse
import json
import resource
import time

import measuring
import torch
from transformers import MarianConfig, MarianMTModel


def model_of(arguments):
  """Returns a model of the shape asked for, with random weights."""
  layers, heads = arguments.num_hidden_layers, arguments.num_heads
  config = MarianConfig(
    vocab_size=arguments.vocab_size,
    d_model=arguments.hidden_size,
    encoder_layers=layers,
    decoder_layers=layers,
    encoder_attention_heads=heads,
    decoder_attention_heads=heads,
    encoder_ffn_dim=arguments.filter_size,
    decoder_ffn_dim=arguments.filter_size,
    activation_function="relu",
    max_position_embeddings=512,
    pad_token_id=0,
    eos_token_id=1,
    bos_token_id=2,
    decoder_start_token_id=0,
    forced_eos_token_id=None,
    dropout=0.1,
    attention_dropout=0.1,
    activation_dropout=0.1,
    scale_embedding=True,
    share_encoder_decoder_embeddings=True,
  )
  return MarianMTModel(config)


def main():
  """Runs the command."""
  parser = argparse.ArgumentParser()
  measuring.add_training_flags(parser)
  parser.add_argument("--dtype", default="fp32")
  arguments = parser.parse_args()
  device = "cuda" if torch.cuda.is_available() else "cpu"
  torch.manual_seed(0)
  model = model_of(arguments).train().to(device)
  optimizer = torch.optim.Adam(model.parameters(), 1e-4, fused=True)
  criterion = torch.nn.CrossEntropyLoss(ignore_index=0, label_smoothing=0.1)
  shape = (arguments.sentences, arguments.length)
  x, y = (
    torch.randint(2, arguments.vocab_size, shape, device=device)
    for _ in range(2)
  )
  start = torch.zeros(arguments.sentences, 1, dtype=torch.long, device=device)
  shifted = torch.cat([start, y[:, :-1]], 1)
  half = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(arguments.dtype)
  scaler = torch.amp.GradScaler(device, enabled=arguments.dtype == "fp16")
  seconds = []
  for _ in range(arguments.warmup + arguments.steps):
    started = time.perf_counter()
    with torch.autocast(device, dtype=half, enabled=half is not None):
      logits = model(
        input_ids=x,
        attention_mask=torch.ones_like(x),
        decoder_input_ids=shifted,
      ).logits
    loss = criterion(logits.float().view(-1, logits.shape[-1]), y.view(-1))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad()
    loss.item()
    seconds.append(time.perf_counter() - started)
  found = {
    "seconds": seconds[arguments.warmup :],
    "peak_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
  }
  if device == "cuda":
    found["gpu_peak_kib"] = torch.cuda.max_memory_allocated() // 1024
  print(json.dumps(found))


if __name__ == "__main__":
  main()
