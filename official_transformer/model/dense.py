"""Products with kernels, in the dtype of what is multiplied.

Shapes: I and O a kernel's input and output size; leading dimensions any.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf


def matmul(a: tf.Tensor, b: tf.Tensor, transpose_b: bool = False) -> tf.Tensor:
  """Returns `a @ b` in the dtype of `a`."""
  dtype = product_dtype(a.dtype)
  product = tf.matmul(
    tf.cast(a, dtype), tf.cast(b, dtype), transpose_b=transpose_b
  )
  return tf.cast(product, a.dtype)


def product_dtype(dtype: tf.DType) -> tf.DType:
  """Returns what products of two tensors of `dtype` are computed in.

  It is `dtype`, but float32 for bfloat16 if no GPU is used and the
  processor has no fast units for it. Where there are none at all, TensorFlow
  would emulate them, at a fifth of the speed. bfloat16 products are summed in
  float32 anyway.
  """
  if dtype == tf.bfloat16 and not has_units("bf16"):
    return tf.float32
  return dtype


@functools.cache
def has_units(dtype: str) -> bool:
  """Returns whether products in a `--dtype` are fast on this machine."""
  if dtype == "fp32" or tf.config.list_logical_devices("GPU"):
    return True
  if dtype == "fp16":
    return False
  if tf.config.list_logical_devices("TPU"):
    return True
  try:
    with open("/proc/cpuinfo", encoding="utf-8") as stream:
      return has_bfloat16_units(stream.read())
  except OSError:  # Not Linux.
    return True


def has_bfloat16_units(cpuinfo: str) -> bool:
  """Tells from /proc/cpuinfo whether bfloat16 products beat float32's.

  Of Intel's, AMX is taken to be faster, which a virtual machine may hide, and
  `avx512_bf16` alone is not: a Xeon (family 6, model 207) without AMX takes 1.6
  times as long for an update in bfloat16 as in float32, an AMD EPYC (Zen 5)
  0.7 times. Others have not been measured; ARM's are believed.
  """
  flags = re.search(r"^(?:flags|Features)\s*:(.*)$", cpuinfo, re.MULTILINE)
  names = flags[1].split() if flags else []
  if "GenuineIntel" in cpuinfo:
    return "amx_bf16" in names
  return not {"amx_bf16", "avx512_bf16", "bf16"}.isdisjoint(names)


def dense(x: tf.Tensor, kernels: Sequence[Any], bias: Any = None) -> tf.Tensor:
  """Returns `x @ concat(kernels) + bias` in the dtype of `x`.

  Several kernels make one product: a wide one is faster, in the gradient too.

  Args:
    x: [..., I].
    kernels: float32 [I, O_1], [I, O_2], ...
    bias: float32 [O], or None.

  Returns:
    [..., O], with O the sum of all O_i.
  """
  kernels = [tf.convert_to_tensor(k) for k in kernels]
  # One two-dimensional product: a batched one would treat the kernel as B
  # kernels, in the gradient too.
  product = _product(tf.reshape(x, [-1, kernels[0].shape[0]]), kernels)
  if bias is not None:
    bias = tf.cast(tf.convert_to_tensor(bias), x.dtype)
    product = tf.nn.bias_add(product, bias)
  shape = tf.concat([tf.shape(x)[:-1], [product.shape[1]]], axis=0)
  return tf.reshape(product, shape)


class Projection(NamedTuple):
  """What a product is made with, for many products with few rows each.

  Attributes:
    kernel: [I, O], in what is multiplied in.
    bias: [O], in the dtype of what it is added to; None is none.
  """

  kernel: tf.Tensor
  bias: tf.Tensor | None = None

  def __call__(self, x: tf.Tensor) -> tf.Tensor:
    """Maps [R, I] to [R, O]."""
    product = matmul(x, self.kernel)
    if self.bias is None:
      return product
    return tf.nn.bias_add(product, tf.cast(self.bias, x.dtype))


def join_kernels(kernels: Sequence[Any], dtype: tf.DType) -> tf.Tensor:
  """Returns kernels [I, O_i] side by side, in what `dtype` is multiplied in."""
  kernel = tf.concat([tf.convert_to_tensor(k) for k in kernels], axis=1)
  return tf.cast(kernel, product_dtype(dtype))


def _product(x: tf.Tensor, kernels: list[tf.Tensor]) -> tf.Tensor:
  """Multiplies [L, I] by float32 kernels [I, O_i] side by side."""
  if x.dtype == tf.float32 and len(kernels) == 1:
    return tf.matmul(x, kernels[0])
  dtype = product_dtype(x.dtype)

  @tf.custom_gradient
  def product(x: tf.Tensor, *kernels: tf.Tensor) -> Any:
    # Nothing but the operands, as they are, is kept for the gradient.
    def gradient(upstream: tf.Tensor) -> tuple[tf.Tensor, ...]:
      upstream = tf.cast(upstream, dtype)
      with tf.control_dependencies([upstream]):  # Not before it is needed.
        kernel = join_kernels(kernels, x.dtype)
        wide_x = tf.cast(x, dtype)
      dx = tf.matmul(upstream, kernel, transpose_b=True)
      dkernel = tf.matmul(wide_x, upstream, transpose_a=True)
      parts = tf.split(
        tf.cast(dkernel, tf.float32), [k.shape[1] for k in kernels], axis=1
      )
      return (tf.cast(dx, x.dtype), *parts)

    y = tf.matmul(tf.cast(x, dtype), join_kernels(kernels, x.dtype))
    return tf.cast(y, x.dtype), gradient

  return product(x, *kernels)
