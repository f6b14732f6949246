"""Weights that a run leaves as they are, chosen by the paths of variables."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import keras
from absl import logging

from official_transformer.errors import InputError

_ROOT = "transformer/"


def freeze(weights: Sequence[keras.Variable], patterns: Sequence[str]) -> None:
  """Makes variables untrainable.

  Args:
    weights: weights of a model that has been built.
    patterns: patterns, as for file names, of paths such as
      `encoder_stack/layer_0/ffn/network/filter_kernel`; `*` matches any number
      of characters, also slashes.

  Raises:
    InputError: if a pattern names no variable, or nothing is left to train.
  """
  if not patterns:
    return
  paths = [weight.path.removeprefix(_ROOT) for weight in weights]
  for pattern in patterns:
    if not fnmatch.filter(paths, pattern):
      raise InputError(
        f"--freeze={pattern}: no variable has such a path. There are, for "
        f"example: {', '.join(paths[:3])}; and embedding/*, encoder_stack/*, "
        "decoder_stack/layer_0/*, */layer_norm/*"
      )
  frozen = 0
  for weight, path in zip(weights, paths, strict=True):
    if any(fnmatch.fnmatchcase(path, pattern) for pattern in patterns):
      weight.trainable = False
      frozen += 1
  if frozen == len(weights):
    raise InputError(
      f"--freeze={','.join(patterns)} leaves nothing to be trained"
    )
  logging.info("%d of %d variables are frozen", frozen, len(weights))
