r"""Multi30k from its text to BLEU: one direction, several seeds.

    git clone https://github.com/multi30k/dataset
    python recipes/multi30k.py --pair=en-de --work_dir=runs \
      --text_dir=dataset/data/task1/raw

1. A teacher for each direction learns from the text: first from English, then,
   from the weights of the first teacher, into English.
2. The teachers translate the training text of their sides.
3. Students, one for each of --seeds, learn from the text and the translations,
   from their teacher's weights: data diversification, Nguyen et al. 2020.
4. The students translate val with several values of alpha. The best one on
   average is taken for test_2016_flickr.

With --start_dir=models, both teachers start from the models there, en_de and
de_en, which have learned from other text too.

Each model is the mean of its last five checkpoints. Ctrl-C interrupts the
recipe, and the same command resumes it. Whatever is older than the files it is
made of is made again. The directions of a pair share their teachers.

Flags of transformer_main for all trainings may follow --. Each replaces the one
in multi30k_*.flags: for example, `-- --dtype=fp32` for a processor without
bfloat16 units.
"""

from __future__ import annotations

import argparse
import dataclasses
import pathlib
import statistics
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import sacrebleu

from official_transformer.text.text_files import read_parallel_files

RECIPES = pathlib.Path(__file__).resolve().parent
PAIRS = ("en-de", "de-en", "en-fr", "fr-en", "en-cs", "cs-en")
PARTS = ("train", "val", "test_2016_flickr")
ALPHAS = ("1.0", "1.2", "1.4", "1.6")
# The recipe sets these flags of each training.
RESERVED = (
  *("--mode", "--flagfile", "--data_dir", "--model_dir", "--seed"),
  "--init_checkpoint",
)
METRICS = {
  "BLEU": sacrebleu.BLEU(),
  "lower-cased": sacrebleu.BLEU(lowercase=True),
  "chrF2": sacrebleu.CHRF(),
}


class Direction(NamedTuple):
  """A source and a target language, by their codes, such as en and de."""

  source: str
  target: str

  def __str__(self) -> str:
    """Returns both codes, such as en-de."""
    return f"{self.source}-{self.target}"

  @property
  def back(self) -> Direction:
    """The opposite direction."""
    return Direction(self.target, self.source)


class Pair(NamedTuple):
  """Two parallel files."""

  source: pathlib.Path
  target: pathlib.Path


def run(module: str, *flags: object) -> None:
  """Runs a command of this project in another process.

  Args:
    module: the command's module.
    *flags: its flags.

  Raises:
    SystemExit: if the command fails. It has written an error message.
  """
  command = [sys.executable, "-m", module, *map(str, flags)]
  done = subprocess.run(command, check=False)
  if done.returncode:
    raise SystemExit(done.returncode)


def transformer(*flags: object) -> None:
  """Runs `transformer_main`."""
  run("official_transformer.transformer_main", *flags)


def is_stale(made: pathlib.Path, sources: Iterable[pathlib.Path]) -> bool:
  """Returns whether a file is missing, or not newer than all its sources."""
  return not made.exists() or any(
    source.stat().st_mtime_ns >= made.stat().st_mtime_ns for source in sources
  )


