"""A model that upstream trained on Multi30k, and what upstream makes of it.

Needs data that do not belong to the project, beside its directory; skipped
where they are absent.
"""

import gzip
import pathlib

import pytest

from official_transformer.decoding.scorer import Scorer
from official_transformer.decoding.translator import Translator
from official_transformer.evaluation.bleu import official_bleu
from official_transformer.importing.importer import (
  ImportRequest,
  import_checkpoint,
)

SHARED = pathlib.Path(__file__).parents[3] / "shared"
UPSTREAM = SHARED / "upstream" / "m30k"
DATA = SHARED / "data" / "multi30k"

pytestmark = pytest.mark.skipif(
  not (UPSTREAM.exists() and DATA.exists()),
  reason="needs ../shared/upstream/m30k and ../shared/data/multi30k",
)


@pytest.fixture(scope="module")
def text():
  sides = []
  for language in ("en", "de"):
    with gzip.open(DATA / f"val.{language}.gz", "rt", encoding="utf-8") as file:
      sides.append(file.read().split("\n")[:-1])
  return sides


@pytest.fixture(scope="module")
def model_dir(tmp_path_factory):
  directory = str(tmp_path_factory.mktemp("imported"))
  request = ImportRequest(
    "v2",
    str(UPSTREAM / "cp.ckpt"),
    str(UPSTREAM / "vocab.m30k"),
    None,
    {},
    None,
  )
  import_checkpoint(request, directory)
  return directory


def test_translations_are_upstreams(model_dir, text):
  sources, references = text
  hypotheses = Translator.load(model_dir, beam_size=5).translate(sources)
  theirs = (UPSTREAM / "val.hyp.de").read_text("utf-8").split("\n")[:-1]
  assert len(hypotheses) == len(theirs) == 1014
  equal = sum(a == b for a, b in zip(hypotheses, theirs, strict=True))
  assert equal >= 1009
  assert official_bleu(references, theirs, True) == pytest.approx(
    38.515, abs=5e-4
  )
  assert official_bleu(references, theirs, False) == pytest.approx(
    38.661, abs=5e-4
  )


def test_log_probabilities_are_upstreams(model_dir, text):
  scores = Scorer.load(model_dir).score_stream(zip(*text, strict=True))
  table = (UPSTREAM / "val.scores.tsv").read_text().split("\n")[1:-1]
  for line, score in zip(table, scores, strict=True):
    log_probability, tokens = line.split("\t")
    assert score.tokens == int(tokens)
    assert score.log_probability == pytest.approx(
      float(log_probability), abs=1e-3
    )
