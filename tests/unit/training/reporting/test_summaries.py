import numpy as np
import pytest
import tensorflow as tf

from official_transformer.errors import InputError
from official_transformer.training.reporting.summaries import SummaryWriter

event_accumulator = pytest.importorskip(
  "tensorboard.backend.event_processing.event_accumulator"
)


@pytest.fixture
def written(tmp_path):
  """What TensorBoard finds of a writer's records."""

  def read(write):
    writer = SummaryWriter(str(tmp_path))
    write(writer)
    found = event_accumulator.EventAccumulator(
      str(tmp_path), {event_accumulator.TENSORS: 0}
    )
    found.Reload()
    return found

  return read


def test_a_file_in_the_place_of_the_records_is_told(tmp_path):
  (tmp_path / "logs").touch()
  with pytest.raises(InputError, match="cannot be written to .*logs"):
    SummaryWriter(str(tmp_path / "logs"))


def test_numbers(written):
  found = written(lambda w: w.write_scalars({"train/loss": 2.5}, 7))
  (event,) = found.Tensors("train/loss")
  assert event.step == 7
  assert tf.make_ndarray(event.tensor_proto) == 2.5
  assert "train/loss" in found.summary_metadata


def test_pictures(written):
  png = tf.io.encode_png(np.zeros([4, 6, 3], np.uint8)).numpy()

  def write(writer):
    writer.write_picture("attention/0", png, 3)
    writer.flush()

  found = written(write)
  metadata = found.SummaryMetadata("attention/0")
  assert metadata.plugin_data.plugin_name == "images"
  (event,) = found.Tensors("attention/0")
  assert tf.make_ndarray(event.tensor_proto).tolist() == [b"6", b"4", png]


def test_histograms(written):
  values = np.array([0.0, 0.0, 1.0, 3.0])

  def write(writer):
    writer.write_histogram("weights/x", tf.constant(values), 3)
    writer.flush()

  found = written(write)
  assert found.SummaryMetadata("weights/x").plugin_data.plugin_name == (
    "histograms"
  )
  (event,) = found.Tensors("weights/x")
  rows = tf.make_ndarray(event.tensor_proto)
  assert rows[:, 2].sum() == len(values)
  assert (rows[0, 0], rows[-1, 1]) == (0, 3)
  assert rows[0, 2] == 2


def test_hyperparameters(written):
  from tensorboard.plugins.hparams import metadata

  values = {
    "hidden_size": 8,
    "dtype": "fp32",
    "x": (1,),
    "none": None,
    "b": True,
  }
  found = written(lambda w: w.write_hyperparameters(values))
  content = found.SummaryMetadata(metadata.SESSION_START_INFO_TAG)
  data = metadata.parse_session_start_info_plugin_data(
    content.plugin_data.content
  )
  told = dict(data.hparams.items())
  assert set(told) == {"hidden_size", "dtype", "x", "b"}
  assert told["hidden_size"].number_value == 8
  assert told["dtype"].string_value == "fp32"
  assert told["x"].string_value == "(1,)"
  assert told["b"].bool_value is True


def test_without_its_package_their_page_is_missed_and_said(
  written, monkeypatch, caplog
):
  import sys

  monkeypatch.setitem(sys.modules, "tensorboard.plugins.hparams.summary", None)
  with caplog.at_level("INFO", logger="absl"):
    written(lambda w: w.write_hyperparameters({"a": 1}))
  assert "official-transformer[plots]" in caplog.text