@dataclasses.dataclass(frozen=True)
class Recipe:
  """The steps of the recipe, each of which is skipped if it has been done.

  Attributes:
    text_dir: directory of the text: train.en.gz and so on.
    work_dir: directory for the data, models and translations of one pair.
    start_dir: directory of the models that the teachers start from, or None.
    flags: flags for all trainings.
  """

  text_dir: pathlib.Path
  work_dir: pathlib.Path
  start_dir: pathlib.Path | None
  flags: Sequence[str]

  def text(self, part: str, direction: Direction) -> Pair:
    """Returns the files of one part of the text."""
    return Pair(
      *(self.text_dir / f"{part}.{language}.gz" for language in direction)
    )

  def start(self, direction: Direction) -> pathlib.Path | None:
    """Returns the model in `start_dir` for a direction."""
    if not self.start_dir:
      return None
    return self.start_dir / f"{direction.source}_{direction.target}"

  def vocabulary(self, direction: Direction) -> pathlib.Path:
    """Returns the vocabulary that all models share."""
    if start := self.start(direction):
      (vocabulary,) = start.glob("vocab.*.model")
      return vocabulary
    pairs = [self.text("train", direction)]
    data = self.prepare("vocabulary", direction, pairs, "--vocab_size=4000")
    return data / "vocab.4000.model"

  def prepare(
    self,
    name: str,
    direction: Direction,
    pairs: Sequence[Pair],
    vocabulary_flag: str,
  ) -> pathlib.Path:
    """Prepares training text, with val as the development set.

    Args:
      name: name of the data directory.
      direction: direction of the pairs.
      pairs: the training text.
      vocabulary_flag: the flag that makes or names the vocabulary.

    Returns:
      The data directory.
    """
    data = self.work_dir / name
    if is_stale(data / "data.json", (file for pair in pairs for file in pair)):
      sources, targets = zip(*pairs, strict=True)
      dev = self.text("val", direction)
      run(
        "data_prep.prepare_data",
        *(f"--data_dir={data}", vocabulary_flag),
        f"--train_source={','.join(map(str, sources))}",
        f"--train_target={','.join(map(str, targets))}",
        *(f"--dev_source={dev.source}", f"--dev_target={dev.target}"),
      )
    return data

  def train(
    self,
    role: str,
    direction: Direction,
    data: pathlib.Path,
    start: pathlib.Path | None,
    seed: int,
  ) -> pathlib.Path:
    """Trains a model, and averages its last five checkpoints.

    Args:
      role: teacher or student, which decides the file of flags.
      direction: direction of the data.
      data: the data directory.
      start: directory of a model whose average is the start, or None.
      seed: seed of the training.

    Returns:
      The model directory.
    """
    model = self.work_dir / f"{role}-{direction}-{seed}"
    kind = f"tuned_{role}" if self.start_dir else role
    transformer(
      f"--flagfile={RECIPES / f'multi30k_{kind}.flags'}",
      *(f"--data_dir={data}", f"--model_dir={model}", f"--seed={seed}"),
      *([f"--init_checkpoint={start / 'average'}"] if start else []),
      *self.flags,
    )
    steps = model.glob("checkpoints/step-*[0-9]")
    newest = max(steps, key=lambda path: int(path.name.partition("-")[2]))
    if not (model / "average" / newest.name).exists():
      transformer(
        *("--mode=average", "--average_last=5", f"--model_dir={model}")
      )
    return model

  def translate(
    self,
    models: Sequence[pathlib.Path],
    part: str,
    direction: Direction,
    alpha: str,
  ) -> pathlib.Path:
    """Translates one part of the text.

    Args:
      models: model directories; several models decide together.
      part: train, val or test_2016_flickr.
      direction: direction of the models.
      alpha: value of the flag.

    Returns:
      The file of the translation.
    """
    names = "+".join(model.name for model in models)
    translation = self.work_dir / f"{part}.{names}.{alpha}.{direction.target}"
    weights = (
      file for model in models for file in model.glob("average/step-*/*")
    )
    if is_stale(translation, weights):
      transformer(
        f"--model_dir={','.join(map(str, models))}",
        *("--mode=predict", "--checkpoint=average", f"--alpha={alpha}"),
        f"--file={self.text(part, direction).source}",
        f"--file_out={translation}",
      )
    return translation

  def scores(
    self,
    models: Sequence[pathlib.Path],
    part: str,
    direction: Direction,
    alpha: str,
  ) -> list[float]:
    """Returns the translation's score by each of `METRICS`."""
    translation, reference = read_parallel_files(
      [
        str(self.translate(models, part, direction, alpha)),
        str(self.text(part, direction).target),
      ]
    )
    return [
      metric.corpus_score(translation, [reference]).score
      for metric in METRICS.values()
    ]


def train_teachers(
  recipe: Recipe, from_english: Direction, vocabulary_flag: str
) -> dict[Direction, pathlib.Path]:
  """Returns a model for each direction of a pair."""
  teachers: dict[Direction, pathlib.Path] = {}
  for direction in (from_english, from_english.back):
    pairs = [recipe.text("train", direction)]
    data = recipe.prepare(
      f"text-{direction}", direction, pairs, vocabulary_flag
    )
    start = recipe.start(direction) or teachers.get(direction.back)
    teachers[direction] = recipe.train("teacher", direction, data, start, 1)
  return teachers


def diversify(
  recipe: Recipe,
  direction: Direction,
  teachers: dict[Direction, pathlib.Path],
  vocabulary_flag: str,
) -> pathlib.Path:
  """Returns the data directory of the text and its translations."""
  text = recipe.text("train", direction)
  forward, backward = (
    recipe.translate([teachers[one]], "train", one, "1.2")
    for one in (direction, direction.back)
  )
  pairs = [text, Pair(text.source, forward), Pair(backward, text.target)]
  return recipe.prepare(
    f"diversified-{direction}", direction, pairs, vocabulary_flag
  )


