import dataclasses
import threading
import time

import pytest
from serving_fakes import asked, make_translator
from waiting import LONGEST_SECONDS, wait_for

from official_transformer.errors import InputError
from official_transformer.serving import batcher as lib
from official_transformer.serving.settings import ServiceLimits

LIMITS = ServiceLimits(queued_tokens=60, batch_wait=0.0)


@pytest.fixture
def make():
  """Returns batchers that are closed after the test."""
  made = []

  def make(limits=LIMITS, **options):
    batcher = lib.Batcher(make_translator(**options), limits)
    made.append(batcher)
    return batcher

  yield make
  for batcher in made:
    batcher.translator.searchers.plain.go.set()
    batcher.close()


def texts(job):
  return [t.text for t in job.future.result(LONGEST_SECONDS)]


def hold(batcher):
  """Has the worker busy with a line; what comes next waits."""
  searcher = batcher.translator.searchers.plain
  searcher.go.clear()
  job = batcher.submit(asked(["z"]))
  assert searcher.began.acquire(timeout=120)
  return job


def test_lines_come_back_to_whom_they_belong(make):
  batcher = make()
  jobs = [batcher.submit(asked([f"ab{c}", "", f"{c}x"])) for c in "cdefgh"]
  assert [texts(job) for job in jobs] == [
    [f"{c}ba", "", f"x{c}"] for c in "cdefgh"
  ]


def test_hypotheses_and_flags_are_the_translators(make):
  batcher = make()
  line = "hgfedcba. abc"  # Longer than 10 tokens.
  (found,) = batcher.submit(asked([line], 2)).future.result(LONGEST_SECONDS)
  expected = batcher.translator.translate_line(line)
  assert found.pieces == expected.pieces == 2
  assert len(found.hypotheses) == 2
  assert not found.hypotheses[1].finished
  assert found.hypotheses[0] == expected.hypotheses[0]


def test_requests_share_batches_of_like_lengths(make):
  batcher = make(lines=3)
  hold(batcher)
  jobs = [
    batcher.submit(asked([line])) for line in ("a", "abcdefg", "b", "c", "d")
  ]
  batcher.translator.searchers.plain.go.set()
  assert [texts(job) for job in jobs] == [
    ["a"],
    ["gfedcba"],
    ["b"],
    ["c"],
    ["d"],
  ]
  sizes = [
    sorted(len(ids) for ids in batch)
    for batch in batcher.translator.searchers.plain.batches[1:]
  ]
  # The oldest first, with the nearest; nothing waits for ever.
  assert sizes == [[2, 2, 2], [2, 8]]


def test_free_workers_share_what_waits(make):
  limits = dataclasses.replace(LIMITS, batch_wait=5.0)
  batcher = make(limits, workers=2, lines=8)
  searcher = batcher.translator.searchers.plain
  searcher.go.clear()
  job = batcher.submit(asked(list("abcdef")))
  for _ in range(2):
    assert searcher.began.acquire(timeout=120)
  searcher.go.set()
  assert texts(job) == list("abcdef")
  assert sorted(map(len, searcher.batches)) == [3, 3]


def test_a_line_waits_for_company_but_not_for_long(make):
  alone = make(dataclasses.replace(LIMITS, batch_wait=0.5))
  began = time.monotonic()
  assert texts(alone.submit(asked(["a"]))) == ["a"]
  assert time.monotonic() - began >= 0.5
  batcher = make(dataclasses.replace(LIMITS, batch_wait=3600.0), lines=2)
  jobs = [batcher.submit(asked([line])) for line in "abcd"]
  # More than a batch holds: the first two wait no longer.
  assert [texts(job) for job in jobs[:2]] == [["a"], ["b"]]
  # Nor does anybody when no company can come.
  batcher.close()
  assert [texts(job) for job in jobs[2:]] == [["c"], ["d"]]
  assert [len(b) for b in batcher.translator.searchers.plain.batches] == [2, 2]


def test_what_is_too_much_is_not_taken_on(make):
  batcher = make()
  hold(batcher)
  with pytest.raises(lib.TooMuchError, match="more than 60 tokens"):
    batcher.submit(asked(["abcdef"] * 10))
  job = batcher.submit(asked(["abcdef"] * 8))  # 56 tokens.
  assert batcher.queued_tokens == 56
  with pytest.raises(lib.QueueFullError):
    batcher.submit(asked(["abcd"]))
  batcher.translator.searchers.plain.go.set()
  assert texts(job) == ["fedcba"] * 8
  assert batcher.queued_tokens == 0
  assert texts(batcher.submit(asked(["abcd"]))) == ["dcba"]


def test_what_nobody_waits_for_is_not_translated(make):
  batcher = make()
  hold(batcher)
  gone = batcher.submit(asked(["abc"] * 10))
  wanted = batcher.submit(asked(["xy"]))
  gone.future.cancel()
  batcher.translator.searchers.plain.go.set()
  assert texts(wanted) == ["yx"]
  assert batcher.queued_tokens == 0
  assert len(batcher.translator.searchers.plain.batches) == 2


def test_an_error_belongs_to_its_lines(make):
  batcher = make()
  batcher.translator.searchers.plain.error = InputError("out of memory")
  with pytest.raises(InputError, match="out of memory"):
    batcher.submit(asked(["ab"])).future.result(LONGEST_SECONDS)
  assert texts(batcher.submit(asked(["ab"]))) == ["ba"]
  assert batcher.is_alive


def test_a_lack_of_memory_is_that_of_the_line_that_lacks_it(make):
  batcher = make()
  searcher = batcher.translator.searchers.plain
  search = searcher.search

  def search_short(sources):
    if sum(map(len, sources)) > 6:
      searcher.batches.append(sources)
      raise InputError("out of memory")
    return search(sources)

  hold(batcher)
  searcher.search = search_short
  short = batcher.submit(asked(["ab", "cd"]))
  long = batcher.submit(asked(["abcdefg"]))
  searcher.go.set()
  assert texts(short) == ["ba", "dc"]
  with pytest.raises(InputError, match="out of memory"):
    long.future.result(LONGEST_SECONDS)


def test_what_cannot_be_text_hurts_nobody_else(make, monkeypatch):
  batcher = make()
  decode = batcher.translator.tokenizers.target.decode

  def decode_some(ids):
    if 2 in ids:
      raise RuntimeError("no such piece")
    return decode(ids)

  monkeypatch.setattr(
    batcher.translator.tokenizers.target, "decode", decode_some
  )
  hold(batcher)
  bad, good = batcher.submit(asked(["ab"])), batcher.submit(asked(["cd"]))
  batcher.translator.searchers.plain.go.set()
  with pytest.raises(RuntimeError, match="no such piece"):
    bad.future.result(LONGEST_SECONDS)
  assert texts(good) == ["dc"]
  assert batcher.is_alive


def test_closing_answers_what_was_taken_on(make):
  batcher = make()
  first = hold(batcher)
  jobs = [batcher.submit(asked([line])) for line in ("ab", "cd", "ef")]
  closing = threading.Thread(target=batcher.close)
  closing.start()
  wait_for(lambda: batcher._closed)
  with pytest.raises(lib.ClosedError):
    batcher.submit(asked(["gh"]))
  batcher.translator.searchers.plain.go.set()
  closing.join(LONGEST_SECONDS)
  assert [texts(job) for job in (first, *jobs)] == [
    ["z"],
    ["ba"],
    ["dc"],
    ["fe"],
  ]
  assert not batcher.is_alive
