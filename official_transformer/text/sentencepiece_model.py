"""Reading and changing a SentencePiece model's settings beside its pieces.

SentencePiece rewrites text by a rule of the model before it cuts it. Its
trainer's default is NFKC and more, which turns full-width punctuation into
plain punctuation, so that no translation has it.
"""

from __future__ import annotations

import functools
import os
import sys
import tempfile
import unicodedata
from collections.abc import Container
from typing import Any

from google.protobuf import (
  descriptor_pb2,
  descriptor_pool,
  message_factory,
)
from google.protobuf.message import DecodeError

from official_transformer.errors import InputError

_FieldType = descriptor_pb2.FieldDescriptorProto
# The fields of its protocol buffers that are read or changed, by their numbers.
_FIELDS = {
  "Piece": {"piece": 1, "score": 2, "type": 3},
  "Trainer": {
    **{"model_type": 3, "treat_whitespace_as_suffix": 24, "byte_fallback": 35},
    **{"vocab_size": 4, "unk_id": 40, "bos_id": 41, "eos_id": 42},
    **{"pad_id": 43, "unk_surface": 44, "unk_piece": 45, "eos_piece": 47},
    "pad_piece": 48,
  },
  "Normalizer": {
    **{"name": 1, "precompiled_charsmap": 2, "add_dummy_prefix": 3},
    **{"remove_extra_whitespaces": 4, "normalization_rule_tsv": 6},
  },
  "Model": {"pieces": 1, "trainer_spec": 2, "normalizer_spec": 3},
}
_MESSAGES = {
  "pieces": "Piece",
  "trainer_spec": "Trainer",
  "normalizer_spec": "Normalizer",
}
# Values of fields that a model does not set.
_DEFAULTS = {
  "unk_surface": " \u2047 ",
  "treat_whitespace_as_suffix": "false",
  "byte_fallback": "false",
  "add_dummy_prefix": "true",
  "remove_extra_whitespaces": "true",
}
_FLAGS = frozenset(_DEFAULTS) - {"unk_surface"}
# The rule of vocabularies that are made here, see `RuleFile`.
RULE_NAME = "keep_training_text"
# Rules that do not change the training text.
_KEEPING = ("", "identity", RULE_NAME)
# Warning for a vocabulary whose rules change text.
REWRITES = (
  "rewrites text by SentencePiece's rule {}, whatever --normalize says: full-"
  "width forms and fractions, for example, become plain ones, and no "
  "translation has them"
)
# Replacement character of earlier conversions that failed.
_UNREADABLE = "\ufffd"
# Soft hyphens, blanks without width, marks of direction, byte order marks. The
# zero-width joiner and non-joiner are not here, because some scripts need them
# for spelling.
_INVISIBLE = frozenset(
  map(
    chr,
    (
      *(0xAD, 0x200B, 0x200E, 0x200F, 0x2060, 0xFEFF),
      *range(0x202A, 0x202F),
      *range(0x2066, 0x206A),
    ),
  )
)


@functools.cache
def _model_class() -> Any:
  """Returns a class for SentencePiece's model files, with the fields read here.

  Other fields of a model are kept. SentencePiece's own class requires the
  newest protobuf, which other packages may not allow.
  """
  kinds = {
    "score": _FieldType.TYPE_FLOAT,
    "type": _FieldType.TYPE_INT32,
    "model_type": _FieldType.TYPE_INT32,
    "precompiled_charsmap": _FieldType.TYPE_BYTES,
    **dict.fromkeys(_FLAGS, _FieldType.TYPE_BOOL),
  }
  file = descriptor_pb2.FileDescriptorProto(
    name="official_transformer/sentencepiece.proto",
    package="official_transformer",
    syntax="proto2",
  )
  for name, fields in _FIELDS.items():
    message = file.message_type.add(name=name)
    for field, number in fields.items():
      new = message.field.add(name=field, number=number)
      new.label = (
        new.LABEL_REPEATED if field == "pieces" else new.LABEL_OPTIONAL
      )
      if field in _MESSAGES:
        new.type = _FieldType.TYPE_MESSAGE
        new.type_name = f".official_transformer.{_MESSAGES[field]}"
      elif field.endswith(("_id", "_size")):
        new.type = _FieldType.TYPE_INT32
      else:
        new.type = kinds.get(field, _FieldType.TYPE_STRING)
      if field in _DEFAULTS:
        new.default_value = _DEFAULTS[field]
  pool = descriptor_pool.DescriptorPool()
  pool.Add(file)
  return message_factory.GetMessageClass(
    pool.FindMessageTypeByName("official_transformer.Model")
  )


