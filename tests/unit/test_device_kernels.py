"""Whether devices that are not here can do what a training step or search does.

TensorFlow for CPUs knows which operations have kernels for GPUs, and which ones
XLA compiles for them.
"""

import collections
import dataclasses
import functools

import pytest
import tensorflow as tf
from runs import PARAMS, settings
from tensorflow.python.framework import kernels

from official_transformer.data.buckets import Batching
from official_transformer.decoding.options import BatchLimits, StaticShapes
from official_transformer.decoding.searcher import Searcher
from official_transformer.model.building import build_transformer
from official_transformer.ops import dense
from official_transformer.training.settings import Execution
from official_transformer.training.strategy import Distribution
from official_transformer.training.training_model import TrainingModel

DTYPES = ["fp32", "bf16", "fp16"]
# Types and `accumulate_steps`: sums of gradients are float32 in every type, and
# fp16 adds the scale of the loss.
STEPS = [*((dtype, 1) for dtype in DTYPES), ("fp16", 2)]
# Ends of functions, which no device computes.
NO_KERNEL_NEEDED = {"Placeholder", "_Arg", "_Retval", "NoOp"}
# What a GPU computes on the host though TensorFlow has a kernel for it, since
# its int32 numbers are thought to be shapes: of what a search carries, the
# places of hypotheses and of their tokens, [B, 2K], the ids of those that leave
# and the origin beams [R, T]. That costs some copies of a few kB a step.
INTEGERS_OF_BOTH = {
  "AddV2",
  "ConcatV2",
  "FloorDiv",
  "FloorMod",
  "GreaterEqual",
  "Identity",
  "Less",
  "Maximum",
  "Mul",
  "Pack",
  "Range",
  "Reshape",
  "Shape",
  "Size",
  "StridedSlice",
  "Sub",
}
INTEGERS_OF_A_SEARCH = INTEGERS_OF_BOTH | {
  "Equal",
  "Fill",
  "Greater",
  "Max",
  "NotEqual",
  "PadV2",
  "Sum",
  "TensorScatterUpdate",
  "Unpack",
}
INTEGERS_OF_A_STEP = INTEGERS_OF_BOTH | {
  "ExpandDims",
  "InvertPermutation",
  "Neg",
  "Pad",
}


@pytest.fixture(autouse=True)
def as_if_there_were_units(monkeypatch):
  """Products are in the given precision, as a GPU computes them."""
  monkeypatch.setattr(dense, "is_fast_dtype", lambda _: True)


@functools.cache
def registry():
  # XLA's are registered once it has compiled anything.
  tf.function(lambda x: x + 1, jit_compile=True)(tf.ones([1]))
  by_operation = collections.defaultdict(list)
  for kernel in kernels.get_all_registered_kernels().kernel:
    by_operation[kernel.op].append(kernel)
  return by_operation


def types_of(attribute):
  if attribute.HasField("type"):
    return [attribute.type]
  return list(attribute.list.type)


def kernels_for(node, devices):
  """Returns the kernels of some devices that take a node's types."""
  return [
    kernel
    for kernel in registry()[node.op]
    if kernel.device_type in devices
    and all(
      set(types_of(node.attr[c.name])) <= set(c.allowed_values.list.type)
      for c in kernel.constraint
    )
  ]


def nodes_of(function):
  """Yields the nodes of a traced function and of all that it calls."""
  graph = function.graph.as_graph_def()
  yield from graph.node
  for inner in graph.library.function:
    yield from inner.node_def


def describe(node):
  types = [t for a in node.attr.values() for t in types_of(a) if t]
  names = ", ".join(tf.dtypes.as_dtype(t).name for t in types)
  return f"{node.op}({names})"


def left_to_the_host(function, devices=("GPU", "DEFAULT")):
  """Returns what no kernel does, and what kernels do in the host's memory."""
  lacking, integers = set(), set()
  for node in nodes_of(function):
    if node.op in NO_KERNEL_NEEDED:
      continue
    found = kernels_for(node, devices)
    if not found:
      lacking.add(describe(node))
    elif node.op != "Const" and all(
      {"output", "y", "z"} & set(kernel.host_memory_arg) for kernel in found
    ):
      integers.add(node.op)
  return lacking, integers


