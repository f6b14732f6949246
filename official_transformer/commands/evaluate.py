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
from official_transformer.commands.scoring_flag_readers import (
  read_contest_settings,
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
  keep_translations,
)
from official_transformer.evaluation.metrics import References
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
    )


def evaluate() -> None:
  """Prints scores; keeps them and the translations in the model directory."""
  settings = read_contest_settings("bleu_tokenize")
  pairs = list(
    zip(
      text_files.listed_files(FLAGS.bleu_source),
      text_files.listed_files(FLAGS.bleu_ref),
      strict=True,
    )
  )
  sets = [EvaluationSet.read(*pair) for pair in pairs]
  models = [_Model(load_translator(), FLAGS.model_dir)]
  if FLAGS.compare_with:
    # What there was is compared with: it comes first.
    other = read_compared_plan().load()
    models.insert(0, _Model(other, FLAGS.compare_with))
  for (source, _), evaluation_set in zip(pairs, sets, strict=True):
    if len(sets) > 1:
      show_result(f"\n{source}")
    _evaluate_set(source, evaluation_set, models, settings)


def _evaluate_set(
  source: str,
  evaluation_set: EvaluationSet,
  models: list[_Model],
  settings: ContestSettings,
) -> None:
  """Translates and scores one set; the last of the models is the user's."""
  systems = [
    (model.name, model.translator.translate(evaluation_set.sources))
    for model in models
  ]
  contest = hold_contest(
    systems,
    References([evaluation_set.references]),
    settings,
    evaluation_set.sources,
  )
  mine, lines = models[-1], systems[-1][1]
  if contest.tokenizer.reason:
    logging.info("%s", contest.tokenizer.reason)
  # Whichever of the two fails, the other is done.
  try:
    for model in models:
      of = f" ({model.name})" if len(models) > 1 else ""
      text = model.description
      show_result(f"{text[0].upper()}{text[1:]}{of}")
    show_result(contest_formats.as_text(contest))
  finally:
    name = _file_name(source, mine.translator)
    directory = ModelDirectory(FLAGS.model_dir)
    path = keep_translations(
      directory, name, lines, contest.systems[-1].scores.report()
    )
    _keep_scores(directory, name, contest)
  show_result(f"The translation is in {path}")


def _file_name(source: str, translator: Translator) -> str:
  """Returns what tells an evaluation from others."""
  checkpoint, params = translator.checkpoint, translator.params
  assert checkpoint  # It has been loaded.
  return (
    f"{os.path.basename(source)}-{checkpoint.file_name}-beam-"
    f"{params.beam_size}-alpha-{params.alpha:g}-extra-"
    f"{params.extra_decode_length}"
  )


def _keep_scores(
  directory: ModelDirectory, name: str, contest: Contest
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
  kept[name] = contest_formats.fields_of(contest)
  write_text(path, json.dumps(kept, ensure_ascii=False, indent=1) + "\n")
