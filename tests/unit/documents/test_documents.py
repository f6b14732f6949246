"""Documents: what is translated of them, and that all else stays."""

import io
import re
import zipfile

import pytest

from official_transformer.documents.formats import (
  FORMATS,
  format_of,
  read_document,
)
from official_transformer.errors import InputError
from official_transformer.text.html_text import parse_html
from official_transformer.text.markup import Run

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def upper(markup):
  """Returns a translation of markup: its text in capitals, tags as they are."""
  return re.sub(r"(?:<[^>]*>|&\w+;)|[^<&]+", _upper, markup)


def _upper(match):
  text = match[0]
  return text if text[0] in "<&" else text.upper()


def read(name, content):
  return FORMATS[name].read(content)


def asked(document):
  """Returns the markup of what is translated."""
  return [
    "".join(p if isinstance(p, str) else p.markup for p in request.parts)
    for request in document.requests
  ]


def test_the_end_of_a_name_tells_the_format():
  assert format_of("a/b.HTML", "auto") is FORMATS["html"]
  assert format_of("b.htm", "auto") is FORMATS["html"]
  assert format_of("b.po", "auto") is FORMATS["po"]
  for ending in ("gz", "GZ", "bz2", "xz", "zst"):
    compressed = f"b.html.{ending}"
    found = format_of(compressed, "auto")
    assert found is FORMATS["html"]
    with pytest.raises(InputError, match="unpack it first"):
      read_document(compressed, found)
  assert format_of("b.html.txt", "auto") is None
  assert format_of("b.txt.gz", "auto") is None
  assert format_of("b.html", "lines") is None
  assert format_of("b.txt", "srt") is FORMATS["srt"]


def test_html_is_cut_into_its_texts():
  page = (
    "<!doctype html>\r\n<html><head><title>A dog</title>\n<style>p {}</style>"
    "</head>\n<body class=x><p>The <b>old\n man</b> sleeps. &copy;</p>\r\n"
    "<!-- no --><ul><li>One</li><li></ul>x &lt; y</body></html>\n"
  )
  document = read("html", page.encode())
  assert asked(document) == [
    "A dog", "The <b>old\n man</b> sleeps. &copy;", "One", "x &lt; y"
  ]  # fmt: skip
  # Each is one run by itself.
  for text in asked(document):
    (run,) = parse_html(text)
    assert isinstance(run, Run)
  assert document.translated(asked(document)) == page.encode()
  changed = document.translated(["1", "2", "3", "4"]).decode()
  assert "<title>1</title>\n<style>" in changed
  assert "<p>2</p>\r\n<!-- no --><ul><li>3</li><li></ul>4</body>" in changed


SUBTITLES = """\ufeff1
00:00:01,000 --> 00:00:02,500 X1:40
The old man
<i>sees</i> a dog & a cat.

2
00:00:03,000 --> 00:00:04,000
- Yes.
- No, <font color="red">not
now</font>!

7
00:00:05,000 --> 00:00:06,000
{\\an8}Go.

"""


def test_subtitles_keep_times_and_lines():
  content = SUBTITLES.replace("\n", "\r\n").encode()
  document = read("srt", content)
  assert asked(document) == [
    "The old man <i>sees</i> a dog & a cat.",
    "- Yes.",
    '- No, <font color="red">not now</font>!',
    "{\\an8}Go.",
  ]
  assert FORMATS["srt"].kept.findall(asked(document)[3]) == ["{\\an8}"]
  found = document.translated(
    [
      "Der alte Mann <i>sieht</i> einen Hund & eine Katze.",
      "- Ja.",
      '- Nein, <font color="red">nicht jetzt</font>!',
      "{\\an8}Geh.",
    ]
  )
  expected = (
    SUBTITLES.replace(
      "The old man\n<i>sees</i> a dog & a cat.",
      "Der alte Mann <i>sieht</i>\neinen Hund & eine Katze.",
    )
    .replace("Yes", "Ja")
    .replace("No, ", "Nein,\n")
    .replace('"red">not\nnow', '"red">nicht jetzt')
    .replace("Go", "Geh")
  )
  assert found.decode() == expected.replace("\n", "\r\n")


