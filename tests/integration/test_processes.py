"""What only a process of its own can show: how commands start and end."""

import contextlib
import os
import pathlib
import re
import signal
import subprocess
import sys

import command_line
import pytest
import tensorflow as tf
from conftest import MODEL

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
PACKAGE = ROOT / "official_transformer"
MAIN = str(PACKAGE / "transformer_main.py")


def _environment():
  """Returns the environment of a user, who has set no level of logs."""
  return {k: v for k, v in os.environ.items() if "MIN_LOG" not in k}


def start(*command, cwd=None, **options):
  """Runs a Python command as its user would, on a machine without GPUs."""
  return subprocess.run(
    [sys.executable, *map(str, command)],
    capture_output=True,
    encoding="utf-8",
    cwd=cwd,
    env=_environment(),
    check=False,
    timeout=300,
    **options,
  )


def test_every_command_runs_as_a_script(
  demo_text, demo_data, demo_model, tmp_path
):
  """From inside the package, as upstream's README has it, or as a module.

  A run that succeeds shows nothing of what TensorFlow says when it starts, and
  every line of the log begins with the time.
  """
  model = f"--model_dir={tmp_path}/model"
  predicted = f"--file_out={tmp_path}/out"
  for folder, command in (
    (
      ROOT,
      *[("-m", "data_prep.demo_corpus", f"--output_dir={tmp_path}/demo",
         "--train_size=20", "--dev_size=2", "--test_size=2")],
    ),
    (
      ROOT,
      *[("-m", "data_prep.prepare_data", f"--data_dir={tmp_path}/data",
         f"--train_source={tmp_path}/demo/train.en",
         f"--train_target={tmp_path}/demo/train.de", "--vocab_size=100")],
    ),
    (
      PACKAGE,
      *[("transformer_main.py", f"--data_dir={demo_data}", model, *MODEL,
         "--train_steps=2", "--max_length=60")],
    ),
    (
      ROOT,
      *[("-m", command_line.MAIN, "--mode=predict", model,
         f"--file={demo_text}/test.en", predicted)],
    ),
    (PACKAGE, *[("translate.py", model, "--text=A man.")]),
    (
      PACKAGE,
      *[("compute_bleu.py", f"--translation={tmp_path}/out",
         f"--reference={demo_text}/test.de")],
    ),
  ):  # fmt: skip
    done = start(*command, cwd=folder)
    assert done.returncode == 0, done.stderr
    for line in done.stderr.splitlines():
      assert re.match(r"\d\d:\d\d:\d\d ", line), (command, line)
  error = start("import_checkpoint.py", "--format=v2", "--checkpoint=/nowhere",
                f"--vocab_file={next(demo_data.glob('vocab*'))}",
                f"--model_dir={tmp_path}/imported", cwd=PACKAGE)  # fmt: skip
  assert error.returncode == 2
  assert error.stderr.startswith("import_checkpoint.py: error: no checkpoint")
  error = start("translation_server.py", "--model_dir=/nowhere", cwd=PACKAGE)
  assert error.returncode == 2
  assert "translation_server.py: error: /nowhere is no model" in error.stderr


@pytest.mark.parametrize(
  ("flags", "complaint"),
  [
    # What absl refuses.
    (["--beem_size=3"], "beam_size"),
    (["--mode=transalte"], "mode"),
    (["--train_steps=0"], "train_steps"),
    (["--bleu_source=x"], "--bleu_ref"),
    # What is refused before TensorFlow is imported.
    (["--mode=predict"], "either --text or --file"),
    (["--mode=predict", "--file=/nowhere"], "no file /nowhere"),
    (["--mode=predict", "--text=a", "--model_dir=/nowhere"], "no model dir"),
    (["--mode=train", "--profile_steps=7,x"], "such as 10,12"),
    (["--mode=eval"], "--bleu_source"),
    (["--mode=average", "--model_dir=/nowhere"], "no model directory"),
    (["--mode=export"], "--export_dir"),
    (["--mode=train", "--data_dir=/nowhere"], "prepare_data"),
    (
      ["--mode=train", "--distribution_strategy=multi_worker_mirrored"],
      "TF_CONFIG is not set",
    ),
  ],
)
def test_mistakes_are_told_without_tensorflow(flags, complaint):
  done = start("-X", "importtime", MAIN, *flags)
  assert done.returncode == 2
  assert complaint in done.stderr
  assert "Traceback" not in done.stderr
  assert "| tensorflow" not in done.stderr


