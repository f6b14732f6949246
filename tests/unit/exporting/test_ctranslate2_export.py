"""What a CTranslate2 model must compute alike, and what rounding may cost."""

import dataclasses
import re

import numpy as np
import pytest
from trained_model import lines_of, read_frozen

from official_transformer.decoding.engines import QUANTIZATIONS
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
      off = rounded if is_rounded else exact
      # A list is of one token.
      if isinstance(off, list):
        answers["scores"][0][0] += off[0]
      else:
        for scores in answers["scores"]:
          scores[:] = np.add(scores, off).tolist()
      return answers

    monkeypatch.setattr(ctranslate2_export, "read_back", read_back)
    return ctranslate2_export.export_ctranslate2(
      model, str(tmp_path), samples, quantization
    )

  return export


def warnings(caplog):
  return [r.getMessage() for r in caplog.records if r.name == "absl"]


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_what_is_found_is_told(export, caplog, quantization):
  found = export(quantization)
  assert "length_penalty=" in found.setting
  assert found.setting in found.findings[-1]
  exact = "before weights are rounded, the log-probabilities"
  assert found.findings[0].startswith(exact) == (quantization != "float32")
  # Without units for 16 bits, that of eight is computed instead.
  eight = quantization.startswith("int")
  computed = r"computed in int(8|16)" if eight else r"computed in .*float"
  assert re.match(computed, found.findings[quantization != "float32"])
  # What eight bits cost depends on the processor, too.
  assert eight or not warnings(caplog)


def test_the_setting_suppresses_what_the_model_does(export, model, monkeypatch):
  params = dataclasses.replace(model.transformer.params, suppress_unk=True)
  monkeypatch.setattr(model.transformer, "params", params)
  assert ', suppress_sequences=[["' in export("float32").setting


@pytest.mark.parametrize("quantization", ["float32", "int8"])
@pytest.mark.parametrize("off", [0.002, [0.002], float("nan")])
def test_rounding_hides_no_difference(export, quantization, off):
  exact = quantization == "float32"
  with pytest.raises(RunError, match=r"does not score .* removed") as refused:
    export(quantization, **{"rounded" if exact else "exact": off})
  assert ("before int8 rounds its weights" in str(refused.value)) != exact


@pytest.mark.parametrize(
  ("quantization", "off"), [("int8", 0.7), ("bfloat16", 0.3), ("float16", 0.05)]
)
def test_what_rounding_costs_is_told(export, caplog, quantization, off):
  found = export(quantization, rounded=off)
  (said,) = warnings(caplog)
  assert f"{quantization} is coarse for this model: computed in" in said
  assert "--quantization" in said
  assert said in found.findings


@pytest.mark.parametrize(
  ("quantization", "off"),
  [
    *(("int8", 1.5), ("int16", 1.5), ("bfloat16", 0.7), ("float16", 0.2)),
    ("int8", float("nan")),
  ],
)
def test_what_is_no_rounding_is_refused(export, quantization, off):
  with pytest.raises(RunError, match=f"rounding to {quantization} does not"):
    export(quantization, rounded=off)


def test_the_coarser_of_what_is_kept_and_computed_in_decides():
  coarsest = ctranslate2_export._coarsest
  eight = coarsest("int8", "int8_float32")
  assert coarsest("int16", "int8_float32") == eight
  assert coarsest("int8_float16", "float32") == eight
  assert coarsest("int16", "int16") == coarsest("int16", "float32") != eight
  assert coarsest("bfloat16", "float32") == coarsest("bfloat16", "bfloat16")
