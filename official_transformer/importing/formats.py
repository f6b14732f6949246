"""Names of this model's variables in other implementations.

- `v2`: the official model on TensorFlow 2, whose checkpoints are keyed by
  object graph; with the training model at the root (`fit`) or under `model/`
  (the custom training loop).
- `v1`: the official model on TensorFlow 1, an Estimator's variable names.
- `t2t`: Tensor2Tensor's `transformer_*` models, with an Estimator's variable
  names.

Shapes: V rows of the table, D hidden size, N heads, H head size.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

EMBEDDING = "embedding/weights"
SOURCE_EMBEDDING = "source_embedding/weights"
TARGET_SPACE = "target_space_embedding"
# Tensor2Tensor rounds a table up to a multiple of so many rows and one.
ROUNDED_ROWS = 15


class Placement(NamedTuple):
  """The place of a stored variable, or of a part of it, in the model.

  Attributes:
    path: path of our variable, below `transformer/`.
    part: which of `parts` equal slices along the last axis belongs there;
      some versions store query, key and value in one kernel.
    parts: how many slices there are.
    shard: the place of its rows among the shards of the table.
  """

  path: str
  part: int = 0
  parts: int = 1
  shard: int = 0


Rule = tuple[str, Callable[[re.Match[str]], list[Placement]]]


@dataclasses.dataclass(frozen=True)
class CheckpointFormat:
  """One way of naming.

  Attributes:
    rules: patterns of whole names, each with a function that maps a match to
      placements.
    not_weights: pattern of names that hold no weight: the optimizer's, steps,
      metrics.
    unmasked: whether later versions no longer mask padding, so that their
      decoder starts from row 0 of the table.
    step_name: pattern of the variable that counts finished updates.
  """

  rules: list[Rule]
  not_weights: str
  unmasked: bool
  step_name: str

  def place(self, name: str) -> list[Placement] | None:
    """Returns where a stored variable belongs.

    Returns:
      No placement for variables that are no weights; None for an unknown name.
    """
    for pattern, placements in self.rules:
      if match := re.fullmatch(pattern, name):
        return placements(match)
    return [] if re.search(self.not_weights, name) else None

  def start_symbol(self, shows_heads: bool, names: Iterable[str]) -> str:
    """Returns the start symbol of a model's decoder, as far as it shows.

    Official versions of 2019 with three-dimensional kernels still mask; their
    norms have a `layer_norm_scale`. Later ones have Keras' norms, and most of
    them do not mask.

    Args:
      shows_heads: whether attention kernels are three-dimensional.
      names: names of the variables, as stored.
    """
    keras_norms = any("layer_norm/gamma" in name for name in names)
    later = self.unmasked and shows_heads and keras_norms
    return "pad_row" if later else "zero"

  def is_step(self, name: str) -> bool:
    """Returns whether a variable counts finished updates."""
    return re.fullmatch(self.step_name, name) is not None


ENCODER_SUBLAYERS = ("self_attention", "ffn")
DECODER_SUBLAYERS = ("self_attention", "cross_attention", "ffn")
_ATTENTION_KERNELS = {
  "q": "query_kernel",
  "k": "key_kernel",
  "v": "value_kernel",
  "query": "query_kernel",
  "key": "key_kernel",
  "value": "value_kernel",
  "o": "output_kernel",
  "output": "output_kernel",
  "output_transform": "output_kernel",
}
_NORM = {"scale": "gamma", "bias": "beta", "gamma": "gamma", "beta": "beta"}


def _layer(stack: str, layer: str, sublayer: str) -> str:
  return f"{stack}_stack/layer_{layer}/{sublayer}"


def _one(path: str) -> list[Placement]:
  return [Placement(path)]


def _norm_of(stack: str, layer: str, sublayer: str, name: str) -> str:
  return f"{_layer(stack, layer, sublayer)}/layer_norm/{_NORM[name]}"


# -- v2: `layer_with_weights-0/encoder_stack/layers/3/1/layer_norm/gamma/...`

_V2_ROOT = r"(?:model/)?(?:layer_with_weights-\d+/)?"
_V2_LAYER = _V2_ROOT + r"(encoder|decoder)_stack/layers/(\d+)/(\d)/"
_V2_END = r"/\.ATTRIBUTES/VARIABLE_VALUE"


def _v2_sublayer(match: re.Match[str]) -> str:
  names = {"encoder": ENCODER_SUBLAYERS, "decoder": DECODER_SUBLAYERS}[match[1]]
  # A layer that no version has is reported as unknown, by its path.
  number = int(match[3])
  return names[number] if number < len(names) else f"sublayer_{number}"


def _v2_kernel(match: re.Match[str]) -> list[Placement]:
  sublayer = _v2_sublayer(match)
  where = _layer(match[1], match[2], sublayer)
  if sublayer == "ffn":
    return _one(f"{where}/network/{match[4]}_{match[5]}")
  kernel = _ATTENTION_KERNELS.get(match[4], match[4])
  return _one(f"{where}/attention/{kernel}")


V2 = CheckpointFormat(
  rules=[
    (
      _V2_ROOT + r"embedding_softmax_layer/(?:shared_)?weights" + _V2_END,
      lambda m: _one(EMBEDDING),
    ),
    (
      _V2_LAYER
      + r"layer/(q|k|v|query|key|value|filter|output)_dense_layer/"
      + r"(kernel|bias)"
      + _V2_END,
      _v2_kernel,
    ),
    (
      _V2_LAYER
      + r"layer_norm/(?:layer_norm_)?(scale|bias|gamma|beta)"
      + _V2_END,
      lambda m: _one(_norm_of(m[1], m[2], _v2_sublayer(m), m[4])),
    ),
    (
      _V2_ROOT
      + r"(encoder|decoder)_stack/output_normalization/"
      + r"(?:layer_norm_)?(scale|bias|gamma|beta)"
      + _V2_END,
      lambda m: _one(f"{m[1]}_stack/output_norm/{_NORM[m[2]]}"),
    ),
  ],
  not_weights=(
    r"^_CHECKPOINTABLE_OBJECT_GRAPH$|^save_counter/|(^|/)optimizer/"
    r"|\.OPTIMIZER_SLOT|(^|/)keras_api/|(^|/)metric_mean_fns/"
  ),
  unmasked=True,
  step_name=r"optimizer/(?:\w+/)?_?(?:iterations|iter)" + _V2_END,
)


# -- v1: `model/Transformer/encoder_stack/layer_3/ffn/...`

_V1_ROOT = r"(?:model/)?Transformer/"
_V1_LAYER = _V1_ROOT + r"(encoder|decoder)_stack/layer_(\d+)/"
_ESTIMATOR_NOT_WEIGHTS = (
  r"^global_step$|(^|/)(beta1|beta2)_power(_\d+)?$"
  r"|(^|/)((Lazy|Multistep)?Adam|Adafactor|Momentum)(_\d+)?$"
  r"|/vr?c?_slot$|_slot_v[cr]?$|/(grad|iter)_accum$"
  r"|^(training|train|optimize)/|(^|/)losses_avg/"
  r"|(^|/)(learning_rate|loss_scale|good_steps)$"
)
_ESTIMATOR_SUBLAYERS = {
  "self_attention": "self_attention",
  "encdec_attention": "cross_attention",
  "ffn": "ffn",
}

V1 = CheckpointFormat(
  rules=[
    (
      _V1_ROOT + r"embedding_shared_weights/embedding_and_softmax/weights",
      lambda m: _one(EMBEDDING),
    ),
    (
      _V1_LAYER
      + r"(self_attention|encdec_attention)/(?:self_)?attention/"
      + r"(q|k|v|output_transform)/kernel",
      lambda m: _one(
        _layer(m[1], m[2], _ESTIMATOR_SUBLAYERS[m[3]])
        + f"/attention/{_ATTENTION_KERNELS[m[4]]}"
      ),
    ),
    (
      _V1_LAYER
      + r"ffn/feed_for?ward_network/(filter|output)_layer/(kernel|bias)",
      lambda m: _one(_layer(m[1], m[2], "ffn") + f"/network/{m[3]}_{m[4]}"),
    ),
    (
      _V1_LAYER
      + r"(self_attention|encdec_attention|ffn)/layer_normalization/"
      + r"layer_norm_(scale|bias)",
      lambda m: _one(_norm_of(m[1], m[2], _ESTIMATOR_SUBLAYERS[m[3]], m[4])),
    ),
    (
      _V1_ROOT
      + r"(encoder|decoder)_stack/layer_normalization/layer_norm_(scale|bias)",
      lambda m: _one(f"{m[1]}_stack/output_norm/{_NORM[m[2]]}"),
    ),
  ],
  not_weights=_ESTIMATOR_NOT_WEIGHTS,
  unmasked=False,
  step_name="global_step",
)


# -- t2t: `transformer/body/encoder/layer_3/ffn/conv1/kernel`

_T2T_LAYER = r".*(?:^|/)(encoder|decoder)/layer_(\d+)/"
_T2T_NORM = r"layer_prepostprocess/layer_norm/layer_norm_(scale|bias)"
_FUSED = {
  "qkv_transform": ("query_kernel", "key_kernel", "value_kernel"),
  "q_transform": ("query_kernel",),
  "kv_transform": ("key_kernel", "value_kernel"),
}
_CONV = {"conv1": "filter", "conv2": "output"}


def _t2t_attention(match: re.Match[str]) -> list[Placement]:
  sublayer = _ESTIMATOR_SUBLAYERS[match[3]]
  where = f"{_layer(match[1], match[2], sublayer)}/attention"
  kernels = _FUSED.get(match[4]) or (_ATTENTION_KERNELS[match[4]],)
  return [
    Placement(f"{where}/{kernel}", part, len(kernels))
    for part, kernel in enumerate(kernels)
  ]


T2T = CheckpointFormat(
  rules=[
    (
      r".*symbol_modality_\d+_\d+(?:_\d+)?/shared/weights_(\d+)",
      lambda m: [Placement(EMBEDDING, shard=int(m[1]))],
    ),
    (r".*/target_space_embedding/kernel", lambda m: _one(TARGET_SPACE)),
    (
      _T2T_LAYER
      + r"(self_attention|encdec_attention)/multihead_attention/"
      + r"(q|k|v|o|output_transform|qkv_transform|q_transform|kv_transform)"
      + r"(?:/kernel|/single/kernel)?",
      _t2t_attention,
    ),
    (
      _T2T_LAYER + r"ffn/(?:conv_hidden_relu/)?(conv[12])/(?:single/)?"
      r"(kernel|bias)",
      lambda m: _one(
        _layer(m[1], m[2], "ffn") + f"/network/{_CONV[m[3]]}_{m[4]}"
      ),
    ),
    (
      _T2T_LAYER + r"(self_attention|encdec_attention|ffn)/" + _T2T_NORM,
      lambda m: _one(_norm_of(m[1], m[2], _ESTIMATOR_SUBLAYERS[m[3]], m[4])),
    ),
    (
      r".*(?:^|/)(encoder|decoder)/" + _T2T_NORM,
      lambda m: _one(f"{m[1]}_stack/output_norm/{_NORM[m[2]]}"),
    ),
  ],
  not_weights=_ESTIMATOR_NOT_WEIGHTS,
  unmasked=False,
  step_name="global_step",
)

FORMATS = {"v2": V2, "v1": V1, "t2t": T2T}
# Whose files are no TensorFlow checkpoint: see `marian`.
MARIAN_HF = "marian_hf"
# Marian's own files, see importing/marian_native.py.
MARIAN = "marian"
# A model that was exported for Hugging Face, see importing/pegasus.py.
PEGASUS_HF = "pegasus_hf"