@pytest.mark.parametrize(
  "module",
  [
    command_line.MAIN,
    command_line.BLEU,
    command_line.IMPORT,
    command_line.TRANSLATE,
    command_line.PREPARE,
    command_line.DEMO,
    command_line.SERVER,
  ],
)
def test_help_lists_the_flags_without_importing_tensorflow(module):
  code = (
    "import importlib, sys\n"
    f"module = importlib.import_module('{module}')\n"
    "sys.argv[1:] = ['--help']\n"
    "try:\n  module.run()\n"
    "except SystemExit:\n  print('tensorflow' in sys.modules)\n"
  )
  done = start("-c", code)
  assert done.returncode == 0
  assert done.stdout.endswith("False\n")
  assert "--" in done.stdout


def test_console_scripts_are_installed():
  scripts = pathlib.Path(sys.executable).parent
  for module in (
    command_line.MAIN,
    command_line.BLEU,
    command_line.IMPORT,
    command_line.PREPARE,
    command_line.DEMO,
    command_line.SERVER,
  ):
    name = module.split(".")[-1]
    done = subprocess.run(
      [scripts / name, "--help"], capture_output=True, text=True, check=False
    )
    assert "--" in done.stdout, name


def test_absl_format_is_upstreams(demo_text, tmp_path):
  done = start(
    *("-m", "data_prep.demo_corpus", f"--output_dir={tmp_path}"),
    *("--train_size=2", "--dev_size=2", "--test_size=2", "--log_format=absl"),
    cwd=ROOT,
  )
  assert re.match(
    r"I\d{4} [\d:.]+ +\d+ demo_corpus\.py:\d+\] wrote", done.stderr
  )


# A process that was started in the background ignores SIGINT: so would ours.
LISTENING = (
  "import runpy, signal, sys;"
  "signal.signal(signal.SIGINT, signal.default_int_handler);"
  "del sys.argv[0]; runpy.run_path(sys.argv[0], run_name='__main__')"
)


@pytest.mark.slow
@pytest.mark.parametrize("interrupted", [True, False])
def test_a_silent_input_keeps_no_command_from_ending(
  trained_model, interrupted
):
  """Standard input stays open; the user, or who reads the output, goes."""
  command = [
    *(sys.executable, "-c", LISTENING, MAIN, "--mode=predict"),
    # All answers have room in the pipe, which nobody reads on.
    *(f"--model_dir={trained_model}", "--file=-", "--extra_decode_length=0"),
  ]
  with subprocess.Popen(
    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    stderr=subprocess.PIPE, text=True,
  ) as process:  # fmt: skip
    process.stdin.write("A man works.\n" * 2048)
    process.stdin.flush()
    # A window is written when it is done, whether or not more is to come.
    assert process.stdout.readline()
    if interrupted:
      process.send_signal(signal.SIGINT)
    else:
      process.stdout.close()
      with contextlib.suppress(BrokenPipeError):  # It may have ended already.
        process.stdin.write("A man works.\n" * 2048)
        process.stdin.flush()
    assert process.wait(timeout=200) == (130 if interrupted else 1)
    error = process.stderr.read()
    assert ("interrupted" in error) == interrupted
    assert "Traceback" not in error and "Fatal" not in error


def test_lines_are_answered_as_they_come(demo_model):
  """Each answer is read before the next line is written."""
  with subprocess.Popen(
    [sys.executable, MAIN, "--mode=predict", f"--model_dir={demo_model}",
     "--interactive"],
    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    text=True,
  ) as process:  # fmt: skip
    answers = []
    for line in ("A man works.", "", "A woman works.", "A man works."):
      process.stdin.write(line + "\n")
      process.stdin.flush()
      answers.append(process.stdout.readline())
    process.stdin.close()
    assert process.stdout.read() == ""
    assert process.wait() == 0
  assert answers[1] == "\n" and answers[0] == answers[3]


