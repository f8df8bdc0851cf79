"""The encodings of the Encoding Standard: their labels, and their decoders.

Source: https://encoding.spec.whatwg.org, sections 4.2 (labels) and 5 to 14 (indexes and decoders), with the index of
gb18030 that follows GB 18030-2022. The labels and the characters below are facts of that standard.

Python has most of the decoders, but some of its tables are narrower. What the standard has beyond Python is written
here and nothing else: the characters of big5 that Python lacks, those that Python reads as other characters, and the
control characters that browsers read in windows-125x. euc-jp and iso-2022-jp take from cp932 what Python lacks: the
standard has one index of JIS X 0208 for all three.

One entry differs from the standard on purpose. The standard reads iso-2022-kr, hz-gb-2312 and iso-2022-cn as a single
U+FFFD, so that no script hides in them. Here nothing is run, and two pages in such an encoding would become one. So
the first two are decoded, and iso-2022-cn, which is written in ASCII bytes, is read as these bytes.

Every decoder takes linear time.
"""

from __future__ import annotations

import codecs
import difflib
import re
from collections.abc import Callable, Iterator
from functools import cache, partial

from ..errors import ParameterError

LABELS = {
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf-8 utf8 x-unicode20utf8",
    "ibm866": "866 cp866 csibm866 ibm866",
    "big5": "big5 big5-hkscs cn-big5 csbig5 x-x-big5",
    "euc-jp": "cseucpkdfmtjapanese euc-jp x-euc-jp",
    "euc-kr": (
        "cseuckr csksc56011987 euc-kr iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949"
    ),
    "gb18030": "gb18030",
    "gbk": "chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 gbk iso-ir-58 x-gbk",
    "hz-gb-2312": "hz-gb-2312",
    "iso-2022-jp": "csiso2022jp iso-2022-jp",
    "iso-2022-kr": "csiso2022kr iso-2022-kr",
    "iso-8859-2": "csisolatin2 iso-8859-2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2",
    "iso-8859-3": "csisolatin3 iso-8859-3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3",
    "iso-8859-4": "csisolatin4 iso-8859-4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4",
    "iso-8859-5": "csisolatincyrillic cyrillic iso-8859-5 iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988",
    "iso-8859-6": (
        "arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6 iso-8859-6-e "
        "iso-8859-6-i iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987"
    ),
    "iso-8859-7": (
        "csisolatingreek ecma-118 elot_928 greek greek8 iso-8859-7 iso-ir-126 iso8859-7 iso88597 iso_8859-7 "
        "iso_8859-7:1987 sun_eu_greek"
    ),
    "iso-8859-8": (
        "csiso88598e csisolatinhebrew hebrew iso-8859-8 iso-8859-8-e iso-ir-138 iso8859-8 iso88598 "
        "iso_8859-8 iso_8859-8:1988 visual"
    ),
    "iso-8859-8-i": "csiso88598i iso-8859-8-i logical",
    "iso-8859-10": "csisolatin6 iso-8859-10 iso-ir-157 iso8859-10 iso885910 l6 latin6",
    "iso-8859-13": "iso-8859-13 iso8859-13 iso885913",
    "iso-8859-14": "iso-8859-14 iso8859-14 iso885914",
    "iso-8859-15": "csisolatin9 iso-8859-15 iso8859-15 iso885915 iso_8859-15 l9",
    "iso-8859-16": "iso-8859-16",
    "koi8-r": "cskoi8r koi koi8 koi8-r koi8_r",
    "koi8-u": "koi8-ru koi8-u",
    "macintosh": "csmacintosh mac macintosh x-mac-roman",
    "shift_jis": "csshiftjis ms932 ms_kanji shift-jis shift_jis sjis windows-31j x-sjis",
    "utf-16be": "unicodefffe utf-16be",
    "utf-16le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16 utf-16le",
    "windows-874": "dos-874 iso-8859-11 iso8859-11 iso885911 tis-620 windows-874",
    "windows-1250": "cp1250 windows-1250 x-cp1250",
    "windows-1251": "cp1251 windows-1251 x-cp1251",
    "windows-1252": (
        "ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591 "
        "iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii windows-1252 x-cp1252"
    ),
    "windows-1253": "cp1253 windows-1253 x-cp1253",
    "windows-1254": (
        "cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5 "
        "windows-1254 x-cp1254"
    ),
    "windows-1255": "cp1255 windows-1255 x-cp1255",
    "windows-1256": "cp1256 windows-1256 x-cp1256",
    "windows-1257": "cp1257 windows-1257 x-cp1257",
    "windows-1258": "cp1258 windows-1258 x-cp1258",
    "x-mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "x-user-defined": "x-user-defined",
}
"""The labels of each encoding, in lower case."""

