"""A model's weights without TensorFlow, beside the model itself."""

import dataclasses

import numpy as np
import pytest
from model_variants import VARIANTS, make

from official_transformer.decoding.model_weights import (
  ModelWeights,
  variable_shapes,
)
from official_transformer.errors import InputError


@pytest.mark.parametrize("name", VARIANTS)
def test_the_variables_are_those_of_the_model(name):
  transformer = make(name)
  assert variable_shapes(transformer.params) == {
    weight.path: tuple(weight.shape) for weight in transformer.weights
  }
  ModelWeights.of(transformer).check(variable_shapes(transformer.params))


@pytest.mark.parametrize(
  "name", ["official", "interleaved", "huggingface", "learned"]
)
@pytest.mark.parametrize("side", ["source", "target"])
def test_encodings_are_the_models(name, side):
  transformer = make(name)
  found = ModelWeights.of(transformer).positions(side, 9)
  expected = getattr(transformer.positions, side)(9).numpy()
  assert found.dtype == np.float32
  np.testing.assert_allclose(found, expected, atol=2e-6)


def test_far_positions_are_the_models():
  transformer = make("official")
  found = ModelWeights.of(transformer).positions("target", 16384)
  expected = transformer.positions.target(16384).numpy()
  np.testing.assert_allclose(found, expected, atol=1e-5)


def test_every_difference_is_named():
  params = make("official").params
  arrays = {n: np.zeros(s) for n, s in variable_shapes(params).items()}
  stack = "transformer/decoder_stack"
  del arrays[f"{stack}/layer_1/ffn/network/filter_kernel"]
  arrays[f"{stack}/layer_2/ffn/network/filter_kernel"] = np.zeros(2)
  arrays[f"{stack}/output_norm/gamma"] = np.zeros(3)
  model = ModelWeights(params, arrays, "there/model")
  with pytest.raises(InputError) as error:
    model.check(variable_shapes(params))
  said = str(error.value)
  assert "the checkpoint there/model does not fit this model" in said
  assert f"missing: {stack}/layer_1/ffn/network/filter_kernel" in said
  assert f"unknown: {stack}/layer_2/ffn/network/filter_kernel" in said
  assert f"shape of {stack}/output_norm/gamma: stored (3,), needed" in said
  fewer = dataclasses.replace(params, num_hidden_layers=1)
  with pytest.raises(InputError, match="unknown: transformer/encoder_stack"):
    ModelWeights(fewer, arrays).check(variable_shapes(fewer))
