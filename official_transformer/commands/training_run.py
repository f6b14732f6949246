"""One run: a new model, or more of the one in the model directory."""

from __future__ import annotations

import dataclasses
import random
import zlib
from typing import NamedTuple

import tensorflow as tf
from absl import logging

from official_transformer.commands.train_options import (
  LOSS_NEEDED,
  TrainOptions,
)
from official_transformer.data.buckets import Batching
from official_transformer.data.prepared_data import (
  PreparedData,
  read_prepared_data,
)
from official_transformer.data.segmentation import SubwordSampling
from official_transformer.data.subword_sampling import SubwordSampler
from official_transformer.decoding.translator import Translator
from official_transformer.errors import InputError
from official_transformer.evaluation.bleu_tokenizer import choose_tokenizer
from official_transformer.evaluation.evaluation_set import EvaluationSet
from official_transformer.evaluation.metrics import MetricSettings
from official_transformer.evaluation.scores import IN_TRAINING
from official_transformer.hardware.devices import choose_devices
from official_transformer.model.transformer import Transformer
from official_transformer.model_directory.directory import (
  DATA_INDEX,
  ModelDirectory,
)
from official_transformer.model_directory.directory_lock import DirectoryLock
from official_transformer.model_directory.measurements import VALIDATION_LOSS
from official_transformer.model_params import TransformerParams
from official_transformer.plotting import figures
from official_transformer.plotting.heat_maps import heat_maps_of, render_means
from official_transformer.storage.file_system import (
  is_directory,
  make_directories,
)
from official_transformer.training.checkpoints import clean_up, read_progress
from official_transformer.training.evaluations import Evaluation, ScoredSet
from official_transformer.training.failures import failures_are_logged
from official_transformer.training.interruption import Interruption
from official_transformer.training.model_setup import (
  DirectoryPlan,
  ModelRequest,
  plan_directory,
)
from official_transformer.training.settings import TrainingSettings
from official_transformer.training.strategy import (
  Distribution,
  create_distribution,
)
from official_transformer.training.trainer import Trainer

# Number of translations that TensorBoard shows of each evaluation, and of
# pictures of their attention.
SAMPLES, PICTURES = 8, 4


def train(options: TrainOptions) -> bool:
  """Trains a new model, or resumes the one in the model directory.

  Args:
    options: the command line as a record.

  Returns:
    Whether this process is the chief of all that have trained together.
  """
  with Interruption() as interruption:
    directory = ModelDirectory(options.model_dir)
    test_set = _read_test_set(options)
    if options.deterministic:
      tf.config.experimental.enable_op_determinism()
    devices = choose_devices(options.num_gpus)
    distribution = create_distribution(
      options.distribution_strategy,
      devices,
      options.all_reduce_alg,
      options.num_packs,
      options.tpu,
      options.connect_timeout,
    )
    interruption.take_signals()
    with (
      DirectoryLock(directory.path) as lock,
      distribution.report_lost_peers(),
    ):
      if distribution.is_chief and is_directory(directory.path):
        lock.acquire()
        if not options.clean:
          clean_up(directory)
      distribution.barrier()
      run = _plan(options, directory, distribution, len(devices))
      trainer = Trainer(
        directory,
        run.plan.description.params,
        run.settings,
        run.data,
        test_set and _scored_set(options, test_set, run.plan),
        distribution,
      )
      # Everything that a user can have got wrong has been checked, everywhere.
      distribution.barrier()
      if distribution.is_chief:
        _write_directory(run, lock, options.clean)
      distribution.barrier()
      distribution.check_agreement(
        int(directory.exists()), f"whether there is a model in {directory.path}"
      )
      trainer.train(interruption)
  return distribution.is_chief


class _Run(NamedTuple):
  """A run, as flags, data and model directory define it.

  Attributes:
    plan: the model directory as it will be.
    settings: how the run goes.
    data: training and development data; None for synthetic batches.
    steps: of the checkpoints that there were.
  """

  plan: DirectoryPlan
  settings: TrainingSettings
  data: PreparedData | None
  steps: list[int]