_ENCODINGS = {label: encoding for encoding, labels in LABELS.items() for label in labels.split()}
_ENCODINGS |= dict.fromkeys(("iso-2022-cn", "iso-2022-cn-ext", "replacement"), "utf-8")

UTF16 = ("utf-16le", "utf-16be")

_SPACE = " \t\n\f\r"


def encoding_of(label: str | None) -> str | None:
    """Return the encoding that a label names, in any case and with blanks around it; None for an unknown label.

    Examples
    --------
    >>> encoding_of(" Latin1"), encoding_of("x-sjis"), encoding_of("utf-7")
    ('windows-1252', 'shift_jis', None)
    """
    return _ENCODINGS.get((label or "").strip(_SPACE).lower())


def check_encoding(label: str | None) -> str | None:
    """Return the encoding that the parameter `encoding` names, or None.

    Raises
    ------
    ParameterError
        If the label is unknown.
    """
    encoding = encoding_of(label)
    if label is None or encoding is not None:
        return encoding
    close = difflib.get_close_matches(label.strip(_SPACE).lower(), _ENCODINGS, 1)
    example = repr(close[0]) if close else "utf-8, windows-1251 or shift_jis"
    raise ParameterError(f"encoding: unknown label {label!r}; give a label of the Encoding Standard, such as {example}")


def decode(data: bytes, encoding: str) -> str:
    r"""Return the text of some bytes. What cannot be decoded is U+FFFD; a byte order mark is a character.

    Examples
    --------
    >>> decode(b"\xd0\xd2\xc9\xd7\xc5\xd4", "koi8-r")
    'привет'
    """
    return decoder(encoding)(data, True)


def decoder(encoding: str) -> Callable[[bytes, bool], str]:
    """Return a function that decodes the next bytes of a stream; its second argument is True for the last ones."""
    if encoding in _SINGLE_BYTE:
        table = _table(encoding)
        return lambda data, last: codecs.charmap_decode(data, "strict", table)[0]
    if encoding == "iso-2022-jp":
        return _Iso2022Jp().decode
    if encoding in _AS_A_WHOLE:
        return _Whole(_AS_A_WHOLE[encoding]).decode
    return _MultiByte(*_MULTI_BYTE[encoding]).decode


# ---------------------------------------------------------------------------------------------------- single bytes

_SINGLE_BYTE = {
    "ibm866": "cp866",
    **{f"iso-8859-{part}": f"iso8859-{part}" for part in (2, 3, 4, 5, 6, 7, 8, 10, 13, 14, 15, 16)},
    "iso-8859-8-i": "iso8859-8",
    "koi8-r": "koi8-r",
    "koi8-u": "koi8-u",
    "macintosh": "mac-roman",
    **{f"windows-{page}": f"cp{page}" for page in (874, *range(1250, 1259))},
    "x-mac-cyrillic": "mac-cyrillic",
    "x-user-defined": "ascii",
}
"""The codec of Python for each encoding of single bytes."""

_OTHER_BYTES = {"koi8-u": {0xAE: "ў", 0xBE: "Ў"}, "windows-1255": {0xCA: "\u05ba"}}
"""Bytes that Python reads as other characters, or not at all."""


@cache
def _table(encoding: str) -> str:
    """Return the character of each byte."""
    characters = list(bytes(range(256)).decode(_SINGLE_BYTE[encoding], "replace"))
    if encoding.startswith("windows-"):
        for byte in range(0x80, 0xA0):
            characters[byte] = characters[byte].replace("\ufffd", chr(byte))
    if encoding == "x-user-defined":
        characters[0x80:] = [chr(0xF780 + byte) for byte in range(128)]
    for byte, character in _OTHER_BYTES.get(encoding, {}).items():
        characters[byte] = character
    return "".join(characters)


