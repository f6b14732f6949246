"""A client that loses no request.

A service refuses requests that it has no room for, and parts of it may fail
during a request: Ray, for example, retries nothing. Translating a text twice
does no harm, so that the client repeats every request that fails for a
temporary reason.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import urllib3

from official_transformer.errors import RunError

# Refused for the moment, or lost together with a worker.
RETRIED = (408, 429, 500, 502, 503, 504)


class TranslationClient:
  """Asks a service, through no proxy; not to be shared among threads.

  Attributes:
    url: address of `/translate`.
    seconds: until an attempt is given up.
  """

  def __init__(
    self,
    url: str,
    api_key: str | None = None,
    seconds: float = 60.0,
    attempts: int = 8,
  ) -> None:
    """Connects to nothing yet.

    Args:
      url: address of the service, such as http://127.0.0.1:8000.
      api_key: key that the service requires.
      seconds: until an attempt is given up.
      attempts: number of attempts; the pauses between them double each time, or
        are as long as the service demands.
    """
    self.url = f"{url.rstrip('/')}/translate"
    self.seconds = seconds
    headers = {}
    if api_key is not None:
      # Headers are sent as Latin-1, which UTF-8 passes through unchanged.
      key = f"Bearer {api_key}".encode().decode("latin-1")
      headers["Authorization"] = key
    # urllib3 and not requests, which reads an answer only after the attempts of
    # urllib3: an answer that breaks off must count as a failed attempt, too.
    self._pool = urllib3.PoolManager(
      headers={**headers, "Content-Type": "application/json"},
      timeout=seconds,
      retries=urllib3.Retry(
        total=attempts - 1,
        backoff_factor=0.2,
        backoff_jitter=0.2,
        status_forcelist=RETRIED,
        allowed_methods=None,
        raise_on_status=False,
      ),
    )

  def translate(
    self, lines: Sequence[str], **asked: Any
  ) -> list[dict[str, Any]]:
    """Returns the translation of each line, as `--output_format=jsonl` has it.

    Args:
      lines: to translate.
      **asked: further fields of the request, such as `n_best=4, scores=True`.

    Raises:
      RunError: if the service refuses the lines, or does not answer.
    """
    question = {"text": list(lines), **asked}
    try:
      content = json.dumps(question)
      answer = self._pool.request("POST", self.url, body=content)
    except urllib3.exceptions.HTTPError as error:
      raise RunError(f"no answer from {self.url}: {error}") from None
    text = answer.data.decode("utf-8", "replace")
    if answer.status != 200:
      raise RunError(f"{self.url}: status {answer.status}: {text}")
    try:
      return answer.json()["translations"]
    except (ValueError, KeyError, TypeError):
      raise RunError(
        f"{self.url} answers otherwise than a translation service: {text[:200]}"
      ) from None
