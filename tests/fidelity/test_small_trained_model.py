"""A small trained model, and what upstream's own code makes of 300 lines.

`make_trained_model.py` made the fixture.
"""

import numpy as np
import pytest
from trained_model import lines_of, read_frozen

from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.translator import Translator


@pytest.fixture(scope="module")
def frozen():
  return read_frozen()


@pytest.mark.parametrize("beam_size", [4, 1])
def test_every_translation_and_score_is_upstreams(
  frozen, trained_model, beam_size
):
  """Some lines have blanks at their ends, which upstream strips."""
  sources = lines_of(frozen, "sources")
  expected = lines_of(frozen, f"beam_{beam_size}/texts")
  scores = frozen[f"beam_{beam_size}/scores"][:, 0]
  assert len(sources) == len(expected) == len(scores) == 300
  assert any(line != line.strip() for line in sources)
  options = DecodingOptions(split_sentences=False, recase=False)
  translator = Translator.load(
    trained_model, options=options, beam_size=beam_size
  )
  found = list(translator.translate_stream(sources))
  assert [translation.text for translation in found] == expected
  np.testing.assert_allclose(
    [translation.score for translation in found], scores, atol=1e-4
  )


def test_all_hypotheses_are_upstreams(frozen, trained_model):
  sources = lines_of(frozen, "sources")
  translator = Translator.load(trained_model)
  for row in range(0, 300, 10):
    ids = translator.tokenizers.source.encode(
      sources[row].strip(), add_eos=True
    )
    (found,) = translator.searchers.plain.search([ids])
    scores = frozen["beam_4/scores"][row]
    real = scores > -1e6  # Upstream fills its lists up.
    np.testing.assert_allclose(
      [hypothesis.score for hypothesis in found], scores[real], atol=1e-4
    )
    for hypothesis, theirs in zip(
      found, frozen["beam_4/ids"][row][real], strict=True
    ):
      theirs = theirs[theirs != 0].tolist()
      assert [*hypothesis.ids, 1] == theirs
