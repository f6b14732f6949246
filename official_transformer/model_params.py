"""Hyper-parameters: the official sets, and how a user changes one field.

Sources: "Attention Is All You Need", table 3 (base and big); the official
TensorFlow model (tiny, base, big and their multi-GPU variants); Tensor2Tensor's
`transformer_small`.
"""

from __future__ import annotations

import collections
import dataclasses
import math
import numbers
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from official_transformer.errors import InputError

START_SYMBOLS = ("zero", "pad_row")
# Choices of the architecture. The first of each is the official model's;
# docs/variants.md names the source of the others.
NORMS = ("pre", "post")
POSITIONS = ("sinusoid", "interleaved", "huggingface", "learned")
ACTIVATIONS = ("relu", "gelu", "swish")
SHARED_EMBEDDINGS = ("all", "decoder", "none")

PAD_ID = 0
EOS_ID = 1
# Text that a SentencePiece or a word vocabulary lacks.
UNK_ID = 2

# Longest training example in tokens if no other is asked for.
DEFAULT_MAX_LENGTH = 256

# The vocabularies decide them.
VOCABULARY_FIELDS = ("vocab_size", "source_vocab_size")

# The main course notebook's names of `layer_postprocess_dropout`.
_RESIDUAL_DROPOUTS = ("layer_normresidual_dropout", "embedding_dropout")

# How to decode may change from run to run; a model fixes all other fields.
DECODING_FIELDS = (
  "beam_size",
  "alpha",
  "extra_decode_length",
  "patience",
  "suppress_unk",
)

# Fields that may change when a new model starts with another model's weights.
TRAINING_FIELDS = (
  "default_batch_size",
  "initializer_gain",
  "layer_postprocess_dropout",
  "attention_dropout",
  "relu_dropout",
  "label_smoothing",
  "learning_rate",
  "learning_rate_warmup_steps",
  "optimizer_adam_beta1",
  "optimizer_adam_beta2",
  "optimizer_adam_epsilon",
  "clip_norm",
)


