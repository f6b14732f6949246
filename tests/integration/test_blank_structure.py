"""Blanks, tabs and blank lines of a document are in its translation."""

import pathlib
import re

import pytest
from command_line import MAIN, succeed
from running_server import running_server

from official_transformer.decoding.translator import Translator

pytestmark = pytest.mark.slow

PARAGRAPHS = [
  "The cat sees a house. The dog runs.",
  "",
  "\tThe old man sleeps.  Does he dream?\tThe woman sings!  ",
  "   ",
  "  - the small bird \t",
  "\t",
  "the cat\tthe house",
  "The child plays.",
  "",
  "",
]
DOCUMENT = PARAGRAPHS * 7


def blanks(line: str) -> list[str]:
  """Returns a line's blanks but single ones between words."""
  return re.findall(r"^\s+|\s+$|\s{2,}|\t", line)


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
  path = tmp_path_factory.mktemp("document") / "document"
  path.write_text("".join(f"{line}\n" for line in DOCUMENT), "utf-8")
  return path


def check(lines: list[str]) -> None:
  assert len(lines) == len(DOCUMENT)
  for line, translated in zip(DOCUMENT, lines, strict=True):
    assert bool(line.strip()) == bool(translated.strip())
    assert blanks(line) == blanks(translated), (line, translated)


@pytest.mark.parametrize("engine", ["tensorflow", "ctranslate2"])
def test_predict_keeps_them(trained_model, document, tmp_path, engine):
  out = tmp_path / "out"
  succeed(
    *(MAIN, "--mode=predict", f"--model_dir={trained_model}"),
    *(f"--file={document}", f"--file_out={out}", f"--engine={engine}"),
  )
  check(out.read_text("utf-8").removesuffix("\n").split("\n"))


def test_python_and_the_service_keep_them(trained_model, tmp_path):
  found = Translator.load(trained_model).translate(DOCUMENT)
  check(found)
  with running_server(trained_model, tmp_path) as server:
    answer = server.translate(DOCUMENT)
  assert [line["translation"] for line in answer["translations"]] == found
