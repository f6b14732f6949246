"""Defects of the product, each a patch that a test must notice."""

import tensorflow as tf

from official_transformer.decoding import translator
from official_transformer.decoding.pipeline import Started
from official_transformer.model import (
  attention_layer,
  model_utils,
  transformer,
  variants,
)
from official_transformer.ops import cross_entropy, dropout
from official_transformer.search import beam_search
from official_transformer.training import data_feed
from official_transformer.training.step import optimizer, training_step


def residual_order(patch):
  """The norm comes after the sum."""
  add = transformer.LayerNormResidualWrapper.add
  patch.setattr(
    transformer.LayerNormResidualWrapper,
    "add",
    lambda self, x, y, training=False: self.layer_norm(
      add(self, x, y, training), training=training
    ),
  )


def norm_after_the_sum(patch):
  """Post-norm in the place of pre-norm."""

  def call(self, x, *inputs, training=False):
    y = self.layer(x, *inputs, training=training)
    return self.layer_norm(self.add(x, y, training))

  patch.setattr(transformer.LayerNormResidualWrapper, "call", call)


def smoothing_denominator(patch):
  """The smoothing is shared by all tokens, the label too."""
  of = cross_entropy.SmoothedTarget.of
  patch.setattr(
    cross_entropy.SmoothedTarget,
    "of",
    lambda smoothing, vocab_size: of(
      smoothing * (vocab_size - 1) / vocab_size, vocab_size
    ),
  )


def length_norm(patch):
  """Another constant in the length penalty."""
  patch.setattr(
    beam_search,
    "length_normalization",
    lambda alpha, length: tf.pow(
      (6.0 + tf.cast(length, tf.float32)) / 7.0, alpha
    ),
  )


def eos_counting(patch):
  """EOS is not counted in a finished hypothesis' length."""
  choose = beam_search.BeamSearch._choose_finished
  patch.setattr(
    beam_search.BeamSearch,
    "_choose_finished",
    lambda self, state, *rest: choose(
      self, state._replace(index=state.index - 1), *rest
    ),
  )


def no_padding_mask(patch):
  """Padding of the source is attended to."""
  bias = model_utils.get_padding_bias
  patch.setattr(transformer, "get_padding_bias", lambda ids: bias(ids) * 0.0)


def no_causal_mask(patch):
  """Later targets are attended to."""
  bias = model_utils.get_decoder_self_attention_bias
  patch.setattr(
    transformer,
    "get_decoder_self_attention_bias",
    lambda length: bias(length) * 0.0,
  )


def no_dropout(patch):
  """Dropout drops nothing."""
  patch.setattr(dropout.Dropout, "call", lambda self, x, training=False: x)


def training_not_told(patch):
  """The model is never told that it trains."""
  gradients_of = training_step.TrainingStep.gradients_of

  def changed(self, *arguments):
    model = self.model
    self.model = Untold(model)
    try:
      return gradients_of(self, *arguments)
    finally:
      self.model = model

  patch.setattr(training_step.TrainingStep, "gradients_of", changed)


class Untold:
  """A model that is called without its flag of training."""

  def __init__(self, model):
    self._model = model

  def __call__(self, inputs, training):
    return self._model(inputs, training=False)

  def __getattr__(self, name):
    return getattr(self._model, name)


def other_beta2(patch):
  """Adam's second moment decays as Keras' does."""
  init = optimizer.FusedAdam.__init__

  def changed(self, learning_rate, beta_1, beta_2, *rest, **options):
    init(self, learning_rate, beta_1, 0.98, *rest, **options)

  patch.setattr(optimizer.FusedAdam, "__init__", changed)


def data_from_the_start(patch):
  """A resumed run begins with the first batches again."""
  train_dataset = data_feed.train_dataset
  patch.setattr(
    data_feed,
    "train_dataset",
    lambda *arguments, **options: train_dataset(
      *arguments, **{**options, "skip_batches": 0}
    ),
  )


def a_line_dropped(patch):
  """A window of several lines loses its last one."""
  start_window = translator.start_window

  def changed(window, *arguments):
    work, results = start_window(window, *arguments)
    return Started(work, lambda: results()[: max(1, len(window) - 1)])

  patch.setattr(translator, "start_window", changed)


def sines_and_cosines_swapped(patch):
  """The first half of a position's channels are cosines."""
  encoding = model_utils.get_position_encoding

  def swapped(length, hidden_size, *scales):
    return tf.roll(encoding(length, hidden_size, *scales), hidden_size // 2, 1)

  patch.setattr(model_utils, "get_position_encoding", swapped)
  patch.setitem(
    variants.POSITIONS, "sinusoid", variants.computed_positions(swapped)
  )


def _other_epsilon(patch, factor):
  layer_norm = variants.NORMS["pre"]

  def changed(params, name):
    norm = layer_norm(params, name)
    norm.epsilon *= factor
    return norm

  patch.setitem(variants.NORMS, "pre", changed)


def twice_the_epsilon(patch):
  """Layer normalisation has an epsilon of 2e-6."""
  _other_epsilon(patch, 2)


def larger_epsilon(patch):
  """Layer normalisation has an epsilon of 1e-3."""
  _other_epsilon(patch, 1000)


def unscaled_queries(patch):
  """Attention logits are not divided by the root of a head's size."""
  weights = attention_layer.attention_weights_of

  def changed(query, keys, bias=None):
    return weights(query * query.shape[-1] ** 0.5, keys, bias)

  patch.setattr(attention_layer, "attention_weights_of", changed)
