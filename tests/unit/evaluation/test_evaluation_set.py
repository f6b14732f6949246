import pytest

from official_transformer.errors import InputError
from official_transformer.evaluation.evaluation_set import EvaluationSet
from official_transformer.evaluation.metrics import References
from official_transformer.evaluation.scores import IN_TRAINING, score
from official_transformer.model_directory.directory import ModelDirectory


def write(path, text):
  path.write_text(text, encoding="utf-8")
  return str(path)


class Echo:
  """Translates a line into itself."""

  def translate(self, lines):
    return list(lines)


def test_reading_evaluating_and_keeping(tmp_path):
  text = "the cat sat on the mat .\n\na dog ran home today .\n"
  evaluation_set = EvaluationSet.read(
    write(tmp_path / "source", text), write(tmp_path / "reference", text)
  )
  found = evaluation_set.evaluate(Echo(), IN_TRAINING)
  scores = found.scores
  assert scores.uncased == scores.cased == pytest.approx(100)
  assert scores.scalars()["sacrebleu_BLEU"] == pytest.approx(100)
  assert "Case-insensitive results: 100.0" in scores.report()
  assert "Case-insensitive" not in scores.report(["cased"])
  path = found.write(ModelDirectory(str(tmp_path)), "step-1")
  assert path == str(tmp_path / "translations" / "step-1.txt")
  with open(path, encoding="utf-8") as stream:
    assert stream.read() == text
  kept = tmp_path / "translations" / "step-1.scores.txt"
  assert kept.read_text() == scores.report() + "\n"
  assert evaluation_set.samples(found.translations, 2) == [
    (line, line, line) for line in text.split("\n")[:2]
  ]


def test_a_score_of_zero_is_a_score(tmp_path):
  result = score(References([["a b c d"]]), [""], IN_TRAINING)
  assert result.uncased == 0.0
  assert "Case-insensitive results: 0.000000" in result.report()


def test_what_does_not_match_is_refused(tmp_path):
  two = write(tmp_path / "two", "a\nb\n")
  one = write(tmp_path / "one", "a\n")
  empty = write(tmp_path / "empty", "")
  with pytest.raises(InputError, match=r"two has 2 lines and .*one 1"):
    EvaluationSet.read(two, one)
  with pytest.raises(InputError, match="empty"):
    EvaluationSet.read(empty, empty)


def test_digests_tell_sets_apart():
  digests = [
    EvaluationSet(sources, references).digest()
    for sources, references in (
      (["a", "b"], ["c", "d"]),
      (["b", "a"], ["c", "d"]),
      (["a", "b"], ["c", "e"]),
      (["c", "d"], ["a", "b"]),
    )
  ]
  assert len(set(digests)) == 4
  assert EvaluationSet(["a", "b"], ["c", "d"]).digest() == digests[0]
