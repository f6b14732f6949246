"""TensorFlow's checkpoints, read without TensorFlow."""

import os
import random

import numpy as np
import pytest
import tensorflow as tf

from official_transformer.storage.tensor_bundle import (
  DamagedBundleError,
  TensorBundle,
)


def write(prefix, tensors):
  tf.raw_ops.SaveV2(
    prefix=prefix,
    tensor_names=list(tensors),
    shape_and_slices=[""] * len(tensors),
    tensors=list(tensors.values()),
  )
  return prefix


def read(prefix):
  """Reads everything, by name."""
  with TensorBundle(prefix) as bundle:
    return {name: bundle.read(name) for name in bundle.shapes}


@pytest.fixture
def prefix(tmp_path):
  """A small bundle."""
  tensors = {
    "a/kernel": tf.reshape(tf.range(12.0), [3, 4]),
    "step": tf.constant(7, tf.int64),
  }
  return write(str(tmp_path / "small"), tensors)


@pytest.mark.parametrize(
  "dtype",
  [
    *(tf.float16, tf.float32, tf.float64, tf.bool, tf.complex64),
    *(tf.int8, tf.int16, tf.int32, tf.int64, tf.complex128),
    *(tf.uint8, tf.uint16, tf.uint32, tf.uint64),
  ],
)
def test_numbers_of_all_types_are_read(dtype, tmp_path):
  values = tf.cast(tf.constant([[0, 1, 2], [100, 3, 0]]), dtype)
  prefix = write(str(tmp_path / "x"), {"x": values})
  found = read(prefix)["x"]
  assert found.dtype == dtype.as_numpy_dtype
  np.testing.assert_array_equal(found, values.numpy())


def test_bfloat16_is_read_as_float32(tmp_path):
  values = tf.constant([1.0, -3.140625, 1e-38, float("inf")], tf.bfloat16)
  found = read(write(str(tmp_path / "x"), {"x": values}))["x"]
  np.testing.assert_array_equal(found, tf.cast(values, tf.float32).numpy())


def test_strings_are_objects_without_content(tmp_path):
  values = tf.constant(["a", "bc"])
  found = read(write(str(tmp_path / "x"), {"x": values}))["x"]
  assert found.dtype == object and found.shape == (2,)


def test_an_index_of_many_blocks_is_read_as_tensorflow_reads_it(tmp_path):
  rng = np.random.default_rng(1)
  shapes = [(), (0,), (1,), (2, 0), (300,), (2, 3, 4)]
  tensors = {
    f"{'layer/' * (n % 7)}weight {n:04} ä": tf.constant(
      rng.normal(size=shapes[n % len(shapes)]), tf.float32
    )
    for n in range(1500)
  }
  prefix = write(str(tmp_path / "many"), tensors)
  bundle = TensorBundle(prefix)
  reader = tf.train.load_checkpoint(prefix)
  known = reader.get_variable_to_shape_map()
  assert bundle.shapes == {name: tuple(known[name]) for name in sorted(known)}
  for name, value in read(prefix).items():
    np.testing.assert_array_equal(value, tensors[name].numpy())


@pytest.mark.parametrize("file", [".index", ".data-00000-of-00001"])
def test_every_damaged_byte_is_noticed(prefix, file):
  path = f"{prefix}{file}"
  with open(path, "rb") as stream:
    whole = stream.read()
  expected = read(prefix)
  silent = []
  rng = random.Random(3)
  for place in range(len(whole)):
    damaged = bytearray(whole)
    damaged[place] ^= 1 << rng.randrange(8)
    with open(path, "wb") as stream:
      stream.write(damaged)
    try:
      found = read(prefix)
    except DamagedBundleError:
      continue
    silent.append(place)
    assert found.keys() == expected.keys()
    for name, value in found.items():
      np.testing.assert_array_equal(value, expected[name])
  # An index has an empty block that nobody reads, and a footer with padding.
  assert len(silent) < (64 if file == ".index" else 1)


@pytest.mark.parametrize("file", [".index", ".data-00000-of-00001"])
def test_every_shorter_file_is_noticed(prefix, file):
  path = f"{prefix}{file}"
  with open(path, "rb") as stream:
    whole = stream.read()
  for size in range(len(whole)):
    with open(path, "wb") as stream:
      stream.write(whole[:size])
    with pytest.raises(DamagedBundleError):
      read(prefix)


@pytest.mark.parametrize("byte", [b"\xff", b"\x7f"])
def test_a_footer_of_large_numbers_is_noticed(prefix, byte):
  with open(f"{prefix}.index", "r+b") as stream:
    stream.seek(-48, os.SEEK_END)
    stream.write(byte * 40)
  with pytest.raises(DamagedBundleError):
    TensorBundle(prefix)


def test_a_remote_bundle_is_read():
  remote = write("ram://bundles/small", {"x": tf.range(5)})
  np.testing.assert_array_equal(read(remote)["x"], range(5))


def test_what_is_read_may_be_removed_meanwhile(prefix):
  with TensorBundle(prefix) as bundle:
    bundle.read("step")
    os.remove(f"{prefix}.data-00000-of-00001")
    np.testing.assert_array_equal(bundle.read("a/kernel").flat, range(12))


def test_what_is_not_there_is_said(prefix, tmp_path):
  with (
    TensorBundle(prefix) as bundle,
    pytest.raises(DamagedBundleError, match="has no b"),
  ):
    bundle.read("b")
  with pytest.raises(FileNotFoundError):
    TensorBundle(str(tmp_path / "other"))


def test_slices_are_not_for_this_reader(tmp_path):
  prefix = str(tmp_path / "sliced")
  tf.raw_ops.SaveV2(
    prefix=prefix,
    tensor_names=["x"],
    shape_and_slices=["4 0,2"],
    tensors=[tf.constant([1.0, 2.0])],
  )
  with pytest.raises(DamagedBundleError, match="its index cannot be read"):
    TensorBundle(prefix)
