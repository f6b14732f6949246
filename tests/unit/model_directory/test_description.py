import dataclasses
import json

import pytest

from official_transformer.data.buckets import Batching
from official_transformer.data.trained_lines import TrainedLines
from official_transformer.errors import InputError
from official_transformer.model_directory.description import (
  ModelDescription,
  Origin,
)
from official_transformer.model_params import TINY
from official_transformer.text.identity import (
  DataIdentity,
  Vocabularies,
  Vocabulary,
)
from official_transformer.text.text_form import TextForm

JOINT = Vocabularies.joint(Vocabulary("v.model", 400, "ab" * 32))
FULL = ModelDescription(
  dataclasses.replace(TINY, vocab_size=400),
  JOINT,
  Batching(1024, 50, accumulate_steps=2),
  {"tensorflow": "2.21.0"},
  Origin("v2", "/old/cp", None),
  DataIdentity(600, 9000, 9500, 2, "00ff"),
)
# As the version before typed records wrote it, after a first training.
WRITTEN_BEFORE = {
  "params": {**dataclasses.asdict(TINY), "vocab_size": 400, "r_drop_alpha": 0},
  "vocabulary": {"file": "v.model", "size": 400, "sha256": "ab" * 32},
  "batching": {"batch_size": 1024, "max_length": 50},
  "versions": {"tensorflow": "2.21.0"},
  "origin": {},
  "data": {},
}


@pytest.mark.parametrize(
  "description",
  [
    FULL,
    ModelDescription(FULL.params, JOINT),
    dataclasses.replace(FULL, form=TextForm("nfc", lowercase=True)),
    dataclasses.replace(FULL, lines=TrainedLines(40, 0.02)),
    dataclasses.replace(FULL, lines=TrainedLines(40)),
  ],
)
def test_what_is_written_is_read(description):
  assert ModelDescription.from_json(description.to_json()) == description


def test_what_is_written_keeps_its_form():
  content = FULL.to_json()
  assert content.keys() == WRITTEN_BEFORE.keys()
  assert content["vocabulary"] == WRITTEN_BEFORE["vocabulary"]
  assert content["data"]["fingerprint"] == "00ff"


def test_files_of_earlier_versions_are_read(caplog):
  found = ModelDescription.from_json(WRITTEN_BEFORE)
  assert found.batching == Batching(1024, 50)
  assert found.longest_piece == 50
  assert (found.origin, found.data) == (None, None)
  assert not caplog.messages
  params = {**WRITTEN_BEFORE["params"], "r_drop_alpha": 5.0}
  found = ModelDescription.from_json({**WRITTEN_BEFORE, "params": params})
  assert found.params == FULL.params
  assert "r_drop_alpha=5.0 is no longer supported" in caplog.text


@pytest.mark.parametrize(
  ("field", "value"),
  [
    ("params", {"depth": 3}),
    ("vocabulary", {"file": "v"}),
    ("vocabulary", {"file": 3, "size": 1, "sha256": "a"}),
    ("batching", {"colour": "blue"}),
    ("origin", {"step": 1}),
    ("data", {"pairs": 1}),
    ("versions", 3),
    ("vocabulary", {"file": "../v", "size": 400, "sha256": "a"}),
    ("vocabulary", {"file": "/etc/passwd", "size": 400, "sha256": "a"}),
    ("vocabulary", {"file": "", "size": 400, "sha256": "a"}),
    ("vocabulary", {"file": "..", "size": 400, "sha256": "a"}),
    ("vocabulary", {"file": "v", "size": 401, "sha256": "a"}),
    ("vocabulary", {"file": "v", "size": -1, "sha256": "a"}),
    ("vocabulary", {"file": "v", "size": True, "sha256": "a"}),
    ("params", {**WRITTEN_BEFORE["params"], "hidden_size": "32"}),
    ("params", {**WRITTEN_BEFORE["params"], "hidden_size": 32.0}),
    ("params", {**WRITTEN_BEFORE["params"], "hidden_size": True}),
    ("params", {**WRITTEN_BEFORE["params"], "beam_size": 10**9}),
    ("params", {**WRITTEN_BEFORE["params"], "hidden_size": 2**60}),
    ("params", {**WRITTEN_BEFORE["params"], "alpha": None}),
    ("params", [1]),
    ("batching", {"batch_size": 1024, "max_length": -5}),
    ("batching", {"batch_size": 1024, "max_length": 50, "batch_divisor": 0}),
    ("batching", {"batch_size": [1], "max_length": 50}),
    ("data", "all of it"),
    ("lines", {"usual": 0}),
    ("lines", {"usual_length": 9, "several_sentences": 2}),
    ("lines", [9]),
    ("flags", 9),
  ],
)
def test_anything_else_raises(field, value):
  with pytest.raises((ValueError, KeyError, TypeError, AttributeError)):
    ModelDescription.from_json({**WRITTEN_BEFORE, field: value})


def test_another_vocabulary_is_refused_with_both():
  FULL.check_vocabularies(JOINT, "v", "model")
  other = Vocabularies.joint(Vocabulary("w.model", 300, "cd" * 32))
  with pytest.raises(InputError, match=r"w has 300 .*cdcd.* with 400 .*abab"):
    FULL.check_vocabularies(other, "w", "model")


def test_each_side_may_have_a_vocabulary_of_its_own():
  other = Vocabulary("w.model", 300, "cd" * 32)
  own = Vocabularies(other, JOINT.source)
  params = dataclasses.replace(FULL.params, source_vocab_size=300)
  separate = dataclasses.replace(FULL, params=params, vocabularies=own)
  content = json.loads(json.dumps(separate.to_json()))
  assert ModelDescription.from_json(content) == separate
  with pytest.raises(InputError, match="has 400 .*trained with 300 .*400"):
    separate.check_vocabularies(JOINT, "v", "model")
  for rows in (0, 299):
    wrong = dataclasses.replace(params, source_vocab_size=rows)
    content["params"] = dataclasses.asdict(wrong)
    with pytest.raises(ValueError, match="rows"):
      ModelDescription.from_json(content)


def test_two_vocabularies_have_two_names():
  with pytest.raises(InputError, match="both named v.model, but differ"):
    Vocabularies(JOINT.source, Vocabulary("v.model", 300, "cd" * 32))


def test_data_with_something_left_out_may_be_the_same():
  whole = FULL.data
  assert dataclasses.replace(whole, pairs=599).may_be_part_of(whole)
  assert not dataclasses.replace(whole, pairs=601).may_be_part_of(whole)


def test_the_earlier_name_of_an_encoding_is_read():
  params = {**WRITTEN_BEFORE["params"], "positions": "marian"}
  found = ModelDescription.from_json({**WRITTEN_BEFORE, "params": params})
  assert found.params.positions == "huggingface"
  assert found.to_json()["params"]["positions"] == "huggingface"


@pytest.mark.parametrize(
  ("lines", "longest_piece", "splits"),
  [
    (None, 50, True),
    (TrainedLines(21), 21, True),
    (TrainedLines(2), 20, True),
    (TrainedLines(20, 0.29), 20, True),
    (TrainedLines(20, 0.3), 20, False),
  ],
)
def test_lines_decide_what_is_cut(lines, longest_piece, splits):
  description = dataclasses.replace(FULL, lines=lines)
  assert description.longest_piece == longest_piece
  assert description.splits_sentences == splits
