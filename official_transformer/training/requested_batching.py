"""Batch settings that a user chose, for a new model or an existing one."""

from __future__ import annotations

import dataclasses
from typing import Any

from official_transformer.data.buckets import Batching
from official_transformer.errors import InputError
from official_transformer.model_directory.description import DESCRIPTION_FILE
from official_transformer.model_params import (
  DEFAULT_MAX_LENGTH,
  TransformerParams,
)


@dataclasses.dataclass(frozen=True)
class RequestedBatching:
  """Settings of batches that a user chose; None is no choice.

  Attributes:
    batch_size: `Batching.batch_size`.
    max_length: `Batching.max_length`.
    static_batch: `Batching.static_batch`.
    accumulate_steps: `Batching.accumulate_steps`.
    target_batch_tokens: tokens of an update, instead of `accumulate_steps`.
  """

  batch_size: int | None = None
  max_length: int | None = None
  static_batch: bool | None = None
  accumulate_steps: int | None = None
  target_batch_tokens: int | None = None

  def for_new_model(
    self, params: TransformerParams, num_replicas: int
  ) -> Batching:
    """Returns the chosen settings, with defaults from the parameters.

    Raises:
      InputError: if a batch cannot hold one example of the greatest length.
    """
    given = self._given(params.default_batch_size)
    longest = params.longest or DEFAULT_MAX_LENGTH
    if params.longest and given.get("max_length", 0) > longest:
      raise InputError(
        f"--max_length={given['max_length']}, but the model learns "
        f"{longest} positions (max_positions): lower the one, or raise the "
        "other by --params_override"
      )
    return Batching(
      **{
        "batch_size": params.default_batch_size,
        "max_length": min(longest, DEFAULT_MAX_LENGTH),
        "batch_divisor": num_replicas,
        **given,
      }
    )

  def check(self, stored: Batching, where: str) -> None:
    """Refuses batches that would change which examples a step trains on.

    Args:
      stored: batch settings that the model was trained with.
      where: the model directory, for the message.

    Raises:
      InputError: naming each difference with both values.
    """
    differences = []
    for name, value in self._given(stored.batch_size).items():
      kept = getattr(stored, name)
      if value == kept:
        continue
      if name == "accumulate_steps" and self.target_batch_tokens:
        differences.append(
          f"--target_batch_tokens={self.target_batch_tokens} given, an update "
          f"of {value} batches; {kept} stored"
        )
      else:
        differences.append(f"--{name}={value} given, {kept} stored")
    if differences:
      raise InputError(
        f"{'; '.join(differences)} in {where}/{DESCRIPTION_FILE}: a resumed "
        "run goes through the data where it stopped, and needs the same "
        "batches. Leave the flags out, or name another --model_dir"
      )

  def _given(self, default_batch_size: int) -> dict[str, Any]:
    """Returns the fields of `Batching` that were chosen."""
    given = {k: v for k, v in dataclasses.asdict(self).items() if v is not None}
    target = given.pop("target_batch_tokens", None)
    if target is not None:
      batch_size = self.batch_size or default_batch_size
      # As many batches as it takes.
      given["accumulate_steps"] = max(1, -(-target // batch_size))
    return given
