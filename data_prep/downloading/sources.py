"""Sources of parallel text.

Sizes and checksums are those published by tensorflow-datasets, sacreBLEU and
MLPerf; a value that none of them has published is not checked.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from data_prep.downloading.downloads import RemoteFile


@dataclasses.dataclass(frozen=True)
class TextFile:
  """A text file: a download, or a file of a downloaded archive.

  Attributes:
    download: the download that contains it.
    name: its own, without a directory; of SGML (`.sgm`) the segments count.
    md5: MD5 of its bytes, if known.
  """

  download: RemoteFile
  name: str
  md5: str | None = None

  @property
  def plain_name(self) -> str:
    """The name of the text itself."""
    return self.name.removesuffix(".sgm")


@dataclasses.dataclass(frozen=True)
class Bitext:
  """Parallel text.

  Attributes:
    source: one side.
    target: the other side.
    columns: if both sides are in the same file, separated by tabs, which of
      its columns they are, from 0.
  """

  source: TextFile
  target: TextFile
  columns: tuple[int, int] | None = None


@dataclasses.dataclass(frozen=True)
class Source:
  """A corpus: training, development and test text.

  Attributes:
    about: one line.
    languages: languages of source and target, as the names of files have them.
    train: training data.
    dev: development data.
    test: test sets.
    prefix: how the names of the shards begin.
    vocabulary: the name of the vocabulary's file.
    vocab_size: entries to aim at.
    min_count: how often an entry must occur, unless the size is searched for;
      None is to search always.
    shards: shards of the training data.
    held_out: number of pairs to draw from the training data for development,
      and again for a test set; 0 if the corpus has these sets.
  """

  about: str
  languages: tuple[str, str]
  train: Sequence[Bitext]
  dev: Sequence[Bitext]
  test: Sequence[Bitext]
  prefix: str
  vocabulary: str
  vocab_size: int = 32768
  min_count: int | None = None
  shards: int = 100
  held_out: int = 0


def _in_one(
  archive: RemoteFile,
  source: str,
  target: str,
  md5s: tuple[str | None, str | None] = (None, None),
) -> Bitext:
  return Bitext(
    TextFile(archive, source, md5s[0]), TextFile(archive, target, md5s[1])
  )


def _columns(file: RemoteFile, source: int, target: int) -> Bitext:
  text = TextFile(file, file.name.removesuffix(".gz"))
  return Bitext(text, text, (source, target))


def _at(host: str, path: str) -> tuple[str]:
  """Returns the address of a file."""
  return (f"https://{host}/{path}",)


def _checked_at(host: str, path: str) -> tuple[str, str]:
  """Returns the addresses of a file whose checksum is known.

  The second address is for times when the server's certificate has expired; the
  checksum detects any other file.
  """
  return f"https://{host}/{path}", f"http://{host}/{path}"


_STATMT = "www.statmt.org"
_DATA = "data.statmt.org"

_NEWS_V9 = RemoteFile(_at(_STATMT, "wmt14/training-parallel-nc-v9.tgz"))
_NEWS_V12 = RemoteFile(
  _checked_at(_DATA, "wmt17/translation-task/training-parallel-nc-v12.tgz"),
  168591139,
  "2b45f30ef1d550d302fd17dd3a5cbe19134ccc4c2cf50c2dae534aee600101a2",
)
_NEWS_V14 = RemoteFile(
  _at(_DATA, "news-commentary/v14/training/news-commentary-v14.en-zh.tsv.gz"),
  36696769,
)
_TITLES = RemoteFile(
  _at(_DATA, "wikititles/v1/wikititles-v1.zh-en.tsv.gz"), 12974754
)
_COMMON_CRAWL = RemoteFile(
  _checked_at(_STATMT, "wmt13/training-parallel-commoncrawl.tgz"),
  918311367,
  "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
)
_EUROPARL = RemoteFile(
  _checked_at(_STATMT, "wmt13/training-parallel-europarl-v7.tgz"),
  657632379,
  "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
)
# Another file of the same name follows below; they are kept apart.
_DEV_17 = RemoteFile(
  _at(_DATA, "wmt17/translation-task/dev.tgz"), name="wmt17-dev.tgz"
)
_DEV_19 = RemoteFile(
  _checked_at(_DATA, "wmt19/translation-task/dev.tgz"),
  38654961,
  "7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
  name="wmt19-dev.tgz",
)
_TEST_14 = RemoteFile(
  _at(
    "storage.googleapis.com",
    "cloud-tpu-test-datasets/transformer_data/newstest2014.tgz",
  )
)
_TEST_14_FULL = RemoteFile(
  _checked_at(_STATMT, "wmt14/test-full.tgz"),
  md5="a8cd784e006feb32ac6f3d9ec7eb389a",
)

_UN = RemoteFile(_at(_STATMT, "wmt13/training-parallel-un.tgz"))
_GIGA = RemoteFile(_at(_STATMT, "wmt10/training-giga-fren.tar"))

_COMMON_CRAWL_ENDE = _in_one(
  _COMMON_CRAWL, "commoncrawl.de-en.en", "commoncrawl.de-en.de"
)
_EUROPARL_ENDE = _in_one(
  _EUROPARL, "europarl-v7.de-en.en", "europarl-v7.de-en.de"
)
_NEWSTEST_13_ENDE = _in_one(
  *(_DEV_17, "newstest2013.en", "newstest2013.de"),
  md5s=("23be23d7b9bd5ad1f2ebd076484332c9", "872891e01855b43f2a87155e0c1d2076"),
)
_ENDE = ("en", "de")


def _multi30k(target: str) -> Source:
  """Image captions, with the test set of 2016."""
  base = "multi30k/dataset/master/data/task1/raw"

  def part(stem: str) -> Bitext:
    def text(language: str) -> TextFile:
      name = f"{stem}.{language}"
      urls = _at("raw.githubusercontent.com", f"{base}/{name}.gz")
      return TextFile(RemoteFile(urls), name)

    return Bitext(text("en"), text(target))

  return Source(
    f"Multi30k, captions, English to {target}: 29,000 pairs",
    ("en", target),
    *((part("train"),), (part("val"),), (part("test_2016_flickr"),)),
    *("multi30k", f"vocab.multi30k.en{target}"),
    vocab_size=8000,
    shards=8,
  )


def _tatoeba(first: str, second: str) -> Source:
  """Short sentences; from English, of which none is in two of the sets."""
  pair = f"{first}-{second}"
  archive = RemoteFile(
    _at(
      "object.pouta.csc.fi", f"OPUS-Tatoeba/v2023-04-12/moses/{pair}.txt.zip"
    ),
    name=f"tatoeba.{pair}.zip",
  )
  target = second if first == "en" else first
  sides = (f"Tatoeba.{pair}.en", f"Tatoeba.{pair}.{target}")
  return Source(
    f"Tatoeba, short sentences, English to {target}",
    ("en", target),
    *((_in_one(archive, *sides),), (), ()),
    *("tatoeba", f"vocab.tatoeba.en{target}"),
    vocab_size=8000,
    shards=8,
    held_out=1000,
  )


SOURCES = {
  "wmt17-ende": Source(
    "WMT17 English to German, 4.6 million pairs: what the official model was "
    "trained with",
    _ENDE,
    (
      _in_one(
        _NEWS_V12,
        "news-commentary-v12.de-en.en",
        "news-commentary-v12.de-en.de",
      ),
      _COMMON_CRAWL_ENDE,
      _EUROPARL_ENDE,
    ),
    (_NEWSTEST_13_ENDE,),
    (_in_one(_TEST_14, "newstest2014.en", "newstest2014.de"),),
    *("wmt32k", "vocab.ende.32768"),
    min_count=6,
  ),
  "wmt14-ende": Source(
    "WMT14 English to German, 4.5 million pairs: that of the paper",
    _ENDE,
    (
      _EUROPARL_ENDE,
      _COMMON_CRAWL_ENDE,
      _in_one(
        _NEWS_V9, "news-commentary-v9.de-en.en", "news-commentary-v9.de-en.de"
      ),
    ),
    (_NEWSTEST_13_ENDE,),
    (
      _in_one(
        _TEST_14_FULL,
        "newstest2014-deen-src.en.sgm",
        "newstest2014-deen-ref.de.sgm",
      ),
    ),
    *("wmt14ende32k", "vocab.wmt14.ende.32768"),
  ),
  "wmt14-enfr": Source(
    "WMT14 English to French, 40 million pairs: that of the paper",
    ("en", "fr"),
    (
      _in_one(_EUROPARL, "europarl-v7.fr-en.en", "europarl-v7.fr-en.fr"),
      _in_one(_COMMON_CRAWL, "commoncrawl.fr-en.en", "commoncrawl.fr-en.fr"),
      _in_one(_UN, "undoc.2000.fr-en.en", "undoc.2000.fr-en.fr"),
      _in_one(
        _NEWS_V9, "news-commentary-v9.fr-en.en", "news-commentary-v9.fr-en.fr"
      ),
      _in_one(
        _GIGA, "giga-fren.release2.fixed.en", "giga-fren.release2.fixed.fr"
      ),
    ),
    (_in_one(_DEV_17, "newstest2013.en", "newstest2013.fr"),),
    (
      _in_one(
        _TEST_14_FULL,
        "newstest2014-fren-src.en.sgm",
        "newstest2014-fren-ref.fr.sgm",
      ),
    ),
    *("wmt14enfr32k", "vocab.wmt14.enfr.32768"),
  ),
  "wmt17-zhen": Source(
    "WMT17 Chinese to English, news commentary alone, 230,000 pairs",
    ("zh", "en"),
    (
      _in_one(
        _NEWS_V12,
        "news-commentary-v12.zh-en.zh",
        "news-commentary-v12.zh-en.en",
      ),
    ),
    (
      _in_one(
        _DEV_17, "newsdev2017-zhen-src.zh.sgm", "newsdev2017-zhen-ref.en.sgm"
      ),
    ),
    (),
    *("wmt17zhen32k", "vocab.wmt17.zhen.32768"),
  ),
  "wmt19-zhen": Source(
    "WMT19 Chinese to English, news commentary and Wikipedia's titles, 1.1 "
    "million pairs: those of many courses",
    ("zh", "en"),
    (_columns(_NEWS_V14, 1, 0), _columns(_TITLES, 0, 1)),
    (
      _in_one(
        _DEV_19,
        "newstest2018-zhen-src.zh.sgm",
        "newstest2018-zhen-ref.en.sgm",
      ),
    ),
    (),
    *("wmt19zhen32k", "vocab.wmt19.zhen.32768"),
  ),
  **{
    f"multi30k-en{target}": _multi30k(target) for target in ("de", "fr", "cs")
  },
  **{
    f"tatoeba-en{next(x for x in pair if x != 'en')}": _tatoeba(*pair)
    for pair in (("de", "en"), ("en", "fr"), ("en", "es"), ("cmn", "en"))
  },
}
