"""`substrings`: repeated passages against quadratic definitions, theorems 1 to 5, and what becomes of the texts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import fewer, some
from hypothesis import example, given, settings, strategies as st
from spelled import KINDS, spelled

import neardup_gpu as nd
from neardup_gpu.documents.columns import SEAMS
from neardup_gpu.documents.edits import Cuts
from neardup_gpu.documents.seams import new_seams, seams_of
from neardup_gpu.engine import large_arrays
from neardup_gpu.engine.large_arrays import LEAST, MappedArrays
from neardup_gpu.errors import InputError, ParameterError
from neardup_gpu.kernels import repeats
from neardup_gpu.kernels._cpu import large_arrays_by
from neardup_gpu.repeated_passages import substrings as module

Texts = list[list[str]]
TEXTS = st.lists(st.lists(st.sampled_from("ab"), max_size=24), min_size=1, max_size=4)
LENGTHS = st.integers(2, 6)
PARTS = ["a", "bé", "漢", "字", "ไ", "½", "x", " ", ". ", "\u200b", "。", "-", "\n", "\u0301", "ab cd ab cd ab cd "]
ODD = st.lists(st.lists(st.sampled_from(PARTS), max_size=40).map("".join), min_size=1, max_size=4)
"""Texts of several scripts, of which some have no spaces, with tokens that share a code point."""


def windows(texts: Texts, length: int) -> Iterator[tuple[int, int]]:
    """Yield the document and the first token of each window, in order."""
    for d, text in enumerate(texts):
        for i in range(len(text) - length + 1):
            yield d, i


def defined(texts: Texts, length: int, copies: int = 1, known: int = 0) -> tuple[set[tuple[int, int]], dict[Any, Any]]:
    """Return the tokens that are covered, and the sources of removed windows, by the quadratic definition.

    A window is removed exactly if `copies` equal windows that end at or before its beginning have lost no token. The
    first `known` texts are a reference set: nothing is removed there.
    """

    def tokens(window: tuple[int, int]) -> list[tuple[int, int]]:
        return [(window[0], window[1] + k) for k in range(length)]

    def spelled(window: tuple[int, int]) -> list[str]:
        return texts[window[0]][window[1] : window[1] + length]

    every = list(windows(texts, length))
    covered = {
        token for one in every if any(spelled(one) == spelled(o) for o in every if o != one) for token in tokens(one)
    }
    lost: set[tuple[int, int]] = set()
    sources: dict[Any, Any] = {}
    for one in every:
        if one[0] < known:
            continue
        before = [
            o for o in every if o < one and (o[0] < one[0] or o[1] + length <= one[1]) and spelled(o) == spelled(one)
        ]
        whole = [o for o in before if lost.isdisjoint(tokens(o))]
        if len(whole) >= copies:
            sources[one] = whole[0]
            lost.update(tokens(one))
    return covered, sources


def find(texts: Sequence[str], **options: Any) -> Any:
    return nd.substrings({"text": texts}, engine="cpu", **options)


def removed_tokens(found: Any) -> set[tuple[int, int]]:
    rows = found.spans.to_pylist()
    return {(row["id"], row["begin_token"] + k) for row in rows for k in range(row["tokens"])}


def tokens_of(text: str | bytes) -> list[int]:
    """Return the tokens of a text."""
    return nd.stages.tokenize(nd.stages.utf8([text]), nd.Recipe()).values.tolist()


@settings(max_examples=fewer(60), deadline=None)
@given(texts=TEXTS, length=LENGTHS, copies=st.integers(1, 2), kind=st.sampled_from(KINDS))
def test_the_rule_is_the_quadratic_definition(texts: Texts, length: int, copies: int, kind: str) -> None:
    """Which tokens are covered and removed, and from which window each passage comes."""
    options: dict[str, Any] = {"length": length, "keep_copies": copies, "tokens": kind, "action": "list"}
    found = nd.substrings(spelled(texts, kind), engine="cpu", **options)
    covered, sources = defined(texts, length, copies)
    assert found.counts["tokens_covered"] == len(covered)
    assert removed_tokens(found) == {(d, i + k) for d, i in sources for k in range(length)}
    listed = {}
    for row in found.spans.to_pylist():
        first = row["source_begin"] // (1 if kind == "ids" else 2)
        for k in range(row["tokens"] - length + 1):
            listed[row["id"], row["begin_token"] + k] = row["source_id"], first + k
    assert listed == sources


@settings(max_examples=fewer(30), deadline=None)
@example(texts=[["ab", "a"], ["b", "ab", "a", "b"], ["ab", "a", "b"]], length=3)
@given(texts=st.lists(st.lists(st.sampled_from(["a", "b", "ab"]), max_size=9), min_size=1, max_size=3), length=LENGTHS)
def test_letters_are_cut_word_by_word(texts: Texts, length: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Of each passage of letters, the whole words are removed; other words, and spaces between them, are left."""
    letters = [list(" ".join(text)) for text in texts]
    number = [np.cumsum([letter == " " for letter in each]).tolist() for each in letters]  # the word of each letter
    passages: list[list[int]] = []  # document, first and last letter, and those of the source
    for (d, i), (e, j) in sorted(defined(letters, length)[1].items()):
        if passages and passages[-1][0] == d and passages[-1][2:] == [i + length - 1, e, j + length - 1]:
            passages[-1][2:] = [i + length, e, j + length]
        else:
            passages.append([d, i, i + length, e, j + length])
    gone = set()
    for d, first, last, *_ in passages:
        inside = range(first, last)
        for word in set(number[d]):
            own = [i for i, each in enumerate(number[d]) if each == word and letters[d][i] != " "]
            gone |= {(d, word)} if own and all(i in inside for i in own) else set()
    raw = [(" ".join(text)).encode() for text in texts]
    found, kept, _ = cut_out(raw, tmp_path_factory.mktemp("letters") / "out", tokens="letters", length=length)
    left = [" ".join(word for i, word in enumerate(text) if (d, i) not in gone) for d, text in enumerate(texts)]
    assert {d: kept.get(d, b"").decode().strip() for d in range(len(texts))} == dict(enumerate(left))
    assert found.counts["tokens_left"] == sum(map(len, left))


