import collections
import dataclasses

import pytest

from official_transformer import model_params
from official_transformer.errors import InputError
from official_transformer.model_params import (
  BASE,
  TransformerParams,
  get_params,
  parse_override,
)

# hidden, filter, heads, layers, batch tokens, warm-up.
OFFICIAL = {
  "tiny": (32, 256, 4, 6, 1024, 16000),
  "small": (256, 1024, 4, 2, 4096, 1000),
  "base": (512, 2048, 8, 6, 2048, 16000),
  "big": (1024, 4096, 16, 6, 4096, 16000),
}


@pytest.mark.parametrize("name", OFFICIAL)
def test_sets_have_the_official_numbers(name):
  p = get_params(name)
  assert (
    p.hidden_size,
    p.filter_size,
    p.num_heads,
    p.num_hidden_layers,
    p.default_batch_size,
    p.learning_rate_warmup_steps,
  ) == OFFICIAL[name]
  assert (p.layer_postprocess_dropout, p.attention_dropout) == (0.1, 0.1)
  assert (p.relu_dropout, p.label_smoothing, p.learning_rate) == (0.1, 0.1, 2.0)
  assert (p.beam_size, p.alpha, p.extra_decode_length) == (4, 0.6, 50)
  assert p.start_symbol == "zero"


def test_several_gpus_have_their_own_sets():
  assert get_params("base", num_gpus=2).learning_rate_warmup_steps == 8000
  big = get_params("big", num_gpus=8)
  assert (big.learning_rate_warmup_steps, big.layer_postprocess_dropout) == (
    8000,
    0.3,
  )
  # Nobody has tuned these for several.
  assert get_params("tiny", num_gpus=2) == get_params("tiny")
  assert get_params("small", num_gpus=8) == get_params("small")


def test_unknown_set_names_the_known_ones():
  with pytest.raises(InputError, match="'huge'.*tiny, small, base, big"):
    get_params("huge")


def test_override_reads_fields_of_every_type():
  text = " hidden_size=128, alpha=1 ,start_symbol=pad_row"
  assert parse_override(text) == {
    "hidden_size": 128,
    "alpha": 1.0,
    "start_symbol": "pad_row",
  }
  assert parse_override("") == {}


def test_override_lists_every_problem_and_the_fields():
  with pytest.raises(InputError) as caught:
    parse_override("hiden_size=3,num_heads=x,beam,vocab_size=9,alpha=1,alpha=2")
  message = str(caught.value)
  for part in (
    "no field 'hiden_size'",
    "num_heads='x' is not of type int",
    "'beam' is not of the form",
    "vocab_size cannot be set",
    "alpha is given twice",
    "hidden_size (int)",
  ):
    assert part in message


@pytest.mark.parametrize(
  ("change", "complaint"),
  [
    ({"attention_bias": "false"}, "'false', must be of type bool"),
    ({"hidden_size": 512.0}, "512.0, must be of type int"),
    ({"beam_size": True}, "True, must be of type int"),
    ({"alpha": "1", "vocab_size": None}, "vocab_size is None.*alpha is '1'"),
    ({"num_heads": 3}, "not a multiple of num_heads 3"),
    ({"hidden_size": 15, "num_heads": 5}, "must be even"),
    ({"attention_dropout": 1.0}, "attention_dropout is 1.0"),
    ({"beam_size": 0}, "beam_size is 0"),
    ({"start_symbol": "bos"}, "one of zero, pad_row"),
    ({"alpha": -1.0}, "alpha is -1.0"),
    ({"alpha": float("nan")}, "alpha is nan, must be finite"),
    ({"learning_rate": 0.0}, "learning_rate is 0.0, must be above 0"),
    ({"initializer_gain": 1e308}, "must be above 0, and at most 1e30"),
    ({"initializer_gain": -1.0}, "initializer_gain is -1.0"),
  ],
)
def test_impossible_values_are_refused(change, complaint):
  with pytest.raises(InputError, match=complaint):
    dataclasses.replace(BASE, **change)


def test_upstreams_dictionaries_can_be_changed_and_bear_their_numbers(
  monkeypatch,
):
  monkeypatch.setattr(
    model_params, "BASE_PARAMS", model_params.BASE_PARAMS.copy()
  )
  base = model_params.BASE_PARAMS
  assert base["hidden_size"] == 512
  assert base["vocab_size"] == 33708
  assert base["learning_rate_warmup_steps"] == 16000
  model_params.BASE_PARAMS["vocab_size"] = 20
  assert TransformerParams.of(model_params.BASE_PARAMS).vocab_size == 20
  assert model_params.get_model_params("base", 1)["vocab_size"] == 33708
  assert model_params.BASE.vocab_size == 0
  assert (
    model_params.BASE_MULTI_GPU_PARAMS["learning_rate_warmup_steps"] == 8000
  )
  assert model_params.BIG_PARAMS["filter_size"] == 4096
  assert model_params.BIG_MULTI_GPU_PARAMS["layer_postprocess_dropout"] == 0.3
  assert model_params.TINY_PARAMS["num_heads"] == 4


def test_a_dictionary_is_read_as_upstream_wrote_it():
  """With the settings of a run in it, or the main course notebook's names."""
  given = collections.defaultdict(
    lambda: None, model_params.TINY_PARAMS, use_tpu=False, data_dir="x"
  )
  given.update(vocab_size=20, beam_size=2)
  found = TransformerParams.of(given)
  assert found == dataclasses.replace(
    model_params.TINY, vocab_size=20, beam_size=2
  )
  assert TransformerParams.of(found) is found
  notebook = {
    "layer_normresidual_dropout": 0.2,
    "embedding_dropout": 0.2,
    "vocab_size": 9,
  }
  assert TransformerParams.of(notebook).layer_postprocess_dropout == 0.2
  with pytest.raises(InputError, match="differ"):
    TransformerParams.of({**notebook, "embedding_dropout": 0.1})
  with pytest.raises(InputError, match="num_heads"):
    TransformerParams.of({"num_heads": 0})
