"""The commands as a user gives them, on a small demo corpus.

They run inside the test's process; `test_processes.py` has what needs one of
its own.
"""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import command_line
import numpy as np
import pytest
import tensorflow as tf
from command_line import (
  BLEU,
  DEMO,
  IMPORT,
  MAIN,
  PREPARE,
  REPORT,
  fail,
  succeed,
)
from conftest import MODEL
from endless_model import make_endless

from official_transformer.evaluation import evaluation_set
from official_transformer.evaluation.evaluation_set import EvaluationSet
from official_transformer.model_directory.checkpoint_writing import (
  write_bundle,
)
from official_transformer.model_directory.directory_lock import DirectoryLock
from official_transformer.text.subtokenizer import Subtokenizer
from official_transformer.text.tokenizer import load_tokenizer

pytestmark = pytest.mark.slow

ROOT = pathlib.Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "fidelity" / "fixtures"


def run(*command, status=0, stdin=""):
  """Runs a command; returns its standard output, or the error."""
  if status:
    return command_line.fail(*command, status=status)
  return succeed(*command, stdin=stdin).stdout


def lines(path):
  return pathlib.Path(path).read_text(encoding="utf-8").split("\n")


def test_training_leaves_a_complete_model_directory(demo_model):
  assert sorted(os.listdir(demo_model / "checkpoints")) == [
    "step-10",
    "step-20",
    "step-30",
  ]
  translations = set(os.listdir(demo_model / "translations"))
  assert {
    f"step-{n}.{kind}" for n in (10, 20, 30) for kind in ("txt", "scores.txt")
  } <= translations
  assert all(
    len(lines(demo_model / "translations" / f"step-{n}.txt")) == 21
    for n in (10, 20, 30)
  )
  with open(demo_model / "model.json", encoding="utf-8") as stream:
    description = json.load(stream)
  assert description["params"]["num_hidden_layers"] == 1
  assert (demo_model / description["vocabulary"]["file"]).exists()
  assert len(os.listdir(demo_model / "logs")) == 1


def test_predict_needs_the_model_directory_alone(
  demo_model, demo_text, tmp_path
):
  source = tmp_path / "in.txt"
  source.write_text("The dog sees the cat.\n\nA man.\n   \nNo end")
  out = tmp_path / "out.txt"
  run(
    MAIN,
    "--mode=predict",
    f"--model_dir={demo_model}",
    f"--file={source}",
    f"--file_out={out}",
  )
  written = lines(out)
  assert len(written) == 6
  assert written[1] == written[5] == ""
  assert written[3] == "   "
  piped = run(
    MAIN,
    "--mode=predict",
    f"--model_dir={demo_model}",
    "--file=-",
    stdin=source.read_text(),
  )
  assert piped.split("\n") == written


def test_a_translation_may_be_so_much_longer(copied):
  make_endless(str(copied))
  lengths = []
  for extra in (0, 60):
    found = run(
      *(MAIN, f"--model_dir={copied}", "--mode=predict", "--text=A man."),
      *(f"--extra_decode_length={extra}", "--output_format=jsonl"),
    )
    lengths.append(len(json.loads(found)["tokens"]))
  assert lengths[1] == lengths[0] + 60


def test_a_training_names_its_flags_and_what_it_measured_on(demo_model):
  described = json.loads((demo_model / "model.json").read_text())
  assert described["flags"] == {"dtype": "fp32", "sampling_alpha": None}
  measured = [
    json.loads(line) for line in lines(demo_model / "measurements.jsonl")[:-1]
  ]
  assert [line["step"] for line in measured] == [10, 20, 30]
  validation, evaluation = (
    {line["measured_on"][kind] for line in measured}
    for kind in ("validation", "evaluation")
  )
  (validated_on,), (evaluated_on,) = validation, evaluation
  assert re.fullmatch("64 batches of [0-9a-f]{16}", validated_on)
  assert re.fullmatch("13a of [0-9a-f]{16}", evaluated_on)


def test_decoding_flags_are_read(demo_model, demo_text):
  """Each changes what an evaluation reports."""
  command = (MAIN, f"--model_dir={demo_model}")
  test_set = (
    f"--bleu_source={demo_text}/test.en",
    f"--bleu_ref={demo_text}/test.de",
  )
  run(*command, "--mode=eval", *test_set, "--beam_size=1")
  override = "--params_override=beam_size=2,alpha=0"
  printed = run(*command, "--mode=eval", *test_set, override)
  assert printed.startswith("Step 30, beam 2, alpha 0\n")
  names = os.listdir(demo_model / "translations")
  assert "test.en-step-30-beam-1-alpha-0.6-extra-50.txt" in names
  assert "test.en-step-30-beam-2-alpha-0-extra-50.txt" in names


def test_scores_of_the_reference(demo_model, demo_text, tmp_path):
  """One line a pair: log-probability, tokens, normalised score."""
  command = (
    MAIN,
    "--mode=score",
    f"--model_dir={demo_model}",
    f"--file={demo_text}/test.en",
    f"--reference_file={demo_text}/test.de",
  )
  rows = [line.split("\t") for line in run(*command).split("\n")[:-1]]
  assert len(rows) == 20
  out = tmp_path / "scores.jsonl"
  run(*command, "--output_format=jsonl", f"--file_out={out}", "--alpha=0")
  for row, line in zip(rows, lines(out)[:-1], strict=True):
    found = json.loads(line)
    log_probability, tokens, normalized = map(float, row)
    assert found["tokens"] == tokens == len(found["token_log_probabilities"])
    total = sum(found["token_log_probabilities"])
    assert found["log_probability"] == pytest.approx(total)
    assert log_probability == pytest.approx(total, abs=1e-5)
    assert normalized == pytest.approx(
      total / ((5 + tokens) / 6) ** 0.6, abs=1e-5
    )
    # Without normalisation, the score is the log-probability.
    assert found["normalized_score"] == pytest.approx(total, abs=1e-5)


def test_what_a_flag_does_not_do_is_said_once(demo_model):
  done = succeed(
    MAIN,
    "--mode=predict",
    f"--model_dir={demo_model}",
    "--text=A man.",
    "--gcp_project=x",
    "--batch_size=7",
    "--output_format=jsonl",
  )
  assert done.stderr.count("--gcp_project has no effect") == 1
  assert (
    done.stderr.count("--batch_size has no effect with --mode=predict") == 1
  )
  found = json.loads(done.stdout)
  assert set(found) == {"translation", "score", "tokens", "flags"}


