"""The preparation as a pipeline, beside that of this machine's processes."""

import concurrent.futures
import contextlib
import filecmp
import json
import os
import pathlib

import apache_beam as beam
import command_line
import pytest
from apache_beam.portability import common_urns
from command_line import PREPARE, fail, succeed

from data_prep.encoding import beam_preparation
from data_prep.encoding.filters import FilterSettings
from data_prep.encoding.making import Making
from data_prep.encoding.pair_encoder import EncodingPlan
from data_prep.encoding.scratch import Scratch
from data_prep.prepare_data import PrepareOptions
from official_transformer.commands.flag_records import parsed
from official_transformer.text.text_form import TextForm
from official_transformer.text.vocabulary_files import VocabFiles

pytestmark = pytest.mark.slow

coders = common_urns.coders

TWO_PROCESSES = (
  "--beam_options=--direct_num_workers=2 --direct_running_mode=multi_processing"
)


@pytest.fixture
def text(tmp_path, demo_text):
  """Two pairs of files, with pairs that come again."""
  flags = []
  for side, language in (("source", "en"), ("target", "de")):
    lines = (demo_text / f"train.{language}").read_bytes()
    again = tmp_path / f"again.{language}"
    again.write_bytes(
      b"".join(lines.splitlines(keepends=True)[:50]) + b"\nOne. Two.\n"
    )
    flags += [
      f"--train_{side}={demo_text}/train.{language},{again}",
      f"--dev_{side}={demo_text}/dev.{language}",
    ]
  return [*flags, "--vocab_size=300", "--shards=3"]


def equal(one, other):
  found = filecmp.dircmp(one, other)
  return not (found.left_only or found.right_only or found.diff_files) and all(
    filecmp.cmp(os.path.join(one, n), os.path.join(other, n), shallow=False)
    for n in os.listdir(one)
  )


@pytest.mark.parametrize(
  ("more", "duplicates"),
  [
    ([], None),
    (["--drop_duplicates", "--lowercase"], 50),
    (
      [
        "--drop_duplicates",
        "--augment=upper:.2,merge:.3",
        "--augment_passes=2",
      ],
      59,
    ),
  ],
)
@pytest.mark.parametrize("options", [[], [TWO_PROCESSES]])
def test_the_same_data(text, tmp_path, more, duplicates, options):
  local, pipeline = tmp_path / "local", tmp_path / "pipeline"
  succeed(PREPARE, *text, *more, f"--data_dir={local}")
  done = succeed(
    *(PREPARE, *text, *more, f"--data_dir={pipeline}"),
    *("--runner=DirectRunner", *options),
  )
  assert "1 empty source" in done.stderr
  assert ("duplicate" in done.stderr) == bool(duplicates)
  assert not duplicates or f" {duplicates} duplicate" in done.stderr
  assert equal(local, pipeline)
  described = json.loads((local / "data.json").read_text())
  assert 0 < described["train"]["several_sentences"] < 0.01
  # Again: all of it is another's place.
  succeed(
    *(PREPARE, *text, *more, f"--data_dir={pipeline}"),
    "--runner=DirectRunner",
  )
  assert equal(local, pipeline)


@pytest.mark.parametrize("options", [[], [TWO_PROCESSES]])
def test_bad_text_is_named(text, tmp_path, options):
  again = tmp_path / "again.de"
  whole = again.read_bytes()
  vocabulary = tmp_path / "first"
  succeed(PREPARE, *text, f"--data_dir={vocabulary}")
  command = (
    *(PREPARE, *text[:-2], f"--data_dir={tmp_path}/data"),
    *(f"--vocab_file={vocabulary}/vocab.300.model", "--runner=DirectRunner"),
    *options,
  )
  again.write_bytes(whole + b"\xff\n")
  (tmp_path / "again.en").write_bytes(
    (tmp_path / "again.en").read_bytes() + b"x\n"
  )
  said = fail(*command)
  assert "again.de, line 53: not UTF-8" in said
  again.write_bytes(whole)
  assert "has 53 lines and" in fail(*command)
  assert not (tmp_path / "data" / "data.json").exists()


def test_mistakes_cost_one_line(text, tmp_path):
  command = (PREPARE, *text, f"--data_dir={tmp_path}/data")
  assert "are for --runner" in fail(*command, TWO_PROCESSES)
  assert "for this machine" in fail(
    *command, "--runner=DirectRunner", "--workers=2"
  )


def test_a_portable_runner(job_server, text, tmp_path):
  """The pipeline as Flink and Spark are given it, by Beam's job server."""
  local, pipeline = tmp_path / "local", tmp_path / "pipeline"
  more = ["--drop_duplicates"]
  succeed(PREPARE, *text, *more, f"--data_dir={local}")
  succeed(PREPARE, *text, *more, f"--data_dir={pipeline}", *job_server)
  assert equal(local, pipeline)