def training_functions(dtype, accumulate_steps, static=False):
  """Returns what replicas do in an update, traced."""
  batching = Batching(128, 16, static, accumulate_steps=accumulate_steps)
  run = settings(
    "nowhere", 4, batching=batching, execution=Execution(dtype=dtype)
  )
  model = TrainingModel(
    dataclasses.replace(PARAMS, clip_norm=1.0),
    run,
    Distribution(tf.distribute.get_strategy()),
  )
  ids = tf.TensorSpec([8, 16] if static else [None, None], tf.int64)
  step = model.step
  if accumulate_steps == 1:
    calls = [(lambda x, y: step.logs(step(x, y)), [ids, ids])]
  else:
    calls = [
      (step.accumulate, [ids, ids, tf.TensorSpec([], tf.int32)]),
      (lambda: step.logs(step.update_accumulated()), []),
    ]
  return [
    tf.function(call, autograph=False).get_concrete_function(*arguments)
    for call, arguments in calls
  ]


@pytest.mark.parametrize(("dtype", "accumulate_steps"), STEPS)
def test_a_gpu_does_all_of_a_training_step(dtype, accumulate_steps):
  for function in training_functions(dtype, accumulate_steps):
    lacking, integers = left_to_the_host(function)
    assert lacking == set()
    assert integers <= INTEGERS_OF_A_STEP


@pytest.mark.parametrize(
  ("dtype", "beam_size"), [(d, 4) for d in DTYPES] + [("bf16", 20)]
)
@pytest.mark.parametrize("spare", [0, 3])
def test_a_gpu_does_all_of_a_search(dtype, beam_size, spare, monkeypatch):
  monkeypatch.setattr(dense, "padding_columns_for", lambda _: spare)
  params = dataclasses.replace(PARAMS, beam_size=beam_size)
  transformer = build_transformer(params, dtype, is_train=False)
  search = Searcher(transformer, vocabulary_size=18).search_function
  lacking, integers = left_to_the_host(search.get_concrete_function())
  assert lacking == set()
  assert integers <= INTEGERS_OF_A_SEARCH


@pytest.mark.parametrize(("dtype", "accumulate_steps"), STEPS)
def test_xla_compiles_all_of_a_static_training_step(dtype, accumulate_steps):
  """For GPUs; for TPUs, what it compiles is the same but for its types."""
  for function in training_functions(dtype, accumulate_steps, static=True):
    lacking, _ = left_to_the_host(function, ("XLA_GPU_JIT",))
    assert lacking == set()
    assert_fit_for_tpus(function)


@pytest.mark.parametrize("dtype", DTYPES)
def test_xla_compiles_all_of_a_static_search(dtype):
  transformer = build_transformer(PARAMS, dtype, is_train=False)
  shapes = StaticShapes(8, BatchLimits())
  search = Searcher(transformer, 18, shapes).search_function
  ids = tf.TensorSpec([4, 8], tf.int32)
  function = search.get_concrete_function(ids)
  lacking, _ = left_to_the_host(function, ("XLA_GPU_JIT",))
  assert lacking == set()
  assert_fit_for_tpus(function)


def assert_fit_for_tpus(function):
  """No type that they lack, and no size that only the data tell."""
  for node in nodes_of(function):
    types = {tf.dtypes.as_dtype(t) for a in node.attr.values()
             for t in types_of(a) if t}  # fmt: skip
    assert not types & {tf.float64, tf.complex128, tf.string}, node.name
    assert node.op not in ("Where", "Unique", "UniqueV2", "BooleanMask")


def test_a_missing_kernel_would_be_noticed():
  """GPUs have none for the search's former way to note what has finished."""
  function = tf.function(
    lambda x: tf.tensor_scatter_nd_update(x, [[0]], [True]),
    input_signature=[tf.TensorSpec([3], tf.bool)],
  )
  lacking, _ = left_to_the_host(function.get_concrete_function())
  (name,) = lacking
  assert name.startswith("TensorScatterUpdate(") and "bool" in name
