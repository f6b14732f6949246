"""What the flags of every command say of the model and its decoding."""

from __future__ import annotations

from absl import flags

from official_transformer.decoding.batching import BatchLimits
from official_transformer.decoding.translator import DecodingOptions
from official_transformer.model_directory.requested_params import (
  RequestedParams,
)
from official_transformer.model_params import DECODING_FIELDS, parse_override

FLAGS = flags.FLAGS


def read_requested_params() -> RequestedParams:
  """Reads `--param_set`, `--params_override` and the decoding flags."""
  overrides = parse_override(FLAGS.params_override)
  for name in DECODING_FIELDS:
    if FLAGS[name].value is not None:
      overrides[name] = FLAGS[name].value
  param_set = FLAGS.param_set if FLAGS["param_set"].present else None
  return RequestedParams(param_set, overrides)


def batch_limits() -> BatchLimits:
  """Reads how many lines are decoded or scored at once."""
  return BatchLimits(FLAGS.decode_batch_tokens, FLAGS.decode_batch_size)


def decoding_options() -> DecodingOptions:
  """Reads how lines are brought to the model, for one hypothesis of each."""
  return DecodingOptions(
    limits=batch_limits(),
    padded_length=FLAGS.decode_max_length if FLAGS.padded_decode else 0,
    split_long_lines=FLAGS.split_long_lines,
  )
