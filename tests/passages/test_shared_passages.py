"""`passages`: shared passages against quadratic definitions, theorem 7, and what is told of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import fewer
from hypothesis import example, given, settings, strategies as st
from spelled import KINDS, spelled

import neardup_gpu as nd
from neardup_gpu.documents.columns import SEAMS
from neardup_gpu.engine.large_arrays import LEAST
from neardup_gpu.errors import InputError, ParameterError
from neardup_gpu.repeated_passages.corpus import TokenCorpus
from neardup_gpu.shared_passages import search
from neardup_gpu.shared_passages.finding import find as find_in_layout
from neardup_gpu.shared_passages.layout import lay_out
from neardup_gpu.shared_passages.page import MAPPED, _map
from neardup_gpu.shared_passages.settings import PassageSettings

Texts = Sequence[Sequence[str]]
TEXTS = st.lists(st.lists(st.sampled_from("ab"), max_size=20), min_size=1, max_size=4)
WIDER = st.lists(st.lists(st.sampled_from("abc"), max_size=25), min_size=1, max_size=5)
LENGTHS = st.integers(2, 6)
Run = tuple[int, int, int, int, int]


def maximal_runs(texts: Texts, length: int, sources: dict[int, list[int]]) -> Iterator[Run]:
    """Yield all maximal common runs of each document and each of its sources by quadratic matching.

    A run is a document, a source, the first token in either, and the number of tokens.
    """
    for d, its in sources.items():
        for s in its:
            own, other = texts[d], texts[s]
            for i in range(len(own)):
                for j in range(len(other)):
                    if own[i] != other[j] or (i and j and own[i - 1] == other[j - 1]):
                        continue
                    n = 0
                    while i + n < len(own) and j + n < len(other) and own[i + n] == other[j + n]:
                        n += 1
                    if n >= length:
                        yield d, s, i, j, n


def listed_runs(texts: Texts, length: int, sources: dict[int, list[int]], most: int) -> set[Run]:
    """Return the runs of theorem 7: those of which not all windows stand at more than `most` places."""
    places: dict[tuple[str, ...], int] = {}
    for text in texts:
        for i in range(len(text) - length + 1):
            window = tuple(text[i : i + length])
            places[window] = places.get(window, 0) + 1
    return {
        (d, s, i, j, n)
        for d, s, i, j, n in maximal_runs(texts, length, sources)
        if any(places[tuple(texts[d][i + t : i + t + length])] <= most for t in range(n - length + 1))
    }


def before(texts: Texts) -> dict[int, list[int]]:
    """Return the sources of each document where the first of two is the source."""
    return {d: list(range(d)) for d in range(len(texts))}


def as_table(texts: Texts, **columns: Any) -> pa.Table:
    return pa.table({"text": [" ".join(text) for text in texts], **columns})


def runs_of(found: Any) -> set[Run]:
    """Return the passages of a search with gap 0 that have one run; runs that touch in both documents do not exist."""
    names = ("id", "source_id", "begin_token", "source_begin_token", "tokens")
    return {tuple(row[name] for name in names) for row in found.passages.to_pylist()}


def corpus_of(texts: Texts) -> TokenCorpus:
    values = np.array([ord(letter) for text in texts for letter in text], np.uint64)
    tokens = nd.stages.Ragged(values, np.cumsum([0, *map(len, texts)]))
    none = nd.stages.Ragged(np.empty(0, np.int64), np.zeros(len(texts) + 1, np.int64))
    return TokenCorpus(tokens, np.empty(0, np.int64), none, pa.array(range(len(texts))), {}, {}, None, [], {})


@settings(max_examples=fewer(60), deadline=None)
@example(texts=["aaaa", "aaaaa"], length=2, most=3)
@given(texts=TEXTS, length=LENGTHS, most=st.integers(2, 8))
def test_theorem_7(texts: Texts, length: int, most: int) -> None:
    """Every maximal common run whose seeds are not all common is found, and no other, for all k and w."""
    wanted = listed_runs(texts, length, before(texts), most)
    how = PassageSettings(length=length, ignore_common=most, gap=0, max_partners=100)
    for k in range(1, length + 1):
        found = find_in_layout(lay_out([corpus_of(texts)], how, None, "cpu"), how, "cpu", k)
        assert found.counts["runs"] == len(wanted)
        covered = {(d, i + t) for d, _, i, _, n in wanted for t in range(n)}
        assert found.coverage.taken.tolist() == [sum(d == own for d, _ in covered) for own in range(len(texts))]
        given_away = {(s, j + t) for _, s, _, j, n in wanted for t in range(n)}
        assert found.coverage.given.tolist() == [sum(s == own for s, _ in given_away) for own in range(len(texts))]
        pairs = {(d, s) for d, s, *_ in wanted}
        assert found.coverage.sources.tolist() == [sum(d == own for d, _ in pairs) for own in range(len(texts))]
        assert found.coverage.takers.tolist() == [sum(s == own for _, s in pairs) for own in range(len(texts))]
        assert found.counts["pairs"] == len(pairs)


@settings(max_examples=fewer(60), deadline=None)
@given(texts=WIDER, length=LENGTHS, kind=st.sampled_from(KINDS))
def test_the_runs_of_texts_are_those_of_quadratic_matching(texts: Texts, length: int, kind: Any) -> None:
    """By gap 0, runs that overlap or touch in one document may be joined; all others are passages of their own."""
    options: dict[str, Any] = {"length": length, "gap": 0, "max_partners": 100, "tokens": kind}
    found = nd.passages(spelled(texts, kind), engine="cpu", **options)
    runs, passages = listed_runs(texts, length, before(texts), 1000), runs_of(found)
    single = {row for row in passages if row in runs}
    assert {(d, s) for d, s, *_ in passages} == {(d, s) for d, s, *_ in runs}
    for d, s, i, j, n in runs - single:  # it is a part of a passage
        inside = [p for p in passages if p[:2] == (d, s) and p[2] <= i + n and i + n <= p[2] + p[4] + n]
        assert inside, (d, s, i, j, n)
    for row in found.passages.to_pylist():
        assert row["tokens_equal"] >= row["longest_run"] >= length
        assert texts[row["id"]][row["begin_token"]] == texts[row["source_id"]][row["source_begin_token"]]


@settings(max_examples=fewer(40), deadline=None)
@given(first=TEXTS, second=TEXTS, length=LENGTHS)
def test_two_inputs(first: Texts, second: Texts, length: int) -> None:
    """Documents of one input are compared with those of the other one only."""
    how = PassageSettings(length=length, gap=0, max_partners=100)
    corpora = [corpus_of(second), corpus_of(first)]
    found = find_in_layout(lay_out(corpora, how, None, "cpu"), how, "cpu")
    number = len(second)
    sources = {number + d: list(range(number)) for d in range(len(first))}
    wanted = listed_runs([*second, *first], length, sources, 1000)
    assert found.counts["runs"] == len(wanted)
    by_command = nd.passages(as_table(first), as_table(second), length=length, gap=0, max_partners=100, engine="cpu")
    assert by_command.counts["runs"] == len(wanted)
    assert sum(by_command.documents["tokens_taken"].to_pylist()) == len(
        {(d, i + t) for d, _, i, _, n in wanted for t in range(n)}
    )
    assert sum(by_command.sources["tokens_given"].to_pylist()) == len(
        {(s, j + t) for _, s, _, j, n in wanted for t in range(n)}
    )


PASSAGE = "when in the course of human events it becomes necessary for one people"
EDITED = "when in the course of human affairs it then becomes necessary for one people"


def test_passages_that_do_not_fit_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["a b c d e f g h", "a b c d x y e f g h"]
    assert find(texts, length=4, memory=LEAST).passages.num_rows == 1
    monkeypatch.setattr(search, "PASSAGE_BYTES", LEAST)
    with pytest.raises(ParameterError, match="not enough for 1 passage; give at least"):
        find(texts, length=4, memory=LEAST)


def find(texts: Sequence[Any], **options: Any) -> Any:
    return nd.passages({"text": texts}, engine="cpu", **options)


def test_places_and_the_words_that_differ() -> None:
    """Bytes, tokens, shares and changes of a passage of two runs, and of a change on one side only."""
    texts = [f"First: {PASSAGE}.", f"Éh, {EDITED.upper()}! And so on, at length."]
    (row,) = find(texts, length=5, gap=3).passages.to_pylist()
    own, source = texts[1].encode(), texts[0].encode()
    assert own[row["begin"] : row["end"]].decode() == EDITED.upper()
    assert source[row["source_begin"] : row["source_end"]].decode() == PASSAGE
    assert (row["begin_token"], row["tokens"], row["source_begin_token"], row["source_tokens"]) == (1, 14, 1, 13)
    assert (row["tokens_equal"], row["longest_run"], row["earlier"]) == (11, 6, None)
    assert (row["share"], row["source_share"]) == (11 / 20, 11 / 14)
    words = [(change["words"], change["source_words"]) for change in row["changes"]]
    assert words == [("AFFAIRS IT THEN", "events it")]
    for change in row["changes"]:
        assert own[change["begin"] : change["end"]].decode() == change["words"]
        assert source[change["source_begin"] : change["source_end"]].decode() == change["source_words"]


@pytest.mark.parametrize(("gap", "passages"), [(0, 2), (2, 2), (3, 1)])
def test_runs_beyond_the_gap_are_passages_of_their_own(gap: int, passages: int) -> None:
    assert find([PASSAGE, EDITED], length=5, gap=gap).counts["passages"] == passages


def test_an_insertion_is_a_change_with_words_on_one_side() -> None:
    """Tokens that both runs have are left out of the second one: "b b" beside "b"."""
    found = find(["a b c d e f g h", "a b c d x y e f g h", "a b c d d e f g h"], length=4, gap=2, max_partners=1)
    changes = [row["changes"] for row in found.passages.to_pylist() if row["source_id"] == 0]
    words = [[(change["words"], change["source_words"]) for change in each] for each in changes]
    assert words == [[("x y", "")], [("d", "")]]
    assert changes[0][0]["source_begin"] == changes[0][0]["source_end"] == 7


@pytest.mark.parametrize(
    ("dates", "expected"),
    [
        ([3, 1, 2], {(0, 1): "source", (0, 2): "source", (2, 1): "source"}),
        ([1, 1, None], {(1, 0): "same", (2, 0): None, (2, 1): None}),
        ([2.0, float("nan"), 1.0], {(0, 2): "source", (1, 0): None, (1, 2): None}),
        (
            [date(2020, 2, 1), date(2020, 1, 31), date(2020, 1, 31)],
            {(0, 1): "source", (0, 2): "source", (2, 1): "same"},
        ),
        (["2020-02", "2020-01", "2020-03"], {(0, 1): "source", (2, 0): "source", (2, 1): "source"}),
    ],
)
def test_the_earlier_document_is_the_source(dates: list[Any], expected: dict[Any, Any]) -> None:
    found = nd.passages({"text": [PASSAGE] * 3, "day": dates}, length=5, date="day", text_columns="text", engine="cpu")
    rows = found.passages.to_pylist()
    assert {(row["id"], row["source_id"]): row["earlier"] for row in rows} == expected


def test_dates_of_two_inputs() -> None:
    """The second input has the sources, whatever the dates; `earlier` says which is."""
    first = {"text": [PASSAGE] * 3, "day": [1, 2, None]}
    second = {"text": [PASSAGE], "day": [2]}
    found = nd.passages(first, second, length=5, date="day", text_columns="text", engine="cpu")
    assert found.passages["earlier"].to_pylist() == ["document", "same", None]
    with pytest.raises(InputError, match="date day: the column holds int64 and string"):
        nd.passages(first, {"text": [PASSAGE], "day": ["2"]}, length=5, date="day", text_columns="text")


def test_dates_that_are_categories() -> None:
    """Ordered categories have their order; a dictionary without one, and text of another type, the order of text."""
    names, order = ["autumn", "winter", None, "spring"], ["winter", "spring", "autumn"]
    codes = pa.array([order.index(name) if name else None for name in names], pa.int8())

    def earlier(column: Any, other: Any = None) -> dict[Any, Any]:
        days = [column] if other is None else [column, other]
        tables = [pa.table({"text": [PASSAGE] * len(each), "day": each}) for each in days]
        found = nd.passages(*tables, length=5, date="day", text_columns="text", engine="cpu").passages.to_pylist()
        return {(row["id"], row["source_id"]): row["earlier"] for row in found if row["earlier"]}

    ordered, plain = (pa.DictionaryArray.from_arrays(codes, pa.array(order), ordered=each) for each in (True, False))
    assert earlier(ordered) == dict.fromkeys([(0, 1), (0, 3), (3, 1)], "source")
    assert earlier(plain) == earlier(pa.array(names)) == dict.fromkeys([(1, 0), (1, 3), (3, 0)], "source")
    spring = {(0, 0): "source", (1, 0): "document", (3, 0): "same"}
    assert earlier(ordered, pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(["spring"]), ordered=True)) == spring
    assert earlier(ordered, pa.array(["spring"])) == spring
    by_text = {(0, 0): "document", (1, 0): "source", (3, 0): "same"}
    assert earlier(plain, pa.array(["spring"], pa.large_string())) == by_text
    with pytest.raises(InputError, match="column 'day' has its categories in different orders"):
        earlier(ordered, pa.DictionaryArray.from_arrays(pa.array([0]), pa.array(order[::-1]), ordered=True))
    with pytest.raises(InputError, match=r"column 'day' holds list.*date needs strings"):
        earlier(pa.array([[1], [2]]))


def test_max_partners_bounds_the_list_and_not_the_coverage() -> None:
    """The best sources are those that share the most tokens; the first of several."""
    words = PASSAGE.split()
    texts = [" ".join(words[:7]), " ".join(words[3:12]), " ".join(words[:9]), PASSAGE]
    found = find(texts, length=4, max_partners=2)
    assert [row["source_id"] for row in found.passages.to_pylist() if row["id"] == 3] == [2, 1]
    last = found.documents.to_pylist()[3]
    assert (last["tokens_taken"], last["sources"], last["source_id"]) == (12, 3, 1)
    assert (found.counts["pairs"], found.counts["pairs_listed"]) == (6, 5)


def test_common_runs_are_counted_and_still_part_of_passages() -> None:
    stock = "all rights are reserved"
    texts = [f"{stock} a b c {n}" for n in range(5)] + ["a b c"]
    found = find(texts, length=3, ignore_common=4)
    assert found.counts["passages"] == 0 and found.counts["tokens_common"] == 5 * 7 + 3
    texts = [f"{stock} x y z {n}" if n < 2 else f"{stock} {n}" for n in range(5)]
    found = find(texts, length=3, ignore_common=4)
    assert runs_of(found) == {(1, 0, 0, 0, 7)}
    assert found.counts["tokens_common"] == 5 * 4
    assert find(texts, length=3, ignore_common=0.9).counts["most_places"] == 4


@settings(max_examples=fewer(40), deadline=None)
@given(texts=WIDER, length=LENGTHS, values=st.lists(st.sampled_from(["x", "y", None]), min_size=5, max_size=5))
def test_within_is_the_union_of_a_run_per_value(texts: Texts, length: int, values: list[str | None]) -> None:
    values = values[: len(texts)]
    table = as_table(texts, host=pa.array(values, pa.string()))
    found = nd.passages(table, length=length, within="host", engine="cpu")
    expected = set()
    for wanted in "xy":
        rows = [i for i, value in enumerate(values) if value == wanted]
        part = nd.passages(as_table([texts[i] for i in rows]), length=length, engine="cpu") if rows else None
        expected |= {(rows[d], rows[s], *rest) for d, s, *rest in (runs_of(part) if part else ())}
    assert runs_of(found) == expected


def test_null_equals_nothing_in_two_inputs() -> None:
    table = {"text": [PASSAGE, PASSAGE], "host": ["a", None]}
    found = nd.passages(table, table, length=5, within="host", text_columns="text", engine="cpu")
    assert runs_of(found) == {(0, 0, 0, 0, 13)}


@settings(max_examples=fewer(40), deadline=None)
@given(texts=WIDER, length=LENGTHS, values=st.lists(st.sampled_from(["x", "y", None]), min_size=5, max_size=5))
def test_which_value_feeds_which(texts: Texts, length: int, values: list[str | None]) -> None:
    """The table of `by` has, for each two values, the tokens that documents of one share with any of the other."""
    values = values[: len(texts)]
    table = as_table(texts, host=pa.array(values, pa.string()))
    found = nd.passages(table, length=length, max_partners=1, writing=nd.Writing(by="host"), engine="cpu")
    expected: dict[Any, set[tuple[int, int]]] = {}
    for d, s, i, _, n in maximal_runs(texts, length, before(texts)):
        expected.setdefault((values[d], values[s]), set()).update((d, i + t) for t in range(n))
    pairs = {(row["value"], row["source_value"]): row["tokens"] for row in found.report["by"]["pairs"]}
    assert pairs == {pair: len(tokens) for pair, tokens in expected.items()}
    taken = sum(row["tokens_taken"] for row in found.report["by"]["values"])
    assert taken == sum(found.documents["tokens_taken"].to_pylist()) == found.counts["tokens_taken"]


def test_batches_threads_and_backends_change_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    base = random.integers(0, 30, 3000)
    texts = [" ".join(f"w{word}" for word in base[at : at + 200]) for at in random.integers(0, 2800, 40)]
    usual = find(texts, length=20)
    assert usual.counts["passages"] > 20
    for engine in (
        nd.Engine(backend="cpu", threads=1),
        nd.Engine(threads=2, batch_bytes=2000),
        nd.Engine(backend="reference"),
    ):
        other = nd.passages({"text": texts}, length=20, engine=engine)
        assert other.passages.equals(usual.passages) and other.documents.equals(usual.documents)
    monkeypatch.setattr("neardup_gpu.shared_passages.finding.AT_ONCE", 10)  # a few documents at a time
    other = find(texts, length=20)
    assert other.passages.equals(usual.passages) and other.documents.equals(usual.documents)


def test_no_run_crosses_a_seam() -> None:
    table = {"text": [PASSAGE, PASSAGE], SEAMS: ["", str(PASSAGE.index("human"))]}
    found = nd.passages(table, length=3, text_columns="text", gap=0, engine="cpu")
    (row,) = found.passages.to_pylist()  # two runs that touch
    assert (row["tokens"], row["longest_run"]) == (13, 8)
    assert nd.passages(table, length=9, text_columns="text", engine="cpu").counts["passages"] == 0


def test_the_map_shows_the_largest_flows() -> None:
    """Many small flows from the same sources do not hide a large one."""
    small = [{"value": f"v{i}", "source_value": f"s{j}", "tokens": 10} for i in range(20) for j in range(MAPPED)]
    by = {"column": "site", "pairs": [*small, {"value": "x", "source_value": "y", "tokens": 50}]}
    assert "x from y: 50 tokens" in "".join(_map(by))


def test_pairs_of_large_ids_are_shown(tmp_path: Path) -> None:
    table = pa.table({"id": pa.array([2**64 - 1, 2**63], pa.uint64()), "text": [PASSAGE, f"so {PASSAGE}"]})
    nd.passages(table, id_column="id", length=5, output=tmp_path / "out")
    assert f"source: {2**64 - 1}" in (tmp_path / "out/passages.html").read_text()


def test_html_and_joined_columns(tmp_path: Path) -> None:
    """Bytes are those of the text that a reader sees."""
    rows = [{"title": "A", "html": f"<p>{PASSAGE}<b>!</b>"}, {"title": "B", "html": f"<i>so</i> {PASSAGE}"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    reading = nd.Reading(html=True, text_columns=("title", "html"))
    found = nd.passages(tmp_path / "in.jsonl", reading=reading, length=8, engine="cpu", output=tmp_path / "out")
    (row,) = found.passages.to_pylist()
    texts = [
        bytes(text)
        for batch in nd.open_documents(tmp_path / "in.jsonl", reading=reading).batches()
        for text in (batch.text[0], batch.text[1])
    ]
    assert texts[1][row["begin"] : row["end"]].decode() == PASSAGE
    assert texts[0][row["source_begin"] : row["source_end"]].decode() == PASSAGE
    assert PASSAGE in (tmp_path / "out/passages.html").read_text()


HARD: dict[str, tuple[list[Any], int]] = {
    "constant": (["a " * 500, "a " * 300], 1),
    "period below the length": (["a b c " * 200, "b c a " * 100], 1),
    "equal documents": (["one two three four five six seven " * 3] * 200, 0),
    "no words": (["", "...", "\0"], 0),
    "shorter than the length": (["one two", "one two"], 0),
    "NUL and invalid UTF-8": ([b"a\0b c d e f g h \xff\xfe i j k", b"x a\0b c d e f g h \xff\xfe i j k"], 1),
    "Han": (["漢字仮名交じり文章漢字仮名交じり文章", "前漢字仮名交じり文章"], 1),
    "Thai and Arabic marks": (["ไทยที่กำลังเขียน العَرَبِيَّة", "x ไทยที่กำลังเขียน العَرَبِيَّة"], 1),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_cases(name: str, tmp_path: Path) -> None:
    texts, least = HARD[name]
    raw = [text if isinstance(text, bytes) else text.encode() for text in texts]
    table = pa.table({"text": pa.array(raw, pa.large_binary())})
    most = 150 if name == "equal documents" else 2000
    found = nd.passages(table, length=7, ignore_common=most, output=tmp_path / "out", engine="cpu")
    assert found.counts["passages"] >= least
    assert (found.counts["windows_common"] > 0) == (name == "equal documents")
    for row in found.passages.to_pylist():
        own, source = raw[row["id"]][row["begin"] : row["end"]], raw[row["source_id"]]
        own_tokens = nd.stages.tokenize(nd.stages.utf8([own]), nd.Recipe()).values.tolist()
        source = source[row["source_begin"] : row["source_end"]]
        assert len(own_tokens) == row["tokens"]
        if row["tokens"] == row["tokens_equal"] == row["source_tokens"]:
            assert own_tokens == nd.stages.tokenize(nd.stages.utf8([source]), nd.Recipe()).values.tolist()
    assert pq.read_table(tmp_path / "out/passages.parquet").equals(found.passages)


def test_files_and_the_report(tmp_path: Path) -> None:
    table = {"id": ["a", "b"], "text": [PASSAGE, EDITED], "site": ["x", "<y>"]}
    found = nd.passages(
        table, length=4, output=tmp_path / "out", writing=nd.Writing(by="site"), id_column="id", text_columns="text"
    )
    names = ["documents.parquet", "passages.html", "passages.json", "passages.parquet"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    report = json.loads((tmp_path / "out/passages.json").read_text())
    assert report["counts"] == found.counts and report["kind"] == "passages"
    page = (tmp_path / "out/passages.html").read_text()
    for link in ("p0-0a", "p0-0b"):
        assert f'id="{link}"' in page and f'href="#{link}"' in page
    assert "&lt;y&gt; from x: 11 tokens" in page and "<y>" not in page
    assert "human <ins>affairs it then</ins> becomes" in page and "human <del>events it</del> becomes" in page
    nd.passages(table, table, length=4, output=tmp_path / "two", id_column="id", text_columns="text", engine="cpu")
    assert pq.read_table(tmp_path / "two/sources.parquet")["tokens_given"].to_pylist() == [13, 14]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"length": 1}, "length must be"),
        ({"gap": -1}, "gap must be"),
        ({"ignore_common": 1}, "ignore_common must be"),
        ({"max_partners": 0}, "max_partners must be"),
        ({"tokens": "sounds"}, "tokens 'sounds'"),
        ({"date": "day"}, "day"),
        ({"within": "host"}, "host"),
        ({"lenght": 3}, "lenght: passages takes no such keyword; it takes tokens, length"),
        ({"writing": nd.Writing(by="site")}, "site"),
        ({"writing": nd.Writing(by="file")}, "by 'file': documents in memory have no files"),
    ],
)
def test_mistakes(options: dict[str, Any], says: str) -> None:
    with pytest.raises((ParameterError, InputError, TypeError), match=says):
        find(["a b"], **options)


def test_a_stream_cannot_be_read_twice() -> None:
    batches = pa.RecordBatchReader.from_batches(pa.schema({"text": pa.string()}), [])
    with pytest.raises(InputError, match="is a stream"):
        nd.passages(batches)


def test_notebooks_show_sentences() -> None:
    texts = {"text": ["to be or not to be <that> is", "or not to be: that is"]}
    for found in (nd.passages(texts, length=4), nd.substrings(texts, length=4, action="list")):
        shown = found._repr_html_()
        assert shown.count("<p>") == shown.count("</p>") >= 2 and "4 tokens or more" in shown
