import json
import os

import command_line
import pytest

from data_prep.encoding.filters import FilterSettings, read_held_out
from data_prep.encoding.pair_encoder import PairCleaner
from data_prep.encoding.scratch import Scratch
from data_prep.encoding.splitting import split_corpus
from data_prep.reading.corpora import Corpus, Shares
from official_transformer.data.data_directory import read_description
from official_transformer.errors import InputError
from official_transformer.text.text_files import read_lines
from official_transformer.text.text_form import TextForm

SHARES = Shares(0.6, 0.2, 0.2)
PLAIN = TextForm()


def pairs_of(corpus):
  lines = [list(read_lines(path)) for path in corpus.paths]
  return list(zip(*lines, strict=True)) if lines else []


def write(corpus, pairs):
  for side, path in enumerate(corpus.paths):
    with open(path, "w", encoding="utf-8") as stream:
      stream.writelines(f"{pair[side]}\n" for pair in pairs)


@pytest.fixture
def corpus(tmp_path):
  """500 sources, each with two of 300 targets, which so come repeatedly."""
  corpus = Corpus([str(tmp_path / "s")], [str(tmp_path / "t")])
  write(
    corpus, [(f"source {n % 500}", f"target {n % 300}") for n in range(1000)]
  )
  return corpus


def split(corpus, directory, shares=SHARES, form=PLAIN, **filters):
  scratch = Scratch(str(directory), None)
  settings = FilterSettings(**filters)
  cleaner = PairCleaner(form, settings, read_held_out(settings.held_out, form))
  return split_corpus(corpus, shares, cleaner, scratch)


def test_equal_sentences_are_in_one_part(corpus, tmp_path):
  made = split(corpus, tmp_path / "made")
  dev, test = pairs_of(made.dev), pairs_of(made.test)
  assert 150 < len(test) < 250 and 0 < len(dev) < 250
  assert set(dev) | set(test) < set(pairs_of(corpus))
  in_dev = {side for pair in dev for side in pair}
  assert in_dev.isdisjoint(side for pair in test for side in pair)


def test_sentences_are_compared_in_the_form_of_the_data(corpus, tmp_path):
  pairs = [(f"source {n}", f"ziel {n}") for n in range(300)]
  write(corpus, [*pairs, *((s.upper(), t.title()) for s, t in pairs)])
  made = split(corpus, tmp_path / "made", form=TextForm(lowercase=True))
  dev, test = pairs_of(made.dev), pairs_of(made.test)
  assert any(source.isupper() for source, _ in test)  # As it was given.
  lowered = {side.lower() for pair in dev for side in pair}
  assert lowered.isdisjoint(side.lower() for pair in test for side in pair)


def test_pairs_that_are_dropped_are_in_no_part(corpus, tmp_path):
  with open(corpus.paths[0], "rb") as stream:
    lines = stream.readlines()
  with open(corpus.paths[0], "wb") as stream:
    stream.writelines(b"\xff" + line for line in lines[:500])
    stream.writelines(lines[500:])
  with pytest.raises(InputError, match="not UTF-8"):
    split(corpus, tmp_path / "refused")
  made = split(corpus, tmp_path / "made", invalid_utf8="drop")
  assert 150 < len(pairs_of(made.dev)) + len(pairs_of(made.test)) < 250


def test_pairs_stay_when_others_are_added(corpus, tmp_path):
  before = pairs_of(split(corpus, tmp_path / "before").test)
  write(
    corpus, [*pairs_of(corpus), *((f"new {n}", f"neu {n}") for n in range(99))]
  )
  after = pairs_of(split(corpus, tmp_path / "after").test)
  assert after[: len(before)] == before and len(after) > len(before)


@pytest.mark.parametrize("text", ["", "1", ".5,.6", "a,b", "0,1", ".5,.5,.1,0"])
def test_shares_are_checked(text):
  with pytest.raises(InputError, match="which add up to 1"):
    Shares.parse(text)


def test_a_part_without_pairs_is_refused(corpus, tmp_path):
  with pytest.raises(InputError, match=r"no pair for test\.source"):
    split(corpus, tmp_path / "made", Shares(0.5, 0.5 - 1e-9, 1e-9))


def test_the_command_trains_on_neither_part(corpus, tmp_path):
  pairs = tmp_path / "pairs"
  both = (f"{s}\t{t}\n" for s, t in pairs_of(corpus))
  pairs.write_text("".join(both), "utf-8")
  data = tmp_path / "data"
  prepare = (
    *(command_line.PREPARE, f"--data_dir={data}", "--vocab_size=60"),
    f"--train_pairs={pairs}",
  )
  command_line.succeed(*prepare, "--split=.8,.1,.1")
  names = {f"{p}.{s}" for p in ("dev", "test") for s in ("source", "target")}
  assert set(os.listdir(data / "split")) == names
  command_line.succeed(*prepare, "--split=.9,.1")
  found = read_description(str(data))
  text = data / "split" / "dev.source"
  assert found.dev.pairs == len(list(read_lines(str(text))))
  # These data train on sentences of the earlier test text.
  assert not (data / "split" / "test.source").exists()
  held_out = found.train.dropped["in held-out text"]
  assert held_out > found.dev.pairs  # And pairs that share a sentence.
  assert found.train.pairs == 1000 - held_out > 500
  said = command_line.fail(*prepare, "--split=.9,.1", f"--dev_pairs={pairs}")
  assert "leave out the one or the other" in said
  command_line.succeed(*prepare)
  assert not os.listdir(data / "split")
  content = json.loads((data / "data.json").read_text("utf-8"))
  assert "dev" not in content or not content["dev"]


def test_standard_input_is_held_out_of_training_too(corpus, tmp_path):
  lines = "".join(f"source {n}\n" for n in range(100))
  command_line.succeed(
    *(command_line.PREPARE, f"--data_dir={tmp_path / 'data'}"),
    *(f"--train_source={corpus.paths[0]}", f"--train_target={corpus.paths[1]}"),
    *("--vocab_size=60", "--split=.8,.1,.1", "--held_out=-"),
    stdin=lines,
  )
  split = tmp_path / "data" / "split"
  names = [f"{p}.{s}" for p in ("dev", "test") for s in ("source", "target")]
  made = {line for name in names for line in read_lines(str(split / name))}
  held_out = set(lines.splitlines())
  assert made and made.isdisjoint(held_out)
  found = read_description(str(tmp_path / "data"))
  assert found.train.pairs == sum(
    (made | held_out).isdisjoint(pair) for pair in pairs_of(corpus)
  )


def test_flags_of_words_alone_say_where_they_have_no_effect(corpus, tmp_path):
  done = command_line.succeed(
    *(command_line.PREPARE, f"--data_dir={tmp_path / 'data'}"),
    *(f"--train_source={corpus.paths[0]}", f"--train_target={corpus.paths[1]}"),
    *("--source_vocab_type=char", "--target_vocab_type=word"),
    *("--target_language=en", "--source_language=en"),
    "--sentencepiece_model_type=bpe",
  )
  for name in ("source_language", "sentencepiece_model_type"):
    assert f"--{name} has no effect" in done.stderr
  for language, said in (("zh", "no blanks"), ("English", "no language code")):
    assert said in command_line.fail(
      *(command_line.PREPARE, f"--data_dir={tmp_path / 'data'}"),
      *(f"--train_source={corpus.paths[0]}", "--vocab_type=word"),
      *(f"--train_target={corpus.paths[1]}", "--source_language=en"),
      f"--target_language={language}",
    )
