"""Whether the tags of HTML come back where they belong.

    python benchmarks/markup.py --model_dir=quickstart/model

In sentences of the demo grammar, whose true word alignments are known, some
words in a row are put into `<b>`: any, or none that tear `call up` or `on
Sunday`. Counted is in how many translations that are the grammar's, word for
word, exactly the words of these words are in `<b>`.

    python benchmarks/markup.py --model_dir=MODEL --source=test.en \
      --target=test.de

Of other text, it is counted in how many translations all tags are there and
well-formed; and BLEU, without the tags, is that of lines without markup.
"""

from __future__ import annotations

import argparse
import html
import html.parser
import random
from collections.abc import Sequence
from typing import NamedTuple

import sacrebleu
from demo_alignments import AlignedPair, draw_aligned, second_words

from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.translator import Translator
from official_transformer.text.text_files import read_parallel


class Marked(NamedTuple):
  """Words in markup.

  Attributes:
    markup: all of it.
    start: the number of the first word in an element.
    end: of the first one behind it.
  """

  markup: str
  start: int
  end: int


class Structure(html.parser.HTMLParser):
  """What a parser finds in markup.

  Attributes:
    words: each with whether it is in an element.
    tags: as written.
    is_well_formed: whether each tag has its partner.
  """

  def __init__(self, markup: str) -> None:
    super().__init__()
    self.text = ""
    self.words: list[tuple[str, bool]] = []
    self.tags: list[str] = []
    self._open: list[str] = []
    self.is_well_formed = True
    self.feed(markup)
    self.close()
    self.is_well_formed &= not self._open

  def handle_starttag(self, tag: str, attrs: object) -> None:
    """Notes a tag."""
    self.tags.append(self.get_starttag_text() or "")
    if tag not in ("img", "br"):
      self._open.append(tag)

  def handle_endtag(self, tag: str) -> None:
    """Notes whether it ends the element that is open."""
    self.is_well_formed &= bool(self._open) and self._open.pop() == tag

  def handle_data(self, data: str) -> None:
    """Notes text and its words."""
    self.text += data
    # A full stop behind an element is no word.
    self.words += [
      (word, bool(self._open)) for word in data.split() if word.strip(".,?")
    ]


def mark_words(line: str, rng: random.Random, may_tear: bool) -> Marked:
  """Puts one to three words of a line into an element.

  Args:
    line: of the demo grammar.
    rng: draws them.
    may_tear: whether an element may end within `call up` or `on Sunday`.
  """
  words = line.split()
  second = second_words()

  def tears(place: int) -> bool:
    following = words[place] if place < len(words) else ""
    return not may_tear and following.strip(".?") in second

  spans = [
    (start, start + length)
    for length in (1, 2, 3)
    for start in range(len(words) - length + 1)
    if not tears(start) and not tears(start + length)
  ]
  start, end = rng.choice(spans)
  inner = " ".join(words[start:end])
  # A mark at the end stays outside.
  core = inner.rstrip(".,?")
  parts = [*words[:start], f"<b>{core}</b>{inner[len(core) :]}"]
  parts += words[end:]
  return Marked(" ".join(parts), start, end)


def is_placed_right(
  pair: AlignedPair, marked: Marked, found: Structure
) -> bool:
  """Whether the words that are surely those of an element are in it."""
  in_element = {
    link.target
    for link in pair.sure
    if marked.start <= link.source < marked.end
  }
  elsewhere = {link.target for link in pair.sure} - in_element
  is_in = [within for _, within in found.words]
  return all(is_in[n] for n in in_element) and not any(
    is_in[n] for n in elsewhere
  )


def measure_demo(translator: Translator, count: int, seed: int) -> None:
  """Prints how often tags are placed right in the grammar's sentences."""
  pairs = draw_aligned(seed, count)
  for may_tear in (False, True):
    rng = random.Random(seed)
    marked = [mark_words(pair.english, rng, may_tear) for pair in pairs]
    texts = translator.translate([line.markup for line in marked])
    judged = [
      is_placed_right(pair, line, Structure(text))
      for pair, line, text in zip(pairs, marked, texts, strict=True)
      if Structure(text).text == pair.german
    ]
    name = "any words" if may_tear else "words, phrasal verbs and times"
    print(f"{name}: {len(judged)} of {count} translated as the grammar does,")
    print(f"  placed right: {sum(judged)} ({sum(judged) / len(judged):.1%})")


def decorate(line: str, number: int, rng: random.Random) -> str:
  """Puts elements, one in another, an image and a reference into a line."""
  words = [html.escape(word, quote=False) for word in line.split()]
  for name in rng.sample(["b", "i", "a", "em", "span"], rng.randint(1, 3)):
    first = rng.randrange(len(words))
    # Joined words are one from here on: later elements hold earlier ones.
    last = min(first + rng.randint(1, 4), len(words))
    inner = " ".join(words[first:last])
    words[first:last] = [f'<{name} id="{number}">{inner}</{name}>']
  if rng.random() < 0.2:
    words.insert(rng.randint(0, len(words)), '<img src="a.png">')
  return f"<p>{' '.join(words)}</p>"


def measure_text(
  translators: Sequence[Translator], sources: list[str], targets: list[str]
) -> None:
  """Prints how many lines keep their tags, and BLEU with and without."""
  with_markup, plain = translators
  rng = random.Random(1)
  lines = [decorate(line, n, rng) for n, line in enumerate(sources)]
  found = [Structure(text) for text in with_markup.translate(lines)]
  asked = [Structure(line) for line in lines]
  kept = [
    structure.is_well_formed and set(structure.tags) == set(tags.tags)
    for structure, tags in zip(found, asked, strict=True)
  ]
  once = [
    sorted(structure.tags) == sorted(tags.tags)
    for structure, tags in zip(found, asked, strict=True)
  ]
  print(
    f"{len(lines)} lines of HTML: {sum(kept)} well-formed, every tag there;"
  )
  print(f"in {sum(once)} each of them once")
  without = plain.translate(sources)
  # Without an image, the blanks on both sides of it are side by side.
  texts = [" ".join(structure.text.split()) for structure in found]
  same = sum(a == b for a, b in zip(texts, without, strict=True))
  print(f"text as it is without markup: {same} of {len(lines)}")
  for name, hypotheses in (("without markup", without), ("with", texts)):
    score = sacrebleu.corpus_bleu(hypotheses, [targets]).score
    print(f"BLEU {name}: {score:.2f}")


def main() -> None:
  """Measures what the command line asks for."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument("--model_dir", required=True)
  parser.add_argument("--source", help="Text, instead of the demo grammar's.")
  parser.add_argument("--target", help="Its translation.")
  parser.add_argument("--count", type=int, default=1000)
  parser.add_argument("--seed", type=int, default=20)
  given = parser.parse_args()
  translator = Translator.load(
    given.model_dir, options=DecodingOptions(is_html=True)
  )
  if not given.source:
    measure_demo(translator, given.count, given.seed)
    return
  sources, targets = read_parallel(given.source, given.target)
  translators = (translator, Translator.load(given.model_dir))
  measure_text(translators, sources[: given.count], targets[: given.count])


if __name__ == "__main__":
  main()
