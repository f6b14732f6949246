import collections
import html.parser
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from official_transformer.decoding.alignment import Alignment, Link
from official_transformer.decoding.markup import put_back
from official_transformer.text.html_text import parse_html
from official_transformer.text.markup import Run, keep_out, plain_run
from official_transformer.text.words import words_of

KEPT = re.compile(r"\{\w*\}|%s|foo bar|https?://\S*[^\s.]")


def words(text):
  return [span.of(text) for span in words_of(text)]


def translated(markup, translation, links):
  """Returns markup with the translation of its one run."""
  return "".join(
    part
    if isinstance(part, str)
    else put_back(
      keep_out(part, KEPT),
      translation,
      Alignment(words(part.text), words(translation), links),
    )
    for part in parse_html(markup)
  )


@pytest.mark.parametrize(
  ("markup", "translation", "links", "found"),
  [
    ("A <b>dog</b> runs.", "Ein Hund rennt.", "0-0 1-1 2-2",
     "Ein <b>Hund</b> rennt."),
    # Marks stay outside, or within, as they were.
    ("A <b>dog</b>.", "Ein Hund.", "0-0 1-1", "Ein <b>Hund</b>."),
    ("A <b>dog.</b>", "Ein Hund.", "0-0 1-1", "Ein <b>Hund.</b>"),
    ("A <b>dog</b>", "Ein Hund!", "0-0 1-1", "Ein <b>Hund</b>!"),
    # A vowel sign or an accent is a part of its word.
    ("Drink <b>water</b> now", "अभी पानी पियो", "0-2 1-1 2-0",
     "अभी <b>पानी</b> पियो"),
    ("A <b>cafe</b>.", "Un cafe\u0301.", "0-0 1-1",
     "Un <b>cafe\u0301</b>."),
    # One word for two, and two for one.
    ("<p>He must <b>call up</b> Tom.</p>", "Er muss Tom anrufen.",
     "0-0 1-1 2-3 3-3 4-2", "<p>Er muss Tom <b>anrufen</b>.</p>"),
    ("He <b>calls</b> <i>Tom</i>.", "Er ruft Tom an.", "0-0 1-1 1-3 2-2",
     "Er <b>ruft</b> <i>Tom</i> <b>an</b>."),
    # Elements in others, and a word that is aligned with none.
    ("<a>the <b>old</b> house</a>", "das sehr alte Haus", "0-0 1-2 2-3",
     "<a>das sehr <b>alte</b> Haus</a>"),
    ("<b>A</b> <b>dog</b>", "Ein Hund", "0-0 1-1", "<b>Ein</b> <b>Hund</b>"),
    # What no word is in any more stands where it was.
    ("No <em>really</em> not", "Nein nicht", "0-0 2-1", "Nein<em></em> nicht"),
    # Placeholders stay with the word that they touch.
    ("dog<sup>1</sup> runs", "rennt Hund", "0-1 1-0", "rennt Hund<sup>1</sup>"),
    ("A <img> dog", "Ein Hund", "0-0 1-1", "Ein <img> Hund"),
    ("<span><img> dog</span>", "Hund", "0-0", "<span><img> Hund</span>"),
    ("dog<a href=1></a>", "Hund", "0-0", "Hund<a href=1></a>"),
    ("x &amp; y", "<u> & z", "0-0 1-1 2-2", "&lt;u&gt; &amp; z"),
    (" \n<i> x </i>\t", "y", "0-0", " \n <i>y</i> \t"),
    ("<b>x</b>", "", "", "<b>x</b>"),
    ("Go <a>%s</a> now", "Geh jetzt", "0-0 1-1", "Geh <a>%s</a> jetzt"),
    ("The foo <b>bar</b> dogs", "Die Hunde", "0-0 1-1",
     "Die foo <b>bar</b> Hunde"),
    # All blanks of HTML set words apart.
    ("<p>Go\n<i>%s</i> now</p>", "Geh jetzt", "0-0 1-1",
     "<p>Geh <i>%s</i> jetzt</p>"),
    # One link stays one, and one over marks alone is not lost.
    ("<a>dog, cat</a> x", "Hund Katze y", "0-0 1-1 2-2",
     "<a>Hund Katze</a> y"),
    ("tea<a>*</a> now", "Tee jetzt", "0-0 1-1", "Tee<a></a> jetzt"),
    ("dogs<b> </b><img>.", "Hunde.", "0-0", "Hunde<b> </b><img>."),
  ],
)  # fmt: skip
def test_words_are_in_the_elements_of_their_source(
  markup, translation, links, found
):
  pairs = [Link(*map(int, link.split("-"))) for link in links.split()]
  assert translated(markup, translation, pairs) == found


