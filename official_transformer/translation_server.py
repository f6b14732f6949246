r"""Answers requests with translations, over HTTP.

    translation_server --model_dir=model --port=8000
    curl -d '{"text": "A dog runs."}' -H 'Content-Type: application/json' \
      http://127.0.0.1:8000/translate

http://127.0.0.1:8000/ is a page to type into, /docs describes the interface.
"""

from __future__ import annotations

from official_transformer.commands import flags_core
from official_transformer.commands.serve import ServiceOptions
from official_transformer.errors import describe_failures

OPTIONS = ServiceOptions


def main(_: list[str]) -> None:
  """Runs the service after its early checks."""
  options = flags_core.begin(OPTIONS)
  options.check()
  options.run()


def run() -> None:
  """Starts the command; the console script calls this."""
  flags_core.run(OPTIONS, describe_failures(main))


if __name__ == "__main__":
  run()
