"""What `--mode=train` does: flags in, one run."""

from __future__ import annotations

import dataclasses
import os
import random
import zlib
from typing import Any, NamedTuple

import tensorflow as tf
from absl import flags, logging

from flags import core as flags_core
from official_transformer.commands.flag_readers import (
  decoding_options,
  read_requested_params,
)
from official_transformer.data.buckets import Batching
from official_transformer.data.prepared_data import (
  PreparedData,
  read_prepared_data,
)
from official_transformer.data.tokenizer import load_tokenizer
from official_transformer.decoding.translator import Translator
from official_transformer.distribution.strategy import (
  Distribution,
  choose_devices,
  create_distribution,
)
from official_transformer.errors import InputError
from official_transformer.evaluation.evaluation_set import TestSet
from official_transformer.model.transformer import Transformer
from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_directory.directory_lock import DirectoryLock
from official_transformer.model_directory.measurements import (
  BLEU,
  VALIDATION_LOSS,
)
from official_transformer.training.checkpoints import clean_up, read_progress
from official_transformer.training.interruption import Interruption
from official_transformer.training.model_setup import (
  DirectoryPlan,
  plan_directory,
)
from official_transformer.training.settings import (
  EarlyStopping,
  Execution,
  TrainingSettings,
)
from official_transformer.training.trainer import (
  Evaluate,
  Evaluation,
  Trainer,
)

FLAGS = flags.FLAGS

# Translations that TensorBoard shows of each milestone.
SAMPLES = 8

_LOSS_NEEDED = (
  "--early_stopping_patience looks at the validation loss, or at BLEU where "
  "--bleu_source and --bleu_ref are given"
)


def train() -> None:
  """Trains a new model, or goes on with the one in the model directory."""
  with Interruption() as interruption:
    _check_flags()
    directory = ModelDirectory(FLAGS.model_dir)
    if FLAGS.clean:
      directory.check_removable()
    evaluate = _evaluation_in_training(directory)
    if FLAGS.deterministic:
      tf.config.experimental.enable_op_determinism()
    devices = choose_devices(FLAGS.num_gpus)
    distribution = create_distribution(
      FLAGS.distribution_strategy,
      devices,
      FLAGS.all_reduce_alg,
      FLAGS.num_packs,
      FLAGS.tpu,
      FLAGS.connect_timeout,
    )
    interruption.take_signals()
    with (
      DirectoryLock(directory.path) as lock,
      distribution.loss_of_peers_is_told(),
    ):
      if distribution.is_chief and os.path.isdir(directory.path):
        lock.acquire()
        if not FLAGS.clean:
          clean_up(directory)
      distribution.meet()
      run = _plan(directory, distribution, len(devices))
      trainer = Trainer(
        directory,
        run.plan.description.params,
        run.settings,
        run.data,
        evaluate,
        distribution,
        interruption,
      )
      # Everything that a user can have got wrong has been checked, everywhere.
      distribution.meet()
      if distribution.is_chief:
        _write_directory(run, lock)
      distribution.meet()
      distribution.check_agreement(
        int(directory.exists()), f"whether there is a model in {directory.path}"
      )
      trainer.train()


class _Run(NamedTuple):
  """What the flags, the data and the model directory make together.

  Attributes:
    plan: the model directory as it will be.
    settings: how the run goes.
    data: what it goes through; None for synthetic batches.
    steps: of the checkpoints that there were.
  """

  plan: DirectoryPlan
  settings: TrainingSettings
  data: PreparedData | None
  steps: list[int]


def _plan(
  directory: ModelDirectory, distribution: Distribution, num_gpus: int
) -> _Run:
  """Checks all that was given against each other; writes nothing."""
  steps = directory.checkpoint_steps()
  seed = distribution.value_of_chief(_choose_seed(directory))
  plan = plan_directory(
    directory,
    read_requested_params(),
    batching=_chosen_batching(),
    vocab_file=FLAGS.vocab_file,
    data_dir=FLAGS.data_dir,
    num_gpus=num_gpus,
    num_replicas=distribution.replicas,
    anew=FLAGS.clean,
    init_checkpoint=FLAGS.init_checkpoint,
  )
  data = None
  if not FLAGS.use_synthetic_data:
    data = read_prepared_data(
      FLAGS.data_dir,
      plan.description.vocabulary["size"],
      with_dev=FLAGS.validation_steps > 0,
      skip_bad_records=FLAGS.skip_bad_records,
    )
    plan = plan.with_data(data)
  settings = _settings(_batching(plan), data, seed, distribution.replicas)
  _check_agreement(distribution, plan, settings, data)
  if FLAGS.enable_xla and not settings.execution.compile:
    tf.config.optimizer.set_jit("autoclustering")
  return _Run(plan, settings, data, steps)


