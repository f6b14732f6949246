"""The Transformer of "Attention Is All You Need", in its pre-norm form.

Shapes: B batch, S source length, T target length, L longest limit, D hidden
size, V vocabulary.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import tensorflow as tf

from official_transformer.errors import InputError
from official_transformer.hardware.processor import Target, traced_for
from official_transformer.model.embedding_layer import (
  BiasedOutputLayer,
  EmbeddingSharedWeights,
  Softmax,
)
from official_transformer.model.incremental_decoder import (
  IncrementalDecoder,
  finishes_for,
  length_limits,
  static_limit,
)
from official_transformer.model.metrics import LogitsAndLossLayer, MetricLayer
from official_transformer.model.model_utils import (
  get_decoder_self_attention_bias,
  get_padding_bias,
)
from official_transformer.model.positions import LearnedPositions, signal_of
from official_transformer.model.stacks import (
  DecoderStack,
  EncodedSource,
  EncoderStack,
)
from official_transformer.model_params import EOS_ID, TransformerParams
from official_transformer.ops.dropout import Dropout
from official_transformer.ops.recompute import call_recomputed
from official_transformer.search.beam_search import SequenceBeamSearch
from official_transformer.search.state import (
  NO_HOOKS,
  SearchHooks,
  SearchResult,
)

# Keras' names for what `--dtype` chooses, in training and without it.
DTYPE_POLICIES = {
  "fp32": "float32",
  "bf16": "mixed_bfloat16",
  "fp16": "mixed_float16",
}
INFERENCE_POLICIES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}


class Transformer(keras.layers.Layer):
  """Encoder, decoder and the embedding they share, or one for each.

  Attributes:
    params: its hyper-parameters; `vocab_size` must be set.
  """

  def __init__(
    self, params: TransformerParams | Mapping[str, Any], **kwargs: Any
  ) -> None:
    params = TransformerParams.of(params)
    if params.vocab_size < 2:
      raise ValueError(f"vocab_size is {params.vocab_size}: load a vocabulary")
    super().__init__(autocast=False, **kwargs)
    self.params = params
    self.embedding = _embedding(params, params.vocab_size, "embedding")
    self.source_embedding = self.embedding
    if params.source_rows:
      self.source_embedding = _embedding(
        params, params.source_rows, "source_embedding"
      )
    self.softmax = self._create_softmax()
    self._create_positions()
    self.encoder_stack = EncoderStack(params, name="encoder_stack")
    self.decoder_stack = DecoderStack(params, name="decoder_stack")
    self.source_dropout = Dropout(
      params.layer_postprocess_dropout, name="source_dropout"
    )
    self.target_dropout = Dropout(
      params.layer_postprocess_dropout, name="target_dropout"
    )

  def build(self, input_shape: Any = None) -> None:
    """Creates all variables, whatever the model is used for.

    Built here and not at first use, their paths are the same in a model that
    trains and in one that only decodes.
    """
    for part in self._parts():
      if not part.built:
        part.build(None)
    if self.params.target_space_embedding:
      self.target_space = self.add_weight(
        name="target_space_embedding",
        shape=(self.params.hidden_size,),
        initializer="zeros",
      )

  def _parts(self) -> list[keras.layers.Layer]:
    """Returns all layers, in the order of their variables."""
    return [
      self.embedding,
      self.source_embedding,
      *self._own_parts,
      self.encoder_stack,
      self.decoder_stack,
      self.source_dropout,
      self.target_dropout,
    ]

  def _create_softmax(self) -> Softmax:
    """Returns what scores the vocabulary: the embedding, or more than it."""
    params = self.params
    self._own_parts: list[keras.layers.Layer] = []
    softmax: Softmax = self.embedding
    if params.share_embeddings == "none":
      softmax = _embedding(params, params.vocab_size, "softmax")
      self._own_parts.append(softmax)
    if params.output_bias:
      softmax = BiasedOutputLayer(softmax, name="output")
      self._own_parts.append(softmax)
    return softmax

  def _create_positions(self) -> None:
    """Makes what maps a length to float32 [length, D], for either side."""
    if self.params.positions != "learned":
      self.source_signal = self.target_signal = signal_of(self.params)
      return
    tables = [
      LearnedPositions(
        self.params.max_positions, self.params.hidden_size, name=name
      )
      for name in ("source_positions", "target_positions")
    ]
    self._own_parts += tables
    self.source_signal, self.target_signal = (table.rows for table in tables)

  def recompute_layers(self) -> None:
    """Has the gradient compute the layers again, instead of keeping them."""
    self.encoder_stack.call_layer = call_recomputed
    self.decoder_stack.call_layer = call_recomputed

  def call(
    self, inputs: list[tf.Tensor], training: bool = False
  ) -> tf.Tensor | dict[str, tf.Tensor]:
    """Scores given targets (teacher forcing), or translates without any.

    Args:
      inputs: source ids [B, S], and target ids [B, T] or none; padded with PAD.
      training: whether dropout is on.

    Returns:
      Logits [B, T, V]; position t is predicted from the targets before t.
      Without targets, the best hypotheses as `outputs`, int32 [B, L], and their
      `scores`, float32 [B].
    """
    if len(inputs) == 1:
      found = self.beam_search(inputs[0])
      return {"outputs": found.ids[:, 0], "scores": found.scores[:, 0]}
    return self.softmax.linear(self.decoder_states(inputs, training))

  def decoder_states(
    self, inputs: list[tf.Tensor], training: bool = False
  ) -> tf.Tensor:
    """Returns what `call` computes its logits from, [B, T, D]."""
    source_ids, target_ids = inputs
    source = self.encode(source_ids, training)
    return self.decode(target_ids, source, training)

  def encode(
    self, source_ids: tf.Tensor, training: bool = False
  ) -> EncodedSource:
    """Encodes source ids [B, S]."""
    bias = get_padding_bias(source_ids)
    x = self.embed_source(source_ids, training)
    return EncodedSource(self.encoder_stack(x, bias, training=training), bias)

  def embed_source(
    self, source_ids: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Returns what the encoder reads of ids [B, S], [B, S, D]."""
    x = self.source_embedding(source_ids)
    if self.params.target_space_embedding:
      x += tf.cast(tf.convert_to_tensor(self.target_space), x.dtype)
    x += tf.cast(self.source_signal(tf.shape(x)[1]), self.compute_dtype)
    return self.source_dropout(x, training=training)

  def decode(
    self,
    target_ids: tf.Tensor,
    source: EncodedSource,
    training: bool = False,
  ) -> tf.Tensor:
    """Maps target ids [B, T] to the decoder's states, [B, T, D]."""
    length = tf.shape(target_ids)[1]
    return self.decoder_stack(
      self.embed_targets(target_ids, length, training),
      get_decoder_self_attention_bias(length),
      source.outputs,
      source.bias,
      training=training,
    )

  def embed_targets(
    self, target_ids: tf.Tensor, length: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Returns what the decoder reads to predict ids [B, T], [B, T, D].

    It is the start symbol, then all targets but the last. With `zero` the
    embedding masks PAD, so id 0 is the zero vector.

    Args:
      target_ids: [B, T].
      length: int32 [], T.
      training: whether dropout is on.
    """
    shifted = tf.concat(
      [tf.zeros_like(target_ids[:, :1]), target_ids[:, :-1]], axis=1
    )
    x = self.embedding(shifted)
    x += self.target_positions(length)
    return self.target_dropout(x, training=training)

  def target_positions(self, length: int | tf.Tensor) -> tf.Tensor:
    """Returns what is added to targets, [length, D] in the compute dtype."""
    return tf.cast(self.target_signal(length), self.compute_dtype)

  def beam_search(
    self,
    source_ids: tf.Tensor,
    vocabulary_size: int | None = None,
    static: bool = False,
    hooks: SearchHooks = NO_HOOKS,
  ) -> SearchResult:
    """Translates.

    Args:
      source_ids: int [B, S], padded with PAD.
      vocabulary_size: how many of the first tokens a translation may hold: an
        imported table may have more rows than its vocabulary has entries. None
        is all.
      static: whether all shapes inside are to be static, as XLA and TPUs need
        them; those of `source_ids` must be then.
      hooks: what the search calls. Who watches it can read the values of every
        step if nothing is traced.

    Returns:
      Hypotheses with L the largest number of tokens any may have, which is
      its source's length (EOS included) plus `extra_decode_length`.
    """
    params = self.params
    source_ids = tf.cast(source_ids, tf.int32)
    limits = length_limits(source_ids, params.extra_decode_length)
    if params.longest_output:
      limits = tf.minimum(limits, params.longest_output)
    longest = static_limit(source_ids, params) if static else None
    with traced_for(Target.XLA) if static else contextlib.nullcontext():
      step = IncrementalDecoder(
        self, params.beam_size, longest or tf.reduce_max(limits), longest
      )
    search = SequenceBeamSearch(
      step,
      vocabulary_size or params.vocab_size,
      params.beam_size,
      params.alpha,
      EOS_ID,
      hooks,
    )
    batch = tf.shape(source_ids)[0]
    return search.search(
      initial_ids=tf.zeros([batch], tf.int32),
      limits=limits,
      state=step.start(source_ids, batch),
      longest=longest,
      finishes_needed=finishes_for(params, limits),
    )


def _embedding(
  params: TransformerParams, vocab_size: int, name: str
) -> EmbeddingSharedWeights:
  return EmbeddingSharedWeights(
    vocab_size,
    params.hidden_size,
    mask_pad=params.start_symbol == "zero",
    scaled=params.scale_embeddings,
    name=name,
  )


class TeacherForcing(keras.layers.Layer):
  """Source and target ids to the decoder's states, as a layer.

  Attributes:
    transformer: built already.
  """

  def __init__(self, transformer: Transformer, **kwargs: Any) -> None:
    super().__init__(autocast=False, **kwargs)
    self.transformer = transformer

  def build(self, input_shape: Any = None) -> None:
    """Creates nothing: the transformer has all variables."""

  def call(self, inputs: list[tf.Tensor], training: bool = False) -> tf.Tensor:
    """Maps ids [B, S] and [B, T] to states [B, T, D]."""
    return self.transformer.decoder_states(inputs, training)


@keras.saving.register_keras_serializable("official_transformer")
class BeamSearchLayer(keras.layers.Layer):
  """Beam search as a layer: source ids to the best hypothesis and its score.

  Attributes:
    transformer: the model searched, built already.
    vocabulary_size: as in `Transformer.beam_search`.
  """

  def __init__(
    self,
    transformer: Transformer,
    vocabulary_size: int | None = None,
    **kwargs: Any,
  ) -> None:
    super().__init__(autocast=False, **kwargs)
    self.transformer = transformer
    self.vocabulary_size = vocabulary_size
    # Batches shrink and caches grow: Keras is not to have XLA compile that.
    self.supports_jit = False

  def build(self, input_shape: Any = None) -> None:
    """Creates nothing: the transformer has all variables."""

  def call(self, source_ids: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Maps ids [B, S] to outputs, int32 [B, L], and scores, float32 [B]."""
    result = self.transformer.beam_search(source_ids, self.vocabulary_size)
    return result.ids[:, 0], result.scores[:, 0]

  def get_config(self) -> dict[str, Any]:
    """Returns what `from_config` makes the same layer of, without weights."""
    policy = self.transformer.dtype_policy.name
    (dtype,) = (k for k, name in INFERENCE_POLICIES.items() if name == policy)
    return {
      **super().get_config(),
      "params": dataclasses.asdict(self.transformer.params),
      "transformer_dtype": dtype,
      "vocabulary_size": self.vocabulary_size,
    }

  @classmethod
  def from_config(cls, config: dict[str, Any]) -> BeamSearchLayer:
    """Makes a layer of a saved one's description."""
    config = dict(config)
    params = TransformerParams(**config.pop("params"))
    dtype = config.pop("transformer_dtype")
    return cls(build_transformer(params, dtype, is_train=False), **config)


@contextlib.contextmanager
def _dtype_policy(policy: str) -> Iterator[None]:
  """Gives the layers made inside a Keras policy."""
  outer = keras.config.dtype_policy()
  keras.config.set_dtype_policy(policy)
  try:
    yield
  finally:
    keras.config.set_dtype_policy(outer)


def build_transformer(
  params: TransformerParams | Mapping[str, Any],
  dtype: str = "fp32",
  is_train: bool = True,
) -> Transformer:
  """Returns a transformer with all its variables, freshly initialised.

  Args:
    params: its hyper-parameters; `vocab_size` must be set.
    dtype: a key of `DTYPE_POLICIES`. With `bf16` and `fp16` all is computed
      in that type but softmax, layer norms and loss.
    is_train: whether it may be trained: variables are float32 then, else they
      are of `dtype` too but for the layer norms'.

  Raises:
    InputError: if Keras runs on another backend than TensorFlow.
  """
  if keras.backend.backend() != "tensorflow":
    raise InputError(
      f"Keras is set to the {keras.backend.backend()} backend; set "
      "KERAS_BACKEND=tensorflow in the environment"
    )
  policies = DTYPE_POLICIES if is_train else INFERENCE_POLICIES
  with _dtype_policy(policies[dtype]):
    transformer = Transformer(params, name="transformer")
  transformer.build(None)
  return transformer


def create_training_model(
  transformer: Transformer, with_metrics: bool = False
) -> keras.Model:
  """Returns the Keras functional model that trains a transformer.

  Args:
    transformer: built to be trained.
    with_metrics: whether accuracy, top-5 accuracy, accuracy per sequence and
      negative log perplexity are measured too.

  Returns:
    `[inputs [B, S], targets [B, T]]` to logits [B, T, V], with the
    label-smoothed loss added.
  """
  inputs = keras.Input([None], dtype="int64", name="inputs")
  targets = keras.Input([None], dtype="int64", name="targets")
  states = TeacherForcing(transformer, name="teacher_forcing")(
    [inputs, targets]
  )
  logits = LogitsAndLossLayer(
    transformer.params.label_smoothing, transformer.softmax, name="loss"
  )([states, targets])
  if with_metrics:
    metrics = MetricLayer(transformer.params.vocab_size, name="metrics")
    logits = metrics([logits, targets])
  return keras.Model([inputs, targets], logits, name="transformer_trainer")


def create_decoding_model(
  transformer: Transformer, vocabulary_size: int | None = None
) -> keras.Model:
  """Returns the Keras functional model that translates with a transformer.

  Args:
    transformer: the model.
    vocabulary_size: as in `Transformer.beam_search`.

  Returns:
    `inputs [B, S]` to the best hypotheses, int32 [B, L], and their scores,
    float32 [B].
  """
  inputs = keras.Input([None], dtype="int64", name="inputs")
  search = BeamSearchLayer(transformer, vocabulary_size, name="beam_search")
  outputs = search(inputs)
  return keras.Model(inputs, list(outputs), name="transformer_decoder")


def create_model(
  params: TransformerParams | Mapping[str, Any],
  is_train: bool,
  with_metrics: bool = False,
  dtype: str = "fp32",
) -> keras.Model:
  """Returns a new model that trains, or one that decodes, as upstream does.

  Args:
    params: its hyper-parameters; `vocab_size` must be set. A dictionary, such
      as upstream's `BASE_PARAMS`, is read as `TransformerParams.of` says.
    is_train: whether the model is to train.
    with_metrics: as in `create_training_model`.
    dtype: what to compute in, as in `build_transformer`.

  Returns:
    What `create_training_model` or `create_decoding_model` does.

  Raises:
    InputError: if Keras runs on another backend than TensorFlow.
  """
  transformer = build_transformer(params, dtype, is_train)
  if is_train:
    return create_training_model(transformer, with_metrics)
  return create_decoding_model(transformer)
