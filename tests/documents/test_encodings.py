"""The encodings of the Encoding Standard against its own indexes.

The digests are of the text that a decoder gives which was written after the standard's steps, with the standard's
indexes (whatwg/encoding, review draft of June 2025; its index of gb18030 follows GB 18030-2022). The bytes hold every
pair of bytes, which is every entry of an index, and 100,000 bytes at random, which are mostly errors.
"""

import hashlib

import pytest

from neardup_gpu.documents import encodings
from neardup_gpu.errors import ParameterError


def random_bytes(alphabet=None):
    state, found = 28, bytearray()
    for _ in range(100_000):
        state = (1103515245 * state + 12345) % 2**31
        byte = state >> 16 & 255
        found.append(byte if alphabet is None else alphabet[byte % len(alphabet)])
    return bytes(found)


def pairs():
    return b"".join(bytes([lead, trail, 10]) for lead in range(0x80, 256) for trail in range(256))


def triples():
    return b"".join(bytes([0x8F, second, third, 10]) for second in range(0xA0, 256) for third in range(0x7E, 256))


def four_bytes():
    leads = (0x81, 0x84, 0x85, 0x8F, 0x90, 0xE3, 0xE4, 0xFE)
    return b"".join(
        bytes([a, b, c, d, 10])
        for a in leads
        for b in range(0x2F, 0x3B)
        for c in range(0x80, 256)
        for d in range(0x2F, 0x3B)
    )


def all_four_bytes():
    return b"".join(
        bytes([a, b, c, d])
        for a in range(0x81, 0x85)
        for b in range(0x30, 0x3A)
        for c in range(0x81, 0xFF)
        for d in range(0x30, 0x3A)
    )


def all_sets():
    """Return the whole index of JIS X 0208, all katakana and the other characters of Roman, with escape sequences."""
    rows = b"".join(bytes([lead, trail]) for lead in range(0x21, 0x7F) for trail in range(0x21, 0x7F))
    return b"\x1b$B" + rows + b"\x1b(I" + bytes(range(0x1F, 0x62)) + b"\x1b(J\\~\x1b(B\\"


