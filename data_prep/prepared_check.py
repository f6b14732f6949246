"""Checking prepared data: records, ids, lengths, and the text behind them."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import tensorflow as tf

from data_prep.data_report import Report
from data_prep.raw_check import report_lengths, show_worst
from official_transformer.data.data_directory import (
  DEV_TAG,
  TRAIN_TAG,
  DataDescription,
  find_vocabularies,
  has_shards,
  read_description,
  shard_paths,
)
from official_transformer.data.prepared_data import read_prepared_data
from official_transformer.data.record_check import parse_records
from official_transformer.data.tokenizer import (
  UNK_ID,
  SentencePieceTokenizer,
  plain_tokenizer,
)
from official_transformer.data.vocabulary_files import (
  Tokenizers,
  load_tokenizers,
)
from official_transformer.errors import InputError

_AT_ONCE = 4096


def check_prepared(data_dir: str, report: Report) -> None:
  """Checks a data directory.

  Args:
    data_dir: as `prepare_data` made it.
    report: gets what is found.

  Raises:
    InputError: if there is no data.json.
  """
  files = find_vocabularies(data_dir)  # Raises if there is no data.json.
  description = read_description(data_dir)
  assert description
  tokenizers = load_tokenizers(files)
  report.title(f"{data_dir}: {description.vocabularies}")
  report.say(f"text: {description.form}")
  try:
    read_prepared_data(
      data_dir,
      description.vocabularies.sizes,
      with_dev=has_shards(data_dir, DEV_TAG),
    )
  except InputError as error:
    report.problem(str(error))
  for tag in (TRAIN_TAG, DEV_TAG):
    if has_shards(data_dir, tag):
      _check_tag(data_dir, tag, description, tokenizers, report)


def _check_tag(
  data_dir: str,
  tag: str,
  description: DataDescription,
  tokenizers: Tokenizers,
  report: Report,
) -> None:
  """Tells what the shards of a tag hold."""
  try:
    paths = shard_paths(data_dir, tag)
  except InputError:
    return  # It has been told.
  lengths, unknown, seen = [], [0, 0], collections.Counter[int]()
  for ids in _read(paths):
    lengths.append(np.stack([side.row_lengths() for side in ids], axis=1))
    for side, rows in enumerate(ids):
      unknown[side] += int((rows.values.numpy() == UNK_ID).sum())
    seen.update(_hashes(ids))
  everything = np.concatenate([np.zeros((0, 2), np.int64), *lengths])
  report.title(f"{tag}: {len(everything)} pairs in {len(paths)} shards")
  part = description.train if tag == TRAIN_TAG else description.dev
  if part and part.dropped:
    dropped = ", ".join(f"{n} {why}" for why, n in part.dropped.items())
    report.say(f"left out when they were prepared: {dropped}")
  if not len(everything):
    return
  for side, name in enumerate(("source", "target")):
    tokens = int(everything[:, side].sum())
    said = f"{name}: {tokens} tokens"
    if isinstance(plain_tokenizer(tokenizers[side]), SentencePieceTokenizer):
      said += f", of which <unk> {unknown[side] / max(tokens, 1):.4%}"
    report.say(said)
  report.say(f"pairs that have come before: {len(everything) - len(seen)}")
  if tag == TRAIN_TAG:
    different = dict.fromkeys(description.vocabularies.sizes)
    sizes = " and ".join(map(str, different))
    report_lengths(report, everything, f"{sizes} entries")
    _show(paths, everything, tokenizers, report)


def _read(paths: list[str]) -> Any:
  """Yields the ids of both sides, ragged [B, (L)], as far as can be read."""
  for path in paths:
    try:
      for batch in tf.data.TFRecordDataset(path).batch(_AT_ONCE):
        yield parse_records(batch)
    except (tf.errors.OpError, UnicodeDecodeError):
      return  # It has been told.


def _hashes(ids: list[Any]) -> list[int]:
  """Returns what equal pairs have in common."""
  rows = zip(*(side.to_list() for side in ids), strict=True)
  return [hash((tuple(a), tuple(b))) for a, b in rows]


def _show(
  paths: list[str], lengths: np.ndarray, tokenizers: Tokenizers, report: Report
) -> None:
  """Shows the worst pairs as text."""
  tokens = np.maximum(lengths - 1, 1)
  ratio = tokens.max(1) / tokens.min(1)
  worst = {
    int(n)
    for values in (ratio, lengths.max(1))
    for n in np.argsort(-values, kind="stable")[: report.worst]
  }
  kept, first = {}, 0
  for ids in _read(paths):
    count = ids[0].nrows().numpy()
    for number in worst & set(range(first, first + count)):
      kept[number] = tuple(
        tokenizer.decode(side[number - first].numpy().tolist()[:-1])
        for tokenizer, side in zip(tokenizers, ids, strict=True)
      )
    first += count
  order = sorted(kept)
  show_worst(
    report,
    lengths[order],
    [kept[n][0] for n in order],
    [kept[n][1] for n in order],
  )
