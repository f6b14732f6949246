"""What is answered and refused, by a service that translates backwards."""

import contextlib
import dataclasses
import gzip
import json

import pytest
from serving_fakes import asked, make_translator
from waiting import LONGEST_SECONDS, wait_for

pytest.importorskip("fastapi")
from fastapi.testclient import TestClient

from official_transformer.decoding.engines import Engine
from official_transformer.decoding.output import json_line
from official_transformer.decoding.phrases import DecodingConstraints
from official_transformer.decoding.requests import TranslationRequest
from official_transformer.errors import InputError
from official_transformer.serving.application import create_application
from official_transformer.serving.directions import UNNAMED
from official_transformer.serving.local_service import LocalService
from official_transformer.serving.metrics import Metrics
from official_transformer.serving.model_host import ModelHost, Newest
from official_transformer.serving.settings import Access, ServiceLimits

LIMITS = ServiceLimits(
  body_bytes=2000, lines=5, line_characters=50, queued_tokens=90
)


@pytest.fixture
def host():
  host = ModelHost(lambda _: make_translator(), lambda: Newest(1), LIMITS)
  host.translator.searchers.plain.began.acquire()  # By the warming up.
  yield host
  host.translator.searchers.plain.go.set()
  host.close()


@pytest.fixture
def client(host):
  application = create_application(
    {UNNAMED: LocalService(host)}, LIMITS, Metrics()
  )
  return TestClient(application, raise_server_exceptions=False)


def ask(client, status=200, **question):
  answer = client.post("/translate", json=question)
  assert answer.status_code == status, answer.text
  return answer.json()


def refusal(answer, status):
  assert answer.status_code == status, answer.text
  assert answer.headers["content-type"] == "application/json"
  error = answer.json()["error"]
  assert error["status"] == status
  assert "Traceback" not in answer.text
  return error["message"]


def test_one_line_and_several(client):
  one = ask(client, text="abc")
  assert one["translations"] == [{"translation": "cba", "flags": []}]
  assert one["model"]["checkpoint"] == "step 1"
  several = ask(client, text=["ab", " ", "hgfedcba. abc"])
  assert several["translations"] == [
    {"translation": "ba", "flags": []},
    {"translation": " ", "flags": ["blank"]},
    {"translation": "abcdefgh cba", "flags": ["split"]},
  ]
  assert ask(client, text=[])["translations"] == []


def test_hypotheses_and_scores_are_those_of_jsonl(client, host):
  found = ask(client, text="abc", n_best=2, scores=True)["translations"][0]
  translation = host.submit(asked(["abc"], 2)).future.result(LONGEST_SECONDS)[0]
  assert found == json.loads(json_line(translation, 2))


def test_another_engine_has_no_attention(client, host, monkeypatch):
  options = dataclasses.replace(
    host.translator.options, engine=Engine("ctranslate2")
  )
  monkeypatch.setattr(host.translator, "options", options)
  for name in ("alignments", "attention"):
    answer = client.post("/translate", json={"text": "abc", name: True})
    assert "the engine is ctranslate2" in refusal(answer, 422)
  assert ask(client, text="abc")["translations"][0]["translation"] == "cba"