def _plan(
  options: TrainOptions,
  directory: ModelDirectory,
  distribution: Distribution,
  num_gpus: int,
) -> _Run:
  """Checks all that was given against each other; writes nothing."""
  steps = directory.checkpoint_steps()
  seed = distribution.broadcast(_choose_seed(options, directory))
  # A run on synthetic batches that is given a vocabulary ignores --data_dir,
  # even if there are data.
  needs_data = not (options.use_synthetic_data and options.vocab_file)
  plan = plan_directory(
    directory,
    ModelRequest(
      options.requested_params,
      options.batching,
      options.data if needs_data else None,
      vocab_file=options.vocab_file,
      init_checkpoint=options.init_checkpoint,
      flags=options.learning_flags,
      clean=options.clean,
      num_gpus=num_gpus,
      num_replicas=distribution.replicas,
    ),
  )
  data = None
  if not options.use_synthetic_data:
    data = read_prepared_data(
      options.data_dir,
      plan.description.vocabularies.sizes,
      with_dev=options.validation_steps > 0,
      skip_bad_records=options.skip_bad_records,
      cache_file=directory.join(DATA_INDEX),
      description=options.data.description,
    )
    plan = plan.with_data(data)
  _check_early_stopping(options, data)
  batching = plan.description.batching
  assert batching  # Planned, or the model's own.
  settings = options.settings(
    batching,
    seed,
    distribution.replicas,
    _evaluated_steps(options, batching, data),
  )
  sampling = options.subword_sampling
  requested = (plan.description.params, settings, sampling)
  _check_agreement(distribution, plan, requested, data)
  if options.enable_xla and not settings.execution.compile:
    tf.config.optimizer.set_jit("autoclustering")
  if data and sampling:
    sampler = SubwordSampler(
      plan.tokenizers,
      sampling,
      batching.max_length,
      seed,
    )
    data = dataclasses.replace(data, sampler=sampler)
  return _Run(plan, settings, data, steps)


def _write_directory(run: _Run, lock: DirectoryLock, clean: bool) -> None:
  """Writes the planned files of the model directory."""
  directory = run.plan.directory
  make_directories(directory.path)
  lock.acquire()
  # Another run may have made it, and ended, before it was locked.
  if directory.checkpoint_steps() != run.steps:
    raise InputError(
      f"another run has just written to {directory.path}; start again"
    )
  if clean:
    directory.remove_model()
  run.plan.carry_out()
  if run.data:
    with failures_are_logged("remembering where the records are"):
      run.data.remember()


def _check_agreement(
  distribution: Distribution,
  plan: DirectoryPlan,
  requested: tuple[TransformerParams, TrainingSettings, SubwordSampling | None],
  data: PreparedData | None,
) -> None:
  """Checks that all workers are about to do the same."""
  distribution.check_agreement(
    len(plan.directory.checkpoint_steps()),
    f"the number of checkpoints in {plan.directory.path}",
  )
  params, settings, sampling = requested
  # How a worker reads its data is its own affair.
  run = dataclasses.replace(
    settings, num_parallel_calls=0, datasets_num_private_threads=None
  )
  for value, what in (
    ((params, run, sampling), "their flags or model.json"),
    # They would keep shares of different batches.
    (data and (data.identity(), data.usable()), "their data"),
  ):
    digest = zlib.crc32(repr(value).encode()) & 0x7FFFFFFF
    distribution.check_agreement(digest, what)


def _evaluated_steps(
  options: TrainOptions, batching: Batching, data: PreparedData | None
) -> tuple[int, ...]:
  """Returns the steps of all evaluations, if epochs decide them."""
  if options.train_epochs is None:
    return ()
  assert data  # Synthetic data have no epochs.
  every, last = options.epochs_between_evals, options.train_epochs
  epochs = [*range(every, last, every), last]
  steps = tuple(
    batching.count_updates(
      {length: n * epoch for length, n in data.train.lengths.items()}
    )
    for epoch in epochs
  )
  if not steps[-1]:
    raise InputError(
      f"--train_epochs={options.train_epochs} do not fill one update of "
      f"{batching.tokens_per_update} tokens; raise it or lower --batch_size"
    )
  logging.info("%d epochs are %d steps", options.train_epochs, steps[-1])
  return steps


