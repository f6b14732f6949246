"""The commands of upstream's READMEs, on a small corpus and a small model.

They stand as upstream has them but for paths, the parameter set (`tiny` where
upstream says `big`) and the numbers of steps, which are small here. Downloads
and exports are not among them yet.
"""

import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
  """The variables of upstream's READMEs."""
  root = tmp_path_factory.mktemp("upstream")
  data = root / "data"
  bin_directory = root / "bin"
  bin_directory.mkdir()
  for name in ("python", "python3"):
    # A script, not a link: a link would leave the virtual environment.
    script = bin_directory / name
    script.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    script.chmod(0o755)
  variables = {
    **os.environ,
    "PATH": f"{bin_directory}:{os.environ['PATH']}",
    "PARAM_SET": "tiny",
    "DATA_DIR": str(data),
    "MODEL_DIR": str(root / "model_tiny"),
    "VOCAB_FILE": str(data / "vocab.ende.32768"),
    "TEXT_DIR": str(root / "text"),
    "OUT_DIR": str(root),
  }
  # What `data_download.py` leaves behind, of a demo corpus.
  shell(
    variables,
    "python -m data_prep.demo_corpus --output_dir=$TEXT_DIR --train_size=600"
    " --dev_size=40 --test_size=20",
    "python -m data_prep.prepare_data --data_dir=$TEXT_DIR/first"
    " --vocab_type=subtoken --vocab_size=400 --train_source=$TEXT_DIR/train.en"
    " --train_target=$TEXT_DIR/train.de",
    "mkdir -p $DATA_DIR && cp $TEXT_DIR/first/vocab.*.subtokens $VOCAB_FILE",
    "python -m data_prep.prepare_data --data_dir=$DATA_DIR"
    " --vocab_file=$VOCAB_FILE --train_source=$TEXT_DIR/train.en"
    " --train_target=$TEXT_DIR/train.de --dev_source=$TEXT_DIR/dev.en"
    " --dev_target=$TEXT_DIR/dev.de",
    "cp $TEXT_DIR/test.en $DATA_DIR/newstest2014.en",
    "cp $TEXT_DIR/test.de $DATA_DIR/newstest2014.de",
    cwd=ROOT,
  )
  return variables


def shell(variables, *commands, status=0, cwd=ROOT / "official_transformer"):
  """Runs commands where upstream does: inside the package."""
  for command in commands:
    done = subprocess.run(
      ["bash", "-c", command],
      env=variables,
      cwd=cwd,
      capture_output=True,
      text=True,
      encoding="utf-8",
      check=False,
      timeout=300,
    )
    assert done.returncode == status, done.stderr
  return done


@pytest.fixture(scope="module")
def trained(environment):
  """The first README's training, by epochs."""
  done = shell(
    environment,
    "python transformer_main.py --data_dir=$DATA_DIR"
    " --model_dir=$MODEL_DIR \\\n"
    "    --vocab_file=$VOCAB_FILE --param_set=$PARAM_SET \\\n"
    "    --bleu_source=$DATA_DIR/newstest2014.en"
    " --bleu_ref=$DATA_DIR/newstest2014.de"
    " --train_epochs=2 --epochs_between_evals=1",
  )
  return done.stderr


def test_training_by_epochs_evaluates_after_each(trained, environment):
  steps = sorted(
    int(name.removeprefix("step-"))
    for name in os.listdir(environment["MODEL_DIR"] + "/checkpoints")
  )
  assert len(steps) == 2
  assert f"2 epochs are {steps[1]} steps" in trained
  assert len(re.findall(r"evaluation/bleu_uncased \d", trained)) == 2


def test_translating_a_sentence(trained, environment):
  done = shell(
    environment,
    "python translate.py --model_dir=$MODEL_DIR --vocab_file=$VOCAB_FILE \\\n"
    '    --param_set=$PARAM_SET --text="hello world"',
  )
  assert done.stdout.count("\n") == 1


def test_translating_a_file_and_its_bleu(trained, environment):
  shell(
    environment,
    "python translate.py --model_dir=$MODEL_DIR --vocab_file=$VOCAB_FILE \\\n"
    "    --param_set=$PARAM_SET --file=$DATA_DIR/newstest2014.en"
    " --file_out=$OUT_DIR/translation.en",
  )
  translation = pathlib.Path(environment["OUT_DIR"], "translation.en")
  assert len(translation.read_text("utf-8").split("\n")) == 21
  done = shell(
    environment,
    "python compute_bleu.py --translation=$OUT_DIR/translation.en"
    " --reference=$DATA_DIR/newstest2014.de",
  )
  first, second, *_ = done.stdout.split("\n")
  assert first.startswith("Case-insensitive results: ")
  assert second.startswith("Case-sensitive results: ")


