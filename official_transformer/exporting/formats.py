"""The formats of exports and their packages, without importing these."""

from __future__ import annotations

import importlib.util

from official_transformer.decoding import engines
from official_transformer.errors import InputError
from official_transformer.importing import marian_names
from official_transformer.importing.huggingface_names import architecture
from official_transformer.model_params import TransformerParams
from official_transformer.text.text_form import TextForm
from official_transformer.text.vocabulary_files import (
  VocabFiles,
  load_vocabularies,
)

SAVED_MODEL = "saved_model"
CTRANSLATE2 = "ctranslate2"
TEXT_MODULE = "tensorflow_text"
HUGGINGFACE = "huggingface"
MARIAN, BERGAMOT = "marian", "bergamot"
FORMATS = (SAVED_MODEL, CTRANSLATE2, HUGGINGFACE, MARIAN, BERGAMOT)

NO_WORDS_IN_GRAPH = (
  "TensorFlow has no operation that cuts text into words by Moses' rules: "
  "export without text, --noexport_text, or as --export_format=ctranslate2"
)


def check_extras(export_format: str, with_text: bool) -> None:
  """Refuses an export whose packages are not installed.

  Args:
    export_format: one of `FORMATS`.
    with_text: whether a SavedModel takes text as well as ids.

  Raises:
    InputError: with the command that installs it.
  """
  if export_format == CTRANSLATE2:
    engines.check_installed()
  if export_format == HUGGINGFACE:
    for name in ("safetensors", "tokenizers"):
      if not is_installed(name):
        raise InputError(
          f"a model for Hugging Face needs {name}, which is not installed: pip "
          "install 'official-transformer[huggingface]'"
        )
  needs_text = export_format == SAVED_MODEL and with_text
  if needs_text and not is_installed(TEXT_MODULE):
    raise InputError(
      "a SavedModel that takes text needs tensorflow-text, which is not "
      "installed: pip install 'official-transformer[serving]', or pass "
      "--noexport_text for one that takes ids alone"
    )


def check_params(export_format: str, params: TransformerParams) -> None:
  """Refuses a model that a format cannot have.

  Raises:
    InputError: with the reason.
  """
  if export_format == HUGGINGFACE:
    architecture(params)
  elif export_format in (MARIAN, BERGAMOT):
    marian_names.check_params(params)
    if export_format == BERGAMOT:
      marian_names.check_widths(params)


def is_installed(name: str) -> bool:
  """Returns whether a module can be imported, without doing so."""
  return importlib.util.find_spec(name) is not None


def check_text_in_graph(form: TextForm, files: VocabFiles) -> None:
  """Refuses a text form or a vocabulary that a SavedModel cannot contain."""
  from official_transformer.text.tokenizer import WordTokenizer

  tokenizers = load_vocabularies(files).tokenizers
  if any(isinstance(tokenizer, WordTokenizer) for tokenizer in tokenizers):
    raise InputError(NO_WORDS_IN_GRAPH)
  if not form.is_plain:
    raise InputError(
      f"the model's text is brought into a form ({form}) that TensorFlow "
      "cannot give it in the same way: export without text, --noexport_text, "
      "or as --export_format=ctranslate2"
    )
