import numpy as np
import pytest

from official_transformer.data.trained_lines import TrainedLines


def test_what_hardly_any_line_has_is_unusual():
  lengths = np.array([7] * 998 + [90, 200])
  assert TrainedLines.of(lengths, 256) == TrainedLines(90)
  # Training leaves longer ones out, and what cannot be used is 0.
  assert TrainedLines.of(lengths, 89) == TrainedLines(7)
  assert TrainedLines.of(np.array([0, 5, 0]), 256, 0.5) == TrainedLines(5, 0.5)


def test_no_lines_are_like_nothing():
  assert TrainedLines.of(np.array([0, 300]), 256) is None


@pytest.mark.parametrize("fields", [(0,), (9, -0.1), (9, 1.5)])
def test_what_no_lines_can_be_raises(fields):
  with pytest.raises(ValueError, match="lines of 0|is no share"):
    TrainedLines(*fields)
