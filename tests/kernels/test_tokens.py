"""Tokens against a second definition on Python's own unicodedata, and what comes out for the world's scripts."""

import sys
import unicodedata

import numpy as np
import pytest
import unicode_data
from grids import fewer
from hypothesis import given, settings, strategies as st
from witnesses import BORDER, decoded, invisible, kind, rabin_hasher, token_places, token_strings

from neardup_gpu.installation.kernel_inputs import CHARACTERS
from neardup_gpu.kernels import _folding, _gf2 as scalar, _unicode_table as unicode_table, tokens

Q = np.uint64(0x9A3D1C2B4E5F6071 | 1 << 63)
hashed = rabin_hasher(Q)
BOTH = [tokens.reference, tokens.cpu]
IDS = ["reference", "cpu"]
SAME_UNICODE = unicodedata.unidata_version == unicode_data.UNICODE_VERSION


def ragged(documents):
    """UTF-8 of some documents, one after another, and their offsets."""
    offsets = np.zeros(len(documents) + 1, np.int64)
    np.cumsum([len(document) for document in documents], out=offsets[1:])
    return np.frombuffer(b"".join(documents), np.uint8), offsets


def run(function, documents):
    """Fingerprints of each document's tokens as lists, and the number of invalid bytes."""
    documents = [document.encode() if isinstance(document, str) else document for document in documents]
    values, offsets, invalid = function(*ragged(documents), Q)
    return [values[a:b].tolist() for a, b in zip(offsets[:-1], offsets[1:], strict=True)], invalid


def fingerprints(strings):
    return [hashed(string.encode("utf-8", "surrogatepass")) for string in strings]


def assert_tokens(documents, expected, function=tokens.cpu):
    """Compare with expected token strings, and name the first document that differs."""
    found, _ = run(function, documents)
    for document, strings, values in zip(documents, expected, found, strict=True):
        assert values == fingerprints(strings), f"{document!r} should give {strings}"


def in_table(character):
    """False for code points that this Python knows and Unicode 14 does not: there the two may differ."""
    table = unicode_table.load()
    unknown = table.sequence[table.page[ord(character) >> 8], ord(character) & 255] == unicode_table.DIVIDE
    return SAME_UNICODE or not unknown or kind(character) == "divide"


@pytest.fixture(scope="module")
def every_character():
    return [c for c in map(chr, range(0x110000)) if not 0xD800 <= ord(c) < 0xE000 and in_table(c)]


@pytest.mark.parametrize("pattern", ["{}", "漢{}\u0301é"])
def test_every_code_point(every_character, pattern):
    before, after = pattern.split("{}")
    documents = [before + c + after for c in every_character]
    assert len(documents) > 1_100_000
    if after:  # of those that Unicode has given no meaning, alone all, and here a few
        meaning = (
            c for i, c in enumerate(every_character) if i % 50 == 0 or unicodedata.category(c) not in ("Cn", "Co")
        )
        documents = [before + c + after for c in meaning]
        assert len(documents) > 140_000
    found = tokens.cpu(*ragged([document.encode() for document in documents]), Q)
    strings = [token_strings(document) for document in documents]
    expected = np.array([hashed(string.encode()) for document in strings for string in document], np.uint64)
    sizes = np.array([len(document) for document in strings])
    wrong = np.flatnonzero(np.diff(found[1]) != sizes)
    assert not len(wrong), f"{documents[wrong[0]]!r} should give {strings[wrong[0]]}"
    wrong = np.flatnonzero(found[0] != expected)
    assert not len(wrong), repr(documents[np.searchsorted(found[1], wrong[0], side="right") - 1])
    assert found[2] == 0


def test_listed_ranges_are_the_scripts_without_spaces(every_character):
    for c in every_character:
        if kind(c) in ("word", "single") and unicodedata.normalize("NFKD", c) == c:
            listed = any(first <= ord(c) <= last for first, last, _ in unicode_data.SINGLE_RANGES)
            assert listed == (kind(c) == "single"), f"U+{ord(c):04X} {unicodedata.name(c, '')}"


