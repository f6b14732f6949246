"""Transformers, and the Keras model that this project trains.

The model computes the same as that of `transformer.create_model`, and its loss
in less time and memory. Save models of `create_model` with Keras, not this one.

Shapes: B batch, S source length, T target length, D hidden size, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras
import tensorflow as tf

from official_transformer.model.metrics import MetricLayer
from official_transformer.model.transformer import Transformer
from official_transformer.model.variants import OutputLayer
from official_transformer.model_params import PAD_ID, TransformerParams
from official_transformer.ops.cross_entropy import linear_cross_entropy
from official_transformer.ops.layer import ConfiguredLayer
from official_transformer.ops.precision import keras_policy


def build_transformer(
  params: TransformerParams | Mapping[str, Any],
  dtype: str = "fp32",
  is_train: bool = True,
) -> Transformer:
  """Returns a transformer with all its variables, freshly initialised.

  Args:
    params: hyper-parameters of the model; `vocab_size` must be set.
    dtype: as in `keras_policy`.
    is_train: as in `keras_policy`.

  Raises:
    InputError: if Keras runs on another backend than TensorFlow.
  """
  policy = keras_policy(dtype, is_train)
  return Transformer(params, name="transformer", dtype=policy)


class TeacherForcing(ConfiguredLayer):
  """Source and target ids to the decoder's states, as a layer.

  Attributes:
    transformer: built already.
  """

  def __init__(self, transformer: Transformer, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.transformer = transformer

  def call(self, inputs: list[tf.Tensor], training: bool = False) -> tf.Tensor:
    """Maps ids [B, S] and [B, T] to states [B, T, D]."""
    return self.transformer.decoder_states(inputs, training)


class LogitsAndLossLayer(ConfiguredLayer):
  """Maps the decoder's states to logits, and adds their loss to the model.

  Equal to the logits and `LossLayer` after each other (a test compares them).
  But the loss is computed from the states, for some positions at a time, and
  not at padding. If nobody reads the logits, a traced model never computes
  them.

  Attributes:
    label_smoothing: probability spread over the wrong tokens.
    softmax: scores the vocabulary.
  """

  def __init__(
    self,
    label_smoothing: float,
    softmax: OutputLayer,
    **kwargs: Any,
  ) -> None:
    super().__init__(**kwargs)
    self.label_smoothing = label_smoothing
    self.softmax = softmax

  def call(self, inputs: list[tf.Tensor]) -> tf.Tensor:
    """Takes states [B, T, D] and labels [B, T]; returns logits [B, T, V]."""
    given, labels = inputs
    is_static = labels.shape.is_fully_defined()
    states = tf.reshape(given, [-1, self.softmax.hidden_size])
    labels = tf.reshape(labels, [-1])
    # The vocabulary is scored if there is something to predict. Static
    # shapes stay static: there, padding is weighted with 0.
    if not is_static:
      positions = tf.where(tf.not_equal(labels, PAD_ID))[:, 0]
      states = tf.gather(states, positions)
      labels = tf.gather(labels, positions)
    weights = tf.cast(tf.not_equal(labels, PAD_ID), tf.float32)
    weights = tf.math.divide_no_nan(weights, tf.reduce_sum(weights))
    self.add_loss(
      linear_cross_entropy(
        *self.softmax.loss_inputs(states),
        labels,
        weights,
        self.label_smoothing,
      )
    )
    return self.softmax.logits(given)


def create_training_model(
  transformer: Transformer, with_metrics: bool = False
) -> keras.Model:
  """Returns the Keras functional model that trains a transformer.

  Args:
    transformer: built to be trained.
    with_metrics: whether accuracy, top-5 accuracy, accuracy per sequence and
      negative log perplexity are measured too.

  Returns:
    `[inputs [B, S], targets [B, T]]` to logits [B, T, V], with the
    label-smoothed loss added.
  """
  inputs = keras.Input([None], dtype="int64", name="inputs")
  targets = keras.Input([None], dtype="int64", name="targets")
  states = TeacherForcing(transformer, name="teacher_forcing")(
    [inputs, targets]
  )
  logits = LogitsAndLossLayer(
    transformer.params.label_smoothing, transformer.softmax, name="loss"
  )([states, targets])
  if with_metrics:
    metrics = MetricLayer(transformer.params.vocab_size, name="metrics")
    logits = metrics([logits, targets])
  return keras.Model([inputs, targets], logits, name="transformer_trainer")