def test_subtitles_come_back_as_they_were():
  document = read("srt", SUBTITLES.encode())
  found = document.translated(asked(document)).decode()
  assert found.split() == SUBTITLES.split()


def test_odd_subtitles_stay_byte_for_byte():
  odd = (
    "\n\n0001\n0:0:1.5 --> 0:0:2\nA\n\n\n\n"
    "00:00:03,000 --> 00:00:04,000 X1:2\nB\n\n"
    "3\n00:00:05,000 --> 00:00:06,000\n\n\n"
    "4\n00:00:07,000 --> 00:00:08,000\nC\n\n\n"
  )
  document = read("srt", odd.encode())
  assert asked(document) == ["A", "B", "C"]
  assert document.translated(["A", "B", "C"]).decode() == odd


def test_a_short_translation_of_several_lines():
  content = b"1\n00:00:01,000 --> 00:00:02,000\nWell\nwell\nwell\n\n"
  document = read("srt", content)
  assert document.translated(["Ja"]).endswith(b",000\nJa\n\n")


MESSAGES = r"""# A comment.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

#. For the menu.
#: main.c:1
#, c-format
msgctxt "menu"
msgid "Open <b>%s</b> & save\n"
msgstr ""

msgid "Quit"
msgstr "Beenden"

#, fuzzy
msgid "Help"
msgstr "Hilfe?"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] ""
msgstr[1] ""

msgid ""
"\n"
"  Two lines.\n"
"Here.\n"
msgstr ""

#~ msgid "Old"
#~ msgstr "Alt"
"""


def test_messages_without_a_translation_get_one():
  document = read("po", MESSAGES.encode())
  assert asked(document) == [
    "Open <b>%s</b> & save", "%d file", "%d files", "Two lines.", "Here."
  ]  # fmt: skip
  found = document.translated([
    "<b>%s</b> öffnen & sichern", "%d Datei", "%d Dateien", "Zwei.", "Hier."
  ])  # fmt: skip
  expected = (
    MESSAGES.replace(
      '& save\\n"\nmsgstr ""',
      '& save\\n"\nmsgstr "<b>%s</b> öffnen & sichern\\n"',
    )
    .replace('msgstr[0] ""\nmsgstr[1] ""',
             'msgstr[0] "%d Datei"\nmsgstr[1] "%d Dateien"')
    .replace('Here.\\n"\nmsgstr ""',
             'Here.\\n"\nmsgstr ""\n"\\n"\n"  Zwei.\\n"\n"Hier.\\n"')
  )  # fmt: skip
  assert found.decode() == expected


def test_messages_of_others_stay_byte_for_byte():
  """Escapes, line ends, comments and the mark of the encoding, too."""
  content = (
    '\ufeffmsgid ""\r\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\r\n'
    "#: b.c:2 a.c:1\r\n#. x\r\n"
    'msgid "bell \\a \\"q\\" \\\\"\r\nmsgstr "x \\a"\r\n\r\n'
    'msgid "New"\r\nmsgstr ""\r\n\r\n# The end.'
  )
  document = read("po", content.encode())
  assert asked(document) == ["New"]
  found = document.translated(['Neu "\\\a'])
  expected = content.replace(
    '"New"\r\nmsgstr ""', '"New"\r\nmsgstr "Neu \\"\\\\\\a"'
  )
  assert found.decode() == expected


def test_escapes_by_numbers_are_characters():
  content = 'msgid "\\033[1mbold\\x1b[0m \\303\\244\\? \\177"\nmsgstr ""\n'
  document = read("po", content.encode())
  (markup,) = asked(document)
  assert markup == "\x1b[1mbold\x1b[0m \u00e4? \x7f"
  found = document.translated([markup.replace("bold", "fett")]).decode()
  assert found.endswith('msgstr "\\033[1mfett\\033[0m \u00e4? \\177"\n')


