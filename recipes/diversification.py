"""Data diversification over two teachers, step by step.

Xuan-Phi Nguyen et al. 2020, "Data Diversification: A Simple Strategy For Neural
Machine Translation", in one round and with one teacher for each direction.
"""

from __future__ import annotations

import dataclasses
import pathlib
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from official_transformer.commands.average import last_steps
from official_transformer.errors import signal_name
from official_transformer.model_directory.directory import ModelDirectory

RECIPES = pathlib.Path(__file__).resolve().parent
AVERAGED = 5


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


class ParallelFiles(NamedTuple):
  """Two files whose lines correspond."""

  source: pathlib.Path
  target: pathlib.Path


def run(module: str, *flags: object) -> None:
  """Runs a command of this project in another process.

  The other process handles an interrupt, so that a training is saved. Nothing
  follows an interrupted command.

  Args:
    module: the command's module.
    *flags: its flags.

  Raises:
    SystemExit: if the command fails or is interrupted.
  """
  command = [sys.executable, "-m", module, *map(str, flags)]
  print("==", shlex.join(command), flush=True)
  interrupts: list[int] = []
  with subprocess.Popen(command) as child:
    # Ctrl-C reaches both processes, SIGTERM only this one.
    before = {
      signal.SIGINT: signal.signal(
        signal.SIGINT, lambda number, _: interrupts.append(number)
      ),
      signal.SIGTERM: signal.signal(
        signal.SIGTERM, lambda number, _: child.send_signal(number)
      ),
    }
    status = child.wait()
    for number, handler in before.items():
      signal.signal(number, handler)
  if status < 0:
    print(f"{module} was ended by {signal_name(-status)}", flush=True)
    status = 128 - status
  if status or interrupts:
    raise SystemExit(status or 130)


def transformer(*flags: object) -> None:
  """Runs `transformer_main`."""
  run("official_transformer.transformer_main", *flags)


def is_stale(made: pathlib.Path, sources: Iterable[pathlib.Path]) -> bool:
  """Returns whether a file is missing, or one of its sources is as new."""
  return not made.exists() or any(
    source.stat().st_mtime_ns >= made.stat().st_mtime_ns for source in sources
  )