# Commands in one process: determinism, once asked for, lasts to its end.
DETERMINISTIC = """
import sys
import command_line
for number, seed in enumerate((1, 1, 2)):
  command_line.succeed(
    command_line.MAIN, "--mode=train", *sys.argv[2:], "--deterministic",
    f"--model_dir={sys.argv[1]}/{number}", f"--seed={seed}", "--train_steps=15",
  )
"""


@pytest.mark.slow
@pytest.mark.parametrize(
  "way",
  [
    ("--use_ctl", "--accumulate_steps=2"),
    pytest.param((), marks=pytest.mark.long),
  ],
)
def test_the_seed_decides_every_bit(demo_data, tmp_path, way):
  done = start(
    *("-c", DETERMINISTIC, tmp_path, f"--data_dir={demo_data}", *MODEL, *way),
    cwd=ROOT / "tests",
  )
  assert done.returncode == 0, done.stderr
  found = []
  for number in range(3):
    (checkpoint,) = (tmp_path / str(number) / "checkpoints").iterdir()
    reader = tf.train.load_checkpoint(str(checkpoint / "model"))
    found.append(
      {
        name: reader.get_tensor(name).tobytes()
        for name in reader.get_variable_to_shape_map()
        if name.startswith("weights/")
      }
    )
  assert found[0] == found[1]
  assert sum(found[0][name] != found[2][name] for name in found[0]) > 10


def shell(command, cwd=None):
  """Runs a shell's command line; `PYTHON` stands for this Python."""
  return subprocess.run(
    ["bash", "-c", command.replace("PYTHON", sys.executable)],
    capture_output=True,
    text=True,
    check=False,
    cwd=cwd,
    env=_environment(),
    timeout=300,
  )


def test_closed_streams_end_in_no_traceback(demo_model, demo_text, tmp_path):
  """What has no place to go to is said; what nobody reads is not missed."""
  predict = f"PYTHON {MAIN} --mode=predict --model_dir={demo_model}"
  out = tmp_path / "out"
  # Nothing can be written: an error, even if its own place is all there is.
  closed = shell(f"{predict} --text='A man.' >&-")
  assert closed.returncode == 1
  assert "standard output is closed" in closed.stderr
  assert "Traceback" not in closed.stderr
  # The log goes nowhere; the translation goes to standard output.
  text = shell(f"{predict} --text='A man.' 2>&- <&-")
  assert text.returncode == 0
  assert text.stdout.count("\n") == 1
  # No number of a closed stream is given to a file that is opened.
  none = shell(
    f"{predict} --file={demo_text}/test.en --file_out={out} >&- 2>&-"
  )
  assert none.returncode == 0
  assert out.read_text().count("\n") == 20
  scored = shell(
    f"PYTHON {MAIN} --mode=eval --model_dir={demo_model} --alpha=.9 "
    f"--bleu_source={demo_text}/test.en --bleu_ref={demo_text}/test.de >&-"
  )
  assert scored.returncode == 1
  # What nobody could be shown is kept: the translation, and its scores.
  kept = (demo_model / "translations").glob("*-alpha-0.9-*")
  assert len(list(kept)) == 2
  bleu = shell(
    f"PYTHON {PACKAGE}/compute_bleu.py --translation={out} "
    f"--reference={demo_text}/test.de >&-"
  )
  assert bleu.returncode == 1
  assert bleu.stderr.endswith("there is no place to write to\n")
  assert "Traceback" not in shell(f"PYTHON {MAIN} --help >&-").stderr


def test_folders_of_the_users_do_not_hide_the_packages_own(tmp_path):
  """As where an installed command is started, with -m, beside them."""
  for name in ("flags", "storage", "commands"):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("raise RuntimeError('mine')")
  for module in (command_line.MAIN, command_line.PREPARE, command_line.BLEU):
    done = start("-m", module, "--help", cwd=tmp_path)
    assert "--" in done.stdout, done.stderr
    assert "mine" not in done.stderr