def test_a_language_with_one_form_for_any_number():
  content = (
    'msgid ""\nmsgstr "Plural-Forms: nplurals=1; plural=0;\\n"\n\n'
    'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\n'
  )
  document = read("po", content.encode())
  assert b'msgstr[0] "B"' in document.translated(["A", "B"])


@pytest.mark.parametrize(
  ("text", "kept"),
  [
    ("Copy %1$s to %-5.2f%%, 100% sure", ["%1$s", "%-5.2f", "%%"]),
    ("%(name)s has {count} ${x}s", ["%(name)s", "{count}", "${x}"]),
    ("See https://a.b/c?d=%20.", ["https://a.b/c?d=%20"]),
    ("100 % of it", []),
  ],
)
def test_what_a_program_fills_is_kept(text, kept):
  assert FORMATS["po"].kept.findall(text) == kept


def word_file(body, **parts):
  """Returns a .docx file: as little as makes one."""
  found = io.BytesIO()
  with zipfile.ZipFile(found, "w") as archive:
    archive.writestr("[Content_Types].xml", "<Types/>")
    archive.writestr("word/media/image1.png", b"\x89PNG")
    for name, content in {"document": body, **parts}.items():
      archive.writestr(
        f"word/{name}.xml",
        f'<w:{name} xmlns:w="{WORD}" xmlns:r="urn:r">{content}</w:{name}>',
      )
  return found.getvalue()


def xml_of(content, name="document"):
  with zipfile.ZipFile(io.BytesIO(content)) as archive:
    assert archive.read("word/media/image1.png") == b"\x89PNG"
    assert archive.read("[Content_Types].xml") == b"<Types/>"
    text = archive.read(f"word/{name}.xml").decode()
  return re.search(rf"<w:{name} [^>]*>(.*)</w:{name}>", text, re.S)[1]


def text(words, properties=""):
  return f'<w:r>{properties}<w:t xml:space="preserve">{words}</w:t></w:r>'


BOLD = "<w:rPr><w:b/></w:rPr>"
FIELD = (
  '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>PAGE'
  '</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>'
  '<w:r><w:t>7</w:t></w:r><w:r><w:fldChar w:fldCharType="end"/></w:r>'
)
LINK = (
  '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>HYPERLINK "x"'
  '</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>{}'
  '<w:r><w:fldChar w:fldCharType="end"/></w:r>'
)
PICTURE = "<w:r><w:drawing><w:inline/></w:drawing></w:r>"


