"""A model that upstream trained on Multi30k, and what upstream makes of it.

Needs data that do not belong to the project, beside its directory; skipped
where they are absent.
"""

import gzip
import pathlib

import pytest
import tensorflow as tf
from reference_search import reference_beam_search

from official_transformer.decoding import loading
from official_transformer.decoding.loading import load_model, open_model
from official_transformer.decoding.options import BatchLimits
from official_transformer.decoding.scorer import Scorer
from official_transformer.decoding.translator import (
  DecodingOptions,
  Translator,
)
from official_transformer.evaluation.bleu import official_bleu
from official_transformer.importing.importer import (
  ImportRequest,
  import_checkpoint,
)
from official_transformer.ops import dense
from official_transformer.text.vocabulary_files import VocabFiles

SHARED = pathlib.Path(__file__).parents[3] / "shared"
UPSTREAM = SHARED / "upstream" / "m30k"
DATA = SHARED / "data" / "multi30k"

pytestmark = [
  pytest.mark.slow,
  pytest.mark.skipif(
    not (UPSTREAM.exists() and DATA.exists()),
    reason="needs ../shared/upstream/m30k and ../shared/data/multi30k",
  ),
]


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
    VocabFiles.joint(str(UPSTREAM / "vocab.m30k")),
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
  model = load_model(*open_model(model_dir))
  scorer = Scorer(model.transformer, model.tokenizers)
  scores = scorer.score_stream(zip(*text, strict=True))
  table = (UPSTREAM / "val.scores.tsv").read_text().split("\n")[1:-1]
  for line, score in zip(table, scores, strict=True):
    log_probability, tokens = line.split("\t")
    assert score.tokens == int(tokens)
    assert score.log_probability == pytest.approx(
      float(log_probability), abs=1e-3
    )


@pytest.mark.slow
@pytest.mark.parametrize("beam_size", [1, 4, 8])
@pytest.mark.parametrize(
  "lines", [100, pytest.param(1014, marks=pytest.mark.long)]
)
def test_translations_are_those_of_the_plain_search(
  model_dir, text, beam_size, lines
):
  """Line for line, whatever batches the lines come in."""
  sources = text[0][:lines]
  plain = Translator.load(
    model_dir,
    beam_size=beam_size,
    options=DecodingOptions(BatchLimits(lines=32), n_best=min(2, beam_size)),
  )
  plain.searchers.plain.search_function = tf.function(
    lambda ids: reference_beam_search(plain.searchers.plain.transformer, ids),
    input_signature=[tf.TensorSpec([None, None], tf.int32)],
    autograph=False,
  )
  expected = list(plain.translate_stream(sources))
  fast = Translator.load(
    model_dir, beam_size=beam_size, options=DecodingOptions(workers=2)
  )
  differing = {}
  found = fast.translate_stream(sources)
  for number, (one, other) in enumerate(zip(found, expected, strict=True)):
    scores = [h.score for h in other.hypotheses]
    assert one.score == pytest.approx(scores[0], abs=1e-4)
    if one.text != other.text:
      differing[number] = scores[0] - scores[-1]
  # Where the two best score alike, either may come first; here none do.
  assert differing == {}


@pytest.mark.slow
def test_bfloat16_translates_as_well(model_dir, text, monkeypatch):
  """Computed as on a machine that has units for it."""
  for module in (loading, dense):
    monkeypatch.setattr(module, "is_fast_dtype", lambda _: True)
  sources, references = (side[:200] for side in text)
  found, exact = (
    Translator.load(model_dir, dtype=dtype).translate(sources)
    for dtype in ("bf16", "fp32")
  )
  difference = official_bleu(references, found, False) - official_bleu(
    references, exact, False
  )
  assert abs(difference) < 1.0
  equal = sum(a == b for a, b in zip(found, exact, strict=True))
  assert 120 < equal < 200  # Rounding is felt, and does little.
