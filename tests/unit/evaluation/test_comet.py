import json
import pathlib
import stat
import sys

import pytest

from official_transformer.errors import InputError, RunError
from official_transformer.evaluation.comet import Comet

# Stands for comet-score: it takes what that takes, and scores a line by the
# share of its characters that its source has.
PROGRAM = f"""#!{sys.executable}
import argparse, json, os, sys
parser = argparse.ArgumentParser()
parser.add_argument("-s"), parser.add_argument("-t", nargs="+")
parser.add_argument("-r"), parser.add_argument("--model")
parser.add_argument("--gpus", type=int), parser.add_argument("--to_json")
for name in ("--quiet", "--only_system"):
  parser.add_argument(name, action="store_true")
given = parser.parse_args()
assert os.environ["HF_HUB_OFFLINE"] == "1"
if open(given.model).read() == "broken":
  sys.exit("OSError: cannot find xlm-roberta-large in the cache")
read = lambda path: [line.strip() for line in open(path).readlines()]
sources, references = read(given.s), read(given.r)
told = {{}}
for path in given.t:
  lines = read(path)
  assert len(lines) == len(sources) == len(references)
  name = "score" if "other" in lines[0] else "COMET"
  told[path] = [{{name: len(line) / 10}} for line in lines]
json.dump(told, open(given.to_json, "w"))
"""


@pytest.fixture
def comet(tmp_path):
  program = tmp_path / "comet-score"
  program.write_text(PROGRAM)
  program.chmod(program.stat().st_mode | stat.S_IXUSR)
  model = tmp_path / "model.ckpt"
  model.write_text("weights")
  return Comet(str(model), str(program))


def test_systems_are_scored_line_by_line(comet):
  comet.check()
  one, two = comet.score(
    ["a", "b\rc", ""], ["x", "y", "z"], [["ab", "abcd", ""], ["a", "a", "a"]]
  )
  assert one.model == "model.ckpt"
  assert one.lines == pytest.approx([0.2, 0.4, 0])
  assert one.score == pytest.approx(0.2)
  assert two.score == pytest.approx(0.1)
  json.dumps([one, two])


def test_what_is_missing_is_named(comet, tmp_path):
  with pytest.raises(InputError, match="pip install unbabel-comet"):
    comet._replace(command="no-such-program").check()
  with pytest.raises(InputError, match="no file"):
    comet._replace(model=str(tmp_path / "none.ckpt")).check()
  with pytest.raises(InputError, match=r"the \.ckpt file"):
    comet._replace(model=comet.command).check()


def test_its_failure_is_told_in_its_last_words(comet):
  pathlib.Path(comet.model).write_text("broken")
  with pytest.raises(RunError, match="cannot find xlm-roberta-large"):
    comet.score(["a"], ["b"], [["c"]])


def test_an_answer_of_another_kind_is_told(comet):
  with pytest.raises(RunError, match="other JSON than is known here"):
    comet.score(["a"], ["b"], [["other"]])
