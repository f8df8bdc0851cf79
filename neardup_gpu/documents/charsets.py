"""In which encoding a page of HTML is, and the page as UTF-8."""

from __future__ import annotations

import codecs
import contextlib
import re

BOM_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
}
"""What browsers read instead of a charset: one that has all its characters, and more."""

_SAFE = ("big5", "cp", "euc", "gb", "iso", "koi8", "mac", "shift", "utf-8", "utf-16")
"""How codecs begin that take linear time; others of Python, such as punycode, do not."""

_CHARSET = re.compile(rb"""charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)

# What a browser passes over before it meets a <meta> that says the charset (HTML Standard, 13.2.3.2).
_ATTRIBUTES = rb"""(?P<attributes>(?:[^>"'=]++|=\s*+(?:"[^"]*+"|'[^']*+')?+|["'])*+)"""
_PRESCANNED = re.compile(
    rb"<!--(?:-?>|.*?(?:-->|\Z))|<(?:(?P<meta>meta)(?=[\s/])|/?[a-z][^\s>]*+)" + _ATTRIBUTES + rb">|<[!/?][^>]*+>",
    re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE = re.compile(rb"""([^\s/>=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]*)))?""")


def codec_of(label: str | None) -> str | None:
    """Python's codec for the label of a charset; None for an unknown one."""
    with contextlib.suppress(LookupError, ValueError):
        name = codecs.lookup((label or "").strip(" \"'")).name
        name = WIDER.get(name, name)
        if name.startswith(_SAFE):
            return name
    return None


def as_utf8(markup: bytes | str) -> bytes:
    """A page as UTF-8, without a byte order mark; what cannot be decoded is U+FFFD.

    Parameters
    ----------
    markup : bytes or str
        Bytes are decoded as their byte order mark or ``<meta>`` says, else as UTF-8.
    """
    if isinstance(markup, str):
        try:
            return markup.encode()
        except UnicodeEncodeError:  # halves of characters beyond U+FFFF, of which some may belong together
            return markup.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
    if markup.startswith(BOM_UTF16):
        return markup.decode("utf-16", "replace").encode()
    codec = None if markup.startswith(codecs.BOM_UTF8) else codec_of(meta_charset(markup[:1024]))
    if codec is not None and not codec.startswith("utf"):
        return markup.decode(codec, "replace").encode()
    markup = markup.removeprefix(codecs.BOM_UTF8)
    return markup if markup.isascii() or _is_utf8(markup) else markup.decode("utf-8", "replace").encode()


def _is_utf8(markup: bytes) -> bool:
    try:
        markup.decode()
    except UnicodeDecodeError:
        return False
    return True


def meta_charset(head: bytes) -> str | None:
    """The charset that the first <meta> with one declares, as browsers find it."""
    if b"charset" not in head.lower():
        return None
    for found in _PRESCANNED.finditer(head):
        if not found["meta"]:
            continue
        attributes: dict[bytes, bytes] = {}
        for name, *values in _ATTRIBUTE.findall(found["attributes"]):
            attributes.setdefault(name.lower(), b"".join(values))
        label = attributes.get(b"charset")
        if label is None and attributes.get(b"http-equiv", b"").lower() == b"content-type":
            said = _CHARSET.search(attributes.get(b"content", b""))
            label = said and said.group(1)
        if label is not None:
            name = label.decode("ascii", "replace").strip()
            return "windows-1252" if name.lower() == "x-user-defined" else name
    return None