@pytest.mark.parametrize(
  ("line", "text", "translation", "links", "found"),
  [
    ("The {n} dogs", "The dogs", "Die Hunde", "0-0 1-1", "Die {n} Hunde"),
    ("{n} dogs", "dogs", "Hunde", "0-0", "{n} Hunde"),
    ("See {n}.", "See.", "Siehe.", "0-0", "Siehe {n}."),
    ("Seen: http://a.b/c", "Seen:", "Siehe:", "0-0", "Siehe: http://a.b/c"),
    ("(%s) now", "now", "jetzt", "0-0", "(%s) jetzt"),
    ("Go (%s). Now", "Go. Now", "Geh. Jetzt", "0-0 1-1", "Geh (%s). Jetzt"),
    ("%s\u00a0: dog", ": dog", ": Hund", "0-0 1-1", "%s\u00a0: Hund"),
    ("See  {n}", "See", "Siehe", "0-0", "Siehe  {n}"),
    ("dog%s, cat", "dog, cat", "Katze, Hund", "0-1 1-0", "Katze, Hund%s"),
    ("dog%s, cat", "dog, cat", "Hund, Katze", "0-0 1-1", "Hund%s, Katze"),
    ("un%sdo it", "undo it", "tu es", "0-0 1-1", "tu%s es"),
    ("dogs %s %s %s run", "dogs run", "Hunde rennen", "0-0 1-1",
     "Hunde %s %s %s rennen"),
    ("'%s' '%s' run", "run", "rennt", "0-0", "'%s' '%s' rennt"),
    ("  %s  The dog  ", "The dog", "Der Hund", "0-0 1-1",
     "  %s  Der Hund  "),
    # Nobody knows where; before the word that is as far along the line.
    ("a b %s c", "a b c", "x y z", "", "x y %s z"),
    ("  a %s <b> & c\t", "a <b> & c", "<x> & y", "0-0 3-2",
     "  <x> %s & y\t"),
  ],
)  # fmt: skip
def test_what_is_kept_stands_at_its_word(line, text, translation, links, found):
  run = keep_out(plain_run(line), KEPT)
  pairs = [Link(*map(int, link.split("-"))) for link in links.split()]
  alignment = Alignment(words(run.text), words(translation), pairs)
  assert run.text.strip() == text
  assert put_back(run, translation, alignment) == found


class Structure(html.parser.HTMLParser):
  """Which tags markup has, and whether each has its partner."""

  def __init__(self, markup):
    super().__init__()
    self.tags = collections.Counter()
    self.text = ""
    self.is_open = []
    self.is_well_formed = True
    self.feed(markup)
    self.close()
    self.is_well_formed &= not self.is_open

  def handle_starttag(self, tag, attrs):
    self.tags[self.get_starttag_text()] += 1
    if tag not in ("img", "br"):
      self.is_open.append(tag)

  def handle_endtag(self, tag):
    self.is_well_formed &= bool(self.is_open) and self.is_open.pop() == tag

  def handle_data(self, data):
    self.text += data


contents = st.recursive(
  st.sampled_from(["A dog ", "x, ", "(2)", " \n", "&amp; ", "<img a>", "<br>"]),
  lambda inner: st.builds(
    lambda name, n, parts: f"<{name} id={n}>{''.join(parts)}</{name}>",
    st.sampled_from(["b", "i", "a", "p", "code"]),
    st.integers(0, 99),
    st.lists(inner, max_size=4),
  ),
  max_leaves=12,
)


@given(st.lists(contents).map("".join), st.data())
def test_every_tag_is_there_and_all_are_well_formed(markup, data):
  written = []
  for part in parse_html(markup):
    if not isinstance(part, Run):
      written.append(part)
      continue
    part = keep_out(part)
    translation = data.draw(
      st.lists(st.sampled_from(["Ein", "Hund,", "<rennt>", "&"])).map(" ".join)
    )
    sources, targets = words(part.text), words(translation)
    links = [
      Link(data.draw(st.integers(0, len(sources) - 1)), target)
      for target in range(len(targets))
      if data.draw(st.booleans())
    ]
    written.append(
      put_back(part, translation, Alignment(sources, targets, links))
    )
  before, after = Structure(markup), Structure("".join(written))
  assert before.is_well_formed and after.is_well_formed
  assert set(before.tags) == set(after.tags)