# -------------------------------------------------------------------------------------------------- several bytes

_BIG5_MISSING = (
    "877a㡵𡵓𣚞𦀡㻬 "
    "87a1𥣞㫵竼龗𤅡𨤍𣇪𠪊𣉞䌊蒄龖鐯䤰蘓墖靊鈘秐稲晠権袝瑌篅枂稬剏遆㓦珄 "
    "87c0𥶹瓆鿇垳䤯呌䄱𣚎堘穲𧭥讏䚮𦺈䆁𥶙箮𢒼鿈𢓁𢓉𢓌鿉蔄𣖻䂴鿊䓡𪷿拁灮鿋 "
    "8e69箸 8e6f簆 8e7e糎 8eab緒 8eb4縝 8ecd者 8ed0耨 8f57菁 8f69蒨 8f6e萏 8fcb覦覩 "
    "8ffe起 906d都 907a銹 90dc靜 90f1響 91bf鼖 9244蔃 92af兙兛兝兞 92c8鍮 92d1瑹 9447浧 "
    "94ca禛 95d9邗 9644靝 96ed瀞 96fc嬨 9b76爁 9b78矗 9b7b纇 9bc6駖 9bde釔 9bec惞 9bf6澶 "
    "9c42輶 9c53侻 9c62營 9c68鄄 9c6b鷰 9c77菏 9cbc尐秣 9cd0婧 9d57輋 9d5a筑 9dc4拐 "
    "9ea9恢 9eef痹 9efd汊 9f60鬮 9f66鼗 9fcb僭 9fd8弌 a063蠏 a077拎 a0d5瑨 a0df煢 a0e4牐 "
    "a3c0␀␁␂␃␄␅␆␇␈␉␊␋␌␍␎␏␐␑␒␓␔␕␖␗␘␙␚␛␜␝␞␟␡€ c6cf廴 c6d3无 c6d5癶 c6d7隶 c6de〃仝 "
    "fa5f倩 fa66偽 fabd包 fac5卄 fad5卿 fb48嘅 fbb8婷 fbf3幵 fbf9廐 fc4f彘 fc6c悤 fcb9撐 "
    "fce2晴 fcf1杞 fdb7沜渝 fdbb港 fdf1煮 fe52猪 fe6f瑜 feaa瓩 fedd砉"
)
"""Characters of big5 that Python's big5hkscs lacks: the bytes of the first one, and a run of characters."""

_BIG5 = {
    (int(run[:4], 16) + i).to_bytes(2): character
    for run in _BIG5_MISSING.split()
    for i, character in enumerate(run[4:])
}

_OTHER_CHARACTERS = {
    "big5hkscs": dict(zip("•､‾∼♁☉¥¢£", "‧﹑¯～⊕⊙￥￠￡", strict=True)),
    "euc_jp": dict(zip("〜‖−¢£¬", "～∥－￠￡￢", strict=True)),
    "cp932": dict.fromkeys("\uf8f0\uf8f1\uf8f2\uf8f3", "\ufffd"),
    "gb18030": dict(
        zip(
            "\ue5e5\ue78d\ue78e\ue78f\ue790\ue791\ue792\ue793\ue794\ue795\ue796\ue7c7"
            "\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864ḿ",
            "\u3000︐︒︑︓︔︕︖︗︘︙ḿ龴龵龶龷龸龹龺龻\ue7c7",
            strict=True,
        )
    ),
}
"""For each codec of Python: characters that it gives, and those that the standard has in their place."""


_SHARED_CHARACTERS = {
    "big5hkscs": (
        re.compile(rb"[\x81-\xfe][\x40-\x7e\x80-\xff]|.", re.DOTALL),
        {b"\xa1\xfe": "／", b"\xa2\x40": "＼", b"\xa2\x41": "∕", b"\xa2\x42": "﹨"},
        re.compile("[／＼]"),
    ),
    "euc_jp": (
        re.compile(rb"\x8f[\xa1-\xfe][\x80-\xff]|[\x8e\x8f\xa1-\xfe][\x80-\xff]|.", re.DOTALL),
        {b"~": "~", b"\x8f\xa2\xb7": "～"},
        re.compile("~"),
    ),
}
"""For each codec of Python that reads two sequences of bytes as one character: the pattern of a sequence, the
characters of the sequences in the standard, and those of Python."""