def graph_of(text, tmp_path):
  """Returns what other runners are handed; they need job servers to run it."""
  with command_line.fresh_flags(PREPARE) as values:
    values(["", *text, f"--data_dir={tmp_path}/data"])
    options = parsed(PrepareOptions)
  corpora, settings = options.corpora, options.settings
  plan = EncodingPlan(
    VocabFiles.joint("v"), TextForm(), FilterSettings(duplicates=True)
  )
  making = Making(
    *(corpora, dict.fromkeys(corpora, plan), plan.vocab_files, settings),
    *(Scratch(str(tmp_path / "scratch"), None), contextlib.ExitStack()),
  )
  pipeline = beam.Pipeline()
  for tag in corpora:
    beam_preparation.build(
      pipeline, beam_preparation.job_of(tag, making, str(tmp_path))
    )
  return pipeline.to_runner_api(use_fake_coders=False).components


def test_the_graph_is_portable(text, tmp_path):
  graph = graph_of(text, tmp_path)
  urns = common_urns.primitives

  def coder(collection):
    """Returns a coder with its parts, whatever they are called."""

    def parts(name):
      found = graph.coders[name]
      return (
        found.spec.urn,
        found.spec.payload,
        *map(parts, found.component_coder_ids),
      )

    return parts(graph.pcollections[collection].coder_id)

  keys = set()
  flattened = 0
  for transform in graph.transforms.values():
    if transform.spec.urn == urns.FLATTEN.urn:
      (out,) = transform.outputs.values()
      for collection in transform.inputs.values():
        # Not all runners convert them.
        assert coder(collection) == coder(out), transform.unique_name
        flattened += 1
    if transform.spec.urn == urns.GROUP_BY_KEY.urn:
      (collection,) = transform.inputs.values()
      _, _, key, _ = coder(collection)
      if "Reshuffle" not in transform.unique_name:
        keys.add((transform.unique_name.split("/")[0], key[0]))
  assert flattened == 8
  integers, some_bytes = coders.VARINT.urn, coders.BYTES.urn
  for tag in ("train", "dev"):
    assert (f"{tag}: gather", integers) in keys
    assert (f"{tag}: equal ones", some_bytes) in keys


def test_two_workers_may_write_one_shard(tmp_path):
  paths = [str(tmp_path / "shard")]
  records = [None, *(record(n) for n in range(2000))]
  with concurrent.futures.ThreadPoolExecutor(4) as pool:
    list(
      pool.map(
        lambda _: beam_preparation._write_shard((0, records), paths), range(40)
      )
    )
  written = pathlib.Path(paths[0]).read_bytes()
  assert written == b"".join(f"{n:09d}".encode() for n in range(2000))
  assert [p.name for p in tmp_path.iterdir()] == ["shard"]


def record(n):
  data = f"{n:09d}".encode()
  return beam_preparation._Record(n, n, 0, 0, (1, 1), data)


def test_a_pipeline_that_loses_records_leaves_earlier_data(
  text, tmp_path, monkeypatch
):
  command = (PREPARE, *text, f"--data_dir={tmp_path}", "--runner=DirectRunner")
  succeed(*command)
  before = {path.name: path.read_bytes() for path in tmp_path.glob("*-of-*")}
  assert len(before) == 4
  monkeypatch.setattr(beam_preparation, "_write_shard", lambda *_: None)
  said = fail(*command, status=1)
  assert "lost records of dev: 0 of 1 shards are there" in said
  after = {path.name: path.read_bytes() for path in tmp_path.glob("*-of-*")}
  assert after == before


def test_a_remote_directory_keeps_nothing_else(text, tmp_path):
  local, remote = tmp_path / "local", tmp_path / "remote"
  succeed(PREPARE, *text, f"--data_dir={local}")
  command = (f"--data_dir=file://{remote}", "--runner=DirectRunner")
  succeed(PREPARE, *text, *command)
  assert equal(local, remote)
  (tmp_path / "again.de").write_bytes(b"\xff\n")
  fail(PREPARE, *text, *command)
  assert equal(local, remote)


def test_a_run_of_either_kind_goes_on_with_the_others(
  text, tmp_path, monkeypatch
):
  whole, data = tmp_path / "whole", tmp_path / "data"
  succeed(PREPARE, *text, f"--data_dir={whole}")

  def full(*_, **__):
    raise OSError(28, "No space left on device")

  local = (PREPARE, *text, f"--data_dir={data}")
  pipeline = (*local, "--runner=DirectRunner")
  for broken, other, breaking in (
    (local, pipeline, "data_prep.encoding.local_engine._gather"),
    (pipeline, local, "data_prep.encoding.beam_preparation._write_shard"),
  ):
    with monkeypatch.context() as patched:
      patched.setattr(breaking, full)
      said = fail(*broken, status=1)
      assert "No space left" in said or "no room" in said
    succeed(*other)
    assert equal(whole, data)