@dataclasses.dataclass(frozen=True)
class TransformerParams:
  """Every number that shapes the model, its training and its decoding.

  Attributes:
    vocab_size: rows of the shared embedding table; 0 until the vocabulary
      file has been read, because its size always comes from that file.
    source_vocab_size: rows of the source's own table if the two sides have
      different vocabularies; 0 if they have one (see `share_embeddings`).
    hidden_size: width of every layer's input and output (the paper's d_model).
    num_hidden_layers: layers of the encoder, and of the decoder.
    num_encoder_layers: layers of the encoder; 0 is `num_hidden_layers`.
    num_decoder_layers: layers of the decoder; 0 is `num_hidden_layers`.
    num_heads: attention heads; must divide `hidden_size`.
    filter_size: width inside the feed-forward network (the paper's d_ff).
    default_batch_size: tokens in a global batch, source or target side.
    initializer_gain: scale of the uniform fan-average initialiser.
    layer_postprocess_dropout: on sub-layer outputs and embedding + position.
    attention_dropout: on attention weights.
    relu_dropout: after the feed-forward network's ReLU.
    label_smoothing: probability spread over the wrong tokens.
    learning_rate: factor of the schedule; not a rate.
    learning_rate_warmup_steps: updates until the rate peaks.
    optimizer_adam_beta1: decay of Adam's first moment.
    optimizer_adam_beta2: decay of Adam's second moment.
    optimizer_adam_epsilon: added to the root of the second moment.
    clip_norm: the largest norm of an update's gradient, as one vector over all
      variables; a longer one is scaled down to it. 0 scales none.
    extra_decode_length: tokens a translation may be longer than its source.
    beam_size: hypotheses kept while decoding; 1 is greedy.
    alpha: strength of the length normalisation; 0 is none.
    patience: a sentence's search ends with so many times `beam_size` finished
      hypotheses; 0: with any number that nothing alive could still outdo.
    start_symbol: first input of the decoder: `zero`, a zero vector (first
      official version, Tensor2Tensor), or `pad_row`, row 0 of the embedding
      (later official versions).
    target_space_embedding: whether a learnt vector is added to every embedded
      source token, as Tensor2Tensor's models have it.
    norm: `pre` normalises the input of each sub-layer and the output of each
      stack; `post` normalises each sum of a sub-layer's input and output (the
      paper, 3.1), and nothing after a stack.
    layer_norm_epsilon: added to the variance that a norm divides by.
    positions: encoding that is added to embeddings, a name of
      `model.variants.POSITIONS`; `learned` is a table for each side.
    max_positions: rows of the tables of learnt positions: no text may be
      longer.
    attention_bias: whether the products of attention have biases.
    activation: activation of the feed-forward network: `relu`, `gelu` or
      `swish`.
    share_embeddings: which tables are one: `all`, as far as there is one
      vocabulary; `decoder`, the target's and the softmax's; `none`.
    scale_embeddings: whether embeddings are multiplied by the root of
      `hidden_size`.
    output_bias: whether logits have biases.
    suppress_pad: whether a translation never holds PAD, whose probability goes
      to the other tokens: Marian's models are trained so.
    suppress_unk: whether a translation never holds the token for characters
      that its vocabulary lacks, whose probability goes to the other tokens.
  """

  vocab_size: int = 0
  source_vocab_size: int = 0
  hidden_size: int = 512
  num_hidden_layers: int = 6
  num_heads: int = 8
  filter_size: int = 2048
  default_batch_size: int = 2048
  initializer_gain: float = 1.0
  layer_postprocess_dropout: float = 0.1
  attention_dropout: float = 0.1
  relu_dropout: float = 0.1
  label_smoothing: float = 0.1
  learning_rate: float = 2.0
  learning_rate_warmup_steps: int = 16000
  optimizer_adam_beta1: float = 0.9
  optimizer_adam_beta2: float = 0.997
  optimizer_adam_epsilon: float = 1e-9
  clip_norm: float = 0.0
  extra_decode_length: int = 50
  beam_size: int = 4
  alpha: float = 0.6
  patience: float = 0.0
  start_symbol: str = "zero"
  target_space_embedding: bool = False
  num_encoder_layers: int = 0
  num_decoder_layers: int = 0
  norm: str = "pre"
  layer_norm_epsilon: float = 1e-6
  positions: str = "sinusoid"
  max_positions: int = 512
  attention_bias: bool = False
  activation: str = "relu"
  share_embeddings: str = "all"
  scale_embeddings: bool = True
  output_bias: bool = False
  suppress_pad: bool = False
  suppress_unk: bool = False

  @classmethod
  def of(
    cls, params: TransformerParams | Mapping[str, Any]
  ) -> TransformerParams:
    """Returns parameters that may be given as upstream's dictionary.

    Args:
      params: parameters, or a mapping. Keys of a mapping that are no field are
        ignored, because upstream's dictionaries also hold the settings of a
        run. Names of the main course notebook are understood.

    Raises:
      InputError: if a value is impossible, or the notebook's two kinds of
        residual dropout differ, which are one here as they are upstream.
    """
    if isinstance(params, TransformerParams):
      return params
    fields = {field.name for field in dataclasses.fields(cls)}
    values = {name: params[name] for name in fields.intersection(params)}
    rates = {
      name: params[name]
      for name in ("layer_postprocess_dropout", *_RESIDUAL_DROPOUTS)
      if name in params
    }
    if len(set(rates.values())) > 1:
      given = ", ".join(f"{name}={rate}" for name, rate in rates.items())
      raise InputError(
        f"{given} differ: set them alike, because sub-layers and embeddings "
        "have one rate here, layer_postprocess_dropout"
      )
    if rates:
      values["layer_postprocess_dropout"] = next(iter(rates.values()))
    return cls(**values)

  def __getitem__(self, name: str) -> Any:
    """Returns a field, as `params["hidden_size"]` of a dictionary does."""
    if name not in self:
      raise KeyError(name)
    return getattr(self, name)

  def __contains__(self, name: object) -> bool:
    return name in self.__dataclass_fields__

  def keys(self) -> list[str]:
    """Returns the names of all fields."""
    return list(self.__dataclass_fields__)

  def get(self, name: str, default: Any = None) -> Any:
    """Returns a field, or else a default."""
    return getattr(self, name) if name in self else default

  @property
  def hidden_tokens(self) -> tuple[int, ...]:
    """Ids that no translation contains."""
    hidden = (self.suppress_pad, PAD_ID), (self.suppress_unk, UNK_ID)
    return tuple(token for is_hidden, token in hidden if is_hidden)

  @property
  def encoder_layers(self) -> int:
    """Layers of the encoder."""
    return self.num_encoder_layers or self.num_hidden_layers

  @property
  def decoder_layers(self) -> int:
    """Layers of the decoder."""
    return self.num_decoder_layers or self.num_hidden_layers

  @property
  def source_rows(self) -> int:
    """Rows of the table that the source has to itself; 0 if it has none."""
    if self.source_vocab_size or self.share_embeddings == "all":
      return self.source_vocab_size
    return self.vocab_size

  @property
  def longest(self) -> int | None:
    """Most tokens of a text, EOS included; None if any number will do."""
    return self.max_positions if self.positions == "learned" else None

  @property
  def longest_output(self) -> int | None:
    """Most tokens that a search writes; None if any number will do.

    One fewer than `longest`: a model can still read a translation that has not
    ended at this length, with EOS appended.
    """
    return None if self.longest is None else max(self.longest - 1, 1)

  def __post_init__(self) -> None:
    if self.positions == "marian":  # Its earlier name.
      object.__setattr__(self, "positions", "huggingface")
    problems = list(self._problems())
    if problems:
      raise InputError("impossible parameters: " + "; ".join(problems))

  def _wrong_types(self) -> Iterator[str]:
    """Yields a problem for each value of a wrong type."""
    for field in dataclasses.fields(self):
      name, kind = field.name, str(field.type)
      value = getattr(self, name)
      # Python's bool is an int, too.
      if isinstance(value, bool) != (kind == "bool") or not isinstance(
        value, _TYPES[kind]
      ):
        yield f"{name} is {value!r}, must be of type {kind}"

  def _problems(self) -> Iterator[str]:
    """Yields all that is wrong, so that a user mends it in one go."""
    if wrong := list(self._wrong_types()):
      yield from wrong
      return
    for name, value in dataclasses.asdict(self).items():
      if isinstance(value, float) and not math.isfinite(value):
        yield f"{name} is {value}, must be finite"
    for names, holds, demand in _RANGES:
      for name in names:
        if not holds(getattr(self, name)):
          yield f"{name} is {getattr(self, name)}, must {demand}"
    if self.num_heads > 0 and self.hidden_size % self.num_heads:
      yield (
        f"hidden_size {self.hidden_size} is not a multiple of num_heads "
        f"{self.num_heads}"
      )
    if self.hidden_size % 2 or self.hidden_size < 4:
      yield (
        f"hidden_size is {self.hidden_size}, must be even and at least 4 "
        "(half of it carries sines, half cosines)"
      )
    for name, choices in CHOICES.items():
      value = getattr(self, name)
      if value not in choices:
        yield f"{name} is {value!r}, must be one of {', '.join(choices)}"


