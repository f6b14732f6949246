r"""Freezes what upstream makes of a trained model into `trained_model.npz`.

Not part of the tests, as `make_fixtures.py`, whose environment this needs and
beside which it stands. The text is the demo corpus, the model our own:

  python -m data_prep.demo_corpus --output_dir=text --train_size=60000
  python -m data_prep.prepare_data --data_dir=data \
    --vocab_type=subtoken --vocab_size=600 \
    --train_source=text/train.en --train_target=text/train.de \
    --dev_source=text/dev.en --dev_target=text/dev.de
  fields=hidden_size=48,num_hidden_layers=3,num_heads=4,filter_size=96
  fields=$fields,learning_rate=0.6,learning_rate_warmup_steps=300
  fields=$fields,layer_postprocess_dropout=0,attention_dropout=0
  fields=$fields,relu_dropout=0,start_symbol=pad_row
  python -m official_transformer.transformer_main --mode=train \
    --data_dir=data --model_dir=model --param_set=tiny \
    --params_override=$fields --batch_size=4096 --max_length=64 \
    --train_steps=2000 --steps_between_evals=500 --seed=1

Then, in upstream's environment, this repository on PYTHONPATH:

  python make_trained_model.py model text fixtures/trained_model.npz

The file holds, of lines (joined by line feeds) UTF-8 bytes:

- `weights/...`: upstream's variables by the names of its checkpoints, float32
  of bfloat16 values, which compress better;
- `vocabulary`: the vocabulary file, byte for byte;
- `sources`: lines, 240 of the demo test set and then harder ones;
- `beam_4/texts`, `beam_1/texts`: upstream's best translation of each line by
  itself, alpha .6, at most 50 tokens longer than the source;
- `beam_4/ids` [lines, 4, L], `beam_4/scores` [lines, 4], and of beam 1: all
  hypotheses, best first, without the start symbol, PAD behind them; scores of
  -1e7 and below are fillers.
"""

from __future__ import annotations

import json
import pathlib
import sys
from unittest import mock

import numpy as np
import tensorflow as tf
from make_fixtures import PARAMS, saved_weights, set_weights

from official_transformer.importing import formats

DEMO_LINES = 240
BEAMS = (4, 1)
MOST_TOKENS = 96
HARD_LINES = [
  "I",
  "a",
  "?",
  "...",
  "No.",
  "42",
  "7 men",
  "Sleep!",
  "the the the the the the the the",
  "The child sleeps",
  "the child sleeps.",
  "THE CHILD SLEEPS.",
  "ThE cHiLd sLeEpS?!",
  "The child, the teacher, the queen and the doctor sleep.",
  "The astronaut programmed seventeen quantum computers yesterday.",
  "Xylophone zebras buzz.",
  "Does the archaeologist give a xylophone to the zookeeper?",
  "supercalifragilisticexpialidocious",
  "A man-eating tiger; a well-known teacher: both sleep - soon!",
  'The teacher says: "This child must work."',
  "The queen's bottles aren't small, aren't they?",
  "(The doctor) [dances] {in} <the> village.",
  "The man gives the child 3 flowers and 12 knives.",
  "In 1984, 1,234.56 men danced.",
  "0 1 2 3 4 5 6 7 8 9",
  "3.14159 * 2 = 6.28318?",
  "100% of the men & 50% of the women @ school #1",
  "one_two __three__ _",
  "C:\\temp\\new \\u \\12; \\\\",
  "The child\\man sleeps_now.",
  "\\228; \\8364; \\99999999;",
  "<pad> <EOS> The child sleeps. <EOS>",
  "The caf\u00e9 is na\u00efve.",
  "Das M\u00e4dchen schl\u00e4ft in der Stra\u00dfe.",
  "cafe\u0301 a\u0308",
  "\u041c\u043e\u0441\u043a\u0432\u0430",
  "The man sees \u041c\u0438\u0440.",
  "\u4f60\u597d \u4e16\u754c",
  "\u5b69\u5b50 sleeps.",
  "\u0645\u0631\u062d\u0628\u0627",
  "\u0928\u092e\u0938\u094d\u0924\u0947",
  "\u05e9\u05dc\u05d5\u05dd child",
  "The child \U0001f600 sleeps.",
  "\U0001f468\u200d\U0001f469",
  "no\u00a0break and line\u2028separator",
  "The price is \u20ac5 \u2014 \u201etoo much\u201c\u2026",
  "x\u00b2 + \u00bd = \u2167",
  "\u3000The child sleeps.\u00a0",
]
# How lines of the test set, from the first that is not taken as it is, are
# made harder; each takes as many lines as it has places.
FRAMES = [
  "  {}",
  "{}   ",
  "\t{}\t",
  " \t {} \t ",
  "{} {}",
  "{} {}",
  "{}{}",
  "{}\t{}",
  "{}  {}",
  "{} {} {}",
  "{} {} {}",
]