def test_padding_changes_no_translation(trained_model, demo_text):
  command = (
    MAIN,
    "--mode=predict",
    f"--model_dir={trained_model}",
    f"--file={demo_text}/test.en",
  )
  padded = run(*command, "--padded_decode", "--decode_max_length=40")
  assert padded == run(*command)


def test_training_on_ones_to_measure_the_model(demo_text, demo_data, tmp_path):
  done = succeed(
    MAIN,
    "--use_synthetic_data",
    f"--data_dir={demo_data}",
    f"--model_dir={tmp_path}",
    "--train_steps=4",
    "--log_steps=2",
    "--max_length=32",
    "--distribution_strategy=OFF",
    "--enable_checkpointing=false",
    "--datasets_num_private_threads=1",
    "--tf_gpu_thread_mode=gpu_private",
    *MODEL,
  )
  assert "step 4 of 4: loss" in done.stderr
  # 32 sentences of 32 tokens on both sides, four times.
  assert "4 steps, 8192 source and target tokens" in done.stderr
  assert not (tmp_path / "checkpoints").exists()


def test_ones_need_no_data_where_a_vocabulary_is_named(
  demo_text, demo_data, tmp_path
):
  """Those in --data_dir, which has a default, may be anybody's."""
  vocabulary = tmp_path / "vocab.other.subtokens"
  Subtokenizer.build([f"{demo_text}/test.en"], 150, 20).save(str(vocabulary))
  done = succeed(
    MAIN,
    "--use_synthetic_data",
    f"--vocab_file={vocabulary}",
    f"--data_dir={demo_data}",
    f"--model_dir={tmp_path}/model",
    "--train_steps=1",
    "--max_length=32",
    *MODEL,
  )
  assert "step 1 of 1: loss" in done.stderr


def test_home_is_not_a_directory_named_so(demo_text, monkeypatch, tmp_path):
  monkeypatch.setenv("HOME", str(tmp_path))
  monkeypatch.chdir(tmp_path)
  succeed(DEMO, "--output_dir=~/demo", "--train_size=9", "--dev_size=1")
  assert (tmp_path / "demo" / "train.en").exists()
  assert not (tmp_path / "~").exists()
  said = fail(MAIN, "--mode=predict", "--text=a", "--model_dir=~/no_model")
  assert f"{tmp_path}/no_model" in said


def test_eval_prints_the_scores_that_compute_bleu_prints(demo_model, demo_text):
  printed = run(
    MAIN,
    "--mode=eval",
    f"--model_dir={demo_model}",
    f"--bleu_source={demo_text}/test.en",
    f"--bleu_ref={demo_text}/test.de",
  ).split("\n")
  name = "test.en-step-30-beam-4-alpha-0.6-extra-50.txt"
  again = run(
    BLEU,
    f"--translation={demo_model}/translations/{name}",
    f"--reference={demo_text}/test.de",
  ).split("\n")
  assert printed[0] == "Step 30, beam 4, alpha 0.6"
  assert printed[1:6] == again[:5]
  assert printed[1].startswith("Case-insensitive results: ")
  assert "tok:13a" in printed[3]
  assert lines(demo_model / "translations" / name) == lines(
    demo_model / "translations" / "step-30.txt"
  )


def test_several_sets_are_evaluated_and_another_model_compared_with(
  copied, trained_model, demo_text
):
  def evaluate(*flags):
    return run(
      MAIN,
      "--mode=eval",
      f"--model_dir={copied}",
      f"--bleu_source={demo_text}/test.en,{demo_text}/dev.en",
      f"--bleu_ref={demo_text}/test.de,{demo_text}/dev.de",
      *("--metrics=bleu", "--resamples=50", "--test_trials=50"),
      *flags,
    )

  printed = evaluate(f"--compare_with={trained_model}", "--checkpoint=latest")
  assert printed.count(f"alpha 0.6 ({trained_model})\n") == 2
  assert printed.count("Step 30, beam 4, alpha 0.6") == 2
  assert printed.count("paired approximate randomisation") == 2
  assert f"\n{demo_text}/dev.en\n" in printed
  kept = json.loads((copied / "translations" / "scores.json").read_text())
  for name in ("test.en", "dev.en"):
    found = kept[f"{name}-step-30-beam-4-alpha-0.6-extra-50"]
    assert [len(s["metrics"]) for s in found["systems"]] == [1, 1]
    assert (
      found["comparisons"][0]["lines"] == {"test.en": 20, "dev.en": 40}[name]
    )
  # The same weights translate alike; and what was kept stays.
  printed = evaluate(
    f"--compare_with={copied}",
    "--compare_checkpoint=30",
    *("--beam_size=1", "--paired_test=ar,bs"),
  )
  assert printed.count("identical, line for line") == 2
  kept = json.loads((copied / "translations" / "scores.json").read_text())
  assert {
    f"{name}-step-30-beam-{n}-alpha-0.6-extra-50"
    for name in ("test.en", "dev.en")
    for n in (1, 4)
  } <= set(kept)


def test_sets_of_one_name_are_both_kept(copied, demo_text, tmp_path):
  for place, text in (("one", "test"), ("two", "dev")):
    (tmp_path / place).mkdir()
    for side in ("en", "de"):
      shutil.copy(demo_text / f"{text}.{side}", tmp_path / place / f"x.{side}")
  paths = [f"{tmp_path}/{place}/x" for place in ("one", "two")]
  run(
    *(MAIN, "--mode=eval", f"--model_dir={copied}", "--resamples=0"),
    "--bleu_source=" + ",".join(f"{p}.en" for p in paths),
    "--bleu_ref=" + ",".join(f"{p}.de" for p in paths),
  )
  kept = json.loads((copied / "translations" / "scores.json").read_text())
  for number, count in ((1, 20), (2, 40)):
    name = f"{number}-x.en-step-30-beam-4-alpha-0.6-extra-50"
    assert len(lines(copied / "translations" / f"{name}.txt")) == count + 1
    assert kept[name]["source"] == f"{paths[number - 1]}.en"


