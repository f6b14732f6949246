import os
import time

import command_line
import pytest

from data_prep.reading.corpora import Corpus
from data_prep.reading.splitting import Shares, split_corpus
from official_transformer.data.data_directory import read_description
from official_transformer.errors import InputError
from official_transformer.text.text_files import read_lines

SHARES = Shares(0.6, 0.2, 0.2)


def pairs_of(corpus):
  lines = [list(read_lines(path)) for path in corpus.paths]
  return list(zip(*lines, strict=True)) if lines else []


@pytest.fixture
def corpus(tmp_path):
  """500 sources, each with two of 300 targets, which so come repeatedly."""
  pairs = [(f"source {n % 500}", f"target {n % 300}") for n in range(1000)]
  for side, name in enumerate(("s", "t")):
    text = "".join(f"{pair[side]}\n" for pair in pairs)
    (tmp_path / name).write_text(text, "utf-8")
  return Corpus([str(tmp_path / "s")], [str(tmp_path / "t")])


def test_equal_sentences_are_in_one_part(corpus, tmp_path):
  made = split_corpus(corpus, SHARES, str(tmp_path / "data"))
  dev, test = pairs_of(made.dev), pairs_of(made.test)
  assert 150 < len(test) < 250 and 0 < len(dev) < 250
  assert set(dev) | set(test) < set(pairs_of(corpus))
  in_dev = {side for pair in dev for side in pair}
  assert in_dev.isdisjoint(side for pair in test for side in pair)


def test_pairs_stay_when_others_are_added(corpus, tmp_path):
  before = pairs_of(split_corpus(corpus, SHARES, str(tmp_path / "data")).test)
  for path, more in zip(corpus.paths, ("new source", "new"), strict=True):
    with open(path, "a", encoding="utf-8") as stream:
      stream.writelines(f"{more} {n}\n" for n in range(100))
  after = pairs_of(split_corpus(corpus, SHARES, str(tmp_path / "data")).test)
  assert after[: len(before)] == before and len(after) > len(before)


def test_equal_files_are_not_written_again(corpus, tmp_path):
  directory = str(tmp_path / "data")

  def states():
    return [os.stat(p) for p in split_corpus(corpus, SHARES, directory).files]

  before = states()
  time.sleep(0.01)
  assert [s.st_mtime_ns for s in before] == [s.st_mtime_ns for s in states()]


@pytest.mark.parametrize("text", ["", "1", ".5,.6", "a,b", "0,1", ".5,.5,.1,0"])
def test_shares_are_checked(text):
  with pytest.raises(InputError, match="which add up to 1"):
    Shares.parse(text)


def test_pipes_and_empty_parts_are_refused(corpus, tmp_path):
  directory = str(tmp_path / "data")
  with pytest.raises(InputError, match="is no file"):
    split_corpus(Corpus(["-"], corpus.targets), SHARES, directory)
  with pytest.raises(InputError, match=r"no pair for test\.source"):
    split_corpus(corpus, Shares(0.5, 0.5 - 1e-9, 1e-9), directory)


def test_the_command_trains_on_neither_part(corpus, tmp_path):
  pairs = tmp_path / "pairs"
  both = (f"{s}\t{t}\n" for s, t in pairs_of(corpus))
  pairs.write_text("".join(both), "utf-8")
  data = tmp_path / "data"
  prepare = (
    *(command_line.PREPARE, f"--data_dir={data}", "--vocab_size=60"),
    f"--train_pairs={pairs}",
  )
  command_line.succeed(*prepare, "--split=.9,.1")
  found = read_description(str(data))
  assert found.dev.pairs == len(list(read_lines(str(data / "dev.source"))))
  assert not (data / "test.source").exists()
  held_out = found.train.dropped["in held-out text"]
  assert held_out > found.dev.pairs  # And pairs that share a sentence.
  assert found.train.pairs == 1000 - held_out > 500
  said = command_line.fail(*prepare, "--split=.9,.1", f"--dev_pairs={pairs}")
  assert "leave out the one or the other" in said
