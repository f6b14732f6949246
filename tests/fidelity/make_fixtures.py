"""Freezes numbers of the official Transformer into `fixtures/*.npz`.

Not part of the tests: it needs the official code, in an environment of its
own, and is run again only to freeze more.

  python3 -m venv upstream && . upstream/bin/activate
  pip install "tensorflow~=2.20.0" "tf-keras~=2.20.0" six sentencepiece \
    sacrebleu psutil py-cpuinfo gin-config pyyaml tensorflow-hub scipy pandas \
    immutabledict tensorflow-model-optimization
  pip install --no-deps tf-models-official==2.20.0
  python make_fixtures.py legacy

The first versions are in the history of github.com/tensorflow/models; check
out the commit named at `v1` and `early_v2` below and pass its directory:

  python make_fixtures.py v1 MODELS
  python make_fixtures.py early_v2 MODELS

Two processes, because each brings a package named `official` of its own.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile

os.environ["TF_USE_LEGACY_KERAS"] = "1"
os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy as np
import tensorflow as tf

FIXTURES = pathlib.Path(__file__).parent / "fixtures"

PARAMS = {
  "vocab_size": 40,
  "hidden_size": 16,
  "num_hidden_layers": 2,
  "num_heads": 4,
  "filter_size": 32,
  "initializer_gain": 1.0,
  "layer_postprocess_dropout": 0.0,
  "attention_dropout": 0.0,
  "relu_dropout": 0.0,
  "label_smoothing": 0.1,
  "learning_rate": 2.0,
  "learning_rate_warmup_steps": 2,
  "optimizer_adam_beta1": 0.9,
  "optimizer_adam_beta2": 0.997,
  "optimizer_adam_epsilon": 1e-9,
  "extra_decode_length": 12,
  "beam_size": 4,
  "alpha": 0.6,
  "allow_ffn_pad": True,
}
INPUTS = np.array(
  [[5, 9, 13, 1, 0, 0], [7, 3, 22, 38, 11, 1], [2, 1, 0, 0, 0, 0]], np.int64
)
TARGETS = np.array(
  [[4, 6, 1, 0, 0], [8, 2, 30, 17, 1], [39, 39, 12, 1, 0]], np.int64
)
SEARCHES = [(beam, alpha) for beam in (1, 4, 8) for alpha in (0.0, 0.6, 1.0)]
STRINGS = [
  "",
  "hello world",
  "  two  spaces   and trailing ",
  "under_score __ _a_",
  "back\\slash \\u \\12; \\\\",
  "emoji \U0001f600\U0001f468\u200d\U0001f469 end",
  "combining e\u0301 a\u0308 o\u0302\u0323",
  "\u4f60\u597d \u4e16\u754c \u0928\u092e\u0938\u094d\u0924\u0947",
  "\u0645\u0631\u062d\u0628\u0627 \u05e9\u05dc\u05d5\u05dd",
  "tabs\tand\u00a0no-break\u2028line\u0085sep",
  "12,345.67 + 3\u00b2 = \u00bd?",
  "<pad> <EOS> '<pad>' <pad>_",
  "\U0001d54f\U00010348 \ufffd \ufeffbom",
  "Die Stra\u00dfe; \u00c4RGER! \u201eZitat\u201c",
  "a;b;\\;c 1;2;",
  "\x00\x01 control \x7f",
]


def legacy() -> None:
  """Freezes `tf-models-official==2.20.0`, `official/legacy/transformer`."""
  from official.legacy.transformer import metrics, model_params, transformer
  from official.legacy.transformer import optimizer as optimizer_lib

  rng = np.random.default_rng(1)
  params = {
    **PARAMS,
    "dtype": tf.float32,
    "padded_decode": False,
    "enable_metrics_in_training": False,
  }
  model = transformer.create_model(params, is_train=True)
  variables = list({id(v): v for v in model.trainable_variables}.values())
  for variable in variables:
    spread = 0.3 if len(variable.shape) > 1 else 0.2
    variable.assign(variable + rng.normal(scale=spread, size=variable.shape))
  weights = saved_weights(model)
  keys = [key_of(v.numpy(), weights) for v in variables]
  assert len(set(keys)) == len(variables)
  frozen = {f"weights/{key}": value for key, value in weights.items()}
  frozen |= {"inputs": INPUTS, "targets": TARGETS}

  inner = model.get_layer("transformer_v2")
  frozen |= layers_of(inner, rng)

  with tf.GradientTape() as tape:
    logits = model([INPUTS, TARGETS], training=True)
    loss = metrics.transformer_loss(
      logits, TARGETS, params["label_smoothing"], params["vocab_size"]
    )
  frozen["logits"] = logits.numpy()
  gradients = tape.gradient(loss, variables)
  for key, gradient in zip(keys, gradients, strict=True):
    frozen[f"gradients/{key}"] = tf.convert_to_tensor(gradient).numpy()
  for smoothing in (0.0, 0.1):
    per_token, _ = metrics.padded_cross_entropy_loss(
      logits, TARGETS, smoothing, params["vocab_size"]
    )
    frozen[f"loss/{smoothing}/tokens"] = per_token.numpy()
    frozen[f"loss/{smoothing}/total"] = metrics.transformer_loss(
      logits, TARGETS, smoothing, params["vocab_size"]
    ).numpy()

  predicting = transformer.create_model(params, is_train=False)
  decoder = predicting.get_layer("transformer_v2")
  for row, ids in enumerate(INPUTS):
    for beam_size, alpha in SEARCHES:
      decoder.params = {**params, "beam_size": beam_size, "alpha": alpha}
      # The weights as above; alone, because the company would matter.
      set_weights(predicting, weights)
      ids_of_row = tf.constant(ids[ids != 0][None], tf.int32)
      found = search_all(decoder, ids_of_row)
      for name, value in found.items():
        frozen[f"search/{row}/{beam_size}/{alpha}/{name}"] = value

  # Five updates; the first has rate 0.
  opt = tf_keras_adam(optimizer_lib, params)
  steps = rng.integers(2, params["vocab_size"], (5, 2, 3, 6))
  steps[..., -1] = 1
  steps[:, :, 0, -2:] = [1, 0]
  frozen["steps/batches"] = steps
  losses = []
  for inputs, targets in steps:
    with tf.GradientTape() as tape:
      logits = model([inputs, targets], training=True)
      loss = metrics.transformer_loss(
        logits, targets, params["label_smoothing"], params["vocab_size"]
      )
    opt.apply_gradients(
      zip(tape.gradient(loss, variables), variables, strict=True)
    )
    losses.append(loss.numpy())
  frozen["steps/losses"] = np.array(losses)
  for key, value in saved_weights(model).items():
    frozen[f"changes/{key}"] = value - weights[key]
  checkpoint_names(model, opt, frozen)
  save("legacy_model", frozen)

  sizes = (
    model_params.BASE_PARAMS,
    model_params.BIG_PARAMS,
    model_params.TINY_PARAMS,
  )
  at = np.array([0, 1, 2, 100, 7999, 8000, 15999, 16000, 16001, 300000])
  rates = {"steps": at}
  for p in sizes:
    for warmup in (p["learning_rate_warmup_steps"], 8000):
      schedule = optimizer_lib.LearningRateSchedule(
        p["learning_rate"], p["hidden_size"], warmup
      )
      rates[f"rates/{p['hidden_size']}/{warmup}"] = np.array(
        [schedule(step).numpy() for step in at]
      )
  save("learning_rates", rates)

  toy_search()
  text_numbers()
  batch_numbers()
  bleu_numbers()


def tf_keras_adam(optimizer_lib, params):
  import tf_keras

  return tf_keras.optimizers.Adam(
    optimizer_lib.LearningRateSchedule(
      params["learning_rate"],
      params["hidden_size"],
      params["learning_rate_warmup_steps"],
    ),
    params["optimizer_adam_beta1"],
    params["optimizer_adam_beta2"],
    epsilon=params["optimizer_adam_epsilon"],
  )


def saved_weights(model) -> dict[str, np.ndarray]:
  """Saves as `fit` does; returns what the checkpoint holds."""
  with tempfile.TemporaryDirectory() as directory:
    prefix = os.path.join(directory, "cp.ckpt")
    model.save_weights(prefix)
    reader = tf.train.load_checkpoint(prefix)
    return {
      name: reader.get_tensor(name)
      for name in reader.get_variable_to_shape_map()
      if name.endswith("/.ATTRIBUTES/VARIABLE_VALUE")
      and not name.startswith(("save_counter", "optimizer"))
    }


def set_weights(model, weights) -> None:
  """Loads such weights into another model."""
  with tempfile.TemporaryDirectory() as directory:
    prefix = os.path.join(directory, "cp.ckpt")
    names = sorted(weights)
    model.save_weights(prefix)
    graph = tf.train.load_checkpoint(prefix).get_tensor(
      "_CHECKPOINTABLE_OBJECT_GRAPH"
    )
    tf.raw_ops.SaveV2(
      prefix=prefix,
      tensor_names=[*names, "_CHECKPOINTABLE_OBJECT_GRAPH"],
      shape_and_slices=[""] * (len(names) + 1),
      tensors=[*(weights[n] for n in names), tf.constant(graph)],
    )
    model.load_weights(prefix).assert_existing_objects_matched()


def key_of(value, weights) -> str:
  """Finds a variable's key by its value: all values are distinct."""
  (key,) = (
    key
    for key, stored in weights.items()
    if stored.shape == value.shape and np.array_equal(stored, value)
  )
  return key