def test_translate_and_predict_differ_in_one_default(trained, environment):
  """A translation may be 100 tokens longer than its source, not 50."""
  longest = [
    len(shell(environment, command + ' --text="hello"').stdout)
    for command in (
      "python translate.py --model_dir=$MODEL_DIR --alpha=9",
      "python transformer_main.py --mode=predict --model_dir=$MODEL_DIR"
      " --alpha=9 --extra_decode_length=100",
      "python transformer_main.py --mode=predict --model_dir=$MODEL_DIR"
      " --alpha=9",
    )
  ]
  assert longest[0] == longest[1] > longest[2]


def test_nothing_to_translate_is_said(trained, environment):
  done = shell(
    environment, "python translate.py --model_dir=$MODEL_DIR", status=2
  )
  assert "pass either --text or --file" in done.stderr


def test_evaluating_what_is_trained(trained, environment):
  done = shell(
    environment,
    "python transformer_main.py --mode=eval --data_dir=$DATA_DIR"
    " --model_dir=$MODEL_DIR --vocab_file=$VOCAB_FILE --param_set=$PARAM_SET"
    " --bleu_source=$DATA_DIR/newstest2014.en"
    " --bleu_ref=$DATA_DIR/newstest2014.de",
  )
  assert "Case-sensitive results: " in done.stdout
  assert "--data_dir has no effect with --mode=eval" in done.stderr


def test_training_by_steps_on_one_gpu_or_none(environment):
  """The later README's walkthrough."""
  done = shell(
    {**environment, "MODEL_DIR": environment["OUT_DIR"] + "/later"},
    "python3 transformer_main.py --data_dir=$DATA_DIR"
    " --model_dir=$MODEL_DIR \\\n"
    "    --vocab_file=$VOCAB_FILE --param_set=$PARAM_SET \\\n"
    "    --train_steps=4 --steps_between_evals=2 \\\n"
    "    --batch_size=4096 --max_length=64 \\\n"
    "    --bleu_source=$DATA_DIR/newstest2014.en \\\n"
    "    --bleu_ref=$DATA_DIR/newstest2014.de \\\n"
    "    --num_gpus=1 \\\n"
    "    --enable_time_history=false --log_steps=2",
  )
  assert "step 4 of 4" in done.stderr
  assert "tokens/s" not in done.stderr
  assert "batch_size=4096" in done.stderr


def test_training_until_a_bleu_after_cleaning(trained, environment):
  """The first version's `--stop_threshold` and `--clean`."""
  variables = {**environment, "MODEL_DIR": environment["OUT_DIR"] + "/stopped"}
  for _ in range(2):
    done = shell(
      variables,
      "python transformer_main.py --data_dir=$DATA_DIR --model_dir=$MODEL_DIR"
      " --vocab_file=$VOCAB_FILE --param_set=$PARAM_SET --clean"
      " --train_steps=250000 --steps_between_evals=3 --stop_threshold=0"
      " --bleu_source=$DATA_DIR/newstest2014.en"
      " --bleu_ref=$DATA_DIR/newstest2014.de",
    )
    assert "has reached --stop_threshold=0" in done.stderr
    assert os.listdir(variables["MODEL_DIR"] + "/checkpoints") == ["step-3"]


TPU = (
  "python transformer_main.py --tpu=$TPU_NAME --model_dir=$MODEL_DIR"
  " --data_dir=$DATA_DIR --vocab_file=$DATA_DIR/vocab.ende.32768"
  " --bleu_source=$DATA_DIR/newstest2014.en"
  " --bleu_ref=$DATA_DIR/newstest2014.de --batch_size=6144 --train_steps=2000"
  " --static_batch=true --use_ctl=true --param_set=big --max_length=64"
  " --decode_batch_size=32 --decode_max_length=97 --padded_decode=true"
)


def test_the_tpu_command_asks_for_its_tpu(environment):
  variables = {
    **environment,
    "TPU_NAME": "nowhere",
    "MODEL_DIR": environment["OUT_DIR"] + "/tpu",
  }
  done = shell(variables, TPU + " --distribution_strategy=tpu", status=2)
  assert "no TPU answers at --tpu=nowhere" in done.stderr
  assert "Traceback" not in done.stderr
  assert not os.path.exists(variables["MODEL_DIR"])


def test_the_tpu_command_runs_without_one_but_for_the_strategy(environment):
  """All its other flags at work, on static batches, by the loop."""
  variables = {
    **environment,
    "TPU_NAME": "",
    "MODEL_DIR": environment["OUT_DIR"] + "/static",
  }
  done = shell(
    variables,
    TPU.replace("=big", "=tiny").replace("=2000", "=2")
    + " --steps_between_evals=2 --enable_xla --dtype=bf16",
  )
  assert "static_batch=True" in done.stderr
  assert "step 2: validation/loss" in done.stderr
