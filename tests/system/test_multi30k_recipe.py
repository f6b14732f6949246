"""The Multi30k recipe: its command lines, and a run on a small corpus."""

import gzip
import importlib.util
import json
import os
import pathlib
import re
import statistics
import sys

import command_line
import pytest

ROOT = pathlib.Path(__file__).parents[2]
PARTS = {"train": "train", "dev": "val", "test": "test_2016_flickr"}


@pytest.fixture
def recipe(monkeypatch):
  """The recipe as a module."""
  path = ROOT / "recipes" / "multi30k.py"
  spec = importlib.util.spec_from_file_location("multi30k", path)
  module = importlib.util.module_from_spec(spec)
  monkeypatch.setitem(
    sys.modules, "multi30k", module
  )  # Dataclasses look there.
  spec.loader.exec_module(module)
  return module


@pytest.fixture
def run_main(recipe, monkeypatch, capsys):
  """Runs the recipe's main function; returns its exit status and output."""

  def run(*arguments):
    words = ["multi30k.py", *map(str, arguments)]
    monkeypatch.setattr(sys, "argv", words)
    status = 0
    try:
      recipe.main()
    except SystemExit as end:
      status = end.code
    return status, "".join(capsys.readouterr())

  return run


@pytest.fixture
def text(tmp_path):
  """One caption in four languages, in files as in the Multi30k repository."""
  folder = tmp_path / "text"
  folder.mkdir()
  for part in PARTS.values():
    for language in ("en", "de", "fr", "cs"):
      with gzip.open(folder / f"{part}.{language}.gz", "wt") as stream:
        stream.write("ein Hund rennt am Strand\n")
  return folder


