import dataclasses
import errno
import io
import json
import os
import pathlib
import shutil
import threading

import filelock
import pytest

from data_prep.encoding.augmentation import Augmentation
from data_prep.encoding.filters import FilterSettings
from data_prep.encoding.preparation import prepare
from data_prep.reading.corpora import (
  Corpus,
  DataSettings,
  Shares,
  WantedVocabulary,
)
from official_transformer.data.data_directory import read_description
from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.errors import InputError, RunError
from official_transformer.storage import durable_files, file_system
from official_transformer.text.text_form import TextForm
from official_transformer.text.tokenizer import load_tokenizer

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


@pytest.mark.parametrize("nothing", ["\u200b", "\ufeff\ufeff", "\x02 \x03"])
def test_what_has_no_tokens_is_left_out_and_named(tmp_path, nothing):
  """Training would refuse it, and have the data prepared again for ever."""
  (tmp_path / "source").write_text(f"ein Hund\n{nothing}\nzwei\n" * 20, "utf-8")
  (tmp_path / "target").write_text(f"a dog\ntwo\n{nothing}\n" * 20, "utf-8")
  corpus = Corpus([str(tmp_path / "source")], [str(tmp_path / "target")])
  prepare(
    {"train": corpus}, DataSettings(str(tmp_path / "data"), vocab_size=40)
  )
  data = read_prepared_data(str(tmp_path / "data"), 40, with_dev=False)
  assert data.train.pairs == 20
  description = read_description(str(tmp_path / "data"))
  assert sum(description.train.dropped.values()) == 40
  assert set(description.train.dropped) <= {
    "source without tokens", "target without tokens",
  }  # fmt: skip


def test_text_without_any_token_is_refused(tmp_path, corpus):
  prepare({"train": corpus}, settings(tmp_path))
  (tmp_path / "none").write_text("\u200b\n" * 3, "utf-8")
  with pytest.raises(InputError, match="source without tokens.*of another"):
    prepare(
      {"train": Corpus([str(tmp_path / "none")], [str(tmp_path / "none")])},
      DataSettings(
        str(tmp_path / "other"),
        vocab_file=str(tmp_path / "data" / "vocab.60.model"),
      ),
    )


@pytest.mark.parametrize("vocab_type", ["subtoken", "sentencepiece"])
def test_blanks_at_either_end_make_no_tokens(tmp_path, vocab_type):
  """As upstream strips lines; in the midst they are what they are."""
  records = []
  for name, pattern in (("bare", "{}\n"), ("blank", " \t{} \u3000\n")):
    text = tmp_path / name
    lines = ["Hallo  Welt .", "ein Hund"] * 30
    text.write_text("".join(pattern.format(line) for line in lines), "utf-8")
    prepare(
      {"train": Corpus([str(text)], [str(text)])},
      DataSettings(str(tmp_path / f"{name}_data"), vocab_type, 40, shards=1),
    )
    path = tmp_path / f"{name}_data" / "text-train-00001-of-00001"
    records.append(path.read_bytes())
  assert records[0] == records[1]


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


def test_an_earlier_split_is_not_removed_while_it_is_read(tmp_path, corpus):
  split = settings(tmp_path, split=Shares(0.8, 0.1, 0.1))
  prepare({"train": corpus}, split)
  text = tmp_path / "data" / "split"
  before = contents(text)
  dev = Corpus([str(text / "dev.source")], [str(text / "dev.target")])
  held_out = FilterSettings(held_out=(str(text / "test.source"),))
  for corpora, changes in (
    ({"train": corpus, "dev": dev}, {}),
    ({"train": corpus}, {"filters": held_out}),
  ):
    with pytest.raises(InputError, match="copy it to another directory"):
      prepare(corpora, settings(tmp_path, **changes))
    assert contents(text) == before
  prepare({"train": corpus}, settings(tmp_path))
  assert not contents(text)