SCRIPTS = st.one_of(st.sampled_from(CHARACTERS), st.characters(exclude_categories=["Cs"]).filter(in_table))
MARKS = st.characters(categories=["M"]).filter(in_table)
STRINGS = st.one_of(
    st.text(SCRIPTS, max_size=40),
    st.lists(st.one_of(st.text(MARKS, max_size=6), st.sampled_from(["a", "É", "漢", " ", "ก", "\u00ad"]))).map("".join),
    st.text(st.sampled_from("\u0301\u0323\u0345\u05b0\u0651\u0344\u1dd9e "), max_size=90),  # long runs, out of order
)


@settings(max_examples=fewer(300), deadline=None)
@given(st.lists(STRINGS, max_size=6))
def test_random_strings(documents):
    assert_tokens(documents, [token_strings(document) for document in documents])


@settings(max_examples=fewer(50), deadline=None)
@given(STRINGS)
def test_canonically_equivalent_texts_have_the_same_tokens(text):
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD", "NFKC", "NFKD")]
    found, _ = run(tokens.cpu, [text, *forms])
    assert all(row == found[0] for row in found)


@pytest.mark.parametrize("function", BOTH, ids=IDS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The quick_brown Fox's 3.14", ["the", "quick_brown", "fox", "s", "3", "14"]),
        ("", []),
        (" \t\n.,;!?-\0", []),
        ("我们在北京。", ["我", "们", "在", "北", "京"]),
        ("GPU加速100倍", ["gpu", "加", "速", "100", "倍"]),
        ("日本語のテキスト", ["日", "本", "語", "の", "テ", "キ", "ス", "ト"]),
        (
            "ガ が ｶﾞ",
            ["カ\u3099", "か\u3099", "カ\u3099"],
        ),  # voicing marks stay with their kana, half-width kana are kana
        ("人々は〇三〡", ["人", "々", "は", "〇", "三", "〡"]),
        ("ที่นี่", ["ท\u0e35\u0e48", "น\u0e35\u0e48"]),
        ("ກຳ", ["ກ\u0ecd", "າ"]),
        ("មែ", ["ម\u17c2"]),
        ("မြန်မာ", ["မ\u103c", "န\u103a", "မ\u102c"]),
        ("العَرَبِيَّة", ["العَرَبِيَّة"]),  # vowel marks stay in the word
        ("السلام عليكم ورحمة", ["السلام", "عليكم", "ورحمة"]),
        ("ﷺ", ["صلى", "الله", "عليه", "وسلم"]),
        ("١٢٣ ۱۲۳", ["١٢٣", "۱۲۳"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("שָׁלוֹם עולם", ["ש\u05b8\u05c1לו\u05b9ם", "עולם"]),
        ("한국어 문서", ["\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165", "\u1106\u116e\u11ab\u1109\u1165"]),
        ("😀 ok👍🏽ok 👩\u200d👩\u200d👧", ["ok", "ok"]),  # symbols divide and are no tokens
        ("so\u00adft jo\u034fin 1\ufe0f", ["soft", "join", "1"]),  # what is invisible vanishes
        ("葛\U000e0100城", ["葛", "城"]),  # ideographic variation
        ("\u3164 \uffa0 \u115f\u1160", []),  # fillers are letters that nobody sees
        ("a\u3164b \u2065\ufff0c\U000e0fff", ["ab", "c"]),
        ("ᠮᠣᠩᠭᠣᠯ\u180b", ["ᠮᠣᠩᠭᠣᠯ"]),
        ("1\ufe0f\u20e3", ["1\u20e3"]),  # the enclosing mark stays, the selector of its picture goes
        ("co\u00adoper\u00adate soft\u00ad", ["cooperate", "soft"]),
        ("zero\u200bwidth\u200cjoin\u200der\u2060\ufeffs", ["zerowidthjoiners"]),
        ("\u00ad \u200b", []),
        ("漢\u200b\u0301字", ["漢\u0301", "字"]),
        ("Straße STRASSE ſ", ["strasse", "strasse", "s"]),
        ("ΣΊΣΥΦΟΣ σίσυφος", ["σι\u0301συφοσ"] * 2),
        ("İstanbul ıI", ["i\u0307stanbul", "ıi"]),
        ("café cafe\u0301 CAFÉ", ["cafe\u0301"] * 3),
        ("ﬁne ½ m² Å", ["fine", "1", "2", "m2", "a\u030a"]),
        ("ｆｕｌｌ　ｗｉｄｔｈ", ["full", "width"]),
        ("\u0301a", ["a"]),  # a mark that follows no token character divides
        ("a \u0301b", ["a", "b"]),
        ("ᾳ\u0301 ᾴ", ["α\u0301ι", "α\u0301ι"]),  # iota subscript folds to a letter, after the accent
        ("a\ufffdb", ["a", "b"]),
    ],
)
def test_what_comes_out(function, text, expected):
    assert token_strings(text) == expected
    assert_tokens([text], [expected], function)


@pytest.mark.parametrize("function", BOTH, ids=IDS)
@pytest.mark.parametrize(
    ("text", "expected", "invalid"),
    [
        (b"A\xffB", ["a\udcffb"], 1),
        (b"\xc3", ["\udcc3"], 1),
        (b"caf\xe9 caf\xc3", ["caf\udce9", "caf\udcc3"], 2),
        (b"\xd6l \xdcl \xf6l", ["\udcd6l", "\udcdcl", "\udcf6l"], 3),  # Latin-1: case is not folded
        (b"\xc3\xa9 \xc3\xc2\xad\xa9", ["e\u0301", "\udcc3\udca9"], 2),  # a soft hyphen vanishes, and leaves no letter
        (b"\xe2\x82", ["\udce2\udc82"], 2),
        (b"\xe2\x82x", ["\udce2\udc82x"], 2),
        (b"\xf0\x9f\x98\xf0\x9f\x98", ["\udcf0\udc9f\udc98" * 2], 6),
        (b"\xed\xa0\x80", ["\udced\udca0\udc80"], 3),  # a surrogate
        (b"\xed\xb2\x80", ["\udced\udcb2\udc80"], 3),  # what spells the letter of an invalid byte
        (b"\xc0\x80", ["\udcc0\udc80"], 2),  # overlong
        (b"\xf4\x90\x80\x80", ["\udcf4\udc90\udc80\udc80"], 4),  # beyond U+10FFFF
        (b"\xef\xbf\xbd", [], 0),  # U+FFFD itself divides
        (b"\x80\x80", ["\udc80\udc80"], 2),
        (b"\xff\xcc\x81\xcc\xa3", ["\udcff\u0323\u0301"], 1),  # marks continue the letter, in canonical order
        (
            b"\xe0\xb8\x81\x80a\xe6\xbc\xa2",
            ["\u0e01", "\udc80a", "\u6f22"],
            1,
        ),  # a letter of a word, beside single ones
    ],
)
def test_an_invalid_byte_is_a_letter_and_is_counted(function, text, expected, invalid):
    assert token_strings(decoded(text)) == expected
    assert run(function, [text, b"end"]) == ([fingerprints(expected), fingerprints(["end"])], invalid)


@pytest.mark.parametrize("function", BOTH, ids=IDS)
@pytest.mark.parametrize(
    ("text", "expected", "invalid"),
    [
        (b"one\xed\xb0\x80two", ["one", "\udc00", "two"], 0),
        (b"one \xed\xb0\x80\n\xed\xb0\x80\n", ["one", "\udc00", "\udc00"], 0),
        (b"\xed\xb0\x80\xcc\x81 a", ["\udc00\u0301", "a"], 0),  # a mark continues a border
        (b"\xed\xb0\x80\n\xcc\x81a", ["\udc00", "a"], 0),  # as none does after a line break
        (b"\xed\xb0\x80", [], 0),  # borders alone
        (b"?\xed\xb0\x80!\xed\xb0\x80\xcc\x81\n\xf0\x9f\x91\x8d", [], 0),
        (b"a\xed\xc2\xad\xb0\x80", ["a\udced\udcb0\udc80"], 3),  # a soft hyphen within is none
        (b"a\xed\xb0", ["a\udced\udcb0"], 2),
        (b"\xed\xed\xb0\x80\x80", ["\udced", "\udc00", "\udc80"], 2),
        (b"\xe6\xbc\xa2\xed\xb0\x80\xe6\xbc\xa2", ["\u6f22", "\udc00", "\u6f22"], 0),
    ],
)
def test_a_border_is_a_token_unless_there_are_only_borders(function, text, expected, invalid):
    assert token_strings(decoded(text)) == expected
    documents = [text, b"\x80end", text[:-1], b"\x80"]  # bytes of a border end with their document
    rows, found = run(function, documents)
    assert rows == [fingerprints(token_strings(decoded(document))) for document in documents]
    assert found == invalid + 2 + sum("\udc80" <= c <= "\udcff" for c in decoded(text[:-1]))


BYTES = st.lists(
    st.one_of(
        st.binary(max_size=5),
        st.text(SCRIPTS, max_size=3).map(str.encode),
        st.text(SCRIPTS, min_size=1, max_size=1).map(lambda c: c.encode()[:-1]),
        st.sampled_from([b"\xed\xb0\x80", b"\xed\xb0\x80\n", b"\xc2\xad", b"\xed\xc2\xad", b"\xcc\x81"]),
    )
).map(b"".join)


@settings(max_examples=fewer(200), deadline=None)
@given(st.lists(BYTES, max_size=4))
def test_random_bytes_read_as_python_escapes_them(documents):
    texts = [decoded(document) for document in documents]
    if not all(map(in_table, "".join(texts))):
        return
    found, invalid = run(tokens.cpu, documents)
    assert found == [fingerprints(token_strings(text)) for text in texts]
    assert invalid == sum("\udc80" <= character <= "\udcff" for text in texts for character in text)


FEW_BYTES = st.lists(
    st.sampled_from([b"\xc3", b"\xa9", b"\xe9", b"\xed", b"\xb2", b"\x80", b"\xc2\xad", b"A", b" "]), max_size=6
)


@settings(max_examples=fewer(300), deadline=None)
@given(FEW_BYTES.map(b"".join), FEW_BYTES.map(b"".join))
def test_equal_tokens_have_equal_invalid_bytes(first, second):
    rows, _ = run(tokens.cpu, [first, second])
    letters = [[c for c in decoded(document) if "\udc80" <= c <= "\udcff"] for document in (first, second)]
    assert rows[0] != rows[1] or letters[0] == letters[1]


@pytest.mark.parametrize("encoding", ["latin-1", "koi8-r", "cp1251", "cp437"])
def test_texts_in_a_one_byte_encoding_differ_where_their_letters_differ(encoding):
    letters = [c for c in map(chr, range(0x80, 0x500)) if c.isalpha() and len(c.encode(encoding, "ignore")) == 1]
    documents = [f"r{letter}d {letter} {letter * 3}".encode(encoding) for letter in letters]
    assert len(letters) > 40
    rows, invalid = run(tokens.cpu, documents)
    assert [len(row) for row in rows] == [3] * len(letters)
    assert len(set(map(tuple, rows))) == len(letters)
    assert invalid == 5 * len(letters)


ODD_BYTES = st.lists(
    st.sampled_from(
        [*(bytes([b]) for b in b"a \x80\xbf\xc0\xc3\xe0\xe4\xed\xf0\xf4\xff"), *map(str.encode, "éกㄱﷺ𝒜🈂漢")]
    ),
    max_size=80,
).map(b"".join)


@settings(max_examples=fewer(300), deadline=None)
@given(st.lists(ODD_BYTES, min_size=1, max_size=3), st.sampled_from([b"", b"a" * 62, b"\xe4" * 63]))
def test_folded_text_has_room(documents, ahead):
    """Each invalid byte becomes three bytes, with a separator on either side in a script without spaces."""
    text, offsets = ragged([ahead + document for document in documents])
    widest, *table = unicode_table.load()
    bounds = np.array([0, len(documents)], np.int64)
    begins, ends = _folding.place_folded(text, offsets, bounds, widest)
    for d in np.flatnonzero(ends >= 0):
        folded = np.zeros(10 * (offsets[d + 1] - offsets[d]) + 200, np.uint8)
        end, *_ = _folding._fold(text, offsets[d], offsets[d + 1], folded, 0, *table)
        assert end <= begins[d + 1] - begins[d]


# ------------------------------------------------------------------------------------------------------------- places


def placed(function, documents):
    """Return the (fingerprint, first byte, last byte) of each document's tokens, counted from where it begins."""
    text, starts = ragged(documents)
    values, offsets, invalid, begins, ends = function(text, starts, Q, places=True)
    assert all(map(np.array_equal, (values, offsets), function(text, starts, Q)[:2]))
    assert invalid == function(text, starts, Q)[2]
    rows = []
    for start, a, b in zip(starts, offsets[:-1], offsets[1:], strict=False):
        rows.append(
            [*zip(values[a:b].tolist(), (begins[a:b] - start).tolist(), (ends[a:b] - start).tolist(), strict=True)]
        )
    return rows


def expected_places(document):
    return [(hashed(token.encode("utf-8", "surrogatepass")), a, b) for token, a, b in token_places(document)]


@pytest.mark.parametrize("function", BOTH, ids=IDS)
@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("To be, or", [(0, 2), (3, 5), (7, 9)]),
        ("ﬁne Stra\u00adße\u00ad", [(0, 5), (6, 15)]),  # a ligature; what is invisible within a word, and after it
        ("\u200be\u0301\u0323 \u0301x", [(3, 8), (11, 12)]),  # marks belong to the letter before them, or to none
        ("한국어 \u1112\u1161\u11ab", [(0, 9), (10, 19)]),  # a syllable, and another one spelled in three letters
        ("漢字かか\u3099", [(0, 3), (3, 6), (6, 9), (9, 15)]),
        ("2½ ㍿", [(0, 3), (1, 3), *[(4, 7)] * 4]),  # 21 and 2, which share a code point; four characters in one
        ("น้ำ", [(0, 9), (6, 9)]),  # the vowel has a mark of the first token
        ("漢\u0345\u0301\u0345 x", [(0, 7), (3, 9), (10, 11)]),  # the letter U+0345 comes after the mark
        ("a\u0345\u0301b", [(0, 6)]),
        ("👍🏽 ok", [(9, 11)]),
        (b"caf\xe9 \xe2\x82 \xff", [(0, 4), (5, 7), (8, 9)]),
        (b"one\xed\xb0\x80\xcc\x81two", [(0, 3), (3, 8), (8, 11)]),
        (b"\xed\xb0\x80 \xed\xb0\x80", []),
    ],
)
def test_places(function, text, places):
    raw = text.encode() if isinstance(text, str) else text
    assert [(a, b) for _, a, b in token_places(raw)] == places
    assert placed(function, [b"x ", raw, raw])[1:] == [expected_places(raw)] * 2


