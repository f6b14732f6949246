"""A client that loses no request.

A service refuses what it has no room for, and what it is made of may die under
way: Ray, for one, retries nothing. Translating the same text twice does no
harm, so whatever fails for a reason of the moment is asked again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from official_transformer.errors import RunError

# Refused for now, or lost with whoever was translating it.
RETRIED = (408, 429, 500, 502, 503, 504)


class TranslationClient:
  """Asks a service; not to be shared among threads.

  Attributes:
    url: of `/translate`.
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
      url: of the service, such as http://127.0.0.1:8000.
      api_key: what it demands.
      seconds: until an attempt is given up.
      attempts: how often to ask in all; between two, twice as long as before is
        waited, or as long as the service says.
    """
    self.url = f"{url.rstrip('/')}/translate"
    self.seconds = seconds
    self._attempts = attempts
    self._session = requests.Session()
    retry = Retry(
      total=attempts - 1,
      backoff_factor=0.2,
      backoff_jitter=0.2,
      status_forcelist=RETRIED,
      allowed_methods=None,
      raise_on_status=False,
    )
    for scheme in ("http://", "https://"):
      self._session.mount(scheme, HTTPAdapter(max_retries=retry))
    if api_key is not None:
      # Headers are sent as Latin-1, which UTF-8 passes through unchanged.
      key = f"Bearer {api_key}".encode().decode("latin-1")
      self._session.headers["Authorization"] = key

  def translate(
    self, lines: Sequence[str], n_best: int = 1, scores: bool = False
  ) -> list[dict[str, Any]]:
    """Returns what became of each line, as `--output_format=jsonl` tells it.

    Raises:
      RunError: if the service refuses the lines, or does not answer.
    """
    question: Any = {"text": list(lines), "n_best": n_best, "scores": scores}
    for attempt in range(1, self._attempts + 1):
      try:
        answer = self._session.post(
          self.url, json=question, timeout=self.seconds
        )
        break
      # An answer that is cut in its midst is not retried by urllib3.
      except requests.exceptions.ChunkedEncodingError as error:
        if attempt == self._attempts:
          raise RunError(f"no answer from {self.url}: {error}") from None
      except requests.RequestException as error:
        raise RunError(f"no answer from {self.url}: {error}") from None
    if not answer.ok:
      raise RunError(f"{self.url}: status {answer.status_code}: {answer.text}")
    try:
      return answer.json()["translations"]
    except (ValueError, KeyError, TypeError):
      raise RunError(
        f"{self.url} answers otherwise than a translation service: "
        f"{answer.text[:200]}"
      ) from None