def test_integers_are_cut_out_of_lists(tmp_path: Path) -> None:
    """Places count integers; a second run reads them as seams and removes nothing."""
    rows = [[1, 2, 3, 4, 5, 6], [9, 2, 3, 4, 5, 7, 1, 2, 3], [], None, [2, 3, 4, 5]]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"input_ids": row, "n": 0}) + "\n" for row in rows))
    found = nd.substrings(tmp_path / "in.jsonl", tokens="ids", length=3, output=tmp_path / "one", engine="cpu")
    kept = [json.loads(line) for line in (tmp_path / "one/kept/in.jsonl").read_text().splitlines()]
    assert [row["input_ids"] for row in kept] == [[1, 2, 3, 4, 5, 6], [9, 7], [], None]
    assert [row[SEAMS] for row in kept] == ["", "1 2", "", ""]
    assert found.spans.select(["begin", "end", "source_begin"]).to_pylist() == [
        {"begin": 1, "end": 5, "source_begin": 1},
        {"begin": 6, "end": 9, "source_begin": 0},
        {"begin": 0, "end": 4, "source_begin": 1},
    ]
    assert "2 3 4 5" in (tmp_path / "one/substrings.html").read_text()
    options: dict[str, Any] = {"tokens": "ids", "engine": "cpu", "action": "list"}
    assert nd.substrings(tmp_path / "one/kept", length=3, **options).counts["passages"] == 0
    across = pa.table({"input_ids": [[1, 2, 3, 4], [1, 2, 3, 4]], SEAMS: ["2", ""]})
    assert nd.substrings(across, length=3, **options).counts["passages"] == 0
    assert nd.substrings(across, length=2, **options).counts["passages"] == 2
    fixed = across.set_column(0, "input_ids", across["input_ids"].cast(pa.list_(pa.int64(), 4)))
    with pytest.raises(InputError, match="column 'input_ids' holds lists of one length"):
        nd.substrings(fixed, tokens="ids", output=tmp_path / "fixed")


def test_chunks_of_files(tmp_path: Path) -> None:
    """Files that share bytes are found and marked; nothing is cut out of them."""
    data = np.random.default_rng(3).bytes(6000)
    (tmp_path / "in").mkdir()
    (tmp_path / "in/a.bin").write_bytes(data)
    (tmp_path / "in/b.bin").write_bytes(b"other bytes" + data[1500:] + b"the end")
    found = nd.substrings(tmp_path / "in", tokens="chunks", action="mark", output=tmp_path / "out", engine="cpu")
    (span,) = found.spans.to_pylist()
    shift = 1500 - len(b"other bytes")
    assert (span["id"], span["source_id"], span["source_begin"]) == ("b.bin", "a.bin", span["begin"] + shift)
    assert span["end"] - span["begin"] > 3500
    assert pq.read_table(tmp_path / "out/kept")["text"].to_pylist()[0] == data
    assert nd.passages(tmp_path / "in", tokens="chunks", engine="cpu").passages["begin"].to_pylist() == [span["begin"]]
    with pytest.raises(ParameterError, match="action 'cut' and tokens 'chunks'"):
        nd.substrings(tmp_path / "in", tokens="chunks")