# Types of values, NumPy's numbers among them, by the type of a field.
_TYPES: dict[str, type] = {
  "int": numbers.Integral,
  "float": numbers.Real,
  "str": str,
  "bool": bool,
}

# Possible values of fields that are words.
CHOICES: dict[str, tuple[str, ...]] = {
  "start_symbol": START_SYMBOLS,
  "norm": NORMS,
  "positions": POSITIONS,
  "activation": ACTIVATIONS,
  "share_embeddings": SHARED_EMBEDDINGS,
}

# Fields, a test of their values, and the words of the error.
_RANGES: tuple[tuple[tuple[str, ...], Callable[[float], bool], str], ...] = (
  (
    ("initializer_gain",),
    # float32 has no weights of a larger one.
    lambda value: 0 < value <= 1e30,
    "be above 0, and at most 1e30",
  ),
  (
    (
      "learning_rate",
      "optimizer_adam_epsilon",
      "layer_norm_epsilon",
    ),
    lambda value: value > 0,
    "be above 0",
  ),
  (
    (
      "hidden_size",
      "num_hidden_layers",
      "num_heads",
      "filter_size",
      "default_batch_size",
      "learning_rate_warmup_steps",
      "beam_size",
      "max_positions",
    ),
    lambda value: value >= 1,
    "be at least 1",
  ),
  (
    (
      "layer_postprocess_dropout",
      "attention_dropout",
      "relu_dropout",
      "label_smoothing",
      "optimizer_adam_beta1",
      "optimizer_adam_beta2",
    ),
    lambda value: 0 <= value < 1,
    "be in [0, 1)",
  ),
  (
    (
      "vocab_size",
      "source_vocab_size",
      "extra_decode_length",
      "alpha",
      "patience",
      "clip_norm",
      "num_encoder_layers",
      "num_decoder_layers",
    ),
    lambda value: value >= 0,
    "not be below 0",
  ),
  # Beyond it float32 has no room for the lengths' powers.
  (("alpha",), lambda value: value <= 10, "be at most 10"),
  # More is a slip of the pen, or a description that means harm.
  (
    (
      "num_hidden_layers",
      "num_encoder_layers",
      "num_decoder_layers",
      "num_heads",
      "beam_size",
      "patience",
    ),
    lambda value: value <= 1024,
    "be at most 1024",
  ),
  (
    (
      "vocab_size",
      "source_vocab_size",
      "hidden_size",
      "filter_size",
      "extra_decode_length",
      "max_positions",
    ),
    lambda value: value <= 2**24,
    f"be at most {2**24}",
  ),
  (
    ("default_batch_size", "learning_rate_warmup_steps"),
    lambda value: value <= 2**40,
    f"be at most {2**40}",
  ),
)


