"""The model that trains, in all the ways it can be computed."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf
from runs import (
  PARAMS,
  ROUNDING,
  UNDROPPED,
  assert_equal_states,
  make_trainer,
  settings,
  state,
  steps_of,
  train,
)

from official_transformer.data.buckets import Batching
from official_transformer.model.incremental_decoder import encode
from official_transformer.training.settings import Execution

# Clipped, a gradient that was not unscaled first would all but vanish.
CLIPPED = dataclasses.replace(PARAMS, clip_norm=1.0)
STATIC = Batching(128, 16, True)


@pytest.fixture(scope="module")
def in_full_precision(tmp_path_factory, reversals):
  """The weights of a run in float32, and its validation loss."""
  trainer = train(
    tmp_path_factory.mktemp("full"), CLIPPED, settings(reversals, 40)
  )
  return state(trainer), trainer.validate()["loss"]


@pytest.mark.parametrize(
  "execution",
  [
    Execution(dtype="bf16"),
    Execution(dtype="fp16"),
    Execution(dtype="fp16", loss_scale=128.0),
  ],
)
def test_half_precision_learns_as_well(
  tmp_path, in_full_precision, reversals, execution
):
  full, loss = in_full_precision
  run = settings(reversals, 40, execution=execution)
  half = train(tmp_path, CLIPPED, run)
  for weight in half.model.weights:
    assert weight.dtype == "float32"
  # What it computes is not what float32 computes, and as good.
  weights = {w.path: w.numpy() for w in half.model.weights}
  assert any(np.abs(full[p] - w).max() > 1e-4 for p, w in weights.items())
  assert half.validate()["loss"] == pytest.approx(loss, rel=0.03)
  # Decoding in that type, step by step, is what the evaluation does.
  result = half.model.transformer.beam_search(np.array([[5, 6, 7, 1]]))
  assert np.isfinite(result.scores).all()


def test_logits_of_half_precision_are_computed_in_it(tmp_path, reversals):
  run = settings(reversals, 1, execution=Execution(dtype="bf16"))
  half = make_trainer(tmp_path, UNDROPPED, run).model.transformer
  x = encode(half, np.array([[5, 6, 7, 1]]))
  assert x.outputs.dtype == tf.bfloat16
  assert half([np.array([[5, 1]]), np.array([[6, 1]])]).dtype == tf.bfloat16


def test_the_loss_scale_is_resumed(tmp_path, reversals):
  fp16 = Execution(dtype="fp16")
  first = train(tmp_path, PARAMS, settings(reversals, 3, execution=fp16))
  first.model.loss_scale.scale.assign(64.0)
  first.checkpoints.save(3, 3)
  run = settings(reversals, 5, execution=fp16)
  again = train(tmp_path, PARAMS, run)
  assert float(again.model.loss_scale.scale) == 64.0
  # Another type goes on from the same weights.
  assert steps_of(train(tmp_path, PARAMS, settings(reversals, 6))) == 6


def operations_of(trainer, kind):
  """Returns how many operations of a kind an update's graph has."""
  update = tf.function(trainer.model.runner.replica_update)
  batch = tf.TensorSpec([None, None], tf.int64)
  graph = update.get_concrete_function(batch, batch).graph
  return sum(o.type == kind for o in graph.get_operations())


@pytest.mark.parametrize(
  "execution",
  [
    Execution(),
    pytest.param(Execution(use_ctl=True), marks=pytest.mark.long),
    pytest.param(Execution(dtype="bf16"), marks=pytest.mark.long),
  ],
)
def test_layers_computed_again_give_the_same_updates(
  tmp_path, reversals, execution
):
  """With dropout, whose masks are drawn again."""
  once = settings(reversals, 5, execution=execution)
  again = dataclasses.replace(execution, recompute=True)
  twice = settings(reversals, 5, execution=again)
  kept = train(tmp_path / "kept", PARAMS, once)
  recomputed = train(tmp_path / "recomputed", PARAMS, twice)
  assert_equal_states(state(kept), state(recomputed), ROUNDING)
  # The attention weights of all layers are computed twice.
  number = operations_of(kept, "Softmax")
  assert number > 0
  assert operations_of(recomputed, "Softmax") == 2 * number


