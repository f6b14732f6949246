r"""Multi30k from its text to BLEU: one direction, several seeds.

    git clone https://github.com/multi30k/dataset
    python recipes/multi30k.py --pair=en-de --work_dir=runs \
      --text_dir=dataset/data/task1/raw

1. Two teachers learn from the text. The first translates from English. The
   second translates into English, and starts from the first one's weights.
2. The teachers translate the training text of their sides.
3. Students, one for each of --seeds, learn from the text and the translations,
   and start from the weights of the teacher of their direction: data
   diversification, Nguyen et al. 2020.
4. The students translate val with several values of alpha. The alpha with the
   best mean BLEU is taken for test_2016_flickr.

With --start_dir=models, both teachers start from the models there, en_de and
de_en, which are trained on Tatoeba as well.

Each model is the mean of its last five checkpoints. All students of a direction
share one teacher, its translations and its weights: the standard deviation is
that of the last training alone. Both directions of a pair share the teachers.

Ctrl-C interrupts the recipe, and the same command resumes it. Data and
translations that are older than the files they are made of are made again;
training refuses a model that has learned from other data, whose directory is
then to be deleted. To begin again, delete the directories in --work_dir.

All further flags go to all trainings, in place of the same flags in
multi30k_*.flags: for example, --dtype=fp32 for a processor without bfloat16
units. --params_override replaces the whole list there.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import statistics
import sys
from collections.abc import Iterable, Sequence

import sacrebleu
from diversification import Direction, Diversification

from official_transformer.errors import describe_failures
from official_transformer.text.text_files import read_parallel_files

PAIRS = ("en-de", "de-en", "en-fr", "fr-en", "en-cs", "cs-en")
TEST = "test_2016_flickr"
ALPHAS = ("1.0", "1.2", "1.4", "1.6", "1.8")
METRICS = {
  "BLEU": sacrebleu.BLEU(),
  "lower-cased": sacrebleu.BLEU(lowercase=True),
  "chrF2": sacrebleu.CHRF(),
}
# The recipe sets these flags itself, or could not be resumed with them.
RESERVED = {
  *("mode", "flagfile", "data_dir", "dd", "model_dir", "md", "seed"),
  *("init_checkpoint", "clean"),
}


def compare_alphas(
  recipe: Diversification, students: Sequence[pathlib.Path]
) -> Table:
  """Returns BLEU on val, with a column for each of `ALPHAS`."""
  table = Table("val: BLEU with alpha", ALPHAS)
  for student in students:
    by_metric = [
      translate_and_score(recipe, [student], "val", alpha) for alpha in ALPHAS
    ]
    table.add(student.name, [found["BLEU"] for found in by_metric])
  return table


def score_test(
  recipe: Diversification, students: Sequence[pathlib.Path], alpha: str
) -> Table:
  """Returns the students' scores on the test set, and their ensemble's."""
  table = Table(f"{TEST}, alpha {alpha}", tuple(METRICS))
  for student in students:
    found = translate_and_score(recipe, [student], TEST, alpha)
    table.add(student.name, found.values())
  if len(students) > 1:
    mean, deviation = table.mean(), table.standard_deviation()
    table.add("mean", mean)
    table.add("standard deviation", deviation)
    found = translate_and_score(recipe, students, TEST, alpha)
    table.add("ensemble", found.values())
  return table


def translate_and_score(
  recipe: Diversification, models: Sequence[pathlib.Path], part: str, alpha: str
) -> dict[str, float]:
  """Returns the score of some models' translation by each metric."""
  translation, reference = read_parallel_files(
    [
      str(recipe.translate(models, part, recipe.direction, alpha)),
      str(recipe.text(part, recipe.direction).target),
    ]
  )
  return {
    name: metric.corpus_score(translation, [reference]).score
    for name, metric in METRICS.items()
  }


