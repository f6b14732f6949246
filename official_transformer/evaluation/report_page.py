"""The page of a report: one file, which fetches nothing and runs nothing else.

The page's policy allows a browser only the page's own script and style, by
their digests, and nothing that text could add.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import pathlib
import re
from collections.abc import Mapping
from typing import Any

TEMPLATE = pathlib.Path(__file__).with_name("report.html")


def render_page(data: Mapping[str, Any]) -> str:
  """Returns the page.

  Args:
    data: data, from `report_data`.

  Raises:
    ValueError: if a number is not finite, which JSON lacks.
  """
  template = TEMPLATE.read_text(encoding="utf-8")
  (style,) = re.findall(r"<style>(.*?)</style>", template, re.DOTALL)
  (script,) = re.findall(r"<script>(.*?)</script>", template, re.DOTALL)
  policy = "; ".join(
    (
      "default-src 'none'",
      f"style-src {_digest(style)}",
      f"script-src {_digest(script)}",
      "img-src data:",
      "base-uri 'none'",
      "form-action 'none'",
    )
  )
  content = json.dumps(
    data, ensure_ascii=False, separators=(",", ":"), allow_nan=False
  )
  parts = {
    "POLICY": html.escape(policy, quote=False),
    "TITLE": html.escape(str(data["title"])),
    # No end of a script, and no comment, can stand in it.
    "DATA": content.replace("<", "\\u003c"),
  }
  # In one pass, because inserted text may look like another placeholder.
  return re.sub(
    r"\{\{([A-Z]+)\}\}", lambda match: parts[match.group(1)], template
  )


def _digest(text: str) -> str:
  digest = hashlib.sha256(text.encode("utf-8")).digest()
  return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
