import dataclasses

from runs import SETTINGS

from official_transformer.model_params import BASE
from official_transformer.training.reporting.memory import estimate_step_bytes
from official_transformer.training.settings import Execution

BASE_PARAMS = dataclasses.replace(BASE, vocab_size=32768)
PARAMETERS, FROZEN = 60_900_000, 0


def estimate(sentences, length, **settings):
  run = dataclasses.replace(SETTINGS, **settings)
  return estimate_step_bytes(
    BASE_PARAMS, run, PARAMETERS, FROZEN, sentences, length
  )


def test_the_base_model_takes_about_what_was_measured():
  # 1.99 GB of tensors at the peak of a step of 64 pairs of 32 tokens.
  assert 1.6e9 < estimate(64, 32) < 2.4e9


def test_what_takes_more_and_what_takes_less():
  usual = estimate(64, 32)
  half = estimate(64, 32, execution=Execution(dtype="bf16"))
  summed = estimate(
    64, 32, batching=dataclasses.replace(SETTINGS.batching, accumulate_steps=2)
  )
  assert half < usual < summed
  assert summed - usual == 4 * PARAMETERS  # One more sum of gradients.
  averaged = estimate(64, 32, average_decay=0.999)
  assert averaged - usual == 4 * PARAMETERS
  # The process was 0.57 GB smaller.
  again = estimate(64, 32, execution=Execution(recompute=True))
  assert 0.4e9 < usual - again < 0.8e9
  # The same tokens, but more to attend to.
  assert estimate(8, 256) > usual
  # All logits three times, in float32.
  measured = estimate(64, 32, enable_metrics_in_training=True)
  assert measured - usual == 3 * 4 * 64 * 32 * 32768