class Table:
  """Rows of scores, which are written as a table in Markdown."""

  def __init__(self, title: str, columns: Sequence[str]) -> None:
    self._title = title
    self._columns = columns
    self._rows: list[tuple[str, list[float]]] = []

  def add(self, name: str, values: Iterable[float]) -> None:
    """Adds a row."""
    self._rows.append((name, list(values)))

  def mean(self) -> list[float]:
    """Returns the mean of each column."""
    rows = [values for _, values in self._rows]
    return [statistics.mean(column) for column in zip(*rows, strict=True)]

  def standard_deviation(self) -> list[float]:
    """Returns the standard deviation of each column, of at least two rows."""
    rows = [values for _, values in self._rows]
    return [statistics.stdev(column) for column in zip(*rows, strict=True)]

  def __str__(self) -> str:
    """Returns the table's lines."""
    lines = [(self._title, *self._columns), ["---"] * (1 + len(self._columns))]
    for name, values in self._rows:
      lines.append((name, *(f"{value:.2f}" for value in values)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def best_alpha(by_alpha: Table) -> str:
  """Returns the alpha with the best mean; warns if it is the first or last."""
  means = by_alpha.mean()
  best = ALPHAS[means.index(max(means))]
  if best in (ALPHAS[0], ALPHAS[-1]):
    print(
      f"alpha {best} is at the end of the values that were tried", flush=True
    )
  return best


def report(recipe: Diversification) -> str:
  """Runs the recipe; returns all tables, signatures and two commands."""
  students = recipe.train_students(recipe.train_teachers())
  by_alpha = compare_alphas(recipe, students)
  alpha = best_alpha(by_alpha)
  tested = score_test(recipe, students, alpha)
  by_alpha.add("mean", by_alpha.mean())
  reference = recipe.text(TEST, recipe.direction).target
  translation = recipe.translate(students[:1], TEST, recipe.direction, alpha)
  signatures = [
    f"{name}: {metric.get_signature()}" for name, metric in METRICS.items()
  ]
  return "\n".join(
    [
      f"{by_alpha}\n\n{tested}\n",
      *signatures,
      "\nIntervals of the first student's scores:\n",
      f"    sacrebleu {reference} -i {translation} -m bleu chrf --confidence",
      "\nTo translate with it:\n",
      f"    transformer_main --mode=predict --model_dir={students[0]} "
      f"--checkpoint=average --alpha={alpha} --file=FILE --file_out=OUT",
    ]
  )


def read_arguments() -> Diversification:
  """Parses and checks the command line."""
  parser = argparse.ArgumentParser(
    description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
    allow_abbrev=False,
  )
  add = parser.add_argument
  add("--pair", required=True, choices=PAIRS, help="source and target language")
  add("--text_dir", required=True, help="data/task1/raw of Multi30k")
  add("--work_dir", required=True, help="for everything that is made")
  add("--start_dir", help="models that the teachers start from")
  add("--seeds", default="1,2,3", help="of the students; default: %(default)s")
  given, flags = parser.parse_known_args()
  seeds = given.seeds.split(",")
  if not all(s.isdecimal() for s in seeds) or len(set(seeds)) < len(seeds):
    parser.error(f"--seeds={given.seeds}: write different numbers, as in 1,2,3")
  for flag in flags:
    name = flag.lstrip("-").partition("=")[0].removeprefix("no")
    if not flag.startswith("--") or flag == "--":
      parser.error(f"{flag} is not a flag; write --name=value")
    if name in RESERVED:
      parser.error(f"the recipe sets --{name}, or cannot be resumed with it")
  for directory in (given.text_dir, given.work_dir):
    if "," in directory:
      parser.error(f"{directory}: a comma would separate two files")
  recipe = Diversification(
    Direction(*given.pair.split("-")),
    pathlib.Path(given.text_dir),
    pathlib.Path(given.work_dir),
    pathlib.Path(given.start_dir) if given.start_dir else None,
    [int(seed) for seed in seeds],
    flags,
  )
  for part in ("train", "val", TEST):
    for file in recipe.text(part, recipe.direction):
      if not file.exists():
        parser.error(
          f"there is no {file}; --text_dir is data/task1/raw of "
          "https://github.com/multi30k/dataset"
        )
  if given.start_dir and (problem := problem_of_start(recipe)):
    parser.error(f"--start_dir={given.start_dir}: {problem}")
  kind = "tuned-" if given.start_dir else ""
  work_dir = recipe.work_dir / f"{kind}{recipe.from_english}"
  return dataclasses.replace(recipe, work_dir=work_dir)


def problem_of_start(recipe: Diversification) -> str | None:
  """Returns what is wrong with the models to start from, or None."""
  vocabularies = set()
  for direction in (recipe.from_english, recipe.from_english.back):
    model = pathlib.Path(str(recipe.given_model(direction)))
    found = list(model.glob("vocab.*.model"))
    if len(found) != 1 or not (model / "average").exists():
      return f"there is no {model} with an average and one vocabulary"
    vocabularies.add(found[0].read_bytes())
  if len(vocabularies) > 1:
    return "its two models have different vocabularies"
  return None


def main(argv: Sequence[str]) -> None:
  """Runs the command."""
  del argv  # `argparse` reads the command line.
  recipe = read_arguments()
  results = report(recipe)
  print(results, flush=True)
  path = recipe.work_dir / f"results-{recipe.direction}.md"
  path.write_text(f"{results}\n", encoding="utf-8")


if __name__ == "__main__":
  describe_failures(main)(sys.argv[:1])
