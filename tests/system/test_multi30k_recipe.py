"""The Multi30k recipes' script, end to end on a small corpus in its place."""

import gzip
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from command_line import MAIN, PREPARE
from command_shell import CommandShell

pytestmark = pytest.mark.slow

RECIPES = pathlib.Path(__file__).parents[2] / "recipes"
# Of the recipes' flags, what makes their runs long.
QUICKER = {
  "filter_size=512": "filter_size=64,hidden_size=32",
  "num_hidden_layers=4": "num_hidden_layers=1,learning_rate_warmup_steps=20",
  "--steps_between_evals=500": "--steps_between_evals=50",
  "--save_checkpoints_steps=250": "--save_checkpoints_steps=10",
}
STEPS = {
  "--train_steps=8000": "--train_steps=100",
  "--train_steps=6000": "--train_steps=50",
}
COMMANDS = os.path.dirname(sys.executable)
PARTS = {"train": "train", "dev": "val", "test": "test_2016_flickr"}


@pytest.fixture(scope="module")
def recipes(tmp_path_factory):
  """The script and its flag files, made quicker."""
  directory = tmp_path_factory.mktemp("recipes")
  shutil.copy(RECIPES / "multi30k.sh", directory)
  for models in ("both", "ende", "deen", "enfr", "encs"):
    recipe = RECIPES / f"multi30k_{models}.flags"
    content = recipe.read_text()
    steps = re.search("--train_steps=.*", content)[0]
    for slow, quick in (*QUICKER.items(), (steps, STEPS[steps])):
      assert slow in content, f"{recipe}: {slow}"
      content = content.replace(slow, quick)
    (directory / recipe.name).write_text(content)
  return directory


@pytest.fixture(scope="module")
def text(tmp_path_factory):
  """English and German under the names of the Multi30k repository."""
  directory = tmp_path_factory.mktemp("text")
  subprocess.run(
    [
      sys.executable,
      *("-m", "data_prep.demo_corpus", f"--output_dir={directory}"),
      *("--train_size=200", "--dev_size=20", "--test_size=20"),
    ],
    cwd=RECIPES.parent,
    check=True,
    timeout=120,
  )
  for ours, theirs in PARTS.items():
    for language in ("en", "de"):
      content = (directory / f"{ours}.{language}").read_bytes()
      with gzip.open(directory / f"{theirs}.{language}.gz", "wb") as stream:
        stream.write(content)
  return directory


# Stands for each command: notes its command line, and writes files as it would.
STUB = """#!/usr/bin/env bash
set -e
name=${0##*/}
echo "$name $*" >> "$LOG"
mode=train steps=50 data_dir= file_out=
for flag in "$@"; do
  case "$flag" in
    --mode=*) mode=${flag#*=} ;;
    --train_steps=*) steps=${flag#*=} ;;
    --data_dir=*) data_dir=${flag#*=} ;;
    --model_dir=*) model=${flag#*=} ;;
    --file_out=*) file_out=${flag#*=} ;;
  esac
done
case "$name $mode" in
  prepare_data*)
    mkdir -p "$data_dir"
    touch "$data_dir/data.json"
    ;;
  *train)
    [ "$name" = sacrebleu ] || mkdir -p "$model/checkpoints/step-$steps"
    ;;
  *average)
    rm -rf "$model/average"
    mkdir -p "$model/average/step-$(ls "$model/checkpoints" |
      sed s/step-// | sort -n | tail -n 1)"
    ;;
  *predict) touch "$file_out" ;;
esac
sleep 0.01  # Files made by the next command are newer.
"""


def run(recipes, *arguments, path=COMMANDS, log=""):
  """Runs the script; returns its exit status and all it wrote."""
  done = subprocess.run(
    ["bash", str(recipes / "multi30k.sh"), *map(str, arguments)],
    env={**os.environ, "PATH": f"{path}:/usr/bin:/bin", "LOG": str(log)},
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    check=False,
    timeout=600,
  )
  return done.returncode, done.stdout


@pytest.fixture
def commands(tmp_path):
  """Runs the script with stubs; returns the command lines of one run."""
  stubs = tmp_path / "bin"
  stubs.mkdir()
  for name in ("transformer_main", "prepare_data", "sacrebleu"):
    (stubs / name).write_text(STUB)
    (stubs / name).chmod(0o755)
  text = tmp_path / "text"
  text.mkdir()
  for part in PARTS.values():
    for language in ("en", "de", "fr", "cs"):
      (text / f"{part}.{language}.gz").touch()
  work = tmp_path / "work"

  def lines(*arguments):
    log = tmp_path / "log"
    log.write_text("")
    source, target, *flags = arguments
    status, output = run(
      RECIPES, source, target, text, work, *flags, path=stubs, log=log
    )
    assert status == 0, output
    short = log.read_text().replace(f"{text}/", "")
    return short.replace(f"{work}/", "").replace(f"{RECIPES}/", "").splitlines()

  lines.work = work
  return lines


def train_lines(pair, recipe):
  train = f"--flagfile=multi30k_{recipe}.flags --data_dir={pair}/data"
  average = "--mode=average --average_last=5"
  return [
    f"transformer_main {flags} --model_dir={pair}/model"
    for flags in (train, average)
  ]


def translate_line(pair, text, out, alpha=""):
  return (
    f"transformer_main --mode=predict --model_dir={pair}/model "
    f"--checkpoint=average --file={text}.gz --file_out={pair}/{out}{alpha}"
  )


