import io
import json
import sys

import pytest

from official_transformer.decoding import progress as progress_lib
from official_transformer.decoding.output import (
  flags_of,
  json_line,
  text_lines,
)
from official_transformer.decoding.progress import Progress, describe
from official_transformer.decoding.translation import Hypothesis, Translation

BEST = Hypothesis("Ein Hund.", -0.5, ["Ein_", "Hund_", "._"], True)
SECOND = Hypothesis("Der Hund.", -1.5, ["Der_", "Hund_", "._"], True)
ALIVE = Hypothesis("Ein Ein", -9.0, ["Ein_", "Ein_"], False)
BLANK = Translation([Hypothesis("", 0.0, [], True)], 0)


def test_text_has_so_many_lines_whatever_was_found():
  translation = Translation([BEST, SECOND], 1)
  assert list(text_lines(translation, 1)) == ["Ein Hund."]
  assert list(text_lines(translation, 3)) == ["Ein Hund.", "Der Hund.", ""]
  assert list(text_lines(BLANK, 2)) == ["", ""]


def test_json():
  found = json.loads(json_line(Translation([BEST, SECOND], 1), 1))
  assert found == {
    "translation": "Ein Hund.",
    "score": -0.5,
    "tokens": ["Ein_", "Hund_", "._"],
    "flags": [],
  }
  found = json.loads(json_line(Translation([BEST, SECOND], 1), 2))
  assert [h["translation"] for h in found["hypotheses"]] == [
    "Ein Hund.",
    "Der Hund.",
  ]
  assert found["hypotheses"][1]["finished"] is True
  assert "\\u" not in json_line(Translation([Hypothesis("ä", 0, [], 1)], 1), 1)


@pytest.mark.parametrize(
  ("translation", "flags"),
  [
    (Translation([BEST], 1), []),
    (BLANK, ["blank"]),
    (Translation([BEST], 3), ["split"]),
    (Translation([ALIVE], 1), ["unfinished"]),
    (Translation([ALIVE, BEST], 2), ["split", "unfinished"]),
    (
      Translation(
        [Hypothesis("a \u2047", -1.0, ["a"], True, None, None, True)], 1
      ),
      ["unknown"],
    ),
  ],
)
def test_flags(translation, flags):
  assert flags_of(translation) == flags


def test_progress_says_rate_and_time_left(monkeypatch, caplog):
  assert describe(20, 100, 5.0) == "20 of 100 lines, 4.0 lines/s, 00:20 left"
  assert describe(20, None, 5.0) == "20 lines, 4.0 lines/s"
  monkeypatch.setattr(progress_lib, "SECONDS_BETWEEN_LINES", 0.0)
  with caplog.at_level("INFO", "absl"), Progress(5, bar=False) as progress:
    progress.add(2)
    progress.add(3)
  said = [r.getMessage() for r in caplog.records]
  assert [s.split(",")[0] for s in said] == ["2 of 5 lines", "5 of 5 lines"]


def test_progress_is_a_bar_on_a_terminal(monkeypatch):
  terminal = io.StringIO()
  terminal.isatty = lambda: True
  monkeypatch.setattr(sys, "stderr", terminal)
  with Progress(4, bar=True) as progress:
    progress.add(4)
  assert "4/4" in terminal.getvalue()
  assert "lines/s" in terminal.getvalue()
