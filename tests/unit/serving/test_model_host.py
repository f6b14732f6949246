import threading

import pytest
from serving_fakes import asked, make_translator
from waiting import LONGEST_SECONDS, wait_for

from official_transformer.errors import InputError
from official_transformer.serving.batcher import ClosedError
from official_transformer.serving.model_host import ModelHost, Newest
from official_transformer.serving.settings import ServiceLimits


class Directory:
  """A model directory with a newest checkpoint, which may be damaged."""

  def __init__(self):
    self.step = 1
    self.damaged = False

  def load(self, step):
    if not self.damaged:
      return make_translator(step=self.step)
    if step is not None:
      raise InputError(f"step {step} cannot be read")
    return make_translator(step=self.step - 1)

  def newest(self):
    return Newest(self.step)


@pytest.fixture
def directory():
  return Directory()


@pytest.fixture
def host(directory):
  host = ModelHost(directory.load, directory.newest, ServiceLimits())
  yield host
  host.translator.searchers.plain.go.set()
  host.close()


def text(job):
  return job.future.result(LONGEST_SECONDS)[0].text


def test_a_newer_model_takes_the_place_of_the_old(host, directory):
  assert not host.reload_if_newer()
  old = host.translator
  old.searchers.plain.began.acquire()  # By the warming up.
  old.searchers.plain.go.clear()
  before = host.submit(asked(["ab"]))
  assert old.searchers.plain.began.acquire(timeout=LONGEST_SECONDS)
  directory.step = 2
  # It ends when the old model has answered.
  reload = threading.Thread(target=host.reload_if_newer)
  reload.start()
  wait_for(lambda: host.translator is not old)
  assert host.translator.checkpoint.step == 2
  assert text(host.submit(asked(["cd"]))) == "dc"
  assert not before.future.done()
  old.searchers.plain.go.set()
  assert text(before) == "ba"
  reload.join(LONGEST_SECONDS)
  assert host.reloads == 1
  assert not host.reload_if_newer()


def test_a_model_that_cannot_be_loaded_changes_nothing(host, directory):
  directory.step, directory.damaged = 2, True
  assert not host.reload_if_newer()
  assert host.failed_reloads == 1
  assert text(host.submit(asked(["ab"]))) == "ba"
  directory.damaged = False
  assert host.reload_if_newer()
  assert host.translator.checkpoint.step == 2


def test_one_that_stood_in_at_the_start_gives_way(directory):
  """The newest was still being copied, perhaps."""
  directory.step, directory.damaged = 7, True
  host = ModelHost(directory.load, directory.newest, ServiceLimits())
  assert host.translator.checkpoint.step == 6
  assert not host.reload_if_newer()
  assert host.translator.checkpoint.step == 6
  directory.damaged = False
  assert host.reload_if_newer()
  assert host.translator.checkpoint.step == 7
  assert not host.reload_if_newer()
  host.close()


def test_it_looks_by_itself(host, directory):
  host.watch(0.01)
  directory.step = 5
  wait_for(lambda: host.translator.checkpoint.step == 5)
  assert host.translator.checkpoint.step == 5


def test_closed_it_takes_nothing_on(directory):
  host = ModelHost(directory.load, directory.newest, ServiceLimits())
  assert host.is_ready
  host.close()
  assert not host.is_ready
  with pytest.raises(ClosedError):
    host.submit(asked(["ab"]))
