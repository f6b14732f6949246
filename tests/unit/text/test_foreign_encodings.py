"""What is said of text that is not UTF-8."""

import codecs

import pytest

from official_transformer.errors import InputError
from official_transformer.text import foreign_encodings as lib
from official_transformer.text.text_files import read_lines

LINES = "A dog runs.\nZwei Männer.\n"


@pytest.mark.parametrize(
  ("encoding", "advice"),
  [
    ("utf-16-le", "iconv -f UTF-16LE -t UTF-8"),
    ("utf-16-be", "iconv -f UTF-16BE -t UTF-8"),
    ("utf-16", "iconv -f UTF-16 -t UTF-8"),
    ("latin1", "iconv -f ENCODING"),
  ],
)
@pytest.mark.parametrize("replace_invalid", [False, True])
def test_readers_name_line_and_remedy(
  tmp_path, encoding, advice, replace_invalid
):
  path = tmp_path / "text"
  path.write_bytes(LINES.encode(encoding))
  if encoding == "latin1" and replace_invalid:
    assert len(list(read_lines(str(path), replace_invalid))) == 2
    return
  with pytest.raises(InputError, match=r"text, line [12]: ") as caught:
    list(read_lines(str(path), replace_invalid))
  assert advice in str(caught.value)


def test_later_lines_do_not_tell_the_order():
  later = "\nZwei".encode("utf-16-le")[1:]
  assert lib.is_utf16(later, 2)
  assert "UTF-16LE -t UTF-8 or iconv -f UTF-16BE" in lib.conversion(later, 2)


def test_later_bytes_are_no_mark(tmp_path):
  path = tmp_path / "text"
  path.write_bytes(b"a dog\n" * 20 + b"\xff\xfe\n" + b"a\0b\0c\0d\0\n")
  found = list(read_lines(str(path), replace_invalid=True))
  assert found[20:] == ["\ufffd\ufffd", "a\0b\0c\0d\0"]


@pytest.mark.parametrize(
  "line",
  [
    b"",
    b"\n",
    b"a\0\n",
    b"a dog\0\0\n",
    b"\0\0\0\0\0\0\n",
    "Ein Hund läuft.\n".encode(),
    codecs.BOM_UTF8 + b"a dog",
  ],
)
def test_what_is_no_utf16(line):
  assert not lib.is_utf16(line, 1)
