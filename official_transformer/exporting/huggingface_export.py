"""Writing and proving a model for Hugging Face's `transformers`.

Its search divides log-probabilities by another power of the length than ours,
and its layer norms add another epsilon: translations differ on some lines. What
must be equal is how text is cut, and the probability of given translations.
"""

from __future__ import annotations

import os

import numpy as np

from official_transformer.decoding.loading import LoadedModel
from official_transformer.decoding.scorer import Scorer
from official_transformer.errors import RunError
from official_transformer.exporting import (
  huggingface_model,
  huggingface_tokenizer,
)
from official_transformer.exporting.differences import (
  difference,
  require_equal,
)
from official_transformer.exporting.numpy_model import NumpyModel
from official_transformer.exporting.verification import BATCH_SIZE, Samples
from official_transformer.importing.huggingface_names import (
  PEGASUS,
  VOCABULARY,
  architecture,
)
from official_transformer.model_params import EOS_ID, TransformerParams
from official_transformer.storage import file_system
from official_transformer.text.vocabulary_files import VocabFiles


def export_huggingface(
  model: LoadedModel, files: VocabFiles, directory: str, samples: Samples
) -> list[str]:
  """Writes a model and its tokenizer, and compares both with ours.

  Args:
    model: with weights in float32.
    files: of its vocabularies.
    directory: exists, and is empty.
    samples: to prove it with.

  Returns:
    What was found.

  Raises:
    InputError: if `transformers` has no such model, or no such tokenizer.
    RunError: if the export cuts text otherwise, or scores otherwise.
  """
  params = model.transformer.params
  kind = architecture(params)
  for tokenizer in (model.tokenizers.source, model.tokenizers.target):
    huggingface_tokenizer.check_vocabulary(tokenizer)
  huggingface_model.write_model(model.transformer, directory)
  _write_generation(params, samples, directory)
  findings = []
  if kind == PEGASUS:
    start = huggingface_model.start_id(params)
    huggingface_tokenizer.write_unigram(
      files.source, directory, start, model.longest_piece
    )
    file_system.copy(files.source, os.path.join(directory, VOCABULARY))
    findings.append(_verify_ids(directory, samples))
  else:
    huggingface_tokenizer.write_marian(
      model.tokenizers, files, directory, model.longest_piece
    )
  return [*findings, _verify_scores(model, directory, samples)]


def _verify_ids(directory: str, samples: Samples) -> str:
  """Compares how lines are cut; returns a finding."""
  lines = [*(line.strip() for line in samples.lines), *samples.texts]
  wanted = [*samples.ids, *samples.text_ids]
  found = huggingface_tokenizer.encode_with(directory, lines)
  for line, ids, others in zip(lines, wanted, found, strict=True):
    if ids != others:
      raise RunError(
        "the export does not cut text as the model does, and was removed: "
        f"{line!r} becomes {others}, not {ids}"
      )
  return f"its tokenizer cuts {len(lines)} lines as the model's does"


def _verify_scores(model: LoadedModel, directory: str, samples: Samples) -> str:
  """Compares log-probabilities, as NumPy computes them; returns a finding."""
  pairs = [
    (source, [*found.ids, EOS_ID])
    for source, (found, *_) in zip(samples.ids, samples.found, strict=True)
  ]
  scorer = Scorer(model.transformer, model.tokenizers)
  wanted = [
    score.token_log_probabilities
    for start in range(0, len(pairs), BATCH_SIZE)
    for score in scorer.score_batch(pairs[start : start + BATCH_SIZE])
  ]
  export = NumpyModel(directory)
  found = [export.token_log_probabilities(*pair) for pair in pairs]
  differences = np.abs(np.concatenate(found) - np.concatenate(wanted))
  how = "with the epsilon of PyTorch's layer norms"
  require_equal(differences, how)
  return difference(differences, how)


def _write_generation(
  params: TransformerParams, samples: Samples, directory: str
) -> None:
  """Writes generation_config.json: the setting that comes nearest to ours.

  `transformers` divides by the length to a power; around the mean length of
  translations, one falls and rises as ours, ((5 + length) / 6) ** alpha.
  """
  length = np.mean([len(found.ids) + 1 for found, *_ in samples.found])
  penalty = params.alpha * length / (5 + length)
  start = huggingface_model.start_id(params)
  huggingface_model.write_json(
    os.path.join(directory, "generation_config.json"),
    {
      "num_beams": params.beam_size,
      "length_penalty": round(float(penalty), 2),
      "early_stopping": False,
      "max_length": huggingface_model.longest(params),
      "pad_token_id": 0,
      "eos_token_id": EOS_ID,
      "bos_token_id": start,
      "decoder_start_token_id": start,
    },
  )
