"""Translating many files as a pipeline, beside predict's own way."""

import gzip
import importlib.util
import json
import os
import shutil
import subprocess
import sys

import pytest
from command_line import MAIN, fail, succeed

pytestmark = pytest.mark.slow

TWO_PROCESSES = (
  "--beam_options=--direct_num_workers=2 --direct_running_mode=multi_processing"
)


@pytest.fixture
def files(tmp_path, demo_text):
  """Some of all kinds, and odd lines."""
  folder = tmp_path / "sources"
  folder.mkdir()
  lines = (demo_text / "dev.en").read_bytes().splitlines(keepends=True)
  (folder / "one.en").write_bytes(b"".join(lines[:12]))
  (folder / "two.en").write_bytes(
    b"\n  spaces \n" + lines[3].replace(b" ", b"\xe2\x80\xa8") + lines[4] * 40
  )
  with gzip.open(folder / "three.en.gz", "wb") as stream:
    stream.write(b"".join(lines[12:20]).rstrip(b"\n"))
  (folder / "nothing.en").write_bytes(b"")
  return folder


def bulk(model, files, out, *more):
  return (
    *(MAIN, "--mode=predict", f"--model_dir={model}"),
    *(f"--file={files}/*.en,{files}/*.gz", f"--file_out={out}"),
    *("--runner=DirectRunner", *more),
  )


@pytest.mark.parametrize(
  "more",
  [[], [TWO_PROCESSES], ["--output_format=jsonl", "--n_best=2"]],
  ids=["in memory", "two processes", "jsonl"],
)
def test_every_line_as_predict_has_it(trained_model, files, tmp_path, more):
  out = tmp_path / "out"
  done = succeed(*bulk(trained_model, files, out, *more))
  assert "4 of 4 files are to be translated" in done.stderr
  names = ["nothing.en", "one.en", "three.en", "two.en"]
  assert sorted(os.listdir(out)) == ["bulk_translation.json", *names]
  contents = {}
  for name in ("one.en", "two.en", "three.en"):
    (path,) = files.glob(f"{name}*")
    content = (gzip.decompress if path.suffix == ".gz" else bytes)(
      path.read_bytes()
    )
    contents[name] = content.removesuffix(b"\n") + b"\n"
  # A score's last digits depend on a line's company, its translation does not.
  together = (
    [[name] for name in contents] if "jsonl" in str(more) else [contents]
  )
  for names in together:
    source, alone = tmp_path / "source", tmp_path / "alone"
    source.write_bytes(b"".join(contents[name] for name in names))
    succeed(
      *(MAIN, "--mode=predict", f"--model_dir={trained_model}"),
      *(f"--file={source}", f"--file_out={alone}"),
      *(flag for flag in more if flag != TWO_PROCESSES),
    )
    written = b"".join((out / name).read_bytes() for name in names)
    assert written == alone.read_bytes(), names
    for name in names:
      lines = contents[name].count(b"\n")
      assert (out / name).read_bytes().count(b"\n") == lines
  assert (out / "nothing.en").read_bytes() == b""
  assert (out / "one.en").read_bytes().strip()


def test_what_is_whole_is_not_made_again(trained_model, files, tmp_path):
  out = tmp_path / "out"
  bad = files / "bad.en"
  bad.write_bytes(b"a\n\xff\n")
  said = fail(*bulk(trained_model, files, out))
  assert "bad.en, line 2: not UTF-8" in said
  bad.unlink()
  succeed(*bulk(trained_model, files, out))
  whole = {path: path.stat() for path in out.glob("*.en")}
  assert len(whole) == 4
  (out / "two.en").unlink()
  done = succeed(*bulk(trained_model, files, out))
  assert "1 of 4 files are to be translated" in done.stderr
  for path, before in whole.items():
    same = path.stat().st_mtime_ns == before.st_mtime_ns
    assert same == (path.name != "two.en")
  assert not list(out.glob("*incomplete*"))


def test_translations_of_two_kinds_do_not_mix(trained_model, files, tmp_path):
  out = tmp_path / "out"
  succeed(*bulk(trained_model, files, out))
  said = fail(*bulk(trained_model, files, out, "--beam_size=2"))
  assert "has translations by beam_size 4, not 2" in said
  # As it was written before there was a patience.
  description = out / "bulk_translation.json"
  written = json.loads(description.read_text())
  del written["settings"]["patience"]
  del written["settings"]["recase"]
  written["settings"]["split_sentences"] = False
  description.write_text(json.dumps(written))
  said = fail(*bulk(trained_model, files, out, "--patience=1"))
  assert "has translations by patience 0.0, not 1.0" in said
  said = fail(*bulk(trained_model, files, out, "--split_sentences"))
  assert "has translations by split_sentences False, not True" in said
  said = fail(*bulk(trained_model, files, out, "--recase"))
  assert "has translations by recase False, not True" in said
  done = succeed(*bulk(trained_model, files, out))
  assert "0 of 4 files are to be translated" in done.stderr
  (files / "one.en").write_bytes(b"another\n")
  said = fail(*bulk(trained_model, files, out))
  assert "one.en is not a translation of" in said
  (out / "bulk_translation.json").write_text("[")
  assert "is damaged" in fail(*bulk(trained_model, files, out))


