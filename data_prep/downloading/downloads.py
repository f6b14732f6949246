"""Resumable, checksummed downloads.

A file appears under its name only when it is complete. Until then, the bytes
from each address are beside it, as `NAME.1.part`, and a range request continues
them, if the server supports that and still has the same file. A file with a
known checksum must match it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Sequence

import requests
import tenacity
import tqdm
import urllib3
from absl import logging

from official_transformer.errors import RunError
from official_transformer.storage.durable_files import new_file
from official_transformer.storage.file_system import remove_if_there

# The bytes of an incomplete file, and a record of its version.
_PART = ".part"
_NOTE = ".json"
_CHUNK_BYTES = 1 << 16
# Seconds to connect, and between two reads.
_TIMEOUT = (20.0, 60.0)
_ATTEMPTS = 6
_FIRST_PAUSE_SECONDS = 1.0
# Statuses that may be another a while later.
_FOR_NOW = frozenset((408, 425, 429, 500, 502, 503, 504))


@dataclasses.dataclass(frozen=True)
class RemoteFile:
  """A file that is to be had at one or several addresses.

  Attributes:
    urls: where; the later ones are tried if the first does not serve.
    size: number of bytes, if known.
    sha256: SHA-256 of the bytes, if known.
    md5: MD5 of the bytes, if no SHA-256 is known.
    name: name that it is kept under; unset, the address' own.
  """

  urls: Sequence[str]
  size: int | None = None
  sha256: str | None = None
  md5: str | None = None
  name: str = ""

  def __post_init__(self) -> None:
    if not self.name:
      object.__setattr__(self, "name", os.path.basename(self.urls[0]))


class _BrokenOffError(Exception):
  """A transfer that can be resumed."""


class _UselessError(Exception):
  """An address that will not serve, however often it is asked."""


def download(file: RemoteFile, directory: str) -> str:
  """Returns the path of a file, downloaded unless it exists.

  Args:
    file: file to download.
    directory: where to keep it.

  Raises:
    RunError: if none of its addresses works; the bytes so far are kept.
    OSError: if the system refuses.
  """
  path = os.path.join(directory, file.name)
  if os.path.exists(path):
    if problem := difference(path, file):
      raise RunError(
        f"{path} is not the expected file: {problem}; remove it, or put "
        "the right one in its place"
      )
    logging.info("%s is there", path)
    return path
  os.makedirs(directory, exist_ok=True)
  problems = []
  for number, url in enumerate(file.urls, start=1):
    logging.info("downloading %s", url)
    part = f"{path}.{number}{_PART}"
    try:
      _Transfer(url, part, file.size).run()
    except (_UselessError, _BrokenOffError) as error:
      problems.append(f"{url}: {error}")
      logging.warning("%s", problems[-1])
      continue
    if problem := difference(part, file):
      problems.append(f"{url}: not the expected file: {problem}")
      logging.warning("%s", problems[-1])
      # Going on with it would not make it right.
      os.remove(part)
      continue
    # Forced to the disk before it has its name.
    with new_file(path) as aside:
      os.replace(part, aside)
    for other in range(1, len(file.urls) + 1):
      remove_if_there(f"{path}.{other}{_PART}")
      remove_if_there(f"{path}.{other}{_PART}{_NOTE}")
    return path
  raise RunError(
    f"{file.name} cannot be downloaded: {'; '.join(problems)}. The same "
    "command goes on with what has come; a file from elsewhere can be put into "
    f"--source_dir, or at {path}"
  )


def difference(path: str, file: RemoteFile) -> str | None:
  """Returns the difference of a file from the known one; None if equal."""
  size = os.path.getsize(path)
  if file.size is not None and size != file.size:
    return f"it has {size} bytes, not {file.size}"
  for algorithm in ("sha256", "md5"):
    expected = getattr(file, algorithm)
    if expected is not None:
      found = checksum(path, algorithm)
      if found != expected:
        return f"its {algorithm} is {found}, not {expected}"
  return None


def checksum(path: str, algorithm: str) -> str:
  """Returns a file's checksum, in hexadecimal.

  Args:
    path: path of the file.
    algorithm: as hashlib names it.
  """
  with open(path, "rb") as stream:
    return hashlib.file_digest(stream, algorithm).hexdigest()


class _Transfer:
  """One file from one address, in as many requests as it takes."""

  def __init__(self, url: str, part: str, size: int | None) -> None:
    self._url = url
    self._part = part
    self._note = part + _NOTE
    self._size = size

  def run(self) -> None:
    """Downloads until the file is whole.

    Raises:
      _BrokenOffError: if it breaks off again and again.
      _UselessError: if the address does not serve it.
    """
    retry = tenacity.Retrying(
      retry=tenacity.retry_if_exception_type(_BrokenOffError),
      stop=tenacity.stop_after_attempt(_ATTEMPTS),
      wait=tenacity.wait_random_exponential(_FIRST_PAUSE_SECONDS, max=60),
      before_sleep=self._warn,
      reraise=True,
    )
    retry(self._request)

  def _warn(self, state: tenacity.RetryCallState) -> None:
    problem = state.outcome.exception() if state.outcome else None
    logging.warning("%s: %s; trying again", self._url, problem)

  def _request(self) -> None:
    """Requests the missing bytes, and appends them."""
    try:
      start, validator = self._begun()
      fields = {"Accept-Encoding": "identity"}
      if start:
        fields |= {"Range": f"bytes={start}-", "If-Range": validator}
      with requests.get(
        self._url, headers=fields, stream=True, timeout=_TIMEOUT
      ) as answer:
        self._receive(answer, start, validator)
    except requests.exceptions.SSLError as error:
      raise _UselessError(f"no safe connection ({error})") from None
    except (
      requests.exceptions.InvalidURL,
      requests.exceptions.InvalidSchema,
      requests.exceptions.TooManyRedirects,
    ) as error:
      raise _UselessError(str(error)) from None
    except (requests.RequestException, urllib3.exceptions.HTTPError) as error:
      raise _BrokenOffError(str(error)) from None

  def _begun(self) -> tuple[int, str]:
    """Returns the number of bytes so far, and the header of their version.

    They are 0 and "" if no header of this address is stored, because the rest
    of the file could be of another version.
    """
    try:
      with open(self._note, encoding="utf-8") as stream:
        note = json.load(stream)
      if note["url"] == self._url and note["validator"]:
        return os.path.getsize(self._part), note["validator"]
    except (OSError, ValueError, KeyError, TypeError):
      pass
    return 0, ""

  def _receive(
    self, answer: requests.Response, start: int, validator: str
  ) -> None:
    """Appends the bytes of an answer.

    Args:
      answer: answer of the server, whose head has come.
      start: number of bytes so far.
      validator: header that identifies the version of the bytes.
    """
    if answer.status_code == 416:
      # The server has nothing after these bytes. If their number is right, the
      # file is complete, and its checksum is compared later; else start again.
      if self._size is not None and start == self._size:
        return
      remove_if_there(self._note)
      raise _BrokenOffError(
        "the server has nothing after the bytes so far; starting again"
      )
    if answer.status_code in _FOR_NOW:
      raise _BrokenOffError(f"status {answer.status_code}")
    if answer.status_code not in (200, 206):
      raise _UselessError(f"status {answer.status_code}")
    if answer.status_code == 200:
      start = 0
    elif (
      not re.match(rf"bytes {start}-", answer.headers.get("Content-Range", ""))
      or _validator(answer) != validator
    ):
      remove_if_there(self._note)
      raise _BrokenOffError("another range, or version, than asked for")
    length = answer.headers.get("Content-Length")
    total = start + int(length) if length and length.isdigit() else None
    if self._size is not None and total not in (None, self._size):
      raise _UselessError(f"it has {total} bytes there, not {self._size}")
    # Cut first: a note of this version must not find another's bytes.
    with open(self._part, "ab") as stream:
      stream.truncate(start)
    with open(self._note, "w", encoding="utf-8") as note:
      json.dump({"url": self._url, "validator": _validator(answer)}, note)
    self._write(answer, start, total)

  def _write(
    self, answer: requests.Response, start: int, total: int | None
  ) -> None:
    """Writes an answer's body."""
    with (
      open(self._part, "ab") as stream,
      tqdm.tqdm(
        desc=os.path.basename(self._part).removesuffix(_PART),
        initial=start,
        total=total or self._size,
        unit="B",
        unit_scale=True,
        disable=None,
        leave=False,
      ) as bar,
    ):
      # Undecoded, because some servers declare a .gz to be compressed text.
      for chunk in answer.raw.stream(_CHUNK_BYTES, decode_content=False):
        stream.write(chunk)
        bar.update(len(chunk))
        if self._size is not None and stream.tell() > self._size:
          raise _UselessError(f"it goes on after {self._size} bytes")
      end = stream.tell()
    if total is not None and end != total:
      raise _BrokenOffError(f"broken off after {end} of {total} bytes")


def _validator(answer: requests.Response) -> str:
  """Returns the server's identifier of a file's version."""
  tag = answer.headers.get("ETag", "")
  if tag.startswith("W/"):  # Weak tags identify similar files, not equal ones.
    tag = ""
  return tag or answer.headers.get("Last-Modified", "")
