"""Batches of lines that came in different requests.

A batch contains the line that has waited longest and the lines nearest to it in
length, within the limits of a batch: so there is little padding, and no line
waits for ever. While a worker is free, a line waits `batch_wait` seconds at
most for others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError

from official_transformer.decoding.hypotheses import FoundSequence
from official_transformer.decoding.line_preparation import (
  PieceToTranslate,
  PreparedLine,
)
from official_transformer.decoding.requests import TranslationRequest
from official_transformer.decoding.translation import (
  Translation,
  join_pieces,
)
from official_transformer.decoding.translator import Translator
from official_transformer.errors import InputError
from official_transformer.serving.settings import ServiceLimits


class QueueFullError(Exception):
  """So much waits already that a request cannot be taken on now."""


class TooMuchError(Exception):
  """A request that would not fit even if nothing waited."""


class ClosedError(Exception):
  """Nothing more is taken on."""


class Job:
  """The lines of one request.

  Attributes:
    future: future of their translations, in order.
    translator: translator of the lines.
    tokens: tokens of all pieces of all lines.
  """

  def __init__(
    self,
    translator: Translator,
    request: TranslationRequest,
    most_tokens: int,
  ) -> None:
    """Cuts lines into tokens.

    Raises:
      RequestError: if the translator cannot do what a line asks for.
      TooMuchError: if there are more than `most_tokens`.
    """
    translator.check(request)
    self.future: Future[list[Translation]] = Future()
    self.translator = translator
    self._request = request
    self._lines: list[PreparedLine] = []
    self.tokens = 0
    for asked in request.line_requests():
      line = translator.prepare(asked)
      self._lines.append(line)
      self.tokens += sum(map(len, line.ids))
      if self.tokens > most_tokens:
        raise TooMuchError(f"more than {most_tokens} tokens")
    encode = translator.tokenizers.target.encode
    self.pieces = [
      # With a prefix, the search takes at least as many steps as the prefix has
      # tokens.
      _Piece(
        self,
        number,
        piece,
        max(len(piece.ids), len(encode(piece.constraints.prefix))),
      )
      for number, piece in enumerate(
        piece for line in self._lines for piece in line.to_translate()
      )
    ]
    self.tokens = sum(piece.length for piece in self.pieces)
    if self.tokens > most_tokens:
      raise TooMuchError(f"more than {most_tokens} tokens")
    self._found: dict[int, list[FoundSequence]] = {}

  def add(self, number: int, found: list[FoundSequence]) -> bool:
    """Keeps the result of a piece; returns whether it was the last."""
    self._found[number] = self.translator.searchers.best(
      self.pieces[number].asked, found, self._request.n_best
    )
    return len(self._found) == len(self.pieces)

  def finish(self) -> None:
    """Passes the translations to the waiting request."""
    aligned = self._request.aligned
    reads = aligned or any(line.runs for line in self._lines)
    pieces = iter(
      self.translator.hypotheses(
        [piece.asked for piece in self.pieces],
        [self._found[n] for n in range(len(self.pieces))],
        reads,
      )
    )
    translations = [
      join_pieces(line, [next(pieces) for _ in line.ids], aligned)
      for line in self._lines
    ]
    self._settle(lambda: self.future.set_result(translations))

  def fail(self, error: BaseException) -> None:
    """Passes an error to the waiting request."""
    self._settle(lambda: self.future.set_exception(error))

  def _settle(self, settle: Callable[[], object]) -> None:
    # The waiting request may have been cancelled.
    with contextlib.suppress(InvalidStateError):
      settle()


@dataclasses.dataclass(frozen=True, eq=False)
class _Piece:
  """A line, or a part of one, that waits for the search.

  Attributes:
    job: request that it is a part of.
    number: among the job's pieces.
    asked: the text to translate, with constraints and options of the search.
    length: tokens of the source, or of the prefix if that is longer.
    since: when it began to wait.
  """

  job: Job
  number: int
  asked: PieceToTranslate
  length: int
  since: float = dataclasses.field(default_factory=time.monotonic)


class Batcher:
  """Translates with one model; `submit` may be called from any thread.

  Attributes:
    translator: the model.
    on_batch: called for each batch with the number of its lines, of its tokens
      without padding, and of the tokens that still wait.
  """

  def __init__(
    self,
    translator: Translator,
    limits: ServiceLimits,
    on_batch: Callable[[int, int, int], object] = lambda *_: None,
  ) -> None:
    self.translator = translator
    self.on_batch = on_batch
    self._limits = limits
    self._changed = threading.Condition()
    self._waiting: list[_Piece] = []  # The oldest first.
    self._tokens = 0
    self._closed = False
    self._idle = 0
    self._threads = [
      threading.Thread(target=self._work, name=f"batch-{n}")
      for n in range(translator.options.workers)
    ]
    for thread in self._threads:
      thread.start()

  @property
  def queued_tokens(self) -> int:
    """Tokens that wait."""
    return self._tokens

  @property
  def is_alive(self) -> bool:
    """Whether all threads that translate are running."""
    return all(thread.is_alive() for thread in self._threads)

  def submit(self, request: TranslationRequest) -> Job:
    """Accepts lines to translate.

    Raises:
      RequestError: if the model cannot do what a line asks for.
      TooMuchError: if the request has more tokens than the queue may hold.
      QueueFullError: if the queue is full.
      ClosedError: if the batcher is closed.
    """
    if self._tokens >= self._limits.queued_tokens:
      with self._changed:
        self._drop_abandoned()
        if self._tokens >= self._limits.queued_tokens:
          raise QueueFullError  # Sooner than its lines are tokens.
    most = self._limits.queued_tokens
    job = Job(self.translator, request, most)
    with self._changed:
      if self._closed:
        raise ClosedError
      if self._tokens + job.tokens > self._limits.queued_tokens:
        self._drop_abandoned()
      if self._tokens + job.tokens > self._limits.queued_tokens:
        raise QueueFullError
      self._waiting.extend(job.pieces)
      self._tokens += job.tokens
      self._changed.notify_all()
    if not job.pieces:
      job.finish()
    return job

  def close(self) -> None:
    """Takes no more on; returns when all that waits has been translated."""
    with self._changed:
      self._closed = True
      self._changed.notify_all()
    for thread in self._threads:
      thread.join()

  def _work(self) -> None:
    """Translates batches until the batcher is closed and nothing waits."""
    while batch := self._take():
      try:
        tokens = sum(piece.length for piece in batch)
        self.on_batch(len(batch), tokens, self._tokens)
        self._translate(batch)
      # Any error concerns these lines only, and other lines wait.
      except Exception as error:
        for piece in batch:
          piece.job.fail(error)

  def _translate(self, batch: list[_Piece]) -> None:
    """Searches for a batch, and answers the requests that it completes."""
    try:
      found = self.translator.searchers.search([p.asked for p in batch])
    except InputError as error:
      if len(batch) == 1:
        batch[0].job.fail(error)
        return
      # The memory may suffice for each by itself: most are not to blame.
      for piece in batch:
        try:
          self._translate([piece])
        except Exception as error:
          piece.job.fail(error)
      return
    for piece, sequences in zip(batch, found, strict=True):
      with self._changed:
        last = piece.job.add(piece.number, sequences)
      if last:
        try:
          piece.job.finish()
        except Exception as error:
          piece.job.fail(error)

  def _take(self) -> list[_Piece]:
    """Waits for a batch; it is empty when there will be none."""
    with self._changed:
      self._idle += 1
      while True:
        self._drop_abandoned()
        if not self._waiting:
          if self._closed:
            return []
          self._changed.wait()
          continue
        batch = self._best_batch()
        company = self._waiting[0].since + self._limits.batch_wait
        patience = company - time.monotonic()
        if len(batch) < len(self._waiting) or patience <= 0 or self._closed:
          taken = set(map(id, batch))
          self._waiting = [p for p in self._waiting if id(p) not in taken]
          self._tokens -= sum(piece.length for piece in batch)
          self._idle -= 1
          return batch
        self._changed.wait(patience)

  def _drop_abandoned(self) -> None:
    """Drops pieces of requests that have ended."""
    gone = [p for p in self._waiting if p.job.future.done()]
    if gone:
      self._waiting = [p for p in self._waiting if not p.job.future.done()]
      self._tokens -= sum(piece.length for piece in gone)

  def _best_batch(self) -> list[_Piece]:
    """Returns the oldest piece, and the pieces nearest to it in length."""
    oldest = self._waiting[0]
    near = sorted(self._waiting, key=lambda p: abs(p.length - oldest.length))
    limits = self.translator.options.limits
    # The pieces are shared with other free workers.
    share = -(-len(near) // self._idle)
    batch: list[_Piece] = []
    longest = 0
    for piece in near:
      longest = max(longest, piece.length)
      if len(batch) >= min(limits.size(longest), share):
        break
      batch.append(piece)
    return batch