def test_no_evaluation_takes_the_place_of_another(copied, demo_text, tmp_path):
  """Of another engine, or of another folder's file of the same name."""
  pytest.importorskip("ctranslate2")

  def evaluate(folder, *flags):
    return run(
      *(MAIN, "--mode=eval", f"--model_dir={copied}", "--resamples=0"),
      *(f"--bleu_source={folder}/test.en", f"--bleu_ref={folder}/test.de"),
      *flags,
    )

  other = tmp_path / "other"
  other.mkdir()
  for side in ("en", "de"):
    shutil.copy(demo_text / f"dev.{side}", other / f"test.{side}")
  evaluate(demo_text)
  said = evaluate(demo_text, "--engine=ctranslate2", "--quantization=int8")
  assert said.startswith("Step 30, beam 4, alpha 0.6, ctranslate2, int8\n")
  evaluate(demo_text, "--nosplit_sentences", "--keep=x")
  for _ in range(2):  # Again, it takes its own place.
    evaluate(other)
  kept = json.loads((copied / "translations" / "scores.json").read_text())
  name = "test.en-step-30-beam-4-alpha-0.6-extra-50"
  sources = {n: k["source"] for n, k in kept.items() if n.startswith(name)}
  assert sources.pop(name) == f"{demo_text}/test.en"
  assert sources.pop(f"{name}-ctranslate2-int8") == f"{demo_text}/test.en"
  varied = f"{name}-nosplit_sentences-keep-8cdc1683"
  assert sources.pop(varied) == f"{demo_text}/test.en"
  assert kept[varied]["decoding"]["split_sentences"] is False
  assert list(sources.values()) == [f"{other}/test.en"]
  for key in sources:
    assert (copied / "translations" / f"{key}.txt").exists()


def test_translations_are_kept_if_scoring_fails(copied, demo_text, tmp_path):
  model = tmp_path / "model.ckpt"
  model.write_text("")
  complaint = run(
    *(MAIN, "--mode=eval", f"--model_dir={copied}", "--beam_size=2"),
    *(f"--bleu_source={demo_text}/test.en", f"--bleu_ref={demo_text}/test.de"),
    *(f"--comet_model={model}", "--comet_command=false"),
    status=1,
  )
  assert "false has failed" in complaint
  name = "test.en-step-30-beam-2-alpha-0.6-extra-50.txt"
  assert len(lines(copied / "translations" / name)) == 21


def test_a_page_without_a_single_reference_is_a_page(tmp_path):
  (tmp_path / "one").write_text("x\n")
  (tmp_path / "blank").write_text("\n")
  page = run(
    *(REPORT, f"--source={tmp_path}/one", f"--reference={tmp_path}/blank"),
    *(f"--translation={tmp_path}/one", "--output=-"),
  )
  assert page.startswith("<!doctype html>")
  assert '"name":"0","lines":1' in page


def test_translations_are_compared_with_the_first(demo_text, tmp_path):
  worse = tmp_path / "worse.de"
  reference = lines(demo_text / "dev.de")
  worse.write_text("".join(f"{line[:9]}\n" for line in reference[:-1]))
  scores = tmp_path / "scores.tsv"
  command = (
    BLEU,
    f"--translation={demo_text}/dev.de",
    f"--translation={worse}",
    f"--reference={demo_text}/dev.de,{worse}",
    *("--test_trials=99", "--resamples=50"),
  )
  printed = run(*command, f"--sentence_scores={scores}")
  assert f"{worse} beside {demo_text}/dev.de: paired" in printed
  assert "nrefs:2" in printed
  assert len(lines(scores)) == 1 + len(reference)  # One is the heading.
  told = json.loads(run(*command, "--output_format=json", "--paired_test=bs"))
  assert [c["test"] for c in told["comparisons"]] == ["bs"]
  assert run(*command, "--output_format=latex").startswith("\\begin{tabular}")


@pytest.mark.parametrize("given", [False, True])
def test_attention_is_written_for_each_line(
  given, trained_model, demo_text, tmp_path
):
  source, target = tmp_path / "source", tmp_path / "target"
  source.write_text("A dog runs.\n\nThe man buys a car.\n")
  target.write_text("Ein Hund läuft.\n\nDer Mann kauft ein Auto.\n")
  flags = [f"--reference_file={target}"] if given else []
  out = tmp_path / "attention"
  run(
    MAIN,
    *("--mode=attention", f"--model_dir={trained_model}"),
    *(f"--file={source}", f"--output_dir={out}", *flags),
    *(["--picture_formats=png"] if given else []),
  )
  formats = ["png"] if given else ["png", "svg"]
  parts = [
    f"{part}.{shown}.{kind}"
    for part in ("encoder", "decoder", "cross")
    for shown in ("heads", "mean")
    for kind in formats
  ]
  expected = {f"{n}.{p}" for n in ("000001", "000003") for p in [*parts, "npz"]}
  assert {path.name for path in out.iterdir()} == expected
  with np.load(out / "000003.npz") as arrays:
    found = dict(arrays)
  assert "".join(found["source"]) == "The_man_buys_a_car_._</s>"
  if given:
    assert "".join(found["target"]).startswith("Der_Mann_")
  length, size = len(found["target"]), len(found["source"])
  assert found["cross"].shape[2:] == (length, size)
  assert found["decoder"].shape[2:] == (length, length)
  for name in ("encoder", "decoder", "cross"):
    np.testing.assert_allclose(found[name].sum(-1), 1, rtol=0, atol=1e-6)


def test_a_search_is_told_step_by_step(trained_model, tmp_path):
  source = tmp_path / "source"
  source.write_text("A dog runs.\n\nThe man buys a car.\n")
  command = (
    MAIN,
    *("--mode=predict", f"--model_dir={trained_model}", f"--file={source}"),
  )
  out = tmp_path / "traces"
  translated = run(*command)
  assert run(*command, f"--trace_dir={out}") == translated
  kinds = ("json", "png", "svg")
  expected = {f"{n}.{k}" for n in ("000001", "000003") for k in kinds}
  assert {path.name for path in out.iterdir()} == expected
  trace = json.loads((out / "000003.json").read_text("utf-8"))
  assert trace["found"][0]["text"] == translated.split("\n")[2]
  fates = {c["fate"] for step in trace["steps"] for c in step}
  assert fates == {"kept", "finished", "pruned"}
  alone = tmp_path / "alone"
  line = "--text=A dog runs."
  run(*command[:3], line, f"--trace_dir={alone}", "--picture_formats=")
  assert [path.name for path in alone.iterdir()] == ["000001.json"]


