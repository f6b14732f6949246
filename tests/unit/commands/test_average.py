import pytest

from official_transformer.commands import average as lib
from official_transformer.errors import InputError
from official_transformer.model_directory.checkpoint_writing import (
  write_checkpoint,
)
from official_transformer.model_directory.directory import (
  INTERIM,
  ModelDirectory,
)


@pytest.fixture
def directory(tmp_path):
  """Checkpoints of the start, of two turns, one by chance, one more turn."""
  directory = ModelDirectory(str(tmp_path))
  for step in (0, 10, 20, 25, 30):
    marks = [INTERIM] if step == 25 else []
    write_checkpoint(directory, step, {"weights/a": 1.0 * step}, marks=marks)
  return directory


def test_the_last_are_those_that_training_was_asked_for(directory):
  assert lib.last_steps(directory, 2) == [20, 30]
  assert lib.last_steps(directory, 3) == [10, 20, 30]
  with pytest.raises(
    InputError, match="has 3 checkpoints that count, of the steps 10, 2"
  ):
    lib.last_steps(directory, 4)


def test_any_can_be_listed(directory):
  assert lib.listed_steps(directory, ["25", "0"]) == [0, 25]
  for listed, complaint in (
    (["10", "11", "x"], "no checkpoint of step 11, x; .* has 0, 10, 20, 25, 3"),
    ([], "has 0, 10, 20, 25, 30"),
    (["10", "10"], "a step twice"),
  ):
    with pytest.raises(InputError, match=complaint):
      lib.listed_steps(directory, listed)
