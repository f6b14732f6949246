import contextlib
import json
import socket
from concurrent import futures

import pytest
from waiting import LONGEST_SECONDS, wait_for

from official_transformer.errors import InputError
from official_transformer.training.cluster import Cluster


def environment(cluster, kind="worker", index=0):
  config = {"cluster": cluster, "task": {"type": kind, "index": index}}
  return {"TF_CONFIG": json.dumps(config)}


def test_the_chief_is_the_first_worker_or_the_one_that_is_named():
  workers = {"worker": ["a:1", "b:2"]}
  chiefs = [
    Cluster.from_environment(environment(workers, index=n)).is_chief
    for n in range(2)
  ]
  assert chiefs == [True, False]
  cluster = Cluster.from_environment(
    environment({"worker": ["a:1"], "chief": ["c:3"]}, "chief")
  )
  assert cluster.is_chief
  assert [str(w) for w in cluster.workers] == [
    "chief 0 (c:3)",
    "worker 0 (a:1)",
  ]


@pytest.mark.parametrize(
  ("variables", "complaint"),
  [
    ({}, "TF_CONFIG is not set; TF_CONFIG is JSON such as"),
    ({"TF_CONFIG": "{"}, "TF_CONFIG={: JSONDecodeError"),
    ({"TF_CONFIG": "[]"}, "TypeError"),
    ({"TF_CONFIG": "{}"}, "KeyError\\('cluster'\\)"),
    (environment({"worker": ["a:1"]}, index=1), "task is not in its cluster"),
    (environment({"worker": ["a"]}), "IndexError"),
    (environment({"worker": ["a:0"]}), "a port is out of range"),
    (environment({"worker": ["a:1"], "ps": ["b:1"]}), "TF_CONFIG has ps; only"),
  ],
)
def test_what_cannot_be_understood_is_one_clear_error(variables, complaint):
  with pytest.raises(InputError, match=complaint):
    Cluster.from_environment(variables)


@contextlib.contextmanager
def taken_port():
  """Yields a port that nobody else gets, and that refuses connections."""
  with socket.socket() as made:
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind(("127.0.0.1", 0))
    yield made.getsockname()[1]


def test_silent_peers_are_named_and_others_are_not():
  with (
    socket.create_server(("127.0.0.1", 0)) as listening,
    taken_port() as silent,
    taken_port() as here,
  ):
    port = listening.getsockname()[1]
    addresses = [f"127.0.0.1:{p}" for p in (here, port, silent)]
    cluster = Cluster.from_environment(environment({"worker": addresses}))
    with pytest.raises(
      InputError, match="has waited 0.3 s for worker 2 \\(127"
    ):
      cluster.wait_for_peers(0.3)
    pair = Cluster.from_environment(environment({"worker": addresses[:2]}))
    pair.wait_for_peers(0.3)
    taken = Cluster.from_environment(environment({"worker": addresses[1:2]}))
    with pytest.raises(InputError, match="cannot listen at port"):
      taken.wait_for_peers(0.3)


def test_probes_of_others_never_fill_the_queue():
  with taken_port() as silent, taken_port() as here:
    addresses = [f"127.0.0.1:{port}" for port in (here, silent)]
    cluster = Cluster.from_environment(environment({"worker": addresses}))
    with futures.ThreadPoolExecutor() as pool:
      waiting = pool.submit(cluster.wait_for_peers, LONGEST_SECONDS)
      wait_for(cluster.here.answers)
      for _ in range(200):  # A queue holds 128.
        socket.create_connection(("127.0.0.1", here), LONGEST_SECONDS).close()
      with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        peer.bind(("127.0.0.1", silent))
        peer.listen()
        waiting.result()
