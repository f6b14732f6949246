"""Flags that several commands have, in the groups of the official models."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

from official_transformer.commands.flag_records import Demand, Options, flag
from official_transformer.errors import InputError
from official_transformer.hardware.cpu_threads import processors

DTYPES = ("fp16", "bf16", "fp32")
DYNAMIC = "dynamic"
STRATEGIES = (
  "off",
  "one_device",
  "mirrored",
  "parameter_server",
  "multi_worker_mirrored",
  "tpu",
)
RUNNERS = (
  "DirectRunner",
  "FlinkRunner",
  "SparkRunner",
  "DataflowRunner",
  "PortableRunner",
)
WORKERS = "multi_worker_mirrored"
NO_DATA = (lambda o: o.use_synthetic_data, "no data are read")
_ONE_DEVICE = (
  lambda o: o.num_gpus in (None, 0, 1) and o.distribution_strategy != WORKERS,
  "one device has nothing to reduce; see --num_gpus",
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelDirOptions(Options):
  """Flag of the model directory."""

  heading = "What to do, with which model"

  model_dir: str = flag(
    "/tmp/transformer_model",
    "The model: its description, vocabulary and checkpoints.",
    path=True,
    short_name="md",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DataDirOptions(Options):
  """Flag of the data directory."""

  heading = "What to do, with which model"

  data_dir: str = flag(
    "/tmp/translate_ende",
    "The prepared data: TFRecord files and data.json.",
    path=True,
    short_name="dd",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class BaseOptions(ModelDirOptions, DataDirOptions):
  """Flags of all commands that read data or write a model."""

  heading = "What to do, with which model"

  batch_size: int | None = flag(
    None,
    "Tokens in a global batch, on the longer of the two sides. Unset: what "
    "the parameter set says.",
    lower_bound=1,
    short_name="bs",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DtypeOptions(Options):
  """The precision of computation."""

  heading = "Precision, compilation, threads"

  dtype: str = flag(
    "fp32",
    "Number format of computation, in training and translation; softmax, layer "
    "norms, loss and variables are always fp32.",
    (
      lambda o: getattr(o, "engine", None) == "ctranslate2",
      "CTranslate2 computes in --quantization",
    ),
    choices=DTYPES,
    short_name="dt",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class ThreadOptions(Options):
  """Flags of TensorFlow's threads for GPUs."""

  heading = "Precision, compilation, threads"

  tf_gpu_thread_mode: str | None = flag(
    None,
    "How TensorFlow's threads serve GPUs.",
    choices=("global", "gpu_shared", "gpu_private"),
    short_name="gt_mode",
  )
  per_gpu_thread_count: int = flag(
    0,
    "Threads a GPU, with --tf_gpu_thread_mode; 0 is 2.",
    (lambda o: not o.tf_gpu_thread_mode, "it goes with --tf_gpu_thread_mode"),
    lower_bound=0,
    short_name="pgtc",
  )

  @property
  def environment(self) -> dict[str, str]:
    """Environment variables that TensorFlow reads when it is imported."""
    if self.tf_gpu_thread_mode is None:
      return {}
    return {
      "TF_GPU_THREAD_MODE": self.tf_gpu_thread_mode,
      "TF_GPU_THREAD_COUNT": str(self.per_gpu_thread_count or 2),
    }


def _rewrite_is_fp16(values: Mapping[str, Any]) -> bool:
  rewrites = values["fp16_implementation"] == "graph_rewrite"
  return not rewrites or values["dtype"] == "fp16"


def _is_loss_scale(values: Mapping[str, Any]) -> bool:
  try:
    text = values["loss_scale"]
    return text in (None, DYNAMIC) or 0 < float(text) < float("inf")
  except ValueError:
    return False


@dataclasses.dataclass(frozen=True, kw_only=True)
class PerformanceOptions(DtypeOptions, ThreadOptions):
  """Flags of performance, which do not change results."""

  heading = "Precision, compilation, threads"
  demands: ClassVar[tuple[Demand, ...]] = (
    Demand(
      ("loss_scale",),
      _is_loss_scale,
      "--loss_scale is a number above 0, or dynamic",
    ),
    Demand(
      ("fp16_implementation", "dtype"),
      _rewrite_is_fp16,
      "--fp16_implementation=graph_rewrite needs --dtype=fp16",
    ),
  )

  loss_scale: str | None = flag(
    None,
    "With --dtype=fp16: a number that multiplies the loss while gradients are "
    "computed, or dynamic, which adapts it. Unset: dynamic.",
    (lambda o: o.dtype != "fp16", "only --dtype=fp16 needs the loss scaled"),
    short_name="ls",
  )
  fp16_implementation: str = flag(
    "keras",
    "Accepted; Keras' way is the only one left.",
    (
      lambda o: o.fp16_implementation == "graph_rewrite",
      "TensorFlow no longer rewrites graphs; Keras' way is used",
    ),
    choices=("keras", "graph_rewrite"),
  )
  num_parallel_calls: int = flag(
    processors(),
    "Threads that read shards; 0 for one a processor.",
    NO_DATA,
    lower_bound=0,
    short_name="npc",
  )
  use_synthetic_data: bool = flag(
    False,
    "Train on batches of ones instead of the data, to measure the model alone.",
    short_name="synth",
  )
  datasets_num_private_threads: int | None = flag(
    None,
    "Threads of the input pipeline's own pool. Unset: it shares TensorFlow's.",
    NO_DATA,
    lower_bound=1,
  )
  enable_xla: bool = flag(
    False,
    "Compile the training step with XLA: as a whole with --static_batch, "
    "else by clusters of operations, for each shape that recurs, in "
    "evaluations too.",
  )

  @property
  def fixed_loss_scale(self) -> float | None:
    """The number that the loss is multiplied by; None adapts it."""
    if self.dtype != "fp16" or self.loss_scale in (None, DYNAMIC):
      return None
    return float(str(self.loss_scale))


