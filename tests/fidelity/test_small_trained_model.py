"""A small trained model, and what upstream's own code makes of 300 lines.

`make_trained_model.py` made the fixture.
"""

import pathlib

import numpy as np
import pytest

from official_transformer.decoding.translator import Translator
from official_transformer.importing.importer import (
  ImportRequest,
  import_checkpoint,
)
from official_transformer.model_directory.checkpoint_files import write_bundle

FIXTURES = pathlib.Path(__file__).parent / "fixtures"


@pytest.fixture(scope="module")
def frozen():
  with np.load(FIXTURES / "trained_model.npz") as arrays:
    return dict(arrays)


def lines_of(frozen, name):
  return frozen[name].tobytes().decode("utf-8").split("\n")


@pytest.fixture(scope="module")
def model_dir(frozen, tmp_path_factory):
  directory = tmp_path_factory.mktemp("trained")
  prefix = str(directory / "cp.ckpt")
  write_bundle(
    prefix,
    {
      name.removeprefix("weights/"): value
      for name, value in frozen.items()
      if name.startswith("weights/")
    },
  )
  (directory / "vocab").write_bytes(frozen["vocabulary"].tobytes())
  model = str(directory / "model")
  vocabulary = str(directory / "vocab")
  import_checkpoint(
    ImportRequest("v2", prefix, vocabulary, None, {}, None), model
  )
  return model


@pytest.mark.parametrize("beam_size", [4, 1])
def test_every_translation_and_score_is_upstreams(frozen, model_dir, beam_size):
  """Some lines have blanks at their ends, which upstream strips."""
  sources = lines_of(frozen, "sources")
  expected = lines_of(frozen, f"beam_{beam_size}/texts")
  scores = frozen[f"beam_{beam_size}/scores"][:, 0]
  assert len(sources) == len(expected) == len(scores) == 300
  assert any(line != line.strip() for line in sources)
  translator = Translator.load(model_dir, beam_size=beam_size)
  found = list(translator.translate_stream(sources))
  assert [translation.text for translation in found] == expected
  np.testing.assert_allclose(
    [translation.score for translation in found], scores, atol=1e-4
  )


def test_all_hypotheses_are_upstreams(frozen, model_dir):
  sources = lines_of(frozen, "sources")
  translator = Translator.load(model_dir)
  for row in range(0, 300, 10):
    ids = translator.tokenizer.encode(sources[row].strip(), add_eos=True)
    (found,) = translator.searcher.search([ids])
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
