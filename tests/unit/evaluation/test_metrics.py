import json
import subprocess
import sys

import pytest

from official_transformer.errors import InputError
from official_transformer.evaluation.metrics import (
  MetricSettings,
  References,
  corpus_scores,
  create_metrics,
  sentence_scores,
)
from official_transformer.evaluation.scores import score

REFERENCE = [
  "the cat sat on the mat .",
  "a dog ran home today .",
  "two men stand there .",
]
WORSE = ["the cat sat on a mat .", "a dog ran .", "men stand there ."]


def test_scores_and_intervals_are_those_of_sacrebleus_command(tmp_path):
  for name, lines in (("reference", REFERENCE), ("system", WORSE)):
    (tmp_path / name).write_text("\n".join(lines) + "\n")
  told = subprocess.run(
    [
      *(sys.executable, "-m", "sacrebleu", str(tmp_path / "reference")),
      *("-i", str(tmp_path / "system"), "-m", "bleu", "chrf", "ter"),
      *("--confidence", "--confidence-n", "200", "-f", "json", "-w", "6"),
    ],
    capture_output=True,
    text=True,
    check=True,
  )
  expected = json.loads(told.stdout)
  references, settings = References([REFERENCE]), MetricSettings(resamples=200)
  found = corpus_scores(create_metrics(settings, references), WORSE, 200)
  assert [f.name for f in found] == ["BLEU", "chrF2", "TER"]
  for ours, theirs in zip(found, expected, strict=True):
    assert ours.score == pytest.approx(theirs["score"], abs=1e-5)
    assert ours.signature == theirs["signature"]
    assert ours.interval.mean == pytest.approx(
      theirs["confidence_mean"], abs=1e-5
    )
    assert ours.interval.half_width == pytest.approx(
      theirs["confidence_var"], abs=1e-5
    )


def test_no_interval_unless_wanted():
  references, settings = References([REFERENCE]), MetricSettings(resamples=0)
  for found in corpus_scores(create_metrics(settings, references), WORSE, 0):
    assert found.interval is None
    assert "bs:" not in found.signature


@pytest.mark.parametrize("resamples", [1, 39, -1])
def test_too_few_resamples_are_refused(resamples):
  with pytest.raises(InputError, match="too few"):
    MetricSettings(resamples=resamples)


def test_an_unknown_metric_is_refused():
  with pytest.raises(InputError, match=r"no metric meteor; .*bleu, chrf, ter"):
    MetricSettings(metrics=("bleu", "meteor"))


def test_no_metric_at_all_is_refused():
  with pytest.raises(InputError, match="no metric is named"):
    MetricSettings(metrics=())


def test_an_empty_second_reference_is_none():
  """SacreBLEU would count it, and the one translation of it is nothing."""
  second = ["the cat was on the mat .", "", "two men are standing there ."]
  settings = MetricSettings(metrics=("ter",), resamples=0)
  (found,) = score(
    References([REFERENCE, second]), REFERENCE, settings
  ).sacrebleu
  assert found.score == 0
  assert "nrefs:var" in found.signature
  # The only one of a line is one, empty or not.
  assert References([["", "a"], ["", "b"]]).for_sacrebleu() == [
    ["", "a"],
    [None, "b"],
  ]


def test_the_nearer_of_two_references_counts():
  settings = MetricSettings(metrics=("bleu",), resamples=0)
  one = score(References([REFERENCE]), WORSE, settings)
  two = score(References([REFERENCE, WORSE]), WORSE, settings)
  assert one.sacrebleu[0].score < 90
  assert two.sacrebleu[0].score == pytest.approx(100)
  assert "nrefs:2" in two.sacrebleu[0].signature
  # Official BLEU knows one.
  assert two.cased == one.cased


@pytest.mark.parametrize(
  ("references", "lines"),
  [([["a", "b"]], ["a"]), ([["a"]], ["a", "b"])],
)
def test_different_numbers_of_lines_name_both(references, lines):
  with pytest.raises(ValueError, match=r"has \d lines and the reference \d"):
    score(References(references), lines, MetricSettings())


def test_references_of_different_lengths_are_refused():
  with pytest.raises(ValueError, match="has 2 lines, another 1"):
    References([["a", "b"], ["a"]])
  with pytest.raises(ValueError, match="no references"):
    References([[]])


def test_a_perfect_sentence_of_two_words_is_perfect():
  settings = MetricSettings()
  found = sentence_scores(
    settings, References([["Good morning", "x"]]), ["Good morning", "y z"]
  )
  assert found["BLEU"] == pytest.approx([100, 0])
  assert found["chrF2"] == pytest.approx([100, 0])
  # One edit and one insertion of one word.
  assert found["TER"] == pytest.approx([0, 200])