def test_tensorboard_shows_the_attention_of_samples(
  demo_text, demo_data, tmp_path
):
  accumulator = pytest.importorskip(
    "tensorboard.backend.event_processing.event_accumulator"
  )
  run(
    MAIN,
    *("--mode=train", f"--data_dir={demo_data}", f"--model_dir={tmp_path}"),
    *(f"--bleu_source={demo_text}/test.en", f"--bleu_ref={demo_text}/test.de"),
    *("--train_steps=2", "--steps_between_evals=2", "--seed=1", *MODEL),
    *("--enable_tensorboard", "--tensorboard_histograms"),
  )
  found = accumulator.EventAccumulator(str(tmp_path / "logs"))
  found.Reload()
  tags = set(found.Tags()["tensors"])
  assert {f"attention/{n}" for n in range(4)} <= tags
  assert {"translations", "evaluation/sacrebleu_BLEU"} <= tags
  assert "weights/transformer/embedding/weights" in tags
  assert "_hparams_/session_start_info" in found.summary_metadata


def test_runs_and_models_are_drawn(demo_model, trained_model, tmp_path):
  out = tmp_path / "plots"
  printed = run(
    MAIN,
    *("--mode=plot", f"--model_dir={demo_model}", f"--output_dir={out}"),
    *("--plots=run,schedule,positions,neighbours", "--words=dog,Hund"),
  )
  assert re.match(r"dog( \(.*\))?: ", printed)
  names = ("run", "schedule", "positions", "neighbours")
  assert {path.name for path in out.iterdir()} == {
    f"{name}.{kind}" for name in names for kind in ("png", "svg")
  }
  svg = (out / "run.svg").read_text("utf-8")
  for title in ("loss, nats", "BLEU", "learning rate", "tokens a second"):
    assert title in svg
  # Before anything is trained.
  run(
    MAIN,
    *("--mode=plot", "--plots=schedule", "--param_set=base"),
    *("--model_dir=/nowhere", f"--output_dir={tmp_path}/new"),
    *("--picture_formats=svg", "--train_steps=50000"),
  )
  svg = (tmp_path / "new" / "schedule.svg").read_text("utf-8")
  assert "warm-up ends, 16,000" in svg
  several = (
    *("--mode=plot", "--plots=schedule", f"--output_dir={tmp_path}/new"),
    "--picture_formats=svg",
  )
  run(MAIN, *several, "--schedules=512:4000,256:4000")
  svg = (tmp_path / "new" / "schedule.svg").read_text("utf-8")
  assert "512:4000" in svg and "256:4000" in svg and "warm-up ends" not in svg
  said = run(MAIN, *several, "--schedules=512", status=2)
  assert "is not hidden size:warm-up steps" in said
  complaint = run(
    MAIN,
    *("--mode=plot", f"--model_dir={trained_model}", f"--output_dir={out}"),
    status=2,
  )
  assert "no measurements of a run to draw" in complaint


def test_alignments_are_written_with_translations(trained_model, tmp_path):
  source = tmp_path / "source"
  source.write_text("The man buys a car.\n\n")
  command = (
    MAIN,
    *("--mode=predict", f"--model_dir={trained_model}", f"--file={source}"),
  )
  plain = run(*command).split("\n")
  aligned = run(*command, "--alignments").split("\n")
  assert [line.split(" ||| ")[0] for line in aligned] == plain
  assert aligned[1] == " ||| "
  assert re.fullmatch(r"(\d+-\d+ ?)+", aligned[0].split(" ||| ")[1])
  told = run(*command, "--alignments", "--output_format=jsonl", "--n_best=2")
  fields = json.loads(told.split("\n")[0])
  assert fields["source_words"] == "The man buys a car.".split()
  assert all("alignment" in h for h in fields["hypotheses"])


@pytest.mark.parametrize(
  ("flags", "complaint"),
  [
    (["--mode=predict", "--alpha=nan"], "must be a finite number"),
    (["--mode=train", "--average_decay=nan"], "must be a finite number"),
    (["--mode=predict", "--alpha=1e308"], "in the range"),
    (["--mode=predict", "--nothing"], "Unknown command line flag 'nothing'"),
    (["--mode=pray"], "should be one of"),
    (["--mode=predict", "--beam_size=0"], "beam_size"),
    (["--flagfile={tmp}/latin1"], "utf-8"),
    (["--flagfile=/nowhere"], "/nowhere"),
  ],
)
def test_mistyped_flags_exit_as_other_mistakes(flags, complaint, tmp_path):
  (tmp_path / "latin1").write_bytes("--text=schön".encode("latin1"))
  given = [flag.format(tmp=tmp_path) for flag in flags]
  assert complaint in run(MAIN, *given, status=2)


@pytest.mark.parametrize(
  ("flags", "complaint"),
  [
    (["--reference=,"], "names no file"),
    (["--metrics="], "no metric is named"),
    (["--sentence_scores={demo_text}/test.de"], "would overwrite"),
    (["--sentence_scores=-", "--output_format=json"], "already"),
    (["--tokenize=en"], "there are: auto, none, zh, 13a"),
    (["--tokenize=ja-mecab"], "pip install sacrebleu[ja]"),
    (["--metrics=bleu,meteor"], "no metric meteor"),
    (["--resamples=5"], "too few"),
    (["--paired_test=t"], "give ar or bs"),
    (["--translation=/nowhere"], "no file /nowhere"),
    (["--translation=-", "--reference=-"], "only one file may be -"),
    (["--reference={demo_text}/dev.de"], "20 lines and"),
    (["--sentence_scores=/nowhere/x"], "/nowhere does not exist"),
    (["--comet_model=/nowhere.ckpt"], "no file /nowhere.ckpt"),
    (["--comet_model={demo_text}/dev.de"], "the .ckpt file"),
    (["--translation={tmp}/json"], "json is lines of JSON, which would be"),
  ],
)
def test_mistakes_of_scoring_cost_one_clear_message(
  flags, complaint, demo_text, tmp_path
):
  lines = (demo_text / "test.de").read_text("utf-8").splitlines()
  (tmp_path / "json").write_text(
    "".join(json.dumps({"translation": line}) + "\n" for line in lines)
  )
  given = [flag.format(demo_text=demo_text, tmp=tmp_path) for flag in flags]
  translation = f"--translation={demo_text}/test.de"
  defaults = [f"--reference={demo_text}/test.de"]
  assert complaint in run(BLEU, translation, *defaults, *given, status=2)


def test_a_report_is_one_file(trained_model, demo_text, tmp_path):
  out = tmp_path / "report.html"
  told = run(
    MAIN,
    *("--mode=predict", f"--model_dir={trained_model}"),
    *(f"--file={demo_text}/test.en", "--output_format=jsonl"),
  )
  (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(told.encode()))
  command = (
    REPORT,
    f"--source={demo_text}/test.en",
    f"--reference={demo_text}/test.de",
    f"--translation={tmp_path}/a.jsonl.gz",
    f"--output={out}",
  )
  run(*command, f"--frequency_text={demo_text}/train.de")
  page = out.read_text(encoding="utf-8")
  assert "rarest word is in train.de" in page
  assert 'translation\\"' not in page  # The text of the objects is scored.
  assert page.count("<script") == 2
  run(*command, f"--model_dir={trained_model}", "--attention_count=2")
  assert len(re.findall(r'"layers":', out.read_text("utf-8"))) == 2