PLACED = st.lists(
    st.one_of(
        st.sampled_from(
            [*"aZ9_ .-½ﬁﬃ㍿㏂漢字かガｶﾞ한국ᄀ\u1161\u11a8กำ้ᾳͺ👍🏽\u00ad\u034f\u200d\u0301\u0323\u0345\u20dd"]
        ).map(str.encode),
        st.sampled_from([b"\xed\xb0\x80", b"\xed", b"\xb0", b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f", b"\xff"]),
        STRINGS.map(str.encode),
    ),
    max_size=12,
).map(b"".join)


@settings(max_examples=fewer(300), deadline=None)
@given(st.lists(PLACED, max_size=4))
def test_places_are_those_of_unicodedata(documents):
    if not all(map(in_table, "".join(map(decoded, documents)))):
        return
    wanted = [expected_places(document) for document in documents]
    assert placed(tokens.cpu, documents) == wanted
    assert placed(tokens.reference, documents) == wanted


def test_places_of_characters_that_fold(every_character):
    fold = [c for c in every_character if unicodedata.combining(c) or unicodedata.normalize("NFKD", c).casefold() != c]
    assert len(fold) > 15_000
    documents = [pattern.replace("{}", c).encode() for pattern in ("a{}b", "漢{}\u0301\u0345é") for c in fold]
    for document, found in zip(documents, placed(tokens.cpu, documents), strict=True):
        assert found == expected_places(document), document.decode()


@settings(max_examples=fewer(400), deadline=None)
@given(PLACED)
def test_the_place_of_a_token_has_that_token(document):
    """Alone, unless the place overlaps another; text of borders alone has no tokens."""
    (row,) = placed(tokens.cpu, [document])
    if not row:
        return
    alone, _ = run(tokens.cpu, [document[begin:end] for _, begin, end in row])
    for number, ((value, begin, end), found) in enumerate(zip(row, alone, strict=True)):
        others = row[:number] + row[number + 1 :]
        if document[begin:].startswith(b"\xed\xb0\x80") and all(
            token.startswith(BORDER) for token, _, _ in token_places(b"x " + document[begin:end])[1:]
        ):
            assert found == []
        elif any(a < end and begin < b for _, a, b in others):
            assert value in found
        else:
            assert found == [value]


def test_only_one_letter_has_a_combining_class():
    """Places are found without sorting marks, as this letter comes after all marks, and divides nothing from them."""
    table = unicode_table.load()
    ranked = table.combining > 0
    letters = ranked & (table.kinds != unicode_table.MARK)
    assert set(table.kinds[letters]) == {unicode_table.WORD}
    assert set(table.combining[letters]) == {table.combining.max()} == {unicodedata.combining("\u0345")}
    assert not (ranked & ~letters & (table.combining == table.combining.max())).any()


def test_long_runs_of_invalid_bytes():
    for text in (b"\x80" * 5000, b"\xe0\xb8\x81\x80" * 3000, b"\xed\xb0\x80" * 3000 + b"\x80", b"\xc3" * 4097):
        for ahead in (b"", b"a" * 63, b"a" * 62 + b"\xf0\x9f"):
            assert_bytes([ahead + text, text])


def assert_bytes(documents):
    assert run(tokens.cpu, documents)[0] == [fingerprints(token_strings(decoded(text))) for text in documents]


@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 24, 25, 63, 64, 65, 127, 128, 4095, 4096, 4097, 10_000])
@pytest.mark.parametrize("letters", ["a", "Z", "é", "я", "e\u0301"])
def test_words_of_any_length_at_any_place(length, letters):
    word = (letters * length)[:length]
    texts = [" " * gap + word + "," * tail + "end" for gap in (0, 1, 5, 55, 56, 63, 64, 4090) for tail in (1, 9)]
    assert_tokens([*texts, word], [*([*token_strings(word), "end"] for _ in texts), token_strings(word)])


