"""How the bytes of a page or of a text become UTF-8.

A page may say in several places in which encoding it is. They count in the order of the HTML Standard (13.2.3):

1. a byte order mark;
2. what carried the page, such as the charset in a header of HTTP;
3. the first ``<meta>`` whose label is known;
4. the XML declaration at the beginning, or its first bytes in UTF-16;
5. the bytes themselves, if they are valid UTF-8;
6. the fallback that the user names (``encoding``), else windows-1252.

An unknown label counts as none. As browsers do, a ``<meta>`` that names UTF-16 means UTF-8.

One detail differs from browsers. They look for a ``<meta>`` twice: in the first 1,024 bytes, even within scripts, and
while they parse the page. Here, one search looks at the whole page and passes over scripts, styles and comments.
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from .encodings import UTF16, decode, decoder, encoding_of

BOM_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16le", codecs.BOM_UTF16_BE: "utf-16be"}

_XML_UTF16 = {b"<\0?\0x\0": "utf-16le", b"\0<\0?\0x": "utf-16be"}
"""How an XML declaration begins in UTF-16 (HTML Standard, 13.2.3.2)."""

_XML_VALUE = re.compile(rb"""[\0-\x20]*=[\0-\x20]*(?:"([^"]*)"|'([^']*)')""")

_CHARSET = re.compile(rb"""charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)

# What a parser passes over before it meets a <meta>. Each branch may run to the end of the page, and none gives
# anything back, so that no byte is looked at twice.
_ATTRIBUTES = rb"""(?P<attributes>(?:[^>"'=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+|["'])*+)"""
_PASSED_OVER = re.compile(
    rb"<!--(?:-?>|.*?(?:--!?>|\Z))"
    rb"|<(?P<hidden>script|style|title|textarea|xmp|iframe|noembed|noframes)(?=[\s/>]).*?(?:</(?P=hidden)(?=[\s/>])|\Z)"
    rb"|<(?:(?P<meta>meta)(?=[\s/])|/?[a-z][^\s>]*+)" + _ATTRIBUTES + rb"(?:>|\Z)|<[!/?][^>]*+(?:>|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_META = re.compile(rb"<meta[\s/][^<>]*charset", re.IGNORECASE)

HEAD_BYTES = 1024
"""The first bytes of a page, in which browsers look for a ``<meta>`` before they parse it."""

_ATTRIBUTE = re.compile(rb"""([^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*)))?""")


def page_as_utf8(page: bytes | str, transport: str | None = None, fallback: str | None = None) -> bytes:
    """Return a page as UTF-8, without its byte order mark; what cannot be decoded is U+FFFD.

    Parameters
    ----------
    page : bytes or str
        A str is encoded as it is, whatever its markup says.
    transport : str, default None
        The label that came with the page.
    fallback : str, default None
        The encoding of a page that says nothing and is not valid UTF-8; windows-1252 unless given.
    """
    if isinstance(page, str):
        return utf8_of(page)
    encoding, mark = _read_byte_order_mark(page)
    encoding = encoding or _from_transport(transport) or _XML_UTF16.get(page[:6])
    if encoding not in UTF16 and page.isascii() and b"\x1b" not in page and b"~{" not in page:
        return page  # the same text in every encoding besides UTF-16
    return _as_utf8(page[mark:], encoding or _from_meta(page) or _from_xml(page), fallback)


def utf8_of(text: str) -> bytes:
    """Return a string in UTF-8, with U+FFFD for lone surrogates, which UTF-8 has no bytes for."""
    try:
        return text.encode()
    except UnicodeEncodeError:  # halves of characters beyond U+FFFF, of which some may belong together
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()


def text_as_utf8(text: bytes, transport: str | None = None, fallback: str | None = None) -> bytes:
    """Return a text that is not a page as UTF-8, as `page_as_utf8` does, but whatever markup it holds."""
    encoding, mark = _read_byte_order_mark(text)
    return _as_utf8(text[mark:], encoding or _from_transport(transport), fallback)


def file_as_utf8(text: bytes, encoding: str | None) -> bytes:
    """Return a text file as UTF-8: a byte order mark names its encoding, else the parameter does.

    Without both, the bytes are returned as they are: the kernel of tokens takes bytes that are not UTF-8.
    """
    named_by_mark, mark = _read_byte_order_mark(text)
    encoding = named_by_mark or encoding
    return text[mark:] if encoding in (None, "utf-8") else decode(text[mark:], encoding).encode()


class StreamAsUtf8:
    """The bytes of a stream in some encoding as UTF-8. A byte order mark counts more than the encoding.

    Bytes that begin with the mark of UTF-8 are given as they are, with the mark.
    """

    def __init__(self, stream: Any, encoding: str) -> None:
        self._stream, self._encoding, self._rest = stream, encoding, b""
        self._convert: Callable[[bytes, bool], bytes] | None = None
        self._ended = False

    def read(self, size: int) -> bytes:
        """Return the next bytes of UTF-8, at most `size`; none at the end."""
        while not (self._rest or self._ended):
            data = self._stream.read(size)
            self._ended = not data
            self._rest = self._begun(data) if self._convert is None else self._convert(data, self._ended)
        found, self._rest = self._rest[:size], self._rest[size:]
        return found

    def _begun(self, data: bytes) -> bytes:
        """Return the first bytes as UTF-8."""
        while 0 < len(data) < 3 and (more := self._stream.read(3 - len(data))):
            data += more
        encoding, mark = _read_byte_order_mark(data)
        if encoding == "utf-8":
            self._convert = lambda data, last: data
            return data
        decode = decoder(encoding or self._encoding)
        self._convert = lambda data, last: decode(data, last).encode()
        return self._convert(data[mark:], self._ended)


def _as_utf8(text: bytes, encoding: str | None, fallback: str | None) -> bytes:
    if encoding in (None, "utf-8"):
        with contextlib.suppress(UnicodeDecodeError):
            text.decode()
            return text
    return decode(text, encoding or fallback or "windows-1252").encode()


def _read_byte_order_mark(text: bytes) -> tuple[str | None, int]:
    """Return the encoding that a byte order mark names, and the length of the mark."""
    for mark, encoding in _MARKS.items():
        if text.startswith(mark):
            return encoding, len(mark)
    return None, 0


def _from_transport(label: str | None) -> str | None:
    return encoding_of((label or "").strip(" \"'"))


def _from_xml(page: bytes) -> str | None:
    """Return the encoding that an XML declaration names (HTML Standard, 13.2.3.2, "get an XML encoding")."""
    declaration = page[: page.find(b">") + 1] if page.startswith(b"<?xml") else b""
    found = _XML_VALUE.match(declaration.partition(b"encoding")[2])
    encoding = found and encoding_of((found[1] or found[2] or b"").decode("ascii", "replace"))
    return "utf-8" if encoding in UTF16 else encoding


def _from_meta(page: bytes) -> str | None:
    """Return the encoding that the first ``<meta>`` with a known label names."""
    # To pass over all tags of a page takes long, and few pages without such a <meta> at their beginning have one later.
    end = len(page) if _META.search(page) else HEAD_BYTES
    for found in _PASSED_OVER.finditer(page, 0, end):
        if not found["meta"]:
            continue
        for label in _labels(found["attributes"]):
            encoding = encoding_of(label.decode("ascii", "replace"))
            if encoding in UTF16:
                return "utf-8"
            if encoding is not None:
                return "windows-1252" if encoding == "x-user-defined" else encoding
    return None


def _labels(attributes: bytes) -> Iterator[bytes]:
    """Yield the labels that the attributes of a ``<meta>`` give."""
    values: dict[bytes, bytes] = {}
    for name, *each in _ATTRIBUTE.findall(attributes):
        values.setdefault(name.lower(), b"".join(each))
    if b"charset" in values:
        yield values[b"charset"]
    if values.get(b"http-equiv", b"").strip().lower() == b"content-type":
        found = _CHARSET.search(values.get(b"content", b""))
        if found:
            yield found[1]
