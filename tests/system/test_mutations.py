"""Defects that the tests must notice: each is patched in, and tests must fail.

The tests run in this process, by a pytest within pytest, on a product of which
one function is another. `tests/fidelity/test_model.py` has more of them.
"""

import io
import pathlib
from contextlib import redirect_stderr, redirect_stdout

import pytest
import tensorflow as tf

from official_transformer.decoding import translator
from official_transformer.decoding.pipeline import Started
from official_transformer.model import (
  attention_layer,
  beam_search,
  cross_entropy,
  dropout,
  model_utils,
  positions,
  stacks,
  transformer,
)
from official_transformer.training import data_feed
from official_transformer.training.step import optimizer, training_step

pytestmark = pytest.mark.slow

TESTS = pathlib.Path(__file__).parents[1]
FIDELITY = "fidelity/test_model.py::test_equals_upstream"


def residual_order(patch):
  """The norm comes after the sum."""
  add = stacks.LayerNormResidualWrapper.add
  patch.setattr(
    stacks.LayerNormResidualWrapper,
    "add",
    lambda self, x, y, training=False: self.layer_norm(
      add(self, x, y, training), training=training
    ),
  )


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
  choose = beam_search.SequenceBeamSearch._choose_finished
  patch.setattr(
    beam_search.SequenceBeamSearch,
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
  patch.setitem(positions.SIGNALS, "sinusoid", swapped)


def twice_the_epsilon(patch):
  """Layer normalisation has another epsilon."""
  layer_norm = stacks.layer_norm

  def changed(params, name):
    norm = layer_norm(params, name)
    norm.epsilon *= 2
    return norm

  patch.setattr(stacks, "layer_norm", changed)
  patch.setitem(stacks.OUTPUT_NORMS, "pre", changed)


def unscaled_queries(patch):
  """Attention logits are not divided by the root of a head's size."""
  init = attention_layer.Attention.__init__

  def changed(self, *arguments, **options):
    init(self, *arguments, **options)
    self.query_scale = 1.0

  patch.setattr(attention_layer.Attention, "__init__", changed)


# Which tests must not all pass then.
NOTICED_BY = {
  residual_order: f"{FIDELITY}[check_logits]",
  smoothing_denominator: "unit/model/test_cross_entropy.py::"
  "test_loss_equals_its_definition",
  length_norm: f"{FIDELITY}[check_toy_search]",
  eos_counting: f"{FIDELITY}[check_toy_search]",
  no_padding_mask: f"{FIDELITY}[check_logits]",
  no_causal_mask: f"{FIDELITY}[check_logits]",
  no_dropout: "unit/model/test_dropout.py::"
  "test_a_quarter_is_dropped_and_the_rest_scaled",
  training_not_told: "unit/training/step/test_training_step.py::"
  "test_dropout_depends_on_seed_and_step",
  other_beta2: "unit/training/step/test_optimizer.py::test_adam_by_hand",
  data_from_the_start: "unit/training/test_data_feed.py",
  a_line_dropped: "unit/decoding/test_translator.py::"
  "test_one_line_out_for_each_line_in_and_in_order",
  sines_and_cosines_swapped: f"{FIDELITY}[check_positions]",
  twice_the_epsilon: f"{FIDELITY}[check_stacks]",
  unscaled_queries: f"{FIDELITY}[check_logits]",
}


def status_of(test, directory):
  """Runs a test; returns pytest's exit status and what it has printed.

  Args:
    test: the end of its path, and its name.
    directory: for its temporary files, which no other run shares.
  """
  said = io.StringIO()
  with redirect_stdout(said), redirect_stderr(said):
    status = pytest.main(
      [
        *("-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *(f"--basetemp={directory}/inner/tests", str(TESTS / test)),
      ]
    )
  return status, said.getvalue()


@pytest.mark.parametrize("test", sorted(set(NOTICED_BY.values())))
def test_without_a_defect_the_tests_pass(test, tmp_path):
  (tmp_path / "inner").mkdir()
  status, said = status_of(test, tmp_path)
  assert status == pytest.ExitCode.OK, said


@pytest.mark.parametrize("defect", NOTICED_BY, ids=lambda d: d.__name__)
def test_a_defect_is_noticed(defect, monkeypatch, tmp_path):
  (tmp_path / "inner").mkdir()
  with monkeypatch.context() as patch:
    defect(patch)
    status, said = status_of(NOTICED_BY[defect], tmp_path)
  # Anything else, such as an error of a fixture, is no answer.
  assert status == pytest.ExitCode.TESTS_FAILED, said
  assert "\nFAILED " in said and "\nERROR " not in said, said
