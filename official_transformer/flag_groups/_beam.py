"""Flags of what runs a job on many machines."""

from absl import flags

from official_transformer.flag_groups._conventions import Effect, define

RUNNERS = (
  "DirectRunner",
  "FlinkRunner",
  "SparkRunner",
  "DataflowRunner",
  "PortableRunner",
)


def define_beam(effect: Effect | None = None) -> None:
  """Defines `--runner` and Beam's own options."""
  arguments = [] if effect is None else [effect]
  define(
    flags.DEFINE_enum,
    "runner",
    None,
    "Run it as an Apache Beam pipeline, by this runner. Unset: by the "
    "processes of this machine.",
    *arguments,
    enum_values=list(RUNNERS),
  )
  define(
    flags.DEFINE_string,
    "beam_options",
    "",
    "Beam's own options, as on a command line of theirs: "
    "'--direct_num_workers=2 --direct_running_mode=multi_processing'.",
    *arguments,
  )