def test_a_report_with_attention_has_no_log_of_tensorflow(
  trained_model, demo_text, tmp_path
):
  """A process of its own: whoever has imported it first decides."""
  done = subprocess.run(
    [
      *(sys.executable, "-m", REPORT, f"--model_dir={trained_model}"),
      *(f"--source={demo_text}/test.en", f"--reference={demo_text}/test.de"),
      *(f"--translation={demo_text}/test.de", "--attention_lines=1"),
      *("--resamples=0", f"--output={tmp_path}/report.html"),
    ],
    env={k: v for k, v in os.environ.items() if k != "TF_CPP_MIN_LOG_LEVEL"},
    capture_output=True,
    text=True,
    check=True,
  )
  assert "tensorflow" not in done.stderr.lower()


@pytest.mark.parametrize(
  ("flags", "complaint"),
  [
    (["--attention_lines=\u00b2", "--model_dir=x"], "is no line of"),
    (["--output={demo_text}/test.de"], "would overwrite"),
    (["--translation=/nowhere"], "no file /nowhere"),
    (["--translation={demo_text}/test.de"] * 2, "given 3 times"),
    (["--output=/nowhere/x.html"], "/nowhere does not exist"),
    (["--reference={demo_text}/dev.de"], "20 lines and"),
    (["--model_dir=/nowhere", "--attention_lines=21"], "'21' is no line of"),
    (["--model_dir=/nowhere"], "no model directory"),
    (["--frequency_text=/nowhere"], "no file /nowhere"),
    (["--translation={made}/bad.jsonl"], "bad.jsonl, line 1, is no JSON"),
    (["--translation={made}/half.jsonl"], "half.jsonl, line 1, is no JSON"),
  ],
)
def test_mistakes_of_a_report_cost_one_clear_message(
  flags, complaint, demo_text, tmp_path
):
  (tmp_path / "bad.jsonl").write_text("text\n" * 20)
  half = '{"translation": "\\ud800", "flags": []}\n'
  (tmp_path / "half.jsonl").write_text(half * 20)
  given = [flag.format(demo_text=demo_text, made=tmp_path) for flag in flags]
  defaults = (
    f"--source={demo_text}/test.en",
    f"--reference={demo_text}/test.de",
    f"--translation={demo_text}/test.de",
    f"--output={tmp_path}/x.html",
  )
  assert complaint in run(REPORT, *defaults, *given, status=2)
  assert not (tmp_path / "x.html").exists()


def test_bleu_variants(demo_text):
  command = (
    BLEU,
    f"--translation={demo_text}/test.de",
    f"--reference={demo_text}/test.de",
  )
  assert "Case-insensitive results: 100.000000" in run(*command)
  cased = run(*command, "--bleu_variant=CASED")
  assert "Case-sensitive" in cased
  assert "Case-insensitive" not in cased


@pytest.mark.parametrize(
  ("flags", "complaint"),
  [
    (["--mode=predict"], "either --text or --file"),
    (["--mode=predict", "--text=a", "--file=b"], "either --text or --file"),
    (["--mode=predict", "--file=/nowhere"], "no file /nowhere"),
    (["--mode=predict", "--interactive", "--text=a"], "--interactive answers"),
    (["--mode=predict", "--text=a", "--file_out=/nowhere/out"],
     "directory /nowhere does not exist"),
    (["--mode=predict", "--text=a\nb"], "one line"),
    (["--mode=predict", "--text=a", "--file_out=/"], "is a directory"),
    (["--mode=predict", "--text=a", "--model_dir=/nowhere"],
     "no model directory"),
    (["--mode=predict", "--text=a", "--param_set=base"],
     "hidden_size: 512 given, 32 stored"),
    (["--mode=predict", "--text=a", "--vocab_file={demo_text}/test.de"],
     "neither a SentencePiece model nor"),
    (["--mode=eval"], "--bleu_source"),
    (["--mode=eval", "--bleu_source=a,b", "--bleu_ref=c"],
     "names 2 files and --bleu_ref 1"),
    (["--mode=eval", "--bleu_source={demo_text}/test.en",
      "--bleu_ref={demo_text}/test.de", "--bleu_tokenize=xx"],
     "--bleu_tokenize=xx: there is none"),
    (["--mode=eval", "--bleu_source={demo_text}/test.en",
      "--bleu_ref={demo_text}/test.de", "--compare_with=/nowhere"],
     "/nowhere is no model directory"),
    (["--mode=attention", "--file=x"], "needs --file, the sources, and"),
    (["--mode=attention", "--file={demo_text}/test.en",
      "--output_dir={demo_text}/test.de"], "test.de is a file"),
    (["--mode=attention", "--file={demo_text}/test.en", "--output_dir={new}/a",
      "--picture_formats=gif"], "'gif'; there are: png, svg"),
    (["--mode=predict", "--text=a", "--trace_dir={new}/t",
      "--engine=ctranslate2"], "watches TensorFlow's search"),
    (["--mode=plot"], "needs --output_dir"),
    (["--mode=plot", "--output_dir={new}/p", "--plots=runs"],
     "give some of run, schedule"),
    (["--mode=plot", "--output_dir={new}/p", "--plots=neighbours"],
     "needs --words"),
    (["--mode=plot", "--output_dir={new}/p", "--model_dir=/nowhere"],
     "/nowhere is no model directory"),
    (["--mode=predict", "--text=a", "--alignments", "--alignment_layer=1"],
     "no layer 1: the model has 1"),
    (["--mode=score", "--file=x"], "--reference_file"),
    (["--mode=score", "--file=-", "--reference_file=-"], "only one"),
    (["--mode=score", "--file={demo_text}/test.en",
      "--reference_file={demo_text}/dev.de"], "test.en ends after line 20"),
    (["--mode=predict", "--text=a", "--num_gpus=63"], "TensorFlow sees"),
    (["--mode=train", "--train_steps=9", "--train_epochs=2"], "not both"),
    (["--mode=train", "--stop_threshold=20"], "--bleu_source and --bleu_ref"),
    (["--mode=train", "--distribution_strategy=tpu", "--tpu=nowhere"],
     "no TPU answers at --tpu=nowhere"),
    (["--mode=train", "--distribution_strategy=multi_worker_mirrored"],
     "TF_CONFIG is not set"),
    (["--mode=train", "--profile_steps=7,x"], "such as 10,12"),
    (["--mode=train", "--accumulate_steps=2", "--target_batch_tokens=99"],
     "--accumulate_steps or --target_batch_tokens"),
    (["--mode=train", "--distribution_strategy=parameter_server"],
     "Use mirrored"),
    (["--mode=train", "--clean", "--model_dir={demo_text}"],
     "nothing was deleted"),
    (["--mode=train", "--data_dir={demo_data}", "--static_batch"],
     "--static_batch=True given, False stored"),
    (["--mode=eval", "--bleu_source={demo_text}/test.en",
      "--bleu_ref={demo_text}/dev.de"], "has 20 lines and"),
    (["--mode=train", "--data_dir=/nowhere", "--model_dir=/tmp/never_made"],
     "with: prepare_data"),
    (["--mode=train", "--data_dir={demo_data}", "--seed=2"],
     "whose run has seed 1"),
    (["--mode=train", "--data_dir={demo_data}", "--params_override=depth=3"],
     "no field 'depth'"),
    (["--mode=train", "--data_dir={demo_data}", "--batch_size=100"],
     "--batch_size=100 given, 1024 stored"),
    (["--mode=train", "--data_dir={demo_data}", "--model_dir={new}/new",
      "--batch_size=100"], "cannot hold one sentence"),
    (["--mode=train", "--data_dir={demo_data}", "--model_dir={new}/new",
      "--max_length=2"], "--max_length=2 tokens; raise it"),
    (["--mode=train", "--data_dir={demo_data}", "--early_stopping_patience=2",
      "--validation_steps=0"], "looks at the validation loss"),
    (["--mode=train", "--data_dir={demo_data}", "--early_stopping_patience=2",
      "--early_stopping_measure=bleu"], "needs --bleu_source"),
    (["--mode=average", "--average_last=4"],
      "has 3 checkpoints that count, of the steps"),
    (["--mode=average", "--average_checkpoints=10,15"],
     "no checkpoint of step 15; "),
    (["--mode=average", "--average_checkpoints=10,10"], "a step twice"),
    (["--mode=average", "--model_dir=/nowhere"], "no model directory"),
    (["train"], "unexpected arguments: train"),
  ],
)  # fmt: skip
def test_mistakes_cost_one_clear_message(
  demo_model, demo_text, demo_data, flags, complaint, tmp_path
):
  flags = [
    f.format(demo_text=demo_text, demo_data=demo_data, new=tmp_path)
    for f in flags
  ]
  error = run(MAIN, f"--model_dir={demo_model}", *flags, status=2)
  assert complaint in error


