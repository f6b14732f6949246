"""The service as its users meet it: a process, and a socket."""

import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import threading
import urllib.error

import command_line
import pytest
from command_line import MAIN, SERVER, fail, succeed
from running_server import running_server
from trained_model import lines_of, read_frozen
from waiting import wait_for

from official_transformer.decoding.phrases import DecodingConstraints
from official_transformer.decoding.requests import LineRequest
from official_transformer.decoding.translator import Translator
from official_transformer.search.options import Sampling, SearchOptions

pytestmark = pytest.mark.slow

pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def lines():
  return [line.strip() for line in lines_of(read_frozen(), "sources")[:60]]


@pytest.fixture(scope="module")
def expected(trained_model, lines, tmp_path_factory):
  """What predict makes of the lines."""
  directory = tmp_path_factory.mktemp("predicted")
  (directory / "in").write_text("\n".join(lines) + "\n", encoding="utf-8")
  out = directory / "out"
  flags = ["--output_format=jsonl", f"--file={directory}/in"]
  flags += [f"--model_dir={trained_model}", f"--file_out={out}"]
  succeed(MAIN, "--mode=predict", *flags)
  return [json.loads(line) for line in out.read_text("utf-8").splitlines()]


@contextlib.contextmanager
def clean_server(model, directory, *flags):
  """A server that ends as asked, and says nothing of a fault before."""
  with running_server(model, directory, *flags) as server:
    yield server
    assert server.stop() == 0
    said = server.log.read_text("utf-8")
    assert "Traceback" not in said
    assert "SIGTERM" in said


@pytest.fixture(scope="module")
def server(trained_model, tmp_path_factory):
  """A server as it comes, which waits for a slow machine to translate."""
  directory = tmp_path_factory.mktemp("server")
  with clean_server(trained_model, directory) as server:
    yield server


@pytest.fixture(scope="module")
def impatient(trained_model, tmp_path_factory):
  """A server that waits 10 seconds for whom it serves, and for itself."""
  directory = tmp_path_factory.mktemp("impatient")
  flags = ["--request_secs=10", "--max_body_bytes=20000"]
  with clean_server(trained_model, directory, *flags) as server:
    yield server


def assert_same(answer, wanted):
  found = answer["translations"]
  assert len(found) == len(wanted)
  for mine, theirs in zip(found, wanted, strict=True):
    assert mine["translation"] == theirs["translation"]
    assert mine["tokens"] == theirs["tokens"]
    assert mine["flags"] == theirs["flags"]
    assert mine["score"] == pytest.approx(theirs["score"], abs=1e-4)


def test_answers_are_predicts(server, lines, expected):
  assert_same(server.translate(lines, scores=True), expected)


def test_alignments_and_attention_come_if_asked(server, lines):
  plain = server.translate(lines[:3])["translations"]
  assert not any(
    {"alignment", "attention", "source_words"} & set(t) for t in plain
  )
  asked = server.translate(lines[:3], alignments=True)["translations"]
  shown = server.translate(lines[:3], attention=True, n_best=2)["translations"]
  for source, line, other, one in zip(lines, asked, shown, plain, strict=False):
    assert line["translation"] == other["translation"] == one["translation"]
    assert line["source_words"] == other["source_words"] == source.split()
    assert line["target_words"] == line["translation"].split()
    links = [link.split("-") for link in line["alignment"].split()]
    assert {int(t) for _, t in links} == set(range(len(line["target_words"])))
    assert "alignment" not in other
    assert len(other["hypotheses"]) == 2
    for hypothesis in other["hypotheses"]:
      weights = hypothesis["attention"]
      assert len(weights) == len(hypothesis["target_words"])
      for row in weights:
        assert len(row) == len(other["source_words"])
        assert 0 <= sum(row) <= 1.001


def test_a_search_is_guided_as_in_python(server, trained_model, lines):
  options = SearchOptions(
    no_repeat_ngram_size=2, forbidden=("der",), sampling=Sampling(number=3)
  )
  asked = [
    LineRequest(lines[0], DecodingConstraints(prefix="ein"), options),
    LineRequest(lines[1], DecodingConstraints(required=("hund",)), options),
  ]
  wanted = Translator.load(trained_model).translate(asked)
  guidance = {
    "prefixes": ["ein", ""],
    "required_phrases": [[], ["hund"]],
    "forbidden_phrases": ["der"],
    "no_repeat_ngram_size": 2,
    "sample": True,
    "n_best": 3,
  }
  found = server.translate(lines[:2], **guidance)["translations"]
  assert [t["translation"] for t in found] == wanted
  assert found[0]["translation"].startswith("ein")
  assert [len(t["hypotheses"]) for t in found] == [3, 3]
  plain = server.translate(lines[:2])["translations"]
  assert [t["translation"] for t in plain] != [t["translation"] for t in found]
  chosen = server.translate(lines[:2], mbr=True, scores=True)["translations"]
  assert all(0 <= t["utility"] <= 100 for t in chosen)


