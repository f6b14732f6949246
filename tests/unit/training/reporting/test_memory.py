import dataclasses

from official_transformer.model_params import BASE
from official_transformer.training.reporting.memory import estimate_step_bytes

BASE_PARAMS = dataclasses.replace(BASE, vocab_size=32768)
PARAMETERS = 60_900_000


def test_the_base_model_takes_about_what_was_measured():
  # 1.99 GB of tensors at the peak of a step of 64 pairs of 32 tokens.
  needed = estimate_step_bytes(BASE_PARAMS, PARAMETERS, 64, 32)
  assert 1.6e9 < needed < 2.4e9


def test_what_takes_more_and_what_takes_less():
  usual = estimate_step_bytes(BASE_PARAMS, PARAMETERS, 64, 32)
  half = estimate_step_bytes(BASE_PARAMS, PARAMETERS, 64, 32, "bf16")
  summed = estimate_step_bytes(
    BASE_PARAMS, PARAMETERS, 64, 32, accumulates=True
  )
  longer = estimate_step_bytes(BASE_PARAMS, PARAMETERS, 8, 256)
  twice = dataclasses.replace(BASE_PARAMS, r_drop_alpha=5.0)
  passes = estimate_step_bytes(twice, PARAMETERS, 64, 32)
  assert half < usual < summed
  # Two passes keep what twice the sentences would, and two arrays more.
  doubled = estimate_step_bytes(BASE_PARAMS, PARAMETERS, 128, 32)
  assert passes - doubled == 2 * 4 * 2**23
  # Metrics look at one of them.
  one, both = (
    estimate_step_bytes(p, PARAMETERS, 64, 32, with_metrics=True)
    for p in (BASE_PARAMS, twice)
  )
  assert both - passes == one - usual
  assert summed - usual == 4 * PARAMETERS  # One more sum of gradients.
  assert longer > usual  # The same tokens, but more to attend to.
