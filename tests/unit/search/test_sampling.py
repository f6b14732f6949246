import numpy as np
import tensorflow as tf

from official_transformer.search.constraints import (
  NO_TOKEN,
  Controller,
  SentenceConstraints,
  Strengths,
)
from official_transformer.search.options import Sampling, SearchOptions
from official_transformer.search.sampling import sample
from official_transformer.search.state import DecoderState


def test_pad_counts_as_a_token_when_it_is_drawn():
  """All four tokens are equally probable; the numbers draw 0, 3, 1 and 3, 1."""
  nothing = np.zeros([1, 1, 1], np.int32)
  constraints = SentenceConstraints(
    prefix=tf.zeros([1, 0], tf.int32),
    forbidden=tf.constant(nothing + NO_TOKEN),
    required=tf.constant(nothing),
  )
  options = SearchOptions(sampling=Sampling())
  controller = Controller(
    options.features(beam_size=2), Strengths.of(options), constraints, 4
  )
  found = sample(
    lambda ids, index, state: (tf.zeros([2, 4]), state),
    DecoderState(tf.zeros([2]), tf.zeros([1])),
    limits=tf.constant([5]),
    uniforms=tf.constant([[[0.1, 0.9, 0.4, 0, 0], [0.9, 0.4, 0, 0, 0]]]),
    controller=controller,
    alpha=0.6,
  )
  assert found.ids.numpy().tolist() == [[[0, 3, 1, 0, 0], [3, 1, 0, 0, 0]]]
  np.testing.assert_allclose(
    found.scores.numpy()[0],
    [n * np.log(1 / 4) / ((5 + n) / 6) ** 0.6 for n in (3, 2)],
    rtol=1e-6,
  )
  assert found.finished.numpy().all()
