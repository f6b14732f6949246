"""A report, opened from the disk in a browser: sorted, searched, looked at."""

import os
import pathlib

import chromium
import command_line
import pytest

playwright = pytest.importorskip("playwright.sync_api")

pytestmark = [pytest.mark.slow, chromium.NEEDED]
# Where pictures of the page are kept, if anyone wants to look at them.
PICTURES = os.environ.get("PAGE_PICTURES")
# Beyond what a page of the table shows.
LINES = 120
CHINESE = 7


@pytest.fixture(scope="module")
def report(trained_model, tmp_path_factory):
  """A report of two systems: the second has every third line cut."""
  directory = tmp_path_factory.mktemp("report")
  command_line.succeed(
    command_line.DEMO,
    *(f"--output_dir={directory}", f"--test_size={LINES}"),
    *("--train_size=1", "--dev_size=1", "--seed=3"),
  )
  lines = (directory / "test.de").read_text("utf-8").split("\n")[:-1]
  lines[CHINESE] = "我喜欢学习数学。"
  worse = [
    line[: len(line) // 3] if n % 3 == 0 else line
    for n, line in enumerate(lines)
  ]
  reference = list(lines)
  reference[CHINESE] = "我喜欢学习中文。"
  for name, content in (
    ("one", lines),
    ("two", worse),
    ("reference", reference),
  ):
    (directory / name).write_text("\n".join(content) + "\n", "utf-8")
  command_line.succeed(
    command_line.REPORT,
    *(f"--source={directory}/test.en", f"--reference={directory}/reference"),
    *(f"--translation={directory}/one", f"--translation={directory}/two"),
    *(f"--model_dir={trained_model}", "--attention_lines=4,10"),
    *("--test_trials=99", "--resamples=50", "--title=A <title> & more"),
    f"--output={directory}/report.html",
  )
  return directory / "report.html"


@pytest.fixture(scope="module")
def browser():
  with chromium.launched() as browser:
    yield browser


@pytest.fixture
def page(browser, report):
  """The page; it may ask for nothing else, and say nothing of errors."""
  context = browser.new_context(viewport={"width": 1280, "height": 900})
  page = context.new_page()
  problems = []
  page.on("pageerror", lambda error: problems.append(str(error)))
  page.on("console", lambda message: problems.append(message.text))
  page.goto(report.as_uri())
  page.on("request", lambda request: problems.append(request.url))
  yield page
  assert not problems
  context.close()


def column(page, number):
  cells = page.locator(f"#sentences tbody > tr > td:nth-child({number})")
  return cells.all_inner_texts()


def numbers(texts):
  return [float(text.replace("\u2212", "-")) for text in texts]


def test_it_tells_scores_and_their_difference(page):
  assert page.locator("h1").inner_text() == "A <title> & more"
  text = page.locator("#scores").inner_text()
  assert "BLEU" in text
  assert "±" in text
  assert "B against A, by paired approximate randomisation" in text
  assert f"{LINES} sentences" in page.locator("#count").inner_text()


def test_it_sorts(page):
  assert numbers(column(page, 1)) == list(range(1, 51))
  page.locator("button[data-column=difference]").click()
  found = numbers(column(page, 4))
  assert found == sorted(found, reverse=True)
  page.locator("button[data-column=difference]").click()
  found = numbers(column(page, 4))
  assert found == sorted(found)
  assert found[0] < -20
  header = page.locator("th[aria-sort]")
  assert header.get_attribute("aria-sort") == "ascending"
  page.locator("#metric").select_option("TER")
  found = numbers(column(page, 4))
  assert found == sorted(found)
  page.locator("button[data-column=length]").click()
  found = numbers(column(page, 5))
  assert found == sorted(found, reverse=True)


def test_it_filters(page):
  page.locator("#filter").select_option("different")
  playwright.expect(page.locator("#count")).to_have_text(
    f"{LINES // 3} of {LINES} sentences"
  )
  assert all(n % 3 == 1 for n in numbers(column(page, 1)))
  page.locator("#filter").select_option("warning:unfinished")
  assert 30 <= len(column(page, 1)) <= LINES // 3
  page.locator("#filter").select_option("")
  page.locator("#least").fill("30")
  playwright.expect(page.locator("#count")).to_contain_text(" of ")
  assert all(abs(n) >= 30 for n in numbers(column(page, 4)))


def test_it_searches_all_texts(page):
  page.locator("#search").fill("学习")
  playwright.expect(page.locator("#count")).to_have_text(
    f"1 of {LINES} sentences"
  )
  assert numbers(column(page, 1)) == [CHINESE + 1]
  # Character by character, since there are no words to tell apart.
  marks = page.locator(".translation mark.wrong").all_inner_texts()
  assert marks == ["数学", "数学"]
  assert page.locator(".reference mark.missed").all_inner_texts() == ["中文"]
  page.locator("#search").fill("<no such text>")
  playwright.expect(page.locator("#count")).to_contain_text("0 of ")


def test_it_opens_a_sentence_and_its_attention(page):
  page.locator("#filter").select_option("attention")
  assert numbers(column(page, 1)) == [4, 10]
  page.locator("#sentences .open").first.click()
  details = page.locator(".details")
  playwright.expect(details).to_have_count(1)
  assert "chrF2" in details.inner_text()
  cells = details.locator("svg rect:not(.frame)")
  pieces = details.locator("svg text")
  titles = cells.locator("title").all_text_contents()
  rows = {title.split(" attends to ")[0] for title in titles}
  assert "</s>" in rows
  assert cells.count() > 20
  assert pieces.count() > 8
  one = [cells.nth(n).get_attribute("fill-opacity") for n in range(6)]
  details.locator("select").select_option("0")
  other = [cells.nth(n).get_attribute("fill-opacity") for n in range(6)]
  assert one != other
  page.locator("#sentences .open").first.click()
  playwright.expect(details).to_have_count(0)


def test_it_has_pages(page):
  assert page.locator("#page").inner_text() == "Page 1 of 3"
  assert page.locator("#previous").is_disabled()
  for _ in range(2):
    page.locator("#next").click()
  assert numbers(column(page, 1)) == list(range(101, 121))
  assert page.locator("#next").is_disabled()


def test_groups_show_another_metric(page):
  values = page.locator("#groups .card:first-child .value")
  bleu = values.all_inner_texts()
  page.locator("#group_metric").select_option("chrF2")
  assert values.all_inner_texts() != bleu


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_its_window(browser, report, scheme, width):
  context = browser.new_context(
    color_scheme=scheme, viewport={"width": width, "height": 900}
  )
  page = context.new_page()
  page.goto(report.as_uri())
  page.locator("#filter").select_option("attention")
  page.locator("#sentences .open").first.click()
  assert page.evaluate(
    "document.documentElement.scrollWidth <= window.innerWidth"
  )
  ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
  brightness = sum(map(int, ground[4:-1].split(",")))
  assert (brightness > 384) == (scheme == "light")
  if PICTURES:
    for name, place in (("top", "h1"), ("sentences", "#heading")):
      page.evaluate(f"document.querySelector('{place}').scrollIntoView()")
      path = pathlib.Path(PICTURES) / f"report-{name}-{scheme}-{width}.png"
      page.screenshot(path=str(path))
  context.close()