@pytest.mark.parametrize("other", ["de", "fr", "cs"])
def test_each_side_has_its_translation(commands, other):
  lines = commands("en", other)
  both, pair, xx = f"both-en-{other}", f"en-{other}", other
  vocabulary, data, *rest = lines
  assert "--vocab_size=4000" in vocabulary
  assert f"--train_source=train.en.gz,train.{xx}.gz " in data
  assert f"--train_target=train.{xx}.gz,train.en.gz " in data
  assert rest[:4] == [
    *train_lines(both, "both"),
    translate_line(both, "train.en", f"train.en-{xx}", " --alpha=1.2"),
    translate_line(both, f"train.{xx}", f"train.{xx}-en", " --alpha=1.0"),
  ]
  sources = f"train.en.gz,train.en.gz,{both}/train.{xx}-en"
  targets = f"train.{xx}.gz,{both}/train.en-{xx},train.{xx}.gz"
  assert f"--train_source={sources} --train_target={targets} " in rest[4]
  assert f"--dev_source=val.en.gz --dev_target=val.{xx}.gz" in rest[4]
  test = f"test_2016_flickr.{xx}"
  assert rest[5:8] == [
    *train_lines(pair, f"en{xx}"),
    translate_line(pair, "test_2016_flickr.en", test),
  ]
  assert len(rest[8:]) == 2
  assert all(f"{test}.gz -i {pair}/{test} " in line for line in rest[8:])


def test_the_other_direction_shares_the_first_two_steps(commands):
  commands("en", "de")
  lines = commands("de", "en")
  both, pair = "both-en-de", "de-en"
  sources = f"train.de.gz,train.de.gz,{both}/train.en-de"
  targets = f"train.en.gz,{both}/train.de-en,train.en.gz"
  assert lines[0] == train_lines(both, "both")[0]
  assert f"--train_source={sources} --train_target={targets} " in lines[1]
  assert lines[2:5] == [
    *train_lines(pair, "deen"),
    translate_line(pair, "test_2016_flickr.de", "test_2016_flickr.en"),
  ]


def test_only_what_is_stale_is_made_anew(commands):
  first = commands("en", "de", "--train_steps=9")
  trained = [line for line in first if "--train_steps=9" in line]
  assert len(trained) == 2
  # Once more: both trainings are called, which find themselves done.
  again = commands("en", "de", "--train_steps=9")
  assert again == trained + first[-2:]
  # With more steps (10 is after 9), all that comes of them.
  longer = commands("en", "de", "--train_steps=10")
  assert longer == [line.replace("steps=9", "steps=10") for line in first[2:]]
  # A break while averaging leaves no average; the second model is as it was.
  average = commands.work / "both-en-de" / "model" / "average"
  (average / "step-10").rename(average / "step-10.incomplete")
  resumed = commands("en", "de", "--train_steps=10")
  assert resumed == longer[:6] + longer[-2:]


def test_a_pair_is_trained_and_scored(recipes, text, tmp_path_factory):
  tmp_path = tmp_path_factory.mktemp("work")
  shell = CommandShell(
    {"transformer_main": MAIN, "prepare_data": PREPARE},
    tmp_path_factory.mktemp("streams"),
    # For the script, which another bash runs.
    "export -f in_process transformer_main prepare_data\n"
    f"PATH={COMMANDS}:$PATH\n",
  )

  def run(recipes, *arguments):
    words = ["bash", recipes / "multi30k.sh", *arguments]
    done = shell.run(shlex.join(map(str, words)), tmp_path)
    return done.status, done.stdout + done.stderr

  status, output = run(recipes, "en", "de", text, tmp_path)
  assert status == 0, output
  # Text and translations; what such a model says nothing of is left out.
  data = json.loads((tmp_path / "en-de" / "data" / "data.json").read_text())
  train = data["train"]
  assert train["pairs"] + sum(train["dropped"].values()) == 600
  assert train["pairs"] > 200
  signatures = re.findall(
    r"(?m)^ *(\w+)\|nrefs:1\|bs:1000\|.*case:(\w+)", output
  )
  assert signatures == [("BLEU", "mixed"), ("chrF2", "mixed"), ("BLEU", "lc")]
  hypothesis = tmp_path / "en-de" / "test_2016_flickr.de"
  assert len(hypothesis.read_text().splitlines()) == 20

  # What is made already is used; another seed is another run.
  shutil.rmtree(tmp_path / "en-de" / "model" / "average")
  both = tmp_path / "both-en-de"
  made = [*both.glob("train.*"), *both.glob("model/*/step-*")]
  before = {p: p.stat().st_mtime_ns for p in made}
  assert len(before) == 2 + 5 + 1 + 1
  status, output = run(recipes, "en", "de", text, tmp_path, "--seed=2")
  assert status == 2 and "--seed=2 contradicts" in output, output
  status, output = run(recipes, "en", "de", text, tmp_path)
  assert status == 0, output
  assert len(list(tmp_path.glob("en-de/model/average/step-50"))) == 1
  assert before == {p: p.stat().st_mtime_ns for p in before}


def test_what_is_missing_is_named(recipes, text, tmp_path):
  assert run(recipes, "en")[0] == 2
  work = tmp_path / "work"
  work.mkdir()
  for pair, path, said in (
    (("de", "fr"), COMMANDS, "no recipe for de to fr"),
    (("fr", "en"), COMMANDS, "no recipe for fr to en"),
    (("en", "fr"), COMMANDS, "there is no .*train.fr.gz"),
    (("en", "de"), "/nowhere", "transformer_main is not installed here"),
  ):
    status, output = run(recipes, *pair, text, work, path=path)
    assert status == 2 and re.search(said, output), output
  for flag in ("--model_dir=x", "--mode=eval", "--data_dir=y", "dtype=fp32"):
    status, output = run(recipes, "en", "de", text, work, flag)
    assert status == 2 and flag in output
  assert "comma" in run(recipes, "en", "de", text, f"{work},2")[1]
  assert not list(work.iterdir())