@pytest.mark.parametrize(
  "prefixes", [("x", "x-y"), ("x-y", "x"), ("x-train", "x")]
)
def test_data_of_another_prefix_are_not_replaced(tmp_path, corpus, prefixes):
  first, second = prefixes
  prepare({"train": corpus}, settings(tmp_path, prefix=first))
  before = contents(tmp_path / "data")
  with pytest.raises(InputError, match=f"other data, such as {first}-train"):
    prepare({"train": corpus}, settings(tmp_path, prefix=second))
  assert contents(tmp_path / "data") == before


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
  with pytest.raises(InputError, match="of the train text is left"):
    prepare({"train": nothing}, settings(tmp_path))
  with pytest.raises(InputError, match="of the dev text is left"):
    prepare({"train": corpus, "dev": nothing}, settings(tmp_path))
  strict = FilterSettings(duplicates=True, max_tokens=1)
  with pytest.raises(InputError, match="of the train text is left"):
    prepare({"train": corpus}, settings(tmp_path, filters=strict))


def no_room(*_, **__):
  raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
  "breaking",
  [
    "local_engine.write_block",
    "local_engine.ShuffledCorpus.write_shard",
    "making.copy_file",
    "making.write_description",
  ],
)
def test_a_full_disk_leaves_earlier_data_and_is_gone_on_from(
  tmp_path, corpus, monkeypatch, breaking
):
  data = tmp_path / "data"
  wanted = settings(
    tmp_path, augmentation=Augmentation(typos=0.5, merge=0.1, passes=2)
  )
  prepare({"train": corpus, "dev": corpus}, wanted)
  undisturbed = contents(data)
  shutil.rmtree(data)
  prepare({"train": corpus, "dev": corpus}, settings(tmp_path, shards=2))
  os.remove(data / "vocab.60.model")
  before = contents(data)

  with monkeypatch.context() as patched:
    patched.setattr(f"data_prep.encoding.{breaking}", no_room)
    with pytest.raises(RunError, match="Earlier data are as they were"):
      prepare({"train": corpus, "dev": corpus}, wanted)
  shutil.copytree(data / "preparation.incomplete", tmp_path / "aside")
  shutil.rmtree(data / "preparation.incomplete")
  assert contents(data) == before
  shutil.move(tmp_path / "aside", data / "preparation.incomplete")
  # What it had done is not done again.
  with monkeypatch.context() as patched:
    patched.setattr(
      "data_prep.encoding.vocabularies.train_sentencepiece", no_room
    )
    prepare({"train": corpus, "dev": corpus}, wanted)
  assert contents(data) == undisturbed


@pytest.mark.parametrize("moved", [0, 1, 4])
def test_a_run_that_ends_amid_publishing_is_gone_on_with(
  tmp_path, corpus, monkeypatch, moved
):
  data = tmp_path / "data"
  prepare({"train": corpus, "dev": corpus}, settings(tmp_path, shards=2))
  undisturbed = contents(data)
  shutil.rmtree(data)
  prepare({"train": corpus, "dev": corpus}, settings(tmp_path, seed=7))
  renamed = []

  def move(path, directory):
    if len(renamed) == moved:
      raise KeyboardInterrupt
    renamed.append(path)
    os.replace(path, os.path.join(directory, os.path.basename(path)))

  with monkeypatch.context() as patched:
    patched.setattr("data_prep.encoding.making._move", move)
    with pytest.raises(KeyboardInterrupt):
      prepare({"train": corpus, "dev": corpus}, settings(tmp_path, shards=2))
  # Nobody takes one run's shards for another's.
  assert not (data / "data.json").exists()
  prepare({"train": corpus, "dev": corpus}, settings(tmp_path, shards=2))
  assert contents(data) == undisturbed


def test_other_input_is_begun_anew(tmp_path, corpus, monkeypatch):
  def fail(*_, **__):
    raise OSError("No space left on device")

  with monkeypatch.context() as patched:
    patched.setattr("data_prep.encoding.local_engine.write_block", fail)
    with pytest.raises(OSError, match="No space"):
      prepare({"train": corpus}, settings(tmp_path))
  with open(tmp_path / "source", "a", encoding="utf-8") as stream:
    stream.write("ein\n")
  with open(tmp_path / "target", "a", encoding="utf-8") as stream:
    stream.write("alpha\n")
  prepare({"train": corpus}, settings(tmp_path))
  assert read_description(str(tmp_path / "data")).train.pairs == 65