@pytest.mark.parametrize(
  ("changed", "complaint"),
  [
    (["--file={files}/none*"], "there is no file"),
    (["--file={files}/one.en,{twin}/one.en"], "one.en needs, too"),
    (["--file={twin}/*.json"], "this command needs, too"),
    (["--file=,"], "names no file"),
    (["--file_out="], "the directory of their translations"),
    (["--file_out={files}"], "name another directory"),
    (["--file_out={files}/one.en"], "is a file, not a directory"),
    (["--file_out=-"], "the directory of their translations"),
    (["--interactive"], "the directory of their translations"),
    (["--n_best=9"], "beam"),
    (["--beam_options=--none=3"], "none"),
    (["--beam_options=--direct_num_workers=two"], "invalid int value: 'two'"),
    (["--beam_options='"], "No closing quotation"),
    (["--beam_options=--help"], "--help has no place there"),
    (["--beam_options=--runner=FlinkRunner"], "has no place there"),
    (["--beam_options=--direct_num_workers=-1"], "is below 0"),
    (["--runner=PortableRunner"], "--job_endpoint=HOST:PORT"),
    (["--runner=DataflowRunner"], "Missing required option: region"),
    (["--enable_xla"], "is about this process"),
  ],
)
def test_mistakes_cost_one_line(
  trained_model, files, tmp_path, changed, complaint
):
  twin = tmp_path / "twin"
  twin.mkdir()
  (twin / "one.en").write_bytes(b"a\n")
  (twin / "bulk_translation.json").write_bytes(b"a\n")
  changed = [flag.format(files=files, twin=twin) for flag in changed]
  command = bulk(trained_model, files, tmp_path / "out", *changed)
  assert complaint in fail(*command)


def test_other_weights_of_the_same_step_are_refused(
  trained_model, files, tmp_path
):
  model, out = tmp_path / "model", tmp_path / "out"
  shutil.copytree(trained_model, model)
  succeed(*bulk(model, files, out))
  (out / "one.en").unlink()
  # All that a training saves later is left alone.
  (newest,) = (model / "checkpoints").glob(f"step-{newest_step(model)}")
  succeed(*bulk(model, files, out, f"--model_dir={model}/"))
  (out / "one.en").unlink()
  for path in newest.glob("*.index"):
    path.write_bytes(path.read_bytes() + b" ")
  said = fail(*bulk(model, files, out))
  assert "has translations by weights" in said


def newest_step(model):
  return max(
    int(path.name.removeprefix("step-"))
    for path in (model / "checkpoints").glob("step-*")
  )


def test_later_weights_are_not_mixed_in(trained_model, files, tmp_path):
  model, out = tmp_path / "model", tmp_path / "out"
  shutil.copytree(trained_model, model)
  succeed(*bulk(model, files, out))
  before = (out / "one.en").read_bytes()
  (out / "one.en").unlink()
  newest = model / "checkpoints" / f"step-{newest_step(model)}"
  shutil.copytree(newest, newest.with_name("step-99999"))
  done = succeed(*bulk(model, files, out))
  assert "1 of 4 files" in done.stderr
  assert (out / "one.en").read_bytes() == before
  said = fail(*bulk(model, files, out, "--checkpoint=99999"))
  assert "has translations by weights" in said


def test_odd_names(trained_model, tmp_path):
  names = ["a,b.en", "[1].en", "a b.en", "ü.en", "no_ending"]
  for name in names:
    (tmp_path / name).write_bytes(b"a dog\n")
    out = tmp_path / "out"
    succeed(*bulk(trained_model, None, out, f"--file={tmp_path}/{name}"))
    assert (out / name).read_bytes().count(b"\n") == 1


def test_a_mistake_in_a_file_costs_few_lines(trained_model, files, tmp_path):
  """As a user sees it, with what Beam itself has to say."""
  (files / "bad.en").write_bytes(b"\xff\n")
  command = bulk(trained_model, files, tmp_path / "out")
  environment = {**os.environ, "PYTHONPATH": os.getcwd()}
  del environment["TF_CPP_MIN_LOG_LEVEL"]  # Of the tests alone.
  done = subprocess.run(
    [sys.executable, "-m", *command],
    capture_output=True,
    text=True,
    env=environment,
  )
  assert done.returncode == 2
  assert "Traceback" not in done.stderr
  assert len(done.stderr.splitlines()) <= 4, done.stderr
  assert "bad.en, line 1: not UTF-8" in done.stderr.splitlines()[-1]


def test_a_portable_runner(job_server, trained_model, files, tmp_path):
  """The pipeline as Flink and Spark are given it, by Beam's job server."""
  out, other = tmp_path / "out", tmp_path / "other"
  succeed(*bulk(trained_model, files, out))
  succeed(*bulk(trained_model, files, other, *job_server))
  for path in out.glob("*.en"):
    assert path.read_bytes() == (other / path.name).read_bytes()


def test_an_unknown_store_is_named(trained_model, tmp_path):
  command = bulk(trained_model, None, tmp_path / "out", "--file=none://x/*")
  assert "scheme 'none'" in fail(*command, status=1)


def test_it_is_for_files_alone(trained_model):
  said = fail(
    *(MAIN, "--mode=predict", f"--model_dir={trained_model}"),
    *("--text=a", "--beam_options=--direct_num_workers=2"),
  )
  assert "are for --runner" in said


def test_a_missing_package_is_named(
  trained_model, files, tmp_path, monkeypatch
):
  found = importlib.util.find_spec
  monkeypatch.setattr(
    "importlib.util.find_spec",
    lambda name, *rest: None if name == "apache_beam" else found(name, *rest),
  )
  said = fail(*bulk(trained_model, files, tmp_path / "out"))
  assert "official-transformer[beam]" in said
