"""The commands of upstream's READMEs, on a small corpus and a small model.

They stand as upstream has them but for paths, the parameter set (`tiny` where
upstream says `big`) and the numbers of steps, which are small here. Downloads
and exports are not among them yet. They share one process; that each starts as
a script, inside the package, is for `test_processes.py` to show.
"""

import json
import os
import pathlib
import re
import shutil

import command_line
import pytest
from command_shell import CommandShell
from endless_model import make_endless
from smaller_params import smaller_param_sets

PACKAGE = pathlib.Path(__file__).parents[2] / "official_transformer"
SCRIPTS = {
  "transformer_main.py": command_line.MAIN,
  "translate.py": command_line.TRANSLATE,
  "compute_bleu.py": command_line.BLEU,
}
PRELUDE = """
python() { "$@"; }
python3() { "$@"; }
"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(tmp_path_factory, demo_text):
  """The variables of upstream's READMEs."""
  root = tmp_path_factory.mktemp("upstream")
  data, first = root / "data", root / "first"
  data.mkdir()
  vocabulary = data / "vocab.ende.32768"
  text = (
    f"--train_source={demo_text}/train.en",
    f"--train_target={demo_text}/train.de",
  )
  # What `data_download.py` leaves behind, of a demo corpus.
  command_line.succeed(
    command_line.PREPARE,
    *(f"--data_dir={first}", "--vocab_type=subtoken", "--vocab_size=400"),
    *text,
  )
  shutil.copy(next(first.glob("vocab.*.subtokens")), vocabulary)
  command_line.succeed(
    command_line.PREPARE,
    *(f"--data_dir={data}", f"--vocab_file={vocabulary}", *text),
    *(f"--dev_source={demo_text}/dev.en", f"--dev_target={demo_text}/dev.de"),
  )
  for language in ("en", "de"):
    shutil.copy(
      demo_text / f"test.{language}", data / f"newstest2014.{language}"
    )
  return {
    "PARAM_SET": "tiny",
    "DATA_DIR": str(data),
    "MODEL_DIR": str(root / "model_tiny"),
    "VOCAB_FILE": str(vocabulary),
    "OUT_DIR": str(root),
  }


@pytest.fixture(scope="module", autouse=True)
def small_models():
  """Parameter sets of the same names, of one small layer."""
  with smaller_param_sets():
    yield


def shell(variables, command, status=0):
  """Runs a command where upstream does: inside the package."""
  streams = pathlib.Path(variables["OUT_DIR"], "streams")
  done = CommandShell(SCRIPTS, streams, PRELUDE).run(
    command, PACKAGE, variables
  )
  assert done.status == status, done.stderr
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


JSONL = "--output_format=jsonl"


def tokens_of(done):
  """Returns the tokens of the one translation that was printed."""
  return json.loads(done.stdout)["tokens"]


def test_translate_and_predict_differ_in_one_default(
  trained, environment, tmp_path
):
  """A translation may be 100 tokens longer than its source, not 50."""
  model = tmp_path / "endless"
  shutil.copytree(environment["MODEL_DIR"], model)
  make_endless(str(model))
  variables = {**environment, "MODEL_DIR": str(model)}
  lengths = [
    len(tokens_of(shell(variables, f'{command} --text="A man." {JSONL}')))
    for command in (
      "python translate.py --model_dir=$MODEL_DIR",
      "python transformer_main.py --mode=predict --model_dir=$MODEL_DIR"
      " --extra_decode_length=100",
      "python transformer_main.py --mode=predict --model_dir=$MODEL_DIR",
    )
  ]
  assert lengths[0] == lengths[1] == lengths[2] + 50


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
