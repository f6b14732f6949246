"""`--mode=plot`: pictures of runs, schedules and models."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from absl import logging

from official_transformer.commands.flag_records import Options, flag
from official_transformer.commands.model_options import StoredModelOptions
from official_transformer.commands.text_options import PictureOptions
from official_transformer.errors import InputError
from official_transformer.model_params import EOS_ID, TransformerParams
from official_transformer.plotting.run_plots import (
  RunCurves,
  ScheduleCurve,
  panels_of,
  save_runs,
  save_schedules,
)
from official_transformer.storage import file_system
from official_transformer.storage.standard_streams import show_result

if TYPE_CHECKING:
  from official_transformer.model.embedding_layer import (
    EmbeddingSharedWeights,
  )
  from official_transformer.plotting.model_plots import Neighbours
  from official_transformer.text.tokenizer import Tokenizer

PLOTS = ("run", "schedule", "positions", "neighbours")
_POINTS = 500
_SHOWN = 10


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainStepsOptions(Options):
  """Flag of the length of a run."""

  heading = "Training: how long, and when it is evaluated"

  train_steps: int = flag(
    300000,
    "Number of updates, those before a resume included; with "
    "--plots=schedule, the updates that are drawn.",
    lower_bound=1,
    short_name="ts",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlotOptions(PictureOptions, StoredModelOptions, TrainStepsOptions):
  """Flags of `--mode=plot`."""

  heading = "Pictures"
  summary = "draw runs, schedules, positions and embeddings"

  plots: tuple[str, ...] = flag(
    ("run",),
    "What --mode=plot draws. run: the curves of --model_dir, or of several "
    "between commas. schedule: the learning rate over --train_steps, of "
    "--param_set and --params_override if they are given, else of the model; "
    "several with --schedules. positions: the timing signal. neighbours: the "
    "entries nearest to --words in the embeddings.",
  )
  schedules: tuple[str, ...] | None = flag(
    None,
    "With --plots=schedule: several learning rates in one figure, each as "
    "hidden size:warm-up steps, such as 512:4000,512:8000,256:4000. Their "
    "factor comes from --param_set and --params_override, not from "
    "--model_dir.",
    (
      lambda o: "schedule" not in o.plots,
      "they are for --plots=schedule",
    ),
  )
  words: tuple[str, ...] | None = flag(
    None,
    "With --plots=neighbours: the words.",
    (
      lambda o: "neighbours" not in o.plots,
      "they are for --plots=neighbours",
    ),
  )
  plot_positions: int = flag(
    128,
    "With --plots=positions: number of positions to draw.",
    (lambda o: "positions" not in o.plots, "they are for --plots=positions"),
    lower_bound=2,
  )

  def check(self) -> None:
    """Refuses pictures without data, or that cannot be made.

    Raises:
      InputError: for the first thing that is wrong.
    """
    if self.output_dir and not self.picture_formats:
      raise InputError("--mode=plot makes pictures: --picture_formats is empty")
    self.check_pictures("--mode=plot needs --output_dir, where pictures go")
    if not self.plots or not set(self.plots) <= set(PLOTS):
      raise InputError(
        f"--plots={','.join(self.plots)}: give some of {', '.join(PLOTS)}"
      )
    if "neighbours" in self.plots and not self._words():
      raise InputError(
        "--plots=neighbours needs --words, whose neighbours are looked for"
      )
    _ = self._schedules()
    drawn = set(self.plots) - ({"schedule"} if self.schedules else set())
    if drawn & {"run", "neighbours"} or (drawn and not self.names_params):
      for directory in self.model_directories:
        directory.read()
    if "neighbours" in self.plots:
      self.model_directories[0].choose_checkpoints(self.checkpoint)
    _ = self.requested_params

  def run(self) -> None:
    """Draws the pictures that are asked for."""
    directory = str(self.output_dir)
    file_system.make_directories(directory)
    drawers = {
      "run": self._plot_runs,
      "schedule": self._plot_schedule,
      "positions": self._plot_positions,
      "neighbours": self._plot_neighbours,
    }
    written = []
    for name in self.plots:
      written += drawers[name](os.path.join(directory, name))
    logging.info("wrote %s", ", ".join(written))

  @property
  def takes_several(self) -> bool:
    """Whether several models may be named."""
    return True

  def _words(self) -> list[str]:
    return [word.strip() for word in self.words or () if word.strip()]

  def _plot_runs(self, path: str) -> list[str]:
    """Draws the curves of one or several runs."""
    from official_transformer.model_directory.run_logs import read_curves

    runs = []
    for directory in self.model_directories:
      name, curves = directory.path, read_curves(directory)
      run = RunCurves(name, curves)
      if not panels_of([run]):
        raise InputError(
          f"{name} has no measurements of a run to draw: training writes them "
          "at each evaluation, and with --enable_tensorboard in between"
        )
      if not any(key.startswith("train/") for key in curves):
        logging.info(
          "%s has no logs, because its training was without "
          "--enable_tensorboard: only the values of evaluations are drawn",
          name,
        )
      runs.append(run)
    return save_runs(runs, path, self.picture_formats)

  def _params(self) -> tuple[str, TransformerParams]:
    """Returns the parameters that are meant, and whose they are."""
    if self.names_params:
      return self.param_set, self.requested_params.for_new_model(self.param_set)
    directory = self.model_directories[0]
    return directory.path, directory.read().params

  def _plot_schedule(self, path: str) -> list[str]:
    """Draws the learning rate of a run of `--train_steps`."""
    from official_transformer.training.step.optimizer import (
      LearningRateSchedule,
    )

    wanted = self._schedules()
    if wanted:
      params = self.requested_params.for_new_model(self.param_set)
      title = f"factor {params.learning_rate:g}, hidden size:warm-up steps"
    else:
      name, params = self._params()
      wanted = [(params.hidden_size, params.learning_rate_warmup_steps)]
    last = 4 * max(warmup for _, warmup in wanted)
    if "train_steps" in self.given:
      last = self.train_steps
    found = []
    for width, warmup in wanted:
      schedule = LearningRateSchedule(params.learning_rate, width, warmup)
      steps = {last * n // (_POINTS - 1) for n in range(_POINTS)}
      steps.add(min(warmup, last))  # Where it is highest.
      curve = [(step, float(schedule(step))) for step in sorted(steps)]
      found.append(ScheduleCurve(f"{width}:{warmup}", curve, warmup))
    if not self.schedules:
      peak = max(rate for _, rate in found[0].curve)
      title = f"{name}: factor {params.learning_rate:g}, peak {peak:.2e}"
    return save_schedules(title, found, path, self.picture_formats)

  def _schedules(self) -> list[tuple[int, int]]:
    """Returns the hidden size and the warm-up steps of each of --schedules."""
    found = []
    for text in self.schedules or ():
      numbers = text.split(":")
      if len(numbers) != 2 or not all(
        n.isdecimal() and int(n) for n in numbers
      ):
        raise InputError(
          f"--schedules={','.join(self.schedules or ())}: {text!r} is not "
          "hidden size:warm-up steps, such as 512:4000"
        )
      found.append((int(numbers[0]), int(numbers[1])))
    return found

  def _plot_positions(self, path: str) -> list[str]:
    """Draws the position encoding that embeddings are added to."""
    import numpy as np

    from official_transformer.model.variants import POSITIONS
    from official_transformer.plotting.model_plots import save_positions

    _, params = self._params()
    if params.longest:
      raise InputError(
        "positions are learnt in this model: there is no formula to draw"
      )
    encoding = POSITIONS[params.positions](params).source(self.plot_positions)
    return save_positions(np.array(encoding), path, self.picture_formats)

  def _plot_neighbours(self, path: str) -> list[str]:
    """Prints and draws the neighbours of the given words in the embeddings."""
    from official_transformer.decoding.loading import load_model
    from official_transformer.plotting.model_plots import save_neighbours

    directory = self.model_directories[0]
    model = load_model(directory, directory.read(), checkpoint=self.checkpoint)
    transformer, tokenizers = model.transformer, model.tokenizers
    sides = [("", transformer.embedding, tokenizers.target)]
    if transformer.source_embedding is not transformer.embedding:
      sides = [
        (".source", transformer.source_embedding, tokenizers.source),
        (".target", transformer.embedding, tokenizers.target),
      ]
    written = []
    for name, embedding, tokenizer in sides:
      found = list(_neighbours(self._words(), embedding, tokenizer))
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
      written += save_neighbours(found, path + name, self.picture_formats)
    if not written:
      raise InputError(
        f"--words={','.join(self.words or ())}: the vocabulary knows none of "
        "them"
      )
    return written


def _neighbours(
  wanted: list[str], embedding: EmbeddingSharedWeights, tokenizer: Tokenizer
) -> Iterator[Neighbours]:
  from official_transformer.model.embedding_neighbours import nearest_entries
  from official_transformer.plotting.model_plots import Neighbours
  from official_transformer.text.tokenizer import has_unknown

  words, ids = [], []
  for word in wanted:
    pieces = tokenizer.encode(word)
    if not pieces or has_unknown(tokenizer, pieces):
      logging.warning("the vocabulary does not know %s", word)
      continue
    words.append(word)
    ids.append(pieces)
  table = embedding.shared_weights.numpy()[: tokenizer.vocab_size].astype(
    "float32"
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
