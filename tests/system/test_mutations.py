"""Defects that the tests must notice: each is patched in, and tests must fail.

The tests run in this process, by a pytest within pytest, on a product of which
one function is another. `tests/fidelity/test_model.py` has those that its own
comparisons with upstream must notice.
"""

import io
import pathlib
from contextlib import redirect_stderr, redirect_stdout

import defects
import pytest

pytestmark = pytest.mark.slow

TESTS = pathlib.Path(__file__).parents[1]
# Which tests must not all pass then.
NOTICED_BY = {
  defects.smoothing_denominator: "unit/ops/test_cross_entropy.py::"
  "test_loss_equals_its_definition",
  defects.no_dropout: "unit/ops/test_dropout.py::"
  "test_a_quarter_is_dropped_and_the_rest_scaled",
  defects.training_not_told: "unit/training/step/test_training_step.py::"
  "test_dropout_depends_on_seed_and_step",
  defects.other_beta2: "unit/training/step/test_optimizer.py::"
  "test_adam_by_hand",
  defects.data_from_the_start: "unit/training/test_data_feed.py::"
  "test_a_resumed_run_gets_the_batches_that_come_next",
  defects.a_line_dropped: "unit/decoding/test_translator.py::"
  "test_one_line_out_for_each_line_in_and_in_order",
}


def status_of(test, directory):
  """Runs a test; returns pytest's exit status and what it has printed.

  Args:
    test: the end of its path, and its name.
    directory: for its temporary files, which no other run shares.
  """
  said = io.StringIO()
  with redirect_stdout(said), redirect_stderr(said):
    status = pytest.main(
      [
        *("-q", "-p", "no:cacheprovider", "-p", "no:xdist"),
        *(f"--basetemp={directory}/inner/tests", str(TESTS / test)),
      ]
    )
  return status, said.getvalue()


@pytest.mark.parametrize("test", sorted(set(NOTICED_BY.values())))
def test_without_a_defect_the_tests_pass(test, tmp_path):
  (tmp_path / "inner").mkdir()
  status, said = status_of(test, tmp_path)
  assert status == pytest.ExitCode.OK, said


@pytest.mark.parametrize("defect", NOTICED_BY, ids=lambda d: d.__name__)
def test_a_defect_is_noticed(defect, monkeypatch, tmp_path):
  (tmp_path / "inner").mkdir()
  with monkeypatch.context() as patch:
    defect(patch)
    status, said = status_of(NOTICED_BY[defect], tmp_path)
  # Anything else, such as an error of a fixture, is no answer.
  assert status == pytest.ExitCode.TESTS_FAILED, said
  assert "\nFAILED " in said and "\nERROR " not in said, said
