"""Flags that spread a run over devices."""

from absl import flags

from flags._conventions import help_wrap

STRATEGIES = (
  "off",
  "one_device",
  "mirrored",
  "parameter_server",
  "multi_worker_mirrored",
  "tpu",
)


def define_distribution() -> None:
  """Defines `--num_gpus`, `--distribution_strategy` and what tunes them."""
  flags.DEFINE_integer(
    "num_gpus",
    None,
    help_wrap(
      "GPUs to use; 0 for the CPU, -1 for all. Unset: one where there is one. "
      "Above 1, base and big are the sets tuned for several."
    ),
    lower_bound=-1,
    short_name="ng",
  )
  flags.DEFINE_enum(
    "distribution_strategy",
    "mirrored",
    list(STRATEGIES),
    help_wrap(
      "How training is spread: off, one_device, mirrored (over all chosen GPUs "
      "of this machine), multi_worker_mirrored (over the machines that "
      "TF_CONFIG names), tpu."
    ),
    short_name="ds",
    case_sensitive=False,
  )
  flags.DEFINE_enum(
    "all_reduce_alg",
    None,
    ["nccl", "hierarchical_copy", "ring"],
    help_wrap(
      "How several GPUs sum their gradients: nccl, on one machine also "
      "hierarchical_copy, on several also ring. Unset: TensorFlow's choice."
    ),
    short_name="ara",
    case_sensitive=False,
  )
  flags.DEFINE_integer(
    "num_packs",
    1,
    help_wrap("Packs that gradients are put into before they are summed."),
    lower_bound=0,
  )
  flags.DEFINE_float(
    "connect_timeout",
    300.0,
    help_wrap(
      "With multi_worker_mirrored: seconds to wait for each other worker."
    ),
    lower_bound=1.0,
  )
