import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from official_transformer.model.transformer import create_model
from official_transformer.training.step.optimizer import create_optimizer
from official_transformer.training.step.training_step import TrainingStep

INPUTS = tf.constant([[5, 6, 7, 1], [8, 1, 0, 0]], tf.int64)
TARGETS = tf.constant([[3, 4, 1], [6, 1, 0]], tf.int64)


def make(params, seed=1, **options):
  tf.keras.utils.set_random_seed(0)
  model = create_model(params, is_train=True)
  optimizer = create_optimizer(params)
  optimizer.build(model.trainable_variables)
  return TrainingStep(model, optimizer, seed, **options)


def test_the_report_by_hand(undropped):
  step = make(undropped)
  step.model([INPUTS, TARGETS])
  expected = float(step.model.losses[0])
  result = step(INPUTS, TARGETS)
  np.testing.assert_allclose(result.loss, expected, rtol=1e-5)
  assert (int(result.source_tokens), int(result.target_tokens)) == (6, 5)
  assert float(result.learning_rate) == 0.0
  assert float(step(INPUTS, TARGETS).learning_rate) > 0.0


def test_every_variable_moves_from_the_second_update_on(undropped):
  step = make(undropped)
  start = step.model.get_weights()
  step(INPUTS, TARGETS)
  for a, b in zip(start, step.model.get_weights(), strict=True):
    np.testing.assert_array_equal(a, b)  # The first update has rate 0.
  step(INPUTS, TARGETS)
  for old, variable in zip(start, step.model.weights, strict=True):
    assert (old != variable.numpy()).any(), variable.path


def test_traced_equals_eager(params):
  eager, traced = make(params), make(params)
  function = tf.function(traced, autograph=False)
  for _ in range(3):
    a, b = eager(INPUTS, TARGETS), function(INPUTS, TARGETS)
    np.testing.assert_allclose(a.loss, b.loss, rtol=1e-5)


def test_dropout_depends_on_seed_and_step(params):
  losses = {
    seed: [float(step(INPUTS, TARGETS).loss) for _ in range(2)]
    for seed, step in ((1, make(params, 1)), (2, make(params, 2)))
  }
  again = make(params, 1)
  assert float(again(INPUTS, TARGETS).loss) == losses[1][0]
  assert losses[1][0] != losses[2][0]
  # The first update changes no weight, so only the masks can differ.
  assert losses[1][0] != losses[1][1]


def test_without_dropout_the_seed_changes_nothing(undropped):
  big = dataclasses.replace(undropped, label_smoothing=0.0)
  one, two = make(big, 1), make(big, 2)
  assert float(one(INPUTS, TARGETS).loss) == float(two(INPUTS, TARGETS).loss)


def gradients_of(step):
  """What reaches the optimizer of one update, as one vector."""
  taken = []
  step.optimizer.update_variables = lambda gradients, *_: taken.extend(
    np.ravel(g) for g in gradients
  )
  result = step(INPUTS, TARGETS)
  return np.concatenate(taken), float(result.gradient_norm)


def test_a_gradient_is_scaled_down_to_the_largest_norm(undropped):
  free, norm = gradients_of(make(undropped))
  np.testing.assert_allclose(np.linalg.norm(free), norm, rtol=1e-5)
  clipped, reported = gradients_of(make(undropped, clip_norm=norm / 4))
  np.testing.assert_allclose(clipped, free / 4, rtol=1e-5, atol=1e-9)
  assert reported == pytest.approx(norm)
  untouched, _ = gradients_of(make(undropped, clip_norm=norm * 2))
  np.testing.assert_array_equal(untouched, free)
