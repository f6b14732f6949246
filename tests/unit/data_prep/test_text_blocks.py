import bz2
import gzip
import lzma

import pytest

from data_prep.checking.text_check import TextCheck
from data_prep.encoding.filters import LONG_LINE, FilterSettings
from data_prep.encoding.pair_encoder import PairCleaner
from data_prep.reading import text_blocks as lib
from data_prep.reading.corpora import Corpus
from official_transformer.errors import InputError
from official_transformer.text.text_form import TextForm

LINES = [f"line {n}\n".encode() for n in range(1000)]


def write(path, lines, opened=open):
  with opened(path, "wb") as stream:
    stream.write(b"".join(lines))
  return str(path)


def lines_of(blocks):
  return [line for block in blocks for line in block.sources]


@pytest.mark.parametrize("size", [1, 100, 1 << 20])
def test_blocks_are_consecutive(tmp_path, monkeypatch, size):
  monkeypatch.setattr(lib, "BLOCK_BYTES", size)
  one = write(tmp_path / "one", LINES)
  two = write(tmp_path / "two", LINES[:10])
  blocks = list(lib.read_blocks(Corpus([one, two], [one, two])))
  assert lines_of(blocks) == LINES + LINES[:10]
  assert [b.number for b in blocks] == list(range(len(blocks)))
  pair = 0
  for block in blocks:
    assert block.first_pair == pair
    assert block.targets == block.sources
    pair += len(block.sources)
    first = block.first_pair + 1 - 1000 * (block.source_name == two)
    assert block.first_line == first


@pytest.mark.parametrize(
  ("suffix", "opened"),
  [(".gz", gzip.open), (".bz2", bz2.open), (".xz", lzma.open)],
)
def test_compressed_files(tmp_path, suffix, opened):
  path = write(tmp_path / f"text{suffix}", LINES, opened)
  plain = write(tmp_path / "text", LINES)
  assert lines_of(lib.read_blocks(Corpus([path], [plain]))) == LINES
  data = (tmp_path / f"text{suffix}").read_bytes()
  (tmp_path / f"text{suffix}").write_bytes(data[: len(data) // 2])
  with pytest.raises(InputError, match=f"text{suffix} is not a whole {suffix}"):
    list(lib.read_blocks(Corpus([path], [plain])))


def test_zstandard(tmp_path):
  zstandard = pytest.importorskip("zstandard")
  path = tmp_path / "text.zst"
  # Two frames, one after the other, are one file.
  compress = zstandard.ZstdCompressor().compress
  halves = b"".join(LINES[:500]), b"".join(LINES[500:])
  path.write_bytes(b"".join(map(compress, halves)))
  plain = write(tmp_path / "text", LINES)
  assert lines_of(lib.read_blocks(Corpus([str(path)], [plain]))) == LINES
  whole = path.read_bytes()
  middle = whole.index(zstandard.FRAME_HEADER, 1)
  for damaged in (b"no such thing", whole[:-1], whole[: middle + 20]):
    path.write_bytes(damaged)
    with pytest.raises(InputError, match=r"is not a whole \.zst file"):
      list(lib.read_blocks(Corpus([str(path)], [plain])))


def test_byte_order_marks_and_last_lines_without_an_end(tmp_path):
  source = write(tmp_path / "source", [b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfb"])
  target = write(tmp_path / "target", [b"\xef\xbb\xbfA\r\n", b"B\n"])
  (block,) = lib.read_blocks(Corpus([source], [target]))
  assert block.sources == [b"a\n", b"\xef\xbb\xbfb"]
  assert block.targets == [b"A\r\n", b"B\n"]


def test_pairs_in_one_file_come_last(tmp_path):
  source = write(tmp_path / "source", [b"a\n"])
  pairs = write(tmp_path / "pairs", [b"b\tB\n"])
  blocks = list(lib.read_blocks(Corpus([source], [source], [pairs])))
  assert [b.targets for b in blocks] == [[b"a\n"], None]
  assert lines_of(blocks) == [b"a\n", b"b\tB\n"]


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize(("one", "other"), [(5, 3), (3, 5), (0, 2), (2, 0)])
def test_other_numbers_of_lines_are_counted(
  tmp_path, monkeypatch, size, one, other
):
  monkeypatch.setattr(lib, "BLOCK_BYTES", size)
  source = write(tmp_path / "source", LINES[:one])
  target = write(tmp_path / "target", LINES[:other])
  with pytest.raises(
    InputError, match=f"source has {one} lines and .*target {other}: line n"
  ):
    list(lib.read_blocks(Corpus([source], [target])))


def test_no_lines_at_all(tmp_path):
  empty = write(tmp_path / "empty", [])
  assert not list(lib.read_blocks(Corpus([empty], [empty])))


@pytest.mark.parametrize("side", ["source", "target", "pairs"])
def test_lines_without_end_are_let_go_of(tmp_path, side):
  """They would be held, and copied, by every process that encodes."""
  long = b"ab " * lib.LINE_BYTES + b"\n"
  lines = {"source": list(LINES[:3]), "target": list(LINES[:3])}
  if side == "pairs":
    rows = [b"a\tb\n", b"a\t" + long, b"c\td\n"]
    corpus = Corpus(pairs=[write(tmp_path / "pairs", rows)])
  else:
    lines[side][1] = long
    corpus = Corpus(*([write(tmp_path / n, lines[n])] for n in lines))
  (block,) = lib.read_blocks(corpus)
  assert block.too_long == {1}
  assert block.sources[1] == b"\n"
  assert block.targets is None or block.targets[1] == b"\n"
  clean = PairCleaner(TextForm(), FilterSettings()).clean(block)
  assert clean.rows == [0, 2]
  assert dict(clean.dropped) == {LONG_LINE: 1}
  found = TextCheck((None, None), TextForm()).check(block)
  assert found.usable == 2
  assert found.dropped[LONG_LINE] == 1