def contents(directory):
  return {p.name: p.read_bytes() for p in directory.iterdir() if p.is_file()}


def test_the_data_do_not_depend_on_the_workers(tmp_path, monkeypatch):
  from data_prep.reading import text_blocks

  monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 500)
  monkeypatch.setattr("data_prep.encoding.local_engine._FEW_BYTES", 0)
  lines = [f"{a} {b} {c}" for a in WORDS for b in WORDS for c in WORDS]
  text = write(tmp_path / "text", [*lines, *lines[:7]])
  filters = FilterSettings(duplicates=True, max_tokens=6)
  found = []
  for workers in (1, 2):
    directory = tmp_path / str(workers)
    made = DataSettings(
      *(str(directory), "sentencepiece", 60),
      filters=filters,
      workers=workers,
    )
    prepare({"train": Corpus([text], [text])}, made)
    found.append(contents(directory))
  assert found[0] == found[1]
  description = read_description(str(tmp_path / "1"))
  assert description.train.dropped["duplicate"] == 7
  assert description.filters == {"duplicates": True, "max_tokens": 6}


def test_two_runs_at_a_time_are_refused(tmp_path, corpus):
  (tmp_path / "data").mkdir()
  lock = filelock.FileLock(tmp_path / "data" / "preparation.incomplete.lock")
  with lock, pytest.raises(InputError, match="another run, .*, prepares"):
    prepare({"train": corpus}, settings(tmp_path))
  prepare({"train": corpus}, settings(tmp_path))


def test_standard_input_is_read_once(tmp_path, corpus, monkeypatch):
  pairs = "".join(f"{a} {b}\t{b} {a}\n" for a in WORDS for b in WORDS)
  stdin = io.TextIOWrapper(io.BytesIO(pairs.encode()))
  monkeypatch.setattr("sys.stdin", stdin)
  prepare({"train": Corpus(pairs=["-"])}, settings(tmp_path))
  assert read_description(str(tmp_path / "data")).train.pairs == 64


def test_a_form_is_kept_with_the_data_and_applied(tmp_path):
  text = write(tmp_path / "text", ["STRASSE Cafe\u0301", "\u2121 Ein"] * 40)
  plain = write(tmp_path / "plain", ["strasse caf\u00e9", "tel ein"] * 40)
  form = TextForm("nfkc", lowercase=True)
  shards = []
  for name, path, form_of in (("a", text, form), ("b", plain, TextForm())):
    directory = str(tmp_path / name)
    prepare(
      {"train": Corpus([path], [path])},
      DataSettings(directory, vocab_size=40, shards=1, form=form_of),
    )
    assert read_description(directory).form == form_of
    shards.append(contents(tmp_path / name)["text-train-00001-of-00001"])
  assert shards[0] == shards[1]


def test_a_corpus_needs_both_sides(tmp_path, corpus):
  one_sided = Corpus(corpus.sources, [])
  with pytest.raises(InputError, match="names 1 files and --train_target 0"):
    prepare({"train": one_sided}, settings(tmp_path))
  with pytest.raises(InputError, match="--train_source and --train_target"):
    prepare({}, settings(tmp_path))
  missing = Corpus(["/nowhere"], corpus.targets)
  with pytest.raises(InputError, match="no file /nowhere"):
    prepare({"train": missing}, settings(tmp_path))


def test_pipes_are_read_once(tmp_path, corpus):
  paths = [tmp_path / "a" / "b", tmp_path / "a-b"]
  paths[0].parent.mkdir()
  contents_of = [
    pathlib.Path(corpus.sources[0]),
    pathlib.Path(corpus.targets[0]),
  ]
  writers = []
  for path, source in zip(paths, contents_of, strict=True):
    os.mkfifo(path)
    writers.append(
      threading.Thread(target=path.write_bytes, args=(source.read_bytes(),))
    )
  for writer in writers:
    writer.start()
  pipes = Corpus([str(paths[0])], [str(paths[1])])
  prepare({"train": pipes}, settings(tmp_path))
  for writer in writers:
    writer.join()
  found = contents(tmp_path / "data")
  prepare({"train": corpus}, DataSettings(str(tmp_path / "b"), vocab_size=60))
  assert found == contents(tmp_path / "b")


