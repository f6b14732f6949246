"""COMET (Rei et al. 2020), if the user has it: a model that scores.

COMET's packages need older versions of packages that TensorFlow needs in newer
ones, so that it runs as a program of its own, `comet-score`, from any
environment. It is given a model's file, and downloads nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from typing import NamedTuple

from official_transformer.errors import InputError, RunError
from official_transformer.text.text_files import check_input, write_lines

COMMAND = "comet-score"
_INSTALL = (
  "python -m venv comet && comet/bin/pip install unbabel-comet, and "
  "--comet_command=comet/bin/comet-score"
)


class CometScore(NamedTuple):
  """Scores of a COMET model.

  Attributes:
    model: the name of its file.
    score: score of the system: the mean of its lines.
    lines: score of each line.
  """

  model: str
  score: float
  lines: list[float]


class Comet(NamedTuple):
  """A COMET model, and the program that runs it.

  Attributes:
    model: the path of a checkpoint, `.ckpt`.
    command: `comet-score`, by name or path.
    num_gpus: GPUs that it may use.
  """

  model: str
  command: str = COMMAND
  num_gpus: int = 0

  def check(self) -> None:
    """Raises an `InputError` unless the program and the model exist."""
    check_input(self.model)
    if not self.model.endswith(".ckpt"):
      raise InputError(
        f"--comet_model={self.model} is no checkpoint: name the .ckpt file "
        "within a downloaded COMET model"
      )
    if shutil.which(self.command) is None:
      raise InputError(
        f"COMET's program {self.command} is not here: {_INSTALL}"
      )

  def score(
    self,
    sources: Sequence[str],
    references: Sequence[str],
    systems: Sequence[Sequence[str]],
  ) -> list[CometScore]:
    """Scores translations.

    Args:
      sources: lines.
      references: as many.
      systems: translations of each system, one for each source.

    Raises:
      RunError: if the program fails.
    """
    with tempfile.TemporaryDirectory() as directory:

      def write(name: str, lines: Sequence[str]) -> str:
        path = os.path.join(directory, name)
        # It would end a line at a carriage return.
        write_lines(path, (line.replace("\r", " ") for line in lines))
        return path

      translations = [
        write(f"system.{n}", lines) for n, lines in enumerate(systems)
      ]
      output = os.path.join(directory, "scores.json")
      self._run(
        [
          *("-s", write("source", sources), "-t", *translations),
          *("-r", write("reference", references)),
          *("--model", os.path.abspath(self.model)),
          *("--gpus", str(self.num_gpus), "--quiet", "--only_system"),
          *("--to_json", output),
        ]
      )
      with open(output, encoding="utf-8") as stream:
        content = stream.read()
    try:
      told = json.loads(content)
      scores = [
        [float(line["COMET"]) for line in told[path]] for path in translations
      ]
    except (ValueError, KeyError, TypeError) as error:
      raise RunError(
        f"comet-score wrote other JSON than is known here ({error!r:.200}): "
        "use another version of it"
      ) from None
    return [
      CometScore(
        os.path.basename(self.model), sum(lines) / max(len(lines), 1), lines
      )
      for lines in scores
    ]

  def _run(self, arguments: list[str]) -> None:
    # Files that a model refers to must be in the user's cache.
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    done = subprocess.run(
      [self.command, *arguments],
      env={**os.environ, **offline},
      capture_output=True,
      text=True,
      errors="replace",
      check=False,
    )
    if done.returncode:
      last = done.stderr.strip().splitlines()[-1:] or ["it says nothing"]
      raise RunError(
        f"{self.command} has failed (status {done.returncode}): {last[0]}. It "
        "is run without network: what the model refers to must be in Hugging "
        "Face's cache"
      )
