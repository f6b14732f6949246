"""Makes training data from your own parallel text.

    python -m data_prep.prepare_data --train_source=train.en \\
      --train_target=train.de --dev_source=dev.en --dev_target=dev.de \\
      --data_dir=data

writes a vocabulary, shuffled TFRecord shards and data.json.
"""

from __future__ import annotations

import collections
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from typing import Any

from absl import flags, logging

from flags import core as flags_core
from official_transformer.errors import InputError, describe_failures

FLAGS = flags.FLAGS
PREFIX = "text"


def define_prepare_data_flags() -> None:
  """Defines the command's flags."""
  for side in ("train_source", "train_target", "dev_source", "dev_target"):
    flags.DEFINE_list(
      side,
      [],
      flags_core.help_wrap(
        "UTF-8 text, one sentence a line; plain or .gz, several files "
        "between commas."
      ),
    )
  flags.DEFINE_string(
    "data_dir",
    None,
    flags_core.help_wrap("Where to write."),
    short_name="dd",
    required=True,
  )
  flags.DEFINE_enum(
    "vocab_type",
    "sentencepiece",
    ["sentencepiece", "subtoken"],
    flags_core.help_wrap(
      "The vocabulary to make: a SentencePiece unigram model, or the official "
      "model's subtokens."
    ),
  )
  flags.DEFINE_integer(
    "vocab_size",
    8000,
    flags_core.help_wrap(
      "Entries of the vocabulary that source and target share. A small corpus "
      "may yield fewer."
    ),
    lower_bound=32,
  )
  flags.DEFINE_string(
    "vocab_file",
    None,
    flags_core.help_wrap("Use this vocabulary instead of making one."),
    short_name="vf",
  )
  flags.DEFINE_integer(
    "shards",
    8,
    flags_core.help_wrap("Files to spread the training data over."),
    lower_bound=1,
    upper_bound=99999,
  )
  flags.DEFINE_integer(
    "seed", 1, flags_core.help_wrap("Of the shuffle."), lower_bound=0
  )


def main(argv: list[str]) -> None:
  """Runs the command."""
  logging.set_verbosity(logging.INFO)
  if argv[1:]:
    raise InputError(f"unexpected arguments: {' '.join(argv[1:])}")
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  corpora = {
    "train": (FLAGS.train_source, FLAGS.train_target),
    "dev": (FLAGS.dev_source, FLAGS.dev_target),
  }
  _check_flags(corpora)
  os.makedirs(FLAGS.data_dir, exist_ok=True)
  prepare(corpora)


def _check_flags(corpora: dict[str, tuple[list[str], list[str]]]) -> None:
  """Raises where a corpus lacks a side, a file, or a line."""
  from official_transformer.data.text_files import check_input

  if not corpora["train"][0]:
    raise InputError("--train_source and --train_target are needed")
  for tag, (source, target) in corpora.items():
    if len(source) != len(target):
      raise InputError(
        f"--{tag}_source names {len(source)} files and --{tag}_target "
        f"{len(target)}: each source file needs its target file"
      )
    for path in (*source, *target):
      check_input(path)
  if FLAGS.vocab_file:
    check_input(FLAGS.vocab_file)


def prepare(corpora: dict[str, tuple[list[str], list[str]]]) -> None:
  """Makes vocabulary, shards and data.json; logs what came of it.

  Args:
    corpora: source and target files of `train` and `dev`.
  """
  from official_transformer.data import data_directory
  from official_transformer.data.tokenizer import load_tokenizer
  from official_transformer.model_directory import vocabulary_identity

  data_dir = FLAGS.data_dir
  with tempfile.TemporaryDirectory(dir=data_dir) as scratch:
    texts = {
      tag: CleanText(tag, *files, scratch)
      for tag, files in corpora.items()
      if files[0]
    }
    vocab_file = _vocabulary(texts["train"])
    tokenizer = load_tokenizer(vocab_file)
    identity = vocabulary_identity(vocab_file, tokenizer.vocab_size)
    logging.info("vocabulary %s: %d entries", vocab_file, identity["size"])
    description: dict[str, Any] = {"vocabulary": identity}
    for tag, text in texts.items():
      _remove_old_shards(data_dir, tag)
      description[tag] = _encode(text, tokenizer)
      logging.info(
        "%s: %d pairs, %d source and %d target tokens; dropped: %s",
        tag,
        description[tag]["pairs"],
        description[tag]["source_tokens"],
        description[tag]["target_tokens"],
        description[tag]["dropped"] or "none",
      )
  data_directory.write_description(data_dir, description)


