"""Exports by the command line, used where this package is not.

One export of each format is verified as the command does it, by a process of
its own; the rest are read back here.
"""

import contextlib
import json
import os
import shutil
import subprocess
import sys

import pytest
from command_line import MAIN, fail, succeed
from trained_model import lines_of, read_frozen

from official_transformer.exporting import export as export_lib
from official_transformer.exporting import formats

pytestmark = pytest.mark.slow

# Without this package, and from elsewhere.
STRANGER = """
import sys
sys.modules["official_transformer"] = None
import tensorflow as tf
import tensorflow_text

model = tf.saved_model.load(sys.argv[1])
lines = sys.stdin.read().split("\\n")
found = model.signatures["translate_text"](text=tf.constant(lines))
for text in found["translations"].numpy():
  print(text.decode())
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory):
  path = tmp_path_factory.mktemp("text") / "lines"
  path.write_text("\n".join(lines_of(read_frozen(), "sources")[:60]) + "\n")
  return path


def export(model_dir, directory, *flags):
  return succeed(
    MAIN,
    *("--mode=export", f"--model_dir={model_dir}", f"--export_dir={directory}"),
    *flags,
  ).stdout


def test_a_saved_model_translates_without_this_package(
  demo_model, demo_data, demo_text, tmp_path
):
  """Of a SentencePiece vocabulary; verified with the development data."""
  path = tmp_path / "saved"
  said = export(demo_model, path, f"--data_dir={demo_data}", "--beam_size=2")
  assert f"{path} holds step 30" in said
  assert "40 sentences" in said
  lines = (demo_text / "test.en").read_text("utf-8").split("\n")[:-1]
  environment = {**os.environ, "PYTHONPATH": ""}
  done = subprocess.run(
    [sys.executable, "-P", "-c", STRANGER, path],
    input="\n".join(lines),
    capture_output=True,
    text=True,
    cwd=tmp_path,
    env=environment,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  expected = succeed(
    MAIN,
    *("--mode=predict", f"--model_dir={demo_model}", "--beam_size=2"),
    f"--file={demo_text}/test.en",
  )
  assert done.stdout == expected.stdout
  readme = (path / "README.md").read_text("utf-8")
  assert "translate_text" in readme
  assert "SHA-256" in readme
  assert (path / "assets.extra" / "vocab.txt").exists()


@pytest.mark.usefixtures("read_back_here")
def test_a_saved_model_is_of_the_type_that_is_asked_for(
  trained_model, source, tmp_path
):
  """Even if this processor computes it slowly; a trailing slash is no name."""
  path = tmp_path / "saved"
  flags = [f"--file={source}", "--noexport_text", "--dtype=fp16"]
  export(trained_model, f"{path}/", *flags, "--beam_size=1")
  assert "float16" in (path / "README.md").read_text("utf-8")
  assert {p.name for p in tmp_path.iterdir()} == {"saved"}


@pytest.mark.usefixtures("read_back_here")
def test_ids_alone_need_no_tensorflow_text(demo_model, source, tmp_path):
  path = tmp_path / "saved"
  export(demo_model, path, f"--file={source}", "--noexport_text")
  graph = (path / "saved_model.pb").read_bytes()
  assert b"Sentencepiece" not in graph
  assert "translate_text" not in (path / "README.md").read_text("utf-8")


@pytest.mark.parametrize("quantization", ["float32", "int8"])
def test_a_ctranslate2_model_tells_how_to_use_it(
  trained_model, source, tmp_path, quantization
):
  ctranslate2 = pytest.importorskip("ctranslate2")
  path = tmp_path / "model"
  said = export(
    trained_model,
    path,
    *("--export_format=ctranslate2", f"--quantization={quantization}"),
    *(f"--file={source}", "--patience=1.5"),
  )
  assert "length_penalty=" in said
  readme = (path / "README.md").read_text("utf-8")
  assert "length_penalty=" in readme
  assert "patience=1.5" in readme
  translator = ctranslate2.Translator(str(path))
  assert translator.compute_type.startswith(quantization)


def test_the_engine_is_a_flag(trained_model, source, tmp_path):
  """The same lines in and out; most are the same, with their flags."""
  found = []
  for engine in ("tensorflow", "ctranslate2"):
    out = tmp_path / engine
    succeed(
      MAIN,
      *("--mode=predict", f"--model_dir={trained_model}", f"--file={source}"),
      *(f"--file_out={out}", "--output_format=jsonl", "--n_best=3"),
      f"--engine={engine}",
    )
    with open(out, encoding="utf-8") as stream:
      found.append([json.loads(line) for line in stream])
  ours, theirs = found
  assert len(ours) == len(theirs) == 60
  same = [
    (a, b)
    for a, b in zip(ours, theirs, strict=True)
    if a["translation"] == b["translation"]
  ]
  assert len(same) > 55
  for mine, other in same:
    assert mine.keys() == other.keys()
    assert other["score"] == pytest.approx(mine["score"], abs=1e-4)
  one = succeed(
    MAIN,
    *("--mode=predict", f"--model_dir={trained_model}", "--text=A dog runs."),
    *("--engine=ctranslate2", "--quantization=int8"),
  )
  assert one.stdout.count("\n") == 1


def test_eval_takes_the_engine_too(demo_model, demo_text):
  flags = (
    *("--mode=eval", f"--model_dir={demo_model}"),
    f"--bleu_source={demo_text}/test.en",
    f"--bleu_ref={demo_text}/test.de",
  )
  said = succeed(MAIN, *flags, "--engine=ctranslate2").stdout
  assert "BLEU" in said


@pytest.mark.usefixtures("read_back_here")
def test_training_ends_with_an_export(demo_model, demo_data, tmp_path):
  """It has been trained to its end: what remains is the export."""
  model = shutil.copytree(demo_model, tmp_path / "model")
  path = tmp_path / "exports"
  said = succeed(
    MAIN,
    *("--mode=train", f"--data_dir={demo_data}", f"--model_dir={model}"),
    *("--train_steps=30", f"--export_dir={path}"),
  ).stdout
  (found,) = path.iterdir()
  assert found.name.isdigit()
  assert (found / "saved_model.pb").exists()
  assert f"{found} holds step 30" in said


@pytest.mark.usefixtures("read_back_here")
def test_what_does_not_translate_as_the_model_is_no_export(
  trained_model, source, tmp_path, monkeypatch
):
  write = export_lib.write_saved_model

  def write_another(model, *arguments):
    bias = model.transformer.decoder_stack.output_normalization.beta
    value = bias.value.numpy()
    bias.assign(value + 0.5)
    write(model, *arguments)
    bias.assign(value)

  monkeypatch.setattr(export_lib, "write_saved_model", write_another)
  said = fail(
    MAIN,
    *("--mode=export", f"--model_dir={trained_model}", f"--file={source}"),
    f"--export_dir={tmp_path}/saved",
    status=1,
  )
  assert "does not translate as the model does" in said
  assert not list(tmp_path.iterdir())


def test_what_differs_is_no_proof(monkeypatch):
  from official_transformer.decoding.hypotheses import FoundSequence
  from official_transformer.errors import RunError
  from official_transformer.exporting import verification

  found = FoundSequence([5], -1.0, True)
  samples = verification.Samples(["a"], [[5, 1]], [[found]], ["b"], "float32")
  right = {"ids": [([5, 1], -1.0)], "texts": [], "n_best": []}
  for wrong in (
    {},
    {"ids": [([5, 1], float("nan"))]},
    {"ids": [([6, 1], -1.0)]},
    {"n_best": [[([5, 1], float("nan"), True)]]},
    {"n_best": [[([5, 1], -1.0, True), ([6, 1], -2.0, True)]]},
    {"n_best": [[([6, 1], -1.0, True)]]},
  ):
    answers = {**right, **wrong}
    monkeypatch.setattr(verification, "read_back", lambda *_, a=answers: a)
    with (
      pytest.raises(RunError, match="does not translate")
      if wrong
      else contextlib.nullcontext()
    ):
      verification.verify_search("x", samples, [])
  # Of 20 lines, one may have another translation of the same score.
  many = verification.Samples(
    *(["a"] * 20, [[5, 1]] * 20, [[found]] * 20, ["b"] * 20, "float32")
  )
  for tied in range(3):
    same, other = (([n, 1], -1.0) for n in (5, 6))
    ids = [other] * tied + [same] * (20 - tied)
    answers = {**right, "ids": ids}
    monkeypatch.setattr(verification, "read_back", lambda *_, a=answers: a)
    if tied < 2:
      said = verification.verify_search("x", many, [])
      assert ("1 had another translation" in said) == (tied == 1)
    else:
      with pytest.raises(RunError, match="does not translate"):
        verification.verify_search("x", many, [])


@pytest.mark.parametrize(
  ("flags", "complaint"),
  [
    ([], "needs --export_dir"),
    (["--export_dir={tmp}"], "exists; name another"),
    (["--export_dir={tmp}/new"], "pass --data_dir"),
    (["--export_dir={tmp}/new", "--file={tmp}/no"], "there is no file"),
    (["--export_dir={tmp}/new", "--file={tmp}/blank"], "none of the lines"),
    (["--export_dir={tmp}/new", "--file={src}", "--checkpoint=7"], "step"),
    (
      ["--export_dir={tmp}/new", "--file={src}", "--model_dir={tmp}"],
      "model.json",
    ),
    (
      [
        *("--export_dir={tmp}/new", "--file={src}", "--dtype=bf16"),
        "--export_format=ctranslate2",
      ],
      "leave --dtype out",
    ),
  ],
)
def test_mistakes_cost_one_line(
  trained_model, source, tmp_path, flags, complaint
):
  (tmp_path / "blank").write_text("\n \n")
  flags = [flag.format(tmp=tmp_path, src=source) for flag in flags]
  said = fail(
    MAIN,
    *("--mode=export", f"--model_dir={trained_model}"),
    f"--data_dir={tmp_path}/none",
    *flags,
  )
  assert complaint in said, said
  assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
  ("missing", "flags", "remedy"),
  [
    ("tensorflow_text", ["--export_dir=new"], "[serving]"),
    (
      "ctranslate2",
      ["--export_dir=new", "--export_format=ctranslate2"],
      "[ctranslate2]",
    ),
    (
      "ctranslate2",
      ["--mode=predict", "--text=a", "--engine=ctranslate2"],
      "[ctranslate2]",
    ),
  ],
)
def test_what_is_not_installed_is_named(
  trained_model, source, monkeypatch, missing, flags, remedy
):
  monkeypatch.setitem(sys.modules, missing, None)
  monkeypatch.setattr(formats, "is_installed", lambda name: name != missing)
  said = fail(
    MAIN,
    *("--mode=export", f"--model_dir={trained_model}"),
    *([] if "--mode=predict" in flags else [f"--file={source}"]),
    *flags,
  )
  assert f"pip install 'official-transformer{remedy}'" in said
