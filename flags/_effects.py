"""Which of the flags that a user gave have no effect, and why.

All flags of the official model are accepted, so that its scripts run as they
stand; one that changes nothing says so once, at start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from absl import flags

_NO_SINK = "results go to the log, and to TensorBoard with --enable_tensorboard"
_TPU_NAME = "the TPU is found by --tpu alone"

INERT = {
  "benchmark_logger_type": _NO_SINK,
  "benchmark_log_dir": _NO_SINK,
  "benchmark_test_id": _NO_SINK,
  "gcp_project": _NO_SINK,
  "bigquery_data_set": _NO_SINK,
  "bigquery_run_table": _NO_SINK,
  "bigquery_run_status_table": _NO_SINK,
  "bigquery_metric_table": _NO_SINK,
  "enable_mlir_bridge": "TensorFlow always compiles through it",
  "hooks": "they belong to TensorFlow 1; see --log_steps and "
  "--enable_tensorboard",
  "num_tpu_shards": "all cores of the TPU are used",
  "save_weights_only": (
    "every checkpoint holds the optimizer's state too, so that a run can "
    "always be resumed"
  ),
  "tpu_gcp_project": _TPU_NAME,
  "tpu_zone": _TPU_NAME,
}

_TRAINING = ("train",)
_SEARCHING = ("train", "eval", "predict")
_COMPUTING = ("train", "eval", "predict", "score")
# The modes that read a flag, where it is not all of them.
MODES_OF_FLAG = {
  **dict.fromkeys(
    (
      "accumulate_steps",
      "all_reduce_alg",
      "batch_size",
      "clean",
      "connect_timeout",
      "data_dir",
      "datasets_num_private_threads",
      "deterministic",
      "distribution_strategy",
      "early_stopping_measure",
      "early_stopping_patience",
      "enable_checkpointing",
      "enable_metrics_in_training",
      "enable_tensorboard",
      "enable_time_history",
      "enable_xla",
      "epochs_between_evals",
      "fp16_implementation",
      "init_checkpoint",
      "keep_checkpoint_max",
      "log_steps",
      "loss_scale",
      "max_length",
      "max_nonfinite_steps",
      "num_packs",
      "num_parallel_calls",
      "profile_steps",
      "save_checkpoints_secs",
      "save_checkpoints_steps",
      "seed",
      "skip_bad_records",
      "static_batch",
      "steps_between_evals",
      "steps_per_loop",
      "stop_threshold",
      "target_batch_tokens",
      "tpu",
      "train_epochs",
      "train_steps",
      "use_ctl",
      "use_synthetic_data",
      "validation_steps",
    ),
    _TRAINING,
  ),
  **dict.fromkeys(("bleu_source", "bleu_ref"), ("train", "eval")),
  **dict.fromkeys(
    (
      "beam_size",
      "extra_decode_length",
      "padded_decode",
      "decode_max_length",
      "split_long_lines",
    ),
    _SEARCHING,
  ),
  **dict.fromkeys(
    (
      "alpha",
      "decode_batch_size",
      "decode_batch_tokens",
      "dtype",
      "num_gpus",
      "param_set",
      "params_override",
      "per_gpu_thread_count",
      "tf_gpu_thread_mode",
      "vocab_file",
    ),
    _COMPUTING,
  ),
  **dict.fromkeys(("average_checkpoints", "average_last"), ("average",)),
  "checkpoint": ("eval", "predict", "score"),
  "decode_workers": ("eval", "predict"),
  "n_best": ("predict",),
  "interactive": ("predict",),
  "invalid_utf8": ("predict", "score"),
  "text": ("predict",),
  "file": ("predict", "score"),
  "file_out": ("predict", "score"),
  "reference_file": ("score",),
  "output_format": ("predict", "score"),
}


def without_effect(values: flags.FlagValues) -> Iterator[str]:
  """Yields one line for each flag that was given and changes nothing."""
  # translate.py has no modes: it predicts.
  mode = values["mode"].value if "mode" in values else "predict"
  for name in sorted(values):
    if not values[name].present:
      continue
    if name in INERT:
      yield f"--{name} has no effect: {INERT[name]}"
    elif mode not in MODES_OF_FLAG.get(name, (mode,)):
      yield f"--{name} has no effect with --mode={mode}"
    elif reason := _missing_company(values, name):
      yield f"--{name} has no effect: {reason}"


def _missing_company(values: flags.FlagValues, name: str) -> str | None:
  """Returns why a flag does nothing beside the others' values, if so."""
  for names, lacks, reason in _COMPANY:
    if name in names and lacks(values):
      return reason
  return None