def test_layers_computed_again_go_with_all_else(tmp_path, reversals):
  """Post-norm, learned positions, freezing, summed batches, a loss scale."""
  params = dataclasses.replace(
    PARAMS, norm="post", positions="learned", max_positions=30, clip_norm=1.0
  )
  kept, recomputed = (
    train(
      tmp_path / str(again),
      params,
      settings(
        reversals,
        4,
        freeze=("encoder_stack/*",),
        batching=Batching(128, 16, accumulate_steps=2),
        execution=Execution(dtype="fp16", recompute=again),
      ),
    )
    for again in (False, True)
  )
  assert_equal_states(state(kept), state(recomputed), ROUNDING)


def test_static_batches_compile_whole(tmp_path, reversals):
  params = dataclasses.replace(PARAMS, clip_norm=0.5)
  plain = settings(reversals, 5, batching=STATIC)
  compiled = dataclasses.replace(plain, execution=Execution(compile=True))
  looped_and_recomputed = dataclasses.replace(
    plain, execution=Execution(compile=True, use_ctl=True, recompute=True)
  )
  reference, *others = (
    state(train(tmp_path / str(n), params, run))
    for n, run in enumerate((plain, compiled, looped_and_recomputed))
  )
  for other in others:
    assert_equal_states(reference, other, ROUNDING)


def test_the_compiled_step_has_no_dynamic_shape(tmp_path, reversals):
  run = settings(
    reversals, 1, batching=STATIC, execution=Execution(compile=True)
  )
  trainer = make_trainer(tmp_path, PARAMS, run)
  compiled = trainer.model.runner.replica_update
  batch = tf.ones([8, 16], tf.int64)
  for stage in ("hlo", "optimized_hlo"):
    text = compiled.experimental_get_compiler_ir(batch, batch)(stage=stage)
    assert "ENTRY" in text
    # How XLA writes a dimension that is only bounded, and what makes one.
    assert "<=" not in text
    assert "dynamic-dimension" not in text and "dynamic-reshape" not in text


@pytest.fixture(scope="module")
def of_large_batches(tmp_path_factory, reversals):
  """The final state of 20 updates of 8 sentences each."""
  run = settings(reversals, 20, batching=STATIC)
  return state(train(tmp_path_factory.mktemp("whole"), UNDROPPED, run))


@pytest.mark.parametrize("steps_per_loop", [1, 2])
def test_accumulated_batches_are_one_large_batch(
  tmp_path, of_large_batches, reversals, steps_per_loop
):
  """The same examples, in batches of 4 twice."""
  run = settings(
    reversals,
    20,
    batching=Batching(64, 16, True, accumulate_steps=2),
    execution=Execution(steps_per_loop=steps_per_loop),
  )
  halves = train(tmp_path, UNDROPPED, run)
  assert steps_of(halves) == 20
  assert_equal_states(of_large_batches, state(halves), ROUNDING)


def test_the_rehearsal_leaves_no_trace(tmp_path, reversals):
  fp16 = settings(reversals, 4, execution=Execution(dtype="fp16"))
  trainer = make_trainer(tmp_path, PARAMS, fp16)
  variables = [
    *trainer.model.weights,
    *trainer.model.optimizer.variables,
    *trainer.model.loss_scale.variables,
  ]
  before = [v.numpy() for v in variables]
  trainer.model.rehearse(iter(trainer.feed.largest_batches()[0]))
  for old, variable in zip(before, variables, strict=True):
    np.testing.assert_array_equal(old, variable.numpy(), variable.path)
