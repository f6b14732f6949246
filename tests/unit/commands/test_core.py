"""Every flag of the official model, and what absl makes of the values."""

import subprocess
import sys

import command_line
import pytest
from absl import flags

from official_transformer.commands import flags_core as core
from official_transformer.commands import shared_options as groups

# Name, short name, default: as in the official `transformer_main.py`.
OFFICIAL = """
data_dir dd /tmp/translate_ende
model_dir md /tmp/transformer_model
batch_size bs None
num_gpus ng *
distribution_strategy ds mirrored
num_parallel_calls npc *
use_synthetic_data synth False
dtype dt fp32
loss_scale ls None
fp16_implementation - keras
all_reduce_alg ara None
num_packs - 1
tf_gpu_thread_mode gt_mode None
per_gpu_thread_count pgtc 0
datasets_num_private_threads - None
enable_xla - False
benchmark_logger_type - BaseBenchmarkLogger
benchmark_test_id bti None
log_steps - 100
benchmark_log_dir bld None
gcp_project gp None
bigquery_data_set bds test_benchmark
bigquery_run_table brt benchmark_run
bigquery_run_status_table brst benchmark_run_status
bigquery_metric_table bmt benchmark_metric
tpu - None
tpu_zone - None
tpu_gcp_project - None
num_tpu_shards - 8
train_steps ts 300000
steps_between_evals sbe 5000
enable_time_history - True
enable_tensorboard - False
enable_metrics_in_training - False
enable_mlir_bridge - False
param_set mp big
static_batch sb False
max_length ml 256
validation_steps vs 64
bleu_source bls None
bleu_ref blr None
vocab_file vf None
mode - train
use_ctl - False
decode_batch_size - 32
decode_max_length - 97
padded_decode - False
enable_checkpointing - True
save_weights_only - True
"""
FIRST_VERSION = """
train_epochs te None
epochs_between_evals ebe 1
stop_threshold st None
clean - False
hooks hk None
"""
# Those that are not upstream's, and upstream's beside ours. No translation
# depends on them.
OTHER_DEFAULTS = {"decode_batch_size": ("32", "128")}


def test_there_are_49():
  assert len(OFFICIAL.strip().split("\n")) == 49


@pytest.mark.parametrize(
  "line", [*OFFICIAL.strip().split("\n"), *FIRST_VERSION.strip().split("\n")]
)
def test_names_and_defaults_are_the_official_ones(transformer_flags, line):
  name, short_name, default = line.split()
  flag = transformer_flags[name]
  assert (flag.short_name or "-") == short_name
  # Two defaults depend on the machine, as the official ones do.
  assert default in ("*", str(flag.default)) or name in OTHER_DEFAULTS
  if name in OTHER_DEFAULTS:
    assert OTHER_DEFAULTS[name] == (default, str(flag.default))


def parse(*arguments):
  """Parses a command line in a process of its own; returns the status."""
  code = (
    "import sys\n"
    "from absl import app, flags\n"
    "from official_transformer.transformer_main import "
    "define_transformer_flags\n"
    "define_transformer_flags()\n"
    "app.run(lambda _: None)\n"
  )
  done = subprocess.run(
    [sys.executable, "-c", code, *arguments],
    capture_output=True,
    text=True,
    check=False,
  )
  return done.returncode, done.stderr + done.stdout


@pytest.mark.parametrize(
  "arguments",
  [
    ["--dtype=fp16", "--fp16_implementation=graph_rewrite"],
    ["--loss_scale=dynamic"],
    ["--loss_scale=128"],
    ["-ds", "MIRRORED"],
    ["--benchmark_logger_type=BenchmarkFileLogger", "--benchmark_log_dir=x"],
    ["--bls=a", "--blr=b"],
    ["--nouse_ctl", "--use_ctl", "true"],
  ],
)
def test_what_upstream_accepts_is_accepted(arguments):
  status, output = parse(*arguments)
  assert status == 0, output


@pytest.mark.parametrize(
  ("arguments", "complaint"),
  [
    (["--fp16_implementation=graph_rewrite"], "needs --dtype=fp16"),
    (["--loss_scale=-1"], "number above 0, or dynamic"),
    (["--loss_scale=much"], "number above 0, or dynamic"),
    (["--benchmark_logger_type=BenchmarkFileLogger"], "benchmark_log_dir"),
    (["--bleu_source=a"], "together or not at all"),
    (["--distribution_strategy=collective"], "should be one of"),
    (["--num_gpus=-2"], "num_gpus"),
  ],
)
def test_what_upstream_refuses_is_refused(arguments, complaint):
  status, output = parse(*arguments)
  assert status == 1
  assert complaint in output


@pytest.mark.parametrize(
  ("text", "scale"), [(None, None), ("dynamic", None), ("128", 128.0)]
)
def test_loss_scales(text, scale):
  options = groups.PerformanceOptions(dtype="fp16", loss_scale=text)
  assert options.fixed_loss_scale == scale


def test_gpu_threads_are_told_to_tensorflow():
  assert groups.ThreadOptions(per_gpu_thread_count=3).environment == {}
  options = groups.ThreadOptions(tf_gpu_thread_mode="gpu_private")
  assert options.environment == {
    "TF_GPU_THREAD_MODE": "gpu_private",
    "TF_GPU_THREAD_COUNT": "2",
  }


def test_upstreams_definers_define_its_flags():
  command_line.forget_flags()
  core.define_base()
  for define in (
    core.define_performance,
    core.define_distribution,
    core.define_device,
    core.define_benchmark,
  ):
    define()
  assert flags.FLAGS["batch_size"].default == 32
  assert flags.FLAGS["model_dir"].default == "/tmp"
  for name in ("dtype", "num_gpus", "tpu", "log_steps", "gcp_project"):
    assert name in flags.FLAGS
  command_line.forget_flags()


def test_upstreams_import_gives_the_same():
  from flags import core as upstreams

  assert upstreams.__all__ == core.__all__
  assert all(getattr(upstreams, n) is getattr(core, n) for n in core.__all__)