# Flags, when they do nothing, and why.
_COMPANY: tuple[
  tuple[tuple[str, ...], Callable[[flags.FlagValues], bool], str], ...
] = (
  (
    ("loss_scale",),
    lambda v: v.dtype != "fp16",
    "only --dtype=fp16 needs the loss scaled",
  ),
  (
    ("fp16_implementation",),
    lambda v: v.fp16_implementation == "graph_rewrite",
    "TensorFlow no longer rewrites graphs; Keras' way is used",
  ),
  (
    ("per_gpu_thread_count",),
    lambda v: not v.tf_gpu_thread_mode,
    "it goes with --tf_gpu_thread_mode",
  ),
  (
    ("decode_max_length",),
    lambda v: not v.padded_decode,
    "lines of any length are decoded; see --padded_decode",
  ),
  (
    (
      "decode_batch_size",
      "decode_batch_tokens",
      "decode_max_length",
      "padded_decode",
      "split_long_lines",
    ),
    lambda v: "mode" in v and v.mode == "train" and not v.bleu_source,
    "training translates nothing without --bleu_source",
  ),
  (
    ("decode_workers", "decode_batch_size", "decode_batch_tokens"),
    lambda v: bool(v.interactive or v.text is not None),
    "one line at a time is translated",
  ),
  (
    ("decode_workers",),
    lambda v: v.padded_decode,
    "XLA shares the processors out by itself",
  ),
  (
    ("invalid_utf8",),
    lambda v: v.file is None or v.interactive,
    "it is about what is read from --file",
  ),
  (
    ("epochs_between_evals",),
    lambda v: v.train_epochs is None,
    "it goes with --train_epochs; see --steps_between_evals",
  ),
  (
    ("steps_between_evals",),
    lambda v: v.train_epochs is not None,
    "with --train_epochs, see --epochs_between_evals",
  ),
  (
    ("tpu",),
    lambda v: bool(v.tpu) and v.distribution_strategy != "tpu",
    "it goes with --distribution_strategy=tpu",
  ),
  (
    ("early_stopping_measure",),
    lambda v: v.early_stopping_patience is None,
    "it goes with --early_stopping_patience",
  ),
  (
    ("average_last",),
    lambda v: v.average_checkpoints is not None,
    "--average_checkpoints says which",
  ),
  (
    ("all_reduce_alg", "num_packs"),
    lambda v: (
      v.num_gpus in (None, 0, 1)
      and v.distribution_strategy != "multi_worker_mirrored"
    ),
    "one device has nothing to reduce; see --num_gpus",
  ),
  (
    ("num_packs",),
    lambda v: v.distribution_strategy == "multi_worker_mirrored",
    "it is for the GPUs of one machine",
  ),
  (
    ("connect_timeout",),
    lambda v: v.distribution_strategy != "multi_worker_mirrored",
    "it goes with --distribution_strategy=multi_worker_mirrored",
  ),
  (
    ("keep_checkpoint_max", "save_checkpoints_secs", "save_checkpoints_steps"),
    lambda v: not v.enable_checkpointing,
    "nothing is saved",
  ),
  (
    (
      "datasets_num_private_threads",
      "num_parallel_calls",
      "skip_bad_records",
      "validation_steps",
    ),
    lambda v: v.use_synthetic_data,
    "no data are read",
  ),
)