def test_an_untrained_model_is_not_decoded(demo_model, tmp_path):
  (tmp_path / "model.json").write_bytes(
    (demo_model / "model.json").read_bytes()
  )
  error = run(
    MAIN, "--mode=predict", f"--model_dir={tmp_path}", "--text=a", status=2
  )
  assert "no checkpoint" in error


def test_line_counts_that_differ_are_refused(demo_text):
  error = run(
    BLEU,
    f"--translation={demo_text}/test.de",
    f"--reference={demo_text}/dev.de",
    status=2,
  )
  assert "has 20 lines and" in error
  assert "dev.de 40" in error


@pytest.fixture
def copied(demo_model, tmp_path):
  """A copy of the trained model, to do things to."""
  return shutil.copytree(demo_model, tmp_path / "copied")


@pytest.mark.parametrize(
  "mistake",
  ["--params_override=hiden_size=3", "--data_dir=/nowhere", "--batch_size=10"],
)
def test_a_mistake_beside_clean_costs_no_model(copied, demo_data, mistake):
  flags = [
    f"--data_dir={demo_data}",
    "--clean",
    f"--model_dir={copied}",
    mistake,
  ]
  run(MAIN, "--mode=train", *flags, status=2)
  assert len(os.listdir(copied / "checkpoints")) == 3
  assert (copied / "model.json").exists()


def test_an_edited_description_is_one_clear_error(copied, demo_data):
  description = json.loads((copied / "model.json").read_text("utf-8"))
  description["batching"]["colour"] = "blue"
  (copied / "model.json").write_text(json.dumps(description), "utf-8")
  command = (MAIN, f"--data_dir={demo_data}", f"--model_dir={copied}")
  assert "is damaged" in run(*command, "--train_steps=40", status=2)


def test_ones_are_never_gone_on_with(copied, demo_data):
  command = (MAIN, f"--data_dir={demo_data}", f"--model_dir={copied}")
  run(*command, "--use_synthetic_data", "--train_steps=33")
  assert not (copied / "checkpoints" / "step-33").exists()


def test_a_checkpoint_of_upstream_is_imported_used_and_trained(
  demo_text, demo_data, tmp_path
):
  """The whole way of an old model; the numbers are `tests/fidelity`'s."""
  with np.load(FIXTURES / "legacy_model.npz") as arrays:
    tensors = {
      name.removeprefix("weights/"): arrays[name]
      for name in arrays.files
      if name.startswith("weights/")
    }
  (vocabulary,) = demo_data.glob("vocab.*")
  size = load_tokenizer(str(vocabulary)).vocab_size
  (table,) = (name for name in tensors if "embedding" in name)
  tensors[table] = np.resize(tensors[table], [size + 5, 16])
  prefix = str(tmp_path / "old" / "cp.ckpt")
  (tmp_path / "old").mkdir()
  write_bundle(prefix, tensors)
  imported = f"--model_dir={tmp_path}/imported"
  said = run(
    IMPORT,
    "--format=v2",
    f"--checkpoint={tmp_path}/old/cp.ckpt",
    f"--vocab_file={vocabulary}",
    imported,
    "--start_symbol=zero",
  )
  assert "4 heads, start symbol zero" in said
  assert "(5 more rows in the table, never shown)" in said
  assert run(MAIN, "--mode=predict", imported, "--text=A man.").count("\n") == 1
  command = (
    MAIN,
    "--mode=score",
    imported,
    f"--file={demo_text}/test.en",
    f"--reference_file={demo_text}/test.de",
  )
  before = run(*command)
  assert before.count("\n") == 20
  run(
    MAIN,
    "--mode=train",
    imported,
    f"--data_dir={demo_data}",
    "--train_steps=4",
    "--params_override=learning_rate_warmup_steps=2",
    "--use_ctl",
  )
  assert run(*command) != before
  run(
    MAIN, "--mode=train", imported, f"--data_dir={demo_data}", "--train_steps=6"
  )
  steps = os.listdir(tmp_path / "imported" / "checkpoints")
  assert sorted(steps) == ["step-0", "step-4", "step-6"]