def main(model_dir: str, text_dir: str, out: str) -> None:
  """Writes the fixture.

  Args:
    model_dir: of the trained model, `start_symbol` row 0 of the table.
    text_dir: of the demo corpus.
    out: the file to write.
  """
  from official.legacy.transformer import transformer, translate
  from official.legacy.transformer.utils import tokenizer

  directory = pathlib.Path(model_dir)
  description = json.loads((directory / "model.json").read_text("utf-8"))
  ours = description["params"]
  assert ours["start_symbol"] == "pad_row"
  params = {
    **{name: ours.get(name, value) for name, value in PARAMS.items()},
    "dtype": tf.float32,
    "padded_decode": False,
  }
  vocabulary = directory / description["vocabulary"]["file"]
  subtokenizer = tokenizer.Subtokenizer(str(vocabulary))
  assert len(subtokenizer.subtoken_list) == params["vocab_size"]

  model = transformer.create_model(params, is_train=False)
  weights = upstreams_weights(directory, saved_weights(model))
  set_weights(model, weights)
  sources = source_lines(pathlib.Path(text_dir))
  frozen = {f"weights/{name}": value for name, value in weights.items()}
  frozen["vocabulary"] = np.frombuffer(vocabulary.read_bytes(), np.uint8)
  frozen["sources"] = as_bytes(sources)
  encoded = [subtokenizer.encode(line.strip(), True) for line in sources]
  assert all(1 < len(ids) <= MOST_TOKENS for ids in encoded)
  for beam_size in BEAMS:
    decoder = model.get_layer("transformer_v2")
    decoder.params = {**params, "beam_size": beam_size}
    search = search_of(decoder)
    found = [search(tf.constant([ids], tf.int32)) for ids in encoded]
    # The start symbol is no part of a hypothesis.
    ids = [ids[0, :, 1:].numpy() for ids, _ in found]
    texts = [translate._trim_and_decode(rows[0], subtokenizer) for rows in ids]
    frozen[f"beam_{beam_size}/texts"] = as_bytes(texts)
    frozen[f"beam_{beam_size}/ids"] = laid_out(ids)
    frozen[f"beam_{beam_size}/scores"] = np.array(
      [scores[0].numpy() for _, scores in found]
    )
    print("beam", beam_size, "BLEU", bleu(texts, pathlib.Path(text_dir)))
  np.savez_compressed(out, **frozen)
  print(out, pathlib.Path(out).stat().st_size, "bytes", len(frozen), "arrays")


def upstreams_weights(
  directory: pathlib.Path, like: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
  """Returns the newest checkpoint's weights as upstream would store them.

  Args:
    directory: of our model.
    like: upstream's variables, of the right shapes.
  """
  newest = max(
    directory.glob("checkpoints/step-*"),
    key=lambda path: int(path.name.removeprefix("step-")),
  )
  reader = tf.train.load_checkpoint(str(newest / "model"))
  weights = {}
  for name, value in like.items():
    (placement,) = formats.V2.place(name)
    ours = reader.get_tensor(f"weights/transformer/{placement.path}")
    rounded = tf.cast(tf.cast(ours, tf.bfloat16), tf.float32)
    weights[name] = rounded.numpy().reshape(value.shape)
  stored = [
    name
    for name in reader.get_variable_to_shape_map()
    if name.startswith("weights/")
  ]
  assert len(stored) == len(weights)
  return weights


def source_lines(text_dir: pathlib.Path) -> list[str]:
  """Returns the lines to translate: the demo's, then harder ones."""
  lines = (text_dir / "test.en").read_text("utf-8").split("\n")[:-1]
  rest = iter(lines[DEMO_LINES:])
  framed = [
    frame.format(*(next(rest) for _ in range(frame.count("{}"))))
    for frame in FRAMES
  ]
  # Every inner space doubled.
  framed.append(next(rest).replace(" ", "  "))
  return lines[:DEMO_LINES] + HARD_LINES + framed


def search_of(decoder):
  """Returns upstream's search, traced: ids [1, S] to all ids and scores."""
  from official.legacy.transformer import model_utils
  from official.nlp.modeling.ops import beam_search

  original = beam_search.sequence_beam_search

  @tf.function(input_signature=[tf.TensorSpec([1, None], tf.int32)])
  def search(ids):
    kept = []

    def spy(**keywords):
      kept.extend(original(**keywords))
      return kept

    with mock.patch.object(beam_search, "sequence_beam_search", spy):
      bias = model_utils.get_padding_bias(ids)
      decoder.predict(decoder.encode(ids, bias, False), bias, False)
    return kept

  return search


def laid_out(found: list[np.ndarray]) -> np.ndarray:
  """Returns ids [K, L] of many lines as one int16 array, PAD behind them."""
  longest = max(ids.shape[1] for ids in found)
  return np.array(
    [np.pad(ids, ((0, 0), (0, longest - ids.shape[1]))) for ids in found],
    np.int16,
  )


def bleu(texts: list[str], text_dir: pathlib.Path) -> float:
  """Returns upstream's cased BLEU of the demo lines."""
  from official.legacy.transformer import compute_bleu
  from official.legacy.transformer.utils import metrics

  references = (text_dir / "test.de").read_text("utf-8").split("\n")
  sides = references[:DEMO_LINES], texts[:DEMO_LINES]
  return 100 * metrics.compute_bleu(
    *([compute_bleu.bleu_tokenize(line) for line in side] for side in sides)
  )


def as_bytes(lines: list[str]) -> np.ndarray:
  """Returns lines, none of which holds a line feed, as UTF-8 bytes."""
  assert not any("\n" in line for line in lines)
  return np.frombuffer("\n".join(lines).encode(), np.uint8)


if __name__ == "__main__":
  main(*sys.argv[1:])
