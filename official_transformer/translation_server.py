r"""Answers requests with translations, over HTTP.

    python translation_server.py --model_dir=model --port=8000
    curl -d '{"text": "A dog runs."}' -H 'Content-Type: application/json' \
      http://127.0.0.1:8000/translate

http://127.0.0.1:8000/ is a page to type into, /docs describes the interface.
"""

from __future__ import annotations

import importlib

from official_transformer.commands.checks import check_server
from official_transformer.commands.serving_flags import (
  ServiceOptions,
  define_serving_flags,
)
from official_transformer.errors import describe_failures
from official_transformer.flag_groups import core as flags_core
from official_transformer.flag_groups.records import parsed


def main(_: list[str]) -> None:
  """Checks what can be checked at once, and answers."""
  check_server()
  # What it imports may not be installed, which is said by now.
  name = "official_transformer.commands.start_service"
  importlib.import_module(name).start_service(parsed(ServiceOptions))


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(define_serving_flags, describe_failures(main))


if __name__ == "__main__":
  run()
