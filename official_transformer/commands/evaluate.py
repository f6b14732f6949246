"""`--mode=eval`: translates evaluation sets and scores the translations."""

from __future__ import annotations

import dataclasses
import json
import os
import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from absl import logging

from official_transformer.commands.decoding_options import TranslationOptions
from official_transformer.commands.flag_records import flag
from official_transformer.commands.scoring import (
  MetricsOptions,
  comparison_settings,
)
from official_transformer.commands.text_options import EvaluationOptions
from official_transformer.decoding.engines import TENSORFLOW
from official_transformer.decoding.options import DecodingOptions
from official_transformer.errors import InputError
from official_transformer.model_directory.directory import (
  SCORES_FILE,
  TRANSLATIONS,
  ModelDirectory,
)
from official_transformer.model_params import DECODING_FIELDS
from official_transformer.storage import file_system
from official_transformer.storage.durable_files import write_text
from official_transformer.storage.standard_streams import show_result
from official_transformer.storage.typed_json import DAMAGE
from official_transformer.text import text_files

if TYPE_CHECKING:
  from official_transformer.decoding.translator import Translator
  from official_transformer.evaluation.evaluation_set import EvaluationSet
  from official_transformer.evaluation.system_comparison import (
    ComparisonSettings,
  )

# Options of `DecodingOptions` that tell evaluations apart.
_VARIATIONS = ("split_sentences", "split_long_lines", "recase", "replace_unk")


@dataclasses.dataclass(frozen=True, kw_only=True)
class EvalOptions(EvaluationOptions, TranslationOptions, MetricsOptions):
  """Flags of `--mode=eval`."""

  heading = "What is translated for BLEU"
  summary = "translate --bleu_source and score it against --bleu_ref"
  most_used = (
    "model_dir",
    "bleu_source",
    "bleu_ref",
    "checkpoint",
    "beam_size",
    "alpha",
    "metrics",
    "bleu_tokenize",
    "compare_with",
    "engine",
  )

  compare_with: str | None = flag(
    None,
    "Model directory to compare --model_dir with, which may be the same one: "
    "it translates the same text, with its own beam and alpha unless they are "
    "given.",
    path=True,
  )
  compare_checkpoint: str | None = flag(
    None,
    "Weights of --compare_with to use. Unset: the weights that --checkpoint "
    "names.",
    (lambda o: not o.compare_with, "there is no --compare_with"),
  )

  def settings(self) -> ComparisonSettings:
    """Returns how translations are scored and compared."""
    return comparison_settings(self, self.tokenizer())

  def files(self) -> list[tuple[str, str]]:
    """Returns each source and its reference."""
    if not self.bleu_source:
      raise InputError("--mode=eval needs --bleu_source and --bleu_ref")
    sources = text_files.listed_files(self.bleu_source)
    references = text_files.listed_files(str(self.bleu_ref))
    if len(sources) != len(references):
      raise InputError(
        f"--bleu_source names {len(sources)} files and --bleu_ref "
        f"{len(references)}: give a reference for each"
      )
    return list(zip(sources, references, strict=True))

  def check(self) -> None:
    """Refuses a missing evaluation set or model.

    Raises:
      InputError: for the first thing that is wrong.
    """
    for pair in self.files():
      for path in pair:
        text_files.check_input(path)
    self.settings()
    if self.compare_with:
      other = ModelDirectory(self.compare_with)
      other.read()
      other.choose_checkpoints(self.compare_checkpoint or self.checkpoint)
    self.check_engine()
    self.check_model()

  def run(self) -> None:
    """Prints scores; keeps them and translations in the model directory."""
    from official_transformer.evaluation.evaluation_set import EvaluationSet

    settings, files = self.settings(), self.files()
    sets = [EvaluationSet.read(*pair) for pair in files]
    models = self._load_models()
    names = [os.path.basename(source) for source, _ in files]
    if len(set(names)) < len(names):  # Of several directories, say.
      names = [f"{n}-{name}" for n, name in enumerate(names, start=1)]
    directory, _ = self.model
    translator, decoding = models[-1].translator, self.plan().settings()
    variations = self._variations(translator)
    for pair, name, evaluation_set in zip(files, names, sets, strict=True):
      if len(sets) > 1:
        show_result(f"\n{pair[0]}")
      name = _file_name(name, translator, variations)
      kept = _Kept.of(directory, name, pair, decoding)
      _evaluate_set(kept, evaluation_set, models, settings)

  def _variations(self, translator: Translator) -> list[str]:
    """Returns what differs from the model's own way, besides the search."""
    directory, description = self.model
    usual = DecodingOptions(split_sentences=description.splits_sentences)
    usual = usual.as_trained(description.splits_sentences)
    values = {
      name: (getattr(translator.options, name), getattr(usual, name))
      for name in _VARIATIONS
    }
    if self.suppress_unk is not None:
      own = directory.describe().params.suppress_unk
      values["suppress_unk"] = self.suppress_unk, own
    found = [
      name if used else f"no{name}"
      for name, (used, own) in values.items()
      if used != own
    ]
    if self.keep:
      found.append(f"keep-{zlib.crc32(self.keep.encode()):08x}")
    return found

  def _load_models(self) -> list[_Model]:
    """Loads the models that are compared, the user's last."""
    mine = self.plan().load()
    if not self.compare_with:
      return [_Model(mine, self.model_dir)]
    other = self._load_compared(self.compare_with)
    names = [self.compare_with, self.model_dir]
    if names[0] == names[1]:
      names = [
        f"{self.model_dir}, {translator.checkpoint}"
        for translator in (other, mine)
      ]
    if names[0] == names[1]:
      names[0] += ", again"
    return [_Model(other, names[0]), _Model(mine, names[1])]

  def _load_compared(self, path: str) -> Translator:
    """Loads another model.

    Beam, alpha, patience and limit are its own, unless flags give them for
    both.
    """
    from official_transformer.decoding.loading import open_model

    decoding = {name: getattr(self, name) for name in DECODING_FIELDS}
    directory, description = open_model(path, **decoding)
    plan = self.plan_for(directory, description)
    if self.compare_checkpoint:
      plan = dataclasses.replace(plan, checkpoint=self.compare_checkpoint)
    return plan.load()


