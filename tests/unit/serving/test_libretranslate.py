"""LibreTranslate's wire format, by services that translate backwards."""

import pytest
from serving_fakes import make_translator

pytest.importorskip("fastapi")
from fastapi.testclient import TestClient

from official_transformer.serving.application import create_application
from official_transformer.serving.directions import UNNAMED, Direction
from official_transformer.serving.local_service import LocalService
from official_transformer.serving.metrics import Metrics
from official_transformer.serving.model_host import ModelHost, Newest
from official_transformer.serving.settings import Access, ServiceLimits

EN_DE, DE_EN = Direction("en", "de"), Direction("de", "en")
LIMITS = ServiceLimits(
  body_bytes=2000, lines=5, line_characters=50, queued_tokens=90
)
ASKED = {"source": "en", "target": "de"}


@pytest.fixture
def hosts():
  """A model of each direction."""
  hosts = {
    direction: ModelHost(lambda _: make_translator(), lambda: Newest(1), LIMITS)
    for direction in (EN_DE, DE_EN)
  }
  yield hosts
  for host in hosts.values():
    host.close()


def client_of(hosts, access=Access()):  # noqa: B008
  services = {d: LocalService(host, str(d)) for d, host in hosts.items()}
  application = create_application(services, LIMITS, Metrics(), access)
  return TestClient(application, raise_server_exceptions=False)


@pytest.fixture
def client(hosts):
  return client_of(hosts)


def post(client, path="/translate", status=200, **request):
  answer = client.post(path, **request)
  assert answer.status_code == status, answer.text
  return answer.json()


def refused(client, status, path="/translate", **request):
  """Returns an error as clients of LibreTranslate read it."""
  found = post(client, path, status, **request)
  assert list(found) == ["error"]
  return found["error"]


@pytest.mark.parametrize(
  "request_of",
  [
    lambda fields: {"json": fields},
    lambda fields: {"data": fields},
    lambda fields: {"params": fields},
    # As a browser's FormData is sent.
    lambda fields: {"files": {n: (None, v) for n, v in fields.items()}},
  ],
  ids=["json", "form", "address", "parts"],
)
def test_every_kind_of_body_is_read(client, request_of):
  request = request_of({"q": "ab\n\ncd\r\n", **ASKED})
  # Browsers end the lines of forms so.
  end = "\r\n" if "json" in request else "\n"
  assert post(client, **request) == {"translatedText": f"ba\n\ndc{end}"}


def test_the_direction_chooses_the_model(client, hosts):
  for source, target in hosts:
    fields = {"q": "abc", "source": source, "target": target}
    assert post(client, json=fields) == {"translatedText": "cba"}
  for host in hosts.values():
    # One batch is the warming up.
    assert len(host.translator.searchers.plain.batches) == 2
  asked = {"text": "abc", "source": "de", "target": "en"}
  assert post(client, json=asked)["translations"][0]["translation"] == "cba"
  asked = {"text": "abc"}
  answer = client.post("/translate", json=asked)
  assert answer.status_code == 422
  assert "name source and target" in answer.json()["error"]["message"]
  ready = client.get("/ready").json()
  assert ready["directions"] == [
    {"source": "en", "target": "de"},
    {"source": "de", "target": "en"},
  ]
  measured = client.get("/metrics").text
  assert 'translation_model_step{direction="de-en"} 1.0' in measured


def test_several_texts_and_their_alternatives(client):
  fields = {**ASKED, "q": ["ba\nab", "aa"], "alternatives": 5}
  assert post(client, json=fields) == {
    "translatedText": ["ab\nba", "aa"],
    # The beam has two; the second hypothesis is sorted.
    "alternatives": [["ab\nab"], []],
  }
  fields["q"] = "cba"
  assert post(client, data=fields) == {
    "translatedText": "abc",
    "alternatives": [],
  }
  assert post(client, json={**ASKED, "q": []}) == {"translatedText": []}


def test_the_language_is_detected_if_it_is_to_be(client):
  text = "wo ist der bahnhof\nich suche ihn"
  fields = {"q": text, "source": "auto", "target": "en"}
  found = post(client, json=fields)
  assert found["detectedLanguage"]["language"] == "de"
  assert 50 < found["detectedLanguage"]["confidence"] <= 100
  assert found["translatedText"].count("\n") == 1
  # Nothing is to be done, if it is the target's.
  fields["target"] = "de"
  assert post(client, json=fields)["translatedText"] == text
  first, second = post(client, "/detect", data={"q": text})
  assert (first["language"], second["language"]) == ("de", "en")
  assert first["confidence"] + second["confidence"] == pytest.approx(100)