@pytest.mark.parametrize(
  ("paragraph", "markup", "translation", "found"),
  [
    (text("A dog."), "A dog.", "Ein Hund.", text("Ein Hund.")),
    # Runs of one format are one.
    ("<w:pPr/>" + text("A ") + '<w:proofErr w:type="x"/>' + text("dog."),
     "A dog.", "Ein Hund.", "<w:pPr/>" + text("Ein Hund.")),
    (text("The old man sees ") + text("dogs", BOLD) + text("."),
     'The old man sees <b id="1">dogs</b>.',
     'Er sieht <b id="1">Hunde</b>.',
     text("Er sieht ") + text("Hunde", BOLD) + text(".")),
    # What most text is in needs no element.
    (text("A dog sleeps", BOLD) + text("."),
     'A dog sleeps<b id="1">.</b>', 'X<b id="1">.</b>',
     text("X", BOLD) + text(".")),
    (text("Tom &amp; &lt;b&gt;"), "Tom &amp; &lt;b&gt;",
     "&lt;b&gt; &amp; Tom", text("&lt;b&gt; &amp; Tom")),
    ('<w:hyperlink r:id="r1">' + text("A dog") + "</w:hyperlink>"
     + text(" sleeps now."),
     '<a id="1">A dog</a> sleeps now.', 'Nun <a id="1">schläft</a>.',
     text("Nun ") + '<w:hyperlink r:id="r1">' + text("schläft")
     + "</w:hyperlink>" + text(".")),
    (text("Page ") + FIELD + text(" of it") + PICTURE,
     'Page <img id="1"> of it<img id="2">', 'S. <img id="1"><img id="2">',
     text("S. ") + FIELD + PICTURE),
    ('<w:bookmarkStart w:id="0"/>' + text("A") + '<w:bookmarkEnd w:id="0"/>'
     + text(" B"),
     '<i id="0">A</i> B', '<i id="0">C</i> D <i id="0">E</i>',
     '<w:bookmarkStart w:id="0"/>' + text("C") + text(" D ") + text("E")
     + '<w:bookmarkEnd w:id="0"/>'),
    # One that ends in another paragraph.
    (text("A") + '<w:bookmarkStart w:id="0"/>' + text(" B"), "A B", "C D",
     '<w:bookmarkStart w:id="0"/>' + text("C D")),
    (LINK.format(text("A dog")) + text(" sleeps now."),
     '<i id="1">A dog</i> sleeps now.', 'Nun <i id="1">schläft</i>.',
     text("Nun ") + LINK.format(text("schläft")) + text(".")),
    ("<w:sdt><w:sdtPr/><w:sdtContent>" + text("A") + "</w:sdtContent></w:sdt>"
     + text(" dog"),
     '<a id="1">A</a> dog', '<a id="1">Ein</a> Hund',
     "<w:sdt><w:sdtPr/><w:sdtContent>" + text("Ein")
     + "</w:sdtContent></w:sdt>" + text(" Hund")),
    ("<w:r><w:t>A</w:t><w:tab/><w:t>B</w:t></w:r>", 'A<br id="1">B',
     'C<br id="1">D', text("C") + "<w:r><w:tab/></w:r>" + text("D")),
  ],
)  # fmt: skip
def test_paragraphs_of_word_are_html(paragraph, markup, translation, found):
  document = read("docx", word_file(f"<w:p>{paragraph}</w:p>"))
  assert asked(document) == [markup]
  xml = xml_of(document.translated([translation]))
  assert re.sub(r' xmlns:\w+="[^"]*"', "", xml) == f"<w:p>{found}</w:p>"


BEGIN, CODE, SEPARATE, SHOWN, END = re.findall("<w:r>.*?</w:r>", FIELD)


@pytest.mark.parametrize(
  "field",
  [
    # Tracked changes, each part of the field for itself.
    f"<w:ins>{BEGIN}</w:ins>{SEPARATE}<w:ins>{END}</w:ins>",
    f"{BEGIN}{CODE}<w:ins>{SEPARATE}{SHOWN}{END}</w:ins>",
    # A form's field, named by a bookmark that begins or ends inside.
    f'{BEGIN}<w:bookmarkStart w:id="3"/>{CODE}{SEPARATE}{SHOWN}{END}'
    '<w:bookmarkEnd w:id="3"/>',
    f'<w:bookmarkStart w:id="3"/>{BEGIN}{CODE}<w:bookmarkEnd w:id="3"/>'
    f"{SEPARATE}{SHOWN}{END}",
  ],
)  # fmt: skip
def test_a_field_of_word_loses_no_text(field):
  body = f"<w:p>{text('before ')}{field}{text(' behind it')}</w:p>"
  document = read("docx", word_file(body))
  (markup,) = asked(document)
  assert re.fullmatch(
    r'before (<a id="\d"></a>)?<img id="\d"> behind it', markup
  )
  xml = xml_of(document.translated([upper(markup)]))
  words = re.findall("<w:t[^>]*>(.*?)</w:t>", xml)
  assert [w for w in words if w != "7"] == ["BEFORE ", " BEHIND IT"]
  # Each of its marks is there once.
  assert xml.count("fldChar ") == field.count("fldChar ")
  assert xml.count("bookmark") == field.count("bookmark")


