"""A headless Chromium for tests of pages, where there is one."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

PATH = shutil.which("chromium") or shutil.which("chromium-browser")
NEEDED = pytest.mark.skipif(not PATH, reason="no Chromium here")


@contextlib.contextmanager
def launched() -> Iterator[Any]:
  """Gives a browser, which playwright drives."""
  from playwright.sync_api import expect, sync_playwright

  expect.set_options(timeout=120_000)  # Milliseconds, on a busy machine.
  with sync_playwright() as started:
    browser = started.chromium.launch(
      executable_path=PATH, args=["--no-sandbox"]
    )
    yield browser
    browser.close()