def _check_early_stopping(
  options: TrainOptions, data: PreparedData | None
) -> None:
  """Refuses to stop by a loss that is not measured."""
  rule = options.early_stopping
  if rule and rule.measure == VALIDATION_LOSS and not (data and data.dev):
    raise InputError(
      f"no development data in {options.data_dir}: {LOSS_NEEDED}"
    )


def _choose_seed(options: TrainOptions, directory: ModelDirectory) -> int:
  """Returns the seed of the run: a resumed run keeps its own."""
  step, seed = 0, None
  if directory.checkpoint_steps() and not options.clean:
    step, seed = read_progress(directory.latest_checkpoint())
  if seed is None:
    return random.randrange(2**31) if options.seed is None else options.seed
  if options.seed not in (None, seed):
    raise InputError(
      f"--seed={options.seed} contradicts the checkpoint of step {step} in "
      f"{directory.path}, whose run has seed {seed}; leave the flag out"
    )
  return seed


class _TestSet(NamedTuple):
  """The test set that is scored during training.

  Attributes:
    pairs: sentences of the test set.
    settings: how translations are scored.
  """

  pairs: EvaluationSet
  settings: MetricSettings

  @property
  def identity(self) -> str:
    """What distinguishes scores on this test set from others."""
    return f"{self.settings.tokenize} of {self.pairs.digest()}"


def _read_test_set(options: TrainOptions) -> _TestSet | None:
  """Reads the test set, if there is one.

  Now: a missing file stops the run before it starts.
  """
  if not options.bleu_source:
    return None
  pairs = EvaluationSet.read(options.bleu_source, str(options.bleu_ref))
  tokenizer = choose_tokenizer(options.tokenizer(), pairs.references)
  if tokenizer.reason:
    logging.info("%s", tokenizer.reason)
  settings = dataclasses.replace(IN_TRAINING, tokenize=tokenizer.name)
  return _TestSet(pairs, settings)


def _scored_set(
  options: TrainOptions, test_set: _TestSet, plan: DirectoryPlan
) -> ScoredSet:
  """Returns the test set with the evaluation of the model on it."""
  translators: list[Translator] = []  # Made, and traced, once.

  def evaluate_model(transformer: Transformer, step: int) -> Evaluation:
    if not translators:
      translators.append(
        Translator(
          transformer,
          plan.tokenizers,
          options.decoding().as_trained(plan.description.splits_sentences),
          plan.description.longest_piece,
        )
      )
    found = test_set.pairs.evaluate(translators[0], test_set.settings)
    # The scores count without the text, which a full disk may refuse.
    with failures_are_logged(f"keeping the translations of step {step}"):
      found.write(plan.directory, f"step-{step}")
    samples = test_set.pairs.samples(found.translations, SAMPLES)
    pictures = []
    if options.enable_tensorboard:
      pictures = _pictures(translators[0], samples)
    return Evaluation(found.scores.scalars(), samples, pictures)

  return ScoredSet(evaluate_model, test_set.identity)


def _pictures(
  translator: Translator, samples: list[tuple[str, str, str]]
) -> list[tuple[str, bytes]]:
  """Returns the attention of the first samples, if it can be drawn here."""
  try:
    figures.check_installed()
  except InputError as error:
    logging.log_first_n(
      logging.INFO, "no attention in TensorBoard: %s", 1, error
    )
    return []
  pictures = []
  for number, (source, _, translation) in enumerate(samples[:PICTURES]):
    with failures_are_logged("drawing the attention of a sample"):
      if source.strip():
        found = translator.attention(source, translation)
        png = render_means(heat_maps_of(found)["cross"], "png")
        pictures.append((f"attention/{number}", png))
  return pictures
