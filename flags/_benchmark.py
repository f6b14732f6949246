"""Flags of upstream's benchmark runs; all but one are accepted only."""

from absl import flags

from flags._conventions import help_wrap


def define_benchmark() -> None:
  """Defines `--log_steps`, and upstream's sinks of benchmark results."""
  flags.DEFINE_integer(
    "log_steps",
    100,
    help_wrap("Updates between two progress reports."),
    lower_bound=1,
  )
  flags.DEFINE_enum(
    "benchmark_logger_type",
    "BaseBenchmarkLogger",
    ["BaseBenchmarkLogger", "BenchmarkFileLogger"],
    help_wrap("Accepted; results go to the log and to TensorBoard."),
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
    flags.DEFINE_string(
      name,
      default,
      help_wrap("Accepted; results go to the log and to TensorBoard."),
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