def checkpoint_names(model, opt, frozen) -> None:
  """Freezes names and shapes of both kinds of checkpoint."""
  model.compile(opt)
  for kind in ("fit", "ctl"):
    with tempfile.TemporaryDirectory() as directory:
      prefix = os.path.join(directory, "cp.ckpt")
      if kind == "fit":
        model.save_weights(prefix)
      else:
        prefix = tf.train.Checkpoint(model=model, optimizer=opt).save(prefix)
      found = tf.train.list_variables(prefix)
    frozen[f"names/{kind}"] = np.array([name for name, _ in found])
    frozen[f"shapes/{kind}"] = np.array(
      ["x".join(map(str, shape)) for _, shape in found]
    )


def layers_of(inner, rng) -> dict[str, np.ndarray]:
  """Freezes what single layers and whole stacks make of given numbers."""
  from official.legacy.transformer import model_utils

  # A spread of 1e-3: the norms' epsilon shows.
  small = rng.normal(scale=1e-3, size=(2, 5, 16)).astype(np.float32)
  x = rng.normal(size=(2, 5, 16)).astype(np.float32)
  source = rng.normal(size=(2, 7, 16)).astype(np.float32)
  ids = np.array([[3, 4, 5, 0, 0], [3, 4, 5, 6, 1]])
  source_ids = np.array([[3, 4, 5, 6, 7, 0, 0], [3, 4, 5, 6, 7, 8, 1]])
  bias = model_utils.get_padding_bias(tf.constant(ids))
  source_bias = model_utils.get_padding_bias(tf.constant(source_ids))
  causal = model_utils.get_decoder_self_attention_bias(5)
  encoder, decoder = inner.encoder_stack, inner.decoder_stack
  frozen = {
    "x": x,
    "small": small,
    "source": source,
    "ids": ids,
    "source_ids": source_ids,
    "padding_bias": bias,
    "causal_bias": causal,
    "self_attention": encoder.layers[0][0].layer(x, bias, training=False),
    "cross_attention": decoder.layers[0][1].layer(
      x, source, source_bias, training=False
    ),
    "feed_forward": encoder.layers[0][1].layer(x, training=False),
    "wrapped_feed_forward": encoder.layers[0][1](small, training=False),
    "encoder_stack": encoder(small, bias, None, training=False),
    "decoder_stack": decoder(
      small, source, causal, source_bias, training=False
    ),
    "encoder_norm": encoder.output_normalization(small),
  }
  for length, size in ((1, 16), (7, 32), (60, 512)):
    frozen[f"positions/{length}/{size}"] = inner.position_embedding.__class__(
      hidden_size=size
    )(inputs=None, length=length)
  return {f"layers/{k}": np.asarray(v) for k, v in frozen.items()}


