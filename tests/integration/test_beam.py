"""The preparation as a pipeline, beside that of this machine's processes."""

import filecmp
import os

import command_line
import pytest
from command_line import PREPARE, fail, succeed

beam = pytest.importorskip("apache_beam")

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
    again.write_bytes(b"".join(lines.splitlines(keepends=True)[:50]) + b"\n")
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


@pytest.mark.parametrize("more", [[], ["--drop_duplicates", "--lowercase"]])
@pytest.mark.parametrize("options", [[], [TWO_PROCESSES]])
def test_the_same_data(text, tmp_path, more, options):
  local, pipeline = tmp_path / "local", tmp_path / "pipeline"
  succeed(PREPARE, *text, *more, f"--data_dir={local}")
  done = succeed(
    *(PREPARE, *text, *more, f"--data_dir={pipeline}"),
    *("--runner=DirectRunner", *options),
  )
  assert "1 empty source" in done.stderr
  assert ("50 duplicate" in done.stderr) == bool(more)
  assert equal(local, pipeline)
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
  assert "again.de, line 52: not UTF-8" in said
  again.write_bytes(whole)
  assert "has 52 lines and" in fail(*command)
  assert not (tmp_path / "data" / "data.json").exists()


def test_mistakes_cost_one_line(text, tmp_path):
  command = (PREPARE, *text, f"--data_dir={tmp_path}/data")
  assert "are for --runner" in fail(*command, TWO_PROCESSES)
  assert "of this machine" in fail(
    *command, "--runner=DirectRunner", "--workers=2"
  )


def test_the_graph_is_portable(text, tmp_path):
  """What other runners are handed; they need job servers to run it."""
  from data_prep import beam_preparation, data_flags
  from data_prep.filters import FilterSettings
  from data_prep.making import Making
  from data_prep.pair_encoder import EncodingPlan
  from data_prep.scratch import Scratch
  from official_transformer.data.text_form import TextForm
  from official_transformer.data.vocabulary_files import VocabFiles

  with command_line.fresh_flags(PREPARE) as values:
    values(["", *text, f"--data_dir={tmp_path}/data"])
    corpora, settings = data_flags.read_corpora(), data_flags.read_settings()
  plan = EncodingPlan(
    VocabFiles.joint("v"), TextForm(), FilterSettings(duplicates=True)
  )
  making = Making(
    *(corpora, dict.fromkeys(corpora, plan), plan.vocab_files, settings),
    Scratch(str(tmp_path / "scratch"), None),
  )
  pipeline = beam.Pipeline()
  for tag in corpora:
    beam_preparation.build(
      pipeline, beam_preparation.job_of(tag, making, str(tmp_path))
    )
  graph = pipeline.to_runner_api(use_fake_coders=False)
  names = {t.unique_name for t in graph.components.transforms.values()}
  for tag in ("train", "dev"):
    for stage in ("read blocks", "encode", "gather", "write", "add up"):
      assert f"{tag}: {stage}" in names