def _write_directory(run: _Run, lock: DirectoryLock) -> None:
  """Makes the model directory what it is planned to be."""
  directory = run.plan.directory
  os.makedirs(directory.path, exist_ok=True)
  lock.acquire()
  # Another run may have made it, and ended, before it was locked.
  if directory.checkpoint_steps() != run.steps:
    raise InputError(
      f"another run has just written to {directory.path}; start again"
    )
  if FLAGS.clean:
    directory.remove_model()
  run.plan.carry_out()


def _check_agreement(
  distribution: Distribution,
  plan: DirectoryPlan,
  settings: TrainingSettings,
  data: PreparedData | None,
) -> None:
  """Checks that all workers are about to do the same."""
  distribution.check_agreement(
    len(plan.directory.checkpoint_steps()),
    f"the number of checkpoints in {plan.directory.path}",
  )
  # Where a worker keeps its data is its own affair.
  run = dataclasses.replace(settings, data_dir="", num_parallel_calls=0)
  for value, what in (
    ((plan.description.params, run), "their flags or model.json"),
    # They would keep shares of different batches.
    (data and (data.identity(), data.omissions_by_name()), "their data"),
  ):
    digest = zlib.crc32(repr(value).encode()) & 0x7FFFFFFF
    distribution.check_agreement(digest, what)


def _check_flags() -> None:
  """Refuses flags that contradict each other, before anything is built."""
  if FLAGS.train_epochs is not None and FLAGS["train_steps"].present:
    raise InputError("pass --train_steps or --train_epochs, not both")
  if FLAGS.train_epochs is not None and FLAGS.use_synthetic_data:
    raise InputError("synthetic data have no epochs; pass --train_steps")
  if FLAGS.stop_threshold is not None and not FLAGS.bleu_source:
    raise InputError(
      "--stop_threshold is a BLEU: it needs --bleu_source and --bleu_ref"
    )
  if FLAGS.early_stopping_patience is not None:
    if not _stops_by_loss() and not FLAGS.bleu_source:
      raise InputError(
        "--early_stopping_measure=bleu needs --bleu_source and --bleu_ref"
      )
    without = FLAGS.use_synthetic_data or not FLAGS.validation_steps
    if _stops_by_loss() and without:
      raise InputError(f"no validation in this run: {_LOSS_NEEDED}")
  if FLAGS["accumulate_steps"].present and FLAGS.target_batch_tokens:
    raise InputError("pass --accumulate_steps or --target_batch_tokens")
  _profile_steps()


def _profile_steps() -> tuple[int, int] | None:
  """Returns the first and the last step to record."""
  if not FLAGS.profile_steps:
    return None
  try:
    first, last = (int(text) for text in FLAGS.profile_steps)
  except ValueError:
    first, last = 0, 0
  if not 1 <= first <= last:
    raise InputError(
      f"--profile_steps={','.join(FLAGS.profile_steps)}: give the first and "
      "the last step to record, such as 10,12"
    )
  return first, last


def _chosen_batching() -> dict[str, Any]:
  """Returns what the user chose of what decides the order of the data."""
  chosen = {
    name: FLAGS[name].value
    for name in (
      "batch_size",
      "max_length",
      "static_batch",
      "accumulate_steps",
      "target_batch_tokens",
    )
    if FLAGS[name].present
  }
  if FLAGS.distribution_strategy == "tpu":
    chosen["static_batch"] = True  # It compiles the step for one shape.
  return chosen


def _fixed_loss_scale() -> float | None:
  """Returns the constant loss scale, if it is one and it matters."""
  if FLAGS.dtype != "fp16":
    return None
  return flags_core.fixed_loss_scale(FLAGS.loss_scale)


def _schedule(
  batching: Batching, data: PreparedData | None
) -> tuple[int, tuple[int, ...]]:
  """Returns the last step, and all milestones where epochs decide them."""
  if FLAGS.train_epochs is None:
    return FLAGS.train_steps, ()
  assert data  # Synthetic data have no epochs.
  ends = [
    batching.count_updates(
      {length: n * epoch for length, n in data.train.lengths.items()}
    )
    for epoch in (
      *range(
        FLAGS.epochs_between_evals,
        FLAGS.train_epochs,
        FLAGS.epochs_between_evals,
      ),
      FLAGS.train_epochs,
    )
  ]
  if not ends[-1]:
    raise InputError(
      f"--train_epochs={FLAGS.train_epochs} do not fill one update of "
      f"{batching.tokens_per_update} tokens; raise it or lower --batch_size"
    )
  logging.info("%d epochs are %d steps", FLAGS.train_epochs, ends[-1])
  return ends[-1], tuple(ends)