def search_all(decoder, ids) -> dict[str, np.ndarray]:
  """Searches as the model does, and returns all hypotheses, not the best."""
  from official.legacy.transformer import model_utils
  from official.nlp.modeling.ops import beam_search

  kept = {}
  original = beam_search.sequence_beam_search

  def spy(**kwargs):
    kept["ids"], kept["scores"] = original(**kwargs)
    return kept["ids"], kept["scores"]

  beam_search.sequence_beam_search = spy
  try:
    bias = model_utils.get_padding_bias(ids)
    decoder.predict(decoder.encode(ids, bias, False), bias, False)
  finally:
    beam_search.sequence_beam_search = original
  return {name: value.numpy()[0] for name, value in kept.items()}


def toy_search() -> None:
  """Freezes the search alone: next-token logits from a table."""
  from official.nlp.modeling.ops import beam_search

  vocabulary, limit = 20, 10
  rng = np.random.default_rng(2)
  # Sentences that end early, late and never.
  tables = rng.normal(scale=2.0, size=(4, limit, vocabulary, vocabulary))
  tables[0, :, :, 1] += 4.0
  tables[1, :6, :, 1] -= 8.0
  tables[2, :, :, 1] -= 1e4
  tables = tables.astype(np.float32)
  frozen = {"tables": tables, "limit": limit}
  for row, table in enumerate(tables):
    for beam_size, alpha in SEARCHES:

      def step(ids, i, cache, table=table):
        return tf.gather(tf.constant(table)[i], ids[:, -1]), cache

      ids, scores = beam_search.sequence_beam_search(
        symbols_to_logits_fn=step,
        initial_ids=tf.zeros([1], tf.int32),
        initial_cache={"unused": tf.zeros([1, 1])},
        vocab_size=vocabulary,
        beam_size=beam_size,
        alpha=alpha,
        max_decode_length=limit,
        eos_id=1,
      )
      frozen[f"{row}/{beam_size}/{alpha}/ids"] = ids.numpy()[0]
      frozen[f"{row}/{beam_size}/{alpha}/scores"] = scores.numpy()[0]
  save("toy_search", frozen)


