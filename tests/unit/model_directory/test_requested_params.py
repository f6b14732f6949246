import pytest

from official_transformer.errors import InputError
from official_transformer.model_directory.requested_params import (
  RequestedParams,
)
from official_transformer.model_params import parse_override


def test_a_set_says_nothing_of_the_start_symbol():
  stored = RequestedParams("tiny", {"start_symbol": "pad_row"})
  stored = stored.for_new_model("big")
  request = RequestedParams("tiny", {"beam_size": 7})
  assert request.for_existing_model(stored, "x").beam_size == 7
  with pytest.raises(InputError, match="start_symbol: zero given, pad_row"):
    RequestedParams(None, {"start_symbol": "zero"}).for_existing_model(
      stored, "x"
    )


def test_decoding_does_not_mind_how_the_model_was_trained():
  """A model of `base`, trained with another warm-up; as its command has it."""
  stored = RequestedParams(
    "base",
    {"learning_rate_warmup_steps": 400, "layer_postprocess_dropout": 0.3},
  ).for_new_model("big")
  found = RequestedParams("base", {"alpha": 1.0}).for_decoding(stored, "x")
  assert found.alpha == 1.0
  assert found.learning_rate_warmup_steps == 400
  found = RequestedParams("base", {"clip_norm": 9.0}).for_decoding(stored, "x")
  assert found == stored
  with pytest.raises(InputError, match="num_heads: 16 given, 8 stored"):
    RequestedParams("big", {}).for_decoding(stored, "x")


def test_the_earlier_name_of_an_encoding_contradicts_nothing():
  override = parse_override("positions=marian")
  stored = RequestedParams("base", override).for_new_model("big")
  assert stored.positions == "huggingface"
  found = RequestedParams(None, override).for_existing_model(stored, "x")
  assert found == stored