@pytest.mark.parametrize(
  ("body", "status", "said"),
  [
    (b"{", 400, "JSON"),
    (b'{"text": "\xff"}', 400, "body"),
    (b"[" * 1500, 400, ""),
    (b"", 400, "body: it is empty"),
    (b'{"text": ' + b"9" * 1900 + b"}", 422, "text"),
    (b"[]", 422, "body"),
    (b'"abc"', 422, "body"),
    (b"{}", 422, "text"),
    (b'{"text": 1}', 422, "text"),
    (b'{"text": null}', 422, "text"),
    (b'{"text": ["a", 1]}', 422, "text"),
    (b'{"text": "a", "n_best": 0}', 422, "n_best"),
    (b'{"text": "a", "n_best": 3}', 422, "the beam has 2"),
    (b'{"text": "a", "n_best": "2"}', 422, "n_best"),
    (b'{"text": "a", "n_best": NaN}', 422, "n_best"),
    (b'{"text": "a", "n_best": 1e400}', 422, "n_best"),
    (b'{"text": "a", "beam": 3}', 422, "beam"),
    (b'{"text": "a\\nb"}', 422, "line feed"),
    (b'{"text": ["a", "b\\r"]}', 422, "line 2"),
    (b'{"text": "\\ud800"}', 422, "surrogate"),
    (b'{"text": "a", "prefixes": ["b", "c"]}', 422, "2 for 1 lines"),
    (
      b'{"text": ["a", "b"], "required_phrases": [["c"]]}',
      422,
      "1 for 2 lines",
    ),
    (b'{"text": "a", "required_phrases": ["c"]}', 422, "required_phrases"),
    (b'{"text": "a", "prefixes": ["b\\nc"]}', 422, "prefixes"),
    (b'{"text": "a", "forbidden_phrases": [1]}', 422, "forbidden_phrases"),
    (
      json.dumps({"text": "a", "prefixes": ["b" * 51]}).encode(),
      422,
      "have 50",
    ),
    (
      json.dumps({"text": "a", "forbidden_phrases": ["b"] * 65}).encode(),
      422,
      "64",
    ),
    (b'{"text": "a", "min_length": 307}', 422, "at most 306 tokens"),
    (b'{"text": "a", "no_repeat_ngram_size": -1}', 422, "no_repeat_ngram"),
    (b'{"text": "a", "repetition_penalty": 0}', 422, "repetition_penalty"),
    (b'{"text": "a", "coverage_penalty": 1e300}', 422, "coverage_penalty"),
    (b'{"text": "a", "sample": true, "temperature": 0}', 422, "temperature"),
    (b'{"text": "a", "sample": true, "temperature": 1e-9}', 422, "temperature"),
    (b'{"text": "a", "sample": true, "top_k": 3000000000}', 422, "top_k"),
    (b'{"text": "a", "sample": true, "top_p": 1.5}', 422, "top_p"),
    (b'{"text": "a", "sample": true, "n_best": 3}', 422, "the beam has 2"),
    (b'{"text": "a", "sample_seed": -1}', 422, "sample_seed"),
    (
      b'{"text": "a", "sample": true, "coverage_penalty": 0.1}',
      422,
      "coverage_penalty",
    ),
    (b'{"text": "a", "temperature": 0.5}', 422, "sample"),
    (json.dumps({"text": "a" * 51}).encode(), 422, "may have 50"),
    (json.dumps({"text": ["a"] * 6}).encode(), 413, "may have 5"),
    (json.dumps({"text": ["a" * 40] * 5}).encode(), 413, "more than 90 tokens"),
    (b'{"text": "' + b"a" * 2000 + b'"}', 413, "2000 bytes"),
  ],
)
def test_what_is_wrong_is_said(client, body, status, said):
  answer = client.post(
    "/translate", content=body, headers={"content-type": "application/json"}
  )
  assert said in refusal(answer, status)


def test_other_addresses_and_methods_are_refused(client):
  refusal(client.get("/translate"), 405)
  refusal(client.get("/nothing"), 404)


@pytest.mark.parametrize(
  ("headers", "body", "status", "said"),
  [
    ({}, b'{"text": "a"}', 415, "there is no Content-Type"),
    (
      {"content-type": "text/plain"},
      b'{"text": "a"}',
      415,
      "Content-Type: text/plain: send JSON",
    ),
    (
      {"content-type": "application/json", "content-encoding": "gzip"},
      # With a fixed time in its header: it is part of the test's name.
      gzip.compress(b'{"text": "a"}', mtime=0),
      415,
      "Content-Encoding: gzip",
    ),
    (
      {"content-type": "application/json"},
      '{"text": "für"}'.encode("latin-1"),
      400,
      "byte 12 (0xfc)",
    ),
  ],
)
def test_what_is_no_json_is_told_by_its_header_or_byte(
  client, headers, body, status, said
):
  answer = client.post("/translate", content=body, headers=headers)
  assert said in refusal(answer, status)


@pytest.mark.parametrize(
  "kind", ["application/json; charset=utf-8", "Application/vnd.x+json"]
)
def test_json_has_several_names(client, kind):
  answer = client.post(
    "/translate", content=b'{"text": "ab"}', headers={"content-type": kind}
  )
  assert answer.json()["translations"][0]["translation"] == "ba"


def test_what_waits_is_counted_down(host):
  searcher = host.translator.searchers.plain
  searcher.go.clear()
  prefix = DecodingConstraints(prefix="abcdefghi")
  jobs = [
    host.submit(TranslationRequest((line,), (prefix,))) for line in ("ab", " ")
  ]
  searcher.go.set()
  for job in jobs:
    with contextlib.suppress(Exception):  # The fake cannot be guided.
      job.future.result(LONGEST_SECONDS)
  wait_for(lambda: host._batcher.queued_tokens == 0)


