"""Training that survives what befalls it: the short form of `harness.py`.

`python tests/faults/harness.py` is the long form. Here: every fault once or
more, and two ways of training.
"""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from harness import Trial, run_trials

pytestmark = pytest.mark.slow


def test_a_disturbed_run_ends_as_an_undisturbed_one(tmp_path):
  tally = run_trials(
    tmp_path / "trials",
    {
      "fit": [
        Trial.kill,
        Trial.terminate,
        Trial.overwrite_a_shard,
        Trial.kill,
        Trial.cut_off_newest_checkpoint,
        Trial.suspend,
        Trial.fill_the_disk,
      ],
      "accumulated": [Trial.kill, Trial.interrupt, Trial.kill],
    },
    steps=400,
    seed=1,
    say=print,
  )
  assert [len(events) for events in tally.values()] == [8, 4]
