"""Writes the demo corpus: English and German sentences of a small grammar.

    python -m data_prep.demo_corpus --output_dir=demo

writes train, dev and test, no sentence twice, and `test.dictionary.de`: the
test set translated word for word, with the German word each English word
stands for most often. The distance between that and a trained model is what
the grammar asks of a translator beyond knowing the words.
"""

from __future__ import annotations

import os

from absl import flags, logging

from data_prep.demo.grammar import DemoGrammar
from official_transformer.data.text_files import write_lines
from official_transformer.errors import describe_failures
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.core import define, start_section
from official_transformer.storage.file_system import make_directories

FLAGS = flags.FLAGS


def define_demo_corpus_flags() -> None:
  """Defines the command's flags."""
  start_section("demo_corpus")
  define(
    flags.DEFINE_string,
    "output_dir",
    None,
    "Where to write.",
    required=True,
  )
  for split, size in (("train", 60000), ("dev", 500), ("test", 500)):
    define(
      flags.DEFINE_integer,
      f"{split}_size",
      size,
      f"Pairs to write for {split}.",
      lower_bound=1,
    )
  define(
    flags.DEFINE_integer,
    "seed",
    1,
    "Of the grammar.",
    lower_bound=0,
  )


def draw_pairs(grammar: DemoGrammar, count: int) -> list[tuple[str, str]]:
  """Returns `count` pairs, no English sentence twice."""
  pairs: dict[str, str] = {}
  while len(pairs) < count:
    english, german = grammar.sentence()
    pairs.setdefault(english, german)
  return list(pairs.items())


def translate_word_for_word(grammar: DemoGrammar, sentence: str) -> str:
  """Replaces each word by the German word it stands for most often."""
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
  sizes = {
    "test": FLAGS.test_size,
    "dev": FLAGS.dev_size,
    "train": FLAGS.train_size,
  }
  grammar = DemoGrammar(FLAGS.seed)
  pairs = draw_pairs(grammar, sum(sizes.values()))
  make_directories(FLAGS.output_dir)
  start = 0
  for split, size in sizes.items():
    part = pairs[start : start + size]
    start += size
    for side, language in enumerate(("en", "de")):
      path = os.path.join(FLAGS.output_dir, f"{split}.{language}")
      write_lines(path, (pair[side] for pair in part))
  write_lines(
    os.path.join(FLAGS.output_dir, "test.dictionary.de"),
    (translate_word_for_word(grammar, e) for e, _ in pairs[: sizes["test"]]),
  )
  logging.info(
    "wrote %s pairs to %s",
    ", ".join(f"{size} {split}" for split, size in sizes.items()),
    FLAGS.output_dir,
  )


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_demo_corpus_flags, describe_failures(main))


if __name__ == "__main__":
  run()