HOSTILE = [
  b"A man.",
  b"",
  b"   ",
  b"A man.\r",
  b"A\0man.",
  "A man.\u2028A\u0085woman.".encode(),
  "\u05d0\u05d9\u05e9 \U0001f600 \u0627\u0644".encode(),
  b"A man works. " * 1200,
  b"\xef\xbb\xbf",
  b"\x85\xff",
  b"A man.",  # The last line has no line feed.
]


def test_hostile_text_gives_line_for_line(demo_model, tmp_path):
  source, out = tmp_path / "hostile", tmp_path / "out"
  source.write_bytes(b"\xef\xbb\xbf" + b"\n".join(HOSTILE))
  command = (
    *(MAIN, "--mode=predict", f"--model_dir={demo_model}", f"--file={source}"),
    *("--extra_decode_length=2", f"--file_out={out}"),
  )
  error = run(*command, status=2)
  assert "hostile, line 10: not UTF-8" in error and "--invalid_utf8" in error
  assert not out.exists()
  done = succeed(*command, "--invalid_utf8=replace", "--output_format=jsonl")
  assert "hostile, line 10: not UTF-8; replaced" in done.stderr
  assert re.search(r"2 lines were .* than \d+ tokens\n", done.stderr)
  found = [json.loads(line) for line in lines(out)[:-1]]
  assert len(found) == len(HOSTILE)
  assert all("\n" not in f["translation"] for f in found)
  blank = [n for n, f in enumerate(found) if "blank" in f["flags"]]
  # The tokenizer drops a lone byte order mark, and what replaced the bytes.
  assert blank == [1, 2, 8, 9]
  assert [n for n, f in enumerate(found) if "split" in f["flags"]] == [5, 7]
  # The mark at the start and the carriage return belong to no sentence.
  assert found[0]["tokens"] == found[3]["tokens"] == found[10]["tokens"]


def test_nothing_in_nothing_out(demo_model, tmp_path):
  (tmp_path / "empty").write_bytes(b"")
  out = tmp_path / "out"
  run(
    *(MAIN, "--mode=predict", f"--model_dir={demo_model}"),
    *(f"--file={tmp_path}/empty", f"--file_out={out}"),
  )
  assert out.read_bytes() == b""


def test_n_best(demo_model, demo_text):
  command = (
    MAIN,
    "--mode=predict",
    f"--model_dir={demo_model}",
    "--beam_size=3",
  )
  best = run(*command, "--text=A man works.")
  several = run(*command, "--text=A man works.", "--n_best=3").split("\n")
  assert len(several) == 4 and several[0] + "\n" == best
  (line,) = run(
    *command, "--text=A man works.", "--n_best=3", "--output_format=jsonl"
  ).splitlines()
  found = [h["translation"] for h in json.loads(line)["hypotheses"]]
  assert several[:3] == (found + [""] * 3)[:3]
  error = run(*command, "--text=A man.", "--n_best=4", status=2)
  assert "n_best is 4, but a beam of 3" in error


def test_a_model_starts_from_anothers_weights(
  demo_model, demo_text, demo_data, tmp_path
):
  command = (
    *(
      MAIN,
      "--mode=train",
      f"--data_dir={demo_data}",
      f"--model_dir={tmp_path}/m",
    ),
    f"--init_checkpoint={demo_model}",
  )
  error = run(*command, "--params_override=hidden_size=64", status=2)
  assert "hidden_size: 64 given, 32 stored" in error
  assert not (tmp_path / "m").exists()
  # The rate is 0 in the first step: its weights are still the other's.
  tuned = (*command, "--params_override=learning_rate=0.5", "--seed=5")
  run(*tuned, "--train_steps=1")
  ours, theirs = (
    tf.train.load_checkpoint(str(directory / "checkpoints" / name / "model"))
    for directory, name in ((tmp_path / "m", "step-1"), (demo_model, "step-30"))
  )
  names = [n for n in theirs.get_variable_to_shape_map() if "weights/" in n]
  assert len(names) > 20
  for name in names:
    np.testing.assert_array_equal(
      ours.get_tensor(name), theirs.get_tensor(name)
    )
  assert ours.get_tensor("optimizer/adam/iteration") == 1
  # The same command goes on, and no other weights are taken for these.
  done = succeed(*tuned, "--train_steps=2")
  assert "resuming after step 1" in done.stderr
  error = run(
    *tuned, f"--init_checkpoint={demo_model}/checkpoints/step-10", status=2
  )
  assert f"{tmp_path}/m started from {demo_model}; name another" in error


def test_the_best_and_any_kept_checkpoint_can_be_used(demo_model, demo_text):
  (best,) = (demo_model / "best").iterdir()
  step = best.name.removeprefix("step-")
  command = (
    MAIN,
    "--mode=predict",
    f"--model_dir={demo_model}",
    "--text=A man.",
  )
  by_name = run(*command, "--checkpoint=best")
  assert by_name == run(*command, f"--checkpoint={step}")
  error = run(*command, "--checkpoint=25", status=2)
  assert "has latest, best and the steps 10, 20, 30" in error
  printed = run(
    *(MAIN, "--mode=eval", f"--model_dir={demo_model}", "--checkpoint=10"),
    *(f"--bleu_source={demo_text}/test.en", f"--bleu_ref={demo_text}/test.de"),
  )
  assert printed.startswith("Step 10, ")


