"""`data_download`, from a server that fails to records to train with."""

import dataclasses
import gzip
import hashlib
import io
import os
import tarfile
import zipfile

import command_line
import pytest
import tensorflow as tf
from command_line import DEMO, DOWNLOAD, succeed
from faulty_server import FaultyServer

from data_prep.downloading import downloads, sources
from data_prep.downloading.downloads import RemoteFile
from data_prep.downloading.sources import Bitext, TextFile
from official_transformer.data.data_directory import read_description
from official_transformer.storage.file_lock import FileLock
from official_transformer.text.subtokenizer import Subtokenizer


def packed(**files):
  """Returns a .tgz of files by their names, `__` for `.`, and of evil ones."""
  buffer = io.BytesIO()
  with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
    for name in ("../evil", "/tmp/evil.text"):
      entry = tarfile.TarInfo(name)
      entry.size = 4
      archive.addfile(entry, io.BytesIO(b"evil"))
    link = tarfile.TarInfo("training/link")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc"
    archive.addfile(link)
    for name, content in files.items():
      entry = tarfile.TarInfo("training/" + name.replace("__", "."))
      entry.size = len(content)
      archive.addfile(entry, io.BytesIO(content))
  return buffer.getvalue()


@pytest.fixture(scope="module")
def text(tmp_path_factory):
  """A corpus in parts, by their names."""
  root = tmp_path_factory.mktemp("text")
  succeed(
    DEMO,
    *(f"--output_dir={root}", "--train_size=300", "--dev_size=40"),
    "--test_size=20",
  )
  return {
    path.name: path.read_bytes()
    for path in root.iterdir()
    if "dictionary" not in path.name
  }


@pytest.fixture
def server(text, monkeypatch):
  """A server of that corpus, in archives as those of the shared tasks are."""
  monkeypatch.setattr(downloads, "_FIRST_PAUSE_SECONDS", 0.001)
  with FaultyServer() as running:
    running.files = {
      "train.tgz": packed(news__en=text["train.en"], news__de=text["train.de"]),
      "dev.tgz": packed(dev__en=text["dev.en"], dev__de=text["dev.de"]),
      "test.tgz": packed(
        newstest2014__en=text["test.en"], newstest2014__de=text["test.de"]
      ),
    }

    def file(name):
      content = running.files[name]
      return RemoteFile(
        [running.url("gone/" + name), running.url(name)],
        len(content),
        hashlib.sha256(content).hexdigest(),
      )

    def part(archive, stem):
      return Bitext(
        *(TextFile(file(archive), f"{stem}.{x}") for x in ("en", "de"))
      )

    official = dataclasses.replace(
      sources.SOURCES["wmt17-ende"],
      train=(part("train.tgz", "news"),),
      dev=(part("dev.tgz", "dev"),),
      test=(part("test.tgz", "newstest2014"),),
    )
    monkeypatch.setitem(sources.SOURCES, "wmt17-ende", official)
    yield running