def best_alpha(
  recipe: Recipe, direction: Direction, models: Sequence[pathlib.Path]
) -> str:
  """Returns the alpha with the best mean BLEU on val, after a table of all."""
  found = {
    alpha: [
      recipe.scores([model], "val", direction, alpha)[0] for model in models
    ]
    for alpha in ALPHAS
  }
  print_row("val: BLEU with alpha of", ALPHAS)
  print_row("---", ["---"] * len(ALPHAS))
  for place, model in enumerate(models):
    print_row(model.name, [values[place] for values in found.values()])
  means = {alpha: statistics.mean(values) for alpha, values in found.items()}
  print_row("mean", means.values())
  return max(means, key=lambda alpha: means[alpha])


def report(
  recipe: Recipe,
  direction: Direction,
  models: Sequence[pathlib.Path],
  alpha: str,
) -> None:
  """Prints the table of the test set's scores."""
  test = PARTS[-1]
  found = [recipe.scores([model], test, direction, alpha) for model in models]
  print_row(f"{test}, alpha {alpha}", METRICS)
  print_row("---", ["---"] * len(METRICS))
  for model, values in zip(models, found, strict=True):
    print_row(model.name, values)
  if len(models) > 1:
    columns = list(zip(*found, strict=True))
    print_row("mean", map(statistics.mean, columns))
    print_row("standard deviation", map(statistics.stdev, columns))
    together = recipe.scores(models, test, direction, alpha)
    print_row("all of them as an ensemble", together)
  for name, metric in METRICS.items():
    print(f"{name}: {metric.get_signature()}")


def print_row(name: str, values: Iterable[object]) -> None:
  """Prints a row of a table in Markdown."""
  cells = (f"{v:.2f}" if isinstance(v, float) else str(v) for v in values)
  print("|", " | ".join((name, *cells)), "|", flush=True)


def read_arguments() -> argparse.Namespace:
  """Returns the command line's arguments, after a check of all of them."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument("--pair", required=True, choices=PAIRS)
  parser.add_argument("--text_dir", required=True, type=pathlib.Path)
  parser.add_argument("--work_dir", required=True, type=pathlib.Path)
  parser.add_argument("--start_dir", type=pathlib.Path)
  parser.add_argument("--seeds", default="1,2,3")
  parser.add_argument("flags", nargs="*", metavar="-- FLAGS")
  given = parser.parse_args()
  if not all(seed.isdecimal() for seed in given.seeds.split(",")):
    parser.error(f"--seeds={given.seeds}: write numbers, such as 1,2,3")
  for flag in given.flags:
    if not flag.startswith("--"):
      parser.error(f"{flag} is not a flag; write --name=value")
    if flag.partition("=")[0] in RESERVED:
      parser.error(f"the recipe sets {flag.partition('=')[0]}; leave it out")
  for directory in (given.text_dir, given.work_dir):
    if "," in str(directory):
      parser.error(f"{directory}: a comma would separate two files")
  for part in PARTS:
    for language in given.pair.split("-"):
      file = given.text_dir / f"{part}.{language}.gz"
      if not file.exists():
        parser.error(
          f"there is no {file}; --text_dir is data/task1/raw of "
          "https://github.com/multi30k/dataset"
        )
  for name in given.pair, "-".join(reversed(given.pair.split("-"))):
    model = given.start_dir and given.start_dir / name.replace("-", "_")
    if model and not (model / "average").exists():
      parser.error(f"there is no {model}/average to start from")
  return given


def main() -> None:
  """Runs the recipe."""
  given = read_arguments()
  direction = Direction(*given.pair.split("-"))
  from_english = direction if direction.source == "en" else direction.back
  kind = "tuned-" if given.start_dir else ""
  work_dir = given.work_dir / f"{kind}{from_english}"
  recipe = Recipe(given.text_dir, work_dir, given.start_dir, given.flags)

  vocabulary_flag = f"--vocab_file={recipe.vocabulary(from_english)}"
  teachers = train_teachers(recipe, from_english, vocabulary_flag)
  data = diversify(recipe, direction, teachers, vocabulary_flag)
  students = [
    recipe.train("student", direction, data, teachers[direction], int(seed))
    for seed in given.seeds.split(",")
  ]
  report(recipe, direction, students, best_alpha(recipe, direction, students))


if __name__ == "__main__":
  main()
