"""A directory of prepared data: TFRecord shards, vocabulary, data.json.

Shards are named `PREFIX-TAG-00001-of-00100`, with TAG `train` or `dev`, as
upstream names them, so that its data directories serve as they are.
"""

from __future__ import annotations

import glob
import json
import os
import re
from typing import Any

from absl import logging

from official_transformer.data.text_files import write_lines
from official_transformer.errors import InputError

DESCRIPTION_FILE = "data.json"
TRAIN_TAG = "train"
DEV_TAG = "dev"
HOW_TO_MAKE = (
  "python -m data_prep.prepare_data --train_source=... --train_target=... "
  "--data_dir=DIR"
)

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})$")


def shard_name(prefix: str, tag: str, number: int, count: int) -> str:
  """Returns the name of shard `number` of `count`, counted from 1."""
  return f"{prefix}-{tag}-{number:05d}-of-{count:05d}"


def is_shard(name: str, tag: str) -> bool:
  """Tells whether a file of this name is a whole shard of a tag."""
  return bool(re.search(rf"-{tag}{_SHARD.pattern}", name))


def _found_shards(data_dir: str, tag: str) -> list[str]:
  """Returns the paths of a tag's shards that are there, sorted."""
  return [
    path
    for path in sorted(glob.glob(os.path.join(glob.escape(data_dir), "*")))
    if is_shard(path, tag)
  ]


def has_shards(data_dir: str, tag: str) -> bool:
  """Tells whether there are any shards of a tag."""
  return bool(_found_shards(data_dir, tag))


def shard_paths(
  data_dir: str, tag: str, may_lack_some: bool = False
) -> list[str]:
  """Returns the paths of a tag's shards, sorted.

  Args:
    data_dir: the prepared data.
    tag: `TRAIN_TAG` or `DEV_TAG`.
    may_lack_some: whether a missing shard is reported only.

  Raises:
    InputError: where there is none, or where one is missing.
  """
  found = _found_shards(data_dir, tag)
  if not found:
    raise InputError(
      f"no *{tag}*-of-* files in --data_dir={data_dir}. Make them with: "
      + HOW_TO_MAKE
    )
  missing = missing_shards(data_dir, tag)
  if missing and may_lack_some:
    logging.warning("missing, and left out: %s", ", ".join(missing))
  elif missing:
    raise InputError(
      f"{data_dir} lacks {len(missing)} of its {tag} shards, {missing[0]} "
      "among them; prepare the data again, or do without with "
      "--skip_bad_records"
    )
  return found


def missing_shards(data_dir: str, tag: str) -> list[str]:
  """Returns the shards that must exist by what the others' names say."""
  found = _found_shards(data_dir, tag)
  missing = []
  for path in found:
    stem, count = _SHARD.sub("", path), int(path[-5:])
    missing += [
      name
      for name in (f"{stem}-{n + 1:05d}-of-{count:05d}" for n in range(count))
      if name not in found
    ]
  return sorted(set(missing))


def read_description(data_dir: str) -> dict[str, Any] | None:
  """Returns what data.json says, or None where upstream made the directory.

  Raises:
    InputError: where data.json cannot be read.
  """
  path = os.path.join(data_dir, DESCRIPTION_FILE)
  if not os.path.exists(path):
    return None
  try:
    with open(path, encoding="utf-8") as stream:
      description = json.load(stream)
    # What readers of the description rely on.
    for key in ("file", "sha256"):
      description["vocabulary"][key].lower()
    description[TRAIN_TAG]["length_histogram"].items()
  except (ValueError, KeyError, TypeError, AttributeError) as error:
    raise InputError(
      f"{path} is damaged ({error!r}); prepare the data again"
    ) from None
  return description


def write_description(data_dir: str, description: dict[str, Any]) -> None:
  """Writes data.json."""
  text = json.dumps(description, indent=2, ensure_ascii=False)
  write_lines(os.path.join(data_dir, DESCRIPTION_FILE), text.split("\n"))


def find_vocabulary(data_dir: str) -> str:
  """Returns the path of the vocabulary that data.json names.

  Raises:
    InputError: where it names none that exists.
  """
  description = read_description(data_dir)
  if description is None:
    raise InputError(
      f"no {DESCRIPTION_FILE} in --data_dir={data_dir}, which would name the "
      "vocabulary. Pass --vocab_file, or make the data with: " + HOW_TO_MAKE
    )
  path = os.path.join(data_dir, description["vocabulary"]["file"])
  if not os.path.exists(path):
    raise InputError(
      f"{data_dir}/{DESCRIPTION_FILE} names the vocabulary {path}, which is "
      "not there; prepare the data again or pass --vocab_file"
    )
  return path
