"""The modes of transformer_main."""

from __future__ import annotations

import os
from typing import Protocol

from official_transformer.commands.attention import AttentionOptions
from official_transformer.commands.average import AverageOptions
from official_transformer.commands.evaluate import EvalOptions
from official_transformer.commands.export import ExportOptions
from official_transformer.commands.flag_records import Modes
from official_transformer.commands.plot import PlotOptions
from official_transformer.commands.predict import PredictOptions
from official_transformer.commands.score import ScoreOptions
from official_transformer.commands.train import AcceptedOptions, Train
from official_transformer.hardware.startup import start_tensorflow

MODES = Modes(
  {
    "train": Train,
    "average": AverageOptions,
    "eval": EvalOptions,
    "predict": PredictOptions,
    "score": ScoreOptions,
    "export": ExportOptions,
    "attention": AttentionOptions,
    "plot": PlotOptions,
  },
  (
    "What to do, with which model",
    "What is translated for BLEU",
    "Scores, and how sure they are",
    "Training: data and batches",
    "Training: how a run goes",
    "Training: how long, and when it is evaluated",
    "Training: what is saved and reported",
    "Averaging",
    "Decoding: what is read and written",
    "Decoding: the search",
    "Decoding: speed and memory",
    "Decoding: samples, phrases, penalties",
    "Pictures",
    "Many machines",
    "Exporting",
    "Precision, compilation, threads",
    "Devices",
    "Reports, and sinks that upstream had",
  ),
  (
    "model_dir",
    "data_dir",
    "vocab_file",
    "param_set",
    "train_steps",
    "num_gpus",
    "file",
    "file_out",
    "bleu_source",
    "bleu_ref",
  ),
  AcceptedOptions,
)


class Runnable(Protocol):
  """The interface of a mode's record."""

  @property
  def needs_tensorflow(self) -> bool:
    """Whether TensorFlow is to be imported before it runs."""

  def check(self) -> None:
    """Refuses wrong input before TensorFlow is imported."""

  def run(self) -> None:
    """Runs the mode; TensorFlow has been imported, if it is needed."""


def run_mode(options: Runnable) -> None:
  """Runs a mode after its early checks."""
  # Before anything imports TensorFlow, as a remote file does.
  for name, value in getattr(options, "environment", {}).items():
    before = os.environ.get(name, "") if name == "TF_XLA_FLAGS" else ""
    os.environ[name] = f"{before} {value}".strip()
  # It takes seconds to import: --help, a mistyped flag and a missing file are
  # answered before it is.
  options.check()
  if options.needs_tensorflow:
    start_tensorflow()
  options.run()
