"""What a CTranslate2 model must compute alike, and what rounding may cost."""

import numpy as np
import pytest
from trained_model import lines_of, read_frozen

from official_transformer.decoding.loading import load_model, open_model
from official_transformer.errors import RunError
from official_transformer.exporting.read_back import READERS
from official_transformer.exporting.verification import Samples

pytest.importorskip("ctranslate2")

from official_transformer.exporting import ctranslate2_export


@pytest.fixture(scope="module")
def model(trained_model):
  return load_model(*open_model(trained_model))


@pytest.fixture(scope="module")
def samples(model):
  return Samples.of(model, lines_of(read_frozen(), "sources")[:8])


@pytest.fixture
def export(model, samples, tmp_path, monkeypatch):
  """Exports where scores are so far off: rounded ones, and those before."""

  def export(quantization, rounded=0.0, exact=0.0):
    def read_back(kind, directory, questions):
      answers = READERS[kind](directory, questions)
      is_rounded = directory == str(tmp_path)
      for scores in answers["scores"]:
        scores[:] = np.add(scores, rounded if is_rounded else exact).tolist()
      return answers

    monkeypatch.setattr(ctranslate2_export, "read_back", read_back)
    return ctranslate2_export.export_ctranslate2(
      model, str(tmp_path), samples, quantization
    )

  return export


def warnings(caplog):
  return [r.getMessage() for r in caplog.records if r.name == "absl"]


@pytest.mark.parametrize("quantization", ["float32", "int8", "bfloat16"])
def test_what_is_found_is_told(export, caplog, quantization):
  found = export(quantization)
  assert "length_penalty=" in found.setting
  assert found.setting in found.findings[-1]
  assert len(found.findings) == 2 + (quantization != "float32")
  computed = "int8" if quantization == "int8" else "float32"
  assert f"computed in {computed}" in found.findings[-2]
  # What eight bits cost depends on the processor, too.
  assert quantization == "int8" or not warnings(caplog)


def test_rounding_hides_no_difference(export):
  with pytest.raises(RunError, match=r"in float32, .* by 0\.0020 in the mean"):
    export("int8", exact=2e-3)
  with pytest.raises(RunError, match=r"in float32, .* by 0\.0020 in the mean"):
    export("float32", rounded=2e-3)


def test_a_model_too_coarse_is_told(export, caplog):
  export("int8", rounded=-0.5)
  (said,) = warnings(caplog)
  assert "int8 is coarse for this model: computed in int8" in said
  assert "--quantization" in said


@pytest.mark.parametrize("off", [-1.5, float("nan")])
def test_what_is_no_rounding_is_refused(export, off):
  with pytest.raises(RunError, match=r"in int8, and was removed"):
    export("int8", rounded=off)
