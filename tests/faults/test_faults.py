"""Training that survives what befalls it: the short form of `harness.py`.

`python tests/faults/harness.py` disturbs a run at many more moments. Here, the
test marked long has every fault once or more, and two ways of training; the
other one the faults that a run must come back from by itself.
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
        Trial.overwrite_a_shard,
        Trial.cut_off_newest_checkpoint,
        Trial.fill_the_disk,
      ]
    },
    steps=400,
    seed=2,  # With which it is killed while it trains.
    say=print,
  )
  assert [len(events) for events in tally.values()] == [5]


@pytest.mark.long
def test_so_it_does_after_every_fault_and_in_two_ways(tmp_path):
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
