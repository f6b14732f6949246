"""`check_data` on text and on prepared data, sound and damaged."""

import gzip
import pathlib
import re
import shutil
import struct

import command_line
import pytest
from command_line import CHECK, PREPARE, fail, succeed

from official_transformer.text.tokenizer import train_sentencepiece

ODD = [
  ("a dog runs", "ein Hund rennt"),
  ("", "nichts"),
  ("nothing", " "),
  ("a dog runs", "ein Hund rennt"),
  ("a dog runs", "der Hund l\u00e4uft"),
  ("same", "same"),
  ("a bell\x07", "eine Glocke"),
  ("two\u2028lines", "zwei\x85Zeilen"),
  ("\u0441\u043e\u0431\u0430\u043a\u0430", "ein Hund"),
  ("held out", "zur\u00fcckgehalten"),
]


def write(path, lines):
  path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
  return str(path)


@pytest.fixture
def text(tmp_path, demo_text):
  """The demo corpus, with oddities after it."""
  pairs = [
    (demo_text / f"train.{x}").read_text("utf-8").splitlines()
    for x in ("en", "de")
  ]
  flags = [
    f"--{tag}_{side}={write(tmp_path / f'{tag}.{side}', lines)}"
    for side, lines, odd in zip(
      ("source", "target"), pairs, zip(*ODD, strict=True), strict=True
    )
    for tag, lines in (
      ("train", [*lines, *odd]),
      ("dev", ["held out" if side == "source" else "etwas \u014fderes"]),
    )
  ]
  return [*flags, "--vocab_sizes=200,400", "--sample=500"]


def shown(said, name):
  """Returns the number of pairs in a row of the table of filters."""
  (row,) = [
    line for line in said.splitlines() if line.strip().startswith(name + "  ")
  ]
  return int(row.replace(name, "", 1).split()[0])


def test_utf16_is_named_with_its_remedy(tmp_path):
  flags = []
  for side, encoding in (("source", "utf-16-le"), ("target", "utf-16-be")):
    path = tmp_path / side
    path.write_bytes("a dog runs\nand a cat sleeps\n".encode(encoding))
    flags.append(f"--train_{side}={path}")
  done = command_line.run(CHECK, *flags)
  assert done.status == 1
  said = done.stdout
  for side, order in (("source", "LE"), ("target", "BE")):
    assert f"{side}, line 1: Every other byte is NUL: this is UTF-16" in said
    assert f"iconv -f UTF-16{order} -t UTF-8" in said
  said = fail(PREPARE, *flags, f"--data_dir={tmp_path}/data")
  assert "source, line 1: Every other byte is NUL" in said


def test_lines_that_a_form_would_change_are_counted(text):
  said = succeed(CHECK, *text).stdout
  assert "--normalize=nfkc would change" not in said
  with open(text[0].partition("=")[2], "a", encoding="utf-8") as stream:
    stream.write("你好，世界！\nfu\u0308nf\n")
  with open(text[2].partition("=")[2], "a", encoding="utf-8") as stream:
    stream.write("eins\nzwei\n")
  said = succeed(CHECK, *text).stdout
  assert "--normalize=nfc would change 1 lines" in said
  assert "--normalize=nfkc would change 2 lines" in said


def test_each_oddity_is_counted(text):
  done = succeed(CHECK, *text)
  train, dev = done.stdout.split("\ndev: ")
  for name, count in {
    "empty source": 1,
    "empty target": 1,
    "identical sides": 1,
    "control characters": 2,  # U+0085 is one, too.
    "--source_script=latin": 1,
    "in held-out text": 1,
    "duplicate": 1,
  }.items():
    assert shown(train, name) == count, name
  assert "U+2028 LINE SEPARATOR in 1 lines" in train
  assert "U+0085 NEXT LINE in 1 lines" in train
  assert "pairs whose source has come before: " in train
  assert "in it: 1 of 2 different ones" in train
  assert "target: 1, 1 times: \u014f" in dev
  assert "Nothing here would break a training." in dev
  assert "most unequal pairs" in dev


def test_the_report_does_not_depend_on_the_workers(text, monkeypatch):
  from data_prep.reading import text_blocks

  monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 3000)
  one, two = (succeed(CHECK, *text, f"--workers={n}").stdout for n in (1, 2))
  assert one == two