def test_many_clients_are_each_answered_their_own(server, lines, expected):
  problems = []

  def ask(seed):
    rng = random.Random(seed)
    for _ in range(10):
      rows = rng.sample(range(len(lines)), rng.choice([1, 1, 2, 5]))
      try:
        answer = server.translate([lines[i] for i in rows], scores=True)
        assert_same(answer, [expected[i] for i in rows])
      except (AssertionError, OSError) as error:
        problems.append(error)

  threads = [threading.Thread(target=ask, args=[n]) for n in range(8)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert not problems
  measured = server.get("/metrics")
  batches, translated = (
    re.search(rf'\n{name}{{direction=""}} (.+)', measured)[1]
    for name in ("translation_batch_lines_count", "translation_lines_total")
  )
  assert float(batches) < float(translated)


def head(length, *more):
  fields = ["POST /translate HTTP/1.1", "Host: localhost"]
  fields += ["Content-Type: application/json", f"Content-Length: {length}"]
  return "\r\n".join([*fields, *more, "", ""]).encode()


GOOD = b'{"text": "A dog runs."}'


def random_request(rng):
  """Returns bytes, and how they are sent: at once, cut off, or too slowly."""
  noise = rng.randbytes(rng.randrange(400))
  body = rng.choice(
    [
      GOOD[: rng.randrange(len(GOOD))],
      noise,
      json.dumps({"text": rng.choice([1, None, {}, [[]], True])}).encode(),
      json.dumps(
        {"text": "a", "n_best": rng.choice(["", -1, 99, 1.5])}
      ).encode(),
      b'{"text": "\xff\xfe"}',
      b"[" * rng.randrange(19_000),
      b'{"text": "' + b"x" * rng.randrange(9_000, 40_000) + b'"}',
      b'{"text": ' + b"9" * rng.randrange(6_000) + b"}",
    ]
  )
  kind = rng.random()
  if kind < 0.6:
    return head(len(body)) + body, "whole"
  if kind < 0.75:
    return head(len(body) + 100) + body, "cut"
  if kind < 0.85:
    return noise + b"\r\n\r\n", "whole"
  if kind < 0.9:
    return head(len(body), "Transfer-Encoding: chunked") + noise, "cut"
  return head(len(GOOD))[: rng.randrange(1, 60)], "cut"


def test_nothing_malformed_hurts(impatient, lines, expected):
  rng = random.Random(0)
  statuses = []
  for number in range(1000):
    content, kind = random_request(rng)
    with (
      socket.create_connection(("127.0.0.1", impatient.port), 50) as client,
      contextlib.suppress(ConnectionError),
    ):
      client.sendall(content)
      if kind == "cut" and number % 10:
        continue  # The client goes away.
      if kind == "cut":
        client.shutdown(socket.SHUT_WR)
      answer = b""
      while chunk := client.recv(65536):
        answer += chunk
        if answer.endswith((b"}", b"received.")):
          break
      if answer:
        statuses.append(int(answer.split(b" ", 2)[1]))
        assert b"Traceback" not in answer
  assert len(statuses) > 500
  assert set(statuses) <= {200, 400, 408, 413, 422, 504}, set(statuses)
  assert {400, 413, 422} <= set(statuses)
  assert_same(impatient.translate(lines[:5], scores=True), expected[:5])


def test_who_sends_far_too_much_is_told(impatient):
  """By clients, too, that send all of it before they read anything."""
  connection = http.client.HTTPConnection(
    "127.0.0.1", impatient.port, timeout=50
  )
  body = json.dumps({"text": "x" * 20_000_000})
  connection.request("POST", "/translate", body)
  answer = connection.getresponse()
  assert answer.status == 413
  assert "a request may have" in json.load(answer)["error"]["message"]
  connection.close()


def test_slow_senders_are_not_waited_for(impatient):
  """They keep nobody else waiting, either."""
  slow = []
  for content in (b"", b"POST /tr", head(500) + b'{"text": '):
    # Less than a server waits that was not told how long to.
    client = socket.create_connection(("127.0.0.1", impatient.port), 50)
    client.sendall(content)
    slow.append(client)
  assert impatient.translate("A dog runs.")
  answers = []
  for client in slow:
    answer = b""
    while chunk := client.recv(4096):
      answer += chunk
    answers.append(answer)
    client.close()
  assert answers[:2] == [b"", b""]
  assert b" 408 " in answers[2]


def test_a_head_without_end_is_refused(impatient):
  with socket.create_connection(("127.0.0.1", impatient.port), 50) as client:
    client.sendall(b"POST /translate HTTP/1.1\r\nX: ")
    with contextlib.suppress(ConnectionError):
      for _ in range(200):
        client.sendall(b"x" * 1000)
    # Or the connection is reset, as it is still sending. Whoever sends nothing
    # gets 408.
    with contextlib.suppress(ConnectionError):
      assert b" 400 " in client.recv(65536)


@pytest.mark.usefixtures("heard_hangups")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_answers_what_was_accepted(
  trained_model, tmp_path, lines, expected, number
):
  flags = ["--max_queued_tokens=99999"]
  with running_server(trained_model, tmp_path, *flags) as server:
    answers = {}

    def ask(number):
      answers[number] = server.translate(lines * 4, scores=True)

    threads = [threading.Thread(target=ask, args=[n]) for n in range(4)]
    for thread in threads:
      thread.start()
    wait_for(lambda: "requests_in_progress 4.0" in server.get("/metrics"))
    assert server.stop(number) == 0
    for thread in threads:
      thread.join()
  for asked in range(4):
    assert_same(answers[asked], expected * 4)


def test_a_newer_checkpoint_is_used_without_a_lost_request(
  demo_model, tmp_path
):
  model = tmp_path / "model"
  shutil.copytree(demo_model, model)
  newest = model / "checkpoints" / "step-30"
  aside = tmp_path / "step-30"
  newest.rename(aside)
  flags = ["--reload_secs=0.2", "--beam_size=2"]
  with running_server(model, tmp_path, *flags) as server:
    steps = []
    failures = []
    done = threading.Event()

    def ask():
      while not done.is_set():
        try:
          steps.append(server.translate("the dog runs")["model"]["step"])
        except OSError as error:
          failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
      thread.start()
    try:
      wait_for(lambda: steps)
      aside.rename(newest)
      wait_for(lambda: steps[-1] == 30)
    finally:
      done.set()
      for thread in threads:
        thread.join()
    assert not failures
    assert {20, 30} == set(steps)
    assert 'translation_model_reloads{direction=""} 1.0' in server.get(
      "/metrics"
    )


def has_ended(pid):
  """Whether a process runs no more, even if nobody has asked how it ended."""
  try:
    stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
  except (FileNotFoundError, ProcessLookupError):
    return True
  return stat.rpartition(")")[2].split()[0] == "Z"


def test_several_workers_are_one_service(demo_model, tmp_path):
  flags = ["--server_workers=2", "--beam_size=2"]
  with running_server(demo_model, tmp_path, *flags) as server:
    wait_for(lambda: server.log.read_text("utf-8").count("ready:") == 2)
    workers = [
      int(n)
      for n in re.findall(r"process (\d+)", server.log.read_text("utf-8"))
    ]
    for _ in range(10):
      assert server.translate("the dog")
    # Whichever process answers, a moment after the last answer was counted.
    wait_for(
      lambda: 'requests_total{status="200"} 10.0' in server.get("/metrics")
    )
    assert 'translation_model_step{direction=""} 30.0' in server.get("/metrics")
    # One that is killed is replaced, and the other answers meanwhile.
    os.kill(workers[0], 9)
    wait_for(lambda: has_ended(workers[0]))
    answered = 0
    for _ in range(20):
      with contextlib.suppress(ConnectionError, urllib.error.URLError):
        answered += bool(server.translate("the dog"))
    assert answered > 10
    wait_for(lambda: server.log.read_text("utf-8").count("ready:") == 3)
    assert server.translate("the dog")
    assert server.stop() == 0
  for pid in workers:
    with pytest.raises(ProcessLookupError):
      os.kill(pid, 0)


def test_workers_end_with_what_watches_over_them(demo_model, tmp_path):
  flags = ["--server_workers=2", "--beam_size=1"]
  with running_server(demo_model, tmp_path, *flags) as server:
    wait_for(lambda: server.log.read_text("utf-8").count("ready:") == 2)
    said = server.log.read_text("utf-8")
    workers = [int(n) for n in re.findall(r"process (\d+)", said)]
    server.process.kill()
    wait_for(lambda: all(has_ended(pid) for pid in workers))


def test_an_occupied_port_is_named(trained_model):
  with socket.create_server(("127.0.0.1", 0)) as other:
    port = other.getsockname()[1]
    said = fail(SERVER, f"--model_dir={trained_model}", f"--port={port}")
  assert f"--port={port} cannot be had" in said


@pytest.mark.parametrize(
  ("flags", "complaint"),
  [
    (["--model_dir={tmp}"], "model.json"),
    (["--model_dir={model}", "--checkpoint=99"], "step"),
    (["--model_dir={model}", "--api_key_file={tmp}/none"], "none"),
    (["--model_dir={model}", "--api_key_file={tmp}/empty"], "holds no key"),
    (["--model_dir={model}", "--host=256.1.1.1"], "cannot be had"),
    (["--model_dir={model}", "--host=a..b"], "cannot be had"),
  ],
)
def test_mistakes_cost_one_line(trained_model, tmp_path, flags, complaint):
  (tmp_path / "empty").write_text("\n")
  flags = [f.format(tmp=tmp_path, model=trained_model) for f in flags]
  assert complaint in fail(SERVER, *flags)


def test_padded_decoding_is_no_flag_of_a_service(trained_model):
  said = fail(SERVER, f"--model_dir={trained_model}", "--padded_decode")
  assert "Unknown command line flag 'padded_decode'" in said


def test_missing_packages_are_named(trained_model, monkeypatch):
  monkeypatch.setitem(command_line.sys.modules, "uvicorn", None)
  monkeypatch.setitem(command_line.sys.modules, "prometheus_client", None)
  said = fail(SERVER, f"--model_dir={trained_model}")
  assert "pip install 'official-transformer[server]'" in said
