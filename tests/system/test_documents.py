"""The commands in the documents run, in order, with their steps cut short."""

import json
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

import command_line
import pytest
from command_shell import CommandShell
from running_server import running_server
from smaller_params import smaller_param_sets

from official_transformer import model_params
from official_transformer.model import transformer, variants

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
# What a page's commands find when they begin.
NOTHING, TEXT, DATA, MODEL = range(4)
PAGES = {
  "docs/data.md": NOTHING,
  "README.md": TEXT,
  "docs/training.md": DATA,
  "docs/devices.md": DATA,
  "docs/translating.md": MODEL,
  "docs/evaluation.md": MODEL,
  "docs/looking.md": MODEL,
  "docs/deploying.md": MODEL,
  "docs/variants.md": DATA,
  "docs/courses.md": TEXT,
}
COMMANDS = {
  "prepare_data": command_line.PREPARE,
  "check_data": command_line.CHECK,
  "demo_corpus": command_line.DEMO,
  "compute_bleu": command_line.BLEU,
  "translation_report": command_line.REPORT,
  "main_command": command_line.MAIN,
}
# Errors end a page; trainings have fewer and smaller steps.
PRELUDE = """
set -euo pipefail
transformer_main() {
  case "$*" in
    *--mode=average* | *--mode=predict* | *--mode=eval* | *--mode=score* | \\
      *--mode=export* | *--mode=attention* | *--mode=plot*)
      main_command "$@" ;;
    *--train_epochs=*)
      main_command "$@" --train_epochs=1 --batch_size=512 \\
        --validation_steps=2 --extra_decode_length=2 \\
        --params_override=learning_rate_warmup_steps=9 ;;
    *)
      main_command "$@" --train_steps=4 --steps_between_evals=2 \\
        --validation_steps=2 ;;
  esac
}
"""


@pytest.fixture(scope="module", autouse=True)
def small_models():
  """Parameter sets of the same names, of one small layer."""
  with smaller_param_sets():
    yield


