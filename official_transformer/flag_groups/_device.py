"""Flags that name a TPU."""

from absl import flags

from official_transformer.flag_groups._conventions import (
  accepted_only,
  define,
  read_by,
)

_NAME_IS_ENOUGH = accepted_only("the TPU is found by --tpu alone")


def define_device() -> None:
  """Defines `--tpu` and what else upstream has for it."""
  define(
    flags.DEFINE_string,
    "tpu",
    None,
    "With --distribution_strategy=tpu: the TPU's name or grpc:// address; "
    "local for one in this machine.",
    read_by("train").idle_if(
      lambda v: bool(v.tpu) and v.distribution_strategy != "tpu",
      "it goes with --distribution_strategy=tpu",
    ),
  )
  for name in ("tpu_zone", "tpu_gcp_project"):
    define(
      flags.DEFINE_string,
      name,
      None,
      "Accepted; the TPU's name is enough.",
      _NAME_IS_ENOUGH,
    )
  define(
    flags.DEFINE_integer,
    "num_tpu_shards",
    8,
    "Accepted; all cores of the TPU are used.",
    accepted_only("all cores of the TPU are used"),
  )