class _MultiByte:
    """A decoder of Python, with the characters of the standard."""

    def __init__(self, codec: str, errors: str) -> None:
        self._decoder = codecs.getincrementaldecoder(codec)(errors)
        others = _OTHER_CHARACTERS.get(codec, {})
        self._table = str.maketrans(others)
        self._any_other = re.compile(f"[{''.join(others)}]") if others else None
        self._shared = _SHARED_CHARACTERS.get(codec)

    def decode(self, data: bytes, last: bool) -> str:
        """Return the characters of the next bytes."""
        held = self._decoder.getstate()[0] if self._shared else b""
        text = self._decoder.decode(data, last)
        if self._any_other and self._any_other.search(text):
            text = text.translate(self._table)
        if self._shared:
            sequence, characters, shared = self._shared
            if any(each in held + data for each in characters if len(each) > 1):
                found = (characters[each] for each in sequence.findall(held + data) if each in characters)
                text = shared.sub(lambda _: next(found), text)
        return text


def _pair_size(data: bytes, start: int, leads: range) -> int:
    """Return how many bytes an invalid pair has: a byte below 0x80 is never a part of it."""
    is_pair = data[start] in leads and start + 1 < len(data) and data[start + 1] >= 0x80
    return 2 if is_pair else 1


def _big5_error(data: bytes, start: int) -> tuple[str, int]:
    missing = _BIG5.get(data[start : start + 2])
    return ("\ufffd", _pair_size(data, start, range(0x81, 0xFF))) if missing is None else (missing, 2)


def _gb18030_error(data: bytes, start: int) -> tuple[str, int]:
    if data[start] == 0x80:
        return "€", 1
    if _FOUR_BYTES.fullmatch(data, start, start + 4):
        return "\ufffd", 4
    if _PART_OF_FOUR.fullmatch(data, start):  # the text ends here
        return "\ufffd", len(data) - start
    return "\ufffd", _pair_size(data, start, range(0x81, 0xFF))


_FOUR_BYTES = re.compile(rb"[\x81-\xfe][0-9][\x81-\xfe][0-9]")
_PART_OF_FOUR = re.compile(rb"[\x81-\xfe][0-9][\x81-\xfe]?")


def _euc_jp_error(data: bytes, start: int) -> tuple[str, int]:
    lead, following = data[start], data[start + 1 : start + 3]
    if lead == 0x8F and following and 0xA1 <= following[0] <= 0xFE:  # three bytes of JIS X 0212
        return "\ufffd", 2 + (len(following) == 2 and following[1] >= 0x80)
    if 0xA1 <= lead <= 0xFE and following and 0xA1 <= following[0] <= 0xFE:
        return _jis0208(lead - 0xA1, following[0] - 0xA1), 2
    return "\ufffd", _pair_size(data, start, range(0x8E, 0x90) if lead < 0xA1 else range(0xA1, 0xFF))


@cache
def _jis0208(row: int, cell: int) -> str:
    """Return a character of the index of JIS X 0208 as Shift_JIS has it, or U+FFFD; both are counted from 0."""
    lead, trail = divmod(row * 94 + cell, 188)
    pair = bytes([lead + (0x81 if lead < 0x1F else 0xC1), trail + (0x40 if trail < 0x3F else 0x41)])
    return pair.decode("cp932", "replace")[0]


def _cp932_error(data: bytes, start: int) -> tuple[str, int]:
    return "\ufffd", _pair_size(data, start, range(0x81, 0xA0) if data[start] < 0xA0 else range(0xE0, 0xFD))


def _cp949_error(data: bytes, start: int) -> tuple[str, int]:
    return "\ufffd", _pair_size(data, start, range(0x81, 0xFF))


def _handle(found: Callable[[bytes, int], tuple[str, int]], error: UnicodeError) -> tuple[str, int]:
    """Return the characters for bytes that Python cannot decode, and where it goes on."""
    assert isinstance(error, UnicodeDecodeError)
    characters, size = found(error.object, error.start)
    return characters, error.start + size