def blocks(page, language="bash"):
  text = (ROOT / page).read_text(encoding="utf-8")
  pattern = rf"^ *```{language}\n(.*?)^ *```"
  return re.findall(pattern, text, re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
  """Directories with text, with data, and with a model too."""
  root = tmp_path_factory.mktemp("begun")
  text, data, model = (root / name for name in ("text", "data", "model"))
  text.mkdir()
  command_line.succeed(
    command_line.DEMO,
    *(f"--output_dir={text}", "--train_size=1200", "--dev_size=20"),
    "--test_size=20",
  )
  shutil.copytree(text, data)
  command_line.succeed(
    command_line.PREPARE,
    *(f"--data_dir={data}/data", "--vocab_size=1000"),
    *(f"--train_source={data}/train.en", f"--train_target={data}/train.de"),
    *(f"--dev_source={data}/dev.en", f"--dev_target={data}/dev.de"),
  )
  shutil.copytree(data, model)
  command_line.succeed(
    command_line.MAIN,
    *(f"--data_dir={model}/data", f"--model_dir={model}/model"),
    *("--param_set=tiny", "--params_override=num_hidden_layers=1"),
    *("--train_steps=2", "--extra_decode_length=2", "--seed=1"),
  )
  shutil.copytree(model / "model", model / "another_model")
  return {TEXT: text, DATA: data, MODEL: model}


@pytest.mark.usefixtures("read_back_here")
@pytest.mark.parametrize("page", PAGES)
def test_commands_run_as_they_stand(page, begun, tmp_path):
  work = tmp_path / "work"
  if PAGES[page] == NOTHING:
    work.mkdir()
  else:
    shutil.copytree(begun[PAGES[page]], work)
  shell = CommandShell(COMMANDS, tmp_path / "streams", PRELUDE)
  done = shell.run("\n".join(blocks(page)), work)
  assert done.status == 0, done.stderr[-3000:]


# Pages of Python, and what their blocks find when they begin.
PYTHON_PAGES = {
  "docs/python.md": MODEL,
  "docs/upstream.md": NOTHING,
  "docs/courses.md": NOTHING,
  "docs/looking.md": MODEL,
  "docs/translating.md": MODEL,
  "docs/model_directory.md": MODEL,
}


@pytest.mark.parametrize("page", PYTHON_PAGES)
def test_python_runs_as_it_stands(page, begun, tmp_path, monkeypatch):
  work = tmp_path / "work"
  if PYTHON_PAGES[page] == NOTHING:
    work.mkdir()
  else:
    shutil.copytree(begun[PYTHON_PAGES[page]], work)
  monkeypatch.chdir(work)
  # What a page puts in the place of parts is taken out again.
  for owner in (variants.NORMS, variants.POSITIONS):
    for name, part in owner.items():
      monkeypatch.setitem(owner, name, part)
  monkeypatch.setattr(transformer, "SelfAttention", transformer.SelfAttention)
  params = dict(model_params.TINY_PARAMS)
  monkeypatch.setattr(model_params, "TINY_PARAMS", params)
  # The model of this test has been trained for 2 steps.
  code = "\n".join(blocks(page, "python")).replace("step-1700", "step-2")
  exec(compile(code, page, "exec"), {"__name__": "page"})


def served(page):
  """Returns a page's blocks that start a server: its flags, what asks it."""
  pattern = r"^translation_server (.*)\n((?:.|\n)*)"
  found = (
    re.search(pattern, block, re.MULTILINE) for block in blocks(page, "sh")
  )
  return [(shlex.split(match[1]), match[2]) for match in found if match]


@pytest.mark.parametrize("number", [0, 1])
def test_a_server_answers_as_its_page_has_it(number, begun, tmp_path, capsys):
  work = tmp_path / "work"
  shutil.copytree(begun[MODEL], work)
  (work / "another_model").rename(work / "reverse_model")
  servers = served("docs/deploying.md")
  assert len(servers) == 2
  (model, *flags), curl = servers[number]
  with running_server(
    model.removeprefix("--model_dir="),
    work,
    *(flag for flag in flags if not flag.startswith("--port=")),
  ) as server:

    def here(text):
      return text.replace("http://127.0.0.1:8000", server.url(""))

    said = subprocess.run(
      ["bash", "-c", here(curl)], capture_output=True, text=True, check=True
    ).stdout
    assert json.loads(said)["translations"]
    if "," in model:  # Of several directions, as LibreTranslate's clients need.
      pytest.importorskip("libretranslatepy")
      (client,) = (
        block
        for block in blocks("docs/deploying.md", "py")
        if "libretranslatepy" in block
      )
      exec(compile(here(client), "deploying.md", "exec"), {})
      # Two lines with a blank one between them, and what `print` ends with.
      lines = capsys.readouterr().out.split("\n")
      assert list(map(bool, lines)) == [True, False, True, False]


def test_the_tour_is_made_by_its_command(trained_model, tmp_path):
  done = subprocess.run(
    [
      *(sys.executable, str(ROOT / "docs" / "make_tour.py")),
      *(f"--model_dir={trained_model}", f"--output_dir={tmp_path}"),
    ],
    capture_output=True,
    text=True,
    check=False,
    timeout=300,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  made = (tmp_path / "tour.md").read_text("utf-8")
  kept = (ROOT / "docs" / "tour.md").read_text("utf-8")
  headings = re.compile(r"^## .*", re.MULTILINE)
  assert headings.findall(made) == headings.findall(kept)
  pictures = re.compile(r"\]\((tour/\S+)\)")
  shown = set(pictures.findall(made))
  assert shown == set(pictures.findall(kept))
  assert shown == {f"tour/{p.name}" for p in (tmp_path / "tour").iterdir()}
  assert {f"tour/{p.name}" for p in (ROOT / "docs" / "tour").iterdir()} == shown


def test_every_page_with_commands_is_run():
  pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
  for language, tested in (("bash", PAGES), ("python", PYTHON_PAGES)):
    found = {
      str(page.relative_to(ROOT))
      for page in pages
      if blocks(page.relative_to(ROOT), language)
    }
    assert found == set(tested)
