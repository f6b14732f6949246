"""Gradients that are given, not derived, and no graph kept alive by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import tensorflow as tf


def call_with_gradient(
  function: Callable[..., tuple[tf.Tensor, Callable[..., Any]]],
  *inputs: tf.Tensor,
  training: bool,
) -> tf.Tensor:
  """Calls a function that gives its own gradient.

  TensorFlow registers each custom gradient of a graph under a unique name and
  never forgets it, so that the graph and all its captured tensors stay in
  memory until the process ends. A graph that only translates needs no custom
  gradient: without training, gradients are derived from the operations.

  Args:
    function: returns its output and a function from the gradient of the output
      to the gradients of all inputs, as `tf.custom_gradient` wants it.
    *inputs: of the function.
    training: whether the function's own gradient is used.

  Returns:
    The function's output.
  """
  if training:
    return tf.custom_gradient(function)(*inputs)
  output, _ = function(*inputs)
  return output