def test_too_much_and_too_late(client, host):
  searcher = host.translator.searchers.plain
  searcher.go.clear()
  first = host.submit(asked(["z"]))
  assert searcher.began.acquire(timeout=LONGEST_SECONDS)
  hasty = dataclasses.replace(LIMITS, seconds=0.5)
  late = TestClient(
    create_application({UNNAMED: LocalService(host)}, hasty, Metrics())
  ).post("/translate", json={"text": "abc"})
  assert "0.5 seconds" in refusal(late, 504)
  # The search is still at the first line; this waits.
  waiting = host.submit(asked(["abcdefgh"] * 10))
  full = client.post("/translate", json={"text": "abc"})
  refusal(full, 429)
  assert full.headers["retry-after"] == "1"
  searcher.go.set()
  assert first.future.result(LONGEST_SECONDS)[0].text == "z"
  assert len(waiting.future.result(LONGEST_SECONDS)) == 10
  assert ask(client, text="abc")["translations"][0]["translation"] == "cba"


def test_a_lack_of_memory_and_a_defect(client, host):
  host.translator.searchers.plain.error = InputError("out of memory")
  refusal(client.post("/translate", json={"text": "ab"}), 413)
  host.translator.searchers.plain.error = ZeroDivisionError("secret")
  message = refusal(client.post("/translate", json={"text": "ab"}), 500)
  assert "secret" not in message
  assert ask(client, text="ab")["translations"][0]["translation"] == "ba"


def test_probes_page_and_measurements(client, host):
  assert client.get("/health").json() == {"status": "alive"}
  assert client.get("/ready").json()["beam_size"] == 2
  page = client.get("/").text
  assert "<textarea" in page
  # Nothing is fetched from anywhere else.
  for text in (page, client.get("/docs").text):
    assert "http://" not in text and "https://" not in text
  assert "/translate" in client.get("/openapi.json").json()["paths"]
  ask(client, text="ab")
  ask(client, status=422, text=1)
  measured = client.get("/metrics").text
  assert 'translation_requests_total{status="200"} 1.0' in measured
  assert 'translation_requests_total{status="422"} 1.0' in measured
  assert 'translation_model_step{direction=""} 1.0' in measured
  host.close()
  refusal(client.get("/ready"), 503)
  refusal(client.post("/translate", json={"text": "ab"}), 503)


def test_a_key_is_demanded_if_there_is_one(host):
  application = create_application(
    {UNNAMED: LocalService(host)}, LIMITS, Metrics(), Access(key="sésame")
  )
  client = TestClient(application)
  for headers in (
    {},
    {"Authorization": "Bearer sesame"},
    {"Authorization": "sésame".encode()},
    {"Authorization": "Basic sésame".encode()},
  ):
    for body in (b'{"text": "a"}', b"{", b"a" * 5000):
      # Before anything is read of what it asks.
      refusal(client.post("/translate", content=body, headers=headers), 401)
  # However the path is written.
  for path in ("/metrics", "/metrics%0A", "/translate%0A"):
    refusal(client.get(path), 401 if "metrics" in path else 405)
  below = TestClient(application, root_path="/api")
  refusal(below.get("/api/metrics"), 401)
  # Nobody waits for what a refused request may carry.
  refusal(client.request("GET", "/metrics", content=b"{"), 401)
  for scheme in ("Bearer", "bearer", "BEARER"):
    key = {"Authorization": f"{scheme} sésame".encode()}
    answer = client.post("/translate", json={"text": "ab"}, headers=key)
    assert answer.status_code == 200
  assert client.get("/health").status_code == 200
  assert client.get("/").status_code == 200


@pytest.mark.parametrize(
  ("named", "status"),
  [
    ("localhost", 200),
    ("LOCALHOST:8000", 200),
    ("localhost.", 200),
    ("127.0.0.1:80", 200),
    ("[::1]:8000", 200),
    ("attacker.example", 421),
    ("attacker.example:8000", 421),
    ("localhost.attacker.example", 421),
    ("[::2]", 421),
    ("", 200),
  ],
)
def test_other_hosts_are_refused_if_names_are_given(host, named, status):
  """As of a page whose own name leads to this machine."""
  access = Access(hosts=frozenset({"localhost", "127.0.0.1", "::1"}))
  application = create_application(
    {UNNAMED: LocalService(host)}, LIMITS, Metrics(), access
  )
  client = TestClient(application)
  headers = {"Host": named}
  answer = client.post("/translate", json={"text": "ab"}, headers=headers)
  assert answer.status_code == status
  for path in ("/metrics", "/health", "/"):
    assert client.get(path, headers=headers).status_code == status
  # What looks after a container asks for it by this machine's name.
  client = TestClient(
    create_application(
      {UNNAMED: LocalService(host)},
      LIMITS,
      Metrics(),
      Access(hosts=frozenset({"translate.example"})),
    )
  )
  local = {"Host": "localhost:8000"}
  assert client.get("/ready", headers=local).status_code == 200
  assert client.get("/", headers=local).status_code == 421
  if status != 200:
    assert "--allowed_hosts" in refusal(answer, 421)