def test_the_mean_of_checkpoints_is_one_more(copied, demo_text, tmp_path):
  command = (MAIN, f"--model_dir={copied}")
  translate = (*command, "--mode=predict", f"--file={demo_text}/test.en")
  average = (*translate, "--checkpoint=average")
  error = run(*average, status=2)
  assert "make it with --mode=average" in error
  # The mean of one checkpoint is that checkpoint.
  run(*command, "--mode=average", "--average_checkpoints=20")
  assert os.listdir(copied / "average") == ["step-20"]
  assert run(*average) == run(*translate, "--checkpoint=20")
  run(*command, "--mode=average", "--average_last=2")
  assert os.listdir(copied / "average") == ["step-30"]
  made, *parts = (
    tf.train.load_checkpoint(str(copied / name / "model"))
    for name in (
      "average/step-30",
      "checkpoints/step-20",
      "checkpoints/step-30",
    )
  )
  names = made.get_variable_to_shape_map()
  marks = {"step", "averaged_steps"}
  assert {n.split("/")[0] for n in names} == {"weights", *marks}
  for name in names.keys() - marks:
    one, other = (part.get_tensor(name) for part in parts)
    np.testing.assert_allclose(made.get_tensor(name), (one + other) / 2, 1e-6)
  printed = run(
    *(*command, "--mode=eval", "--checkpoint=average"),
    *(f"--bleu_source={demo_text}/test.en", f"--bleu_ref={demo_text}/test.de"),
  )
  assert printed.startswith("Average of steps 20, 30, beam 4")
  assert "test.en-average-of-2-step-30-" in printed
  scores = run(
    *(*command, "--mode=score", "--checkpoint=average"),
    *(f"--file={demo_text}/test.en", f"--reference_file={demo_text}/test.de"),
  )
  assert len(scores.splitlines()) == 20


def test_an_average_in_half_the_space_is_a_model_by_itself(
  copied, demo_data, demo_text, tmp_path
):
  run(MAIN, f"--model_dir={copied}", "--mode=average", "--average_last=2")
  whole = sum(f.stat().st_size for f in copied.glob("average/*/*"))
  text = f"--file={demo_text}/test.en"
  predict = (MAIN, "--mode=predict", text)
  reference = f"--reference_file={demo_text}/test.de"
  score = (MAIN, "--mode=score", text, reference, f"--model_dir={copied}")

  def scores():
    said = run(*score, "--checkpoint=average").splitlines()
    return np.array([line.split("\t") for line in said], np.float64)

  expected = scores()
  average = (MAIN, "--mode=average", "--average_last=2", "--storage=fp16")
  run(*average, f"--model_dir={copied}")
  assert sum(f.stat().st_size for f in copied.glob("average/*/*")) < 0.6 * whole
  shutil.rmtree(copied / "checkpoints")
  shutil.rmtree(copied / "best", ignore_errors=True)
  found = run(*predict, f"--model_dir={copied}")
  assert len(found.splitlines()) == 20
  np.testing.assert_allclose(scores(), expected, rtol=1e-2)
  train = (MAIN, "--mode=train", f"--data_dir={demo_data}", "--train_steps=2")
  error = run(*train, f"--model_dir={copied}", status=2)
  assert "start from it with --init_checkpoint" in error
  new = f"--model_dir={tmp_path}/new"
  run(*train, new, f"--init_checkpoint={copied}")
  assert run(*predict, new, "--checkpoint=0") == found


def test_two_runs_on_one_directory_are_refused(copied, demo_data):
  with DirectoryLock(str(copied)) as lock:
    lock.acquire()
    error = run(
      *(
        MAIN,
        "--mode=train",
        f"--data_dir={demo_data}",
        f"--model_dir={copied}",
      ),
      "--train_steps=40",
      status=2,
    )
  assert f"is being trained by process {os.getpid()} on " in error


def test_other_data_are_refused_with_both_values(
  copied, demo_text, demo_data, tmp_path
):
  (vocabulary,) = demo_data.glob("vocab.*")
  run(
    *(PREPARE, f"--data_dir={tmp_path}/other"),
    *(
      f"--train_source={demo_text}/dev.en",
      f"--train_target={demo_text}/dev.de",
    ),
    f"--vocab_file={vocabulary}",
  )
  error = run(
    *(MAIN, "--mode=train", f"--model_dir={copied}"),
    *(f"--data_dir={tmp_path}/other", "--train_steps=40"),
    status=2,
  )
  assert re.search(r"holds 4\d pairs of \d+ and \d+ tokens in", error), error
  assert re.search(r"trained on [56]\d\d pairs of \d+ and \d+ tokens", error)


def test_bleu_in_training_cuts_lines_at_the_length_that_is_usual(
  demo_text, demo_data, tmp_path, monkeypatch
):
  """Whoever resumes without the flag scores as before."""
  lengths = []

  def seen(self, translator, settings):
    lengths.append(translator.longest_piece)
    raise OSError("seen")  # The training goes on.

  monkeypatch.setattr(EvaluationSet, "evaluate", seen)
  common = (
    *(MAIN, "--mode=train", f"--data_dir={demo_data}"),
    *(f"--model_dir={tmp_path}/model", "--steps_between_evals=2"),
    *(f"--bleu_source={demo_text}/test.en", f"--bleu_ref={demo_text}/test.de"),
  )
  run(*common, "--train_steps=2", "--max_length=40", *MODEL)
  run(*common, "--train_steps=4")
  described = json.loads((tmp_path / "model" / "model.json").read_text())
  usual = max(described["lines"]["usual_length"], 20)
  assert lengths == [usual, usual]


def test_scores_that_cannot_be_kept_are_shown(
  demo_model, demo_text, monkeypatch
):
  def full(path, lines):
    raise OSError(f"No space left on device: {path}")

  monkeypatch.setattr(evaluation_set, "write_lines", full)
  done = command_line.run(
    *(MAIN, "--mode=eval", f"--model_dir={demo_model}", "--beam_size=1"),
    *(f"--bleu_source={demo_text}/test.en", f"--bleu_ref={demo_text}/test.de"),
  )
  assert done.status == 1
  assert "No space left on device" in done.stderr
  assert "Case-insensitive results: " in done.stdout
  assert "sacreBLEU BLEU|" in done.stdout


@pytest.mark.parametrize("link", [False, True])
def test_an_input_is_not_overwritten_by_a_half_made_output(
  demo_model, tmp_path, link
):
  source = tmp_path / "x.incomplete"
  if link:
    (tmp_path / "mine").write_text("A man.\n")
    os.link(tmp_path / "mine", source)
  else:
    source.write_text("A man.\n")
  name = tmp_path / "mine" if link else source
  error = run(
    *(MAIN, "--mode=predict", f"--model_dir={demo_model}", f"--file={name}"),
    f"--file_out={tmp_path}/x",
    status=2,
  )
  assert f"would overwrite {name}" in error
  assert source.read_text() == "A man.\n"


def test_a_vocabulary_of_another_encoding_is_named(demo_model, tmp_path):
  path = tmp_path / "latin1"
  path.write_bytes("'<pad>'\n'<EOS>'\n'für'\n".encode("latin-1"))
  error = run(
    *(MAIN, "--mode=predict", f"--model_dir={demo_model}", "--text=a"),
    f"--vocab_file={path}",
    status=2,
  )
  assert "latin1, line 3: not UTF-8 (byte 3 of the line)" in error