def parse_model(path: str, content: bytes) -> Any:
  """Returns a model's protocol buffer.

  Args:
    path: path of the model, for errors.
    content: content of the file.

  Raises:
    InputError: if it is none.
  """
  model = _model_class()()
  try:
    model.ParseFromString(content)
  except DecodeError as error:
    raise InputError(f"{path} is no SentencePiece model ({error})") from None
  return model


def serialize(model: Any) -> bytes:
  """Returns the content of a model's file; equal models have equal ones."""
  return bytes(model.SerializeToString(deterministic=True))


def rewriting_rule(content: bytes) -> str | None:
  """Returns the name of the rule by which a vocabulary rewrites text, if any.

  Args:
    content: content of the vocabulary's file, of any kind.
  """
  # Only a SentencePiece model, whose first field has this tag, rewrites text.
  if not content.startswith(b"\n"):
    return None
  name = parse_model("the vocabulary", content).normalizer_spec.name
  return None if name in _KEEPING else name


class RuleFile:
  """A rule that keeps the characters of a text; a context.

  Characters of the text are kept, except for other kinds of blanks (tabs,
  non-breaking ones), which become plain ones, and for controls and invisible
  characters (blanks without width, marks of direction), which are left out. A
  character that the text does not have would be unknown to the model: it
  becomes its compatibility form (NFKC), if the text has that. Letters with
  separate accents are composed.

  Attributes:
    path: path of the file, for `normalization_rule_tsv`; removed with the
      context.
  """

  def __init__(self, characters: Container[str]) -> None:
    """Takes the characters of the text."""
    self._characters = characters

  def __enter__(self) -> RuleFile:
    descriptor, self.path = tempfile.mkstemp(suffix=".tsv")
    with open(descriptor, "w", encoding="ascii") as stream:
      for old, new in keeping_rule(self._characters).items():
        sides = (" ".join(f"{ord(c):X}" for c in side) for side in (old, new))
        stream.write("\t".join(sides) + "\n")
    return self

  def __exit__(self, *_: object) -> None:
    os.unlink(self.path)

  def without_path(self, content: bytes) -> bytes:
    """Returns a model without the path of the rule file."""
    model = parse_model(self.path, content)
    model.normalizer_spec.ClearField("normalization_rule_tsv")
    model.normalizer_spec.name = RULE_NAME
    return serialize(model)


def keeping_rule(characters: Container[str]) -> dict[str, str]:
  """Returns the characters that `RuleFile` replaces, and their replacements.

  Args:
    characters: characters of the text.
  """
  rule = {}
  for character in _special_characters():
    category = unicodedata.category(character)
    if character.isspace() or character == _UNREADABLE:
      rule[character] = " "
    elif category == "Cc" or character in _INVISIBLE:
      rule[character] = ""
    elif character not in characters:
      plain = unicodedata.normalize("NFKC", character)
      if category == "Cf":
        rule[character] = ""
      elif plain != character and all(
        c in characters or c.isspace() for c in plain
      ):
        rule[character] = plain
    else:
      apart = unicodedata.normalize("NFD", character)
      if len(apart) > 1 and apart[-1] not in characters:
        rule[apart] = character
  return rule


@functools.cache
def _special_characters() -> list[str]:
  """Returns all characters that a rule may replace in any text."""
  found = []
  for character in map(chr, range(sys.maxunicode + 1)):
    category = unicodedata.category(character)
    # A surrogate, an unassigned code point, or one that SentencePiece cannot
    # replace.
    if category in ("Cs", "Cn") or character in "\0 \n":
      continue
    if (
      category in ("Cc", "Cf")
      or character.isspace()
      or character == _UNREADABLE
      or not unicodedata.is_normalized("NFKC", character)
      or not unicodedata.is_normalized("NFD", character)
    ):
      found.append(character)
  return found
