"""A vocabulary as Hugging Face's `tokenizers` have it.

A unigram SentencePiece model (Kudo 2018) has its equal there: the same pieces
and scores, the same table of characters to replace. Marian's tokenizer has the
SentencePiece models themselves, and numbers of pieces in a file of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container
from typing import Any

from official_transformer.errors import InputError
from official_transformer.exporting.huggingface_model import write_json
from official_transformer.model_params import EOS_ID, PAD_ID, UNK_ID
from official_transformer.storage import file_system
from official_transformer.text.sentencepiece_model import parse_model
from official_transformer.text.tokenizer import (
  FormedTokenizer,
  SentencePieceTokenizer,
  Tokenizer,
  plain_tokenizer,
)
from official_transformer.text.vocabulary_files import Tokenizers, VocabFiles

START = "<start>"
_UNIGRAM = 1  # What SentencePiece calls the kind of a model.
_BLANK = "\u2581"
_TOKENIZER = "tokenizer.json"


def check_vocabulary(tokenizer: Tokenizer) -> None:
  """Refuses a vocabulary that `tokenizers` cannot have exactly.

  Raises:
    InputError: with the reason.
  """
  if isinstance(tokenizer, FormedTokenizer):
    raise InputError(
      f"text is brought into a form before it is cut ({tokenizer.form}), which "
      "Hugging Face's tokenizers do otherwise; --export_format=saved_model or "
      "ctranslate2 takes this model"
    )
  if not isinstance(plain_tokenizer(tokenizer), SentencePieceTokenizer):
    raise InputError(
      "Hugging Face's tokenizers have nothing that cuts text as the official "
      "subtoken vocabularies do; --export_format=saved_model or ctranslate2 "
      "takes this model"
    )


def write_unigram(path: str, directory: str, start: int, longest: int) -> None:
  """Writes tokenizer.json and tokenizer_config.json.

  Args:
    path: of the SentencePiece model.
    directory: exists.
    start: the id that a decoder starts with: `START` if it is behind the
      vocabulary.
    longest: most tokens of a line.

  Raises:
    InputError: if it is no unigram model, or one with pieces for bytes.
  """
  from tokenizers import AddedToken, processors

  model = parse_model(path, file_system.read_bytes(path))
  _check_kind(path, model)
  pieces = [(piece.piece, piece.score) for piece in model.pieces]
  found = _unigram(model)
  eos = pieces[EOS_ID][0]
  found.post_processor = processors.TemplateProcessing(
    single=f"$A {eos}", pair=f"$A $B {eos}", special_tokens=[(eos, EOS_ID)]
  )
  added = [pieces[PAD_ID][0], eos]
  if start == len(pieces):
    added.append(START)
  found.add_special_tokens(
    [AddedToken(piece, special=True, normalized=False) for piece in added]
  )
  found.save(os.path.join(directory, _TOKENIZER))
  write_json(
    os.path.join(directory, "tokenizer_config.json"),
    {
      "tokenizer_class": "PreTrainedTokenizerFast",
      "pad_token": pieces[PAD_ID][0],
      "eos_token": eos,
      "unk_token": pieces[UNK_ID][0],
      **({"bos_token": START} if start == len(pieces) else {}),
      "model_max_length": longest,
      "padding_side": "right",
      "split_special_tokens": True,
      "clean_up_tokenization_spaces": False,
    },
  )


def _unigram(model: Any) -> Any:
  """Returns a tokenizer that cuts text as a SentencePiece model does."""
  from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
  )

  pieces = [(piece.piece, piece.score) for piece in model.pieces]
  found = Tokenizer(models.Unigram(pieces, UNK_ID, byte_fallback=False))
  known = {piece for piece, _ in pieces}
  special = [pieces[i][0] for i in (PAD_ID, EOS_ID, UNK_ID)]
  steps: list[Any] = []
  if table := model.normalizer_spec.precompiled_charsmap:
    steps.append(normalizers.Precompiled(table))
  if model.normalizer_spec.remove_extra_whitespaces:
    steps += [
      normalizers.Strip(),
      normalizers.Replace(Regex(" {2,}"), " "),
    ]
  if steps:
    found.normalizer = normalizers.Sequence(steps)
  scheme = "always" if model.normalizer_spec.add_dummy_prefix else "never"
  found.pre_tokenizer = pre_tokenizers.Sequence(
    [
      pre_tokenizers.Metaspace(prepend_scheme=scheme, split=False),
      # Text that looks like a special piece is none.
      pre_tokenizers.Split(
        Regex("|".join(_beginning(piece, known) for piece in special)),
        "merged_with_previous",
      ),
    ]
  )
  found.decoder = decoders.Metaspace(prepend_scheme=scheme, split=False)
  return found


def _beginning(piece: str, known: Container[str]) -> str:
  """Returns a pattern of a special piece's beginning, where all of it stands.

  It ends before a character that is a piece by itself: unknown characters that
  follow each other are one unknown piece, and stay together.
  """
  end = next((n for n in range(1, len(piece)) if piece[n] in known), 1)
  return f"{re.escape(piece[:end])}(?={re.escape(piece[end:])})"


def _check_kind(path: str, model: Any) -> None:
  """Refuses a SentencePiece model whose equal there is not here."""
  trainer = model.trainer_spec
  problems = []
  if trainer.model_type not in (0, _UNIGRAM):
    problems.append("it was not trained as a unigram model")
  if trainer.byte_fallback:
    problems.append("it spells unknown characters in bytes")
  if trainer.treat_whitespace_as_suffix:
    problems.append("blanks are at the ends of its pieces")
  if problems:
    raise InputError(
      f"{path} cannot be written for Hugging Face: {'; '.join(problems)}"
    )


def encode_with(directory: str, lines: list[str]) -> list[list[int]]:
  """Returns the ids that a written tokenizer.json cuts lines into."""
  from tokenizers import Tokenizer

  found = Tokenizer.from_file(os.path.join(directory, _TOKENIZER))
  # What tokenizer_config.json's split_special_tokens has transformers do.
  found.encode_special_tokens = True
  return [encoding.ids for encoding in found.encode_batch(lines)]


def write_marian(
  tokenizers: Tokenizers, files: VocabFiles, directory: str, longest: int
) -> None:
  """Writes source.spm, target.spm, and the numbers of their pieces."""
  for name, path in zip(("source", "target"), files, strict=True):
    file_system.copy(path, os.path.join(directory, f"{name}.spm"))
  numbers = [
    {tokenizer.pieces([i])[0]: i for i in range(tokenizer.vocab_size)}
    for tokenizer in (tokenizers.source, tokenizers.target)
  ]
  write_json(os.path.join(directory, "vocab.json"), numbers[0])
  is_apart = numbers[0] != numbers[1]
  if is_apart:
    write_json(os.path.join(directory, "target_vocab.json"), numbers[1])
  write_json(
    os.path.join(directory, "tokenizer_config.json"),
    {
      "tokenizer_class": "MarianTokenizer",
      "model_max_length": longest,
      "separate_vocabs": is_apart,
      "pad_token": tokenizers.source.pieces([PAD_ID])[0],
      "eos_token": tokenizers.source.pieces([EOS_ID])[0],
      "unk_token": tokenizers.source.pieces([UNK_ID])[0],
    },
  )
