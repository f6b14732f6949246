"""The devices of a run, and the strategy that distributes it over them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf
from absl import logging

from official_transformer.errors import InputError, RunError
from official_transformer.hardware.memory import computes_on_cpu
from official_transformer.training.cluster import Cluster

# Reduction of gradients over the devices of one machine.
ALL_REDUCE = {
  "nccl": tf.distribute.NcclAllReduce,
  "hierarchical_copy": tf.distribute.HierarchicalCopyAllReduce,
}
CONNECT_SECONDS = 10.0
# Reduction of gradients over several machines.
COMMUNICATION = {
  None: tf.distribute.experimental.CommunicationImplementation.AUTO,
  "nccl": tf.distribute.experimental.CommunicationImplementation.NCCL,
  "ring": tf.distribute.experimental.CommunicationImplementation.RING,
}


@dataclasses.dataclass(frozen=True)
class Distribution:
  """The devices that share a run, and this process's part in it.

  Attributes:
    strategy: TensorFlow's strategy.
    cluster: the processes that take part, if there are several.
  """

  strategy: tf.distribute.Strategy
  cluster: Cluster | None = None

  @property
  def replicas(self) -> int:
    """Among how many replicas each batch is shared."""
    return self.strategy.num_replicas_in_sync

  @property
  def replicas_here(self) -> int:
    """Number of replicas that belong to this process."""
    workers = len(self.cluster.workers) if self.cluster else 1
    return self.replicas // workers

  @property
  def is_chief(self) -> bool:
    """Whether this process writes the files of the run."""
    return self.cluster is None or self.cluster.is_chief

  @property
  def needs_loop(self) -> bool:
    """Whether Keras' `fit` does not train under this strategy."""
    on_tpu = isinstance(self.strategy, tf.distribute.TPUStrategy)
    return self.cluster is not None or on_tpu

  @property
  def on_cpu(self) -> bool:
    """Whether all replicas here compute on this machine's processor."""
    return computes_on_cpu()

  def distribute(self, dataset: tf.data.Dataset) -> Any:
    """Gives each replica its share of every batch.

    Every process reads all the data and keeps its share: a batch is the same
    set of examples, however many share it, and there may be fewer files than
    processes.
    """
    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy.DATA
    options.experimental_distribute.auto_shard_policy = policy
    return self.strategy.experimental_distribute_dataset(
      dataset.with_options(options)
    )

  def broadcast(self, value: int) -> int:
    """Returns the chief's value to all processes; all must call this."""
    return self._sum_over_processes([value if self.is_chief else 0])[0]

  def exchange_signals(
    self, number: int | None, pause: int
  ) -> tuple[int | None, int]:
    """Returns a signal that any process has received; all must call this.

    Args:
      number: number of the one that this process has received, if it has.
      pause: updates until the next exchange, as this process would have it.

    Returns:
      The same to all: SIGTERM's number, unless SIGINT is all that anybody has
      received; and the chief's pause.
    """
    is_term = number not in (None, signal.SIGINT)
    received = [is_term, number is not None]
    term, signals, pause = self._sum_over_processes(
      [*map(int, received), pause if self.is_chief else 0]
    )
    if term:
      return int(signal.SIGTERM), pause
    return int(signal.SIGINT) if signals else None, pause

  def _sum_over_processes(self, values: Sequence[int]) -> list[int]:
    """Returns sums over all processes."""
    if self.cluster is None:
      return list(values)
    summed = self._sum_function(tf.constant(values))
    return self.strategy.experimental_local_results(summed)[0].numpy().tolist()

  @functools.cached_property
  def _sum_function(self) -> Callable[[tf.Tensor], Any]:
    """Sums numbers of each process; made once."""

    def on_replica(value: tf.Tensor) -> tf.Tensor:
      replica = tf.distribute.get_replica_context()
      number = replica.replica_id_in_sync_group
      first_here = tf.equal(number % self.replicas_here, 0)
      return replica.all_reduce(
        tf.distribute.ReduceOp.SUM, tf.where(first_here, value, 0)
      )

    return tf.function(
      lambda value: self.strategy.run(on_replica, args=(value,)),
      autograph=False,
    )

  def barrier(self) -> None:
    """Waits until all processes have come here."""
    self.broadcast(0)

  def check_agreement(self, value: int, what: str) -> None:
    """Checks that all processes see the same.

    Raises:
      InputError: in a process that sees something else than the chief.
    """
    expected = self.broadcast(value)
    if value != expected:
      assert self.cluster is not None
      raise InputError(
        f"{self.cluster.here} and the chief differ in {what}. All workers need "
        "the same flags, and one --model_dir that all can read"
      )

  @contextlib.contextmanager
  def report_lost_peers(self) -> Iterator[None]:
    """Makes one clear error of a worker that has gone."""
    try:
      yield
    except tf.errors.OpError as error:
      if self.cluster is None:
        raise
      silent = self.cluster.silent_peers()
      if not silent:
        # A port stays open for a moment after its process has gone.
        time.sleep(2.0)
        silent = self.cluster.silent_peers()
      if not silent and not isinstance(error, tf.errors.UnavailableError):
        raise
      names = ", ".join(map(str, silent)) or "another worker"
      raise RunError(
        f"{self.cluster.here} has lost {names}, and training cannot go on "
        "without. See what was said there, then start all workers again with "
        "the same commands: they go on from the last checkpoint"
      ) from None