@settings(max_examples=fewer(60), deadline=None)
@given(texts=TEXTS, known=TEXTS, length=LENGTHS)
def test_a_reference_set_is_left_untouched(texts: Texts, known: Texts, length: int) -> None:
    """Passages of the input that occur in it are removed, and those that occur twice in the input alone."""
    own, theirs = ([" ".join(text) for text in each] for each in (texts, known))
    found = find(own, length=length, against={"text": theirs}, action="list")
    covered, sources = defined(known + texts, length, known=len(known))
    assert found.counts["tokens_covered"] == sum(document >= len(known) for document, _ in covered)
    assert removed_tokens(found) == {(d - len(known), i + k) for d, i in sources for k in range(length)}
    listed = {}
    for row in found.spans.to_pylist():
        document = row["source_id"] + (0 if row["source_in_reference"] else len(known))
        for k in range(row["tokens"] - length + 1):
            listed[row["id"] + len(known), row["begin_token"] + k] = document, row["source_begin"] // 2 + k
    assert listed == sources


@settings(max_examples=fewer(60), deadline=None)
@given(texts=TEXTS, length=LENGTHS, data=st.data())
def test_theorem_1(texts: Texts, length: int, data: st.DataObject) -> None:
    """Equal windows choose the same relative place, of the least hash, the rightmost one of several."""
    w = data.draw(st.integers(1, length))
    order = data.draw(st.permutations(range(4)))
    k, chosen = length - w + 1, {}
    for d, i in windows(texts, length):
        hashes = [order[hash(tuple(texts[d][j : j + k])) % 4] for j in range(i, i + w)]
        place = max(j for j in range(w) if hashes[j] == min(hashes))
        assert chosen.setdefault(tuple(texts[d][i : i + length]), place) == place


def ragged(texts: Texts) -> tuple[np.ndarray, np.ndarray]:
    values = [ord(letter) for text in texts for letter in text]
    return np.array(values, np.uint64), np.cumsum([0, *map(len, texts)])


@settings(max_examples=fewer(60), deadline=None)
@given(texts=TEXTS, length=LENGTHS, at_once=st.sampled_from([1, 3, 1 << 17]))
def test_theorem_2_and_theorem_4(texts: Texts, length: int, at_once: int) -> None:
    """Classes of two or more are the repeated windows, for every k, however often hashes clash, and in any parts."""
    tokens, offsets = ragged(texts)
    seen: dict[tuple[str, ...], list[int]] = {}
    for d, i in windows(texts, length):
        seen.setdefault(tuple(texts[d][i : i + length]), []).append(int(offsets[d]) + i)
    repeated = sorted(i for places in seen.values() if len(places) > 1 for i in places)
    firsts = {i: places[0] for places in seen.values() for i in places}
    classes = sorted({firsts[i] for i in repeated})
    expected = [(i, classes.index(firsts[i])) for i in repeated]
    for factor in (repeats.FACTOR, 0, 1):  # 0: a hash of the last token alone; 1: of the tokens in any order
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(repeats, "FACTOR", factor)
            patch.setattr(repeats, "SEEDS_AT_ONCE", at_once)
            patch.setattr(repeats, "RUNS_AT_ONCE", at_once)
            for k in range(1, length + 1):
                found = repeats.windows_of(repeats.cpu(tokens, offsets, length, k))
                assert list(zip(*(array.tolist() for array in found), strict=True)) == expected


def check_theorem_3(texts: Sequence[bytes], found: Any, kept: dict[Any, bytes], lost: dict[Any, np.ndarray]) -> None:
    """Each removed passage stands verbatim and whole in kept text, at the place that its row names."""
    for row in found.spans.to_pylist():
        passage = tokens_of(texts[row["id"]][row["begin"] : row["end"]])
        assert len(passage) == row["tokens"]
        source, begin = row["source_id"], row["source_begin"]
        rest = texts[source][begin:]
        assert tokens_of(rest)[: len(passage)] == passage
        placed = nd.stages.place_tokens(nd.stages.utf8([rest]), nd.Recipe(), "cpu")
        end = begin + int(placed.ends[len(passage) - 1])
        assert not lost[source][begin:end].any(), "a source has lost a byte"
        assert texts[source][begin:end] in kept[source]


def cut_out(
    texts: Sequence[bytes], folder: Path, **options: Any
) -> tuple[Any, dict[Any, bytes], dict[Any, np.ndarray]]:
    """Write kept/; return the result, the kept texts, and the bytes of each text in removed passages."""
    table = pa.table({"text": pa.array(texts, pa.large_binary()), "id": range(len(texts))})
    found = nd.substrings(table, id_column="id", output=folder, engine="cpu", **options)
    (file,) = (folder / "kept").iterdir()
    kept = {row["id"]: row["text"] for row in pq.read_table(file).to_pylist()}
    lost = {number: np.zeros(len(text), bool) for number, text in enumerate(texts)}
    for row in found.spans.to_pylist():
        lost[row["id"]][row["begin"] : row["end"]] = True
    return found, kept, lost


