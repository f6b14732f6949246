import json

import pytest

from official_transformer.model_directory.directory import ModelDirectory
from official_transformer.model_directory.run_logs import read_curves
from official_transformer.training.reporting.summaries import SummaryWriter


def write(tmp_path, name, rows):
  writer = SummaryWriter(str(tmp_path / "logs"))
  for step, value in rows:
    writer.write_scalars({name: value}, step)
  return max((tmp_path / "logs").iterdir(), key=lambda p: p.stat().st_mtime_ns)


def test_what_was_made_twice_counts_once(tmp_path, monkeypatch):
  write(tmp_path, "train/loss", [(10, 5.0), (20, 4.0), (30, 3.0)])
  # Gone on with from step 15, say; both files are of the same second.
  for path in (tmp_path / "logs").iterdir():
    path.rename(path.with_name("events.out.tfevents.1.first"))
  last = write(tmp_path, "train/loss", [(20, 4.5), (25, 4.2)])
  last.rename(last.with_name("events.out.tfevents.2.second"))
  (tmp_path / "measurements.jsonl").write_text(
    json.dumps({"step": 20, "validation/loss": 4.6}) + "\n"
  )
  curves = read_curves(ModelDirectory(str(tmp_path)))
  assert [step for step, _ in curves["train/loss"]] == [10, 20, 25]
  assert [v for _, v in curves["train/loss"]] == pytest.approx([5, 4.5, 4.2])
  assert curves["validation/loss"] == [(20, 4.6)]


def test_a_file_that_was_cut_off_is_read_as_far_as_it_goes(tmp_path):
  path = write(tmp_path, "train/loss", [(10, 5.0), (20, 4.0)])
  path.write_bytes(path.read_bytes()[:-7])
  curves = read_curves(ModelDirectory(str(tmp_path)))
  assert curves["train/loss"] == [(10, 5.0)]


def test_nothing_is_nothing(tmp_path):
  assert read_curves(ModelDirectory(str(tmp_path))) == {}
