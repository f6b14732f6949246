"""How well a model translates text as people type it.

    python benchmarks/ordinary_text.py --model_dir=MODEL --source=test.en \
      --target=test.de

Each line is changed in one way: capitals, title case, typing errors, or several
lines joined to one. Every version is translated and scored by lower-cased BLEU
against the same references, which are joined in the same way. `--rows` selects
some of the versions.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Callable, Sequence

import sacrebleu

from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.translator import Translator
from official_transformer.text.text_files import read_parallel

# Two adjacent letters inside a word, after its first letter.
_INNER_PAIR = re.compile(r"(?<=[^\W\d_])(?=([^\W\d_])([^\W\d_]))")


def swapped(line: str, draw: random.Random) -> str:
  """Returns a line in which two pairs of adjacent letters are swapped."""
  for _ in range(2):
    pairs = list(_INNER_PAIR.finditer(line))
    if not pairs:
      return line
    pair = draw.choice(pairs)
    start = pair.start()
    line = line[:start] + pair[2] + pair[1] + line[start + 2 :]
  return line


def joined(lines: Sequence[str], number: int) -> list[str]:
  """Returns lines of `number` lines each, with a blank between two of them."""
  return [
    " ".join(lines[start : start + number])
    for start in range(0, len(lines), number)
  ]


def versions(lines: Sequence[str]) -> dict[str, tuple[list[str], int]]:
  """Returns each version's lines, and how many original lines one has."""
  draw = random.Random(1)
  by_line: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "ALL CAPITALS": str.upper,
    "Title Case": str.title,
    "two swaps of letters a line": lambda line: swapped(line, draw),
    "no mark at the end": lambda line: line.rstrip(".!?"),
  }
  rows = {
    name: ([change(line) for line in lines], 1)
    for name, change in by_line.items()
  }
  for name, number in (
    ("two lines on a line", 2),
    ("twelve lines on a line", 12),
  ):
    rows[name] = (joined(lines, number), number)
  return rows


def main() -> None:
  """Prints the table."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument("--model_dir", required=True)
  parser.add_argument("--source", required=True)
  parser.add_argument("--target", required=True, help="The references.")
  parser.add_argument("--rows", help="Names of versions, comma-separated.")
  parser.add_argument(
    "--nosplit_sentences",
    dest="split_sentences",
    action="store_false",
    default=None,
    help="Translate each line as one piece.",
  )
  parser.add_argument(
    "--norecase",
    dest="recase",
    action="store_false",
    help="Translate capitals and title case as they are.",
  )
  given = parser.parse_args()
  sources, targets = read_parallel(given.source, given.target)
  translator = Translator.load(
    given.model_dir,
    options=DecodingOptions(
      split_sentences=given.split_sentences, recase=given.recase
    ),
  )
  print("| text | BLEU, lower-cased |\n| --- | --- |")
  for name, (lines, number) in versions(sources).items():
    if given.rows and name not in given.rows.split(","):
      continue
    found = translator.translate(lines)
    references = joined(targets, number)
    bleu = sacrebleu.corpus_bleu(found, [references], lowercase=True)
    print(f"| {name} | {bleu.score:.1f} |", flush=True)


if __name__ == "__main__":
  main()
