import pytest

from official_transformer.importing.formats import FORMATS, Placement

V2_END = "/.ATTRIBUTES/VARIABLE_VALUE"


@pytest.mark.parametrize(
  ("format_name", "name", "path"),
  [
    ("v2", "layer_with_weights-0/embedding_softmax_layer/weights" + V2_END,
     "embedding/weights"),
    ("v2", "model/layer_with_weights-0/encoder_stack/layers/11/1/layer/"
     "output_dense_layer/kernel" + V2_END,
     "encoder_stack/layer_11/ffn/network/output_kernel"),
    ("v2", "layer_with_weights-0/decoder_stack/layers/0/1/layer/"
     "output_dense_layer/kernel" + V2_END,
     "decoder_stack/layer_0/cross_attention/attention/output_kernel"),
    ("v2", "layer_with_weights-0/decoder_stack/layers/2/0/layer/"
     "q_dense_layer/kernel" + V2_END,
     "decoder_stack/layer_2/self_attention/attention/query_kernel"),
    ("v2", "layer_with_weights-0/decoder_stack/layers/2/2/layer_norm/"
     "layer_norm_bias" + V2_END,
     "decoder_stack/layer_2/ffn/layer_norm/beta"),
    ("v2", "encoder_stack/output_normalization/gamma" + V2_END,
     "encoder_stack/output_norm/gamma"),
    ("v1", "model/Transformer/decoder_stack/layer_3/encdec_attention/"
     "attention/output_transform/kernel",
     "decoder_stack/layer_3/cross_attention/attention/output_kernel"),
    ("v1", "model/Transformer/encoder_stack/layer_0/ffn/feed_foward_network/"
     "filter_layer/bias", "encoder_stack/layer_0/ffn/network/filter_bias"),
    ("v1", "model/Transformer/encoder_stack/layer_normalization/"
     "layer_norm_scale", "encoder_stack/output_norm/gamma"),
    ("t2t", "transformer/body/decoder/layer_1/encdec_attention/"
     "multihead_attention/k/kernel",
     "decoder_stack/layer_1/cross_attention/attention/key_kernel"),
    ("t2t", "transformer/parallel_0_3/transformer/transformer/body/encoder/"
     "layer_10/ffn/conv2/bias",
     "encoder_stack/layer_10/ffn/network/output_bias"),
    ("t2t", "transformer/body/decoder/layer_prepostprocess/layer_norm/"
     "layer_norm_bias", "decoder_stack/output_norm/beta"),
  ],
)  # fmt: skip
def test_names_by_hand(format_name, name, path):
  assert FORMATS[format_name].place(name) == [Placement(path)]


def test_shards_count_as_numbers():
  place = FORMATS["t2t"].place
  shards = [
    place(f"transformer/symbol_modality_33708_512/shared/weights_{n}")[0].shard
    for n in (2, 10)
  ]
  assert shards == [2, 10]


def test_a_fused_kernel_has_three_places():
  placements = FORMATS["t2t"].place(
    "transformer/body/encoder/layer_0/self_attention/multihead_attention/"
    "qkv_transform/kernel"
  )
  where = "encoder_stack/layer_0/self_attention/attention/"
  assert placements == [
    Placement(f"{where}{kernel}_kernel", part, 3)
    for part, kernel in enumerate(("query", "key", "value"))
  ]


@pytest.mark.parametrize(
  ("format_name", "name"),
  [
    ("v2", "optimizer/_variables/12" + V2_END),
    ("v2", "_CHECKPOINTABLE_OBJECT_GRAPH"),
    ("v2", "save_counter" + V2_END),
    ("v2", "layer_with_weights-0/embedding_softmax_layer/weights/"
     ".OPTIMIZER_SLOT/optimizer/m" + V2_END),
    ("t2t", "transformer/body/encoder/layer_0/ffn/conv1/kernel/Adafactor"),
    ("v2", "layer-3/metric_mean_fns/0/0/total" + V2_END),
    ("v1", "global_step"),
    ("v1", "model/get_train_op/beta1_power"),
    ("v1", "model/get_train_op/model/Transformer/encoder_stack/layer_0/ffn/"
     "feed_foward_network/filter_layer/bias/Adam_1"),
    ("t2t", "training/transformer/body/encoder/layer_0/ffn/conv1/kernel/Adam"),
    ("t2t", "losses_avg/problem_0/training_loss"),
  ],
)  # fmt: skip
def test_what_is_no_weight_has_no_place(format_name, name):
  assert FORMATS[format_name].place(name) == []


def test_steps_are_found_under_an_optimizer_that_scales_the_loss():
  for name in ("_iterations", "base_optimizer/iter", "iter"):
    assert FORMATS["v2"].is_step(f"optimizer/{name}{V2_END}")


@pytest.mark.parametrize("format_name", FORMATS)
def test_unknown_names_are_unknown(format_name):
  assert FORMATS[format_name].place("model/rnn/kernel") is None