def _batching(plan: DirectoryPlan) -> Batching:
  """Returns how examples are grouped."""
  try:
    return Batching(**plan.description.batching)
  except TypeError as error:  # Of a model.json that somebody has edited.
    raise InputError(
      f"{plan.directory.path}/model.json is damaged: {error}"
    ) from None


def _settings(
  batching: Batching, data: PreparedData | None, seed: int, replicas: int
) -> TrainingSettings:
  """Returns how the run goes."""
  train_steps, milestones = _schedule(batching, data)
  is_static = batching.static_batch or FLAGS.use_synthetic_data
  return TrainingSettings(
    data_dir=FLAGS.data_dir,
    train_steps=train_steps,
    steps_between_evals=FLAGS.steps_between_evals,
    milestones=milestones,
    stop_threshold=FLAGS.stop_threshold,
    early_stopping=_early_stopping(data),
    batching=batching,
    synthetic=FLAGS.use_synthetic_data,
    validation_steps=FLAGS.validation_steps,
    seed=seed,
    keep_checkpoint_max=FLAGS.keep_checkpoint_max,
    log_steps=FLAGS.log_steps,
    with_metrics=FLAGS.enable_metrics_in_training,
    with_tensorboard=FLAGS.enable_tensorboard,
    # What has been trained on ones must not be gone on with.
    with_checkpoints=FLAGS.enable_checkpointing
    and not FLAGS.use_synthetic_data,
    save_checkpoints_steps=FLAGS.save_checkpoints_steps,
    save_checkpoints_secs=FLAGS.save_checkpoints_secs,
    max_nonfinite_steps=FLAGS.max_nonfinite_steps,
    with_throughput=FLAGS.enable_time_history,
    num_parallel_calls=FLAGS.num_parallel_calls,
    private_threads=FLAGS.datasets_num_private_threads,
    execution=Execution(
      dtype=FLAGS.dtype,
      loss_scale=_fixed_loss_scale(),
      # XLA compiles no exchange between devices, but on TPUs, unasked.
      compile=FLAGS.enable_xla and is_static and replicas == 1,
      custom_loop=FLAGS.use_ctl,
      steps_per_loop=FLAGS.steps_per_loop,
      deterministic=FLAGS.deterministic,
    ),
    profile_steps=_profile_steps(),
  )


def _stops_by_loss() -> bool:
  """Tells whether early stopping looks at the validation loss, or at BLEU."""
  measure = FLAGS.early_stopping_measure
  return measure == "loss" or (measure is None and not FLAGS.bleu_source)


def _early_stopping(data: PreparedData | None) -> EarlyStopping | None:
  """Returns what ends the run early; checks that it will be measured."""
  if FLAGS.early_stopping_patience is None:
    return None
  if not _stops_by_loss():
    return EarlyStopping(BLEU, FLAGS.early_stopping_patience)
  if data is None or data.dev is None:
    raise InputError(f"no development data in {FLAGS.data_dir}: {_LOSS_NEEDED}")
  return EarlyStopping(VALIDATION_LOSS, FLAGS.early_stopping_patience)


def _choose_seed(directory: ModelDirectory) -> int:
  """Returns the seed of the run: a resumed run keeps its own."""
  step, seed = 0, None
  if directory.checkpoint_steps() and not FLAGS.clean:
    step, seed = read_progress(directory.latest_checkpoint())
  if seed is None:
    return random.randrange(2**31) if FLAGS.seed is None else FLAGS.seed
  if FLAGS.seed not in (None, seed):
    raise InputError(
      f"--seed={FLAGS.seed} contradicts the checkpoint of step {step} in "
      f"{directory.path}, whose run has seed {seed}; leave the flag out"
    )
  return seed


def _evaluation_in_training(directory: ModelDirectory) -> Evaluate | None:
  """Returns what scores the model at milestones, where a test set is given.

  The test set is read now: a missing file stops the run before it starts.
  """
  if not FLAGS.bleu_source:
    return None
  test_set = TestSet.read(FLAGS.bleu_source, FLAGS.bleu_ref)
  translators: list[Translator] = []  # Made, and traced, once.

  def evaluate_model(transformer: Transformer, step: int) -> Evaluation:
    if not translators:
      tokenizer = load_tokenizer(directory.vocab_file())
      translators.append(
        Translator(transformer, tokenizer, decoding_options(), FLAGS.max_length)
      )
    scores, path = test_set.evaluate(translators[0], directory, f"step-{step}")
    samples = test_set.samples(path, SAMPLES)
    return Evaluation(scores.scalars(), samples)

  return evaluate_model
