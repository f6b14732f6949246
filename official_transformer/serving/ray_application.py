"""The service as a Ray Serve application: replicas on any number of machines.

    serve run official_transformer.serving.ray_application:application \
      model_dir=/models/ende max_replicas=4

Addresses, answers and the limits of a single request are those of
`translation_server`. Ray decides about replicas, their number, batches across
requests, and the queue; it answers 503 in its own words when the queue is full.
Newer checkpoints are used after the next deployment. There is one model,
without names of languages: LibreTranslate's clients need `translation_server`.
`model_dir` must be readable on every machine. Ray retries nothing;
`serving.client` does.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import fastapi
import pydantic
from ray import serve

from official_transformer.decoding.requests import (
  LineRequest,
  TranslationRequest,
)
from official_transformer.decoding.translation import Translation
from official_transformer.errors import InputError
from official_transformer.serving.application import create_application
from official_transformer.serving.directions import UNNAMED
from official_transformer.serving.dispatcher import Translated
from official_transformer.serving.local_service import describe
from official_transformer.serving.metrics import Metrics
from official_transformer.serving.schemas import Model
from official_transformer.serving.settings import (
  API_KEY_VARIABLE,
  Access,
  ServiceLimits,
  key_of_environment,
)

_LIMITS = ServiceLimits()
# Of the lines of a batch, in characters: Ray asks this before they are tokens.
_BATCH_CHARACTERS = 8192


class Arguments(pydantic.BaseModel):
  """Arguments of `serve run`.

  Attributes:
    model_dir: the model directory.
    engine: `tensorflow` or `ctranslate2`.
    min_replicas: how many there are at least.
    max_replicas: and at most; in between, Ray decides by the load.
    num_cpus: processors of a replica.
    ongoing_requests: requests of a replica; for more, another is wanted.
  """

  model_config = pydantic.ConfigDict(extra="forbid", protected_namespaces=())

  model_dir: str
  engine: str = "tensorflow"
  min_replicas: int = 1
  max_replicas: int = 1
  num_cpus: float = 1.0
  ongoing_requests: int = 64


class _ReplicaService:
  """Hands requests to the replica they have come to."""

  def _replica(self) -> Any:
    return serve.get_replica_context().servable_object

  async def translate(self, request: TranslationRequest) -> Translated:
    """Translates lines, each in whichever batch it comes to."""
    replica = self._replica()
    replica.translator.check(request)
    translate = replica.translate_line
    if request.aligned:
      translate = replica.align_line
    found = await asyncio.gather(*map(translate, request.line_requests()))
    translations = []
    for translation in found:
      if isinstance(translation, InputError):
        raise translation
      hypotheses = translation.hypotheses[: request.n_best]
      translations.append(
        dataclasses.replace(translation, hypotheses=hypotheses)
      )
    return Translated(translations, self.model())

  def is_ready(self) -> bool:
    """A replica that answers is."""
    return True

  def model(self) -> Model:
    """Returns the description of the model in use."""
    return describe(self._replica().translator)

  def measure(self, metrics: Metrics) -> None:
    """Sets the measurements that change by themselves."""
    metrics.model_step.labels("").set(self.model().step)


@functools.lru_cache
def _metrics() -> Metrics:
  """Returns the metrics of this replica."""
  return Metrics()


def _application() -> fastapi.FastAPI:
  """Returns the web application of a replica."""
  return create_application(
    {UNNAMED: _ReplicaService()},
    _LIMITS,
    _metrics(),
    Access(key_of_environment()),
  )


def _characters(lines: Sequence[LineRequest]) -> int:
  """Returns the size of a batch as if all its lines were the longest."""
  size = len(lines) * max(1, *map(len, lines))
  # A longer line is a batch by itself; Ray would refuse it.
  return min(size, _BATCH_CHARACTERS) if len(lines) == 1 else size


@serve.deployment
@serve.ingress(_application)
class TranslationReplica:
  """A model, and lines for it from many requests.

  Attributes:
    translator: the model.
  """

  def __init__(self, arguments: Arguments) -> None:
    # Imported in the replica's own process.
    from official_transformer.decoding.engines import TENSORFLOW, Engine
    from official_transformer.decoding.loading import open_model
    from official_transformer.decoding.options import DecodingOptions
    from official_transformer.decoding.translator import Translator
    from official_transformer.hardware import cpu_threads
    from official_transformer.hardware.startup import start_tensorflow

    workers = max(1, int(arguments.num_cpus))
    cpu_threads.limit_processors(workers)
    if arguments.engine == TENSORFLOW:
      start_tensorflow()
      cpu_threads.share_processors(workers)
    _, description = open_model(arguments.model_dir)
    options = DecodingOptions(
      workers=workers,
      n_best=description.params.beam_size,
      engine=Engine(arguments.engine),
    )
    self.translator = Translator.load(arguments.model_dir, options=options)
    self.translator.warm_up()

  @serve.batch(
    max_batch_size=_BATCH_CHARACTERS,
    batch_wait_timeout_s=_LIMITS.batch_wait,
    batch_size_fn=_characters,
  )
  async def translate_line(
    self, lines: list[LineRequest]
  ) -> list[Translation | InputError]:
    """Translates a batch of lines; callers give one each.

    Returns:
      For each line, its translation, or what is wrong with it: Ray would raise
      an error for the whole batch, of which other callers have lines.
    """
    encode = self.translator.tokenizers.source.encode
    tokens = sum(len(encode(line.text)) for line in lines)
    _metrics().on_batch("", len(lines), tokens, queued_tokens=0)
    return await asyncio.to_thread(self._translate, lines)

  async def align_line(self, line: LineRequest) -> Translation:
    """Translates a line by itself, with alignments."""
    return await asyncio.to_thread(self.translator.translate_line, line, True)

  def _translate(
    self, lines: list[LineRequest]
  ) -> list[Translation | InputError]:
    try:
      return list(self.translator.translate_stream(lines))
    except InputError as error:
      if len(lines) == 1:
        return [error]
      return [found for line in lines for found in self._translate([line])]


def application(arguments: Arguments) -> serve.Application:
  """Returns the application, for `serve run`.

  A key in the environment of this process holds for all replicas. Without one,
  each replica looks in the environment of its own machine.

  Raises:
    InputError: if the environment's key cannot be one.
  """
  key = key_of_environment()
  environment = {"env_vars": {API_KEY_VARIABLE: key}} if key else {}
  deployment: Any = TranslationReplica
  return deployment.options(
    ray_actor_options={
      "num_cpus": arguments.num_cpus,
      "runtime_env": environment,
    },
    max_ongoing_requests=4 * arguments.ongoing_requests,
    max_queued_requests=16 * arguments.ongoing_requests,
    autoscaling_config={
      "min_replicas": arguments.min_replicas,
      "max_replicas": arguments.max_replicas,
      "target_ongoing_requests": arguments.ongoing_requests,
    },
  ).bind(arguments)
