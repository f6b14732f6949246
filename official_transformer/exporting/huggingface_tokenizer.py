"""A vocabulary as Hugging Face's `tokenizers` have it.

A unigram SentencePiece model (Kudo 2018) has its equal there: the same pieces
and scores, the same table of characters to replace. Marian's tokenizer has the
SentencePiece models themselves, and numbers of pieces in a file of its own.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Container
from typing import Any

import sentencepiece

from official_transformer.errors import InputError
from official_transformer.exporting.huggingface_model import write_json
from official_transformer.importing.huggingface_names import PEGASUS
from official_transformer.model_params import EOS_ID, PAD_ID, UNK_ID
from official_transformer.storage import file_system
from official_transformer.text.sentencepiece_model import parse_model, serialize
from official_transformer.text.tokenizer import (
  FormedTokenizer,
  SentencePieceTokenizer,
  Tokenizer,
  plain_tokenizer,
)
from official_transformer.text.vocabulary_files import Tokenizers, VocabFiles

START = "<start>"
_SPACE = "\u2581"  # As SentencePiece writes a blank.
# A language to translate to, as a piece of ours and as one of Marian's.
_LANGUAGE = re.compile("^\u2581(>>[^<>\\s]+<<)$")
_CODE = re.compile(r">>.+?<<")
_UNUSED = 5  # SentencePiece's type for pieces that are never used in text.
_UNIGRAM = 1  # SentencePiece's number for unigram models.
_TOKENIZER = "tokenizer.json"


def check_vocabulary(tokenizer: Tokenizer, path: str, kind: str) -> None:
  """Refuses a vocabulary that Hugging Face's tokenizers cannot have exactly.

  Args:
    tokenizer: tokenizer of the vocabulary.
    path: path of the vocabulary.
    kind: kind of the model, `PEGASUS` or `MARIAN`.

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
      "subtoken vocabularies do, or as Moses' rules for words; "
      "--export_format=saved_model or ctranslate2 takes this model"
    )
  if kind == PEGASUS:
    _check_kind(path, parse_model(path, file_system.read_bytes(path)))


def write_unigram(path: str, directory: str, start: int, longest: int) -> None:
  """Writes tokenizer.json and tokenizer_config.json.

  Args:
    path: path of the SentencePiece model.
    directory: exists.
    start: the id that a decoder starts with: `START` if it is behind the
      vocabulary.
    longest: most tokens of a line.
  """
  from tokenizers import AddedToken, processors

  model = parse_model(path, file_system.read_bytes(path))
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
      "pad_token": START if start == len(pieces) else pieces[PAD_ID][0],
      "eos_token": eos,
      "model_input_names": ["input_ids", "attention_mask"],
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
      # A line may hold the sign itself.
      normalizers.Replace(Regex(f"[ {_SPACE}]+$"), ""),
    ]
  if model.normalizer_spec.add_dummy_prefix:
    steps.append(normalizers.Prepend(_SPACE))
  found.normalizer = normalizers.Sequence(steps)
  scheme = "always" if model.normalizer_spec.add_dummy_prefix else "never"
  found.pre_tokenizer = pre_tokenizers.Sequence(
    [
      pre_tokenizers.Metaspace(prepend_scheme="never", split=False),
      # Text that looks like a special piece is ordinary text.
      pre_tokenizers.Split(
        Regex("|".join(_beginning(piece, known) for piece in special)),
        "merged_with_previous",
      ),
    ]
  )
  found.decoder = decoders.Sequence(
    [
      decoders.Replace(special[2], model.trainer_spec.unk_surface),
      decoders.Metaspace(prepend_scheme=scheme, split=False),
    ]
  )
  return found


def _beginning(piece: str, known: Container[str]) -> str:
  """Returns a pattern of a special piece's beginning, if the rest follows.

  Text that contains `</s>` is cut inside it, for example before its `s`, so
  that the special piece is not found in text. The cut is before a character
  that is a piece by itself: adjacent unknown characters are one unknown piece,
  and must not be separated.
  """
  end = next((n for n in range(1, len(piece)) if piece[n] in known), 1)
  return f"{re.escape(piece[:end])}(?={re.escape(piece[end:])})"


def _check_kind(path: str, model: Any) -> None:
  """Refuses a SentencePiece model that Hugging Face's cannot reproduce."""
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
  # The effect of split_special_tokens in tokenizer_config.json.
  found.encode_special_tokens = True
  return [encoding.ids for encoding in found.encode_batch(lines)]


def decode_with(directory: str, rows: list[list[int]]) -> list[str]:
  """Returns the text that a written tokenizer.json makes of ids."""
  from tokenizers import Tokenizer

  found = Tokenizer.from_file(os.path.join(directory, _TOKENIZER))
  return found.decode_batch(rows)


def write_marian(
  tokenizers: Tokenizers, files: VocabFiles, directory: str, longest: int
) -> None:
  """Writes source.spm, target.spm, and the numbers of their pieces."""
  numbers = []
  for name, path in zip(("source", "target"), files, strict=True):
    model = parse_model(path, file_system.read_bytes(path))
    for piece in model.pieces:
      # Marian's tokenizer takes a language off the text before it is cut.
      if language := _LANGUAGE.match(piece.piece):
        piece.piece, piece.type = language[1], _UNUSED
    with open(os.path.join(directory, f"{name}.spm"), "wb") as stream:
      stream.write(serialize(model))
    numbers.append({piece.piece: i for i, piece in enumerate(model.pieces)})
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
      "split_special_tokens": True,
      "pad_token": tokenizers.source.pieces([PAD_ID])[0],
      "eos_token": tokenizers.source.pieces([EOS_ID])[0],
      "unk_token": tokenizers.source.pieces([UNK_ID])[0],
    },
  )


def encode_marian(
  directory: str, side: str, lines: list[str]
) -> list[list[int]]:
  """Returns the ids that Marian's tokenizer cuts lines into.

  Args:
    directory: as `write_marian` has written it.
    side: `source` or `target`.
    lines: text.
  """
  path = os.path.join(directory, f"{side}.spm")
  processor = sentencepiece.SentencePieceProcessor(model_file=path)
  own = os.path.join(directory, "target_vocab.json")
  has_own = side == "target" and os.path.exists(own)
  name = own if has_own else os.path.join(directory, "vocab.json")
  with open(name, encoding="utf-8") as stream:
    numbers = json.load(stream)
  found = []
  for line in lines:
    language = _CODE.match(line)
    pieces = [language[0]] if language else []
    rest = line[language.end() :] if language else line
    pieces += processor.encode(rest, out_type=str)
    ids = [numbers.get(piece, UNK_ID) for piece in pieces]
    found.append([*ids, EOS_ID])
  return found