def test_languages_and_settings(client):
  assert client.get("/languages").json() == [
    {"code": "en", "name": "English", "targets": ["de"]},
    {"code": "de", "name": "German", "targets": ["en"]},
  ]
  settings = client.get("/frontend/settings").json()
  assert settings["language"]["target"] == {"code": "de", "name": "German"}
  assert settings["charLimit"] == 50 and not settings["keyRequired"]


@pytest.mark.parametrize(
  ("request_", "status", "said"),
  [
    ({"json": {"q": "a"}}, 400, "source: Field required"),
    ({"json": {**ASKED, "q": "a", "text": "a"}}, 400, "text is of one format"),
    ({"data": {"q": "a", "source": "en"}}, 400, "target: Field required"),
    ({"json": {**ASKED, "q": ""}}, 400, "q"),
    ({"json": {**ASKED, "q": 1}}, 400, "q"),
    ({"json": {**ASKED, "q": ["a", 1]}}, 400, "q"),
    ({"json": {**ASKED, "q": "a", "format": "rtf"}}, 400, "format"),
    ({"json": {**ASKED, "q": "a", "alternatives": -1}}, 400, "alternatives"),
    ({"json": {**ASKED, "q": "a", "source": "fr"}}, 400, "en-de, de-en"),
    ({"json": {**ASKED, "q": "a" * 51}}, 400, "line 1 has 51"),
    ({"json": {**ASKED, "q": "a\n" * 5}}, 400, "6 lines; a request may have 5"),
    (
      {
        "content": b'{"q": "\\ud800", "source": "en", "target": "de"}',
        "headers": {"content-type": "application/json"},
      },
      400,
      "surrogate",
    ),
    ({"json": {**ASKED, "q": ["a" * 40] * 5}}, 400, "more than 90 tokens"),
    ({"data": {**ASKED, "text": "a" * 3000}}, 400, "2000 bytes"),
    ({"data": b"q=f%FCr"}, 400, "not UTF-8; is it Latin-1?"),
    ({"data": b"q=f\xfcr"}, 400, "byte 4 (0xfc): not UTF-8"),
    (
      {"data": {"q": "a"}, "headers": {"origin": "https://other.example"}},
      403,
      "a page of https://other.example",
    ),
    (
      {"files": {"q": (None, b"f\xfcr")}},
      400,
      "q, byte 2 (0xfc): not UTF-8",
    ),
    (
      {"content": b"x", "headers": {"content-type": "multipart/form-data"}},
      400,
      "needs a boundary",
    ),
  ],
)
def test_what_is_wrong_is_said(client, request_, status, said):
  if isinstance(request_.get("data"), bytes):
    request_ = {
      "content": request_["data"],
      "headers": {"content-type": "application/x-www-form-urlencoded"},
    }
  assert said in refused(client, status, **request_)


def test_a_page_of_the_service_itself_may_send_a_form(client):
  headers = {"origin": "http://testserver", "sec-fetch-site": "same-origin"}
  found = post(client, data={"q": "ab", **ASKED}, headers=headers)
  assert found == {"translatedText": "ba"}


def test_a_language_may_be_a_target_alone(hosts):
  client = client_of({EN_DE: hosts[EN_DE]})
  assert client.get("/languages").json() == [
    {"code": "en", "name": "English", "targets": ["de"]},
    {"code": "de", "name": "German", "targets": []},
  ]
  fields = {"q": "ab", "source": "de", "target": "de"}
  assert post(client, json=fields) == {"translatedText": "ab"}


def test_each_text_has_a_language_that_can_be_translated(hosts):
  client = client_of({**hosts, Direction("cs", "en"): hosts[DE_EN]})
  english = "the dog runs and does not want to stop now"
  german = "der hund rennt und will nicht mehr anhalten"
  fields = {"q": [english, german], "source": "auto", "target": "de"}
  found = post(client, json=fields)
  codes = [one["language"] for one in found["detectedLanguage"]]
  assert codes == ["en", "de"]
  assert found["translatedText"][0] != english
  assert found["translatedText"][1] == german
  # A language stands for its only variant.
  brazilian = Direction("en", "pt-BR")
  variant = client_of({brazilian: hosts[EN_DE], DE_EN: hosts[DE_EN]})
  fields = {"q": "Hotel Berlin Hamburg", "source": "auto", "target": "pt"}
  found = post(variant, json=fields)
  assert found["detectedLanguage"]["language"] == "en"
  # Nothing tells; there is no way from Czech.
  fields = {"q": "123", "source": "auto", "target": "de"}
  assert post(client, json=fields)["detectedLanguage"]["language"] != "cs"


