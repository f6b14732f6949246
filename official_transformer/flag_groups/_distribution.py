"""Flags that spread a run over devices."""

from __future__ import annotations

import dataclasses

from absl import flags

from official_transformer.flag_groups._conventions import define, read_by
from official_transformer.flag_groups.records import (
  Options,
  define_flags,
  flag,
)

STRATEGIES = (
  "off",
  "one_device",
  "mirrored",
  "parameter_server",
  "multi_worker_mirrored",
  "tpu",
)


def _reduces_nothing(values: flags.FlagValues) -> bool:
  """Returns whether there is one device only."""
  return (
    values.num_gpus in (None, 0, 1)
    and values.distribution_strategy != "multi_worker_mirrored"
  )


_REDUCING = read_by("train").idle_if(
  _reduces_nothing, "one device has nothing to reduce; see --num_gpus"
)


def define_distribution() -> None:
  """Defines `--num_gpus`, `--distribution_strategy` and what tunes them."""
  define_num_gpus()
  define(
    flags.DEFINE_enum,
    "distribution_strategy",
    "mirrored",
    "How training is spread: off, one_device, mirrored (over all chosen GPUs "
    "of this machine), multi_worker_mirrored (over the machines that "
    "TF_CONFIG names), tpu.",
    read_by("train"),
    enum_values=list(STRATEGIES),
    short_name="ds",
    case_sensitive=False,
  )
  define(
    flags.DEFINE_enum,
    "all_reduce_alg",
    None,
    "How several GPUs sum their gradients: nccl, on one machine also "
    "hierarchical_copy, on several also ring. Unset: TensorFlow's choice.",
    _REDUCING,
    enum_values=["nccl", "hierarchical_copy", "ring"],
    short_name="ara",
    case_sensitive=False,
  )
  define(
    flags.DEFINE_integer,
    "num_packs",
    1,
    "Packs that gradients are put into before they are summed.",
    _REDUCING.idle_if(
      lambda v: v.distribution_strategy == "multi_worker_mirrored",
      "it is for the GPUs of one machine",
    ),
    lower_bound=0,
  )
  define(
    flags.DEFINE_float,
    "connect_timeout",
    300.0,
    "With multi_worker_mirrored: seconds to wait for each other worker.",
    read_by("train").idle_if(
      lambda v: v.distribution_strategy != "multi_worker_mirrored",
      "it goes with --distribution_strategy=multi_worker_mirrored",
    ),
    lower_bound=1.0,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class GpuOptions(Options):
  """How many GPUs are used."""

  num_gpus: int | None = flag(
    None,
    "GPUs to use; 0 for the CPU, -1 for all. Unset: one if there is one. "
    "Above 1, base and big are the sets tuned for several.",
    lower_bound=-1,
    short_name="ng",
  )


def define_num_gpus() -> None:
  """Defines `--num_gpus`."""
  modes = ("train", "eval", "predict", "score", "attention")
  define_flags(GpuOptions, read_by(*modes))
