"""Position encodings in NumPy beside the layers' own."""

import numpy as np
import pytest
from model_variants import make

from official_transformer.decoding.loading import ModelWeights
from official_transformer.ops.timescales import position_table


@pytest.mark.parametrize(
  "name", ["official", "interleaved", "huggingface", "learned"]
)
@pytest.mark.parametrize("side", ["source", "target"])
def test_encodings_are_the_models(name, side):
  transformer = make(name)
  model = ModelWeights.of(transformer)
  found = position_table(model.params, model.arrays, side, 9)
  expected = getattr(transformer.positions, side)(9).numpy()
  assert found.dtype == np.float32
  np.testing.assert_allclose(found, expected, atol=2e-6)
