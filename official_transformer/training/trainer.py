"""A training run, from the data directory to the last checkpoint."""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping

import keras
import tensorflow as tf
from absl import logging

from official_transformer.data import data_directory
from official_transformer.data.data_pipeline import (
  bucket_batch_sizes,
  damaged_shards,
  dev_dataset,
  has_examples,
  train_dataset,
)
from official_transformer.errors import InputError
from official_transformer.model.metrics import padded_cross_entropy_loss
from official_transformer.model.transformer import Transformer, create_model
from official_transformer.model_directory import LOGS, ModelDirectory
from official_transformer.model_params import TransformerParams
from official_transformer.training.callbacks import (
  Milestones,
  ProgressReport,
  ScalarWriter,
)
from official_transformer.training.checkpoints import (
  CheckpointManager,
  read_progress,
)
from official_transformer.training.optimizer import create_optimizer
from official_transformer.training.training_step import FitModel, TrainingStep

# Scores the model at a milestone; the numbers are logged under their names.
Evaluate = Callable[[Transformer, int], Mapping[str, float]]


@dataclasses.dataclass(frozen=True)
class TrainingSettings:
  """How a run goes, apart from the model's own parameters.

  Attributes:
    data_dir: the prepared data.
    train_steps: updates in all, counted across resumed runs.
    steps_between_evals: updates between two milestones, each a validation, an
      evaluation and a checkpoint.
    batch_size: tokens in a batch, on the longer side.
    max_length: longest training example in tokens, EOS included.
    validation_steps: development batches the validation loss is taken over; 0
      for no validation.
    seed: decides initial weights, data order and dropout.
    keep_checkpoint_max: checkpoints kept, the newest; 0 keeps all.
    log_steps: updates between two reports.
    with_metrics: whether accuracies are measured on training batches.
    with_tensorboard: whether scalars are written for TensorBoard.
    num_parallel_calls: threads that read shards; 0 for one a processor.
  """

  data_dir: str
  train_steps: int
  steps_between_evals: int
  batch_size: int
  max_length: int
  validation_steps: int
  seed: int
  keep_checkpoint_max: int
  log_steps: int
  with_metrics: bool
  with_tensorboard: bool
  num_parallel_calls: int

  def __post_init__(self) -> None:
    bucket_batch_sizes(self.batch_size, self.max_length)  # Raises if it must.


