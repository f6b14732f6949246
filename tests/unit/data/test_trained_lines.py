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


@pytest.mark.parametrize(
  ("before", "then", "after"),
  [
    (None, (7, 0.5), (7, 0.5)),
    ((9, 0.1), (7, 0.5), (9, 0.5)),
    ((5, 0.1), (7, None), (7, 0.1)),
  ],
)
def test_lines_of_earlier_data_are_not_forgotten(before, then, after):
  found = TrainedLines(*then).after(before and TrainedLines(*before))
  assert found == TrainedLines(*after)


@pytest.mark.parametrize("fields", [(0,), (9, -0.1), (9, 1.5)])
def test_what_no_lines_can_be_raises(fields):
  with pytest.raises(
    ValueError, match="usual_length is 0|several_sentences is"
  ):
    TrainedLines(*fields)
