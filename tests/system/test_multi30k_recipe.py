"""The Multi30k recipe: its command lines, and a run on a small corpus."""

import gzip
import importlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys

import command_line
import pytest
import waiting

from official_transformer.errors import describe_failures

RECIPES = pathlib.Path(__file__).parents[2] / "recipes"
PARTS = {"train": "train", "dev": "val", "test": "test_2016_flickr"}


@pytest.fixture
def steps(monkeypatch):
  """The module of the steps."""
  monkeypatch.syspath_prepend(RECIPES)
  return importlib.import_module("diversification")


@pytest.fixture
def recipe(steps):
  """The module of the command."""
  return importlib.import_module("multi30k")


@pytest.fixture
def run_main(recipe, monkeypatch, capsys):
  """Runs the command; returns its exit status and output."""

  def run(*arguments):
    monkeypatch.setattr(sys, "argv", ["multi30k.py", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
      describe_failures(recipe.main)(sys.argv[:1])
    return end.value.code, "".join(capsys.readouterr())

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
def commands(steps, run_main, text, tmp_path, monkeypatch):
  """Runs the recipe with a stand-in for each command; returns command lines."""
  work = tmp_path / "work"
  now = [1]
  log = []

  def write(path, content=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    touch(path)

  def touch(path):
    # Each file is newer than the files before it, on a clock of their own.
    now[0] += 1
    os.utime(path, (now[0], now[0]))

  def stand_in(module, *flags):
    log.append(" ".join([module.rpartition(".")[2], *map(str, flags)]))
    given = dict(flag.partition("=")[::2] for flag in map(str, flags))
    model = pathlib.Path(given.get("--model_dir", "."))
    if "--train_source" in given:
      data = pathlib.Path(given["--data_dir"])
      write(data / "vocab.4000.model")
      write(data / "data.json")
    elif given.get("--mode") == "average":
      steps = [int(p.name[5:]) for p in model.glob("checkpoints/step-*")]
      shutil.rmtree(model / "average", ignore_errors=True)
      write(model / "average" / f"step-{max(steps)}" / "weights")
    elif given.get("--mode") == "predict":
      # The second seed is right with alpha 1.4, and the others never are.
      verb = "rennt" if given.get("--alpha") == "1.4" else "geht"
      where = "am Strand" if model.name.endswith("2") else "am Ufer"
      write(pathlib.Path(given["--file_out"]), f"ein Hund {verb} {where}\n")
    else:
      if not (model / "model.json").exists():
        write(model / "model.json")
      last = int(given.get("--train_steps", "9"))
      for step in range(last - 4, last + 1):
        path = model / "checkpoints" / f"step-{step}"
        path.mkdir(parents=True, exist_ok=True)

  for part in text.iterdir():
    os.utime(part, (0, 0))
  monkeypatch.setattr(steps, "run", stand_in)

  def lines(pair, *arguments, status=0):
    log.clear()
    found, output = run_main(
      f"--pair={pair}", f"--text_dir={text}", f"--work_dir={work}", *arguments
    )
    assert found == status, output
    folders = f"{work}/(tuned-)?en-[a-z]*/|{text}/|{RECIPES}/"
    return [re.sub(folders, "", line) for line in log], output

  lines.work = work
  lines.write = write
  lines.touch = touch
  return lines


def train_lines(name, seed, data, kind, start=""):
  flags = f"--data_dir={data} --model_dir={name} --seed={seed}"
  return [
    f"transformer_main --flagfile=multi30k_{kind}.flags {flags}{start}",
    f"transformer_main --mode=average --average_last=5 --model_dir={name}",
  ]


def trainings(lines):
  """Returns the names of the models that are trained."""
  found = (re.search("--flagfile.*--model_dir=([^ ]*)", line) for line in lines)
  return [match[1] for match in found if match]


@pytest.mark.parametrize("other", ["de", "fr", "cs"])
def test_both_sides_are_translated_for_the_students(commands, other):
  lines, _ = commands(f"en-{other}", "--seeds=1,2")
  there, back = f"en-{other}", f"{other}-en"
  forward_text, *rest = lines
  assert f"--data_dir=text-{there} --train_source=train.en.gz " in forward_text
  assert forward_text.endswith("--vocab_size=4000")
  assert rest[:2] == train_lines(
    f"teacher-{there}-1", 1, f"text-{there}", "teacher"
  )
  swapped = f"--train_source=train.{other}.gz --train_target=train.en.gz "
  assert swapped in rest[2]
  assert rest[2].endswith(f"--vocab_file=text-{there}/vocab.4000.model")
  # The second teacher starts from the weights of the first one.
  start = f" --init_checkpoint=teacher-{there}-1/average"
  assert rest[3:5] == train_lines(
    f"teacher-{back}-1", 1, f"text-{back}", "teacher", start
  )
  forward, backward, data = rest[5:8]
  foreign = f"train.teacher-{there}-1.{other}"
  english = f"train.teacher-{back}-1.en"
  assert forward.endswith(f"--file=train.en.gz --file_out={foreign}")
  assert backward.endswith(f"--file=train.{other}.gz --file_out={english}")
  assert f"--train_source=train.en.gz,train.en.gz,{english} " in data
  targets = f"train.{other}.gz,{foreign},train.{other}.gz"
  assert f"--train_target={targets} " in data
  assert f"--dev_source=val.en.gz --dev_target=val.{other}.gz" in data
  assert rest[8:12] == [
    line
    for seed in (1, 2)
    for line in train_lines(
      f"student-{there}-{seed}", seed, f"diversified-{there}", "student", start
    )
  ]


def test_the_best_alpha_on_val_translates_the_test_set(commands):
  lines, output = commands("en-de", "--seeds=1,2")
  tested = [line for line in lines if "--file=test_2016_flickr" in line]
  assert all(line.endswith("--alpha=1.4") for line in tested)
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
  assert "--alpha=1.4 --file=FILE" in output
  kept = commands.work / "en-de" / "results-en-de.md"
  assert kept.read_text() == output


def test_the_other_direction_shares_the_teachers(commands):
  commands("en-de", "--seeds=1")
  lines, _ = commands("de-en", "--seeds=1")
  assert trainings(lines)[2:] == ["student-de-en-1"]
  (data,) = (line for line in lines if line.startswith("prepare_data"))
  german = "train.teacher-en-de-1.de"
  english = "train.teacher-de-en-1.en"
  assert f"--train_source=train.de.gz,train.de.gz,{german} " in data
  assert f"--train_target=train.en.gz,{english},train.en.gz " in data


def test_only_what_is_stale_is_made_again(commands):
  first, output = commands("en-de", "--seeds=1")
  models = ["teacher-en-de-1", "teacher-de-en-1", "student-en-de-1"]
  assert trainings(first) == models
  # Once more: the three trainings are called, and have nothing left to do.
  again, same = commands("en-de", "--seeds=1")
  assert len(again) == 3 and trainings(again) == models
  assert not any("--init_checkpoint" in line for line in again)
  assert same == output
  # An interruption while averaging leaves no average.
  average = commands.work / "en-de" / "student-en-de-1" / "average"
  shutil.rmtree(average)
  resumed, _ = commands("en-de", "--seeds=1")
  assert [line for line in resumed if "--mode=average" in line] == [
    "transformer_main --mode=average --average_last=5 "
    "--model_dir=student-en-de-1"
  ]
  assert any("--file=test_2016_flickr" in line for line in resumed)


def test_text_that_is_copied_again_ends_nothing(commands, text):
  """Training compares the data; their files' times decide nothing."""
  first, output = commands("en-de", "--seeds=1")
  for part in text.iterdir():
    commands.touch(part)
  again, same = commands("en-de", "--seeds=1")
  assert trainings(again) == trainings(first)
  prepared = [line for line in first if line.startswith("prepare_data")]
  assert [line for line in again if line.startswith("prepare_data")] == prepared
  assert same == output


def test_other_text_is_translated_again(commands, text):
  commands("en-de", "--seeds=1")
  source = text / "test_2016_flickr.en.gz"
  with gzip.open(source, "wt") as stream:
    stream.write("ein Hund\n")
  commands.touch(source)
  lines, _ = commands("en-de", "--seeds=1")
  assert [line for line in lines if "--mode=predict" in line] == [
    "transformer_main --mode=predict --model_dir=student-en-de-1 "
    "--checkpoint=average --file=test_2016_flickr.en.gz "
    "--file_out=test_2016_flickr.student-en-de-1.alpha-1.4.de --alpha=1.4"
  ]


def write_models(commands, models, vocabularies=("same", "same")):
  for name, content in zip(("en_de", "de_en"), vocabularies, strict=True):
    commands.write(models / name / "average" / "step-1" / "weights")
    commands.write(models / name / "vocab.8000.model", content)


def test_teachers_may_start_from_other_models(commands, tmp_path):
  models = tmp_path / "models"
  write_models(commands, models)
  lines, _ = commands("en-de", "--seeds=1", f"--start_dir={models}")
  assert lines[0].endswith(f"--vocab_file={models}/en_de/vocab.8000.model")
  trained = [line for line in lines if "--flagfile" in line]
  starts = [line.partition("--init_checkpoint=")[2] for line in trained]
  assert starts == [
    f"{models}/en_de/average",
    f"{models}/de_en/average",
    "teacher-en-de-1/average",
  ]
  assert all("_tuned_" in line for line in trained)


def test_wrong_arguments_are_refused(run_main, text, commands, tmp_path):
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
  for seeds in ("1,two", "1,1"):
    assert "different numbers" in refused(f"--seeds={seeds}")
  assert "there is no" in refused(f"--start_dir={tmp_path}")
  write_models(commands, tmp_path / "models", ("one", "another"))
  said = refused(f"--start_dir={tmp_path / 'models'}")
  assert "different vocabularies" in said
  for flag in ("--model_dir=x", "--md=x", "--mode=eval", "--seed=2", "--clean"):
    assert flag.partition("=")[0] in refused(flag)
  assert "is not a flag" in refused("dtype=fp32")
  assert not (tmp_path / "work").exists()


def test_a_failed_command_ends_the_recipe(steps):
  with pytest.raises(SystemExit) as end:
    steps.transformer("--mode=predict", "--text=a", "--model_dir=/nowhere")
  assert end.value.code == 2


STEP = """
import pathlib, signal, sys, time
def save(*_):
  time.sleep(1)  # Longer than a quarter of a second.
  pathlib.Path("saved").touch()
  sys.exit(130)
signal.signal(signal.SIGINT, save)
signal.signal(signal.SIGTERM, save)
pathlib.Path("ready").touch()
while True:
  signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_training_is_saved(tmp_path, number):
  (tmp_path / "step.py").write_text(STEP)
  process = subprocess.Popen(
    [
      sys.executable,
      "-c",
      f"import sys; sys.path[:0] = [{str(RECIPES)!r}, '.']\n"
      "import diversification\n"
      "diversification.run('step')\n"
      "open('went_on', 'w')",
    ],
    cwd=tmp_path,
    start_new_session=True,
  )
  waiting.wait_for((tmp_path / "ready").exists)
  if number == signal.SIGINT:
    os.killpg(process.pid, number)  # As a terminal does.
  else:
    process.send_signal(number)
  assert process.wait(waiting.LONGEST_SECONDS) == 130
  assert (tmp_path / "saved").exists()
  assert not (tmp_path / "went_on").exists()


def test_a_command_that_a_signal_ends_is_named(
  steps, tmp_path, monkeypatch, capfd
):
  (tmp_path / "step.py").write_text("import os; os.kill(os.getpid(), 9)")
  monkeypatch.chdir(tmp_path)
  with pytest.raises(SystemExit) as end:
    steps.run("step")
  assert end.value.code == 137
  assert "SIGKILL" in capfd.readouterr().out


@pytest.mark.slow
def test_a_pair_is_trained_and_scored(
  recipe, steps, run_main, monkeypatch, tmp_path_factory
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
  monkeypatch.setattr(steps, "run", command_line.succeed)
  monkeypatch.setattr(recipe, "ALPHAS", ("1.0",))
  work = tmp_path_factory.mktemp("work")
  arguments = [
    *("--pair=de-en", f"--text_dir={folder}", f"--work_dir={work}"),
    *("--seeds=1,2", "--train_steps=50", "--save_checkpoints_steps=10"),
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