def test_upstreams_corpus_from_a_server_with_faults(server, text, tmp_path):
  server.faults["train.tgz"] = [503, ("cut", 2000), None]
  data, raw = tmp_path / "data", tmp_path / "raw"
  command = (DOWNLOAD, f"--data_dir={data}", f"--raw_dir={raw}")
  succeed(*command)
  assert (data / "newstest2014.en").read_bytes() == text["test.en"]
  names = {
    *("vocab.ende.32768", "newstest2014.en", "newstest2014.de", "data.json"),
    "wmt32k-dev-00001-of-00001",
    *(f"wmt32k-train-{n:05d}-of-00100" for n in range(1, 101)),
  }
  assert set(os.listdir(data)) == names
  assert not (tmp_path / "evil").exists()
  assert not os.path.exists("/tmp/evil.text")
  assert set(os.listdir(raw)) == {
    *("train.tgz", "dev.tgz", "test.tgz"),
    *("news.en", "news.de", "dev.en", "dev.de"),
  }
  # The vocabulary as upstream makes it, and every pair in it.
  made = Subtokenizer.build(
    [str(raw / "news.en"), str(raw / "news.de")], 32768, 327, 6
  )
  vocabulary = Subtokenizer(str(data / "vocab.ende.32768"))
  assert vocabulary.subtokens == made.subtokens
  found = set()
  for path in data.glob("wmt32k-train-*"):
    for record in tf.data.TFRecordDataset(str(path)).as_numpy_iterator():
      feature = tf.train.Example.FromString(record).features.feature
      found.add(
        tuple(
          vocabulary.decode(feature[side].int64_list.value[:-1])
          for side in ("inputs", "targets")
        )
      )
  lines = [text[f"train.{x}"].decode().splitlines() for x in ("en", "de")]
  assert found == set(zip(*lines, strict=True))
  assert read_description(str(data)).dev.pairs == 40
  # The other direction needs no new download.
  before = len(server.requests)
  reversed_data = tmp_path / "reversed"
  succeed(
    *(DOWNLOAD, f"--data_dir={reversed_data}", f"--raw_dir={raw}"),
    "--reverse",
  )
  assert len(server.requests) == before
  either = [read_description(str(d)).train for d in (data, reversed_data)]
  assert either[0].source_tokens == either[1].target_tokens
  assert either[0].target_tokens == either[1].source_tokens
  # All is there.
  assert "the data are in" in succeed(*command).stderr
  assert len(server.requests) == before


def test_what_is_done_is_not_done_again(server, tmp_path):
  data, raw = tmp_path / "data", tmp_path / "raw"
  command = (DOWNLOAD, f"--data_dir={data}", f"--raw_dir={raw}")
  server.faults["dev.tgz"] = [404]
  said = command_line.fail(*command, status=1)
  assert "dev.tgz cannot be downloaded" in said
  assert "--source_dir" in said
  asked = {r.path for r in server.requests}
  assert "train.tgz" in asked
  server.requests.clear()
  succeed(*command)
  assert {r.path for r in server.requests} == {"gone/dev.tgz", "dev.tgz"}


def test_files_at_hand_need_no_network(server, tmp_path):
  at_hand = tmp_path / "hand"
  at_hand.mkdir()
  for name, content in server.files.items():
    (at_hand / name).write_bytes(content)
  command = (
    *(DOWNLOAD, f"--data_dir={tmp_path / 'data'}"),
    *(f"--raw_dir={tmp_path / 'raw'}", f"--source_dir={at_hand}", "--search"),
  )
  succeed(*command)
  assert not server.requests
  (at_hand / "dev.tgz").write_bytes(b"x")
  (tmp_path / "raw" / "dev.tgz").unlink()
  (tmp_path / "raw" / "dev.en").unlink()
  (tmp_path / "data" / "data.json").unlink()
  said = command_line.fail(*command, status=1)
  assert "hand/dev.tgz is not the expected file" in said


def test_a_corpus_without_a_test_set_is_split(
  server, text, tmp_path, monkeypatch
):
  buffer = io.BytesIO()
  with zipfile.ZipFile(buffer, "w") as archive:
    archive.writestr("Tatoeba.de-en.en", text["train.en"])
    archive.writestr("Tatoeba.de-en.de", text["train.de"])
  server.files["tatoeba.zip"] = buffer.getvalue()
  file = RemoteFile([server.url("tatoeba.zip")])
  source = dataclasses.replace(
    sources.SOURCES["tatoeba-ende"],
    train=(
      Bitext(
        TextFile(file, "Tatoeba.de-en.en"), TextFile(file, "Tatoeba.de-en.de")
      ),
    ),
    held_out=30,
  )
  monkeypatch.setitem(sources.SOURCES, "tatoeba-ende", source)
  data = tmp_path / "data"
  succeed(
    *(DOWNLOAD, "--corpus=tatoeba-ende", f"--data_dir={data}"),
    f"--raw_dir={tmp_path / 'raw'}",
  )
  description = read_description(str(data))
  assert description.dev.pairs == 30
  test = (data / "tatoeba-ende.test.en").read_text().splitlines()
  assert len(test) == 30
  dev = (tmp_path / "raw" / "tatoeba-ende.dev.en").read_text().splitlines()
  assert not set(dev) & set(test)
  dropped = description.train.dropped["in held-out text"]
  assert dropped >= 60 and description.train.pairs == 300 - dropped


