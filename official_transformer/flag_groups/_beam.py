"""Flags of what runs a job on many machines."""

from __future__ import annotations

import dataclasses

from official_transformer.flag_groups.records import Options, flag

RUNNERS = (
  "DirectRunner",
  "FlinkRunner",
  "SparkRunner",
  "DataflowRunner",
  "PortableRunner",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class BeamOptions(Options):
  """Which runner, and what it is told."""

  heading = "Many machines"

  runner: str | None = flag(
    None,
    "Run it as an Apache Beam pipeline, by this runner. Unset: by the "
    "processes of this machine.",
    choices=RUNNERS,
  )
  beam_options: str = flag(
    "",
    "Beam's own options, as on a command line of theirs: "
    "'--direct_num_workers=2 --direct_running_mode=multi_processing'.",
  )
