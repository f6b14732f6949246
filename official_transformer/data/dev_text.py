"""Development data as lines of text again."""

from __future__ import annotations

from collections.abc import Iterator

import tensorflow as tf

from official_transformer.data.data_directory import (
  DEV_TAG,
  shard_paths,
)
from official_transformer.data.record_check import READ_ERRORS, parse_records
from official_transformer.errors import InputError
from official_transformer.text.tokenizer import Tokenizer


def dev_sources(data_dir: str, tokenizer: Tokenizer) -> Iterator[str]:
  """Yields the sources of the development data.

  Args:
    data_dir: as `prepare_data` or upstream made it.
    tokenizer: tokenizer of the vocabulary it was made with.

  Raises:
    InputError: if they cannot be read, or were made with another vocabulary.
  """
  for path in shard_paths(data_dir, DEV_TAG):
    try:
      for record in tf.data.TFRecordDataset(path).as_numpy_iterator():
        inputs, _ = parse_records(tf.constant([record]))
        ids = inputs.flat_values.numpy().tolist()[:-1]
        if max(ids, default=0) >= tokenizer.vocab_size:
          raise InputError(
            f"{path} has token {max(ids)}, the vocabulary "
            f"{tokenizer.vocab_size} entries: the model was trained with other "
            "data; name its own --data_dir, or pass --file"
          )
        yield tokenizer.decode(ids)
    except READ_ERRORS as error:
      reason = str(error).split("\n")[0]
      raise InputError(f"{path} cannot be read: {reason}") from None