BASE = TransformerParams()
BIG = dataclasses.replace(
  BASE,
  hidden_size=1024,
  num_heads=16,
  filter_size=4096,
  default_batch_size=4096,
)
TINY = dataclasses.replace(
  BASE,
  hidden_size=32,
  num_heads=4,
  filter_size=256,
  default_batch_size=1024,
)
SMALL = dataclasses.replace(
  BASE,
  hidden_size=256,
  num_heads=4,
  filter_size=1024,
  num_hidden_layers=2,
  default_batch_size=4096,
  learning_rate_warmup_steps=1000,
)
BASE_MULTI_GPU = dataclasses.replace(BASE, learning_rate_warmup_steps=8000)
BIG_MULTI_GPU = dataclasses.replace(
  BIG, layer_postprocess_dropout=0.3, learning_rate_warmup_steps=8000
)

# The paper's own base model: sections 3.1, 3.5, 5.1 and 5.3.
PAPER_BASE = dataclasses.replace(
  BASE,
  default_batch_size=25000,
  attention_dropout=0.0,
  relu_dropout=0.0,
  learning_rate=1.0,
  learning_rate_warmup_steps=4000,
  optimizer_adam_beta2=0.98,
  norm="post",
  positions="interleaved",
)
# The model of course notebooks in PyTorch that follow the paper and Ben
# Trevett's notebook.
NOTEBOOK = dataclasses.replace(
  BASE,
  hidden_size=256,
  filter_size=512,
  num_hidden_layers=3,
  learning_rate=1.0,
  learning_rate_warmup_steps=4000,
  clip_norm=1.0,
  norm="post",
  layer_norm_epsilon=1e-5,
  positions="learned",
  max_positions=100,
  attention_bias=True,
  share_embeddings="none",
  output_bias=True,
)
# A small model for Marian and Firefox's engine, to be trained on translations
# of a larger one: a deep encoder, which sees a sentence once, and a shallow
# decoder, which is asked for each token (Kasai et al. 2021).
STUDENT = dataclasses.replace(
  SMALL,
  num_hidden_layers=6,
  num_decoder_layers=2,
  norm="post",
  learning_rate_warmup_steps=4000,
)

