import dataclasses

import pytest
from runs import SETTINGS

from official_transformer.model_params import TINY
from official_transformer.training.reporting import run_report as lib
from official_transformer.training.settings import Execution


@pytest.mark.parametrize(
  ("warmup", "fast", "expected"),
  [
    (50, True, []),
    (51, True, ["learning_rate_warmup_steps=20"]),
    (50, False, ["--dtype=bf16: this processor has no fast units"]),
  ],
)
def test_what_will_disappoint_is_said(
  warmup, fast, expected, monkeypatch, caplog
):
  asked = []
  monkeypatch.setattr(lib, "is_fast_dtype", lambda d: asked.append(d) or fast)
  params = dataclasses.replace(TINY, learning_rate_warmup_steps=warmup)
  lib.warn_of_settings(
    params,
    dataclasses.replace(
      SETTINGS, train_steps=100, execution=Execution(dtype="bf16")
    ),
  )
  assert asked == ["bf16"]
  assert len(caplog.messages) == len(expected)
  for message, part in zip(caplog.messages, expected, strict=True):
    assert part in message
