"""The flags of pictures."""

from __future__ import annotations

from absl import flags

from official_transformer.flag_groups.core import (
  define,
  read_by,
  start_section,
)

PLOTS = ("run", "schedule", "positions", "neighbours")


def define_picture_flags() -> None:
  """Defines what is drawn, and where it goes."""
  start_section("Pictures")
  define(
    flags.DEFINE_string,
    "output_dir",
    None,
    "Where pictures, and the numbers they are made of, go.",
    read_by("attention", "plot"),
    path=True,
  )
  define(
    flags.DEFINE_string,
    "trace_dir",
    None,
    "Where --mode=predict tells of each search, step by step: hypotheses, "
    "scores, what was pruned, and a picture of the tree. Slow: for some lines.",
    read_by("predict"),
    path=True,
  )
  define(
    flags.DEFINE_list,
    "picture_formats",
    "png,svg",
    "What pictures are written as (extra [plots]). Empty: attention and "
    "--trace_dir as numbers alone.",
    read_by("predict", "attention", "plot").idle_if(
      lambda v: v.mode == "predict" and not v.trace_dir,
      "there is no --trace_dir",
    ),
  )
  define(
    flags.DEFINE_list,
    "plots",
    "run",
    "What --mode=plot draws. run: the curves of --model_dir, or of several "
    "between commas. schedule: the learning rate over --train_steps, of "
    "--param_set and --params_override if they are given, else of the model. "
    "positions: the timing signal. neighbours: what is near --words in the "
    "embeddings.",
    read_by("plot"),
  )
  define(
    flags.DEFINE_list,
    "words",
    None,
    "With --plots=neighbours: the words.",
    read_by("plot").idle_if(
      lambda v: "neighbours" not in v.plots, "they are for --plots=neighbours"
    ),
  )
  define(
    flags.DEFINE_integer,
    "plot_positions",
    128,
    "With --plots=positions: how many.",
    read_by("plot").idle_if(
      lambda v: "positions" not in v.plots, "they are for --plots=positions"
    ),
    lower_bound=2,
  )
