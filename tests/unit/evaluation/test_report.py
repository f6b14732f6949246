import base64
import hashlib
import json
import re

import numpy as np
import pytest

from official_transformer.decoding.attention import LineAttention
from official_transformer.evaluation.metrics import MetricSettings, References
from official_transformer.evaluation.report_data import (
  Reported,
  ReportRequest,
  choose_lines,
  report_data,
  score_systems,
)
from official_transformer.evaluation.report_page import render_page
from official_transformer.evaluation.system_comparison import ComparisonSettings

HOSTILE = "</script><script>alert(1)</script><!-- {{POLICY}} & <b>"
SOURCES = ["A dog runs along the beach.", HOSTILE, "Two men sit.", ""]
REFERENCE = ["Ein Hund rennt den Strand entlang.", HOSTILE, "Zwei sitzen.", ""]
ONE = ["Ein Hund rennt den Strand entlang.", "x", "Zwei Männer sitzen.", ""]
TWO = ["Ein Hund Hund Hund Hund", HOSTILE, "Zwei sitzen.", "Etwas"]


def request(systems=(("one.de", ONE), ("two.de", TWO)), **changes):
  settings = ComparisonSettings(MetricSettings(resamples=50), trials=50)
  return ReportRequest(
    **{
      "title": HOSTILE,
      "sources": SOURCES,
      "references": References([REFERENCE]),
      "systems": [Reported(name, lines) for name, lines in systems],
      "settings": settings,
      **changes,
    }
  )


def attention():
  cross = np.full([2, 1, 2, 3], 1 / 3, np.float32)
  return LineAttention(
    ["A", "dog", "</s>"],
    ["Hund", "</s>"],
    ["<s>", "Hund"],
    np.full([2, 1, 3, 3], 1 / 3, np.float32),
    np.full([2, 1, 2, 2], 0.5, np.float32),
    cross,
  )


def shown(page):
  (content,) = re.findall(
    r'<script type="application/json" id="data">(.*?)</script>', page
  )
  return json.loads(content)


def test_the_page_has_all_of_it():
  given = request()
  compared = score_systems(given)
  page = render_page(report_data(given, compared, {0: attention()}))
  data = shown(page)
  assert data["sources"] == SOURCES
  assert data["lines"] == [ONE, TWO]
  assert data["references"] == [[line] for line in REFERENCE]
  for system in data["scores"]:
    assert {len(values) for values in system.values()} == {4}
    assert list(system) == ["BLEU", "chrF2", "TER"]
  assert data["warnings"][1][0] == ["repetition", "unfinished"]
  assert data["attention"]["0"]["layers"] == [[[33] * 3] * 2] * 2
  (comparison,) = data["comparison"]["comparisons"]
  assert comparison["test"] == "ar"
  titles = [ngrams["title"] for ngrams in data["ngrams"]]
  assert titles[0] == "Found by A more often than by B"
  assert len(titles) == 6


def test_one_system_alone():
  given = request(systems=[("one.de", ONE)])
  data = report_data(given, score_systems(given), {})
  assert data["comparison"]["comparisons"] == []
  assert [ngrams["title"] for ngrams in data["ngrams"]] == [
    "Missed",
    "Made without a reference",
  ]


def test_no_text_gets_out_of_its_place():
  given = request()
  page = render_page(report_data(given, score_systems(given), {}))
  assert page.count("<script") == page.count("</script>") == 2
  assert "<!--" not in page
  title = page.split("<title>")[1].split("</title>")[0]
  assert "<" not in title
  assert "{{POLICY}}" in title  # What a user writes is not filled in.
  assert shown(page)["title"] == HOSTILE


def test_the_policy_allows_the_pages_own_style_and_script_alone():
  given = request()
  page = render_page(report_data(given, score_systems(given), {}))
  policy = page.split('Content-Security-Policy" content="')[1].split('"')[0]
  assert policy.startswith("default-src 'none'; ")
  for name in ("style", "script"):
    (content,) = re.findall(rf"<{name}>(.*?)</{name}>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest())
    assert f"{name}-src 'sha256-{digest.decode()}'" in policy
  assert "http" not in policy
  assert "unsafe" not in policy


def test_the_lines_worth_a_look():
  assert choose_lines(score_systems(request()), 2, [True] * 4) == [1, 0]
  # Of one system, the worst.
  alone = score_systems(request(systems=[("two.de", TWO)]))
  assert choose_lines(alone, 10, [True] * 4)[-1] in (1, 2)
  assert 1 not in choose_lines(alone, 10, [True, False, True, True])


def test_a_number_that_json_lacks_is_an_error():
  given = request()
  data = report_data(given, score_systems(given), {})
  with pytest.raises(ValueError, match="not JSON compliant"):
    render_page({**data, "scores": float("nan")})