def create_distribution(
  name: str,
  devices: Sequence[str],
  all_reduce_alg: str | None = None,
  num_packs: int = 1,
  tpu: str | None = None,
  connect_timeout: float = 300.0,
) -> Distribution:
  """Returns the devices that share a run.

  Args:
    name: `off`, `one_device`, `mirrored`, `multi_worker_mirrored`, `tpu`, or
      `parameter_server`, which is refused.
    devices: result of `choose_devices`.
    all_reduce_alg: a key of `ALL_REDUCE` on one machine, of `COMMUNICATION` on
      several; None leaves the choice to TensorFlow.
    num_packs: for `mirrored`, into how many packs gradients are put.
    tpu: for `tpu`, its name or address; `local` for one in this machine.
    connect_timeout: for `multi_worker_mirrored`, seconds to wait for a worker.

  Raises:
    InputError: if the strategy cannot run on these devices.
  """
  if name == "parameter_server":
    raise InputError(
      "--distribution_strategy=parameter_server: Keras 3 trains no functional "
      "model under it, and asynchronous updates have no counterpart of the "
      "official numbers. Use mirrored, over all GPUs of one machine, or "
      "multi_worker_mirrored, over several machines"
    )
  if name == "multi_worker_mirrored":
    return _join_workers(all_reduce_alg, connect_timeout)
  if name == "tpu":
    return Distribution(_tpu_strategy(tpu))
  return Distribution(_local_strategy(name, devices, all_reduce_alg, num_packs))


def _join_workers(
  all_reduce_alg: str | None, connect_timeout: float
) -> Distribution:
  """Waits for the workers that TF_CONFIG names, and joins them."""
  if all_reduce_alg not in COMMUNICATION:
    raise InputError(
      f"--all_reduce_alg={all_reduce_alg} is for one machine; over several "
      f"there are: {', '.join(filter(None, COMMUNICATION))}"
    )
  cluster = Cluster.from_environment()
  logging.info(
    "%s of %d: waiting for the others", cluster.here, len(cluster.workers)
  )
  options = tf.distribute.experimental.CommunicationOptions(
    implementation=COMMUNICATION[all_reduce_alg]
  )
  cluster.wait_for_peers(connect_timeout)
  strategy = tf.distribute.MultiWorkerMirroredStrategy(
    communication_options=options
  )
  return Distribution(strategy, cluster)


def _local_strategy(
  name: str,
  devices: Sequence[str],
  all_reduce_alg: str | None,
  num_packs: int,
) -> tf.distribute.Strategy:
  """Returns a strategy over devices of this machine."""
  if name in ("off", "one_device") and len(devices) > 1:
    raise InputError(
      f"--distribution_strategy={name} uses one device, --num_gpus asks for "
      f"{len(devices)}; use mirrored"
    )
  if len(devices) > 1:
    reduction = None
    if all_reduce_alg is not None:
      if all_reduce_alg not in ALL_REDUCE:
        raise InputError(
          f"--all_reduce_alg={all_reduce_alg} is for several machines; on one "
          f"there are: {', '.join(ALL_REDUCE)}"
        )
      reduction = ALL_REDUCE[all_reduce_alg](num_packs=num_packs)
    elif num_packs != 1:
      reduction = tf.distribute.NcclAllReduce(num_packs=num_packs)
    return tf.distribute.MirroredStrategy(devices, reduction)
  if name == "one_device":
    return tf.distribute.OneDeviceStrategy(devices[0])
  # One device needs no strategy; with one, Keras' fit would read the first
  # batch twice, together with all data before it.
  return tf.distribute.get_strategy()


def _tpu_strategy(address: str | None) -> tf.distribute.Strategy:
  """Connects to a TPU."""
  try:
    _probe(address or "")
    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(
      tpu="" if address is None else address
    )
    if address not in ("", "local"):
      tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
  # Errors of any step, from name look-up to the handshake.
  except (
    ValueError,
    OSError,
    RuntimeError,
    LookupError,
    tf.errors.OpError,
  ) as e:
    reason = str(e).strip().split("\n")[0]
    raise InputError(
      f"--distribution_strategy=tpu: no TPU answers at --tpu={address} "
      f"({reason}). Check its name, or run on the TPU's own machine "
      "with --tpu=local"
    ) from None
  return tf.distribute.TPUStrategy(resolver)


def _probe(address: str) -> None:
  """Raises an `OSError` if nothing listens; TensorFlow would wait on."""
  match = re.fullmatch(r"grpc://(.+):(\d+)", address)
  if match:
    host, port = match.groups()
    socket.create_connection((host, int(port)), CONNECT_SECONDS).close()
