"""Checking prepared data: records, ids, lengths, and the text behind them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from data_prep.checking.data_report import Report
from data_prep.checking.raw_check import ratios, report_lengths, show_worst
from official_transformer.data.data_directory import (
  DESCRIPTION_FILE,
  DEV_TAG,
  TRAIN_TAG,
  DataDescription,
  DataDirectory,
  has_shards,
  shard_paths,
)
from official_transformer.data.prepared_data import (
  read_dev_shards,
  read_prepared_data,
)
from official_transformer.data.record_check import parse_records
from official_transformer.errors import InputError
from official_transformer.model_params import UNK_ID
from official_transformer.text.sentencepiece_model import (
  REWRITES,
  rewriting_rule,
)
from official_transformer.text.tokenizer import (
  Tokenizer,
  has_unknown,
)
from official_transformer.text.vocabulary_files import (
  Tokenizers,
  load_vocabularies,
)

_AT_ONCE = 4096
_HASHES = 2**63 - 1


def check_prepared(data_dir: str, report: Report) -> None:
  """Checks a data directory.

  Args:
    data_dir: as `prepare_data` made it.
    report: receives the results.

  Raises:
    InputError: if there is no data.json.
  """
  data = DataDirectory(data_dir)
  vocabularies = load_vocabularies(data.vocab_files())  # Or no data.json.
  description = data.description
  assert description
  report.title(f"{data_dir}: {description.vocabularies}")
  report.say(f"text: {description.form}")
  for path, content in vocabularies.contents.items():
    if rule := rewriting_rule(content):
      report.say(f"{path} {REWRITES.format(rule)}")
  if not vocabularies.identity.are_as(description.vocabularies):
    report.problem(
      f"{vocabularies.files} is not the vocabulary that {DESCRIPTION_FILE} "
      f"describes, {description.vocabularies}: prepare the data again, or copy "
      "it again"
    )
  sizes = description.vocabularies.sizes
  # Each by itself: an error of the one must not hide another of the other.
  with _reported(report):
    read_prepared_data(data_dir, sizes, with_dev=False, description=description)
  if has_shards(data_dir, DEV_TAG):
    with _reported(report):
      read_dev_shards(data_dir, sizes, description)
  for tag in (TRAIN_TAG, DEV_TAG):
    if has_shards(data_dir, tag):
      _check_tag(data_dir, tag, description, vocabularies.tokenizers, report)


@contextlib.contextmanager
def _reported(report: Report) -> Iterator[None]:
  """Reports an error of the body as a problem."""
  try:
    yield
  except InputError as error:
    report.problem(str(error))


def _check_tag(
  data_dir: str,
  tag: str,
  description: DataDescription,
  tokenizers: Tokenizers,
  report: Report,
) -> None:
  """Reports on the shards of a tag."""
  try:
    paths = shard_paths(data_dir, tag)
  except InputError:
    return  # It has been reported.
  lengths, unknown, seen = [], [0, 0], []
  for records in _read(paths):
    ids = parse_records(records)
    seen.append(tf.strings.to_hash_bucket_fast(records, _HASHES).numpy())
    lengths.append(np.stack([side.row_lengths() for side in ids], axis=1))
    for side, rows in enumerate(ids):
      unknown[side] += int((rows.values.numpy() == UNK_ID).sum())
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
    if has_unknown(tokenizers[side], [UNK_ID]):
      said += f", of which <unk> {unknown[side] / max(tokens, 1):.4%}"
    report.say(said)
  different = len(np.unique(np.concatenate(seen)))
  report.say(f"pairs that have come before: {len(everything) - different}")
  if tag == TRAIN_TAG:
    each = dict.fromkeys(description.vocabularies.sizes)
    sizes = " and ".join(map(str, each))
    report_lengths(report, everything, f"{sizes} entries")
    _show(paths, everything, tokenizers, report)


def _read(paths: list[str]) -> Iterator[tf.Tensor]:
  """Yields records, string [B], as far as they can be read."""
  for path in paths:
    try:
      for batch in tf.data.TFRecordDataset(path).batch(_AT_ONCE):
        parse_records(batch)  # Raises an error for a record that is no pair.
        yield batch
    except (tf.errors.OpError, UnicodeDecodeError):
      continue  # It has been reported.


def _show(
  paths: list[str], lengths: np.ndarray, tokenizers: Tokenizers, report: Report
) -> None:
  """Shows the worst pairs as text."""
  worst = {
    int(n)
    for values in (ratios(lengths), lengths.max(1))
    for n in np.argsort(-values, kind="stable")[: report.worst]
  }
  kept, first = {}, 0
  for records in _read(paths):
    ids = parse_records(records)
    for number in worst & set(range(first, first + len(records))):
      kept[number] = tuple(
        _text(tokenizer, side[number - first].numpy().tolist()[:-1])
        for tokenizer, side in zip(tokenizers, ids, strict=True)
      )
    first += len(records)
  order = sorted(kept)
  show_worst(
    report,
    lengths[order],
    [kept[n][0] for n in order],
    [kept[n][1] for n in order],
  )


def _text(tokenizer: Tokenizer, ids: list[int]) -> str:
  """Returns the text of ids, some of which the vocabulary may not have."""
  known = [i for i in ids if 0 <= i < tokenizer.vocab_size]
  unknown = len(ids) - len(known)
  return tokenizer.decode(known) + f" (and {unknown} unknown ids)" * (
    unknown > 0
  )