@pytest.mark.parametrize("width", [1, 2, 8, 9])
def test_texts_much_longer_than_a_stretch(width):
    strings = [f"{i:0{width}x}" for i in range(20_000)]
    for space in (" ", "\u00a0", "—"):
        assert_tokens([space.join(strings)], [strings])


def test_no_documents_and_empty_documents():
    assert run(tokens.cpu, []) == ([], 0)
    assert run(tokens.cpu, ["", "a", ""]) == ([[], fingerprints(["a"]), []], 0)


def test_the_witness_hashes_as_the_definition_does():
    for word in ("", "a", "漢", "fingerprint of a longer word"):
        assert hashed(word.encode()) == scalar.rabin(word.encode(), int(Q))


def test_the_committed_table_is_the_one_in_every_recipe():
    assert unicode_data.digest(unicode_table.load()) == unicode_table.DIGEST


@pytest.mark.skipif(not SAME_UNICODE, reason=f"the table is made on Python 3.11, this is {sys.version_info[:2]}")
def test_the_committed_table_is_what_unicodedata_gives():
    for name, built, stored in zip(
        unicode_table.Table._fields, unicode_data.build(), unicode_table.load(), strict=True
    ):
        assert built.dtype == stored.dtype, name
        np.testing.assert_array_equal(built, stored, name)