@pytest.fixture
def commands(recipe, run_main, text, tmp_path, monkeypatch):
  """Runs the recipe with a stand-in for each command; returns command lines."""
  work = tmp_path / "work"
  now = [1]

  def write(path, content=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    # Each file is newer than the files before it, on a clock of their own.
    now[0] += 1
    os.utime(path, (now[0], now[0]))

  def stand_in(module, *flags):
    log.append(" ".join([module.rpartition(".")[2], *map(str, flags)]))
    given = dict(flag.partition("=")[::2] for flag in map(str, flags))
    model = pathlib.Path(given.get("--model_dir", "."))
    if "--train_source" in given:
      write(pathlib.Path(given["--data_dir"]) / "data.json")
    elif given.get("--mode") == "average":
      steps = [int(p.name[5:]) for p in model.glob("checkpoints/step-*")]
      write(model / "average" / f"step-{max(steps)}" / "weights")
    elif given.get("--mode") == "predict":
      # The second seed is right with alpha 1.4, and the others never are.
      verb = "rennt" if given["--alpha"] == "1.4" else "geht"
      where = "am Strand" if model.name.endswith("2") else "am Ufer"
      write(pathlib.Path(given["--file_out"]), f"ein Hund {verb} {where}\n")
    else:
      step = given.get("--train_steps", "9")
      (model / "checkpoints" / f"step-{step}").mkdir(
        parents=True, exist_ok=True
      )

  for part in text.iterdir():
    os.utime(part, (0, 0))
  monkeypatch.setattr(recipe, "run", stand_in)
  log = []

  def lines(pair, *arguments):
    log.clear()
    status, output = run_main(
      f"--pair={pair}", f"--text_dir={text}", f"--work_dir={work}", *arguments
    )
    assert status == 0, output
    short = [
      re.sub(f"{work}/(tuned-)?en-de/|{text}/|{ROOT}/", "", line)
      for line in log
    ]
    return short, output

  lines.work = work
  lines.write = write
  return lines


def train_lines(name, seed, data, kind, start=""):
  flags = f"--data_dir={data} --model_dir={name} --seed={seed}"
  return [
    f"transformer_main --flagfile=recipes/multi30k_{kind}.flags {flags}{start}",
    f"transformer_main --mode=average --average_last=5 --model_dir={name}",
  ]


def test_both_sides_are_translated_for_the_students(commands):
  lines, _ = commands("en-de", "--seeds=1,2")
  (vocabulary, forward_text, *rest) = lines
  assert "--vocab_size=4000 --train_source=train.en.gz " in vocabulary
  assert "--vocab_file=vocabulary/vocab.4000.model " in forward_text
  assert rest[:2] == train_lines("teacher-en-de-1", 1, "text-en-de", "teacher")
  assert "--train_source=train.de.gz --train_target=train.en.gz " in rest[2]
  # The second teacher starts from the weights of the first one.
  start = " --init_checkpoint=teacher-en-de-1/average"
  assert rest[3:5] == train_lines(
    "teacher-de-en-1", 1, "text-de-en", "teacher", start
  )
  forward, backward, data = rest[5:8]
  german = "train.teacher-en-de-1.1.2.de"
  english = "train.teacher-de-en-1.1.2.en"
  assert f"--file=train.en.gz --file_out={german}" in forward
  assert f"--file=train.de.gz --file_out={english}" in backward
  assert f"--train_source=train.en.gz,train.en.gz,{english} " in data
  assert f"--train_target=train.de.gz,{german},train.de.gz " in data
  assert "--dev_source=val.en.gz --dev_target=val.de.gz" in data
  assert rest[8:12] == [
    line
    for seed in (1, 2)
    for line in train_lines(
      f"student-en-de-{seed}", seed, "diversified-en-de", "student", start
    )
  ]


def test_the_best_alpha_on_val_translates_the_test_set(commands):
  lines, output = commands("en-de", "--seeds=1,2")
  tested = [line for line in lines if "--file=test_2016_flickr" in line]
  assert all("--alpha=1.4 " in line for line in tested)
  models = ["student-en-de-1", "student-en-de-2"]
  assert [re.search("--model_dir=([^ ]*)", line)[1] for line in tested] == [
    *models,
    ",".join(models),
  ]
  rows = {
    name: [float(value) for value in values.split("|")]
    for name, values in re.findall(r"(?m)^\| ([^|]+) \| ([\d. |]+) \|$", output)
  }
  first, second = (rows[model] for model in models)
  assert second == [100, 100, 100] and first[0] < 100
  assert rows["mean"][0] == pytest.approx((first[0] + 100) / 2, abs=0.01)
  assert rows["standard deviation"][0] == pytest.approx(
    statistics.stdev([first[0], 100]), abs=0.01
  )
  assert "case:lc" in output


def test_the_other_direction_shares_the_teachers(commands):
  commands("en-de", "--seeds=1")
  lines, _ = commands("de-en", "--seeds=1")
  german = "train.teacher-en-de-1.1.2.de"
  english = "train.teacher-de-en-1.1.2.en"
  trained = [line for line in lines if "--flagfile" in line]
  assert len(trained) == 3 and "student-de-en-1" in trained[2]
  (data,) = (line for line in lines if line.startswith("prepare_data"))
  assert f"--train_source=train.de.gz,train.de.gz,{german} " in data
  assert f"--train_target=train.en.gz,{english},train.en.gz " in data


def test_only_what_is_stale_is_made_again(commands):
  first, _ = commands("en-de", "--seeds=1")
  trained = [line for line in first if "--flagfile" in line]
  assert len(trained) == 3
  # Once more: the three trainings are called, and find that they have ended.
  again, output = commands("en-de", "--seeds=1")
  assert again == trained
  assert "student-en-de-1" in output
  # With more steps (10 is after 9), everything that depends on the models.
  longer, _ = commands("en-de", "--seeds=1", "--", "--train_steps=10")
  assert len(longer) == len(first) - 3
  assert sum("--train_steps=10" in line for line in longer) == 3
  # An interruption while averaging leaves no average.
  average = commands.work / "en-de" / "student-en-de-1" / "average" / "step-10"
  average.rename(average.with_name("step-10.incomplete"))
  resumed, _ = commands("en-de", "--seeds=1", "--", "--train_steps=10")
  assert (
    resumed[:2]
    == longer[:1] + [line for line in longer if "--flagfile" in line][1:2]
  )
  assert len([line for line in resumed if "--mode=average" in line]) == 1


def test_teachers_may_start_from_other_models(commands, tmp_path):
  models = tmp_path / "models"
  for name in ("en_de", "de_en"):
    commands.write(models / name / "average" / "step-1" / "weights")
    commands.write(models / name / "vocab.8000.model")
  lines, _ = commands("en-de", "--seeds=1", f"--start_dir={models}")
  assert f"--vocab_file={models}/en_de/vocab.8000.model" in lines[0]
  trained = [line for line in lines if "--flagfile" in line]
  starts = [line.partition("--init_checkpoint=")[2] for line in trained]
  assert starts == [
    f"{models}/en_de/average",
    f"{models}/de_en/average",
    "teacher-en-de-1/average",
  ]
  assert all("_tuned_" in line for line in trained)


def test_wrong_arguments_are_refused(run_main, text, tmp_path):
  def refused(*arguments, pair="en-de", text_dir=text, work="work"):
    status, output = run_main(
      f"--pair={pair}",
      f"--text_dir={text_dir}",
      f"--work_dir={tmp_path / work}",
      *arguments,
    )
    assert status == 2
    return output

  assert "invalid choice: 'de-fr'" in refused(pair="de-fr")
  assert "data/task1/raw" in refused(text_dir=tmp_path)
  assert "comma" in refused(work="a,b")
  assert "numbers" in refused("--seeds=1,two")
  assert "no " + str(tmp_path) in refused(f"--start_dir={tmp_path}")
  for flag in ("--model_dir=x", "--mode=eval", "--seed=2", "dtype=fp32"):
    assert flag.partition("=")[0] in refused("--", flag)
  assert not (tmp_path / "work").exists()


def test_a_failed_command_ends_the_recipe(recipe):
  with pytest.raises(SystemExit) as end:
    recipe.transformer("--mode=predict", "--text=a", "--model_dir=/nowhere")
  assert end.value.code == 2


@pytest.mark.slow
def test_a_pair_is_trained_and_scored(
  recipe, run_main, monkeypatch, tmp_path_factory
):
  folder = tmp_path_factory.mktemp("text")
  command_line.succeed(
    command_line.DEMO,
    f"--output_dir={folder}",
    *("--train_size=200", "--dev_size=20", "--test_size=20"),
  )
  for ours, theirs in PARTS.items():
    for language in ("en", "de"):
      content = (folder / f"{ours}.{language}").read_bytes()
      with gzip.open(folder / f"{theirs}.{language}.gz", "wb") as stream:
        stream.write(content)
  monkeypatch.setattr(recipe, "run", command_line.succeed)
  monkeypatch.setattr(recipe, "ALPHAS", ("1.0",))
  work = tmp_path_factory.mktemp("work")
  arguments = [
    *("--pair=de-en", f"--text_dir={folder}", f"--work_dir={work}"),
    *("--seeds=1,2", "--", "--train_steps=50", "--save_checkpoints_steps=10"),
    *("--steps_between_evals=50", "--dtype=fp32", "--batch_size=1024"),
    "--params_override=num_hidden_layers=1,hidden_size=32,filter_size=64,"
    "learning_rate_warmup_steps=20",
  ]
  status, output = run_main(*arguments)
  assert status == 0, output
  data = work / "en-de" / "diversified-de-en" / "data.json"
  train = json.loads(data.read_text())["train"]
  # The text and two translations; empty translations are left out.
  assert train["pairs"] + sum(train["dropped"].values()) == 600
  translations = list((work / "en-de").glob("test_2016_flickr.*.en"))
  assert len(translations) == 3
  assert all(len(p.read_text().splitlines()) == 20 for p in translations)

  before = {p: p.stat().st_mtime_ns for p in translations}
  assert run_main(*arguments) == (0, output)
  assert before == {p: p.stat().st_mtime_ns for p in before}