def text_numbers() -> None:
  """Freezes vocabularies, and the ids of hostile strings."""
  from official.legacy.transformer.utils import tokenizer

  rng = np.random.default_rng(3)
  # Words of a made-up language, frequent ones short, in two files.
  letters = list("etaoinshrdlucmfwypvbgkjqxz\u00e4\u00f6\u00fc\u00df\u00e9")
  words = [
    "".join(rng.choice(letters, size=1 + int(rng.integers(1, 4 + n // 60))))
    for n in range(400)
  ]
  chances = 1.0 / np.arange(1, 401)
  chances /= chances.sum()
  frozen: dict[str, np.ndarray] = {}
  with tempfile.TemporaryDirectory() as directory:
    files = []
    for part in range(2):
      lines = [
        " ".join(rng.choice(words, size=int(rng.integers(1, 15)), p=chances))
        + str(rng.choice([".", "!", "?", " 42", " \\_ x", ""]))
        for _ in range(700)
      ]
      text = ("\n".join(lines) + "\n").encode()
      files.append(os.path.join(directory, f"text{part}"))
      pathlib.Path(files[-1]).write_bytes(text)
      frozen[f"text/{part}"] = np.frombuffer(text, np.uint8)
    for name, options in {
      "min_count_3": {"min_count": 3, "target_vocab_size": 1, "threshold": 1},
      "searched": {"target_vocab_size": 500, "threshold": 5},
      "sampled": {
        "target_vocab_size": 300,
        "threshold": 3,
        "file_byte_limit": 5e3,
      },
    }.items():
      path = os.path.join(directory, name)
      subtokenizer = tokenizer.Subtokenizer.init_from_files(
        path, files, **options
      )
      frozen[f"vocabulary/{name}"] = np.frombuffer(
        pathlib.Path(path).read_bytes(), np.uint8
      )
      if name != "searched":
        continue
      for row, text in enumerate(STRINGS):
        ids = subtokenizer.encode(text, add_eos=True)
        frozen[f"ids/{row}"] = np.array(ids)
        decoded = subtokenizer.decode(ids[:-1]) if ids[:-1] else ""
        frozen[f"decoded/{row}"] = np.frombuffer(
          decoded.encode("utf-8", "surrogatepass"), np.uint8
        )
        frozen[f"string/{row}"] = np.frombuffer(text.encode(), np.uint8)
  save("texts", frozen)


def batch_numbers() -> None:
  """Freezes bucket boundaries, and the shapes of batches."""
  from official.legacy.transformer import data_pipeline

  rng = np.random.default_rng(4)
  lengths = rng.integers(1, 70, size=(600, 2))
  frozen = {"lengths": lengths}
  for max_length in (8, 9, 24, 64, 256):
    _, upper = data_pipeline._create_min_max_boundaries(max_length)
    frozen[f"boundaries/{max_length}"] = np.array(upper)
  with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "x-train-00001-of-00001")
    with tf.io.TFRecordWriter(path) as writer:
      for source, target in lengths:
        feature = {
          name: tf.train.Feature(
            int64_list=tf.train.Int64List(value=[2] * (int(n) - 1) + [1])
          )
          for name, n in (("inputs", source), ("targets", target))
        }
        example = tf.train.Example(features=tf.train.Features(feature=feature))
        writer.write(example.SerializeToString())
    for name, static in (("bucketed", False), ("static", True)):
      dataset = data_pipeline._read_and_batch_from_files(
        path, 512, 64, 1, shuffle=False, repeat=1, static_batch=static
      )
      frozen[f"shapes/{name}"] = np.array(
        [[x.shape[0], x.shape[1], y.shape[1]] for x, y in dataset]
      )
  save("batches", frozen)


def bleu_numbers() -> None:
  """Freezes the BLEU of plausible and of degenerate translations."""
  from official.legacy.transformer import compute_bleu

  reference = [
    "The quick brown fox jumps over the lazy dog.",
    'In 1984, prices rose by 3.5% (or $1,200) \u2014 "more than ever".',
    "Ein Mann f\u00e4hrt mit dem Fahrrad durch die Stra\u00dfe!",
    "It's a well-known fact: e-mail@example.com is \u20ac5 & free.",
  ]
  candidates = {
    "equal": reference,
    "close": [
      "The quick brown fox jumped over a lazy dog.",
      'In 1984 prices rose by 3.5 % (or $1,200) - "more than ever."',
      "Ein mann f\u00e4hrt auf dem Fahrrad durch die Strasse!",
      "It is a well known fact: e-mail@example.com is \u20ac5 and free.",
    ],
    "short": ["The fox.", "In 1984", "Ein Mann", "It's"],
    "long": [line + " " + line for line in reference],
    "unrelated": ["x y z w", "q r s t", "k l m n", "a b c d"],
    "one_word": ["dog"] * 4,
    "partly_empty": [reference[0], "", "", reference[3]],
    "empty": ["", "", "", ""],
  }
  frozen = {"reference": np.array(reference)}
  for name, lines in candidates.items():
    frozen[f"translation/{name}"] = np.array(lines)
    for cased in (False, True):
      kept = (
        (reference, lines)
        if cased
        else (
          [line.lower() for line in reference],
          [line.lower() for line in lines],
        )
      )
      tokens = [
        [compute_bleu.bleu_tokenize(line) for line in side] for side in kept
      ]
      from official.legacy.transformer.utils import metrics

      try:
        score = float(metrics.compute_bleu(*tokens)) * 100
      except ZeroDivisionError:
        score = np.nan  # Ours is 0.
      frozen[f"bleu/{name}/{cased}"] = np.float64(score)
  save("bleu", frozen)


def v1(checkout: str) -> None:
  """Freezes commit 79b57a3f of tensorflow/models, `official/transformer`."""
  from tensorflow.python.util import nest  # noqa: F401  Its search wants it.

  v1_api = tf.compat.v1
  v1_api.disable_v2_behavior()
  transformer = import_old(
    checkout, "official.transformer.model.transformer", v1_api
  )
  params = {**PARAMS, "use_tpu": False, "tpu": None}
  rng = np.random.default_rng(5)
  frozen = {"inputs": INPUTS, "targets": TARGETS}
  weights = {}
  with tempfile.TemporaryDirectory() as directory:
    prefix = os.path.join(directory, "model.ckpt")
    with v1_api.Graph().as_default(), v1_api.Session() as session:
      with v1_api.variable_scope("model"):
        logits = transformer.Transformer(params, False)(
          tf.constant(INPUTS), tf.constant(TARGETS)
        )
      v1_api.train.get_or_create_global_step()
      v1_api.train.AdamOptimizer().minimize(
        v1_api.reduce_sum(logits), v1_api.train.get_global_step()
      )
      session.run(v1_api.global_variables_initializer())
      for variable in v1_api.trainable_variables():
        value = session.run(variable)
        spread = 0.3 if value.ndim > 1 else 0.2
        value += rng.normal(scale=spread, size=value.shape)
        variable.load(value, session)
        weights[variable.op.name] = value
      frozen["logits"] = session.run(logits)
      v1_api.train.Saver().save(session, prefix)
      found = tf.train.list_variables(prefix)
    frozen["names"] = np.array([name for name, _ in found])
    frozen["shapes"] = np.array(
      ["x".join(map(str, shape)) for _, shape in found]
    )
    for beam_size, alpha in SEARCHES:
      for row, ids in enumerate(INPUTS):
        with v1_api.Graph().as_default(), v1_api.Session() as session:
          with v1_api.variable_scope("model"):
            found = transformer.Transformer(
              {**params, "beam_size": beam_size, "alpha": alpha}, False
            )(tf.constant(ids[ids != 0][None]))
          v1_api.train.Saver().restore(session, prefix)
          found = session.run(found)
        frozen[f"search/{row}/{beam_size}/{alpha}/ids"] = found["outputs"][0]
        frozen[f"search/{row}/{beam_size}/{alpha}/scores"] = found["scores"][0]
  frozen |= {f"weights/{name}": value for name, value in weights.items()}
  save("v1_model", frozen)


def early_v2(checkout: str) -> None:
  """Freezes commit b9cab01b of tensorflow/models, `.../transformer/v2`."""
  import types

  import tf_keras

  tf_keras.backend.clear_session()
  # Its own flags pull in what no longer exists; one function of it is read.
  misc = types.ModuleType("misc")
  misc.is_v2 = lambda: True
  sys.modules["official.transformer.v2.misc"] = misc
  transformer = import_old(checkout, "official.transformer.v2.transformer", tf)
  rng = np.random.default_rng(6)
  model = transformer.create_model({**PARAMS, "dtype": tf.float32}, True)
  for variable in model.trainable_variables:
    variable.assign(variable + rng.normal(scale=0.3, size=variable.shape))
  frozen = {f"weights/{k}": v for k, v in saved_weights(model).items()}
  frozen |= {"inputs": INPUTS, "targets": TARGETS}
  found = model([INPUTS, TARGETS], training=False)
  frozen["logits"] = np.asarray(found)
  save("early_v2_model", frozen)


def import_old(checkout: str, name: str, as_tensorflow):
  """Imports a module of an old checkout, `import tensorflow` as given."""
  import importlib

  modern = sys.modules["tensorflow"]
  sys.path.insert(0, checkout)
  for module in list(sys.modules):
    if module.split(".")[0] == "official" and "misc" not in module:
      del sys.modules[module]
  sys.modules["tensorflow"] = as_tensorflow
  try:
    found = importlib.import_module(name)
  finally:
    sys.modules["tensorflow"] = modern
  assert found.__file__.startswith(checkout), found.__file__
  return found


def save(name: str, frozen: dict[str, np.ndarray]) -> None:
  """Writes one fixture."""
  FIXTURES.mkdir(exist_ok=True)
  path = FIXTURES / f"{name}.npz"
  np.savez_compressed(path, **frozen)
  print(path, path.stat().st_size, "bytes", len(frozen), "arrays")


if __name__ == "__main__":
  {"legacy": legacy, "v1": v1, "early_v2": early_v2}[sys.argv[1]](
    *map(os.path.abspath, sys.argv[2:])
  )
