"""The plan of a translator that several processes load."""

from __future__ import annotations

import dataclasses
from typing import Any

from absl import logging

from official_transformer.decoding.engines import TENSORFLOW, check_installed
from official_transformer.decoding.loading import load_models
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.translator import Translator
from official_transformer.hardware.cpu_threads import (
  default_workers,
  serve_single_lines,
  share_processors,
)
from official_transformer.hardware.devices import choose_devices
from official_transformer.model_directory.description import ModelDescription
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_params import DECODING_FIELDS


@dataclasses.dataclass(frozen=True)
class TranslatorPlan:
  """A plan of a translator; it can be sent to another machine.

  Attributes:
    model_dir: where the model is.
    description: description of the model, with the user's choices for decoding.
    checkpoint: which weights.
    options: how lines are brought to the model.
    num_gpus: wanted; None takes one if there is one.
    dtype: type of TensorFlow's computation.
    workers: batches decoded side by side on CPUs; None is one a processor.
    others: directories and descriptions of models that decide with it.
  """

  model_dir: str
  description: ModelDescription
  checkpoint: str
  options: DecodingOptions
  num_gpus: int | None
  dtype: str = "fp32"
  workers: int | None = None
  others: tuple[tuple[str, ModelDescription], ...] = ()

  def settings(self) -> dict[str, Any]:
    """Returns all that a translation depends on, besides source and weights."""
    options, params = self.options, self.description.params
    return {
      "dtype": self.dtype,
      "engine": [options.engine.name, options.engine.quantization],
      "n_best": options.n_best,
      "alignment": repr(options.alignment),
      "split_sentences": options.split_sentences,
      "split_long_lines": options.split_long_lines,
      "longest_piece": options.split_long_lines
      and self.description.longest_piece,
      "recase": options.recase,
      "replace_unk": options.replace_unk,
      "markup": options.is_html,
      "keep": options.keep and options.keep.pattern,
      **{name: getattr(params, name) for name in DECODING_FIELDS},
    }

  def load(self) -> Translator:
    """Loads it for the devices that are here.

    Raises:
      InputError: if the model cannot be used, or not so.
    """
    options = self.options
    on_tensorflow = options.engine.name == TENSORFLOW
    if not on_tensorflow:
      check_installed()
    on_cpu = choose_devices(self.num_gpus, on_tensorflow) == ["CPU:0"]
    if not on_tensorflow:
      engine = dataclasses.replace(options.engine, on_gpu=not on_cpu)
      options = dataclasses.replace(options, engine=engine)
    if self.workers and not on_cpu:
      logging.warning("--decode_workers has no effect: it is for CPUs")
    if on_cpu and options.limits.lines == 1:
      if on_tensorflow:
        serve_single_lines(self.description.params.hidden_size)
    elif on_cpu and not options.padded_length:
      workers = self.workers or default_workers()
      options = dataclasses.replace(options, workers=workers)
      if on_tensorflow:
        share_processors(workers)
    together = ((self.model_dir, self.description), *self.others)
    models = load_models(
      [(ModelDirectory(path), described) for path, described in together],
      self.dtype,
      self.checkpoint,
      options.engine.name,
    )
    return Translator.of(models, options)
