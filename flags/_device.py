"""Flags that name a TPU."""

from absl import flags

from flags._conventions import help_wrap


def define_device() -> None:
  """Defines `--tpu` and what else upstream has for it."""
  flags.DEFINE_string(
    "tpu",
    None,
    help_wrap(
      "With --distribution_strategy=tpu: the TPU's name or grpc:// address; "
      "local for one in this machine."
    ),
  )
  flags.DEFINE_string(
    "tpu_zone", None, help_wrap("Accepted; the TPU's name is enough.")
  )
  flags.DEFINE_string(
    "tpu_gcp_project", None, help_wrap("Accepted; the TPU's name is enough.")
  )
  flags.DEFINE_integer(
    "num_tpu_shards",
    8,
    help_wrap("Accepted; all cores of the TPU are used."),
  )
