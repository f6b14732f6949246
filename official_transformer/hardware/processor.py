"""The processor of this machine, and which products are fast on it."""

from __future__ import annotations

import contextlib
import contextvars
import enum
import functools
import os
import re
from collections.abc import Iterator

# The environment's variable that has TensorFlow use oneDNN or not.
ONEDNN = "TF_ENABLE_ONEDNN_OPTS"
# Rows of a multiple of so many float32, 2 KB, start in the same few sets of the
# first cache; with a cache line more they do not.
_CROWDED_COLUMNS = 512
_LINE = 16
# From this size of the input on, XLA's products of few rows are faster with
# transposed kernels.
_TRANSPOSED_FROM = 512


class Target(enum.Enum):
  """The target of a traced graph, if it is not this machine alone."""

  ANY_PROCESSOR = "any processor"
  XLA = "XLA"


_target = contextvars.ContextVar[Target | None]("target", default=None)


@functools.cache
def is_fast_dtype(dtype: str) -> bool:
  """Returns whether products in a `--dtype` are fast on this machine."""
  import tensorflow as tf

  if dtype == "fp32" or tf.config.list_logical_devices("GPU"):
    return True
  if dtype == "fp16":
    return False
  if tf.config.list_logical_devices("TPU") or not cpuinfo():
    return True
  return has_bfloat16_units(cpuinfo())


def has_bfloat16_units(cpuinfo: str) -> bool:
  """Returns from /proc/cpuinfo whether bfloat16 products beat float32's.

  Of Intel's, AMX is taken to be faster, which a virtual machine may hide, and
  `avx512_bf16` alone is not: a Xeon (family 6, model 207) without AMX takes 1.6
  times as long for an update in bfloat16 as in float32, an AMD EPYC (Zen 5)
  0.7 times. Others are not measured: ARM's `bf16` is taken to mean faster.
  """
  names = _features(cpuinfo)
  if "GenuineIntel" in cpuinfo:
    return "amx_bf16" in names
  return not {"amx_bf16", "avx512_bf16", "bf16"}.isdisjoint(names)


def prefer_onednn() -> None:
  """Has TensorFlow, if it is not imported yet, use oneDNN where that pays.

  TensorFlow's default is to use oneDNN on processors with instructions for
  neural networks, such as AVX512_VNNI. With AVX2 alone, oneDNN is about as fast
  for single products of many rows, and up to twice as fast for products of few
  rows, as in a search, if the layout of their kernels is right; whole updates
  have been 1.9 times as fast.
  """
  if has_short_vectors(cpuinfo()):
    os.environ.setdefault(ONEDNN, "1")


@contextlib.contextmanager
def traced_for(target: Target) -> Iterator[None]:
  """Has kernels inside laid out for a target."""
  token = _target.set(target)
  try:
    yield
  finally:
    _target.reset(token)


def padding_columns_for(columns: int) -> int:
  """Returns how many columns of padding a kernel has for products of few rows.

  With AVX2 alone, oneDNN reads the kernels of such products in place, and is up
  to three times as fast if their rows do not conflict in the cache. Kernels
  that are to run on other machines, too, are padded in any case; XLA gains
  nothing by it.

  Args:
    columns: O, columns of the kernel.
  """
  target = _target.get()
  if columns % _CROWDED_COLUMNS or target is Target.XLA:
    return 0
  if target is Target.ANY_PROCESSOR or _reads_kernels_as_they_lie():
    return _LINE
  return 0


def transposed_is_faster(size: int) -> bool:
  """Returns whether XLA's products of few rows want their kernels transposed.

  They do with AVX2 alone.

  Args:
    size: I, length of each row.
  """
  return (
    size >= _TRANSPOSED_FROM
    and _target.get() is Target.XLA
    and has_short_vectors(cpuinfo())
    and not _has_accelerator()
  )


def _reads_kernels_as_they_lie() -> bool:
  """Returns whether oneDNN computes products, with AVX2 alone."""
  return (
    has_short_vectors(cpuinfo())
    and os.environ.get(ONEDNN, "").lower() in ("1", "true")
    and not _has_accelerator()
  )


def _has_accelerator() -> bool:
  import tensorflow as tf

  return any(tf.config.list_logical_devices(kind) for kind in ("GPU", "TPU"))


def has_short_vectors(cpuinfo: str) -> bool:
  """Returns from /proc/cpuinfo whether there is AVX2, but no AVX-512."""
  names = _features(cpuinfo)
  return "avx2" in names and "avx512f" not in names


@functools.cache
def cpuinfo() -> str:
  """Returns Linux's description of the processors; else an empty text."""
  try:
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
      return stream.read()
  except OSError:
    return ""


def _features(cpuinfo: str) -> set[str]:
  """Returns the feature flags of the first processor."""
  flags = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
  return set(flags[1].split()) if flags else set()
