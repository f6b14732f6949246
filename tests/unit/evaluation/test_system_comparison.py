import json

import pytest

from official_transformer.errors import InputError
from official_transformer.evaluation.comparison_formats import (
  as_json,
  as_latex,
  as_text,
  sentence_table,
)
from official_transformer.evaluation.metrics import MetricSettings, References
from official_transformer.evaluation.system_comparison import (
  ComparisonSettings,
  compare_systems,
)

REFERENCE = ["the cat sat on the mat .", "a dog ran home .", "yes"]
SYSTEMS = [
  ("out_1.de", ["the cat sat on a mat .", "a dog ran home .", "no"]),
  ("out_2.de", ["cat mat", "a dog ran", "yes"]),
  ("again", ["the cat sat on a mat .", "a dog ran home .", "no"]),
]


@pytest.fixture(scope="module")
def compared():
  return compare_systems(
    SYSTEMS,
    References([REFERENCE]),
    ComparisonSettings(
      MetricSettings(resamples=50),
      tests=("ar", "bs"),
      trials=50,
      sentences=True,
    ),
  )


def test_one_system_alone_is_its_scores():
  found = compare_systems(
    SYSTEMS[:1], References([REFERENCE]), ComparisonSettings()
  )
  assert not found.comparisons
  assert as_text(found) == found.systems[0].scores.report()
  assert "±" in as_text(found)


def test_text_tells_each_system_and_each_comparison(compared):
  text = as_text(compared)
  for name, _ in SYSTEMS:
    assert f"\n{name}\n" in f"\n{text}"
  assert (
    "out_2.de beside out_1.de: paired approximate randomisation; 3 of 3"
    in (text)
  )
  assert "paired bootstrap resampling" in text
  # Once, though there are two tests.
  assert text.count("again beside out_1.de: identical, line for line") == 1
  assert "p = " in text


def test_json_has_all_of_it(compared):
  told = json.loads(as_json(compared, ["cased"]))
  assert [s["name"] for s in told["systems"]] == [n for n, _ in SYSTEMS]
  system = told["systems"][0]
  assert list(system["official_bleu"]) == ["cased"]
  assert [m["name"] for m in system["metrics"]] == ["BLEU", "chrF2", "TER"]
  assert all("confidence" in m for m in system["metrics"])
  assert len(system["sentences"]) == 3
  assert set(system["sentences"][0]) == {"BLEU", "chrF2", "TER"}
  assert told["tokenizer"] == {"name": "13a", "reason": ""}
  tested = [(c["system"], c["test"]) for c in told["comparisons"]]
  assert tested == [("out_2.de", "ar"), ("again", "ar"), ("out_2.de", "bs")]
  assert told["comparisons"][1]["identical"]


def test_latex_is_a_table_with_its_signatures(compared):
  lines = as_latex(compared).split("\n")
  assert lines[0] == r"\begin{tabular}{lrrrrr}"
  rows = [line for line in lines if line.endswith(r"\\")]
  assert len(rows) == 4
  assert rows[1].startswith(r"out\_1.de & ")
  assert r"\textbf{" in rows[1]
  assert r"$\pm$" in rows[1]
  assert all(row.count("&") == 5 for row in rows)
  assert any(line.startswith("% BLEU|nrefs:1") for line in lines)
  # Of errors, the fewest are best.
  best = compared.systems[0].scores.sacrebleu[2].score
  assert best < compared.systems[1].scores.sacrebleu[2].score
  assert rf"\textbf{{{best:.2f}" in rows[1]


def test_sentences_have_a_line_each(compared):
  heading, *rows = sentence_table(compared)
  assert heading.split("\t")[:2] == ["line", "out_1.de BLEU"]
  assert len(rows) == 3
  assert [row.split("\t")[0] for row in rows] == ["1", "2", "3"]
  assert rows[2].split("\t")[4] == "100.0000"  # out_2.de's "yes".


def test_chinese_is_scored_by_its_own_tokens():
  found = compare_systems(
    [("a", ["我喜欢学习。"])],
    References([["我喜欢数学。"]]),
    ComparisonSettings(),
  )
  assert found.tokenizer.name == "zh"
  assert "tok:zh" in as_text(found)


def test_ter_of_a_document_on_one_line_is_left_out_and_told(caplog):
  """It would take gigabytes."""
  document = [" ".join(f"w{n}" for n in range(20_000))]
  found = compare_systems(
    [("a", document)],
    References([document]),
    ComparisonSettings(MetricSettings(resamples=0), sentences=True),
  )
  scores = found.systems[0].scores.sacrebleu
  assert {s.name: round(s.score) for s in scores} == {"BLEU": 100, "chrF2": 100}
  assert "a line has 20000 words" in caplog.text
  with pytest.raises(InputError, match="TER is left out"):
    compare_systems(
      [("a", document)],
      References([document]),
      ComparisonSettings(MetricSettings(("ter",), resamples=0)),
    )
