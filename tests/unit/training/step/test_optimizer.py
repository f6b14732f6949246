import dataclasses
import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from runs import UNDROPPED

from official_transformer.model.transformer import create_model
from official_transformer.model_params import BASE, SMALL
from official_transformer.training.step.optimizer import (
  FusedAdam,
  LearningRateSchedule,
  create_optimizer,
)


@pytest.mark.parametrize(
  ("step", "expected"),
  [
    (0, 0.0),
    (1, 2 * 512**-0.5 / 16000 / math.sqrt(16000)),
    (8000, 2 * 512**-0.5 / 2 / math.sqrt(16000)),
    (16000, 2 * 512**-0.5 / math.sqrt(16000)),
    (64000, 2 * 512**-0.5 / math.sqrt(64000)),
  ],
)
def test_schedule_of_the_base_set(step, expected):
  schedule = LearningRateSchedule(2.0, 512, 16000)
  assert math.isclose(float(schedule(step)), expected, rel_tol=1e-6)


def update(optimizer, variable, gradient):
  gradient = tf.constant(gradient, variable.dtype)
  optimizer.update_variables([gradient], [variable], optimizer.learning_rate)
  optimizer.iterations.assign_add(1)


def test_first_update_has_rate_zero_and_the_second_does_not():
  optimizer = create_optimizer(BASE)
  variable = keras.Variable([0.0, 0.0])
  optimizer.build([variable])
  update(optimizer, variable, [1.0, 2.0])
  np.testing.assert_array_equal(variable.numpy(), [0.0, 0.0])
  update(optimizer, variable, [1.0, 2.0])
  # Adam moves by about the rate, whatever the gradient's size.
  rate = 2 * 512**-0.5 / 16000 / math.sqrt(16000)
  np.testing.assert_allclose(variable.numpy(), [-rate, -rate], rtol=1e-2)


def test_adam_by_hand():
  optimizer = create_optimizer(SMALL)
  # From 0, so that nothing but the updates shows.
  variable = keras.Variable([0.0])
  optimizer.build([variable])
  m = v = weight = 0.0
  for step in range(5):
    gradient = 0.3 * (step + 1)
    update(optimizer, variable, [gradient])
    m = 0.9 * m + 0.1 * gradient
    v = 0.997 * v + 0.003 * gradient**2
    rate = 2 * 256**-0.5 * step / 1000 / math.sqrt(1000)
    rate *= math.sqrt(1 - 0.997 ** (step + 1)) / (1 - 0.9 ** (step + 1))
    weight -= rate * m / (math.sqrt(v) + 1e-9)
  assert math.isclose(float(variable[0]), weight, rel_tol=1e-4)


def test_config_rebuilds_the_schedule():
  schedule = LearningRateSchedule(2.0, 64, 10)
  again = LearningRateSchedule.from_config(schedule.get_config())
  assert float(again(7)) == float(schedule(7))


def test_it_trains_by_compile_and_fit_as_keras_adam_does():
  params = dataclasses.replace(UNDROPPED, learning_rate=0.5)
  schedule = LearningRateSchedule(
    params.learning_rate, params.hidden_size, params.learning_rate_warmup_steps
  )
  adam = keras.optimizers.Adam(schedule, 0.9, 0.997, 1e-9)
  sources = np.random.default_rng(0).integers(2, 20, [32, 6])
  targets = sources[:, ::-1].copy()
  losses = []
  for optimizer in (create_optimizer(params), adam):
    keras.utils.set_random_seed(1)
    model = create_model(params, is_train=True)
    model.compile(optimizer=optimizer)
    found = model.fit(
      [sources, targets], batch_size=8, epochs=3, shuffle=False, verbose=0
    )
    losses.append(found.history["loss"])
  assert losses[0][2] < losses[0][0] - 0.1
  np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)


def test_config_rebuilds_the_optimizer():
  made = create_optimizer(BASE)
  again = FusedAdam.from_config(made.get_config())
  assert (again.beta_1, again.beta_2, again.epsilon) == (0.9, 0.997, 1e-9)
  np.testing.assert_allclose(again.learning_rate, made.learning_rate)
  assert again._learning_rate.warmup_steps == BASE.learning_rate_warmup_steps