@settings(max_examples=fewer(40), deadline=None)
@example(texts=["\u00bd\u6f22\u00bd"], length=2)  # the last two tokens share the last code point
@example(texts=["漢字漢字.", "x漢字漢字a"], length=4)  # without the passage, x and a would be one word
@given(texts=ODD, length=st.integers(2, 5))
def test_theorem_3_and_theorem_5(texts: list[str], length: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sources stay whole, words stay words, and a second run removes nothing."""
    folder = tmp_path_factory.mktemp("cut")
    raw = [text.encode() for text in texts]
    found, kept, lost = cut_out(raw, folder / "one", length=length)
    check_theorem_3(raw, found, kept, lost)
    gone = removed_tokens(found)
    for number, text in enumerate(raw):
        left = [token for i, token in enumerate(tokens_of(text)) if (number, i) not in gone]
        assert tokens_of(kept.get(number, b"")) == left, "a cut has joined or divided words"
    again = nd.substrings(folder / "one" / "kept", length=length, id_column="id", engine="cpu", output=folder / "two")
    assert again.counts["passages"] == 0
    first, second = (next((folder / name / "kept").iterdir()).read_bytes() for name in ("one", "two"))
    assert pq.read_table(pa.BufferReader(first)).equals(pq.read_table(pa.BufferReader(second)))


DIVIDED = st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4).map(" ".join)


@settings(max_examples=fewer(60), deadline=None)
@given(texts=st.lists(st.lists(DIVIDED, max_size=8), min_size=1, max_size=3), length=LENGTHS, cut=st.booleans())
def test_whole_lines_and_sentences(
    texts: Texts, length: int, cut: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of each passage, its whole parts are removed: those that lie in it. They stand whole in kept text."""
    part, begin, end = ("line", "- ", "\n") if cut else ("sentence", "(", ")! ")
    raw = [end.join(f"{begin}{each}" for each in text).encode() for text in texts]
    usual = find(raw, length=length, action="list")
    found, kept, lost = cut_out(raw, tmp_path_factory.mktemp("parts") / "out", length=length, cut=part)
    check_theorem_3(raw, found, kept, lost)
    owner = [[number for number, each in enumerate(text) for _ in each.split()] for text in texts]
    expected, gone = [], set()
    for row in usual.spans.to_pylist():
        inside = range(row["begin_token"], row["begin_token"] + row["tokens"])
        parts = owner[row["id"]]
        whole = [i for i in inside if all(j in inside for j, other in enumerate(parts) if other == parts[i])]
        gone |= {(row["id"], parts[i]) for i in whole}
        if whole:
            expected.append((row["id"], whole[0], len(whole), row["source_id"]))
    names = ("id", "begin_token", "tokens", "source_id")
    assert [tuple(row[name] for name in names) for row in found.spans.to_pylist()] == expected
    if part == "line":
        left = [[f"- {each}" for i, each in enumerate(text) if (d, i) not in gone] for d, text in enumerate(texts)]
        cut_texts = {d: "\n".join(lines).encode() for d, lines in enumerate(left) if lines}
        assert {d: text.strip(b"\n") for d, text in kept.items() if tokens_of(text)} == cut_texts


CORPORA = ("bills_116_small", "django_docs", "edinburgh_2500", "manpages", "winps_docs")


@pytest.mark.parametrize("name", some(CORPORA, CORPORA[1::3]))
def test_theorem_3_and_theorem_5_on_corpora(corpora: Path, name: str, tmp_path: Path) -> None:
    """Documents of a corpus lose what a dictionary of all windows says, from whole sources; a second run nothing."""
    with pq.ParquetFile(corpora / f"{name}.parquet") as file:
        texts = next(file.iter_batches(120, columns=["text"]))["text"].cast(pa.large_binary()).to_pylist()
    found, kept, lost = cut_out(texts, tmp_path / "one", length=50)
    check_theorem_3(texts, found, kept, lost)
    seen: dict[bytes, list[int]] = {}
    expected, start = [], 0
    gone = np.zeros(sum(len(tokens_of(text)) for text in texts), bool)
    for number, text in enumerate(texts):
        tokens = np.array(tokens_of(text), np.uint64)
        for i in range(len(tokens) - 49):
            before = seen.setdefault(tokens[i : i + 50].tobytes(), [])
            if any(place + 50 <= start + i and not gone[place : place + 50].any() for place in before):
                gone[start + i : start + i + 50] = True
            before.append(start + i)
        expected += [(number, i) for i in np.flatnonzero(gone[start : start + len(tokens)]).tolist()]
        start += len(tokens)
    assert removed_tokens(found) == set(expected)
    again = nd.substrings(tmp_path / "one" / "kept", length=50, id_column="id", engine="cpu")
    assert again.counts["tokens"] == found.counts["tokens_left"] and again.counts["passages"] == 0


def test_theorem_4() -> None:
    """Batches, threads and backends change no result."""
    random = np.random.default_rng(4)
    base = random.integers(0, 30, 3000)
    texts = [" ".join(f"w{word}" for word in base[at : at + 200]) for at in random.integers(0, 2800, 40)]
    usual = find(texts, length=20, action="list")
    assert usual.counts["passages"] > 20
    for engine in (
        nd.Engine(backend="cpu", threads=1),
        nd.Engine(threads=2, batch_bytes=2000),
        nd.Engine(backend="reference"),
    ):
        other = nd.substrings({"text": texts}, length=20, action="list", engine=engine)
        assert other.spans.equals(usual.spans) and other.documents.equals(usual.documents)


@settings(max_examples=fewer(40), deadline=None)
@given(texts=TEXTS, length=LENGTHS, values=st.lists(st.sampled_from(["x", "y", None]), min_size=4, max_size=4))
def test_within_is_the_union_of_a_run_per_value(texts: Texts, length: int, values: list[str | None]) -> None:
    joined = [" ".join(text) for text in texts]
    values = values[: len(texts)]
    table = pa.table({"text": joined, "host": pa.array(values, pa.string())})
    found = nd.substrings(table, length=length, within="host", action="list", engine="cpu")
    expected = set()
    for group in [[i] for i, value in enumerate(values) if value is None] + [
        [i for i, value in enumerate(values) if value == wanted] for wanted in "xy"
    ]:
        if group:
            part = find([joined[i] for i in group], length=length, action="list")
            expected |= {(group[d], i) for d, i in removed_tokens(part)}
    assert removed_tokens(found) == expected


@settings(max_examples=fewer(40), deadline=None)
@given(texts=TEXTS, length=LENGTHS, least=st.sampled_from([2, 3, 0.5, 0.9]))
def test_templates(texts: Texts, length: int, least: float) -> None:
    """`in_documents` counts only passages of so many documents; without a source, all of them are removed."""
    found = find([" ".join(text) for text in texts], length=length, in_documents=least, keep="none", action="list")
    having: dict[tuple[str, ...], set[int]] = {}
    for d, i in windows(texts, length):
        having.setdefault(tuple(texts[d][i : i + length]), set()).add(d)
    number = max(2, least if least >= 1 else least * len(texts))
    expected = {
        (d, i + k)
        for d, i in windows(texts, length)
        if len(having[tuple(texts[d][i : i + length])]) >= number
        for k in range(length)
    }
    assert removed_tokens(found) == expected
    assert set(found.spans["reason"].to_pylist()) <= {"template"} and found.spans["source_id"].null_count == len(
        found.spans
    )
    assert found.counts["templates"] == found.counts["passages"]


def test_a_share_of_documents_within_groups_is_that_of_the_group() -> None:
    """Three of four documents of one host have the template, and three of twelve of the other one."""
    hosts = ["x"] * 4 + ["y"] * 12
    having = [0, 1, 2, 4, 5, 6]
    rows = [f"{'one two three four' if row in having else 'none'} own{row}" for row in range(16)]
    for share, cut in ((0.75, {0, 1, 2}), (0.25, {0, 1, 2, 4, 5, 6}), (0.76, set())):
        how: dict[str, Any] = {"length": 4, "in_documents": share, "keep": "none", "action": "list"}
        found = nd.substrings({"text": rows, "host": hosts}, within="host", engine="cpu", **how)
        assert {document for document, _ in removed_tokens(found)} == cut


@pytest.mark.parametrize(
    ("keep", "cut"),
    [("first", {1, 2}), ("longest", {0, 2}), ("date", {0, 1}), ("date:desc", {1, 2}), ("none", {0, 1, 2})],
)
def test_who_keeps_a_passage(keep: str, cut: set[int]) -> None:
    """The best document by the rule keeps a passage; nulls come last."""
    passage = "one two three four five six"
    table = pa.table({"text": [f"a {passage}", f"b c d {passage}", f"e {passage}"], "date": [9, 5, 3]})
    found = nd.substrings(table, length=6, keep=keep, action="list", engine="cpu")
    assert set(found.spans["id"].to_pylist()) == cut
    assert all(
        (reason == "repeated") == (keep == "none") or reason is None for reason in found.spans["reason"].to_pylist()
    )


PASSAGE = "When in the course of human events it becomes necessary"


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    """A file of JSON lines, three of whose texts have a passage in common."""
    texts = [f"First, {PASSAGE}; and on.", "Nothing here.", f"x {PASSAGE.upper()}. y", PASSAGE]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"id": f"d{i}", "body": text, "n": i}) + "\n" for i, text in enumerate(texts)))
    return path