@dataclasses.dataclass(frozen=True)
class Diversification:
  """The trainings for one direction. Steps that have been done are skipped.

  Attributes:
    direction: what the students translate.
    text_dir: directory of the text: train.en.gz and so on.
    work_dir: directory for the data, models and translations of the pair.
    start_dir: directory of the models that the teachers start from, or None.
    seeds: seeds of the students.
    flags: flags for all trainings.
  """

  direction: Direction
  text_dir: pathlib.Path
  work_dir: pathlib.Path
  start_dir: pathlib.Path | None
  seeds: Sequence[int]
  flags: Sequence[str]

  @property
  def from_english(self) -> Direction:
    """The direction of the pair whose source is English."""
    is_source = self.direction.source == "en"
    return self.direction if is_source else self.direction.back

  def text(self, part: str, direction: Direction) -> ParallelFiles:
    """Returns the files of one part of the text."""
    return ParallelFiles(
      *(self.text_dir / f"{part}.{language}.gz" for language in direction)
    )

  def given_model(self, direction: Direction) -> pathlib.Path | None:
    """Returns the model in `start_dir` for a direction."""
    if not self.start_dir:
      return None
    return self.start_dir / f"{direction.source}_{direction.target}"

  def train_teachers(self) -> dict[Direction, pathlib.Path]:
    """Returns the teacher of each direction."""
    teachers: dict[Direction, pathlib.Path] = {}
    for direction in (self.from_english, self.from_english.back):
      files = [self.text("train", direction)]
      data = self.prepare(f"text-{direction}", direction, files)
      initial = self.given_model(direction) or teachers.get(direction.back)
      teachers[direction] = self.train("teacher", direction, data, initial, 1)
    return teachers

  def train_students(
    self, teachers: dict[Direction, pathlib.Path]
  ) -> list[pathlib.Path]:
    """Returns the student of each seed, trained on diversified data."""
    direction = self.direction
    forward = self.translate([teachers[direction]], "train", direction)
    back = self.translate([teachers[direction.back]], "train", direction.back)
    text = self.text("train", direction)
    files = [
      text,
      ParallelFiles(text.source, forward),
      ParallelFiles(back, text.target),
    ]
    data = self.prepare(f"diversified-{direction}", direction, files)
    return [
      self.train("student", direction, data, teachers[direction], seed)
      for seed in self.seeds
    ]

  def prepare(
    self, name: str, direction: Direction, files: Sequence[ParallelFiles]
  ) -> pathlib.Path:
    """Prepares training text, with val as the development set.

    Args:
      name: name of the data directory.
      direction: direction of the files.
      files: the training text.

    Returns:
      The data directory.
    """
    data = self.work_dir / name
    dev = self.text("val", direction)
    sources = [file for pair in (*files, dev) for file in pair]
    vocabulary = self.vocabulary()
    vocabulary_flag = f"--vocab_file={vocabulary}"
    if vocabulary.parent == data:
      vocabulary_flag = "--vocab_size=4000"
    else:
      sources.append(vocabulary)
    if is_stale(data / "data.json", sources):
      from_files, to_files = zip(*files, strict=True)
      run(
        "data_prep.prepare_data",
        f"--data_dir={data}",
        f"--train_source={','.join(map(str, from_files))}",
        f"--train_target={','.join(map(str, to_files))}",
        f"--dev_source={dev.source}",
        f"--dev_target={dev.target}",
        vocabulary_flag,
      )
    return data

  def vocabulary(self) -> pathlib.Path:
    """Returns the vocabulary of all models, which the first data makes."""
    if model := self.given_model(self.from_english):
      return next(model.glob("vocab.*.model"))
    return self.work_dir / f"text-{self.from_english}" / "vocab.4000.model"

  def train(
    self,
    role: str,
    direction: Direction,
    data: pathlib.Path,
    initial: pathlib.Path | None,
    seed: int,
  ) -> pathlib.Path:
    """Trains a model, and averages its last checkpoints.

    Args:
      role: teacher or student, which decides the file of flags.
      direction: direction of the data.
      data: the data directory.
      initial: directory of the model whose average is the start, or None.
      seed: seed of the training.

    Returns:
      The model directory.
    """
    model = self.work_dir / f"{role}-{direction}-{seed}"
    directory = ModelDirectory(str(model))
    kind = f"tuned_{role}" if self.start_dir else role
    begins = not directory.checkpoint_steps()
    transformer(
      f"--flagfile={RECIPES / f'multi30k_{kind}.flags'}",
      *self.flags,
      f"--data_dir={data}",
      f"--model_dir={model}",
      f"--seed={seed}",
      *([f"--init_checkpoint={initial}/average"] if initial and begins else []),
    )
    newest = last_steps(directory, AVERAGED)[-1]
    if directory.checkpoint_steps("average") != [newest]:
      transformer(
        "--mode=average",
        f"--average_last={AVERAGED}",
        f"--model_dir={model}",
      )
    return model

  def translate(
    self,
    models: Sequence[pathlib.Path],
    part: str,
    direction: Direction,
    alpha: str | None = None,
  ) -> pathlib.Path:
    """Translates one part of the text.

    Args:
      models: model directories; several models decide together.
      part: train, val or test_2016_flickr.
      direction: direction of the models.
      alpha: value of the flag; None for the models' own.

    Returns:
      The file of the translation.
    """
    source = self.text(part, direction).source
    name = ".".join([part, "+".join(model.name for model in models)])
    if alpha:
      name += f".alpha-{alpha}"
    translation = self.work_dir / f"{name}.{direction.target}"
    weights = [file for model in models for file in model.glob("average/*/*")]
    if is_stale(translation, [source, *weights]):
      transformer(
        "--mode=predict",
        f"--model_dir={','.join(map(str, models))}",
        "--checkpoint=average",
        f"--file={source}",
        f"--file_out={translation}",
        *([f"--alpha={alpha}"] if alpha else []),
      )
    return translation
