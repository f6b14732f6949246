"""Products with kernels, in the type of the operands.

Shapes: I and O a kernel's input and output size; leading dimensions any.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from official_transformer.hardware.processor import (
  is_fast_dtype,
  padding_columns_for,
  transposed_is_faster,
)
from official_transformer.ops.custom_gradient import call_with_gradient


def matmul(a: tf.Tensor, b: tf.Tensor, transpose_b: bool = False) -> tf.Tensor:
  """Returns `a @ b` in the dtype of `a`."""
  dtype = product_dtype(a.dtype)
  product = tf.matmul(
    tf.cast(a, dtype), tf.cast(b, dtype), transpose_b=transpose_b
  )
  return tf.cast(product, a.dtype)


def product_dtype(dtype: tf.DType) -> tf.DType:
  """Returns the type in which products of `dtype` are computed.

  It is `dtype`, but float32 for bfloat16 if no GPU is used and the
  processor has no fast units for it. Where there are none at all, TensorFlow
  would emulate them, at a fifth of the speed. bfloat16 products are summed in
  float32 anyway.
  """
  if dtype == tf.bfloat16 and not is_fast_dtype("bf16"):
    return tf.float32
  return dtype


def dense(
  x: tf.Tensor,
  kernels: Sequence[Any],
  bias: Any = None,
  training: bool = False,
) -> tf.Tensor:
  """Returns `x @ concat(kernels) + bias` in the dtype of `x`.

  Several kernels make one product: a wide one is faster, in the gradient too.

  Args:
    x: [..., I].
    kernels: float32 [I, O_1], [I, O_2], ...
    bias: float32 [O], or None.
    training: whether the gradient is to keep nothing but `x` and the kernels.

  Returns:
    [..., O], with O the sum of all O_i.
  """
  kernels = [tf.convert_to_tensor(k) for k in kernels]
  # One two-dimensional product: a batched one would treat the kernel as B
  # kernels, in the gradient too.
  product = _product(
    tf.reshape(x, [-1, kernels[0].shape[0]]), kernels, training
  )
  if bias is not None:
    bias = tf.cast(tf.convert_to_tensor(bias), x.dtype)
    product = tf.nn.bias_add(product, bias)
  shape = tf.concat([tf.shape(x)[:-1], [product.shape[1]]], axis=0)
  return tf.reshape(product, shape)


@dataclasses.dataclass(frozen=True)
class DenseLayer:
  """`x @ kernel + bias`.

  Attributes:
    kernel: [I, O].
    bias: [O].
  """

  kernel: Any
  bias: Any

  def __call__(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Maps [..., I] to [..., O]."""
    return dense(x, [self.kernel], self.bias, training)


class PreparedKernel(NamedTuple):
  """A kernel prepared for repeated products with few rows.

  Attributes:
    kernel: [I, O + P] in the dtype of the product, with P columns of padding;
      [O, I] if transposed.
    bias: [O + P]; None is none.
    padding_columns: P.
    transposed: whether the kernel is; it has no padding then.
  """

  kernel: tf.Tensor
  bias: tf.Tensor | None = None
  padding_columns: int = 0
  transposed: bool = False

  @property
  def size(self) -> int:
    """O."""
    return self.kernel.shape[0 if self.transposed else 1] - self.padding_columns

  def with_bias(self, bias: tf.Tensor) -> PreparedKernel:
    """Returns the same with a bias [O]."""
    return self._replace(bias=_widen(bias, self.padding_columns))

  def __call__(
    self,
    x: tf.Tensor,
    activate: Callable[[tf.Tensor], tf.Tensor] = lambda y: y,
  ) -> tf.Tensor:
    """Maps [R, I] to [R, O] and applies `activate`, element by element."""
    product = matmul(x, self.kernel, transpose_b=self.transposed)
    if self.bias is not None:
      product = tf.nn.bias_add(product, tf.cast(self.bias, x.dtype))
    # Before anything is cut off: TensorFlow can join product, bias and ReLU.
    product = activate(product)
    return product[:, : self.size] if self.padding_columns else product


def prepare_kernel(
  kernels: Sequence[Any], dtype: tf.DType, bias: tf.Tensor | None = None
) -> PreparedKernel:
  """Returns kernels [I, O_i] side by side, as few rows are multiplied fastest.

  Laying them out costs as much as some products, and is done once for many.

  Args:
    kernels: float32.
    dtype: type of the product's operands.
    bias: [O], or None.
  """
  kernel = join_kernels(kernels, dtype)
  if transposed_is_faster(kernel.shape[0]):
    return PreparedKernel(tf.transpose(kernel), bias, transposed=True)
  projection = _with_padding(kernel)
  return projection if bias is None else projection.with_bias(bias)


def prepare_table(table: tf.Tensor, dtype: tf.DType) -> PreparedKernel:
  """Returns the same of one transposed kernel, a table [O, I]."""
  table = tf.cast(table, product_dtype(dtype))
  if transposed_is_faster(table.shape[1]):
    return PreparedKernel(table, transposed=True)
  return _with_padding(tf.transpose(table))


def join_kernels(kernels: Sequence[Any], dtype: tf.DType) -> tf.Tensor:
  """Returns kernels [I, O_i] side by side, in the type of their products."""
  kernel = tf.concat([tf.convert_to_tensor(k) for k in kernels], axis=1)
  return tf.cast(kernel, product_dtype(dtype))


def _with_padding(kernel: tf.Tensor) -> PreparedKernel:
  padding_columns = padding_columns_for(kernel.shape[1])
  return PreparedKernel(
    _widen(kernel, padding_columns), padding_columns=padding_columns
  )


def _widen(tensor: tf.Tensor, padding_columns: int) -> tf.Tensor:
  """Adds columns of zeros."""
  rows = [[0, 0]] * (len(tensor.shape) - 1)
  return (
    tf.pad(tensor, [*rows, [0, padding_columns]]) if padding_columns else tensor
  )


def _product(
  x: tf.Tensor, kernels: list[tf.Tensor], training: bool
) -> tf.Tensor:
  """Multiplies [L, I] by float32 kernels [I, O_i] side by side."""
  if x.dtype == tf.float32 and len(kernels) == 1:
    return tf.matmul(x, kernels[0])
  dtype = product_dtype(x.dtype)

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

  return call_with_gradient(product, x, *kernels, training=training)