def test_mistakes_cost_one_line(server, tmp_path, monkeypatch):
  command = (DOWNLOAD, f"--data_dir={tmp_path / 'data'}")
  raw = tmp_path / "raw"
  said = command_line.fail(
    *command, f"--raw_dir={raw}", f"--source_dir={tmp_path / 'none'}"
  )
  assert "is no directory" in said
  raw.mkdir()
  with FileLock(str(raw / "data_download.lock"), "{holder}"):
    said = command_line.fail(*command, f"--raw_dir={raw}")
  assert "downloads to" in said
  few = dataclasses.replace(sources.SOURCES["wmt17-ende"], dev=(), held_out=200)
  monkeypatch.setitem(sources.SOURCES, "wmt17-ende", few)
  said = command_line.fail(*command, f"--raw_dir={raw}", status=1)
  assert "too few different pairs" in said


def test_a_missing_test_set_is_fetched_again(server, tmp_path):
  data = tmp_path / "data"
  command = (DOWNLOAD, f"--data_dir={data}", f"--raw_dir={tmp_path / 'raw'}")
  succeed(*command)
  (data / "newstest2014.en").unlink()
  succeed(*command)
  assert (data / "newstest2014.en").exists()


def test_two_columns_in_the_other_order(server, tmp_path, monkeypatch, text):
  sides = [text[f"train.{x}"].decode().splitlines() for x in ("de", "en")]
  table = "".join(f"{de}\t{en}\n" for de, en in zip(*sides, strict=True))
  server.files["news.tsv.gz"] = gzip.compress(table.encode())
  file = RemoteFile([server.url("news.tsv.gz")])
  column = TextFile(file, "news.tsv")
  source = dataclasses.replace(
    sources.SOURCES["wmt17-ende"], train=(Bitext(column, column, (1, 0)),)
  )
  monkeypatch.setitem(sources.SOURCES, "wmt17-ende", source)
  raw = tmp_path / "raw"
  succeed(DOWNLOAD, f"--data_dir={tmp_path / 'data'}", f"--raw_dir={raw}")
  assert (raw / "news.tsv.source").read_bytes() == text["train.en"]
  assert (raw / "news.tsv.target").read_bytes() == text["train.de"]


def test_a_known_text_is_checked(server, tmp_path, monkeypatch):
  official = sources.SOURCES["wmt17-ende"]
  dev = official.dev[0]
  wrong = dataclasses.replace(
    official,
    dev=(
      dataclasses.replace(
        dev, source=dataclasses.replace(dev.source, md5="00")
      ),
    ),
  )
  monkeypatch.setitem(sources.SOURCES, "wmt17-ende", wrong)
  said = command_line.fail(
    *(DOWNLOAD, f"--data_dir={tmp_path / 'data'}"),
    f"--raw_dir={tmp_path / 'raw'}",
    status=1,
  )
  assert "dev.en is not the expected file" in said


def test_every_source_is_whole():
  for name, source in sources.SOURCES.items():
    kept = {}
    for part in (*source.train, *source.dev, *source.test):
      for side in (part.source, part.target):
        # Two files under one name would be taken for each other.
        assert kept.setdefault(side.download.name, side.download.urls) == (
          side.download.urls
        ), name
    assert source.train and (source.dev or source.held_out), name
