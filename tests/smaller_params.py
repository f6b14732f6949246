"""Parameter sets that train in seconds, under the names of the real ones."""

import contextlib
import dataclasses
from collections.abc import Iterator

import pytest

from official_transformer.model_params import PARAM_SETS

_SIZES = {
  "hidden_size": 16,
  "num_heads": 2,
  "filter_size": 32,
  "num_hidden_layers": 1,
}


@contextlib.contextmanager
def smaller_param_sets() -> Iterator[None]:
  """Gives every named parameter set one small layer, for the body.

  Whatever else a set says (norms, positions, dropout) stays as it is.
  """
  with pytest.MonkeyPatch.context() as patch:
    for name, params in list(PARAM_SETS.items()):
      patch.setitem(PARAM_SETS, name, dataclasses.replace(params, **_SIZES))
    yield
