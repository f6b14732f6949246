"""The Transformer of "Attention Is All You Need" (section 3), as pre-norm.

The official model normalises before each sub-layer (pre-norm) and once more
after a stack; the paper (3.1, 5.4) normalises each sub-layer's sum (post-norm).

Shapes: B batch, S source length, T target length, L any length, D hidden size,
V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import keras
import tensorflow as tf

from official_transformer.model import incremental_decoder, variants
from official_transformer.model.attention_layer import Attention, SelfAttention
from official_transformer.model.ffn_layer import FeedForwardNetwork
from official_transformer.model.metrics import LossLayer, MetricLayer
from official_transformer.model.model_utils import (
  get_decoder_self_attention_bias,
  get_padding_bias,
)
from official_transformer.model_params import TransformerParams
from official_transformer.ops.dropout import Dropout
from official_transformer.ops.layer import ConfiguredLayer, UncopiedCache
from official_transformer.ops.precision import default_policy, keras_policy
from official_transformer.search.state import (
  NO_HOOKS,
  SearchHooks,
  SearchResult,
)

Params = TransformerParams | Mapping[str, Any]


class LayerNormResidualWrapper(ConfiguredLayer):
  """`x + dropout(layer(layer_norm(x)))`: a sub-layer with norm and residual.

  Attributes:
    layer: the sub-layer, [B, L, D] to [B, L, D].
  """

  def __init__(
    self, layer: keras.layers.Layer, params: Params, **kwargs: Any
  ) -> None:
    super().__init__(**kwargs)
    params = TransformerParams.of(params)
    self.params = params
    self.layer = layer
    self.layer_norm = variants.create_norm(params, "layer_norm")
    self.dropout = Dropout(params.layer_postprocess_dropout, name="dropout")

  def call(
    self, x: tf.Tensor, *args: Any, training: bool = False, **kwargs: Any
  ) -> tf.Tensor:
    """Applies the sub-layer to `x` [B, L, D] and its further arguments."""
    y = self.layer(
      self.normalize(x, training), *args, training=training, **kwargs
    )
    return self.add(x, y, training)

  def normalize(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns `layer_norm(x)` in the dtype of `x`."""
    return self.layer_norm(x, training=training)

  def add(
    self, x: tf.Tensor, y: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Returns `x + dropout(y)`."""
    return x + self.dropout(y, training=training)


class EncoderLayer(ConfiguredLayer):
  """Self-attention, then a feed-forward network (3.1)."""

  def __init__(self, params: Params, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.params = params = TransformerParams.of(params)
    self.self_attention = _attention(params, SelfAttention, "self_attention")
    self.ffn = _feed_forward(params)

  def call(
    self, x: tf.Tensor, bias: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Maps `x` [B, S, D] to [B, S, D]; `bias` [B, 1, 1, S]."""
    x = self.self_attention(x, bias, training=training)
    return self.ffn(x, training=training)


class DecoderLayer(ConfiguredLayer):
  """Self-attention, attention to the source, a feed-forward network (3.1)."""

  def __init__(self, params: Params, **kwargs: Any) -> None:
    super().__init__(**kwargs)
    self.params = params = TransformerParams.of(params)
    self.self_attention = _attention(params, SelfAttention, "self_attention")
    self.cross_attention = _attention(params, Attention, "cross_attention")
    self.ffn = _feed_forward(params)

  def call(
    self,
    x: tf.Tensor,
    encoder_outputs: tf.Tensor,
    self_bias: tf.Tensor,
    source_bias: tf.Tensor,
    training: bool = False,
    **cached: Any,
  ) -> tf.Tensor:
    """Maps `x` [B, T, D] to [B, T, D].

    Further arguments are described at `DecoderStack.call`; `cached` goes to the
    self-attention.
    """
    x = self.self_attention(x, self_bias, training=training, **cached)
    x = self.cross_attention(x, encoder_outputs, source_bias, training=training)
    return self.ffn(x, training=training)


def _wrap(
  layer: keras.layers.Layer, params: TransformerParams, name: str
) -> keras.layers.Layer:
  wrapper = variants.WRAPPERS.get(params.norm, LayerNormResidualWrapper)
  return wrapper(layer, params, name=name)


def _attention(
  params: TransformerParams, kind: type[Attention], name: str
) -> keras.layers.Layer:
  return _wrap(kind.of(params, name="attention"), params, name)


def _feed_forward(params: TransformerParams) -> keras.layers.Layer:
  return _wrap(FeedForwardNetwork.of(params, name="network"), params, "ffn")


class _Stack(ConfiguredLayer):
  """Equal layers on top of each other, and the norm after them.

  Attributes:
    layers: `layer_0`, `layer_1`, ...
    output_normalization: layer that is applied to the output of the last layer.
  """

  def __init__(
    self,
    params: TransformerParams,
    layer_class: type[keras.layers.Layer],
    number: int,
    **kwargs: Any,
  ) -> None:
    super().__init__(**kwargs)
    self.params = params
    self.layers = [
      layer_class(params, name=f"layer_{i}") for i in range(number)
    ]
    for layer in self.layers:  # TensorFlow's checkpoints see no lists of Keras.
      setattr(self, layer.name, layer)
    self.output_normalization = variants.create_stack_end(params)

  def normalize(self, x: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Applies the norm after the last layer, in the dtype of `x`."""
    return self.output_normalization(x, training=training)


class EncoderStack(_Stack):
  """The encoder (3.1)."""

  def __init__(self, params: Params, **kwargs: Any) -> None:
    params = TransformerParams.of(params)
    super().__init__(params, EncoderLayer, params.encoder_layers, **kwargs)

  def call(
    self,
    encoder_inputs: tf.Tensor,
    attention_bias: tf.Tensor,
    inputs_padding: tf.Tensor | None = None,
    training: bool = False,
  ) -> tf.Tensor:
    """Encodes embedded sources, [B, S, D] to [B, S, D].

    The bias [B, 1, 1, S] hides padding. `inputs_padding` is an argument of the
    official layer, which does not read it either.
    """
    x = encoder_inputs
    for layer in self.layers:
      x = layer(x, attention_bias, training=training)
    return self.normalize(x, training)


class DecoderStack(_Stack):
  """The decoder (3.1)."""

  def __init__(self, params: Params, **kwargs: Any) -> None:
    params = TransformerParams.of(params)
    super().__init__(params, DecoderLayer, params.decoder_layers, **kwargs)

  def call(
    self,
    decoder_inputs: tf.Tensor,
    encoder_outputs: tf.Tensor,
    decoder_self_attention_bias: tf.Tensor,
    attention_bias: tf.Tensor,
    training: bool = False,
    cache: dict[str, dict[str, tf.Tensor]] | None = None,
    decode_loop_step: tf.Tensor | None = None,
  ) -> tf.Tensor:
    """Decodes embedded targets, [B, T, D], with or without a cache.

    Args:
      decoder_inputs: [B, T, D].
      encoder_outputs: [B, S, D].
      decoder_self_attention_bias: [1, 1, T, T], hides later positions; behind
        C cached ones, broadcastable to [B, 1, T, C + T].
      attention_bias: [B, 1, 1, S], hides the source's padding.
      training: whether dropout is on.
      cache: for each of `layer_0`, `layer_1`, ... the cache that
        `Attention.call` reads and extends. Decoding with it gives the results
        of `IncrementalDecoder`, and is slower.
      decode_loop_step: int32 [], as `Attention.call` has it.
    """
    x = decoder_inputs
    given = cache and UncopiedCache.of(cache, decode_loop_step)
    for layer in self.layers:
      cached: dict[str, Any] = {}
      if given:
        cached["cache"] = UncopiedCache(given.cache[layer.name], given.step)
      x = layer(
        x,
        encoder_outputs,
        decoder_self_attention_bias,
        attention_bias,
        training=training,
        **cached,
      )
    return self.normalize(x, training)


class Transformer(ConfiguredLayer):
  """Encoder, decoder and the embedding they share (3, figure 1).

  Attributes:
    params: hyper-parameters of the model; `vocab_size` must be set.
    embedding: embedding of targets; also of sources, and the output layer, if
      they all share one table.
    source_embedding: embedding of sources.
    softmax: the output layer, which scores targets.
    positions: the position encodings of both sides.
    encoder_stack: the encoder.
    decoder_stack: the decoder.
  """

  def __init__(self, params: Params, **kwargs: Any) -> None:
    params = TransformerParams.of(params)
    if params.vocab_size < 2:
      raise ValueError(f"vocab_size is {params.vocab_size}: load a vocabulary")
    super().__init__(**kwargs)
    # Batches differ in shape, and XLA would compile again for each shape.
    self.supports_jit = False
    self.params = params
    with default_policy(self.dtype_policy):
      tables = variants.create_tables(params)
      self.embedding, self.source_embedding = tables.target, tables.source
      self.positions = variants.POSITIONS[params.positions](params)
      for layer in (*tables.output_layers, *self.positions.layers):
        setattr(self, f"{layer.name}_layer", layer)
      self.softmax = tables.output
      self._embed_source_ids: Callable[..., tf.Tensor] = self.source_embedding
      self.encoder_stack = EncoderStack(params, name="encoder_stack")
      self.decoder_stack = DecoderStack(params, name="decoder_stack")
      self.source_dropout, self.target_dropout = (
        Dropout(params.layer_postprocess_dropout, name=f"{side}_dropout")
        for side in ("source", "target")
      )
    # Not at first use: variables have the same paths in a model that trains
    # and in one that only translates.
    self.build()

  def build(self, input_shape: Any = None) -> None:
    """Creates all variables, whether the model is to train or to translate."""
    if self.built:
      return
    super().build(input_shape)
    if self.params.target_space_embedding:
      self.target_space_embedding = self.add_weight(
        name="target_space_embedding",
        shape=(self.params.hidden_size,),
        initializer="zeros",
      )
      self._embed_source_ids = variants.add_to_rows(
        self.source_embedding, self.target_space_embedding
      )

  def call(
    self, inputs: list[tf.Tensor], training: bool = False
  ) -> tf.Tensor | dict[str, tf.Tensor]:
    """Scores given targets (teacher forcing), or translates without any.

    Args:
      inputs: source ids [B, S], and target ids [B, T] or none; padded with PAD.
      training: whether dropout is on.

    Returns:
      Logits [B, T, V]; position t is predicted from the targets before t.
      Without targets, the result of `predict`.
    """
    sources, *targets = inputs
    attention_bias = get_padding_bias(sources)
    outputs = self.encode(sources, attention_bias, training)
    if targets:
      return self.decode(targets[0], outputs, attention_bias, training)
    return self.predict(outputs, attention_bias, training)

  def decoder_states(
    self, inputs: list[tf.Tensor], training: bool = False
  ) -> tf.Tensor:
    """Returns the decoder's outputs, before the logits, [B, T, D]."""
    sources, targets = inputs
    attention_bias = get_padding_bias(sources)
    outputs = self.encode(sources, attention_bias, training)
    return self._states(targets, outputs, attention_bias, training)

  def encode(
    self, inputs: tf.Tensor, attention_bias: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Encodes source ids [B, S], whose padding the bias hides: [B, S, D]."""
    x = self.embed_source(inputs, training)
    return self.encoder_stack(x, attention_bias, training=training)

  def decode(
    self,
    targets: tf.Tensor,
    encoder_outputs: tf.Tensor,
    attention_bias: tf.Tensor,
    training: bool = False,
  ) -> tf.Tensor:
    """Scores target ids [B, T], given the encoder's outputs: [B, T, V]."""
    return self.softmax.logits(
      self._states(targets, encoder_outputs, attention_bias, training)
    )

  def _states(
    self,
    targets: tf.Tensor,
    encoder_outputs: tf.Tensor,
    attention_bias: tf.Tensor,
    training: bool,
  ) -> tf.Tensor:
    length = tf.shape(targets)[1]
    return self.decoder_stack(
      self.embed_targets(targets, length, training),
      encoder_outputs,
      get_decoder_self_attention_bias(length),
      attention_bias,
      training=training,
    )

  def embed_source(self, ids: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns embeddings plus positions of ids [B, S] (3.4, 3.5), [B, S, D]."""
    x = self._embed_source_ids(ids)
    x += tf.cast(self.positions.source(tf.shape(x)[1]), self.compute_dtype)
    return self.source_dropout(x, training=training)

  def embed_targets(
    self, ids: tf.Tensor, length: tf.Tensor, training: bool = False
  ) -> tf.Tensor:
    """Returns the decoder's inputs [B, T, D] for predicting ids [B, T].

    It is the start symbol, then all targets but the last ("shifted right" in
    figure 1). With `zero` the embedding masks PAD, so id 0 is the zero vector.
    """
    shifted = tf.concat([tf.zeros_like(ids[:, :1]), ids[:, :-1]], axis=1)
    x = self.embedding(shifted)
    x += tf.cast(self.positions.target(length), self.compute_dtype)
    return self.target_dropout(x, training=training)

  def predict(
    self,
    encoder_outputs: tf.Tensor,
    encoder_decoder_attention_bias: tf.Tensor,
    training: bool = False,
  ) -> dict[str, tf.Tensor]:
    """Translates, given the encoder's outputs.

    Args:
      encoder_outputs: [B, S, D].
      encoder_decoder_attention_bias: [B, 1, 1, S].
      training: not read; an argument of the official call.

    Returns:
      The best hypotheses as `outputs`, int32 [B, L] with L = S +
      `extra_decode_length`, and their `scores`, float32 [B].
    """
    encoded = incremental_decoder.EncodedSource(
      encoder_outputs, encoder_decoder_attention_bias
    )
    found = incremental_decoder.beam_search(self, encoded)
    outputs = found.ids[:, 0]
    length = tf.shape(encoder_outputs)[1] + self.params.extra_decode_length
    missing = tf.maximum(length - tf.shape(outputs)[1], 0)
    outputs = tf.pad(outputs, [[0, 0], [0, missing]])
    return {"outputs": outputs, "scores": found.scores[:, 0]}

  def beam_search(
    self,
    source_ids: tf.Tensor,
    vocabulary_size: int | None = None,
    static: bool = False,
    hooks: SearchHooks = NO_HOOKS,
  ) -> SearchResult:
    """Translates source ids [B, S]; see `incremental_decoder.beam_search`."""
    encoded = incremental_decoder.encode(self, source_ids)
    return incremental_decoder.beam_search(
      self, encoded, vocabulary_size, static, hooks
    )


def create_model(
  params: Params,
  is_train: bool,
  with_metrics: bool = False,
  dtype: str = "fp32",
) -> keras.Model:
  """Returns a new Keras model that trains, or one that translates.

  Args:
    params: hyper-parameters of the model; `vocab_size` must be set.
      Dictionaries such as upstream's `BASE_PARAMS` are accepted; see
      `TransformerParams.of`. As upstream, `enable_metrics_in_training` in one
      stands for `with_metrics`.
    is_train: whether the model is to train.
    with_metrics: whether accuracy, top-5 accuracy, accuracy per sequence and
      negative log perplexity are measured too.
    dtype: type of the computation, as in `keras_policy`.

  Returns:
    `[inputs [B, S], targets [B, T]]` to logits [B, T, V], with the
    label-smoothed loss added (5.4); or `inputs [B, S]` to the best hypotheses,
    int32 [B, L], and their scores, float32 [B] (6.1).
  """
  policy = keras_policy(dtype, is_train)
  if isinstance(params, Mapping):
    with_metrics |= bool(params.get("enable_metrics_in_training"))
  transformer = Transformer(params, name="transformer", dtype=policy)
  params = transformer.params
  inputs = keras.Input([None], dtype="int64", name="inputs")
  if not is_train:
    found = transformer([inputs])
    return keras.Model(
      inputs, [found["outputs"], found["scores"]], name="transformer_decoder"
    )
  targets = keras.Input([None], dtype="int64", name="targets")
  logits = transformer([inputs, targets])
  loss = LossLayer(params.vocab_size, params.label_smoothing, name="loss")
  logits = loss([logits, targets])
  if with_metrics:
    metrics = MetricLayer(params.vocab_size, name="metrics")
    logits = metrics([logits, targets])
  return keras.Model([inputs, targets], logits, name="transformer_trainer")
