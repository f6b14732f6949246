"""A service of two directions, asked by a client that others wrote."""

import json
import urllib.request

import pytest
from running_server import running_server
from trained_model import lines_of, read_frozen

from official_transformer.decoding.options import DecodingOptions
from official_transformer.decoding.translator import Translator

pytestmark = pytest.mark.slow

pytest.importorskip("uvicorn")
clients = pytest.importorskip("libretranslatepy")


@pytest.fixture(scope="module")
def server(trained_model, demo_model, tmp_path_factory):
  models = f"en-de={trained_model},de-en={demo_model}"
  with running_server(models, tmp_path_factory.mktemp("server")) as server:
    yield server
    assert server.stop() == 0
    assert "Traceback" not in server.log.read_text("utf-8")


def test_a_client_of_libretranslate_is_answered(
  server, trained_model, demo_model
):
  client = clients.LibreTranslateAPI(server.url(""))
  assert client.languages() == [
    {"code": "en", "name": "English", "targets": ["de"]},
    {"code": "de", "name": "German", "targets": ["en"]},
  ]
  lines = [line.strip() for line in lines_of(read_frozen(), "sources")[:3]]
  (first, second) = client.detect(lines[0])
  assert (first["language"], second["language"]) == ("en", "de")
  translator = Translator.load(trained_model)
  wanted = "\n".join(translator.translate(lines))
  assert client.translate("\n".join(lines), "en", "de") == wanted
  assert client.translate("\n".join(lines), "auto", "de") == wanted
  (other,) = Translator.load(demo_model).translate([lines[0]])
  assert client.translate(lines[0], "de", "en") == other
  asked = {"source": "de", "target": "en"}
  found = server.translate(lines[0], **asked)["translations"][0]
  assert found["translation"] == other


def test_html_and_alternatives_come_as_its_page_asks_for_them(
  server, trained_model
):
  html = "<p>The <b>old</b> man sleeps.</p>\n<p>The dog</p>"
  question = {"q": html, "source": "en", "target": "de", "format": "html"}
  request = urllib.request.Request(
    server.url("/translate"),
    json.dumps({**question, "alternatives": 2}).encode(),
    {"Content-Type": "application/json"},
  )
  with urllib.request.urlopen(request, timeout=60) as answer:
    found = json.load(answer)
  options = DecodingOptions(is_html=True, n_best=3)
  translator = Translator.load(trained_model, options=options)
  (wanted,) = translator.translate_stream([html])
  assert found["translatedText"] == wanted.text
  others = list(dict.fromkeys(h.text for h in wanted.hypotheses))[1:]
  assert found["alternatives"] == others != []
