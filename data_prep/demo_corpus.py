"""Writes the demo corpus: English and German sentences of a small grammar.

    demo_corpus --output_dir=demo

writes train, dev and test, no sentence twice, and `test.dictionary.de`: the
test set translated word by word, with the most frequent German word for each
English word. A trained model's score exceeds this translation's by what grammar
adds to a dictionary.
"""

from __future__ import annotations

import dataclasses
import os

from absl import logging

from data_prep.demo.grammar import DemoGrammar
from official_transformer.commands import flags_core
from official_transformer.commands.flag_records import (
  REQUIRED,
  Options,
  flag,
)
from official_transformer.errors import describe_failures
from official_transformer.storage.file_system import make_directories
from official_transformer.text.text_files import write_lines


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoOptions(Options):
  """Flags of the demo corpus."""

  heading = "demo_corpus"

  output_dir: str = flag(REQUIRED, "Where to write.", path=True)
  train_size: int = flag(60000, "Pairs to write for train.", lower_bound=1)
  dev_size: int = flag(500, "Pairs to write for dev.", lower_bound=1)
  test_size: int = flag(500, "Pairs to write for test.", lower_bound=1)
  seed: int = flag(1, "Seed of the grammar.", lower_bound=0)


OPTIONS = DemoOptions


def draw_pairs(grammar: DemoGrammar, count: int) -> list[tuple[str, str]]:
  """Returns `count` pairs, no English sentence twice."""
  pairs: dict[str, str] = {}
  while len(pairs) < count:
    english, german = grammar.sentence()
    pairs.setdefault(english, german)
  return list(pairs.items())


def translate_word_for_word(grammar: DemoGrammar, sentence: str) -> str:
  """Replaces each word by its most frequent German word."""
  end = sentence[-1]
  words = []
  for word in sentence[:-1].replace(",", " ,").split():
    known = grammar.dictionary.get(word)
    if not known:
      known = grammar.dictionary.get(word[0].lower() + word[1:])
    words.append(known.most_common(1)[0][0] if known else word)
  text = " ".join(filter(None, words)).replace(" ,", ",")
  return text[:1].upper() + text[1:] + end


def main(_: list[str]) -> None:
  """Writes the corpus."""
  options: DemoOptions = flags_core.begin(OPTIONS)
  sizes = {
    "test": options.test_size,
    "dev": options.dev_size,
    "train": options.train_size,
  }
  grammar = DemoGrammar(options.seed)
  pairs = draw_pairs(grammar, sum(sizes.values()))
  make_directories(options.output_dir)
  start = 0
  for split, size in sizes.items():
    part = pairs[start : start + size]
    start += size
    for side, language in enumerate(("en", "de")):
      path = os.path.join(options.output_dir, f"{split}.{language}")
      write_lines(path, (pair[side] for pair in part))
  write_lines(
    os.path.join(options.output_dir, "test.dictionary.de"),
    (translate_word_for_word(grammar, e) for e, _ in pairs[: sizes["test"]]),
  )
  logging.info(
    "wrote %s pairs to %s",
    ", ".join(f"{size} {split}" for split, size in sizes.items()),
    options.output_dir,
  )


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(OPTIONS, describe_failures(main))


if __name__ == "__main__":
  run()
