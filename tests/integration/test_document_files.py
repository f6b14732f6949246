"""Documents, from the command line."""

import pathlib
import re

import pytest
from command_line import MAIN, fail, succeed

pytestmark = pytest.mark.slow

PAGE = """<!doctype html><title>The cat</title>
<p class="a">The <b>old man</b> sleeps. <a href="?a&amp;b">The dog</a> runs.</p>
<script>1 < 2</script>
"""


def tags(text: str) -> list[str]:
  return sorted(re.findall("<[^>]*>", text))


def predict(model: pathlib.Path, path: pathlib.Path, *flags: str) -> str:
  out = path.with_suffix(".out")
  succeed(
    *(MAIN, "--mode=predict", f"--model_dir={model}"),
    *(f"--file={path}", f"--file_out={out}", *flags),
  )
  return out.read_text("utf-8")


def test_a_page_keeps_all_but_its_text(trained_model, tmp_path):
  path = tmp_path / "page.html"
  path.write_text(PAGE, "utf-8")
  found = predict(trained_model, path)
  assert set(tags(found)) == set(tags(PAGE))
  assert found.endswith("</p>\n<script>1 < 2</script>\n")
  assert "old man" not in found
  # As lines, markup is text like any other.
  lines = predict(trained_model, path, "--file_format=lines")
  assert lines.count("\n") == PAGE.count("\n")


def test_messages_keep_what_a_program_fills(trained_model, tmp_path):
  path = tmp_path / "messages.po"
  path.write_text('msgid "The %d dogs run."\nmsgstr ""\n', "utf-8")
  found = predict(trained_model, path)
  translation = re.search('msgstr "(.+)"', found)
  assert translation and translation[1].count("%d") == 1
  assert "dogs" not in translation[1]
  # Nothing is kept but what is asked for.
  plain = predict(trained_model, path, "--keep=dogs")
  assert "dogs" in re.search('msgstr "(.+)"', plain)[1]


@pytest.mark.parametrize(
  ("name", "flags", "message"),
  [
    ("page.html", ["--n_best=2"], "--n_best is for lines"),
    ("page.html", ["--alignments"], "--alignments is for lines"),
    ("page.html", ["--engine=ctranslate2"], "is a document, into which"),
    ("page.docx", [], "page.docx is not text: pass --file_out"),
    ("page.docx", ["--file_out=x"], "page.docx: it is not a .docx file"),
    ("page.po", [], "page.po: it is not a .po file"),
    ("page.txt", ["--file_format=srt"], "page.txt: it is not a .srt file"),
    ("page.txt", ["--keep=("], r"--keep=\( is no regular expression"),
    ("-", ["--file_format=html"], "is for a file"),
  ],
)
def test_what_does_not_fit_is_refused(
  trained_model, tmp_path, monkeypatch, name, flags, message
):
  monkeypatch.chdir(tmp_path)
  (tmp_path / name).write_text("A dog.", "utf-8")
  said = fail(
    *(MAIN, "--mode=predict", f"--model_dir={trained_model}"),
    *(f"--file={name}", *flags),
  )
  assert re.search(message, said)
