import json

import tensorflow as tf

from official_transformer.training import endings as lib


def test_the_ids_are_kept_if_they_can_be(tmp_path, caplog):
  lines = (json.dumps({"batch": n}) + "\n" for n in (22, 23))
  path = tmp_path / "ids.jsonl"
  said = lib.keep_ids(str(path), lines, 12)
  assert said == f". The ids of step 12 are in {path}"
  assert path.read_text() == '{"batch": 22}\n{"batch": 23}\n'
  assert lib.keep_ids(str(tmp_path / "no" / "x"), iter([]), 12) == ""
  assert "cannot write" in caplog.text


def test_damaged_data_hide_no_error(tmp_path, caplog):
  def damaged():
    yield "{}"
    raise tf.errors.DataLossError(None, None, "corrupted record at 7")

  assert lib.keep_ids(str(tmp_path / "ids"), damaged(), 12) == ""
  assert "corrupted record at 7" in caplog.text
