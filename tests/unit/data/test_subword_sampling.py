"""Segmentations drawn anew, and the text they leave as it is."""

import numpy as np
import pytest
import tensorflow as tf

from official_transformer.data.segmentation import SubwordSampling
from official_transformer.data.subword_sampling import SubwordSampler
from official_transformer.errors import InputError
from official_transformer.text import tokenizer as tokenizer_lib
from official_transformer.text.vocabulary_files import Tokenizers

LINES = [
  "the lighthouse keeper watches the northern lights",
  "the light house keeps its lights",
  "watching lighthouses, keeping watch",
  "北 lights",
]


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def tokenizer(request, tmp_path_factory):
  directory = tmp_path_factory.mktemp(request.param)
  text = directory / "text"
  text.write_text("\n".join(LINES[:3] * 20) + "\n", encoding="utf-8")
  path = str(directory / "vocab")
  tokenizer_lib.train_sentencepiece([str(text)], path, 60, request.param)
  return tokenizer_lib.load_tokenizer(path)


def batch_of(tokenizer, width=0, times=1):
  """Many times the lines, where a draw that changes none must not happen."""
  rows = [tokenizer.encode(line, add_eos=True) for line in LINES] * times
  width = max(width, *map(len, rows))
  ids = np.zeros([len(rows), width], np.int64)
  for row, found in zip(ids, rows, strict=True):
    row[: len(found)] = found
  return ids


def sampler(tokenizer, max_length=100, seed=1, **sampling):
  return SubwordSampler(
    Tokenizers.of(tokenizer),
    SubwordSampling(**{"alpha": 0.3, "nbest": -1, **sampling}),
    max_length,
    seed,
  )


def rows_of(ids):
  return [row[row != 0].tolist() for row in ids]


def test_the_text_stays_and_its_pieces_change(tokenizer):
  ids = batch_of(tokenizer)
  draws = set()
  for number in range(20):
    drawn, _ = sampler(tokenizer).draw(number, ids, ids)
    for line, row, old in zip(LINES, rows_of(drawn), ids, strict=True):
      assert row[-1] == 1
      if line == LINES[3]:  # It has an unknown character.
        assert row == old[old != 0].tolist()
      else:
        assert tokenizer.decode(row[:-1]) == line
    draws.add(tuple(rows_of(drawn)[0]))
  assert len(draws) > 5


def test_a_seed_and_a_batch_decide(tokenizer):
  ids = batch_of(tokenizer, times=10)
  one, other = (sampler(tokenizer).draw(7, ids, ids) for _ in range(2))
  np.testing.assert_array_equal(one[0], other[0])
  np.testing.assert_array_equal(one[1], other[1])
  assert rows_of(one[0]) != rows_of(one[1])  # Each side its own.
  for number, seed in ((8, 1), (7, 2)):
    third = sampler(tokenizer, seed=seed).draw(number, ids, ids)
    assert rows_of(third[0]) != rows_of(one[0])


def test_one_side_alone(tokenizer):
  ids = batch_of(tokenizer, times=10)
  inputs, targets = sampler(tokenizer, sides="source").draw(3, ids, ids)
  assert rows_of(inputs) != rows_of(ids)
  np.testing.assert_array_equal(targets, ids)
  inputs, targets = sampler(tokenizer, sides="target").draw(3, ids, ids)
  np.testing.assert_array_equal(inputs, ids)
  assert rows_of(targets) != rows_of(ids)


def test_nothing_becomes_longer_than_may_be(tokenizer):
  ids = batch_of(tokenizer)
  longest = ids.shape[1]
  found, _ = sampler(tokenizer, max_length=longest, alpha=0.9).draw(0, ids, ids)
  assert found.shape[1] == longest


def test_batches_go_on_where_they_stopped(tokenizer):
  ids = batch_of(tokenizer)
  batches = tf.data.Dataset.from_generator(
    lambda: iter([(ids, ids)] * 6),
    output_signature=(tf.TensorSpec([None, None], tf.int64),) * 2,
  )
  drawn = list(sampler(tokenizer).resegment(batches, 0).as_numpy_iterator())
  rest = list(
    sampler(tokenizer).resegment(batches.skip(2), 2).as_numpy_iterator()
  )
  for one, other in zip(drawn[2:], rest, strict=True):
    np.testing.assert_array_equal(one[0], other[0])


@pytest.mark.parametrize("model_type", ["word", "char"])
def test_types_without_other_segmentations_are_refused(tmp_path, model_type):
  text = tmp_path / "text"
  text.write_text("\n".join(LINES[:3] * 20) + "\n", encoding="utf-8")
  path = str(tmp_path / "vocab")
  tokenizer_lib.train_sentencepiece([str(text)], path, 40, model_type)
  with pytest.raises(InputError, match="unigram and bpe"):
    sampler(tokenizer_lib.load_tokenizer(path))


def test_what_cannot_be_drawn_is_refused(tmp_path):
  vocabulary = tmp_path / "vocab"
  vocabulary.write_text("'<pad>'\n'<EOS>'\n'a_'\n'a'\n'_'\n")
  subtokens = tokenizer_lib.load_tokenizer(str(vocabulary))
  with pytest.raises(InputError, match="SentencePiece"):
    sampler(subtokens)
  with pytest.raises(InputError, match="nbest"):
    SubwordSampling(0.1, nbest=1)
  with pytest.raises(InputError, match="alpha"):
    SubwordSampling(-0.1)
