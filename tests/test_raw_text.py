"""What is not text, from the input to what people are shown: invalid bytes, and borders between columns."""

import json

import pyarrow as pa
from flat import flat
from grids import fewer
from hypothesis import example, given, settings, strategies as st
from witnesses import decoded, token_strings

import neardup_gpu as nd
from neardup_gpu import report_page
from neardup_gpu.results import diff
from neardup_gpu.results.alignment import words_of
from neardup_gpu.results.explanation import explain
from neardup_gpu.stages import count_tokens, utf8
from neardup_gpu.text import raw_text

RECIPE = nd.Recipe()
PIECES = [
    b"\xed\xb0\x80",
    b"\xed\xb0\x80\n",
    b"\xed",
    b"\xb0\x80",
    b"\xcc\x81",
    b"\xc2\xad",
    b".",
    b" ",
    b"a",
    b"B",
    b"\xd6",
    b"\xc3\xa9",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=8).map(b"".join)


def tokens_of(*columns):
    """The tokens of each row of some text columns, and the number of invalid bytes."""
    table = pa.table({str(i): pa.array(column, pa.binary()) for i, column in enumerate(columns)})
    (batch,) = nd.open_documents(table, text_columns=table.column_names).batches(max_bytes=1 << 20)
    tokens, counts = count_tokens(batch.text, RECIPE, "cpu")
    return [tuple(row.tolist()) for row in tokens], counts.invalid


def kept(table, **options):
    return flat(nd.dedup, table, **options).documents["kept"].to_pylist()


class TestInvalidBytes:
    def test_words_that_differ_in_one_byte_differ(self, tmp_path):
        for name, text in (("a", "Öl ist teuer"), ("b", "Ül ist teuer")):
            (tmp_path / f"{name}.txt").write_bytes(text.encode("latin-1"))
        assert kept(tmp_path) == [True, True]

    def test_equal_texts_in_a_one_byte_encoding_are_equal(self, tmp_path):
        for name in "ab":
            (tmp_path / f"{name}.txt").write_bytes("сделай сам".encode("koi8-r"))
        run = nd.dedup(tmp_path)
        assert run.documents["kept"].to_pylist() == [True, False]
        assert run.report["counts"]["invalid_utf8"] == 18

    def test_they_are_compared_as_bytes_and_shown_as_replacements(self, tmp_path):
        words = b"one two three four five six seven eight nine ten"
        texts = [words + b" caf\xe9 Stra\xdfe", words + b" caf\xe8 Stra\xdfe"]
        for name, text in zip("ab", texts, strict=True):
            (tmp_path / f"{name}.txt").write_bytes(text)
        found = nd.compare(*texts)
        assert ("removed", "caf\ufffd ") in found.words and ("added", "caf\ufffd ") in found.words
        assert found.words[-1] == ("equal", "Stra\ufffde")
        output = tmp_path / "out"
        nd.dedup(tmp_path, output=output, threshold=0.3)
        assert explain(output, "b.txt").words == found.words
        page = report_page.of_folder(output).html
        assert "caf\ufffd" in page and page.encode()

    def test_a_text_that_is_cut_differently_is_not_made_valid(self):
        (first, second), invalid = tokens_of([b"\xc3\xc2\xad\xa9", "é".encode()])
        assert first != second and invalid == 2


class TestBorders:
    def test_words_that_move_to_another_column_make_a_difference(self):
        table = pa.table({"title": ["who wrote it", "who wrote it alpha"], "body": ["alpha beta", "beta"]})
        assert kept(table, text_columns=["title", "body"]) == [True, True]
        table = pa.table({"title": ["Who wrote it", "who wrote it!"], "body": ["alpha, beta", "alpha beta"]})
        assert kept(table, text_columns=["title", "body"]) == [True, False]

    def test_a_null_leaves_no_border(self):
        rows, _ = tokens_of([None, b"a", b"a", b"", None, None], [b"a", None, b"", b"a", b"", None])
        assert rows[0] == rows[1] != rows[2] != rows[3]
        assert rows[1] not in rows[2:]
        assert rows[4:] == [(), ()]

    def test_rows_without_words_have_no_tokens(self):
        rows, _ = tokens_of([b"", b"?", b"\xf0\x9f\x91\x8d"], [b"", b"!", b""], [b"", b"\xcc\x81", b"..."])
        assert rows == [()] * 3
        table = pa.table({"a": ["...", "?", "", "", " ", "?"], "b": ["", "!", "", "", "\n", "!"]})
        run = nd.dedup(table, text_columns=["a", "b"])
        assert run.documents["kept"].to_pylist() == [
            True,
            True,
            True,
            True,
            True,
            False,
        ]
        assert run.report["counts"]["empty"] == 6

    @settings(max_examples=fewer(300), deadline=None)
    @given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), min_size=2, max_size=2))
    @example([(b"a\xed\xb0\x80\nb", b"c", b""), (b"a", b"b\xed\xb0\x80\nc", b"")])
    @example([(b"a\xed", b"\xb0\x80b", b""), (b"a", b"b", b"")])
    @example([(b"a", b"\xcc\x81", b"b"), (b"a", b"", b"b")])
    def test_no_text_forges_a_border(self, rows):
        found, invalid = tokens_of(*zip(*rows, strict=True))
        apart = [tuple(tuple(token_strings(text.decode("utf-8", "surrogateescape"))) for text in row) for row in rows]
        for tokens, columns in zip(found, apart, strict=True):
            assert len(tokens) == (sum(map(len, columns)) + 2 if any(columns) else 0)
        assert (found[0] == found[1]) == (apart[0] == apart[1])
        assert invalid == sum(
            "\udc80" <= c <= "\udcff" for row in rows for t in row for c in t.decode("utf-8", "surrogateescape")
        )

    def test_a_border_is_shown_as_a_line_break(self, tmp_path):
        words = "one two three four five six seven eight nine ten"
        table = pa.table({"title": ["who wrote it", "who wrote it alpha"], "body": [f"alpha {words}", words]})
        run = nd.dedup(table, text_columns=["title", "body"], threshold=0.3)
        found = run.explain(1)
        assert "".join(text for op, text in found.words if op in ("equal", "removed")) == f"who wrote it\nalpha {words}"
        assert any("divided between columns" in note for note in found.notes)
        documents = nd.open_documents(table, text_columns=["title", "body"])
        assert documents.texts([1]) == {1: f"who wrote it alpha\n{words}"}


@settings(max_examples=fewer(200), deadline=None)
@given(TEXTS)
def test_strings_keep_every_byte_and_all_tokens(text):
    string = raw_text.to_string(text)
    assert raw_text.to_bytes(string) == text
    assert string == decoded(text)
    words = words_of(string, RECIPE)
    assert len(words.starts) == len(words.tokens) + 1
    assert words.tokens.tolist() == count_tokens(utf8([text]), RECIPE, "cpu")[0].values.tolist()
    raw_text.to_readable(string).encode()


@settings(max_examples=fewer(100), deadline=None)
@given(TEXTS, TEXTS, st.booleans())
def test_differences_are_readable(first, second, full):
    words, notes = diff.differences(raw_text.to_string(first), raw_text.to_string(second), RECIPE, full=full)
    json.dumps([words, notes], ensure_ascii=False).encode()
    tokens = [token_strings(decoded(text)) for text in (first, second)]
    if all(tokens):
        assert (words == []) == (tokens[0] == tokens[1])
