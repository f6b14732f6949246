"""Writing and proving a model for Hugging Face's `transformers`.

Hugging Face's search divides log-probabilities by another power of the length
than ours, and its layer norms have another epsilon: translations differ on some
lines. The ids of a text and the log-probabilities of given translations must be
equal.
"""

from __future__ import annotations

import os

import numpy as np

from official_transformer.decoding.loading import LoadedModel
from official_transformer.errors import InputError, RunError
from official_transformer.exporting import (
  huggingface_model,
  huggingface_tokenizer,
)
from official_transformer.exporting.differences import (
  difference,
  own_scores,
  require_equal,
)
from official_transformer.exporting.numpy_model import NumpyModel
from official_transformer.exporting.verification import Samples
from official_transformer.importing.huggingface_names import (
  PEGASUS,
  VOCABULARY,
  architecture,
)
from official_transformer.model_params import EOS_ID, TransformerParams
from official_transformer.storage import file_system
from official_transformer.text.vocabulary_files import VocabFiles


def check(model: LoadedModel, files: VocabFiles) -> None:
  """Refuses a model that `transformers` cannot have exactly.

  Raises:
    InputError: with the reason.
  """
  kind = architecture(model.transformer.params)
  for tokenizer, path in zip(model.tokenizers, files, strict=True):
    huggingface_tokenizer.check_vocabulary(tokenizer, path, kind)


def export_huggingface(
  model: LoadedModel, files: VocabFiles, directory: str, samples: Samples
) -> list[str]:
  """Writes a model and its tokenizer, and compares both with ours.

  Args:
    model: with weights in float32.
    files: files of its vocabularies.
    directory: exists, and is empty.
    samples: to prove it with.

  Returns:
    Verified facts.

  Raises:
    InputError: if a line has more tokens than the format has positions.
    RunError: if the export cuts text otherwise, or scores otherwise.
  """
  params = model.transformer.params
  kind = architecture(params)
  positions = huggingface_model.longest(params)
  for line, (source, target) in zip(samples.lines, samples.pairs, strict=True):
    if (tokens := max(len(source), len(target))) > positions:
      raise InputError(
        f"a line of the text that verifies the export has {tokens} tokens, or "
        f"its translation, and {kind} {positions} positions: leave it out, "
        f"{line!r:.60}"
      )
  longest_piece = min(model.longest_piece, positions)
  huggingface_model.write_model(model.transformer, directory)
  _write_generation(params, samples, directory)
  if kind == PEGASUS:
    start = huggingface_model.start_id(params)
    huggingface_tokenizer.write_unigram(
      files.source, directory, start, longest_piece
    )
    file_system.copy(files.source, os.path.join(directory, VOCABULARY))
  else:
    huggingface_tokenizer.write_marian(
      model.tokenizers, files, directory, longest_piece
    )
  return [
    _verify_text(model, directory, kind, samples),
    _verify_scores(model, directory, samples),
  ]


def _verify_text(
  model: LoadedModel, directory: str, kind: str, samples: Samples
) -> str:
  """Compares how lines become ids, and ids lines; returns a finding."""
  sides = {
    "source": [line.strip() for line in samples.lines],
    "target": samples.texts,
  }
  for side, lines in sides.items():
    encode = getattr(model.tokenizers, side).encode
    if kind == PEGASUS:
      found = huggingface_tokenizer.encode_with(directory, lines)
    else:
      found = huggingface_tokenizer.encode_marian(directory, side, lines)
    for line, ids in zip(lines, found, strict=True):
      wanted = encode(line, add_eos=True)
      if ids != wanted:
        raise _refusal("cut text", line, ids, wanted)
  if kind == PEGASUS:
    rows = [found.ids for found, *_ in samples.found]
    texts = huggingface_tokenizer.decode_with(directory, rows)
    for ids, text, wanted in zip(rows, texts, samples.texts, strict=True):
      if text.split() != wanted.split():
        raise _refusal("write", ids, text, wanted)
  return (
    f"its tokenizer cuts {len(samples.lines)} lines and their translations as "
    "the model's does"
  )


def _refusal(
  what: str, given: object, found: object, wanted: object
) -> RunError:
  return RunError(
    f"the export does not {what} as the model does, and was removed: {given!r} "
    f"becomes {found!r}, not {wanted!r}"
  )


def _verify_scores(model: LoadedModel, directory: str, samples: Samples) -> str:
  """Compares log-probabilities, as NumPy computes them; returns a finding."""
  export = NumpyModel.of_huggingface(directory)
  found = [export.token_log_probabilities(*pair) for pair in samples.pairs]
  differences = np.abs(np.concatenate(found) - own_scores(model, samples))
  how = "with the epsilon of PyTorch's layer norms"
  require_equal(differences, how)
  return difference(differences, how)


def _write_generation(
  params: TransformerParams, samples: Samples, directory: str
) -> None:
  """Writes generation_config.json: the setting that comes nearest to ours.

  `transformers` divides by the length to a power.
  """
  penalty = samples.length_power(params.alpha)
  if params.norm == "post" and params.alpha == 1:
    penalty = 1.0  # The penalty of imported Marian models.
  start = huggingface_model.start_id(params)
  huggingface_model.write_json(
    os.path.join(directory, "generation_config.json"),
    {
      "num_beams": params.beam_size,
      "length_penalty": penalty,
      "early_stopping": False,
      "max_length": huggingface_model.longest(params),
      "pad_token_id": start,
      "eos_token_id": EOS_ID,
      "bos_token_id": start,
      "decoder_start_token_id": start,
    },
  )