class CleanText:
  """One corpus as two plain files without pairs that have an empty side.

  Attributes:
    tag: `train` or `dev`.
    source: the file of source lines.
    target: the file of target lines.
    dropped: how many pairs were left out, by reason.
  """

  def __init__(
    self, tag: str, sources: list[str], targets: list[str], directory: str
  ) -> None:
    self.tag = tag
    self.source = os.path.join(directory, f"{tag}.source")
    self.target = os.path.join(directory, f"{tag}.target")
    self.dropped: collections.Counter[str] = collections.Counter()
    with (
      open(self.source, "w", encoding="utf-8", newline="\n") as source_file,
      open(self.target, "w", encoding="utf-8", newline="\n") as target_file,
    ):
      for source, target in self._pairs(sources, targets):
        if not source.strip():
          self.dropped["empty source"] += 1
        elif not target.strip():
          self.dropped["empty target"] += 1
        else:
          source_file.write(source + "\n")
          target_file.write(target + "\n")

  def _pairs(
    self, sources: list[str], targets: list[str]
  ) -> Iterator[tuple[str, str]]:
    """Yields pairs of lines; raises where two files differ in their number."""
    from official_transformer.data.text_files import read_lines

    for source, target in zip(sources, targets, strict=True):
      source_lines, target_lines = read_lines(source), read_lines(target)
      both = itertools.zip_longest(source_lines, target_lines)
      for count, (source_line, target_line) in enumerate(both):
        if source_line is None or target_line is None:
          source_count = count + _count_rest(source_line, source_lines)
          target_count = count + _count_rest(target_line, target_lines)
          raise InputError(
            f"{source} has {source_count} lines and {target} {target_count}: "
            "line n of the one must translate line n of the other. Was a "
            "blank line dropped from one of them?"
          )
        yield source_line, target_line

  def lines(self) -> Iterator[tuple[str, str]]:
    """Yields the pairs of lines that were kept."""
    from official_transformer.data.text_files import read_lines

    yield from zip(
      read_lines(self.source), read_lines(self.target), strict=True
    )


def _count_rest(line: str | None, rest: Iterator[str]) -> int:
  """Counts a line, unless None, and those after it."""
  return sum(1 for _ in rest) + (line is not None)


def _vocabulary(train: CleanText) -> str:
  """Returns the path of the data's vocabulary, made or copied there."""
  from official_transformer.data.subtokenizer import Subtokenizer
  from official_transformer.data.tokenizer import train_sentencepiece

  data_dir = FLAGS.data_dir
  files = [train.source, train.target]
  if FLAGS.vocab_file:
    path = os.path.join(data_dir, os.path.basename(FLAGS.vocab_file))
    if os.path.abspath(path) != os.path.abspath(FLAGS.vocab_file):
      shutil.copyfile(FLAGS.vocab_file, path)
    return path
  if not os.path.getsize(train.source):
    raise InputError("no training pair is left: all have an empty side")
  if FLAGS.vocab_type == "subtoken":
    path = os.path.join(data_dir, f"vocab.{FLAGS.vocab_size}.subtokens")
    Subtokenizer.build(files, FLAGS.vocab_size).save(path)
    return path
  path = os.path.join(data_dir, f"vocab.{FLAGS.vocab_size}.model")
  train_sentencepiece(files, path, FLAGS.vocab_size)
  return path


def _remove_old_shards(data_dir: str, tag: str) -> None:
  """Removes what an earlier run left: shards of two runs must not mix."""
  for name in os.listdir(data_dir):
    if name.startswith(f"{PREFIX}-{tag}-"):
      os.remove(os.path.join(data_dir, name))


def _encode(text: CleanText, tokenizer: Any) -> dict[str, Any]:
  """Writes one corpus' shards; returns its part of data.json."""
  from data_prep.records import Pair, write_shards

  tokens = [0, 0]

  def pairs() -> Iterator[Pair]:
    for lines in text.lines():
      pair = tuple(tokenizer.encode(line, add_eos=True) for line in lines)
      for side in (0, 1):
        tokens[side] += len(pair[side])
      yield pair

  train = text.tag == "train"
  histogram = write_shards(
    pairs(),
    FLAGS.data_dir,
    PREFIX,
    text.tag,
    shards=FLAGS.shards if train else 1,
    seed=FLAGS.seed if train else None,
  )
  return {
    "pairs": sum(histogram.values()),
    "source_tokens": tokens[0],
    "target_tokens": tokens[1],
    "dropped": dict(text.dropped),
    "length_histogram": histogram,
  }


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_prepare_data_flags, describe_failures(main))


if __name__ == "__main__":
  run()
