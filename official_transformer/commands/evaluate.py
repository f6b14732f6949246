"""What `--mode=eval` does: translates evaluation sets and scores that."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

from absl import flags, logging

from official_transformer.commands.loading import (
  load_translator,
  read_compared_plan,
)
from official_transformer.commands.scoring import (
  MetricsOptions,
  check_tokenizer,
  contest_settings,
)
from official_transformer.data import text_files
from official_transformer.decoding.translator import Translator
from official_transformer.evaluation import contest_formats
from official_transformer.evaluation.contest import (
  Contest,
  ContestSettings,
  hold_contest,
)
from official_transformer.evaluation.evaluation_set import (
  EvaluationSet,
  keep_scores,
  keep_translations,
)
from official_transformer.evaluation.metrics import References
from official_transformer.flag_groups.records import parsed
from official_transformer.model_directory.directory import (
  SCORES_FILE,
  TRANSLATIONS,
  ModelDirectory,
)
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import write_text
from official_transformer.storage.standard_streams import show_result
from official_transformer.storage.typed_json import DAMAGE

FLAGS = flags.FLAGS


@dataclasses.dataclass(frozen=True)
class _Model:
  """A model that translates the sets.

  Attributes:
    translator: of it.
    name: what its translations are called in a comparison.
  """

  translator: Translator
  name: str

  @property
  def description(self) -> str:
    """Its weights, and how they are searched."""
    params = self.translator.params
    return (
      f"{self.translator.checkpoint}, beam {params.beam_size}, alpha "
      f"{params.alpha:g}"
      + (f", patience {params.patience:g}" if params.patience else "")
    )


def evaluate() -> None:
  """Prints scores; keeps them and the translations in the model directory."""
  settings = contest_settings(
    parsed(MetricsOptions),
    check_tokenizer("bleu_tokenize", FLAGS.bleu_tokenize),
  )
  sources = text_files.listed_files(FLAGS.bleu_source)
  references = text_files.listed_files(FLAGS.bleu_ref)
  files = list(zip(sources, references, strict=True))
  sets = [EvaluationSet.read(*pair) for pair in files]
  models = _load_models()
  names = [os.path.basename(source) for source in sources]
  if len(set(names)) < len(names):  # Of several directories, say.
    names = [f"{n}-{name}" for n, name in enumerate(names, start=1)]
  for pair, name, evaluation_set in zip(files, names, sets, strict=True):
    if len(sets) > 1:
      show_result(f"\n{pair[0]}")
    _evaluate_set(pair, name, evaluation_set, models, settings)


def _load_models() -> list[_Model]:
  """Loads the user's model, the last, and what it is compared with."""
  mine = load_translator()
  if not FLAGS.compare_with:
    return [_Model(mine, FLAGS.model_dir)]
  other = read_compared_plan().load()
  names = [FLAGS.compare_with, FLAGS.model_dir]
  if names[0] == names[1]:
    names = [
      f"{FLAGS.model_dir}, {translator.checkpoint}"
      for translator in (other, mine)
    ]
  if names[0] == names[1]:
    names[0] += ", again"
  return [_Model(other, names[0]), _Model(mine, names[1])]


def _evaluate_set(
  files: tuple[str, str],
  name: str,
  evaluation_set: EvaluationSet,
  models: list[_Model],
  settings: ContestSettings,
) -> None:
  """Translates and scores one set.

  Args:
    files: of source and reference.
    name: of the set, as part of a file's.
    evaluation_set: their lines.
    models: the last is the user's.
    settings: how they are scored.
  """
  directory = ModelDirectory(FLAGS.model_dir)
  name = _file_name(name, models[-1].translator)
  systems = []
  path, failure = "", None
  for number, model in enumerate(models):
    lines = model.translator.translate(evaluation_set.sources)
    systems.append((model.name, lines))
    compared = "" if number == len(models) - 1 else ".compared"
    # Whatever fails, the others are done: keeping, scoring, and telling.
    try:
      path = keep_translations(directory, name + compared, lines)
    except OSError as error:
      failure = error
  contest = hold_contest(
    systems,
    References([evaluation_set.references]),
    settings,
    evaluation_set.sources,
  )
  if contest.tokenizer.reason:
    logging.info("%s", contest.tokenizer.reason)
  text = contest_formats.as_text(contest)
  try:
    for model in models:
      of = f" ({model.name})" if len(models) > 1 else ""
      said = model.description
      show_result(f"{said[0].upper()}{said[1:]}{of}")
    show_result(text)
  finally:
    if failure:
      raise failure
    keep_scores(directory, name, text)
    _keep_fields(directory, name, files, contest)
  show_result(f"The translation is in {path}")


def _file_name(name: str, translator: Translator) -> str:
  """Returns what tells an evaluation from others."""
  checkpoint, params = translator.checkpoint, translator.params
  assert checkpoint  # It has been loaded.
  return (
    f"{name}-{checkpoint.file_name}-beam-"
    f"{params.beam_size}-alpha-{params.alpha:g}-extra-"
    f"{params.extra_decode_length}"
    + (f"-patience-{params.patience:g}" if params.patience else "")
  )


def _keep_fields(
  directory: ModelDirectory, name: str, files: tuple[str, str], contest: Contest
) -> None:
  """Adds to what `scores.json` has of earlier evaluations."""
  path = directory.join(TRANSLATIONS, SCORES_FILE)
  kept: dict[str, Any] = {}
  if file_system.exists(path):
    try:
      with file_system.open_file(path) as stream:
        kept = dict(json.load(stream))
    except DAMAGE as error:
      logging.error("%s is damaged (%r): starting it anew", path, error)
  source, reference = files
  kept[name] = {
    "source": source,
    "reference": reference,
    **contest_formats.fields_of(contest),
  }
  write_text(path, json.dumps(kept, ensure_ascii=False, indent=1) + "\n")
