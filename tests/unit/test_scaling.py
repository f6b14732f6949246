"""What the benchmarks count of an update is what models are and do."""

import collections
import dataclasses
import math
import pathlib

import pytest
import tensorflow as tf

from official_transformer.model.building import (
  build_transformer,
  create_training_model,
)
from official_transformer.model_params import PARAM_SETS

ROOT = pathlib.Path(__file__).parents[2]
PARAMS = dataclasses.replace(
  PARAM_SETS["tiny"],
  vocab_size=1000,
  hidden_size=64,
  filter_size=128,
  num_heads=4,
  num_encoder_layers=3,
  num_decoder_layers=2,
)
# Nodes that are shapes, or names for what is there already.
NOT_LAUNCHED = {
  *("BroadcastGradientArgs", "Const", "Identity", "IdentityN"),
  *("InvertPermutation", "NoOp", "Pack", "Placeholder", "ReadVariableOp"),
  *("Reshape", "Shape", "Size", "StridedSlice", "Unpack"),
}


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
  monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


@pytest.fixture
def cost_model(benchmarks):
  import cost_model

  return cost_model


@pytest.fixture
def scaling(benchmarks):
  import scaling

  return scaling


def products(operations):
  """Returns the multiplications and additions of a graph's products."""
  total = 0
  for operation in operations:
    if operation.type == "MatMul":
      turned = operation.get_attr("transpose_a")
    elif operation.type == "BatchMatMulV2":
      turned = operation.get_attr("adj_x")
    else:
      continue
    inner = operation.inputs[0].shape[-2 if turned else -1]
    total += 2 * operation.outputs[0].shape.num_elements() * inner
  return total


def test_counts_are_the_models(cost_model):
  model = create_training_model(build_transformer(PARAMS, "fp32"))
  counted = sum(v.value.shape.num_elements() for v in model.trainable_variables)
  assert cost_model.count_parameters(PARAMS) == counted
  ids = tf.TensorSpec((8, 32), tf.int64)
  traced = tf.function(
    lambda source, target: model([source, target], training=True),
    autograph=False,
  ).get_concrete_function(ids, ids)
  forward = products(traced.graph.get_operations())
  assert cost_model.count_flop(PARAMS, 8 * 32, 32) == 3 * forward


def test_operations_are_those_of_a_step(cost_model):
  from measure_training import training_model

  params = dataclasses.replace(PARAM_SETS["tiny"], vocab_size=100)
  assert params.num_hidden_layers == PARAM_SETS["base"].num_hidden_layers
  model = training_model(params, "fp32", False, False)
  ids = tf.TensorSpec((None, None), tf.int64)
  traced = tf.function(
    model.step_runner.replica_update, autograph=False
  ).get_concrete_function(ids, ids)
  kinds = collections.Counter(o.type for o in traced.graph.get_operations())
  launched = sum(n for kind, n in kinds.items() if kind not in NOT_LAUNCHED)
  # Adam is one operation a variable, in a function of its own.
  launched += len(model.trainable_variables)
  assert launched == pytest.approx(cost_model.LAUNCHED, rel=0.05)


def test_the_model_explains_what_it_was_fitted_to(scaling):
  for machine in scaling.MACHINES:
    for run, cluster in machine.clusters():
      big = scaling.MODELS["big"]
      parts = cluster.parts(scaling.update_of(big, 8 * run.tokens), 8)
      assert parts.products + parts.adam == pytest.approx(run.seconds)
      assert 8 * parts.efficiency == pytest.approx(run.speedups[8])


def test_where_an_update_goes(cost_model):
  cluster = cost_model.Cluster("", 1e12, 2e9, 0.1, 1e9, 5e8, batch_tokens=50)
  update = cost_model.Update(800, 0, 8e12, 10**9, 4 * 10**9)
  launching = cost_model.LAUNCHED * cost_model.LAUNCH_SECONDS
  alone = cluster.parts(update, 1)
  assert alone == (8, 2, 16 * launching, 0, 0)
  eight = cluster.parts(update, 8)
  assert eight == pytest.approx((1, 2, 2 * launching, 7 / 8 * 0.3, 7 / 8 * 2))
  assert eight.seconds == pytest.approx(3 + 7 / 8 * 2.3)
  assert eight.efficiency == pytest.approx(3 / eight.seconds)
  # Over a slower network.
  assert cluster.parts(update, 16).summing == 15 / 16 * 4
  slow = cost_model.Parts(1, 1, 5, 1, 1)
  assert slow.seconds == 7


def test_two_processes_are_explained(scaling):
  import measure_scaling

  found = {
    case: measure_scaling.Found(
      flop=1.0,
      gradient_bytes=case.hidden**2,
      apart=case.tokens * case.hidden / 1e6,
      joined=case.tokens * case.hidden / 1e6 * 1.1 + case.hidden**2 / 1e6,
    )
    for case in (*measure_scaling.FITTED, *measure_scaling.PREDICTED)
  }
  assert measure_scaling.fit(found) == pytest.approx((0.2, 1e6))
  slower = {
    case: one._replace(joined=one.apart - one.gradient_bytes)
    for case, one in found.items()
  }
  with pytest.raises(ValueError, match="measure anew"):
    measure_scaling.fit(slower)
  assert math.isinf(scaling.Cluster("", 1, 1, 0, 1).network_rate)


def test_the_page_has_the_tables(scaling):
  page = (ROOT / "docs" / "scaling.md").read_text("utf-8")
  for part in "\n".join(scaling.pages()).split("\n\n"):
    assert part in page
