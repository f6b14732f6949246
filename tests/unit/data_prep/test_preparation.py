import json
import os
import shutil

import pytest

from data_prep.preparation import Corpus, DataSettings, prepare
from official_transformer.data.tokenizer import load_tokenizer
from official_transformer.errors import InputError

WORDS = "ein zwei drei vier alpha beta gamma delta".split()


def write(path, lines):
  path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
  return str(path)


@pytest.fixture
def corpus(tmp_path):
  lines = [f"{a} {b} {a} {b}" for a in WORDS for b in WORDS]
  return Corpus(
    [write(tmp_path / "source", [*lines, "", "x"])],
    [write(tmp_path / "target", [*lines, "nothing", " "])],
  )


def settings(tmp_path, **changes):
  return DataSettings(str(tmp_path / "data"), vocab_size=60, **changes)


@pytest.mark.parametrize("vocab_type", ["sentencepiece", "subtoken"])
def test_data_directory_is_complete(tmp_path, corpus, vocab_type):
  made = settings(tmp_path, vocab_type=vocab_type, shards=2)
  prepare({"train": corpus, "dev": corpus}, made)
  with open(tmp_path / "data" / "data.json", encoding="utf-8") as stream:
    description = json.load(stream)
  vocabulary = description["vocabulary"]
  tokenizer = load_tokenizer(str(tmp_path / "data" / vocabulary["file"]))
  assert tokenizer.vocab_size == vocabulary["size"]
  assert len(vocabulary["sha256"]) == 64
  for tag in ("train", "dev"):
    part = description[tag]
    assert part["pairs"] == 64 == sum(part["length_histogram"].values())
    assert part["dropped"] == {"empty source": 1, "empty target": 1}
    assert part["source_tokens"] >= 5 * 64
  assert sorted(os.listdir(tmp_path / "data")) == sorted(
    [
      "data.json",
      vocabulary["file"],
      "text-dev-00001-of-00001",
      "text-train-00001-of-00002",
      "text-train-00002-of-00002",
    ]
  )


@pytest.mark.parametrize("vocab_type", ["sentencepiece", "subtoken"])
def test_equal_texts_give_equal_data_wherever_they_lie(
  tmp_path, corpus, vocab_type
):
  contents = []
  for name in ("one", "two"):
    directory = tmp_path / name
    prepare(
      {"train": corpus},
      DataSettings(str(directory), vocab_type, vocab_size=60, shards=2),
    )
    contents.append({p.name: p.read_bytes() for p in directory.iterdir()})
  assert contents[0] == contents[1]


def test_a_second_run_leaves_no_shard_of_the_first(tmp_path, corpus):
  prepare({"train": corpus, "dev": corpus}, settings(tmp_path, shards=4))
  prepare({"train": corpus}, settings(tmp_path, shards=2))
  shards = [n for n in os.listdir(tmp_path / "data") if n.startswith("text-")]
  assert sorted(shards) == [
    "text-train-00001-of-00002",
    "text-train-00002-of-00002",
  ]


def test_nothing_of_the_users_is_removed(tmp_path, corpus):
  data_dir = tmp_path / "data"
  data_dir.mkdir()
  paths = [data_dir / f"text-train-{side}.txt" for side in ("en", "de")]
  for path, source in zip(
    paths, (corpus.sources[0], corpus.targets[0]), strict=True
  ):
    shutil.copyfile(source, path)
  own = Corpus([str(paths[0])], [str(paths[1])])
  prepare({"train": own}, settings(tmp_path))
  assert all(path.exists() for path in paths)


def test_what_is_no_vocabulary_replaces_nothing(tmp_path, corpus):
  prepare({"train": corpus}, settings(tmp_path))
  made = tmp_path / "data" / "vocab.60.model"
  before = made.read_bytes()
  (tmp_path / "vocab.60.model").write_text("no vocabulary")
  with pytest.raises(InputError, match="neither a SentencePiece model nor"):
    prepare(
      {"train": corpus},
      settings(tmp_path, vocab_file=str(tmp_path / "vocab.60.model")),
    )
  assert made.read_bytes() == before
  assert (tmp_path / "data" / "data.json").exists()


def test_an_existing_vocabulary_is_used(tmp_path, corpus):
  prepare({"train": corpus}, settings(tmp_path))
  made = str(tmp_path / "data" / "vocab.60.model")
  other = DataSettings(str(tmp_path / "other"), vocab_file=made)
  prepare({"train": corpus}, other)
  with (
    open(made, "rb") as one,
    open(tmp_path / "other" / "vocab.60.model", "rb") as two,
  ):
    assert one.read() == two.read()


@pytest.mark.parametrize("longer", ["source", "target"])
def test_different_line_counts_name_both(tmp_path, corpus, longer):
  with open(tmp_path / longer, "a", encoding="utf-8") as stream:
    stream.write("one more\nand another\n")
  counts = (68, 66) if longer == "source" else (66, 68)
  with pytest.raises(
    InputError, match=f"source has {counts[0]} lines and .*target {counts[1]}"
  ):
    prepare({"train": corpus}, settings(tmp_path))


def test_a_corpus_without_a_usable_pair_is_refused(tmp_path, corpus):
  empty = write(tmp_path / "empty", ["", ""])
  nothing = Corpus([empty], [empty])
  with pytest.raises(InputError, match="--train_source.*is left"):
    prepare({"train": nothing}, settings(tmp_path))
  with pytest.raises(InputError, match="--dev_source.*is left"):
    prepare({"train": corpus, "dev": nothing}, settings(tmp_path))


def test_a_run_that_breaks_off_leaves_no_description(
  tmp_path, corpus, monkeypatch
):
  prepare({"train": corpus}, settings(tmp_path))

  def fail(*_, **__):
    raise OSError("No space left on device")

  monkeypatch.setattr("data_prep.preparation.write_shards", fail)
  with pytest.raises(OSError, match="No space"):
    prepare({"train": corpus}, settings(tmp_path))
  assert not (tmp_path / "data" / "data.json").exists()


def test_a_corpus_needs_both_sides(tmp_path, corpus):
  one_sided = Corpus(corpus.sources, [])
  with pytest.raises(InputError, match="names 1 files and --train_target 0"):
    prepare({"train": one_sided}, settings(tmp_path))
  with pytest.raises(InputError, match="--train_source and --train_target"):
    prepare({}, settings(tmp_path))
  missing = Corpus(["/nowhere"], corpus.targets)
  with pytest.raises(InputError, match="no file /nowhere"):
    prepare({"train": missing}, settings(tmp_path))