_MULTI_BYTE = {
    "utf-8": ("utf-8", "replace"),
    "utf-16le": ("utf-16-le", "replace"),
    "utf-16be": ("utf-16-be", "replace"),
}
"""For each other encoding, the codec of Python and its handler of errors."""

for _encoding, _codec, _found in (
    ("big5", "big5hkscs", _big5_error),
    ("gb18030", "gb18030", _gb18030_error),
    ("gbk", "gb18030", _gb18030_error),
    ("euc-jp", "euc_jp", _euc_jp_error),
    ("shift_jis", "cp932", _cp932_error),
    ("euc-kr", "cp949", _cp949_error),
):
    codecs.register_error(f"neardup_gpu.{_codec}", partial(_handle, _found))
    _MULTI_BYTE[_encoding] = _codec, f"neardup_gpu.{_codec}"


# ------------------------------------------------------------------------------------------------ escape sequences

_AS_A_WHOLE = {"hz-gb-2312": "hz", "iso-2022-kr": "iso2022_kr"}


class _Whole:
    """A decoder of Python that cannot stop at every byte, so that it waits for the last one."""

    def __init__(self, codec: str) -> None:
        self.codec, self.pieces = codec, list[bytes]()

    def decode(self, data: bytes, last: bool) -> str:
        """Return all characters when the last bytes are given, and none before."""
        self.pieces.append(data)
        return b"".join(self.pieces).decode(self.codec, "replace") if last else ""


_ESCAPE = re.compile(rb"\x1b(\([BJI]|\$[@B])")
_PART_OF_ESCAPE = re.compile(rb"\x1b[($]?\Z")
_PAIRS = re.compile(rb"((?:[!-~]{2})+)|[!-~][^!-~\x1b]|[!-~]?\Z|[^!-~]|[!-~]", re.DOTALL)
_TO_HIGH = bytes(byte | 0x80 for byte in range(256))
_ONE_BYTE = {
    b"(B": "".join(map(chr, range(128))),
    b"(J": "".join(map(chr, range(128))).replace("\\", "¥").replace("~", "‾"),
    b"(I": "\ufffd" * 0x21 + "".join(map(chr, range(0xFF61, 0xFFA0))) + "\ufffd" * 0x20,
}
_ONE_BYTE = {name: re.sub("[\x0e\x0f\x1b]", "\ufffd", table) + "\ufffd" * 128 for name, table in _ONE_BYTE.items()}
"""The characters of each byte, for each set of single bytes that an escape sequence chooses."""


class _Iso2022Jp:
    """The decoder of iso-2022-jp: the text between escape sequences, in the set that the last one chose."""

    def __init__(self) -> None:
        self.set, self.is_bare, self.pending = b"(B", False, b""
        self._from_euc_jp = decoder("euc-jp")

    def decode(self, data: bytes, last: bool) -> str:
        """Return the characters of the next bytes."""
        data = self.pending + data
        self.pending = b""
        if not last and (found := _PART_OF_ESCAPE.search(data)):
            data, self.pending = data[: found.start()], data[found.start() :]
        return "".join(self._texts(data, last))

    def _texts(self, data: bytes, last: bool) -> Iterator[str]:
        pieces = _ESCAPE.split(data)
        for number, piece in enumerate(pieces):
            if number % 2:
                # Browsers show an escape sequence that directly follows another one.
                yield "\ufffd" if self.is_bare else ""
                self.set, self.is_bare = piece, True
                continue
            is_end = last or number + 1 < len(pieces)
            if self.set in _ONE_BYTE:
                text = codecs.charmap_decode(piece, "strict", _ONE_BYTE[self.set])[0]
            else:
                text = "".join(self._pairs(piece, is_end))
            if text:
                self.is_bare = False
            yield text

    def _pairs(self, piece: bytes, is_end: bool) -> Iterator[str]:
        for found in _PAIRS.finditer(piece):
            if found[1]:
                yield self._from_euc_jp(found[1].translate(_TO_HIGH), True)
            elif found.end() == len(piece) and not is_end and len(found[0]) == 1 and found[0] in _FIRST_BYTES:
                self.pending = found[0] + self.pending
            elif found[0]:
                yield "\ufffd"


_FIRST_BYTES = bytes(range(0x21, 0x7F))
