"""What a service looks at to see that there is another model."""

import os

from official_transformer.commands.serve import ServiceOptions


def test_a_checkpoint_whose_files_are_replaced_is_another(tmp_path):
  checkpoint = tmp_path / "checkpoints" / "step-5"
  checkpoint.mkdir(parents=True)
  names = ["model.index", "model.data-00000-of-00001"]
  for name in names:
    (checkpoint / name).write_bytes(b"old")
  (tmp_path / "model.json").write_text("{}")
  options = ServiceOptions(model_dir=str(tmp_path))
  seen = [options._newest()]
  assert options._newest() == seen[0]
  before = os.stat(checkpoint)
  for name in names:  # As `cp` does: the directory's own time stays.
    (checkpoint / name).write_bytes(b"news")
    seen.append(options._newest())
  after = os.stat(checkpoint)
  assert before.st_mtime_ns == after.st_mtime_ns
  assert len(set(seen)) == 3
  assert {newest.step for newest in seen} == {5}
