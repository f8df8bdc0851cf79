"""Reference sets that are read in their own way, and several of them, each named in the result."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import Reading, Recipe, Reference, Shingles, Workers, dedup
from neardup_gpu.cli.process import main
from neardup_gpu.documents.references import named_reference
from neardup_gpu.errors import InputError, ParameterError
from neardup_gpu.report_page import of_folder
from neardup_gpu.results.explanation import explain

PLAYS = ["to be or not to be that is the question", "all the world is a stage and all of us players"]
NEWS = ["rain is expected in the north on monday morning", "the market fell by two percent on friday"]
INPUT = pa.table(
    {
        "id": list("abcdef"),
        "text": [PLAYS[1], NEWS[0], "a text of its own about nothing", PLAYS[0] + "!", NEWS[0], "another text alone"],
    }
)


def oracle(rows: list[dict[str, Any]], sets: dict[str, list[str]]) -> list[str | None]:
    """Return, for each document, the set that has a text of the same words."""
    words = {name: [text.rstrip("!").split() for text in texts] for name, texts in sets.items()}
    return [next((n for n, some in words.items() if row["text"].rstrip("!").split() in some), None) for row in rows]


def two_sets() -> list[Reference]:
    news = pa.table({"key": [7, 8], "body": NEWS})
    return [
        Reference(source={"text": PLAYS}, name="plays", reading=Reading(text_columns="text")),
        Reference(source=news, name="news", reading=Reading(text_columns="body", id_column="key")),
    ]


EXPECTED = oracle(INPUT.to_pylist(), {"plays": PLAYS, "news": NEWS})


@pytest.mark.parametrize("method", ["exact", "containment", "minhash", "identical"])
def test_the_result_names_the_set(method: str) -> None:
    found = dedup(INPUT, id_column="id", against=two_sets(), method=method)
    expected = [None if method == "identical" and row == 3 else name for row, name in enumerate(EXPECTED)]
    assert found.documents["reference"].to_pylist() == expected
    ids = found.documents["near_reference"].to_pylist()
    assert ids == [{0: "1", 1: "7", 3: "0", 4: "7"}.get(row) if name else None for row, name in enumerate(expected)]
    assert found.report["against"]["sets"].keys() == {"plays", "news"}
    named = {(row["id_b"], row["reference"]) for row in found.pairs.to_pylist() if row["a_in_reference"]}
    assert named == {(id, name) for id, name in zip("abcdef", expected, strict=True) if name}


@pytest.mark.parametrize("keep", ["first", "longest", "id:desc"])
@pytest.mark.parametrize("unit", ["document", "line"])
def test_tasks_name_the_same_sets(unit: str, keep: str, tmp_path: Path) -> None:
    pq.write_table(INPUT.slice(0, 3), tmp_path / "a.parquet")
    pq.write_table(INPUT.slice(3), tmp_path / "b.parquet")
    given: dict[str, Any] = {"id_column": "id", "recipe": Recipe(unit=unit, keep=keep)}
    source = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    here = dedup(source, against=two_sets(), **given)
    workers = Workers(work_dir=tmp_path / "work", number=1, partitions=3, slice_bytes=50)
    tasks = dedup(source, against=two_sets(), output=tmp_path / "out", workers=workers, **given)
    assert here.documents["reference"].to_pylist() == EXPECTED
    assert tasks.documents.to_pylist() == here.documents.to_pylist()
    assert tasks.pairs.to_pylist() == here.pairs.to_pylist()
    if unit == "line":
        assert tasks.units is not None and here.units is not None
        assert tasks.units.to_pylist() == here.units.to_pylist()
    assert not (tmp_path / "work").exists()


def test_ids_of_sets_may_be_equal_and_of_several_types() -> None:
    sets = [Reference(source={"text": PLAYS}, name="one"), Reference(source={"text": NEWS}, name="two")]
    found = dedup(
        INPUT,
        id_column="id",
        against=[Reference(source=each.source, name=each.name, reading=Reading()) for each in sets],
    )
    assert found.documents["near_reference"].to_pylist() == ["1", "0", None, "0", "0", None]
    texts = pa.table({"text": NEWS, "id": ["x", "x"]})
    with pytest.raises(InputError, match="reference set two"):
        dedup(
            INPUT,
            id_column="id",
            against=[sets[0].__class__(source=PLAYS_TABLE, name="one"), Reference(source=texts, name="two")],
        )


@pytest.mark.parametrize(
    ("first", "second", "is_fit"),
    [
        (pa.array([1], pa.int32()), pa.array([2], pa.int64()), True),
        (pa.array([1], pa.int64()), pa.array([2**63], pa.uint64()), True),
        (pa.array([-1], pa.int64()), pa.array([2**63], pa.uint64()), False),
        (pa.array(["a"]), pa.array(["b"], pa.large_string()), True),
        (pa.array([1]), pa.array(["b"]), True),
        (pa.array([b"a"]), pa.array(["b"]), False),
    ],
)
def test_ids_of_sets_get_one_type(first: pa.Array, second: pa.Array, is_fit: bool) -> None:
    reading, sets = Reading(id_column="id"), []
    for name, ids, text in (("one", first, PLAYS[0]), ("two", second, NEWS[0])):
        sets.append(Reference(source=pa.table({"id": ids, "text": [text]}), name=name, reading=reading))
    if not is_fit:
        with pytest.raises(InputError, match=f"ids of the reference sets are {first.type} and {second.type}; make"):
            dedup(INPUT, id_column="id", against=sets)
        return
    found = dedup(INPUT, id_column="id", against=sets).removed["duplicate_of"].to_pylist()
    assert set(found) == set(map(str, [*first.to_pylist(), *second.to_pylist()]))


def test_ids_of_sets_are_bytes_of_any_size() -> None:
    sets = []
    for name, kind, text in (("one", pa.binary(), PLAYS[0]), ("two", pa.large_binary(), NEWS[0])):
        ids = pa.array([name.encode()], kind)
        sets.append(Reference(source=pa.table({"id": ids, "text": [text]}), name=name))
    table = INPUT.set_column(0, "id", INPUT["id"].cast(pa.binary()))
    found = dedup(table, id_column="id", against=sets).removed["duplicate_of"].to_pylist()
    assert set(found) == {b"one", b"two"}


PLAYS_TABLE = pa.table({"id": ["p", "q"], "text": PLAYS})


def test_one_reference_is_read_in_its_own_way() -> None:
    pages = {"page": [f"<p>{PLAYS[0]}</p><script>x</script>", "<b>no</b>"]}
    known = Reference(source=pages, reading=Reading(text_columns="page", html=True))
    found = dedup(INPUT, id_column="id", against=known)
    assert found.documents["in_reference"].to_pylist() == [False, False, False, True, False, False]
    assert "reference" not in found.documents.column_names
    named = dedup(INPUT, id_column="id", against=Reference(source=pages, name="pages", reading=known.reading))
    assert named.documents["reference"].to_pylist() == [None, None, None, "pages", None, None]


@pytest.mark.parametrize("against", [{"text": NEWS}, pa.array(NEWS), [{"text": text} for text in NEWS]])
def test_texts_are_a_reference_set(against: Any) -> None:
    found = dedup(INPUT, against=against, text_columns="text")
    assert found.documents["near_reference"].to_pylist() == [None, 0, None, None, 0, None]


def test_names_are_those_of_files_or_numbers(tmp_path: Path) -> None:
    pq.write_table(PLAYS_TABLE, tmp_path / "plays.v2.parquet")
    sets = [Reference(source=tmp_path / "plays.v2.parquet"), Reference(source=PLAYS_TABLE.slice(0, 0))]
    found = dedup(INPUT, id_column="id", against=sets)
    assert list(found.report["against"]["sets"]) == ["plays", "2"]
    assert found.documents["reference"].to_pylist() == ["plays", None, None, "plays", None, None]
    with pytest.raises(ParameterError, match="two reference sets are called x"):
        dedup(INPUT, against=[Reference(source=PLAYS_TABLE, name="x"), Reference(source=PLAYS_TABLE, name="x")])
    with pytest.raises(ParameterError, match="make each set a Reference"):
        dedup(INPUT, against=[Reference(source=PLAYS_TABLE), "plays.parquet"])


def test_explain_and_pages_read_the_right_set(tmp_path: Path) -> None:
    pq.write_table(INPUT, tmp_path / "in.parquet")
    pq.write_table(PLAYS_TABLE, tmp_path / "plays.parquet")
    pq.write_table(pa.table({"id": ["p", "q"], "text": NEWS}), tmp_path / "news.parquet")
    sets = [Reference(source=tmp_path / f"{name}.parquet") for name in ("plays", "news")]
    recipe = Recipe(shingles=Shingles(2), threshold=0.5)
    found = dedup(tmp_path / "in.parquet", id_column="id", against=sets, recipe=recipe, output=tmp_path / "out")
    for id in "abde":
        assert found.explain(id).resemblance == 1.0
        assert explain(tmp_path / "out", id).resemblance == 1.0
    assert main(["explain", str(tmp_path / "out"), "b"]) == 0
    page = of_folder(tmp_path / "out")
    assert all(f"explain {tmp_path}" in page.html or text.split()[0] in page.html for text in (PLAYS[0], NEWS[0]))


def test_the_command_line_names_sets_and_columns(tmp_path: Path, capsys: Any) -> None:
    pq.write_table(INPUT, tmp_path / "in.parquet")
    for name, texts in (("plays", PLAYS), ("news", NEWS)):
        pq.write_table(pa.table({"key": [f"{name}{i}" for i in range(2)], "body": texts}), tmp_path / f"{name}.parquet")
    words = ["dedup", str(tmp_path / "in.parquet"), "--id-column", "id", "--output", str(tmp_path / "out")]
    sets = ["--against", f"stage={tmp_path}/plays.parquet", "--against", f"{tmp_path}/news.parquet"]
    columns = ["--against-text-column", "body", "--against-id-column", "key"]
    assert main([*words, *sets, *columns]) == 0
    found = pq.read_table(tmp_path / "out/documents.parquet")
    assert found["reference"].to_pylist() == [name and {"plays": "stage"}.get(name, name) for name in EXPECTED]
    assert found["near_reference"].to_pylist() == ["plays1", "news0", None, "plays0", "news0", None]
    pages = pa.table({"page": [f"<p>{text}</p>" for text in PLAYS]})
    pq.write_table(pages, tmp_path / "pages.parquet")
    html = ["--against", f"{tmp_path}/pages.parquet", "--against-text-column", "page", "--overwrite"]
    for word in ([], ["tree"]):
        assert main([*words, *html, "--against-html", *word, "--against-id-column", "page"]) == 0
        assert pq.read_table(tmp_path / "out/documents.parquet")["in_reference"].to_pylist()[:4] == [
            True,
            False,
            False,
            True,
        ]
    capsys.readouterr()
    assert main([*words, "--overwrite", "--against-id-column", "key"]) == 2
    assert "give --against as well" in capsys.readouterr().err
    assert main([*words, *sets[2:], "--against-text-column", "body", "--overwrite"]) == 2
    said = capsys.readouterr().err
    assert "news.parquet: no column 'id'; it has key, body. " in said
    assert "name its column with --against-id-column of dedup" in said


def test_a_path_with_an_equals_sign_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lang=de").mkdir()
    monkeypatch.chdir(tmp_path)
    pq.write_table(PLAYS_TABLE, "lang=de/plays.parquet")
    for word in ("lang=de/plays.parquet", "lang=de/*.parquet", "lang=de"):
        assert (named_reference(word).name, named_reference(word).source) == (None, word)
    assert named_reference("new=lang=de/plays.parquet").name == "new"
    with pytest.raises(InputError, match="no column 'typo'"):
        dedup(INPUT, id_column="id", against=Reference(source={"text": PLAYS}, reading=Reading(text_columns="typo")))