def test_all_parts_of_word_are_read_but_fields():
  begin, *_, end = re.findall("<w:r>.*?</w:r>", FIELD)
  box = f"<w:txbxContent><w:p>{text('box')}</w:p></w:txbxContent>"
  body = (
    f"<w:tbl><w:tc><w:p>{text('cell')}</w:p></w:tc></w:tbl><w:p/>"
    f"<w:p>{begin}{text('contents')}</w:p><w:p>{text('more')}</w:p>"
    f"<w:p>{end}</w:p><w:p><w:r><w:pict>{box}</w:pict></w:r>"
    f"{text('behind')}</w:p><w:p>{text(' ! ')}</w:p>"
  )
  content = word_file(
    body,
    header1=f"<w:p>{text('header')}</w:p>",
    footnotes=f"<w:p>{text('note')}</w:p>",
  )
  document = read("docx", content)
  assert asked(document) == [
    "cell", '<img id="0">behind', "box", "header", "note"
  ]  # fmt: skip
  found = document.translated([upper(text) for text in asked(document)])
  expected = body
  for word in ("cell", "box", "behind"):
    expected = expected.replace(f">{word}<", f">{word.upper()}<")
  assert xml_of(found) == expected
  assert text("HEADER") in xml_of(found, "header1")
  assert text("NOTE") in xml_of(found, "footnotes")


# Its directory would begin before the file.
NEGATIVE = b"PK\x05\x06" + bytes(8) + b"\xff\x00\x00\x00" * 2 + bytes(2)


@pytest.mark.parametrize(
  ("name", "content", "message"),
  [
    ("html", b"<p>caf\xe9", "byte 6 is not UTF-8.*iconv"),
    ("html", "x".encode("utf-16"), "it is UTF-16"),
    ("srt", b"hello\n", "it is not a .srt file"),
    ("po", b"hello\n", "line 1 is no comment"),
    ("po", b'msgid "a"\n', "the message in line 1 has no msgstr"),
    ("po", b'msgid ""\nmsgstr "charset=ISO-8859-1"\n', "msgconv"),
    ("html", b"<meta charset=x-none>", "which is no charset known here"),
    ("html", b"<meta charset=cp1251>\x98", "in cp1251, but byte 21 is not"),
    ("po", b'msgid "a\nmsgstr', "it is not a .po file"),
    ("docx", b"hello", "it is not a .docx file"),
    ("docx", word_file("</w:p>"), "its XML is damaged"),
    ("docx", NEGATIVE, "it is not a .docx file"),
  ],
)
def test_what_is_no_document_is_refused(tmp_path, name, content, message):
  path = tmp_path / f"file.{name}"
  path.write_bytes(content)
  with pytest.raises(InputError, match=f"file.{name}: .*{message}"):
    read_document(str(path), FORMATS[name])


@pytest.mark.parametrize(
  ("content", "text"),
  [
    (b"<meta charset=iso-8859-1><p>\x93a\x94 \x96", "\u201ca\u201d \u2013"),
    (b"<meta charset=gb2312><p>\xd6\xec\xe9F\xbb\xf9", "\u6731\u9555\u57fa"),
    (b"<meta charset=shift_jis><p>\x87\x40", "\u2460"),
    (b"<meta charset=x-sjis><p>\x87\x40", "\u2460"),
    (b"<meta charset=iso-8859-1><p>\xfc\x81", "\u00fc\x81"),
    (b"\xef\xbb\xbf<meta charset=latin1><p>\xc3\xbc", "\u00fc"),
    (b"<meta charset=utf-16><p>\xc3\xbc", "\u00fc"),
  ],
)
def test_charsets_are_what_browsers_read(content, text):
  document = read("html", content)
  assert asked(document) == [text]
  assert document.translated([text]) == content


def test_a_zip_file_without_text_is_refused():
  found = io.BytesIO()
  zipfile.ZipFile(found, "w").close()
  with pytest.raises(InputError, match="there is no word/document.xml"):
    read("docx", found.getvalue())


def test_text_that_is_left_out_is_told_of(caplog):
  paragraph = f"<w:p>{text('A dog')}</w:p>"
  body = f"<w:body>{paragraph}</w:body>"
  with caplog.at_level("INFO", "absl"):
    read("docx", word_file(body))
    assert caplog.messages == []
    document = read("docx", word_file(body, comments=paragraph))
  assert len(document.requests) == 1
  assert caplog.messages == ["not translated: comments"]
