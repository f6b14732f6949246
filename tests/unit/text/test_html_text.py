import pytest
from hypothesis import given
from hypothesis import strategies as st

from official_transformer.text.html_text import Run, parse_html


def placed(run):
  """Returns placeholders, and the characters that they stand before."""
  place, found = 0, []
  for part in run.parts:
    if part.is_text:
      place += len(part.written)
    else:
      found.append((place, part.written))
  return found


def parts(markup):
  """Returns dividers, and of runs the text, elements' tags and placeholders."""
  return [
    part
    if isinstance(part, str)
    else (
      part.text,
      ["".join(element) for element in part.elements],
      placed(part),
    )
    for part in parse_html(markup)
  ]


@pytest.mark.parametrize(
  ("markup", "found"),
  [
    ("a < b & c > d", [("a < b & c > d", [], [])]),
    ("<p>A <b>dog</b></p>", ["<p>", ("A dog", ["<b></b>"], []), "</p>"]),
    ("<B Class=x>Hi</B >", [("Hi", ["<B Class=x></B >"], [])]),
    ("AT&amp;T &copy &#8364;&#x21;", [("AT&T © €!", [], [])]),
    ("one<br>two", [("one", [], []), "<br>", ("two", [], [])]),
    ("a <img src=b> c", [("a  c", [], [(2, "<img src=b>")])]),
    ("a<b></b>", [("a", ["<b></b>"], [(1, "<b></b>")])]),
    ("Run <code>a<i>b</i></code>!", [
      ("Run !", [], [(4, "<code>a<i>b</i></code>")]),
    ]),
    ("H<sub>2</sub>O", [("HO", [], [(1, "<sub>2</sub>")])]),
    ("x <i translate=no>y</i>", [("x ", [], [(2, "<i translate=no>y</i>")])]),
    ("<p class=notranslate>y</p>", ["<p class=notranslate>y</p>"]),
    ("<script>if (a<b) {}</script>x", [
      "<script>if (a<b) {}</script>", ("x", [], []),
    ]),
    ("a <!-- b --> c", [("a  c", [], [(2, "<!-- b -->")])]),
    ("x <!-- b", [("x ", [], [(2, "<!-- b")])]),
    ("x <a b=c", [("x ", [], []), "<a b=c"]),
    ("<![ x ]]> y", ["<![ x ]]>", (" y", [], [])]),
    ("a</>b", [("a", [], []), "</>", ("b", [], [])]),
    ("<a b=it's>c</a>", [("c", ["<a b=it's></a>"], [])]),
    ("<a b='>'>c</a>", [("c", ["<a b='>'></a>"], [])]),
    ("<a b>c</a >", [("c", ["<a b></a >"], [])]),
    ("<p class=notranslate>a<p>b", [
      "<p class=notranslate>a", "<p>", ("b", [], []),
    ]),
    ("a<b> </b>", [("a", ["<b></b>"], [(1, "<b> </b>")])]),
    ("a&#10;b&nbsp;c", [("a b\u00a0c", [], [])]),
    # Tags without a partner, and elements that hold what divides.
    ("<b>a", ["<b>", ("a", [], [])]),
    ("a</b>", [("a", [], []), "</b>"]),
    ("<b><i>a</b></i>", ["<b>", "<i>", ("a", [], []), "</b>", "</i>"]),
    ("<a><p>b</p></a>", ["<a>", "<p>", ("b", [], []), "</p>", "</a>"]),
    (" <hr/> - ", [" ", "<hr/>", " - "]),
    ("", []),
  ],
)  # fmt: skip
def test_markup_is_text_and_what_divides_it(markup, found):
  assert parts(markup) == found


def test_characters_know_their_elements():
  (run,) = parse_html("a<b>b<i>c</i></b>d")
  assert [part.elements for part in run.parts] == [(), (0,), (0, 1), ()]


@given(
  st.lists(
    st.sampled_from(
      "<b> </b> <i> </i> <p> </p> <br> <img> <code> </code> <!-- --> & &amp; "
      "&#x; <script> </script> < > a 1 . é <![ <! <? </ </> <a <!--".split(" ")
    )
    | st.text(max_size=3)
  )
)
def test_nothing_is_lost(pieces):
  markup = "".join(pieces)
  found = parse_html(markup)
  assert "".join(p.markup if isinstance(p, Run) else p for p in found) == markup
  for part in found:
    if isinstance(part, Run):
      assert part.has_text
      held = {number for piece in part.parts for number in piece.elements}
      assert held == set(range(len(part.elements)))


@pytest.mark.parametrize(
  "markup",
  [
    "<code>" * 50_000,
    "<code>" * 20_000 + "</code>" * 20_000,
    "<code>x<b>" * 20_000 + "</code>" * 20_000,
    "<b> " * 30_000 + "a" + "</b>" * 30_000,
    "<b " + "class=" * 50_000 + ">x</b>",
    "<!doctype []x>" * 20_000,
    "<!doctype [>" * 20_000,
  ],
  ids=["open", "nested", "mixed", "deep", "attributes", "subset", "bracket"],
)
def test_hostile_markup_takes_a_time_like_other_markup(markup):
  """Each would take minutes if every tag looked at all that follow it."""
  found = parse_html(markup)
  assert markup == "".join(
    part if isinstance(part, str) else part.markup for part in found
  )


def test_elements_too_deep_divide_text():
  depth = 100
  (run,) = parse_html("<b>" * depth + "a" + "</b>" * depth)
  assert len(run.elements) == depth
  depth += 1
  found = parse_html("<b>" * depth + "a" + "</b>" * depth)
  assert next(part for part in found if isinstance(part, Run)).text == "a"
  assert len(found) == 2 * depth + 1


@pytest.mark.parametrize(
  ("attributes", "is_kept"),
  [
    ("translate=no", True),
    ("lang=de TRANSLATE = 'No'", True),
    ('class="a notranslate b"', True),
    ("class=notranslate", True),
    ("data-translate=no", False),
    ("translate=yes", False),
    ("translate", False),
    ('class="notranslated"', False),
    ('title="translate=no"', False),
  ],
)
def test_attributes_say_what_is_not_translated(attributes, is_kept):
  (run,) = parse_html(f"a <b {attributes}>b</b>")
  assert run.text == ("a " if is_kept else "a b")