def test_kept_rows_and_a_second_run(lines: Path, tmp_path: Path) -> None:
    """Rows keep their columns, a document without words left is dropped, and seams are read by the next run."""
    options: dict[str, Any] = {"id_column": "id", "length": 8, "engine": "cpu"}
    found = nd.substrings(lines, output=tmp_path / "one", text_columns="body", **options)
    kept = [json.loads(line) for line in (tmp_path / "one/kept/in.jsonl").read_text().splitlines()]
    assert [row["body"] for row in kept] == [f"First, {PASSAGE}; and on.", "Nothing here.", "x. y"]
    assert [row[SEAMS] for row in kept] == ["", "", "1"] and [row["n"] for row in kept] == [0, 1, 2]
    assert found.documents.to_pylist()[3] == {"id": "d3", "kept": False, "words": 10, "words_left": 0}
    assert (found.counts["emptied"], found.counts["dropped"], found.counts["kept"]) == (1, 1, 3)
    again = nd.substrings(tmp_path / "one/kept", output=tmp_path / "two", **options)  # which finds its column of text
    assert again.counts["passages"] == 0
    assert (tmp_path / "two/kept/in.jsonl").read_bytes() == (tmp_path / "one/kept/in.jsonl").read_bytes()


def test_text_across_a_seam_is_no_passage() -> None:
    """A window never crosses the place at which an earlier run cut text."""
    table = pa.table({"text": ["a b c d e", "a b c d e", "x y"], SEAMS: ["3", "", None]})
    assert nd.substrings(table, length=3, action="list", engine="cpu").spans.to_pylist()[0]["begin_token"] == 2
    assert nd.substrings(table, length=4, action="list", engine="cpu").counts["passages"] == 0


