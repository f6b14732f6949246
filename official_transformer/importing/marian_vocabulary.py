"""The vocabularies of a Hugging Face Marian model, as SentencePiece models.

Such a model cuts text by one SentencePiece model for each side, and numbers the
pieces of both in its own JSON file. Here each side's model is rewritten with
these numbers: PAD, EOS and the unknown piece first, the others in their order.
Pieces of the other side only are never used for cutting.
"""

from __future__ import annotations

import dataclasses
import os
import re

import numpy as np

from official_transformer.errors import InputError
from official_transformer.importing.huggingface_files import read_json
from official_transformer.model_params import EOS_ID, PAD_ID, UNK_ID
from official_transformer.storage import file_system
from official_transformer.text.sentencepiece_model import (
  parse_model,
  serialize,
)
from official_transformer.text.tokenizer import (
  NO_ID,
  SentencePieceTokenizer,
)

_BLANK = "\u2581"
# SentencePiece's types of pieces.
_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6
# Chooses the language that a multilingual model translates to.
_LANGUAGE = re.compile(r">>[^<>\s]+<<")


@dataclasses.dataclass(frozen=True)
class MarianVocabulary:
  """The ids of one side, and its SentencePiece model.

  Attributes:
    pieces: pieces by Marian's id.
    order: int64 [V], Marian's id of each of ours.
    model: SentencePiece's own, serialised, with our ids.
  """

  pieces: list[str]
  order: np.ndarray
  model: bytes


def read_vocabulary(directory: str, side: str) -> MarianVocabulary:
  """Reads one side's vocabulary.

  Args:
    directory: as `save_pretrained` writes it.
    side: `source` or `target`.

  Raises:
    InputError: if a file is missing, or has unexpected content.
  """
  own = os.path.join(directory, "target_vocab.json")
  name = "vocab.json"
  if side == "target" and file_system.exists(own):
    name = "target_vocab.json"
  pieces = _read_pieces(os.path.join(directory, name))
  ids = {piece: i for i, piece in enumerate(pieces)}
  special = ("<pad>", "</s>", "<unk>")
  if missing := [piece for piece in special if piece not in ids]:
    raise InputError(
      f"{os.path.join(directory, name)} lacks {', '.join(missing)}: it is no "
      "Marian vocabulary"
    )
  first = [ids[piece] for piece in special]
  rest = [i for i in range(len(pieces)) if i not in first]
  order = np.array([*first, *rest])
  model = _renumbered(directory, side, [pieces[i] for i in order])
  return MarianVocabulary(pieces, order, model)


def _read_pieces(path: str) -> list[str]:
  """Returns the pieces of a JSON vocabulary, by their ids."""
  content = read_json(path)
  ids = list(content.values()) if isinstance(content, dict) else []
  are_numbers = all(type(number) is int for number in ids)
  if not ids or not are_numbers or sorted(ids) != list(range(len(ids))):
    raise InputError(
      f"{path} does not number its pieces from 0: it is no Marian vocabulary"
    )
  for piece in content:
    if not piece or "\0" in piece or not is_text(piece):
      raise InputError(f"{path} has the piece {piece!r:.50}, which is no text")
  return sorted(content, key=content.__getitem__)


def _renumbered(directory: str, side: str, pieces: list[str]) -> bytes:
  """Returns a SentencePiece model with other ids.

  Args:
    directory: where it is.
    side: `source` or `target`.
    pieces: pieces by the new ids.

  Raises:
    InputError: if it cannot be read.
  """
  path = os.path.join(directory, f"{side}.spm")
  try:
    content = file_system.read_bytes(path)
  except OSError as error:
    raise InputError(
      f"{path} cannot be read ({error}); it belongs to the model as "
      "config.json does"
    ) from None
  model = parse_model(path, content)
  if not model.pieces:
    raise InputError(f"{path} has no pieces: it is no SentencePiece model")
  known = {piece.piece: piece for piece in model.pieces}
  # A user-defined or byte piece stands for text that no other piece can encode.
  given = set(pieces)
  if lost := [
    piece
    for piece, one in known.items()
    if one.type in (_USER_DEFINED, _BYTE) and piece not in given
  ]:
    raise InputError(
      f"{path} has {len(lost)} user-defined or byte pieces that the vocabulary "
      f"does not number, such as {lost[0]}: text that holds them could not be "
      "encoded"
    )
  special = {PAD_ID: _CONTROL, EOS_ID: _CONTROL, UNK_ID: _UNKNOWN}
  del model.pieces[:]
  for number, piece in enumerate(pieces):
    new = model.pieces.add(piece=piece, score=0.0)
    if number in special:
      new.type = special[number]
    elif side == "source" and _LANGUAGE.fullmatch(piece):
      # Marian removes it from the text, and the rest begins with a blank.
      new.piece, new.type = _BLANK + piece, _USER_DEFINED
    elif piece in known and known[piece].type in (0, _NORMAL):
      new.score = known[piece].score
    elif piece in known and known[piece].type in (_USER_DEFINED, _BYTE):
      new.score, new.type = known[piece].score, known[piece].type
    else:
      new.type = _UNUSED
  spec = model.trainer_spec
  spec.pad_id, spec.eos_id, spec.unk_id = PAD_ID, EOS_ID, UNK_ID
  spec.bos_id = NO_ID
  spec.unk_surface = ""  # Marian writes unknown pieces as an empty text.
  spec.pad_piece, spec.eos_piece, spec.unk_piece = pieces[:3]
  spec.vocab_size = len(pieces)
  made = serialize(model)
  # Now, and with its name: it will be written elsewhere.
  SentencePieceTokenizer(f"{path}, with the vocabulary's numbers,", made)
  return made


def is_text(piece: str) -> bool:
  """Returns whether a string has no half of a surrogate pair."""
  try:
    piece.encode("utf-8")
  except UnicodeEncodeError:
    return False
  return True
