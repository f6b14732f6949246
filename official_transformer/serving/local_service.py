"""A service that translates in its own process."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, ThreadPoolExecutor

from official_transformer.decoding.requests import TranslationRequest
from official_transformer.decoding.translator import Translator
from official_transformer.serving.batcher import Job
from official_transformer.serving.dispatcher import Translated
from official_transformer.serving.metrics import Metrics
from official_transformer.serving.model_host import ModelHost
from official_transformer.serving.schemas import Model

# Characters of lines that are cut into tokens sooner than a thread is found.
_SHORT = 1000


class LocalService:
  """Hands requests to a model's batches; see `dispatcher.Service`.

  Attributes:
    host: holds the model.
    direction: direction of the model, as measurements name it.
  """

  def __init__(self, host: ModelHost, direction: str = "") -> None:
    self.host = host
    self.direction = direction
    self._cutters = ThreadPoolExecutor(thread_name_prefix="cut")

  async def translate(self, request: TranslationRequest) -> Translated:
    """Translates lines."""
    if sum(map(len, request.lines)) <= _SHORT and not request.constraints:
      job = self.host.submit(request)
    else:
      job = await self._submit_aside(request)
    translations = await asyncio.wrap_future(job.future)
    return Translated(translations, describe(job.translator))

  async def _submit_aside(self, request: TranslationRequest) -> Job:
    """Submits long lines in a thread, while other requests are answered."""
    cutting = self._cutters.submit(self.host.submit, request)
    try:
      # Cancelled, it is cancelled too, unless a thread has begun with it.
      return await asyncio.wrap_future(cutting)
    except asyncio.CancelledError:
      cutting.add_done_callback(_give_up)
      raise

  def is_ready(self) -> bool:
    """Whether lines are taken on."""
    return self.host.is_ready

  def model(self) -> Model:
    """Returns the description of the model in use."""
    return describe(self.host.translator)

  def measure(self, metrics: Metrics) -> None:
    """Sets the measurements that change by themselves."""
    for gauge, value in [
      (metrics.queued_tokens, self.host.batcher.queued_tokens),
      (metrics.model_step, self.model().step),
      (metrics.reloads, self.host.reloads),
      (metrics.failed_reloads, self.host.failed_reloads),
    ]:
      gauge.labels(self.direction).set(value)


def _give_up(cutting: Future[Job]) -> None:
  """Drops the job of a request that has ended."""
  if not cutting.cancelled() and cutting.exception() is None:
    cutting.result().future.cancel()


def describe(translator: Translator) -> Model:
  """Returns the description of a model."""
  checkpoint = translator.checkpoint
  assert checkpoint  # It has been loaded.
  return Model(
    checkpoint=str(checkpoint),
    step=checkpoint.step,
    engine=translator.options.engine.name,
    beam_size=translator.params.beam_size,
    max_length=translator.longest_piece,
  )
