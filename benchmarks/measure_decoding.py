"""Decodes as `--mode=predict` does, and times it.

    python benchmarks/measure_decoding.py --workers=2
    python benchmarks/measure_decoding.py --model_dir=model --text=val.en
    python benchmarks/measure_decoding.py --engine=ctranslate2 --workers=2

Without a model, one of random weights and of the shape asked for decodes random
sentences, each for `length + extra` steps. Loading and tracing are not timed.
Prints one JSON object: the seconds of each repetition, what was decoded in
each, and the process' largest resident memory. `decode.py` runs this beside its
peers.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import os
import pathlib
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from official_transformer.hardware.processor import prefer_onednn

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
prefer_onednn()  # As the commands do, before TensorFlow is imported.

import keras
import numpy as np
import tensorflow as tf
from peers.measuring import add_decoding_flags, report, time_job

from official_transformer.decoding.batching import pad
from official_transformer.decoding.engines import ENGINES, Engine
from official_transformer.decoding.hypotheses import FoundSequence
from official_transformer.decoding.loading import (
  LoadedCheckpoint,
  LoadedModel,
  fast_dtype,
  load_model,
  open_model,
)
from official_transformer.decoding.options import BatchLimits, DecodingOptions
from official_transformer.decoding.searchers import Searchers
from official_transformer.decoding.translator import Translator
from official_transformer.exporting.saved_model import write_saved_model
from official_transformer.hardware.cpu_threads import (
  serve_single_lines,
  share_processors,
)
from official_transformer.model.building import build_transformer
from official_transformer.model.transformer import (
  Transformer,
)
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_params import PARAM_SETS
from official_transformer.text.text_files import read_lines
from official_transformer.text.tokenizer import Tokenizer
from official_transformer.text.vocabulary_files import Tokenizers, VocabFiles

# What a job returns: sentences and tokens of their best translations.
Job = Callable[[], tuple[int, int]]
Search = Callable[[list[list[int]]], list[list[FoundSequence]]]
SAVED_BATCH = 64


def random_job(arguments: argparse.Namespace) -> Job:
  """Returns the decoding of random sentences by a random model."""
  params = dataclasses.replace(
    PARAM_SETS[arguments.param_set],
    vocab_size=arguments.vocab_size,
    beam_size=arguments.beam_size,
    extra_decode_length=arguments.extra,
  )
  keras.utils.set_random_seed(0)
  set_threads(arguments, params.hidden_size)
  dtype = fast_dtype(arguments.dtype)
  transformer = build_transformer(params, dtype, is_train=False)
  options = DecodingOptions(
    BatchLimits(lines=arguments.sentences),
    workers=arguments.workers,
    padded_length=arguments.length if arguments.padded else 0,
    engine=Engine(arguments.engine, arguments.quantization),
  )
  tokenizers = Tokenizers.of(cast(Tokenizer, Numbers(params.vocab_size)))
  if arguments.saved_model:
    search = saved_search(transformer, tokenizers)
  else:
    search = Searchers.of([transformer], tokenizers, options).plain.search
  rng = np.random.default_rng(0)
  size = (arguments.sentences, arguments.length)
  sources = rng.integers(2, params.vocab_size, size).tolist()
  batches = [sources[n :: arguments.workers] for n in range(arguments.workers)]
  pool = ThreadPoolExecutor(arguments.workers)

  def job() -> tuple[int, int]:
    found = [s for batch in pool.map(search, batches) for s in batch]
    steps = arguments.length + arguments.extra
    assert {len(s[0].ids) for s in found} == {steps}, "it stopped by itself"
    return len(found), len(found) * steps

  return job


class Numbers:
  """A vocabulary of numbers, as much of one as a search needs."""

  def __init__(self, vocab_size: int) -> None:
    self.vocab_size = vocab_size

  def pieces(self, ids: list[int]) -> list[str]:
    """Returns what stands for ids."""
    return [f"piece{i}" for i in ids]


def saved_search(transformer: Transformer, tokenizers: Tokenizers) -> Search:
  """Returns the search of a SavedModel of a random model."""
  with tempfile.TemporaryDirectory() as directory:
    vocab_file = os.path.join(directory, "vocab")
    pathlib.Path(vocab_file).touch()
    path = os.path.join(directory, "saved")
    model = LoadedModel(transformer, tokenizers, 256, LoadedCheckpoint(0))
    files = VocabFiles.joint(vocab_file)
    write_saved_model(model, files, path, with_text=False)
    loaded = tf.saved_model.load(path)

  def search(sources: list[list[int]]) -> list[list[FoundSequence]]:
    ids = tf.constant(pad(sources), tf.int64)
    # It is kept from being collected by this function's reference to it.
    found = loaded.signatures["translate"](input=ids)["outputs"].numpy()
    return [[FoundSequence(row.tolist(), 0.0, False)] for row in found]

  return search


def saved_text_job(arguments: argparse.Namespace) -> Job:
  """Returns the translation of a file by a SavedModel, text in, text out."""
  set_threads(
    arguments, ModelDirectory(arguments.model_dir).read().params.hidden_size
  )
  importlib.import_module("tensorflow_text")
  loaded = tf.saved_model.load(arguments.saved_model)
  translate = loaded.signatures["translate_text"]
  lines = sorted(read_lines(arguments.text), key=len, reverse=True)
  starts = range(0, len(lines), SAVED_BATCH)
  batches = [lines[start : start + SAVED_BATCH] for start in starts]
  pool = ThreadPoolExecutor(arguments.workers)

  def work(batch: list[str]) -> int:
    found = translate(text=tf.constant(batch))["translations"].numpy()
    # Its tokens are not told; words stand for them.
    return sum(len(text.split()) for text in found)

  def job() -> tuple[int, int]:
    return len(lines), sum(pool.map(work, batches))

  return job


def text_job(arguments: argparse.Namespace) -> Job:
  """Returns the translation of a file by a model directory."""
  hidden_size = ModelDirectory(arguments.model_dir).read().params.hidden_size
  set_threads(arguments, hidden_size)
  limits = BatchLimits()
  translator = Translator.load(
    arguments.model_dir,
    beam_size=arguments.beam_size,
    patience=arguments.patience,
    dtype=arguments.dtype,
    options=DecodingOptions(
      limits,
      workers=arguments.workers,
      padded_length=arguments.length if arguments.padded else 0,
      engine=Engine(arguments.engine, arguments.quantization),
    ),
  )
  lines = list(read_lines(arguments.text))
  if arguments.words:
    lines = [line for line in lines if len(line.split()) == arguments.words]

  def job() -> tuple[int, int]:
    if arguments.words:
      found = [translator.translate_line(line) for line in lines]
    else:
      found = list(translator.translate_stream(lines))
    # EOS is a step, too.
    return len(found), sum(len(t.hypotheses[0].tokens) + 1 for t in found)

  return job


def set_threads(arguments: argparse.Namespace, hidden_size: int) -> None:
  """Shares the processors out as the command line does."""
  if arguments.workers:
    share_processors(arguments.workers)
  else:
    arguments.workers = 1
    serve_single_lines(hidden_size)


def main() -> None:
  """Runs the command."""
  parser = argparse.ArgumentParser()
  parser.add_argument("--param_set", default="base", choices=PARAM_SETS)
  parser.add_argument("--vocab_size", type=int, default=32768)
  add_decoding_flags(parser, repeats=3)
  parser.add_argument("--dtype", default="fp32")
  parser.add_argument("--engine", default=ENGINES[0], choices=ENGINES)
  parser.add_argument("--quantization", default="float32")
  parser.add_argument(
    "--saved_model",
    default="",
    help="an export of --model_dir; if there is none, anything has the random "
    "model exported",
  )
  parser.add_argument("--padded", action="store_true")
  parser.add_argument("--workers", type=int, default=0, help="0: as --text")
  parser.add_argument("--model_dir", default="")
  parser.add_argument("--text", default="")
  parser.add_argument("--words", type=int, default=0, help="of each line")
  parser.add_argument("--patience", type=float, help="of the model's search")
  parser.add_argument("--save_weights", default="", help="an .npz file")
  arguments = parser.parse_args()
  if arguments.save_weights:
    save_weights(arguments)
    return
  make_job = random_job
  if arguments.model_dir:
    make_job = saved_text_job if arguments.saved_model else text_job
  job = make_job(arguments)
  found = time_job(job, arguments.repeats)
  found["dtype"] = fast_dtype(arguments.dtype)
  if tf.config.list_logical_devices("GPU"):
    memory = tf.config.experimental.get_memory_info("GPU:0")
    found["gpu_peak_kib"] = memory["peak"] // 1024
  report(found)


def save_weights(arguments: argparse.Namespace) -> None:
  """Writes a model's weights and the pieces of its text, for a peer."""
  model = load_model(*open_model(arguments.model_dir))
  tokenizer, transformer = model.tokenizers.source, model.transformer
  params = transformer.params
  lines = [
    tokenizer.pieces(tokenizer.encode(line))
    for line in read_lines(arguments.text)
  ]
  weights = {w.path: w.numpy() for w in transformer.weights}
  np.savez(
    arguments.save_weights,
    **weights,
    lines=np.array(json.dumps(lines)),
    pieces=np.array(json.dumps(tokenizer.pieces(range(params.vocab_size)))),
    num_heads=params.num_heads,
    zero_start=params.start_symbol == "zero",
  )


if __name__ == "__main__":
  main()
