"""Flags of upstream's benchmark runs; all but one are accepted only."""

from absl import flags

from official_transformer.flag_groups._conventions import (
  accepted_only,
  define,
  read_by,
)

_NO_SINK = accepted_only(
  "results go to the log, and to TensorBoard with --enable_tensorboard"
)
_TEXT = "Accepted; results go to the log and to TensorBoard."


def define_benchmark() -> None:
  """Defines `--log_steps`, and upstream's sinks of benchmark results."""
  define(
    flags.DEFINE_integer,
    "log_steps",
    100,
    "Updates between two progress reports.",
    read_by("train"),
    lower_bound=1,
  )
  define(
    flags.DEFINE_enum,
    "benchmark_logger_type",
    "BaseBenchmarkLogger",
    _TEXT,
    _NO_SINK,
    enum_values=["BaseBenchmarkLogger", "BenchmarkFileLogger"],
  )
  for name, default, short_name in (
    ("benchmark_log_dir", None, "bld"),
    ("benchmark_test_id", None, "bti"),
    ("gcp_project", None, "gp"),
    ("bigquery_data_set", "test_benchmark", "bds"),
    ("bigquery_run_table", "benchmark_run", "brt"),
    ("bigquery_run_status_table", "benchmark_run_status", "brst"),
    ("bigquery_metric_table", "benchmark_metric", "bmt"),
  ):
    define(
      flags.DEFINE_string,
      name,
      default,
      _TEXT,
      _NO_SINK,
      short_name=short_name,
    )
  flags.register_multi_flags_validator(
    ["benchmark_logger_type", "benchmark_log_dir"],
    lambda values: (
      values["benchmark_logger_type"] != "BenchmarkFileLogger"
      or bool(values["benchmark_log_dir"])
    ),
    "--benchmark_logger_type=BenchmarkFileLogger needs --benchmark_log_dir",
  )
