import pytest

from official_transformer.errors import InputError
from official_transformer.model_directory.requested_params import (
  RequestedParams,
)


def test_a_set_says_nothing_of_the_start_symbol():
  stored = RequestedParams("tiny", {"start_symbol": "pad_row"})
  stored = stored.for_new_model("big")
  request = RequestedParams("tiny", {"beam_size": 7})
  assert request.for_existing_model(stored, "x").beam_size == 7
  with pytest.raises(InputError, match="start_symbol: zero given, pad_row"):
    RequestedParams(None, {"start_symbol": "zero"}).for_existing_model(
      stored, "x"
    )
