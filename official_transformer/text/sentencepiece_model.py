"""What a SentencePiece model says beside its pieces, read and changed.

SentencePiece rewrites text by a rule of the model before it cuts it. Its
trainer's default is NFKC and more, which makes 1⁄2 of ½ and a half-width comma
of a full-width one, so that no translation has what the text has.
"""

from __future__ import annotations

import functools
import os
import tempfile
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
    **{"vocab_size": 4, "unk_id": 40, "bos_id": 41, "eos_id": 42},
    **{"pad_id": 43, "unk_surface": 44, "unk_piece": 45, "eos_piece": 47},
    "pad_piece": 48,
  },
  "Normalizer": {"name": 1, "normalization_rule_tsv": 6},
  "Model": {"pieces": 1, "trainer_spec": 2, "normalizer_spec": 3},
}
_MESSAGES = {
  "pieces": "Piece",
  "trainer_spec": "Trainer",
  "normalizer_spec": "Normalizer",
}
# The rule of vocabularies that are made here: of the characters, blanks of
# other kinds alone become another, which is the plain one.
BLANKS_RULE = "blanks"
# Rules that leave text as it is but for blanks.
_KEEPING = ("", "identity", BLANKS_RULE)
_OTHER_BLANKS = [
  code
  for code in range(0x3001)
  if chr(code).isspace() and chr(code) not in " \n"
]


@functools.cache
def _model_class() -> Any:
  """Returns the class of SentencePiece's models, as far as it is needed.

  What else a model has is kept. SentencePiece's own class goes with the newest
  protobuf alone, which others may not.
  """
  kinds = {"score": _FieldType.TYPE_FLOAT, "type": _FieldType.TYPE_INT32}
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
  pool = descriptor_pool.DescriptorPool()
  pool.Add(file)
  return message_factory.GetMessageClass(
    pool.FindMessageTypeByName("official_transformer.Model")
  )


def parse_model(path: str, content: bytes) -> Any:
  """Returns a model's protocol buffer.

  Args:
    path: of the model, for errors.
    content: of the file.

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
  """Returns the name of the rule by which a model rewrites text, if it does.

  Args:
    content: of the model's file.
  """
  name = parse_model("the vocabulary", content).normalizer_spec.name
  return None if name in _KEEPING else name


class BlanksRule:
  """Options of SentencePiece's trainer for a model that keeps characters.

  Attributes:
    path: of the rule, for `normalization_rule_tsv`; removed with the context.
  """

  def __enter__(self) -> BlanksRule:
    descriptor, self.path = tempfile.mkstemp(suffix=".tsv")
    with open(descriptor, "w", encoding="ascii") as stream:
      stream.writelines(f"{code:X}\t20\n" for code in _OTHER_BLANKS)
    return self

  def __exit__(self, *_: object) -> None:
    os.unlink(self.path)

  def without_path(self, content: bytes) -> bytes:
    """Returns a model that does not tell where the rule has been."""
    model = parse_model(self.path, content)
    model.normalizer_spec.ClearField("normalization_rule_tsv")
    model.normalizer_spec.name = BLANKS_RULE
    return serialize(model)