def test_what_is_invisible_is_what_unicode_calls_default_ignorable():
    """Derived as Unicode Standard Annex 44, 5.2 derives it, but from names:"""
    listed = {code for first, last, _ in unicode_data.IGNORABLE_RANGES for code in range(first, last + 1)}
    for code in range(0x110000):
        if not 0xD800 <= code < 0xE000:
            expected = invisible(chr(code)) and unicodedata.category(chr(code)) != "Cf"
            assert (code in listed and unicodedata.category(chr(code)) != "Cf") == expected, f"U+{code:04X}"


def test_tokens_that_begin_in_a_group_are_counted_in_a_byte():
    """No code point becomes more than 6 tokens in 3 bytes: 66 in the 32 bytes that a thread of the GPU takes."""
    table = unicode_table.load()
    widths = ((1, 0, 0x80), (2, 0x80, 0x800), (3, 0x800, 0x10000), (4, 0x10000, 0x110000))
    most = dict.fromkeys((1, 2, 3, 4), 1)  # what stands for itself
    for width, first, stop in widths:
        codes = np.arange(first, stop)
        for number in np.unique(table.sequence[table.page[codes >> 8], codes & 255]):
            state, begun = unicode_table.DIVIDE, 0
            for one in table.kinds[table.starts[number] : table.starts[number + 1]]:
                if one == unicode_table.SINGLE or (one == unicode_table.WORD and state != one):
                    begun += 1
                if one not in (unicode_table.MARK, unicode_table.VANISH):
                    state = one
            most[width] = max(most[width], begun)
    assert max(-(-32 // width) * begun for width, begun in most.items()) == 66 < 256