@dataclasses.dataclass(frozen=True, kw_only=True)
class GpuOptions(Options):
  """Flag of the number of GPUs."""

  heading = "Devices"

  num_gpus: int | None = flag(
    None,
    "GPUs to use; 0 for the CPU, -1 for all. Unset: one if there is one. "
    "Above 1, base and big are the sets tuned for several.",
    lower_bound=-1,
    short_name="ng",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DistributionOptions(GpuOptions):
  """Flags that distribute a run over devices."""

  heading = "Devices"

  distribution_strategy: str = flag(
    "mirrored",
    "How training is spread: off, one_device, mirrored (over all chosen GPUs "
    "of this machine), multi_worker_mirrored (over the machines that "
    "TF_CONFIG names), tpu.",
    choices=STRATEGIES,
    short_name="ds",
    case_sensitive=False,
  )
  all_reduce_alg: str | None = flag(
    None,
    "How several GPUs sum their gradients: nccl, on one machine also "
    "hierarchical_copy, on several also ring. Unset: TensorFlow's choice.",
    _ONE_DEVICE,
    choices=("nccl", "hierarchical_copy", "ring"),
    short_name="ara",
    case_sensitive=False,
  )
  num_packs: int = flag(
    1,
    "Packs that gradients are put into before they are summed.",
    _ONE_DEVICE,
    (
      lambda o: o.distribution_strategy == WORKERS,
      "it is for the GPUs of one machine",
    ),
    lower_bound=0,
  )
  connect_timeout: float = flag(
    300.0,
    "With multi_worker_mirrored: seconds to wait for each other worker.",
    (
      lambda o: o.distribution_strategy != WORKERS,
      "it goes with --distribution_strategy=multi_worker_mirrored",
    ),
    lower_bound=1.0,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class TpuOptions(Options):
  """Flag of the TPU."""

  heading = "Devices"

  tpu: str | None = flag(
    None,
    "With --distribution_strategy=tpu: the TPU's name or grpc:// address; "
    "local for one in this machine.",
    (
      lambda o: bool(o.tpu) and o.distribution_strategy != "tpu",
      "it goes with --distribution_strategy=tpu",
    ),
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class LogStepsOptions(Options):
  """Flags of progress messages."""

  heading = "Reports, and sinks that upstream had"

  log_steps: int = flag(
    100, "Updates between two progress reports.", lower_bound=1
  )


def _ignored(
  default: Any,
  text: str = "Accepted; the TPU's name is enough.",
  never: str = "the TPU is found by --tpu alone",
  **definer: Any,
) -> Any:
  return flag(default, text, never=never, **definer)


def _sink(default: Any, **definer: Any) -> Any:
  return flag(
    default,
    "Accepted; results go to the log and to TensorBoard.",
    never="results go to the log, and to TensorBoard with --enable_tensorboard",
    **definer,
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class DeviceOptions(TpuOptions):
  """Upstream's flags of a TPU besides its name."""

  heading = "Devices"

  tpu_zone: str | None = _ignored(None)
  tpu_gcp_project: str | None = _ignored(None)
  num_tpu_shards: int = _ignored(
    8,
    "Accepted; all cores of the TPU are used.",
    "all cores of the TPU are used",
  )


@dataclasses.dataclass(frozen=True, kw_only=True)
class BenchmarkOptions(LogStepsOptions):
  """Upstream's sinks of benchmark results."""

  heading = "Reports, and sinks that upstream had"
  demands: ClassVar[tuple[Demand, ...]] = (
    Demand(
      ("benchmark_logger_type", "benchmark_log_dir"),
      lambda values: (
        values["benchmark_logger_type"] != "BenchmarkFileLogger"
        or bool(values["benchmark_log_dir"])
      ),
      "--benchmark_logger_type=BenchmarkFileLogger needs --benchmark_log_dir",
    ),
  )

  benchmark_logger_type: str = _sink(
    "BaseBenchmarkLogger",
    choices=("BaseBenchmarkLogger", "BenchmarkFileLogger"),
  )
  benchmark_log_dir: str | None = _sink(None, short_name="bld")
  benchmark_test_id: str | None = _sink(None, short_name="bti")
  gcp_project: str | None = _sink(None, short_name="gp")
  bigquery_data_set: str = _sink("test_benchmark", short_name="bds")
  bigquery_run_table: str = _sink("benchmark_run", short_name="brt")
  bigquery_run_status_table: str = _sink(
    "benchmark_run_status", short_name="brst"
  )
  bigquery_metric_table: str = _sink("benchmark_metric", short_name="bmt")


@dataclasses.dataclass(frozen=True, kw_only=True)
class BeamOptions(Options):
  """Flags of Apache Beam: the runner and its options."""

  heading = "Many machines"

  runner: str | None = flag(
    None,
    "Run it as an Apache Beam pipeline, by this runner. Unset: by the "
    "processes of this machine.",
    choices=RUNNERS,
  )
  beam_options: str = flag(
    "",
    "Beam's own options, as on Beam's command line: "
    "'--direct_num_workers=2 --direct_running_mode=multi_processing'.",
  )

  def __post_init__(self) -> None:
    super().__post_init__()
    if self.beam_options and not self.runner:
      raise InputError("--beam_options are for --runner")
