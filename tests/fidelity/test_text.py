"""Vocabularies, ids, batches and BLEU, against upstream's.

The numbers in `fixtures/` come from upstream's own code; `make_fixtures.py`
says which and how. Ids, bytes and shapes are exact, BLEU to 1e-6.
"""

import pathlib

import numpy as np
import pytest
from written_shards import write_shards

from official_transformer.data.buckets import Batching
from official_transformer.data.data_directory import shard_paths
from official_transformer.data.data_pipeline import dev_dataset, train_dataset
from official_transformer.data.record_check import check_records
from official_transformer.evaluation.bleu import official_bleu
from official_transformer.text.subtokenizer import Subtokenizer

FIXTURES = pathlib.Path(__file__).parent / "fixtures"


def load(name):
  with np.load(FIXTURES / f"{name}.npz") as arrays:
    return dict(arrays)


@pytest.fixture(scope="module")
def texts():
  return load("texts")


@pytest.mark.parametrize(
  ("name", "options"),
  [
    ("min_count_3", {"min_count": 3, "target_size": 1}),
    ("searched", {"target_size": 500, "threshold": 5}),
    ("sampled", {"target_size": 300, "threshold": 3, "file_byte_limit": 5e3}),
  ],
)
def test_vocabularies_are_upstreams_byte_for_byte(
  name, options, texts, tmp_path
):
  files = []
  for part in range(2):
    files.append(str(tmp_path / f"text{part}"))
    pathlib.Path(files[-1]).write_bytes(texts[f"text/{part}"].tobytes())
  Subtokenizer.build(files, **options).save(str(tmp_path / name))
  assert (tmp_path / name).read_bytes() == texts[f"vocabulary/{name}"].tobytes()


def test_ids_of_hostile_strings_are_upstreams(texts, tmp_path):
  vocabulary = tmp_path / "vocabulary"
  vocabulary.write_bytes(texts["vocabulary/searched"].tobytes())
  subtokenizer = Subtokenizer(str(vocabulary))
  rows = [name for name in texts if name.startswith("string/")]
  assert len(rows) >= 16
  for name in rows:
    row = name.split("/")[1]
    string = texts[name].tobytes().decode("utf-8")
    ids = subtokenizer.encode(string, add_eos=True)
    np.testing.assert_array_equal(ids, texts[f"ids/{row}"], string)
    decoded = texts[f"decoded/{row}"].tobytes().decode("utf-8")
    assert subtokenizer.decode(ids[:-1]) == decoded


@pytest.fixture(scope="module")
def batches():
  return load("batches")


@pytest.mark.parametrize("max_length", [8, 9, 24, 64, 256])
def test_bucket_boundaries_are_upstreams(max_length, batches):
  expected = batches[f"boundaries/{max_length}"]
  np.testing.assert_array_equal(Batching(4096, max_length).bounds, expected)


@pytest.fixture(scope="module")
def shards(batches, tmp_path_factory):
  directory = tmp_path_factory.mktemp("shards")
  pairs = [
    # Not of EOS alone, which nobody trains on.
    tuple([2] * int(n) for n in pair)
    for pair in batches["lengths"]
  ]
  write_shards(pairs, str(directory), "x", "train", 1, seed=None)
  return check_records(shard_paths(str(directory), "train"), 3).index


def shapes(dataset):
  return [[x.shape[0], x.shape[1], y.shape[1]] for x, y in dataset]


def test_batches_have_the_shapes_of_upstreams(shards, batches):
  ours = shapes(dev_dataset(shards, Batching(512, 64)))
  np.testing.assert_array_equal(ours, batches["shapes/bucketed"])


def test_static_batches_have_the_shapes_of_upstreams(shards, batches):
  expected = batches["shapes/static"]
  assert len(expected) > 10
  endless = train_dataset(shards, Batching(512, 64, True), seed=1)
  ours = shapes(endless.take(len(expected)))
  np.testing.assert_array_equal(ours, expected)


BLEU = load("bleu")


@pytest.mark.parametrize(
  "name", [n.split("/")[1] for n in BLEU if n.startswith("translation/")]
)
@pytest.mark.parametrize("cased", [False, True])
def test_bleu_is_upstreams(name, cased):
  expected = BLEU[f"bleu/{name}/{cased}"]
  if np.isnan(expected):  # Upstream divides by zero.
    expected = 0.0
  ours = official_bleu(
    list(BLEU["reference"]), list(BLEU[f"translation/{name}"]), cased
  )
  # Of 1, as upstream computes it, in float32; shown of 100.
  assert ours / 100 == pytest.approx(float(expected) / 100, abs=1e-6)