@dataclasses.dataclass(frozen=True)
class _Model:
  """A model that translates the sets.

  Attributes:
    translator: translator of the model.
    name: name of its translations in a comparison.
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
      + "".join(f", {said}" for said in _computing(self.translator))
    )


def _computing(translator: Translator) -> list[str]:
  """Returns the engine and its precision; empty for TensorFlow in float32."""
  engine = translator.options.engine
  if engine.name != TENSORFLOW:
    return [engine.name, engine.quantization]
  dtype = translator.searchers.engine.dtype
  return [] if dtype in (None, "float32") else [dtype]


@dataclasses.dataclass(frozen=True)
class _Kept:
  """The place of an evaluation's translations and scores.

  Attributes:
    directory: directory of the model.
    name: distinguishes it from others, as part of a file's name.
    files: files of source and reference.
    decoding: settings of the translator.
  """

  directory: ModelDirectory
  name: str
  files: tuple[str, str]
  decoding: dict[str, Any]

  @classmethod
  def of(
    cls,
    directory: ModelDirectory,
    name: str,
    files: tuple[str, str],
    decoding: dict[str, Any],
  ) -> _Kept:
    """Returns a place of its own for an evaluation.

    Files of the same name in different folders have different places, so that
    the translations of neither are overwritten.
    """
    files = file_system.absolute(files[0]), file_system.absolute(files[1])
    earlier = _read_scores(directory).get(name)
    source = earlier.get("source") if isinstance(earlier, dict) else None
    # Earlier versions kept the path as it was given.
    if isinstance(source, str) and file_system.absolute(source) != files[0]:
      name += f"-{zlib.crc32(os.path.dirname(files[0]).encode()):08x}"
    return cls(directory, name, files, decoding)


def _evaluate_set(
  kept: _Kept,
  evaluation_set: EvaluationSet,
  models: list[_Model],
  settings: ComparisonSettings,
) -> None:
  """Translates and scores one set.

  Args:
    kept: where.
    evaluation_set: lines of source and reference.
    models: the models to compare; the last is the user's.
    settings: how they are scored.
  """
  from official_transformer.evaluation import comparison_formats
  from official_transformer.evaluation.evaluation_set import (
    keep_scores,
    keep_translations,
  )
  from official_transformer.evaluation.metrics import References
  from official_transformer.evaluation.system_comparison import compare_systems

  directory, name = kept.directory, kept.name
  systems = []
  path, failure = "", None
  for number, model in enumerate(models):
    lines = model.translator.translate(evaluation_set.sources)
    systems.append((model.name, lines))
    compared = "" if number == len(models) - 1 else ".compared"
    # A failure to store translations is raised only after the scores have been
    # printed.
    try:
      path = keep_translations(directory, name + compared, lines)
    except OSError as error:
      failure = error
  found = compare_systems(
    systems,
    References([evaluation_set.references]),
    settings,
    evaluation_set.sources,
  )
  if found.tokenizer.reason:
    logging.info("%s", found.tokenizer.reason)
  text = comparison_formats.as_text(found)
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
    _keep_fields(kept, comparison_formats.fields_of(found))
  show_result(f"The translation is in {path}")


def _file_name(
  name: str, translator: Translator, variations: Sequence[str]
) -> str:
  """Returns the file name of an evaluation."""
  checkpoint, params = translator.checkpoint, translator.params
  assert checkpoint  # It has been loaded.
  return (
    f"{name}-{checkpoint.file_name}-beam-"
    f"{params.beam_size}-alpha-{params.alpha:g}-extra-"
    f"{params.extra_decode_length}"
    + (f"-patience-{params.patience:g}" if params.patience else "")
    + "".join(f"-{said}" for said in (*_computing(translator), *variations))
  )


def _read_scores(directory: ModelDirectory) -> dict[str, Any]:
  """Returns the earlier evaluations of `scores.json`."""
  path = directory.join(TRANSLATIONS, SCORES_FILE)
  if not file_system.exists(path):
    return {}
  try:
    with file_system.open_file(path) as stream:
      return dict(json.load(stream))
  except DAMAGE as error:
    logging.error("%s is damaged (%r): a new one is written", path, error)
    return {}


def _keep_fields(kept: _Kept, fields: dict[str, Any]) -> None:
  """Adds an evaluation to `scores.json`."""
  path = kept.directory.join(TRANSLATIONS, SCORES_FILE)
  scores = _read_scores(kept.directory)
  source, reference = kept.files
  scores[kept.name] = {
    "source": source,
    "reference": reference,
    "decoding": kept.decoding,
    **fields,
  }
  write_text(path, json.dumps(scores, ensure_ascii=False, indent=1) + "\n")
