"""Loading a translator as the flags say."""

from __future__ import annotations

import dataclasses

from absl import flags, logging

from official_transformer.commands.flag_readers import (
  read_model,
  read_other_models,
)
from official_transformer.commands.search_flag_readers import (
  read_search_options,
)
from official_transformer.decoding.alignment import AlignmentRule
from official_transformer.decoding.batching import BatchLimits
from official_transformer.decoding.engines import TENSORFLOW, Engine
from official_transformer.decoding.loading import load_models, open_model
from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.translator import Translator
from official_transformer.hardware.cpu_threads import (
  serve_single_lines,
  share_processors,
)
from official_transformer.hardware.devices import choose_devices
from official_transformer.model_directory.description import ModelDescription
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_params import (
  DECODING_FIELDS,
)

FLAGS = flags.FLAGS


def batch_limits() -> BatchLimits:
  """Reads how many lines are decoded or scored at once."""
  return BatchLimits(FLAGS.decode_batch_tokens, FLAGS.decode_batch_size)


def decoding_options(
  n_best: int = 1, alignment: AlignmentRule | None = None
) -> DecodingOptions:
  """Reads how lines are brought to the model.

  Args:
    n_best: hypotheses wanted of each line.
    alignment: where word alignments are read, if they are wanted.
  """
  return DecodingOptions(
    limits=batch_limits(),
    padded_length=FLAGS.decode_max_length if _is_padded() else 0,
    split_long_lines=FLAGS.split_long_lines,
    n_best=n_best,
    alignment=alignment,
    search=read_search_options(),
  )


def _alignment_rule() -> AlignmentRule | None:
  """Reads `--alignments`, which predict alone has."""
  if "alignments" not in FLAGS or not FLAGS.alignments:
    return None
  if FLAGS.alignment_layer is not None:
    return AlignmentRule((FLAGS.alignment_layer,))
  return AlignmentRule()


def _is_padded() -> bool:
  """Reads `--padded_decode`, which a service does not have."""
  return "padded_decode" in FLAGS and FLAGS.padded_decode


def dtype() -> str:
  """Reads `--dtype`, which translate.py does not have."""
  return FLAGS.dtype if "dtype" in FLAGS else "fp32"


@dataclasses.dataclass(frozen=True)
class TranslatorPlan:
  """Which translator a process loads; it can travel to another machine.

  Attributes:
    model_dir: where the model is.
    description: of the model, decoded as the flags say.
    checkpoint: which weights.
    dtype: what TensorFlow computes in.
    options: how lines are brought to the model.
    num_gpus: wanted; None takes one if there is one.
    workers: batches decoded side by side on CPUs; None is one a processor.
    others: directories and descriptions of models that decide with it.
  """

  model_dir: str
  description: ModelDescription
  checkpoint: str
  dtype: str
  options: DecodingOptions
  num_gpus: int | None
  workers: int | None
  others: tuple[tuple[str, ModelDescription], ...] = ()

  def load(self) -> Translator:
    """Loads it for the devices that are here.

    Raises:
      InputError: if the model cannot be used, or not so.
    """
    options = self.options
    on_tensorflow = options.engine.name == TENSORFLOW
    on_cpu = choose_devices(self.num_gpus, on_tensorflow) == ["CPU:0"]
    if not on_tensorflow:
      engine = dataclasses.replace(options.engine, on_gpu=not on_cpu)
      options = dataclasses.replace(options, engine=engine)
    if self.workers and not on_cpu:
      logging.warning("--decode_workers has no effect: it is for CPUs")
    if on_cpu and options.limits.lines == 1:
      serve_single_lines(self.description.params.hidden_size)
    elif on_cpu and not options.padded_length:
      workers = share_processors(self.workers)
      options = dataclasses.replace(options, workers=workers)
    together = ((self.model_dir, self.description), *self.others)
    models = load_models(
      [(ModelDirectory(path), described) for path, described in together],
      # CTranslate2 is given the weights as they are.
      self.dtype if on_tensorflow else "fp32",
      self.checkpoint,
    )
    return Translator.of(models, options)


def read_plan(
  n_best: int = 1, one_by_one: bool = False, step: int | None = None
) -> TranslatorPlan:
  """Reads which translator the flags ask for.

  Args:
    n_best: hypotheses wanted of each line.
    one_by_one: whether one line at a time will be translated.
    step: of the checkpoint to take; None is what --checkpoint says.

  Raises:
    InputError: if there is no model, or it cannot be decoded so.
  """
  directory, description = read_model()
  plan = _plan(directory, description, n_best)
  others = tuple((d.path, described) for d, described in read_other_models())
  plan = dataclasses.replace(plan, others=others)
  if step is not None:
    plan = dataclasses.replace(plan, checkpoint=str(step))
  if one_by_one:
    options = dataclasses.replace(plan.options, limits=BatchLimits(lines=1))
    plan = dataclasses.replace(plan, options=options)
  return plan


def read_compared_plan() -> TranslatorPlan:
  """Reads which translator `--compare_with` asks for.

  Beam, alpha, patience and limit are its own, unless flags give them for both.

  Raises:
    InputError: if there is no model, or it cannot be decoded so.
  """
  decoding = {name: FLAGS[name].value for name in DECODING_FIELDS}
  directory, description = open_model(FLAGS.compare_with, **decoding)
  plan = _plan(directory, description)
  if FLAGS.compare_checkpoint:
    plan = dataclasses.replace(plan, checkpoint=FLAGS.compare_checkpoint)
  directory.choose_checkpoints(plan.checkpoint)
  return plan


def _plan(
  directory: ModelDirectory, description: ModelDescription, n_best: int = 1
) -> TranslatorPlan:
  """Reads how the flags have a model translate."""
  rule = _alignment_rule()
  options = decoding_options(n_best, rule)
  options.check(description.params)
  if FLAGS.engine != TENSORFLOW:
    engine = Engine(FLAGS.engine, FLAGS.quantization)
    options = dataclasses.replace(options, engine=engine)
  return TranslatorPlan(
    directory.path,
    description,
    FLAGS.checkpoint,
    dtype(),
    options,
    FLAGS.num_gpus,
    FLAGS.decode_workers,
  )


def load_translator(
  n_best: int = 1, one_by_one: bool = False, step: int | None = None
) -> Translator:
  """Loads what `read_plan` reads."""
  return read_plan(n_best, one_by_one, step).load()