class Trainer:
  """Builds the training model, resumes where there is a checkpoint, trains.

  Attributes:
    directory: the model directory, written already.
    params: the model's hyper-parameters.
    settings: how the run goes.
    evaluate: called at each milestone, where given.
  """

  def __init__(
    self,
    directory: ModelDirectory,
    params: TransformerParams,
    settings: TrainingSettings,
    evaluate: Evaluate | None = None,
  ) -> None:
    self.directory = directory
    self.params = params
    self.settings = settings
    self.evaluate = evaluate
    self._train_shards = data_directory.shard_paths(
      settings.data_dir, data_directory.TRAIN_TAG
    )
    with self._damaged_data_is_the_users():
      usable = has_examples(self._train_shards, settings.max_length)
    if not usable:
      raise InputError(
        f"no pair in {settings.data_dir} has both sides within "
        f"--max_length={settings.max_length} tokens; raise it"
      )
    self._dev_shards = self._find_dev_shards()
    keras.utils.set_random_seed(settings.seed)
    model = create_model(
      params, is_train=True, with_metrics=settings.with_metrics
    )
    self.model = FitModel(inputs=model.inputs, outputs=model.outputs)
    self.transformer: Transformer = model.get_layer("transformer")
    self.optimizer = create_optimizer(params)
    self.optimizer.build(self.model.trainable_variables)
    # With "auto", Keras would compile anew for every shape of batch.
    self.model.compile(optimizer=self.optimizer, jit_compile=False)
    self.model.training_step = TrainingStep(
      self.model, self.optimizer, settings.seed
    )
    self.checkpoints = CheckpointManager(
      directory, self.model, self.optimizer, settings.keep_checkpoint_max
    )
    self._scalars: ScalarWriter | None = None
    self._validation_losses = tf.function(
      self._batch_losses,
      input_signature=[tf.TensorSpec([None, None], tf.int64)] * 2,
      autograph=False,
    )

  def train(self) -> None:
    """Trains until `train_steps`, from the newest checkpoint if there is one.

    Raises:
      InputError: where data or checkpoint cannot be used.
    """
    settings = self.settings
    step = self._resume()
    if step >= settings.train_steps:
      logging.info(
        "the model has %d steps already, --train_steps=%d asks for no more",
        step,
        settings.train_steps,
      )
      return
    self._describe(step)
    dataset = train_dataset(
      self._train_shards,
      settings.batch_size,
      settings.max_length,
      settings.seed,
      skip_batches=step,
      num_parallel_calls=settings.num_parallel_calls,
    )
    progress = ProgressReport(step, settings.train_steps, settings.log_steps)
    callbacks: list[keras.callbacks.Callback] = [progress]
    if settings.with_tensorboard:
      self._scalars = ScalarWriter(
        self.directory.join(LOGS), step, settings.log_steps
      )
      callbacks.append(self._scalars)
    callbacks.append(
      Milestones(
        self._milestone,
        settings.steps_between_evals,
        step,
        settings.train_steps,
        progress,
      )
    )
    started = time.monotonic()
    # One epoch of exactly the updates that are left: milestones count steps
    # of the whole run, so that a resumed run has them where it would have.
    with self._damaged_data_is_the_users():
      self.model.fit(
        dataset,
        epochs=1,
        steps_per_epoch=settings.train_steps - step,
        callbacks=callbacks,
        shuffle=False,  # The pipeline has done it.
        verbose=0,
      )
    logging.info(
      "trained %d steps in %.0f s; the model is in %s",
      settings.train_steps - step,
      time.monotonic() - started,
      self.directory.path,
    )

  def validate(self) -> dict[str, float]:
    """Returns the loss on development data, in nats a target token.

    `loss` is smoothed as in training, `perplexity` is not. Empty where all
    pairs are longer than `max_length`.
    """
    settings = self.settings
    dataset = dev_dataset(
      self._dev_shards, settings.batch_size, settings.max_length
    )
    totals = [
      self._validation_losses(inputs, targets)
      for inputs, targets in dataset.take(settings.validation_steps)
    ]
    if not totals:
      logging.warning("no validation loss: no development pair is usable")
      return {}
    smoothed, plain, tokens = (float(sum(t)) for t in zip(*totals, strict=True))
    return {
      "loss": smoothed / tokens,
      "perplexity": float(tf.exp(plain / tokens)),
    }

  def _batch_losses(
    self, inputs: tf.Tensor, targets: tf.Tensor
  ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """Returns a batch's summed loss, smoothed and not, and its tokens."""
    logits = self.transformer([inputs, targets], training=False)
    smoothed, weights = padded_cross_entropy_loss(
      logits, targets, self.params.label_smoothing
    )
    plain, _ = padded_cross_entropy_loss(logits, targets, 0.0)
    return (
      tf.reduce_sum(smoothed),
      tf.reduce_sum(plain),
      tf.reduce_sum(weights),
    )

  def _milestone(self, step: int) -> None:
    """Saves first, so that nothing an evaluation does can cost the steps."""
    self.checkpoints.save(step, self.settings.seed)
    scalars: dict[str, float] = {}
    if self._dev_shards:
      scalars |= {f"validation/{k}": v for k, v in self.validate().items()}
    if self.evaluate:
      scalars |= {
        f"evaluation/{k}": v
        for k, v in self.evaluate(self.transformer, step).items()
      }
    if scalars:
      logging.info(
        "step %d: %s",
        step,
        ", ".join(f"{name} {value:.4f}" for name, value in scalars.items()),
      )
    if self._scalars:
      self._scalars.write(scalars, step)

  def _resume(self) -> int:
    """Restores the newest checkpoint, if any; returns the finished steps."""
    if not self.directory.checkpoint_steps():
      return 0
    prefix = self.directory.latest_checkpoint()
    self.checkpoints.restore(prefix)
    step, _ = read_progress(prefix)
    logging.info(
      "resuming after step %d from %s; reading past the batches before it",
      step,
      prefix,
    )
    return step

  @contextlib.contextmanager
  def _damaged_data_is_the_users(self) -> Iterator[None]:
    """Makes one clear error of shards that cannot be read."""
    try:
      yield
    except (tf.errors.DataLossError, tf.errors.NotFoundError):
      damaged = damaged_shards(self._train_shards)
      if not damaged:
        raise
      raise InputError(
        f"damaged: {', '.join(damaged)}; prepare the data again"
      ) from None

  def _find_dev_shards(self) -> list[str]:
    """Returns the development shards, or none where there are none."""
    if not self.settings.validation_steps:
      return []
    try:
      return data_directory.shard_paths(
        self.settings.data_dir, data_directory.DEV_TAG
      )
    except InputError as error:
      logging.warning("no validation loss: %s", error)
      return []

  def _describe(self, step: int) -> None:
    """Logs what is about to run, and warns of what will disappoint."""
    settings, params = self.settings, self.params
    logging.info(
      "parameters: %s",
      ", ".join(f"{k}={v}" for k, v in dataclasses.asdict(params).items()),
    )
    logging.info(
      "run: %s",
      ", ".join(f"{k}={v}" for k, v in dataclasses.asdict(settings).items()),
    )
    logging.info(
      "%s trainable parameters, steps %d to %d, %d tokens a step",
      f"{sum(int(tf.size(v.value)) for v in self.model.trainable_variables):,}",
      step,
      settings.train_steps,
      settings.batch_size,
    )
    if params.learning_rate_warmup_steps > settings.train_steps / 2:
      logging.warning(
        "the learning rate warms up for %d steps, over half of "
        "--train_steps=%d: the run may never leave the ground; pass "
        "--params_override=learning_rate_warmup_steps=%d",
        params.learning_rate_warmup_steps,
        settings.train_steps,
        max(1, settings.train_steps // 5),
      )
    description = data_directory.read_description(settings.data_dir)
    if description:
      longer = data_directory.count_longer(description, settings.max_length)
      if longer:
        logging.warning(
          "%d of %d training pairs have a side of over --max_length=%d "
          "tokens and are left out",
          longer,
          data_directory.count_longer(description, 0),
          settings.max_length,
        )
