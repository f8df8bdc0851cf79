"""Turn the answer of a web server into text: transfer and content encodings undone, charset decoded, and of HTML what a
reader sees.

FastWARC 2.0.1 undoes encodings too, but fails where crawlers took an encoding off and left its header, which is
frequent, and at chunk extensions, `x-gzip`, and deflate without a header. `charsets` decides how bytes become text.
"""

from __future__ import annotations

import contextlib
import io
import zlib
from typing import Any

from .ahead import check_stopped
from .charsets import page_as_utf8, text_as_utf8
from .html import Markup, read_tree

HTML_TYPES = ("text/html", "application/xhtml+xml")
CODE_TYPES = ("text/css", "text/javascript", "text/ecmascript", "text/xml", "text/vbscript", "text/x-javascript")
"""Types of text that nobody reads as text; all others of text/* are documents."""

_GZIP = b"\x1f\x8b"

MAX_ENCODINGS = 5
"""Most encodings of one payload. Servers apply one or two; each takes the time of decoding the whole payload."""

_NO_ENCODINGS = ("", "identity", "none", "utf-8")
"""Names of encodings that servers send if there is none."""


class UndecodableError(Exception):
    """A payload whose encoding is unknown or broken."""


def is_text(kind: str) -> bool:
    """Whether a payload of this media type is a document."""
    return kind in HTML_TYPES or (kind.startswith("text/") and kind not in CODE_TYPES)


def text_of(
    payload: bytes, kind: str, charset: str | None, tree: bool = False, fallback: str | None = None
) -> tuple[bytes, bool]:
    """Return the text of a payload whose media type `is_text`.

    Parameters
    ----------
    payload : bytes
    kind : str
        The media type, in lower case.
    charset : str or None
        The label in the header. `charsets` says what else decides the encoding.
    tree : bool
        Take the text of HTML from a parser's tree.
    fallback : str, default None
        The encoding of a payload that names none and is not valid UTF-8.

    Returns
    -------
    text : bytes
        UTF-8; `html.Markup` where the text of HTML has yet to be taken. What cannot be decoded is U+FFFD.
    parsed : bool
        False for a page without a tree; see `html.HtmlPage`.
    """
    if kind not in HTML_TYPES:
        return text_as_utf8(payload, charset, fallback), True
    page = page_as_utf8(payload, charset, fallback)
    return read_tree(page) if tree else (Markup(page), True)


def undone(body: bytes, encodings: list[str], most: int, cut: bool) -> bytes:
    """The payload in the body of an HTTP message.

    Parameters
    ----------
    body : bytes
    encodings : list of str
        Content encodings and then transfer encodings, in the order in which they were applied. One that the body does
        not begin as was taken off by the crawler.
    most : int
        Bytes that a payload may have.
    cut : bool
        Whether the crawler says that it cut the payload; then the rest is used as it is.

    Raises
    ------
    UndecodableError
        If an encoding is unknown or broken, or if there are more than `MAX_ENCODINGS`.
    OverflowError
        If the payload has more bytes than `most`.
    """
    applied = [encoding for encoding in encodings if encoding not in _NO_ENCODINGS]
    if len(applied) > MAX_ENCODINGS:
        raise UndecodableError(f"{len(applied):,} encodings")
    for encoding in reversed(applied):
        undo = _UNDO.get(encoding)
        if undo is None:
            raise UndecodableError(encoding)
        check_stopped()
        body = undo(body, most, cut)
        if len(body) > most:
            raise OverflowError
    return body


def _unchunked(body: bytes, most: int, cut: bool) -> bytes:
    """A body in chunks, each with its size in hexadecimal digits before it (RFC 9112, 7.1)."""
    parts, at = list[bytes](), 0
    while True:
        check_stopped()
        end = body.find(b"\n", at, at + 4096)
        word = body[at : max(at, end)].partition(b";")[0].strip()
        try:
            size = int(word, 16) if word.isalnum() else -1
        except ValueError:
            size = -1
        if size < 0 and at == 0:
            return body
        if size < 0 and not cut:
            raise UndecodableError("chunked")
        if size <= 0:
            return b"".join(parts)
        part = body[end + 1 : end + 1 + size]
        parts.append(part)
        if len(part) < size and not cut:
            raise UndecodableError("chunked")
        at = end + 1 + size
        at += 2 if body.startswith(b"\r\n", at) else 1


def _inflated(body: bytes, most: int, cut: bool) -> bytes:
    """gzip, or deflate with or without the header of zlib (RFC 9110, 8.4.1)."""
    if body[:2] != _GZIP and (body[:1] != b"x" or int.from_bytes(body[:2]) % 31):
        inflate = zlib.decompressobj(-15)
        with contextlib.suppress(zlib.error):
            payload = inflate.decompress(body, most + 1)
            if inflate.eof or len(payload) > most or (cut and not _is_utf8(body)):
                return payload
        return body
    parts, size, view, at = list[bytes](), 0, memoryview(body), 0
    while at < len(body) and size <= most:
        inflate, step = zlib.decompressobj(47), _FIRST_STEP
        while not inflate.eof and at < len(body) and size <= most:
            check_stopped()
            piece = view[at : at + step]
            try:
                parts.append(inflate.decompress(piece, most + 1 - size))
            except zlib.error:
                raise UndecodableError("gzip") from None
            size += len(parts[-1])
            at += len(piece) - len(inflate.unused_data) - len(inflate.unconsumed_tail)
            step = min(2 * step, _LAST_STEP)
        if not (inflate.eof or cut or size > most):
            raise UndecodableError("gzip")
        if view[at : at + 2] != _GZIP:
            break
    return b"".join(parts)


_FIRST_STEP, _LAST_STEP = 512, 1 << 20
"""Bytes of a gzip member that are given to zlib at once: few at first, as zlib copies those after the member's end,
and a body may consist of millions of small members."""


def _by_fastwarc(name: str) -> Any:
    def undo(body: bytes, most: int, cut: bool) -> bytes:
        from fastwarc import stream_io

        try:
            return getattr(stream_io, name)(io.BytesIO(body)).read(most + 1)
        except OSError:
            if _is_utf8(body):
                return body
            raise UndecodableError(name) from None

    return undo


def _is_utf8(body: bytes) -> bool:
    try:
        body[:1024].decode()
    except UnicodeDecodeError as error:
        return error.start > 1000
    return True


_UNDO = {
    "chunked": _unchunked,
    **dict.fromkeys(("gzip", "x-gzip", "deflate"), _inflated),
    "br": _by_fastwarc("BrotliReader"),
    "zstd": _by_fastwarc("ZstdReader"),
}
