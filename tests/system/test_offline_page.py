"""The page that translates without a network, in a browser."""

import functools
import http.server
import pathlib
import shutil
import threading

import chromium
import pytest
from random_model import LINES, random_model, train_vocabulary

from official_transformer.exporting.export import ExportRequest, export_model
from official_transformer.text.vocabulary_files import VocabFiles

playwright = pytest.importorskip("playwright.sync_api")

PAGE = pathlib.Path(__file__).parents[2] / "examples" / "offline_page"
ENGINE = PAGE / "node_modules"
pytestmark = [
  pytest.mark.slow,
  chromium.NEEDED,
  pytest.mark.skipif(
    not ENGINE.exists(), reason=f"no engine: npm install in {PAGE}"
  ),
]
# Their products are as wide as the engine's blocks.
SIZES = {"hidden_size": 64, "filter_size": 64, "norm": "post"}


@pytest.fixture
def address(tmp_path):
  """Serves the page with a model of random weights."""
  vocabulary = train_vocabulary(tmp_path)
  model = random_model(str(tmp_path / "trained"), vocabulary, **SIZES)
  page = tmp_path / "page"
  page.mkdir()
  shutil.copy(PAGE / "index.html", page)
  (page / "node_modules").symlink_to(ENGINE.resolve())
  request = ExportRequest(str(page / "model"), "bergamot")
  export_model(model, VocabFiles.joint(vocabulary), LINES, request)
  handler = functools.partial(
    http.server.SimpleHTTPRequestHandler, directory=str(page)
  )
  with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
      yield f"http://127.0.0.1:{server.server_port}/"
    finally:
      server.shutdown()
      thread.join()


def test_ten_lines_are_translated_without_a_network(address):
  with chromium.launched() as browser:
    context = browser.new_context()
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.goto(address)
    status = page.locator("#status")
    playwright.expect(status).to_contain_text("loaded", timeout=60_000)
    context.set_offline(True)
    page.on("request", lambda request: problems.append(request.url))
    page.locator("#source").fill("\n".join([*LINES, "", *LINES, "Two men"]))
    playwright.expect(status).to_contain_text("10 lines in", timeout=60_000)
    items = page.locator("#target > li").all_inner_texts()
    assert len(items) == 10 and items[4] == ""
    assert items[:4] == items[5:9]
    assert not problems
    context.close()