def test_what_would_break_a_training_is_told(text, tmp_path):
  source = tmp_path / "train.source"
  whole = source.read_bytes()
  source.write_bytes(whole.replace(b"a dog runs\n", b"a dog \xff\n"))
  done = command_line.run(CHECK, *text)
  assert done.status == 1
  assert "PROBLEM: 3 lines of the source are not UTF-8" in done.stdout
  assert f"{source}, line 601; {source}, line 604" in done.stdout
  source.write_bytes(whole + b"one more\n")
  done = command_line.run(CHECK, *text)
  assert done.status == 1
  assert "has 611 lines and" in done.stdout
  source.write_bytes(b"\n" * 610)
  done = command_line.run(CHECK, *text)
  assert done.status == 1
  assert "no pair has text on both sides" in done.stdout
  source.write_bytes(whole)
  done = command_line.run(CHECK, *text[:4], "--vocab_sizes=32")
  assert done.status == 1
  assert "its characters alone are" in done.stdout
  packed = gzip.compress(whole)[:-20]
  (tmp_path / "cut.gz").write_bytes(packed)
  done = command_line.run(CHECK, f"--train_source={tmp_path}/cut.gz", *text[1:])
  assert done.status == 1
  assert "is not a whole .gz file" in done.stdout


def test_mistakes_cost_one_line(text, tmp_path, demo_data):
  assert "name text" in fail(CHECK)
  assert "name text" in fail(CHECK, *text, f"--data_dir={demo_data}")
  assert "no number of entries" in fail(CHECK, *text, "--vocab_sizes=8k")
  assert "there is no file" in fail(CHECK, *text, f"--dev_source={tmp_path}/x")
  assert "save it in a file" in fail(CHECK, "--train_pairs=-")
  assert "no data.json" in fail(CHECK, f"--data_dir={tmp_path}")


def test_what_is_tried_is_as_it_will_be(text, demo_data, tmp_path):
  vocabulary = demo_data / "vocab.400.model"
  done = succeed(CHECK, *text[:4], f"--vocab_file={vocabulary}", "--lowercase")
  assert "\n  400 " in done.stdout
  assert "lengths by the vocabulary of 400 entries" in done.stdout
  done = succeed(CHECK, *text[:4], "--vocab_sizes=")
  assert "vocabular" not in done.stdout
  done = command_line.run(CHECK, *text, "--max_tokens=2")
  assert done.status == 1
  assert "every pair has a side of over 2 tokens" in done.stdout
  said = fail(CHECK, f"--data_dir={demo_data}", "--sample=3")
  assert "--sample: for text" in said
  said = fail(CHECK, *text, "--plot_dir=/dev/null/x", status=1)
  assert "Not a directory" in said


def test_overlap_is_seen_in_pairs_too(tmp_path):
  lines = [f"a dog{n}\tein Hund{n}" for n in range(60)]
  train = write(tmp_path / "train", lines)
  dev = write(tmp_path / "dev", lines[:5])
  done = succeed(
    *(CHECK, f"--train_pairs={train}", f"--dev_pairs={dev}"), "--vocab_sizes=50"
  )
  assert "in it: 10 of 10 different ones" in done.stdout


def test_japanese_is_known_by_its_syllables(tmp_path):
  lines = ["\u79c1\u306f\u72ac\u304c\u597d\u304d\u3067\u3059"] * 30
  source, target = (write(tmp_path / x, lines) for x in "ab")
  done = succeed(
    *(CHECK, f"--train_source={source}", f"--train_target={target}"),
    "--vocab_sizes=",
  )
  assert "script" not in done.stdout.split("leave out")[1]


