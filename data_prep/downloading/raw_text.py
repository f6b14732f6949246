"""The text of known corpora: downloaded, taken out of archives, split."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

import numpy as np
from absl import logging

from data_prep.downloading.archives import extract
from data_prep.downloading.downloads import (
  RemoteFile,
  checksum,
  difference,
  download,
)
from data_prep.downloading.sources import Bitext, TextFile
from data_prep.encoding.shuffle import shuffle_keys
from data_prep.reading.corpora import Corpus
from official_transformer.errors import RunError
from official_transformer.storage.durable_files import new_file
from official_transformer.text.text_files import (
  read_lines,
  read_parallel,
  write_lines,
)

_SEED = 1


class RawText:
  """A directory of downloads and of the text in them.

  Attributes:
    directory: path of the directory.
    at_hand: where downloads are looked for first; None is nowhere.
  """

  def __init__(self, directory: str, at_hand: str | None = None) -> None:
    self.directory = directory
    self.at_hand = at_hand

  def find(
    self, parts: Sequence[Bitext], directory: str | None = None
  ) -> Corpus:
    """Returns text that exists, or is downloaded now.

    Args:
      parts: parts of the corpus.
      directory: where the text belongs; None is `self.directory`.

    Raises:
      RunError: if a file is not to be had.
      OSError: if the system refuses.
    """
    directory = directory or self.directory
    sources, targets = [], []
    for part in parts:
      source = self._text(part.source, directory)
      if part.columns:
        source, target = _columns(source, part.columns)
      else:
        target = self._text(part.target, directory)
      sources.append(source)
      targets.append(target)
    return Corpus(sources, targets)

  def _text(self, text: TextFile, directory: str) -> str:
    """Returns the path of a text file."""
    path = os.path.join(directory, text.plain_name)
    if os.path.exists(path):
      logging.info("%s is there", path)
    else:
      path = extract(self._archive(text.download), text.name, directory)
    if text.md5 and (found := checksum(path, "md5")) != text.md5:
      raise RunError(
        f"{path} is not the expected file: its md5 is {found}, not "
        f"{text.md5}; remove it and the download it came from, "
        f"{text.download.name}"
      )
    return path

  def _archive(self, file: RemoteFile) -> str:
    """Returns the path of a download; one at hand is copied."""
    path = os.path.join(self.directory, file.name)
    at_hand = os.path.join(self.at_hand or "", file.name)
    if self.at_hand and os.path.exists(at_hand) and not os.path.exists(path):
      if problem := difference(at_hand, file):
        raise RunError(f"{at_hand} is not the expected file: {problem}")
      with new_file(path) as aside:
        shutil.copyfile(at_hand, aside)
    return download(file, self.directory)


def _columns(path: str, columns: tuple[int, int]) -> tuple[str, str]:
  """Returns two files of the columns of one, line by line."""
  paths = f"{path}.source", f"{path}.target"
  for out, column in zip(paths, columns, strict=True):
    if not os.path.exists(out):
      read = read_lines(path, replace_invalid=True)
      lines = (line.split("\t") for line in read)
      write_lines(
        out, (line[column] if column < len(line) else "" for line in lines)
      )
  return paths


def hold_out(
  corpus: Corpus, pairs: int, dev: Sequence[str], test: Sequence[str]
) -> None:
  """Draws development data and a test set from a corpus, unless they exist.

  They have the lowest keys of a seeded shuffle; a pair with an empty side, or
  with a line of an earlier pair, is skipped. A training on the corpus has to
  leave the drawn pairs out.

  Args:
    corpus: parallel files.
    pairs: to draw for each.
    dev: the two files of the development data to write.
    test: the two files of the test set to write.

  Raises:
    InputError: if files do not match, or are not UTF-8.
    RunError: if there are too few pairs.
    OSError: if the system refuses.
  """
  if all(map(os.path.exists, [*dev, *test])):
    return
  found: list[tuple[str, str]] = []
  for files in zip(corpus.sources, corpus.targets, strict=True):
    found += zip(*read_parallel(*files), strict=True)
  order = np.argsort(shuffle_keys(np.arange(len(found)), _SEED))
  drawn: list[tuple[str, str]] = []
  seen: set[str] = set()
  for n in order.tolist():
    # Nor do the two sets share a line.
    if all(map(str.strip, found[n])) and seen.isdisjoint(found[n]):
      drawn.append(found[n])
      seen.update(found[n])
    if len(drawn) == 2 * pairs:
      break
  if len(drawn) < 2 * pairs:
    raise RunError(
      f"{' and '.join(corpus.paths)} have too few different pairs to draw "
      f"{2 * pairs} from: are they the right files?"
    )
  for paths, part in ((dev, drawn[:pairs]), (test, drawn[pairs:])):
    for path, lines in zip(paths, zip(*part, strict=True), strict=True):
      write_lines(path, lines)
