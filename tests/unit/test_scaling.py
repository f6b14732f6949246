"""What `benchmarks/scaling.py` counts is what the models are and do."""

import dataclasses
import pathlib

import pytest
import tensorflow as tf

from official_transformer.model.transformer import (
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


@pytest.fixture
def scaling(monkeypatch):
  monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
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


def test_counts_are_the_models(scaling):
  model = create_training_model(build_transformer(PARAMS, "fp32"))
  counted = sum(v.value.shape.num_elements() for v in model.trainable_variables)
  assert scaling.count_parameters(PARAMS) == counted
  ids = tf.TensorSpec((8, 32), tf.int64)
  traced = tf.function(
    lambda source, target: model([source, target], training=True),
    autograph=False,
  ).get_concrete_function(ids, ids)
  forward = products(traced.graph.get_operations())
  assert scaling.count_flop(PARAMS, 8 * 32, 32) == 3 * forward


def test_rates_explain_what_was_seen(scaling):
  """But for our gradients, which are float32."""
  for seen in scaling.OBSERVATIONS:
    update = scaling.update_of(scaling.big(), seen.tokens)
    update = update._replace(
      gradient_bytes=seen.gradient_bytes * update.parameters
    )
    cluster = seen.cluster()
    assert seen.tokens / cluster.seconds(update, 1) == pytest.approx(seen.alone)
    assert 8 * cluster.efficiency(update, 8) == pytest.approx(seen.speedup)


def test_devices_share_an_update_and_lose_by_it(scaling):
  cluster = scaling.Cluster("", 1e12, 1e9, 5e8)
  update = scaling.Update(0, 8e12, 10**9, 0)
  assert cluster.seconds(update, 1) == 8
  assert cluster.seconds(update, 8) == 1 + 2 * 7 / 8
  assert cluster.seconds(update, 16) == 0.5 + 2 * 15 / 16 * 2
  assert cluster.seconds(update, 8, floor=3) == 3 + 2 * 7 / 8
  assert cluster.efficiency(update, 8) == 8 / (8 + 2 * 7 / 8)


def test_the_page_has_the_tables(scaling):
  page = (ROOT / "docs" / "scaling.md").read_text("utf-8")
  for part in "\n".join(scaling.pages()).split("\n\n"):
    assert part in page
