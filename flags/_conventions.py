"""What all flag definitions share: line wrapping of help texts."""

import textwrap

from absl import flags


def help_wrap(text: str) -> str:
  """Wraps a help text to the width of absl's help page."""
  return flags.text_wrap(textwrap.dedent(text), length=80)