@settings(max_examples=fewer(80), deadline=None)
@given(data=st.data())
def test_new_seams(data: st.DataObject) -> None:
    """Seams move with the text before them; those inside a cut fall together with it."""
    cuts, seams, expected = [], [], []
    for _ in range(data.draw(st.integers(1, 3))):
        places = sorted(data.draw(st.sets(st.integers(0, 20), max_size=6)))
        own = list(zip(places[::2], places[1::2], strict=False))
        old = sorted(data.draw(st.sets(st.integers(0, 20), max_size=4)))
        left = [i for i in range(30) if not any(begin <= i < end for begin, end in own)]
        expected.append(sorted({sum(i < place for i in left) for place in [*old, *(begin for begin, _ in own)]}))
        cuts.append(own)
        seams.append(old)
    flat = np.array([span for own in cuts for span in own], np.int64).reshape(-1, 2)
    given_cuts = Cuts(np.cumsum([0, *map(len, cuts)]), flat[:, 0], flat[:, 1])
    found = new_seams(given_cuts, nd.stages.Ragged.from_rows(seams, np.int64))
    assert [found[i].tolist() for i in range(len(found))] == expected


def test_seams_are_text() -> None:
    found = seams_of(pa.array(["3 17", "", None, "0", f"{10**17}"]), np.array([20, 0, 0, 9, 9]))
    assert found.values.tolist() == [3, 17, 0, 9] and found.sizes.tolist() == [2, 0, 0, 1, 1]
    assert len(seams_of(pa.array([], pa.string()), np.empty(0, np.int64))) == 0
    assert seams_of(pa.array([3, None]), np.array([9, 9])).values.tolist() == [3]  # as CSV has them
    for wrong in (["3", "zigzag"], ["3 "], ["-1"], [1.5], [[3]], [{"a": 3}], [b"\xff"], [True]):
        with pytest.raises(InputError, match=r"^column 'seams': holds something else [^\n]*$"):
            seams_of(pa.array(wrong), np.full(len(wrong), 9))