SETS = bytes([0x1B, 0x1B, 0x1B, *b"($BB@JI!0~\\\n", 0x80, 0x0E, *b"-y"])
SINGLE = bytes(range(256))
DIGESTS = [
    ("big5", pairs(), "0a6ca50e9b5d4c9a"),
    ("big5", random_bytes(), "7f9694db7cd1063e"),
    ("euc-kr", pairs(), "066ddaeeb420c9da"),
    ("euc-kr", random_bytes(), "c32918daa2cb1c9f"),
    ("shift_jis", pairs(), "0694ae80cedb484d"),
    ("shift_jis", SINGLE, "71454046f74db40b"),
    ("shift_jis", random_bytes(), "6a2a1f4eb87bda96"),
    ("euc-jp", pairs(), "93d193a6319f79db"),
    ("euc-jp", triples(), "5bbd7a5cc0b7cca4"),
    ("euc-jp", random_bytes(), "6c4b842672cd0a5f"),
    ("gb18030", pairs(), "6ca032ac22b5921c"),
    ("gb18030", four_bytes(), "2287ca1e44219c71"),
    ("gb18030", all_four_bytes(), "d8056b4fbdb9a153"),
    ("gb18030", random_bytes(), "778a5210695ec4c2"),
    ("gbk", pairs(), "6ca032ac22b5921c"),
    ("gbk", random_bytes(), "778a5210695ec4c2"),
    ("iso-2022-jp", all_sets(), "0af642666bf0dd6d"),
    ("iso-2022-jp", random_bytes(SETS), "a3313eca03f9ca69"),
    ("utf-8", random_bytes(), "e4e774df628695e9"),
    ("utf-16le", random_bytes(), "027e6c6cc1ebdd63"),
    ("utf-16be", random_bytes(), "f1e28dbe07ce8cf5"),
    ("ibm866", SINGLE, "3c8cc5cb485f93d2"),
    ("iso-8859-2", SINGLE, "a5871b0f978b840b"),
    ("iso-8859-3", SINGLE, "e83895f2b7d7b82b"),
    ("iso-8859-4", SINGLE, "449076e20ebf45eb"),
    ("iso-8859-5", SINGLE, "9f31ddc0f7444afa"),
    ("iso-8859-6", SINGLE, "beba4e6cf97dce83"),
    ("iso-8859-7", SINGLE, "71069977a6798ab7"),
    ("iso-8859-8", SINGLE, "b43535e7aaeb7bcf"),
    ("iso-8859-8-i", SINGLE, "b43535e7aaeb7bcf"),
    ("iso-8859-10", SINGLE, "282514fbd01219c4"),
    ("iso-8859-13", SINGLE, "4426f6d2f1b025cd"),
    ("iso-8859-14", SINGLE, "f03afb7e01e66cac"),
    ("iso-8859-15", SINGLE, "9b58b26dbd8fbff2"),
    ("iso-8859-16", SINGLE, "2de1faef4dc524c9"),
    ("koi8-r", SINGLE, "fb0243455e64ef70"),
    ("koi8-u", SINGLE, "896c218aaf12ca1b"),
    ("macintosh", SINGLE, "54112bce885d7b1a"),
    ("windows-874", SINGLE, "6a2c7940c3d68216"),
    ("windows-1250", SINGLE, "03772ed2e875bd12"),
    ("windows-1251", SINGLE, "b16600cf4e6d1a2d"),
    ("windows-1252", SINGLE, "cc916e51644a12e8"),
    ("windows-1253", SINGLE, "e4570135cbc6e3d5"),
    ("windows-1254", SINGLE, "4a8e99647c3e28e6"),
    ("windows-1255", SINGLE, "870c5c5e687fabcd"),
    ("windows-1256", SINGLE, "6f6e8626197b1b6b"),
    ("windows-1257", SINGLE, "d19a4e888879e36a"),
    ("windows-1258", SINGLE, "e79b48db126bc71d"),
    ("x-mac-cyrillic", SINGLE, "784db55e1c90195e"),
    ("x-user-defined", SINGLE, "fb4341fe90799717"),
]


@pytest.mark.parametrize(("encoding", "data", "digest"), DIGESTS)
def test_every_character_is_that_of_the_standard(encoding, data, digest):
    text = encodings.decode(data, encoding)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == digest


@pytest.mark.parametrize("encoding", sorted(encodings.LABELS))
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_a_stream_has_the_same_text_in_any_pieces(encoding, size):
    data = (random_bytes(SETS) if encoding in ("iso-2022-jp", "iso-2022-kr", "hz-gb-2312") else random_bytes())[:5000]
    decode = encodings.decoder(encoding)
    pieces = [decode(data[start : start + size], False) for start in range(0, len(data), size)]
    assert "".join([*pieces, decode(b"", True)]) == encodings.decode(data, encoding)


def test_all_labels_are_known():
    labels = [label for each in encodings.LABELS.values() for label in each.split()]
    labels += ["iso-2022-cn", "iso-2022-cn-ext", "replacement"]
    assert len(set(labels)) == 228
    for label in labels:
        encoding = encodings.encoding_of(f"\t{label.upper()} ")
        assert encoding in encodings.LABELS
        assert encodings.decode(b"a word", encoding)
    assert encodings.encoding_of("utf-7") is encodings.encoding_of(None) is encodings.encoding_of("") is None


@pytest.mark.parametrize(("encoding", "codec"), [("iso-2022-kr", "iso2022_kr"), ("hz-gb-2312", "hz")])
def test_what_browsers_replace_is_decoded(encoding, codec):
    text = "안녕 세계" if encoding == "iso-2022-kr" else "你好"
    assert encodings.decode(text.encode(codec), encoding) == text


def test_an_unknown_label_is_refused_with_one_that_is_like_it():
    assert encodings.check_encoding(None) is None
    assert encodings.check_encoding(" Latin1 ") == "windows-1252"
    with pytest.raises(ParameterError, match=r"encoding: unknown label 'latin-1'; .* such as 'latin1'"):
        encodings.check_encoding("latin-1")
