"""The flags of what keeps a training from knowing its text by heart."""

from __future__ import annotations

from absl import flags

from official_transformer.data.segmentation import SIDES
from official_transformer.flag_groups.core import define, read_by

_TRAINING = read_by("train")


def define_weight_flags() -> None:
  """Defines which weights are trained, and which are kept."""
  define(
    flags.DEFINE_float,
    "average_decay",
    0.0,
    "Keep a moving average of the weights with this decay, such as .999: "
    "evaluations, and whoever decodes with a checkpoint, take it. 0: none.",
    _TRAINING,
    lower_bound=0.0,
    upper_bound=0.999999,
  )
  define(
    flags.DEFINE_list,
    "freeze",
    None,
    "Weights that stay as they are: patterns of variables' paths between "
    "commas, such as encoder_stack/*,embedding/*.",
    _TRAINING,
  )


def define_sampling_flags() -> None:
  """Defines how text is cut anew."""
  unsampled = _TRAINING.idle_if(
    lambda v: v.sampling_alpha is None, "there is no --sampling_alpha"
  )
  define(
    flags.DEFINE_float,
    "sampling_alpha",
    None,
    "Cut all text anew at every epoch. With a unigram model: how much better "
    "segmentations are preferred, .2 to .5 (0: not at all). With BPE: the "
    "probability that a merge is left out, .1.",
    _TRAINING.idle_if(lambda v: v.use_synthetic_data, "no data are read"),
    lower_bound=0.0,
  )
  define(
    flags.DEFINE_integer,
    "sampling_nbest",
    64,
    "How many of the best segmentations a unigram model draws from; -1: all.",
    unsampled,
    lower_bound=-1,
  )
  define(
    flags.DEFINE_enum,
    "sampling_sides",
    "both",
    "Whose text is cut anew.",
    unsampled,
    enum_values=list(SIDES),
  )
