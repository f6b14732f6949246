"""The service on a Ray cluster of two nodes, one replica killed under load."""

import contextlib
import os
import signal
import threading
import time

import pytest
from trained_model import lines_of, read_frozen
from waiting import wait_for

from official_transformer.decoding.translator import Translator

ray = pytest.importorskip("ray")
psutil = pytest.importorskip("psutil")  # Which comes with Ray.
pytestmark = [
  pytest.mark.long,
  # Ray warns of what it will change, and leaves sockets to be collected.
  pytest.mark.filterwarnings("ignore"),
]
REQUESTS = 40
CLIENTS = 4


@pytest.fixture(scope="module")
def lines():
  return [line.strip() for line in lines_of(read_frozen(), "sources")[:40]]


def two_nodes():
  """Returns a cluster of two nodes.

  On a busy machine Ray's own processes may not answer within the half minute
  that it gives them; then all of them are ended, and others begun.
  """
  from ray.cluster_utils import Cluster

  before = set(psutil.Process().children(recursive=True))
  for attempts_left in (2, 1, 0):
    cluster = Cluster()
    try:
      cluster.add_node(num_cpus=1, include_dashboard=False)
      cluster.add_node(num_cpus=1)
      return cluster
    except Exception:  # Ray raises just that.
      left = set(psutil.Process().children(recursive=True)) - before
      for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
          process.kill()
      psutil.wait_procs(left, timeout=10)
      if not attempts_left:
        raise


@pytest.fixture(scope="module")
def url(trained_model):
  """The address of a service of two replicas, one on each node."""
  from ray import serve

  from official_transformer.serving.ray_application import (
    Arguments,
    application,
  )

  cluster = two_nodes()
  ray.init(address=cluster.address, log_to_driver=False)
  try:
    serve.start(http_options={"port": 8642, "location": "HeadOnly"})
    serve.run(
      application(
        Arguments(model_dir=trained_model, min_replicas=2, max_replicas=2)
      )
    )
    yield "http://127.0.0.1:8642"
  finally:
    serve.shutdown()
    ray.shutdown()
    cluster.shutdown()


def replicas():
  """Returns the processes of the replicas, by the raylet each belongs to.

  They are found by the titles that Ray gives them. Ray's own list of actors
  needs its dashboard, which does not begin on every machine.
  """
  found = {}
  for process in psutil.Process().children(recursive=True):
    # It may end between the listing and the look.
    with contextlib.suppress(psutil.NoSuchProcess):
      title = " ".join(process.cmdline())
      if title.startswith("ray::") and "TranslationReplica" in title:
        found[process.ppid()] = process.pid
  return found


def running():
  """Returns how many replicas the service says are ready."""
  from ray import serve

  deployments = serve.status().applications["default"].deployments
  return deployments["TranslationReplica"].replica_states.get("RUNNING", 0)


def test_a_killed_replica_loses_no_request(url, trained_model, lines):
  from official_transformer.serving.client import TranslationClient

  expected = Translator.load(trained_model).translate(lines)
  before = replicas()
  assert len(before) == 2
  answered, problems = [], []

  def ask(number):
    client = TranslationClient(url)
    for turn in range(REQUESTS):
      rows = [(number + turn * k) % len(lines) for k in (1, 3, 7)]
      try:
        found = client.translate([lines[row] for row in rows])
        texts = [line["translation"] for line in found]
        assert texts == [expected[row] for row in rows]
        answered.append(number)
      except Exception as error:
        problems.append(error)

  threads = [threading.Thread(target=ask, args=[n]) for n in range(CLIENTS)]
  for thread in threads:
    thread.start()
  wait_for(lambda: problems or len(answered) >= CLIENTS * REQUESTS // 4)
  killed = next(iter(before.values()))
  os.kill(killed, signal.SIGKILL)
  for thread in threads:
    thread.join()
  assert not problems
  assert len(answered) == CLIENTS * REQUESTS
  for _ in range(300):
    after = set(replicas().values())
    if len(after) == 2 and killed not in after and running() == 2:
      break
    time.sleep(0.2)
  assert len(after) == 2 and killed not in after and running() == 2