@pytest.mark.parametrize("batch_bytes", [1, None])
def test_no_passage_crosses_a_seam_of_a_later_batch(batch_bytes: int | None) -> None:
    table = {"text": [" ".join(map(str, range(40))), PASSAGE, PASSAGE], "seams": ["", "", str(len(PASSAGE) // 2)]}
    engine = nd.Engine(backend="cpu", batch_bytes=batch_bytes)
    found = nd.substrings(table, text_columns="text", length=8, action="list", engine=engine)
    assert (found.counts["passages"], found.counts["tokens_covered"]) == (0, 0)
    del table["seams"]
    assert nd.substrings(table, text_columns="text", length=8, action="list", engine=engine).counts["passages"] == 1


def test_marks(lines: Path, tmp_path: Path) -> None:
    """Marked texts stay as they are; the column has the bytes of the passages that would be removed."""
    nd.substrings(lines, output=tmp_path / "out", text_columns="body", length=8, action="mark", engine="cpu")
    rows = [json.loads(line) for line in (tmp_path / "out/kept/in.jsonl").read_text().splitlines()]
    assert [row["repeated"] for row in rows] == [[], [], [{"begin": 2, "end": 57}], [{"begin": 0, "end": 55}]]
    assert rows[2]["body"].startswith("x WHEN IN")


def test_lines_of_json_keep_their_bytes(tmp_path: Path) -> None:
    """Seams and marks become members at the end of a line; all else that is not cut stays as it stands."""
    before = [b'{ "n": 2.0, "text": "%s", "k": 12345678901234567890123}' % PASSAGE.encode()]
    before += [b'{"text":"caf\xe9 %s.", "o" : [ ], "n": 1e3 }' % PASSAGE.encode(), b'{"text": "\\u00e9 \xff"}']
    (tmp_path / "in.jsonl").write_bytes(b"\r\n".join(before))
    nd.substrings(tmp_path / "in.jsonl", length=8, output=tmp_path / "cut", engine="cpu")
    assert (tmp_path / "cut/kept/in.jsonl").read_bytes().split(b"\r\n") == [
        before[0][:-1] + b',"seams":""}',
        b'{"text":"caf\xe9 ", "o" : [ ], "n": 1e3,"seams":"5" }',
        before[2][:-1] + b',"seams":""}\n',
    ]
    again = nd.substrings(tmp_path / "cut/kept", length=8, output=tmp_path / "again", engine="cpu")
    assert again.counts["passages"] == 0
    assert (tmp_path / "again/kept/in.jsonl").read_bytes() == (tmp_path / "cut/kept/in.jsonl").read_bytes()
    nd.substrings(tmp_path / "in.jsonl", length=8, action="mark", output=tmp_path / "marked", engine="cpu")
    assert (tmp_path / "marked/kept/in.jsonl").read_bytes().split(b"\r\n") == [
        before[0][:-1] + b',"repeated":[]}',
        before[1][:-2] + b',"repeated":[{"begin":5,"end":60}] }',
        before[2][:-1] + b',"repeated":[]}\n',
    ]


def test_marks_of_an_earlier_run_move_with_the_text(tmp_path: Path) -> None:
    """Cuts of a later run move them; what nothing is left of has no mark."""
    texts = [PASSAGE, f"{PASSAGE} a b c d", "x a b c d y", "so a b c d"]
    nd.substrings({"text": texts}, length=3, action="mark", output=tmp_path / "marked", engine="cpu")
    for name, kind in (("rows", "parquet"), ("lines", "jsonl")):
        out, writing = tmp_path / name, nd.Writing(output_format=kind)  # type: ignore[arg-type]
        nd.substrings(tmp_path / "marked/kept", length=8, output=out, writing=writing, engine="cpu")
        (path,) = (out / "kept").iterdir()
        lines = path.read_text().splitlines() if kind == "jsonl" else []
        rows = [json.loads(line) for line in lines] if kind == "jsonl" else pq.read_table(path).to_pylist()
        spans = [[row["text"][mark["begin"] : mark["end"]] for mark in row["repeated"]] for row in rows]
        assert [row["text"] for row in rows] == [PASSAGE, " a b c d", *texts[2:]]
        assert spans == [[], [], ["a b c d"], ["a b c d"]]
    second = nd.substrings(tmp_path / "lines/kept", length=4, keep="none", output=tmp_path / "two", engine="cpu")
    assert second.counts["passages"] == 3
    rows = [json.loads(line) for line in next((tmp_path / "two/kept").iterdir()).read_text().splitlines()]
    assert [(row["text"], row["repeated"]) for row in rows] == [(PASSAGE, []), ("x y", []), ("so ", [])]


def test_files_that_are_not_utf8_are_cut(tmp_path: Path) -> None:
    """Their texts become bytes in kept/, by tasks as well, and are read again."""
    (tmp_path / "in").mkdir()
    for name, text in (("a", b"one two three \xff four"), ("b", b"one two three \xfe"), ("c", "\u00e9".encode())):
        (tmp_path / f"in/{name}.txt").write_bytes(text)
    nd.substrings(tmp_path / "in", length=3, output=tmp_path / "out", engine="cpu")
    kept = pq.read_table(tmp_path / "out/kept")
    assert kept["text"].to_pylist() == [b"one two three \xff four", b" \xfe", "\u00e9".encode()]
    assert nd.substrings(tmp_path / "out/kept", length=3, engine="cpu").counts["invalid_utf8"] == 2
    workers = nd.Workers(work_dir=str(tmp_path / "work"), number=1, slice_bytes=150)
    nd.substrings(tmp_path / "in", length=3, output=tmp_path / "tasks", engine="cpu", workers=workers)
    assert len(list((tmp_path / "tasks/kept").iterdir())) > 1
    assert pq.read_table(tmp_path / "tasks/kept").equals(kept)


def test_drop_below(lines: Path) -> None:
    """A document with fewer words left is dropped; one that is a source is not."""
    found = nd.substrings(lines, text_columns="body", length=8, drop_below=50, action="list", engine="cpu")
    assert found.documents["kept"].to_pylist() == [True, True, False, False]
    assert found.counts["tokens_left"] == 15
    one, two = "a b c d e f g h", "i j k l m n o p"
    found = find([one, f"{one} {two}", two], length=8, drop_below=50, action="list")  # the second keeps the last one
    assert found.documents["kept"].to_pylist() == [True, True, False] and found.counts["short_sources"] == 1


def test_html_and_joined_columns(tmp_path: Path) -> None:
    """Cuts refer to the extracted text, which becomes a column; markup is not edited."""
    rows = [{"title": "A", "html": f"<p>{PASSAGE}<b>!</b>"}, {"title": "B", "html": f"<i>so</i> {PASSAGE}"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reading = nd.Reading(html=True, text_columns=("title", "html"))
    nd.substrings(tmp_path / "in.jsonl", reading=reading, length=8, output=tmp_path / "out", engine="cpu")
    kept = [json.loads(line) for line in (tmp_path / "out/kept/in.jsonl").read_text().splitlines()]
    assert [row["html"] for row in kept] == [row["html"] for row in rows]
    assert PASSAGE in kept[0]["extracted_text"] and "course" not in kept[1]["extracted_text"]
    with pytest.raises(InputError, match="belongs to text that was cut"):
        nd.substrings(tmp_path / "out/kept", reading=reading, length=8, action="list")


HARD = {
    "constant": ["a " * 500, "a " * 300],
    "period below the length": ["a b c " * 200, "b c a " * 100],
    "equal documents": ["one two three four five six seven " * 3] * 200,
    "no words": ["", "...", "\0"],
    "shorter than the length": ["one two", "one two"],
    "NUL and invalid UTF-8": [b"a\0b c d e f g h \xff\xfe i j k", b"x a\0b c d e f g h \xff\xfe i j k"],
    "two tokens of the last code point": ["½", "½"],
    "Han": ["漢字仮名交じり文章漢字仮名交じり文章" * 4, "前漢字仮名交じり文章"],
}


@pytest.mark.parametrize("name", HARD)
def test_hard_cases(name: str, tmp_path: Path) -> None:
    raw = [text if isinstance(text, bytes) else text.encode() for text in HARD[name]]
    found, kept, lost = cut_out(raw, tmp_path / "one", length=7)
    check_theorem_3(raw, found, kept, lost)
    again = nd.substrings(tmp_path / "one/kept", id_column="id", length=7, action="list", engine="cpu")
    assert again.counts["passages"] == 0
    expected = {"constant": 7, "period below the length": 9, "equal documents": 7}  # tokens left
    assert found.counts["tokens_left"] == expected.get(name, found.counts["tokens_left"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"length": 1}, "length must be"),
        ({"in_documents": 1}, "in_documents must be"),
        ({"keep": "none", "keep_copies": 2}, "keep none and keep_copies"),
        ({"action": "drop"}, "action"),
        ({"keep": "date"}, "date"),
        ({"within": "host"}, "host"),
    ],
)
def test_mistakes(options: dict[str, Any], says: str) -> None:
    with pytest.raises((ParameterError, InputError), match=says):
        find(["a b"], **options)


def test_a_bound_of_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search is refused if no search takes as little memory, and only then."""
    with pytest.raises(ParameterError, match="of memory is not enough for a search; give at least 434MB"):
        find(["a b c d"] * 3, length=3, memory=LEAST - 1)
    assert find(["a b c d"] * 3, length=3, memory=LEAST).counts["windows"] == 6
    monkeypatch.setattr(module, "STRETCH_BYTES", LEAST)
    with pytest.raises(ParameterError, match="not enough for 3 runs of words that repeat; give at least"):
        find(["a b c d"] * 3, length=3, memory=LEAST)


@pytest.mark.parametrize("options", [{}, {"keep": "longest"}, {"keep_copies": 2}, {"in_documents": 3, "keep": "none"}])
def test_arrays_in_files_change_no_result(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(6)
    base = random.integers(0, 30, 3000)
    texts = [" ".join(f"w{word}" for word in base[at : at + 200]) for at in random.integers(0, 2800, 40)]
    usual = find(texts, length=20, **options)
    monkeypatch.setattr(large_arrays, "SMALL", 0)
    made: list[int] = []
    arrays = MappedArrays(0, tmp_path)
    mapped = arrays._mapped
    monkeypatch.setattr(arrays, "_mapped", lambda size: made.append(size) or mapped(size))
    with large_arrays_by(arrays):
        found = find(texts, length=20, **options)
    assert found.spans.equals(usual.spans) and found.documents.equals(usual.documents)
    # tokens as they come and joined, three of seeds, first windows, places and marks, and the sources of windows
    assert len(made) > 8 and max(made) >= 8 * found.counts["tokens"]
    assert found.counts["passages"] > 20 and not list(tmp_path.iterdir())


def test_a_stream_cannot_be_read_twice() -> None:
    batches = pa.RecordBatchReader.from_batches(pa.schema({"text": pa.string()}), [])
    with pytest.raises(InputError, match="is a stream"):
        nd.substrings(batches)


@pytest.mark.parametrize("action", ["cut", "mark"])
def test_text_files_become_rows_with_new_columns(tmp_path: Path, action: Any) -> None:
    (tmp_path / "in").mkdir()
    for name, text in (("a", "one two three"), ("b", "one two three four")):
        (tmp_path / f"in/{name}.txt").write_text(text)
    nd.substrings(tmp_path / "in", length=3, output=tmp_path / "out", action=action)
    assert pq.read_table(tmp_path / "out/kept").to_pylist()[1] == (
        {"path": "b.txt", "text": " four", "seams": "0"}
        if action == "cut"
        else {"path": "b.txt", "text": "one two three four", "repeated": [{"begin": 0, "end": 13}]}
    )