def test_what_is_held_out_may_be_development_data(tmp_path, corpus):
  lines = ["ein zwei ein zwei", "drei vier drei vier"] * 2
  dev = write(tmp_path / "dev", lines)
  filters = FilterSettings(held_out=(dev,), duplicates=True)
  corpora = {"train": corpus, "dev": Corpus([dev], [dev])}
  prepare(corpora, settings(tmp_path, filters=filters))
  description = read_description(str(tmp_path / "data"))
  assert description.dev.pairs == 4
  assert description.train.dropped["in held-out text"] == 2


def test_after_a_crash_of_the_machine_all_begins_anew(
  tmp_path, corpus, monkeypatch
):
  """What a block holds may not have reached the disk, though its name has."""

  def fail(*_, **__):
    raise OSError("No space left on device")

  with monkeypatch.context() as patched:
    patched.setattr(
      "data_prep.encoding.local_engine.ShuffledCorpus.join_indices", fail
    )
    with pytest.raises(OSError, match="No space"):
      prepare({"train": corpus}, settings(tmp_path))
  scratch = tmp_path / "data" / "preparation.incomplete"
  (scratch / "train-000000").write_bytes(b"")
  monkeypatch.setattr(
    "data_prep.encoding.preparation._start_of_system", lambda: "later"
  )
  prepare({"train": corpus}, settings(tmp_path))
  prepare({"train": corpus}, DataSettings(str(tmp_path / "b"), vocab_size=60))
  assert contents(tmp_path / "data") == contents(tmp_path / "b")


def test_an_upload_that_fails_leaves_earlier_data(tmp_path, corpus):
  """A store that TensorFlow reaches, and this machine's disk beside it."""
  data = tmp_path / "store" / "data"
  remote = dataclasses.replace(
    settings(tmp_path, shards=2), data_dir=f"file://{data}"
  )
  prepare({"train": corpus}, remote)
  before = contents(data)
  assert "data.json" in before and "text-train-00002-of-00002" in before

  uploads = []

  def copy(source, path):
    uploads.append(path)
    if len(uploads) == 2:
      raise OSError(errno.EIO, "the store is gone")
    durable_files.copy_file(source, path)

  with pytest.MonkeyPatch.context() as patched:
    patched.setattr("data_prep.encoding.local_engine.copy_file", copy)
    with pytest.raises(OSError, match="the store is gone"):
      prepare({"train": corpus}, dataclasses.replace(remote, seed=7))
  assert contents(data) == before
  prepare({"train": corpus}, dataclasses.replace(remote, seed=7))
  assert sorted(contents(data)) == sorted(before)
  assert contents(data) != before


def test_a_kill_while_the_scratch_is_removed_leaves_no_half(
  tmp_path, corpus, monkeypatch
):
  """What is left is not gone on with."""
  given = settings(tmp_path)

  left = tmp_path / "data" / "preparation.incomplete"

  def killed(directory):
    if os.path.exists(directory):
      raise KeyboardInterrupt

  with monkeypatch.context() as patched:
    patched.setattr(file_system, "remove_tree", killed)
    with pytest.raises(KeyboardInterrupt):
      prepare({"train": corpus}, given)
  (left / "train-000000").unlink()
  prepare({"train": corpus}, given)
  assert not left.exists()


def test_each_side_has_a_vocabulary_of_its_own_kind(tmp_path, corpus):
  separate = (
    WantedVocabulary(60, vocab_type="char"),
    WantedVocabulary(vocab_type="word", language="de"),
  )
  made = settings(tmp_path, separate=separate, min_frequency=5, shards=1)
  prepare({"train": corpus}, made)
  names = sorted(n for n in os.listdir(tmp_path / "data") if "vocab" in n)
  assert names == ["vocab.source.60.model", "vocab.target.words"]
  source, target = (
    load_tokenizer(str(tmp_path / "data" / name)) for name in names
  )
  assert source.pieces(source.encode("ein"))[-3:] == ["e", "i", "n"]
  # Each word is in 16 lines, twice in each.
  assert sorted(target.words[3:]) == sorted(WORDS)
