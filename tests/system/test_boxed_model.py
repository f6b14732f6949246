"""The model that comes with the project, as its first user meets it."""

import json
import pathlib
import re

import command_line
import pytest
import sacrebleu
from command_line import MAIN

from official_transformer.text.text_files import count_lines

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
BOX = ROOT / "models" / "en_de"
CAPTIONS = pathlib.Path(__file__).parent / "captions.tsv"
DATA = ROOT.parent / "shared" / "data"
SETS = {
  "test_2016_flickr": (DATA / "multi30k", "test_2016_flickr"),
  "tatoeba_test": (DATA / "tatoeba_de", "test"),
}


@pytest.fixture
def card():
  return (BOX / "README.md").read_text("utf-8")


def translate(tmp_path, lines):
  (tmp_path / "in").write_text("\n".join(lines) + "\n", encoding="utf-8")
  out = tmp_path / "out"
  command_line.succeed(
    MAIN,
    *("--mode=predict", f"--model_dir={BOX}"),
    *(f"--file={tmp_path}/in", f"--file_out={out}"),
  )
  return out.read_text("utf-8").splitlines()


def test_it_answers_as_the_readme_says():
  readme = (ROOT / "README.md").read_text("utf-8")
  (text,) = re.findall(r'models/en_de \\\n  --text="(.*)"', readme)
  (shown,) = re.findall(r'--text="[^\n]*\n```\n\n```\n(.*)\n```', readme)
  done = command_line.succeed(
    MAIN, "--mode=predict", f"--model_dir={BOX}", f"--text={text}"
  )
  assert done.stdout == shown + "\n"


def test_its_card_shows_what_it_translates(card, tmp_path):
  table = card.partition("| you type |")[2].partition("\n\n")[0]
  rows = re.findall(r"^\| ([^-|][^|]*) \| ([^|]*) \|$", table, re.MULTILINE)
  assert len(rows) >= 25
  found = translate(tmp_path, [source for source, _ in rows])
  same = sum(
    text == shown for text, (_, shown) in zip(found, rows, strict=True)
  )
  # Processors round differently, and some hypotheses are nearly as good.
  assert same >= len(rows) - 2, found


def test_it_translates_captions_it_has_not_seen(tmp_path):
  """Captions of this project's own, with references by it."""
  pairs = [
    line.split("\t") for line in CAPTIONS.read_text("utf-8").splitlines()
  ]
  sources, references = zip(*pairs, strict=True)
  translations = translate(tmp_path, sources)
  assert len(translations) == len(sources)
  bleu = sacrebleu.corpus_bleu(translations, [list(references)])
  # 83.3 when it was made. An untrained model has none of this.
  assert bleu.score > 75, translations


def test_its_size_is_as_promised():
  files = [path for path in BOX.rglob("*") if path.is_file()]
  assert sum(path.stat().st_size for path in files) < 16e6


def test_it_names_no_place_of_its_making():
  for path in (BOX / "model.json", BOX / "measurements.jsonl"):
    assert "/" not in re.sub(r'"validation/\w+"', "", path.read_text("utf-8"))


def test_the_card_says_what_the_model_is(card):
  description = json.loads((BOX / "model.json").read_text("utf-8"))
  assert f"{description['data']['pairs']:,} lines" in card
  (step,) = (BOX / "average").glob("step-*")
  assert f"{int(step.name.removeprefix('step-')):,} updates" in card
  for name, lines in (("test_2016_flickr", 1000), ("tatoeba_test", 2000)):
    assert count_lines(str(BOX / "translations" / f"{name}.de")) == lines


@pytest.mark.parametrize("name", SETS)
def test_it_scores_what_its_card_says(card, tmp_path, name):
  folder, part = SETS[name]
  if not folder.exists():
    pytest.skip(f"needs {folder.name}")
  out = tmp_path / "out"
  command_line.succeed(
    MAIN,
    *("--mode=predict", f"--model_dir={BOX}"),
    *(f"--file={folder}/{part}.en.gz", f"--file_out={out}"),
  )
  said = command_line.succeed(
    command_line.BLEU,
    *(f"--translation={out}", f"--reference={folder}/{part}.de.gz"),
  ).stdout
  (measured,) = re.findall(r"case:mixed.* = ([\d.]+)", said)[:1]
  (claimed,) = re.findall(rf"\| {name} \| \*\*([\d.]+)", card)
  assert float(measured) == pytest.approx(float(claimed), abs=0.1)
