"""`--mode=predict` led by files and flags, and the variants of a model."""

import json

import pytest
from command_line import MAIN, fail, succeed

from official_transformer.decoding.phrases import holds

pytestmark = pytest.mark.slow

LINES = ["the dog sees a cat .", "", "the old man runs .", "a bird sings ."]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
  path = tmp_path_factory.mktemp("led") / "lines"
  path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
  return path


def predict(model, text, *flags):
  """Returns what is told of each line."""
  done = succeed(
    MAIN,
    "--mode=predict",
    f"--model_dir={model}",
    f"--file={text}",
    "--output_format=jsonl",
    *flags,
  )
  return [json.loads(line) for line in done.stdout.splitlines()]


def write(path, *lines):
  path.write_text("\n".join(lines) + "\n", encoding="utf-8")
  return path


def test_prefixes_and_phrases_come_from_files(trained_model, text, tmp_path):
  prefixes = write(tmp_path / "prefixes", "Die Katze", "", "", "Ein")
  wanted = write(tmp_path / "wanted", "Haus\tHund", "Haus", "", "")
  free = predict(trained_model, text)
  # What this hardly trained model says depends on the processor.
  words = " ".join(row["translation"] for row in free).split()
  frequent = max(words, key=words.count) if words else "der"
  unwanted = write(tmp_path / "unwanted", frequent)
  found = predict(
    trained_model,
    text,
    f"--prefix_file={prefixes}",
    f"--required_phrases={wanted}",
    f"--forbidden_phrases={unwanted}",
  )
  assert found[0]["translation"].startswith("Die Katze")
  assert found[3]["translation"].startswith("Ein")
  unmet = found[0].get("unmet", [])
  for phrase in ("Haus", "Hund"):
    assert holds(found[0]["translation"], phrase) != (phrase in unmet)
  assert found[1]["flags"] == ["blank", "unmet"]
  for row in found:
    unmet = row.get("unmet", [])
    assert holds(row["translation"], frequent) == (frequent in unmet)
    assert bool(unmet) == ("unmet" in row["flags"])


def test_samples_do_not_depend_on_batches(trained_model, text):
  flags = ("--sample", "--n_best=2", "--top_k=8", "--sample_seed=3")
  found = predict(trained_model, text, *flags)
  again = predict(trained_model, text, *flags, "--decode_batch_size=1")
  texts = [[h["translation"] for h in row["hypotheses"]] for row in found]
  assert texts == [
    [h["translation"] for h in row["hypotheses"]] for row in again
  ]
  other = predict(trained_model, text, *flags[:-1], "--sample_seed=4")
  assert [row["translation"] for row in other] != [
    row["translation"] for row in found
  ]


def test_the_least_risk_of_samples_is_told(trained_model, text):
  found = predict(trained_model, text, "--sample", "--mbr", "--beam_size=6")
  assert all(0 <= row["utility"] <= 100 for row in found if row["translation"])


def test_one_model_twice_is_that_model(trained_model, text):
  assert [
    row["translation"]
    for row in predict(f"{trained_model},{trained_model}", text)
  ] == [row["translation"] for row in predict(trained_model, text)]


def test_penalties_are_read(trained_model, text):
  longer = predict(trained_model, text, "--min_length=12")
  assert all(len(r["tokens"]) >= 12 for r in longer if r["translation"])
  once = predict(
    trained_model, text, "--no_repeat_ngram_size=1", "--coverage_penalty=.2"
  )
  for row in once:
    assert len(set(row["tokens"])) == len(row["tokens"])


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--prefix_file=/nowhere"], "/nowhere"),
    (["--prefix_file={short}"], "of lines (1) than the text (4)"),
    (["--required_phrases={long}"], "of lines (7) than the text (4)"),
    (["--required_phrases={long}", "--prefix_file={short}"], "lines (1)"),
    (["--model_dir=a,"], "nothing between two commas"),
    (["--sample", "--temperature=0"], "temperature is 0"),
    (["--sample", "--top_p=1.5"], "top_p is 1.5"),
    (["--sample", "--padded_decode"], "XLA"),
    (["--sample", "--coverage_penalty=.1"], "no rank"),
    (["--repetition_penalty=0"], "repetition_penalty"),
  ],
)
def test_mistakes_cost_one_clear_message(
  trained_model, text, tmp_path, flags, message
):
  files = {
    "short": write(tmp_path / "short", "a"),
    "long": write(tmp_path / "long", *"abcdefg"),
  }
  flags = [flag.format(**files) for flag in flags]
  error = fail(
    MAIN,
    "--mode=predict",
    f"--model_dir={trained_model}",
    f"--file={text}",
    *flags,
    status=2,
  )
  assert message in error


def test_several_models_are_for_translating(trained_model, text):
  error = fail(
    MAIN,
    "--mode=score",
    f"--model_dir={trained_model},{trained_model}",
    f"--file={text}",
    f"--reference_file={text}",
    status=2,
  )
  assert "decide together" in error


def test_a_notebooks_model_is_trained_and_translates(demo_data, text, tmp_path):
  model = tmp_path / "notebook"
  succeed(
    MAIN,
    f"--data_dir={demo_data}",
    f"--model_dir={model}",
    "--param_set=notebook",
    "--params_override=hidden_size=32,num_heads=4,num_hidden_layers=1,"
    "max_positions=30",
    "--train_steps=3",
    "--batch_size=512",
    "--sampling_alpha=0.3",
    "--average_decay=0.9",
    "--freeze=encoder_stack/*",
  )
  assert len(predict(model, text)) == 4
  long = write(tmp_path / "long", "the dog " * 40)
  error = fail(
    MAIN,
    "--mode=predict",
    f"--model_dir={model}",
    f"--file={long}",
    "--nosplit_long_lines",
    status=2,
  )
  assert "30 positions" in error
  assert len(predict(model, long)) == 1