DEFAULT_PARAM_SET = "big"
PARAM_SETS = {
  "tiny": TINY,
  "small": SMALL,
  "base": BASE,
  "big": BIG,
  "paper_base": PAPER_BASE,
  "notebook": NOTEBOOK,
  "student": STUDENT,
}
MULTI_GPU_PARAM_SETS = {"base": BASE_MULTI_GPU, "big": BIG_MULTI_GPU}


def _dictionary(params: TransformerParams) -> dict[str, Any]:
  """Returns a set as upstream's dictionaries have it; missing keys give None.

  The settings of a run among them are read by upstream's code alone.
  """
  return collections.defaultdict(
    type(None),
    dataclasses.asdict(params),
    vocab_size=33708,
    default_batch_size_tpu=32768,
    max_length=DEFAULT_MAX_LENGTH,
    learning_rate_decay_rate=1.0,
    allow_ffn_pad=True,
    use_tpu=False,
    static_batch=False,
  )


BASE_PARAMS = _dictionary(BASE)
BIG_PARAMS = _dictionary(BIG)
TINY_PARAMS = _dictionary(TINY)
BASE_MULTI_GPU_PARAMS = _dictionary(BASE_MULTI_GPU)
BIG_MULTI_GPU_PARAMS = _dictionary(BIG_MULTI_GPU)


def get_params(name: str, num_gpus: int = 1) -> TransformerParams:
  """Returns a named set.

  Args:
    name: one of `PARAM_SETS`.
    num_gpus: GPUs the run uses; above 1, the sets tuned for several.

  Raises:
    InputError: if no such set exists.
  """
  # A set that has no version for several GPUs is used as it is.
  sets = PARAM_SETS if num_gpus <= 1 else PARAM_SETS | MULTI_GPU_PARAM_SETS
  if name not in sets:
    raise InputError(f"no parameter set {name!r}; there are: {', '.join(sets)}")
  return sets[name]


def get_model_params(param_set: str, num_gpus: int) -> dict[str, Any]:
  """Returns a named set as a fresh dictionary: upstream's call.

  Arguments and errors as in `get_params`.
  """
  return _dictionary(get_params(param_set, num_gpus))


_READERS: dict[str, Callable[[str], Any]] = {
  "int": int,
  "float": float,
  "str": str,
  "bool": lambda text: {"true": True, "false": False}[text.lower()],
}


def parse_override(text: str) -> dict[str, Any]:
  """Reads `--params_override`.

  Args:
    text: `field=value` pairs between commas, e.g. `hidden_size=128,alpha=1`.

  Returns:
    Values of the fields' types by field.

  Raises:
    InputError: listing every unknown field, bad value and malformed pair.
  """
  known = {f.name: f for f in dataclasses.fields(TransformerParams)}
  for name in VOCABULARY_FIELDS:
    del known[name]
  values: dict[str, Any] = {}
  problems = []
  for pair in filter(None, (p.strip() for p in text.split(","))):
    name, equals, value = (part.strip() for part in pair.partition("="))
    if not equals:
      problems.append(f"{pair!r} is not of the form field=value")
    elif name in VOCABULARY_FIELDS:
      problems.append(f"{name} cannot be set: it comes from the vocabulary")
    elif name not in known:
      problems.append(f"there is no field {name!r}")
    elif name in values:
      problems.append(f"{name} is given twice")
    else:
      kind = str(known[name].type)
      try:
        values[name] = _READERS[kind](value)
      except (ValueError, KeyError):
        problems.append(f"{name}={value!r} is not of type {kind}")
  if problems:
    fields = ", ".join(f"{f.name} ({f.type})" for f in known.values())
    raise InputError(
      "--params_override: " + "; ".join(problems) + f". The fields: {fields}"
    )
  return values