def test_fields_without_a_value_are_as_if_not_there(client):
  empty = {"api_key": None, "format": None, "alternatives": None}
  fields = {"q": "ab", **ASKED}
  assert post(client, json={**fields, **empty}) == {"translatedText": "ba"}
  empty = dict.fromkeys(empty, "")
  assert post(client, data={**fields, **empty}) == {"translatedText": "ba"}
  # An address comes first, as with LibreTranslate.
  found = post(client, params={"source": "en"}, data={**fields, "source": "x"})
  assert found == {"translatedText": "ba"}


@pytest.mark.parametrize(
  ("headers", "body", "status", "said"),
  [
    ("multipart/form-data; boundary*", b"", 400, "boundary"),
    ("multipart/form-data; boundary=b", b"--b\r\n\r\na\r\n--b--", 400, "name"),
    ("multipart/form-data; boundary=b", b"--b\r\n", 400, "no end"),
    (
      "multipart/form-data; boundary=b",
      b"--b\r\nContent-Disposition: form-data; name*\r\n\r\na\r\n--b--",
      400,
      "name",
    ),
    (
      "multipart/form-data; boundary=b",
      b"--b\r\n" * 200 + b"--b--",
      400,
      "name",
    ),
    ("multipart/form-data; boundary=b", b"\r\n--b" * 330, 400, "300"),
    (
      "multipart/form-data; boundary=b",
      b"--b\r\nContent-Disposition: form-data; name=q\r\n\r\n\xed\xa0\x80\r\n"
      b"--b--",
      400,
      "q, byte 1",
    ),
    ("application/x-www-form-urlencoded", b"&a" * 400, 400, "fields"),
    ("application/json", b'{"q": ' + b"9" * 1900 + b"}", 400, "q"),
    ("application/json", b'{"q": [' + b"1," * 900 + b"1]}", 400, "q: it is no"),
    ("application/json", b"\x1f\x8b\x08", 400, "it is gzip"),
  ],
)
def test_hostile_bodies_are_refused(client, headers, body, status, said):
  answer = client.post(
    "/detect", content=body, headers={"content-type": headers}
  )
  assert answer.status_code == status, answer.text
  assert said in answer.json()["error"]


@pytest.mark.parametrize(
  ("boundary", "name"),
  [
    ("boundary=b", b'name="q"'),
    ('charset=utf-8; Boundary="b"', b"name=q"),
    ("boundary=b", b'filename="x"; name = "q"'),
  ],
)
def test_forms_in_parts_are_written_in_several_ways(client, boundary, name):
  body = b"preamble\r\n--b\r\nContent-Type: text/plain\r\n"
  body += b"Content-Disposition: form-data; " + name + b"\r\n\r\n"
  body += b"wo ist\r\n\r\n--bahn\r\n--b--\r\nepilogue"
  headers = {"content-type": f"multipart/form-data; {boundary}"}
  answer = client.post("/detect", content=body, headers=headers)
  assert answer.status_code == 200, answer.text


def test_errors_of_all_its_addresses_are_in_its_form(client):
  for answer in (
    client.get("/detect"),
    client.post("/suggest", json={}),
    client.post("/translate_file"),
  ):
    assert isinstance(answer.json()["error"], str)
  assert isinstance(client.get("/nothing").json()["error"], dict)


def test_a_model_without_languages_says_how_to_name_them(hosts):
  client = client_of({UNNAMED: hosts[EN_DE]})
  for said in (
    refused(client, 400, json={"q": "a", **ASKED}),
    refused(client, 400, json={"q": "a", **ASKED, "source": "auto"}),
    refused(client, 400, "/detect", json={"q": "a"}),
  ):
    assert "--model_dir=en-de=DIR" in said
  assert client.get("/languages").json() == []
  assert client.get("/ready").json()["directions"] == []


def test_the_key_is_in_the_body(hosts):
  client = client_of(hosts, Access(key="sésame"))
  fields = {"q": "ab", **ASKED}
  for path in ("/translate", "/detect"):
    for keyed in (fields, {**fields, "api_key": "sesame"}):
      assert "API key" in refused(client, 403, path, data=keyed)
      assert "API key" in refused(client, 403, path, json=keyed)
    keyed = {**fields, "api_key": "sésame"}
    post(client, path, data=keyed)
    post(client, path, json=keyed)
    # Or in the header, which may be a proxy's.
    key = {"Authorization": "Bearer sésame".encode()}
    post(client, path, data=fields, headers=key)
    post(client, path, json=keyed, headers={"Authorization": "Basic abc"})
    for body in (b"{", b"[1]", b"a" * 5000, b""):
      for kind in ("application/json", "multipart/form-data", "text/plain"):
        answer = client.post(path, content=body, headers={"content-type": kind})
        assert answer.status_code in (401, 403)
  # Our own format has it in the header alone.
  asked = {"text": "ab", "api_key": "sésame"}
  assert client.post("/translate", json=asked).status_code == 401
  assert client.get("/frontend/settings").json()["keyRequired"]
