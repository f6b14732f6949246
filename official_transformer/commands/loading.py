"""Loading a translator as the flags say."""

from __future__ import annotations

import dataclasses

from absl import flags, logging

from official_transformer.commands.flag_readers import read_model
from official_transformer.decoding.batching import BatchLimits
from official_transformer.decoding.engines import TENSORFLOW, Engine
from official_transformer.decoding.loading import load_model
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.translator import Translator
from official_transformer.distribution.cpu_threads import (
  serve_single_lines,
  share_processors,
)
from official_transformer.distribution.devices import choose_devices

FLAGS = flags.FLAGS


def batch_limits() -> BatchLimits:
  """Reads how many lines are decoded or scored at once."""
  return BatchLimits(FLAGS.decode_batch_tokens, FLAGS.decode_batch_size)


def decoding_options(n_best: int = 1) -> DecodingOptions:
  """Reads how lines are brought to the model.

  Args:
    n_best: hypotheses wanted of each line.
  """
  return DecodingOptions(
    limits=batch_limits(),
    padded_length=FLAGS.decode_max_length if _is_padded() else 0,
    split_long_lines=FLAGS.split_long_lines,
    n_best=n_best,
  )


def _is_padded() -> bool:
  """Reads `--padded_decode`, which a service does not have."""
  return "padded_decode" in FLAGS and FLAGS.padded_decode


def dtype() -> str:
  """Reads `--dtype`, which translate.py does not have."""
  return FLAGS.dtype if "dtype" in FLAGS else "fp32"


def load_translator(
  n_best: int = 1, one_by_one: bool = False, step: int | None = None
) -> Translator:
  """Loads the model directory.

  Args:
    n_best: hypotheses wanted of each line.
    one_by_one: whether one line at a time will be translated.
    step: of the checkpoint to take; None is what --checkpoint says.

  Raises:
    InputError: if the model cannot be used, or not so.
  """
  directory, description = read_model()
  options = decoding_options(n_best)
  options.check(description.params)
  on_tensorflow = FLAGS.engine == TENSORFLOW
  on_cpu = choose_devices(FLAGS.num_gpus, on_tensorflow) == ["CPU:0"]
  if not on_tensorflow:
    engine = Engine(FLAGS.engine, FLAGS.quantization, on_gpu=not on_cpu)
    options = dataclasses.replace(options, engine=engine)
  if FLAGS.decode_workers and not on_cpu:
    logging.warning("--decode_workers has no effect: it is for CPUs")
  if one_by_one:
    options = dataclasses.replace(options, limits=BatchLimits(lines=1))
    if on_cpu:
      serve_single_lines(description.params.hidden_size)
  elif on_cpu and not _is_padded():
    workers = share_processors(FLAGS.decode_workers)
    options = dataclasses.replace(options, workers=workers)
  # CTranslate2 is given the weights as they are.
  computed_in = dtype() if on_tensorflow else "fp32"
  checkpoint = FLAGS.checkpoint if step is None else str(step)
  model = load_model(directory, description, computed_in, checkpoint)
  return Translator.of(model, options)
