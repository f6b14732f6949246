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
BOX = ROOT / "models" / "multi30k_en_de"
CAPTIONS = pathlib.Path(__file__).parent / "captions.tsv"
FLICKR = ROOT.parent / "shared" / "data" / "multi30k"


@pytest.fixture
def card():
  return (BOX / "README.md").read_text("utf-8")


def test_it_answers():
  done = command_line.succeed(
    MAIN,
    *("--mode=predict", f"--model_dir={BOX}"),
    "--text=A dog runs along the beach.",
  )
  assert done.stdout == "Ein Hund rennt am Strand entlang.\n"


def test_it_translates_captions_it_has_not_seen(tmp_path):
  """Captions of this project's own, with references by it."""
  pairs = [
    line.split("\t") for line in CAPTIONS.read_text("utf-8").splitlines()
  ]
  sources, references = zip(*pairs, strict=True)
  (tmp_path / "in").write_text("\n".join(sources) + "\n", encoding="utf-8")
  out = tmp_path / "out"
  command_line.succeed(
    MAIN,
    *("--mode=predict", f"--model_dir={BOX}"),
    *(f"--file={tmp_path}/in", f"--file_out={out}"),
  )
  translations = out.read_text("utf-8").splitlines()
  assert len(translations) == len(sources)
  bleu = sacrebleu.corpus_bleu(translations, [list(references)])
  # 82.6 when it was made. An untrained model has none of this.
  assert bleu.score > 75, translations


def test_its_size_is_as_promised():
  files = [path for path in BOX.rglob("*") if path.is_file()]
  assert sum(path.stat().st_size for path in files) < 13.3e6
  weights = BOX / "average"
  stored = [path for path in weights.rglob("*") if path.is_file()]
  assert sum(path.stat().st_size for path in stored) < 13e6


def test_it_names_no_place_of_its_making():
  for path in (BOX / "model.json", BOX / "measurements.jsonl"):
    assert "/" not in re.sub(r'"validation/\w+"', "", path.read_text("utf-8"))


def test_the_card_says_what_the_model_is(card):
  description = json.loads((BOX / "model.json").read_text("utf-8"))
  assert f"{description['data']['pairs']:,} pairs" in card
  (step,) = (BOX / "average").glob("step-*")
  assert f"{int(step.name.removeprefix('step-')):,} updates" in card
  kept = BOX / "translations" / "test_2016_flickr.de"
  assert count_lines(str(kept)) == 1000


@pytest.mark.skipif(not FLICKR.exists(), reason="needs ../shared/data/multi30k")
def test_it_scores_what_its_card_says(card, tmp_path):
  out = tmp_path / "out"
  command_line.succeed(
    MAIN,
    *("--mode=predict", f"--model_dir={BOX}"),
    *(f"--file={FLICKR}/test_2016_flickr.en.gz", f"--file_out={out}"),
  )
  said = command_line.succeed(
    command_line.BLEU,
    *(f"--translation={out}", f"--reference={FLICKR}/test_2016_flickr.de.gz"),
  ).stdout
  (measured,) = re.findall(r"case:mixed.* = ([\d.]+)", said)[:1]
  (claimed,) = re.findall(r"\| test_2016_flickr \| \*\*([\d.]+)", card)
  assert float(measured) == pytest.approx(float(claimed), abs=0.1)
