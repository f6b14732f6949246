"""The service's page, in a browser: typed into, read, and looked at."""

import os
import pathlib

import chromium
import pytest
from running_server import running_server

playwright = pytest.importorskip("playwright.sync_api")

pytestmark = [pytest.mark.slow, chromium.NEEDED]
# Where pictures of the page are kept, if anyone wants to look at them.
PICTURES = os.environ.get("PAGE_PICTURES")
DIRECTION = {"source": "en", "target": "de"}
SENTENCE = "The child will give the men a small flower soon."


@pytest.fixture(scope="module")
def server(trained_model, tmp_path_factory):
  flags = ["--extra_decode_length=3"]  # Some hypotheses are unfinished then.
  directory = tmp_path_factory.mktemp("server")
  models = f"en-de={trained_model},de-en={trained_model}"
  with running_server(models, directory, *flags) as server:
    yield server


@pytest.fixture(scope="module")
def browser():
  with chromium.launched() as browser:
    yield browser


@pytest.fixture
def page(browser, server):
  """The page; it may ask the server alone, and must say nothing of errors."""
  context = browser.new_context()
  page = context.new_page()
  problems = []
  page.on("pageerror", lambda error: problems.append(str(error)))
  page.on(
    "request",
    lambda request: (
      request.url.startswith((server.url(""), "data:"))
      or problems.append(request.url)
    ),
  )
  page.goto(server.url("/"))
  yield page
  assert not problems
  context.close()


def lines_of(page):
  items = page.locator("#target > li")
  return [
    items.nth(n).evaluate("e => e.firstChild ? e.firstChild.textContent : ''")
    for n in range(items.count())
  ]


def test_it_translates_as_one_types(page, server):
  (expected,) = server.translate(SENTENCE, **DIRECTION)["translations"]
  page.locator("#source").press_sequentially(SENTENCE, delay=5)
  # It may have translated a part first.
  texts = page.locator("#target > li > .text")
  playwright.expect(texts).to_have_text([expected["translation"]])
  playwright.expect(page.locator("#status")).to_contain_text(" s")
  page.locator("#source").fill("")
  playwright.expect(page.locator("#target > li")).to_have_count(0)


def test_pointing_at_a_word_shows_what_it_attends_to(page, server):
  page.locator("#source").fill(f"{SENTENCE}\n\nA dog runs.")
  playwright.expect(page.locator("#target > li")).to_have_count(3)
  (line, _, _) = server.translate(
    [SENTENCE, "", "A dog runs."], attention=True, **DIRECTION
  )["translations"]
  words = page.locator("#target > li").first.locator(".word")
  assert words.all_inner_texts() == line["target_words"]
  words.nth(1).hover()
  shown = page.locator("#attended .word")
  assert shown.all_inner_texts() == line["source_words"]
  weights = shown.evaluate_all(
    "all => all.map(e => Number(e.style.getPropertyValue('--weight')))"
  )
  assert weights == line["attention"][1]
  assert max(weights) > 0.2
  if PICTURES:
    page.screenshot(path=str(pathlib.Path(PICTURES) / "page-attention.png"))


def test_hypotheses_have_scores_and_lines_have_marks(page, server):
  source = [SENTENCE, "", "A dog runs. " * 120, "<b>dog</b>"]
  page.locator("#n_best").fill("4")
  page.locator("#source").fill("\n".join(source))
  playwright.expect(page.locator("#target > li")).to_have_count(4)
  found = server.translate(source, n_best=4, scores=True, **DIRECTION)
  found = found["translations"]
  assert lines_of(page) == [line["translation"] for line in found]
  assert "split" in found[2]["flags"]
  for number, line in enumerate(found):
    item = page.locator("#target > li").nth(number)
    marks = item.locator(":scope > .mark").all_text_contents()
    assert marks == [flag for flag in line["flags"] if flag != "blank"]
    others = item.locator(".others > li")
    expected = [] if "blank" in line["flags"] else line["hypotheses"]
    assert others.count() == len(expected)
    for place, hypothesis in enumerate(expected):
      text = others.nth(place).text_content()
      assert f"{hypothesis['score']:.2f}" in text
      assert hypothesis["translation"] in text
      assert ("unfinished" in text) == (not hypothesis["finished"])


def test_a_direction_is_chosen(page):
  options = page.locator("#direction > option")
  playwright.expect(options).to_have_text(["en \u2192 de", "de \u2192 en"])
  with page.expect_request("**/translate") as first:
    page.locator("#source").fill(SENTENCE)
  with page.expect_request("**/translate") as second:
    page.locator("#direction").select_option(index=1)
  asked = [info.value.post_data_json for info in (first, second)]
  assert [(its["source"], its["target"]) for its in asked] == [
    ("en", "de"),
    ("de", "en"),
  ]
  playwright.expect(page.locator("#status")).to_contain_text(" s")


def test_what_is_refused_is_told(page):
  page.locator("#source").fill("x" * 10_001)
  status = page.locator("#status")
  playwright.expect(status).to_contain_text("it may have 10000")
  playwright.expect(status).to_have_class("failed")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 380])
def test_it_fits_its_window(browser, server, scheme, width):
  context = browser.new_context(
    color_scheme=scheme, viewport={"width": width, "height": 760}
  )
  page = context.new_page()
  page.goto(server.url("/"))
  page.locator("#n_best").fill("3")
  page.locator("#source").fill(
    f"{SENTENCE}\nWill no doctor dance in no village?\n" + "A dog runs. " * 120
  )
  playwright.expect(page.locator("#target > li")).to_have_count(3)
  assert page.evaluate(
    "document.documentElement.scrollWidth <= window.innerWidth"
  )
  ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
  brightness = sum(map(int, ground[4:-1].split(",")))
  assert (brightness > 384) == (scheme == "light")
  if PICTURES:
    path = pathlib.Path(PICTURES) / f"page-{scheme}-{width}.png"
    page.screenshot(path=str(path))
  context.close()
