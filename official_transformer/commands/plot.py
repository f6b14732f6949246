"""What `--mode=plot` does: pictures of runs, schedules and models."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
from absl import flags, logging

from official_transformer.commands.flag_readers import read_requested_params
from official_transformer.data import text_files
from official_transformer.data.tokenizer import Tokenizer
from official_transformer.decoding.loading import load_model
from official_transformer.errors import InputError
from official_transformer.model.embedding_layer import EmbeddingSharedWeights
from official_transformer.model.embedding_neighbours import nearest_entries
from official_transformer.model.variants import POSITIONS
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_directory.run_logs import read_curves
from official_transformer.model_params import EOS_ID, TransformerParams
from official_transformer.plotting.model_plots import (
  Neighbours,
  save_neighbours,
  save_positions,
)
from official_transformer.plotting.run_plots import (
  RunCurves,
  panels_of,
  save_runs,
  save_schedule,
)
from official_transformer.storage import file_system
from official_transformer.storage.standard_streams import show_result
from official_transformer.training.step.optimizer import LearningRateSchedule

FLAGS = flags.FLAGS

_POINTS = 500
_SHOWN = 10
_UNKNOWN = "<unk>"


def plot() -> None:
  """Draws what `--plots` says into `--output_dir`."""
  file_system.make_directories(FLAGS.output_dir)
  drawers = {
    "run": _plot_runs,
    "schedule": _plot_schedule,
    "positions": _plot_positions,
    "neighbours": _plot_neighbours,
  }
  written = []
  for name in FLAGS.plots:
    written += drawers[name](os.path.join(FLAGS.output_dir, name))
  logging.info("wrote %s", ", ".join(written))


def _plot_runs(path: str) -> list[str]:
  """Draws what one or several runs have measured."""
  runs = []
  for name in text_files.listed_files(FLAGS.model_dir):
    curves = read_curves(ModelDirectory(name))
    run = RunCurves(name, curves)
    if not panels_of([run]):
      raise InputError(
        f"{name} has no measurements of a run to draw: training writes them at "
        "each evaluation, and with --enable_tensorboard in between"
      )
    if not any(key.startswith("train/") for key in curves):
      logging.info(
        "%s has no logs: its training was without --enable_tensorboard, and "
        "what was between evaluations is not known",
        name,
      )
    runs.append(run)
  return save_runs(runs, path, FLAGS.picture_formats)


def _params() -> tuple[str, TransformerParams]:
  """Returns the parameters that are meant, and whose they are."""
  requested = read_requested_params()
  if FLAGS["param_set"].present or FLAGS["params_override"].present:
    return requested.param_set or FLAGS.param_set, requested.for_new_model(
      FLAGS.param_set
    )
  directory = _first_model()
  return directory.path, directory.read().params


def _first_model() -> ModelDirectory:
  return ModelDirectory(text_files.listed_files(FLAGS.model_dir)[0])


def _plot_schedule(path: str) -> list[str]:
  """Draws the learning rate of a run of `--train_steps`."""
  name, params = _params()
  warmup = params.learning_rate_warmup_steps
  last = FLAGS.train_steps if FLAGS["train_steps"].present else 4 * warmup
  schedule = LearningRateSchedule(
    params.learning_rate, params.hidden_size, warmup
  )
  steps = np.linspace(0, last, _POINTS).astype(int)
  steps = np.unique([*steps, min(warmup, last)])  # Where it is highest.
  curve = [(int(step), float(schedule(step))) for step in steps]
  peak = max(rate for _, rate in curve)
  title = f"{name}: factor {params.learning_rate:g}, peak {peak:.2e}"
  return save_schedule(title, curve, warmup, path, FLAGS.picture_formats)


def _plot_positions(path: str) -> list[str]:
  """Draws the position encoding that embeddings are added to."""
  _, params = _params()
  if params.longest:
    raise InputError(
      "positions are learnt in this model: there is no formula to draw"
    )
  encoding = POSITIONS[params.positions](params).source(FLAGS.plot_positions)
  return save_positions(np.array(encoding), path, FLAGS.picture_formats)


def _plot_neighbours(path: str) -> list[str]:
  """Tells and draws what is near the given words in the embeddings."""
  directory = _first_model()
  model = load_model(directory, directory.read(), checkpoint=FLAGS.checkpoint)
  transformer, tokenizers = model.transformer, model.tokenizers
  sides = [("", transformer.embedding, tokenizers.target)]
  if transformer.source_embedding is not transformer.embedding:
    sides = [
      (".source", transformer.source_embedding, tokenizers.source),
      (".target", transformer.embedding, tokenizers.target),
    ]
  written = []
  for name, embedding, tokenizer in sides:
    found = list(_neighbours(embedding, tokenizer))
    if not found:
      continue
    for neighbours in found:
      near = ", ".join(
        f"{entry} {similarity:.2f}"
        for entry, similarity in zip(
          neighbours.entries, neighbours.similarities, strict=True
        )
      )
      made_of = ""
      if len(neighbours.pieces) > 1:
        made_of = f" ({' '.join(neighbours.pieces)})"
      show_result(f"{neighbours.word}{made_of}: {near}")
    written += save_neighbours(found, path + name, FLAGS.picture_formats)
  if not written:
    raise InputError(
      f"--words={','.join(FLAGS.words)}: the vocabulary knows none of them"
    )
  return written


def _neighbours(
  embedding: EmbeddingSharedWeights, tokenizer: Tokenizer
) -> Iterator[Neighbours]:
  words, ids = [], []
  for word in filter(None, map(str.strip, FLAGS.words)):
    pieces = tokenizer.encode(word)
    if not pieces or _UNKNOWN in tokenizer.pieces(pieces):
      logging.warning("the vocabulary does not know %s", word)
      continue
    words.append(word)
    ids.append(pieces)
  table = embedding.shared_weights.numpy()[: tokenizer.vocab_size].astype(
    np.float32
  )
  table[: EOS_ID + 1] = 0  # Neither is a word.
  for word, pieces, near in zip(
    words, ids, nearest_entries(table, ids, _SHOWN), strict=True
  ):
    yield Neighbours(
      word,
      tokenizer.pieces(pieces),
      tokenizer.pieces(near.ids),
      near.similarities,
    )