def test_prepared_data(demo_data, tmp_path):
  done = succeed(CHECK, f"--data_dir={demo_data}")
  assert "train: 600 pairs in 2 shards" in done.stdout
  assert "dev: 40 pairs in 1 shards" in done.stdout
  assert "of which <unk> 0.0000%" in done.stdout
  assert "longest pairs" in done.stdout
  damaged = tmp_path / "data"
  shutil.copytree(demo_data, damaged)
  shard = sorted(pathlib.Path(damaged).glob("*train*"))[0]
  content = bytearray(shard.read_bytes())
  content[len(content) // 2] ^= 0xFF
  shard.write_bytes(content)
  done = command_line.run(CHECK, f"--data_dir={damaged}")
  assert done.status == 1
  assert f"{shard}, record" in done.stdout
  missing = next(pathlib.Path(damaged).glob("*dev*"))
  missing.rename(
    missing.with_name(missing.name.replace("-of-00001", "-of-00002"))
  )
  done = command_line.run(CHECK, f"--data_dir={damaged}")
  assert done.status == 1
  assert done.stdout.count("PROBLEM") == 2
  assert "copy them again if they are a copy" in done.stdout
  assert f"{shard}, record" in done.stdout and "00001-of-00002" in done.stdout
  shard.unlink()
  done = command_line.run(CHECK, f"--data_dir={damaged}")
  assert done.status == 1


def test_what_training_would_refuse_is_told(demo_data, tmp_path):
  """Also of both kinds of data, and where every record can be read."""
  damaged = tmp_path / "data"
  shutil.copytree(demo_data, damaged)
  kept = {}
  for tag in ("train", "dev"):
    shard = sorted(damaged.glob(f"*{tag}*"))[0]
    kept[shard] = shard.read_bytes()
    content = bytearray(kept[shard])
    content[len(content) // 2] ^= 0xFF
    shard.write_bytes(content)
  done = command_line.run(CHECK, f"--data_dir={damaged}")
  assert done.status == 1
  for tag, shard in zip(("train", "dev"), kept, strict=True):
    assert f"in the {tag} data:\n  {shard}, record" in done.stdout
  for shard, content in kept.items():
    shard.write_bytes(content)
  # Cut off between two records: behind the first.
  for tag, (shard, content) in zip(("train", "dev"), kept.items(), strict=True):
    (length,) = struct.unpack_from("<Q", content)
    shard.write_bytes(content[: 8 + 4 + length + 4])
    done = command_line.run(CHECK, f"--data_dir={damaged}")
    assert done.status == 1
    assert f"the {tag} shards in {damaged} hold " in done.stdout
    assert "a shard is cut off or another's" in done.stdout
    assert done.stdout.count("PROBLEM") == 1
    shard.write_bytes(content)


def test_what_is_behind_a_damaged_shard_is_counted(demo_data, tmp_path):
  damaged = tmp_path / "data"
  shutil.copytree(demo_data, damaged)
  sorted(damaged.glob("*train*"))[0].write_bytes(b"no records")
  said = command_line.run(CHECK, f"--data_dir={damaged}").stdout
  (pairs,) = re.findall(r"train: (\d+) pairs in 2 shards", said)
  assert 0 < int(pairs) < 600


def test_a_fault_of_one_text_hides_nothing_of_the_other(text, tmp_path):
  write(tmp_path / "dev.target", ["etwas \u014fderes", "one more"])
  done = command_line.run(CHECK, *text)
  assert done.status == 1
  assert done.stdout.count("PROBLEM") == 1
  assert "PROBLEM: " not in done.stdout.partition("dev: ")[0]
  assert shown(done.stdout, "control characters") > 0


def test_another_vocabulary_beside_prepared_data(demo_data, tmp_path):
  """Smaller: some of the ids are none of its own."""
  damaged = tmp_path / "data"
  shutil.copytree(demo_data, damaged)
  vocabulary = damaged / "vocab.400.model"
  texts = [str(tmp_path / "text")]
  write(tmp_path / "text", ["a dog runs and a cat sits"] * 30)
  train_sentencepiece(texts, str(vocabulary), 30)
  done = command_line.run(CHECK, f"--data_dir={damaged}")
  assert done.status == 1
  assert "is not the vocabulary that data.json describes" in done.stdout
  assert "unknown ids)" in done.stdout


def test_histograms_are_drawn(text, tmp_path):
  pytest.importorskip("matplotlib")
  succeed(CHECK, *text, f"--plot_dir={tmp_path}/plots")
  pictures = list((tmp_path / "plots").iterdir())
  assert len(pictures) == 2
  for picture in pictures:
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_one_file_of_both_sides(tmp_path):
  pairs = write(
    tmp_path / "pairs",
    [f"a dog{n}\tein Hund{n}" for n in range(60)] + ["alone", ""],
  )
  done = succeed(CHECK, f"--train_pairs={pairs}", "--vocab_sizes=50")
  assert shown(done.stdout, "not two columns") == 1
  # That line has nothing else that is wrong with it.
  assert shown(done.stdout, "empty source") == 1
  with open(pairs, "ab") as stream:
    stream.write(b"\xff\tx\n")
  said = command_line.run(CHECK, f"--train_pairs={pairs}", "--vocab_sizes=50")
  assert shown(said.stdout, "empty source") == 1
