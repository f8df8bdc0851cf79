"""A result in parts is a result: explained, described, read as input, left out of folders, and replaced."""

import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from in_parts import in_tasks

from neardup_gpu import MinHash, Recipe, Writing, dedup, open_documents
from neardup_gpu.cli import main
from neardup_gpu.documents.find import find_files
from neardup_gpu.errors import DamagedError, InputError, OutputError
from neardup_gpu.jobs import info
from neardup_gpu.results.explanation import MEMBERS, explain
from neardup_gpu.store.artefacts import DOCUMENTS, PAIRS, part_name, parts_of, read_report

WORDS = [f"word{i}" for i in range(40)]


def text(number, end=""):
    """A text that is near another one exactly if the number is the same."""
    return " ".join([f"{word}-{number}" for word in WORDS] + [end])


TEXTS = [text(i % 9, end=f"end{i}") for i in range(36)] + [text(0)] * (MEMBERS + 5) + [text(i) for i in range(20, 25)]
IDS = [f"d{i}" for i in range(len(TEXTS))]
TABLE = pa.table({"id": IDS, "text": TEXTS})
KNOWN = pa.table({"id": ["known"], "text": [text(3)]})
OPTIONS = {"id_column": "id", "against": KNOWN}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The same result in memory's form and in parts: one folder around both, and their input."""
    home = tmp_path_factory.mktemp("results")
    (home / "in").mkdir()
    for name, rows in (("a", TABLE[:30]), ("b", TABLE[30:])):
        pq.write_table(rows, home / "in" / f"{name}.parquet", row_group_size=12)
    flat(dedup, home / "in", output=home / "memory", **OPTIONS)
    in_tasks(home / "parts", home / "in", **OPTIONS)
    return home


def test_parts(made):
    report = read_report(made / "parts")
    assert {path.name for path in (made / "parts").iterdir()} == {DOCUMENTS, PAIRS, "kept", "report.json"}
    paths = parts_of(made / "parts", report["files"], DOCUMENTS)
    assert [path.name for path in paths] == [f"part-{i:05}.parquet" for i in range(report["tasks"]["slices"] - 1)]
    assert len(paths) > 2


def test_parts_are_in_the_order_of_their_numbers(tmp_path):
    numbers = [0, 7, 99_999, 100_000, 1_000_000]
    files = [part_name(PAIRS, number) for number in numbers]
    found = parts_of(tmp_path, [*sorted(files), "kept/pairs/part-00001.parquet", part_name(DOCUMENTS, 3)], PAIRS)
    assert found == [tmp_path / name for name in files]
    assert parts_of(tmp_path, ["report.json"], PAIRS) == [tmp_path / "pairs.parquet"]


@pytest.mark.parametrize("id", ["d0", "d1", "d3", "d12", "d35", "d40", "d60", "d65"])
def test_explanations(id, made):
    here, there = (explain(made / name, id, against=KNOWN) for name in ("memory", "parts"))
    assert here == there
    assert id != "d0" or (there.num_members == 3 + MEMBERS + 5 and len(there.members) == MEMBERS)


@pytest.mark.parametrize("id", ["", "nobody", "d1000", "D6", 7])
def test_ids_that_there_are_not(id, made):
    said = []
    for name in ("memory", "parts"):
        with pytest.raises(InputError, match="no document") as error:
            explain(made / name, id)
        said.append(str(error.value).removeprefix(str(made / name)))
    assert said[0] == said[1]


def test_integers_that_there_are_not(tmp_path):
    in_tasks(tmp_path / "out", texts=TEXTS)
    with pytest.raises(InputError, match=f"no document '999'; ids are integers from 0 to {len(TEXTS) - 1}$"):
        explain(tmp_path / "out", "999", source=pa.table({"text": TEXTS}))


def test_parts_that_are_missing_or_damaged(tmp_path):
    in_tasks(tmp_path / "out", TABLE, id_column="id")
    part = tmp_path / "out" / part_name(DOCUMENTS, 1)
    data = bytearray(part.read_bytes())
    data[30] ^= 1
    part.write_bytes(data)
    with pytest.raises(DamagedError, match=r"part-00001\.parquet: has changed"):
        explain(tmp_path / "out", IDS[-1], source=TABLE)
    with pytest.raises(DamagedError, match=r"part-00001\.parquet: has changed"):
        info.check(tmp_path / "out")
    part.unlink()
    with pytest.raises(InputError, match=r"part-00001\.parquet: no such file"):
        explain(tmp_path / "out", IDS[-1], source=TABLE)
    with pytest.raises(DamagedError, match=r"part-00001\.parquet: is missing"):
        info.check(tmp_path / "out")


def test_commands(made, capsys, monkeypatch):
    monkeypatch.chdir(made)
    assert main(["info", "parts", "--check"]) == 0
    said = capsys.readouterr().out
    assert "written    parts: documents/, pairs/, kept/, report.json\n" in said
    assert f"checked: all {1 + len(read_report('parts')['files'])} files of parts are as written" in said
    assert main(["info", f"parts/{part_name(PAIRS, 0)}"]) == 0
    assert capsys.readouterr().out.startswith("pairs")
    in_tasks("alone", "in", id_column="id")
    assert main(["explain", "alone", "d9"]) == 0
    assert capsys.readouterr().out.startswith("d9 was removed\nkept         d0\n")


def test_a_result_as_input(made):
    kept = [sorted(row["id"] for row in rows(open_documents(made / name))) for name in ("memory", "parts")]
    assert kept[0] == kept[1] and 0 < len(kept[0]) < len(IDS)
    assert read_report(made / "parts")["counts"]["kept"] == len(kept[0])
    found = find_files([str(made)], None)
    assert {file.path for file in found.files} == {str(made / "in" / name) for name in ("a.parquet", "b.parquet")}
    assert {f"{made}/parts/", f"{made}/memory/"} <= set(found.left_out["results"])
    for name, holds in ((DOCUMENTS, "what dedup decided"), (PAIRS, "pairs")):
        with pytest.raises(InputError, match=holds):
            open_documents(made / "parts" / name)
    with pytest.raises(InputError, match="the report of a result"):
        open_documents(made / "parts/report.json")


def test_a_result_in_a_store_as_input(made):
    assert open_documents(f"file://{made}/parts").num_rows == open_documents(made / "parts").num_rows
    fsspec = pytest.importorskip("fsspec")
    store = fsspec.filesystem("memory")
    store.put(str(made), "/results", recursive=True)
    try:
        assert open_documents("memory://results/parts").num_rows == open_documents(made / "parts").num_rows
        assert open_documents("memory://results").num_rows == len(IDS)
    finally:
        store.rm("/results", recursive=True)


def rows(documents):
    for batch in documents.batches():
        yield from ({"id": id} for id in batch.columns.get("id", batch.ids).to_pylist())


def test_overwriting(tmp_path):
    for do in (in_tasks, lambda out, table, **more: flat(dedup, table, output=out, **more), in_tasks):
        do(tmp_path / "out", TABLE, id_column="id", overwrite=True)
    with pytest.raises(OutputError, match="exists already"):
        in_tasks(tmp_path / "out", TABLE, id_column="id")
    with pytest.raises(OutputError, match="holds the input"):
        in_tasks(tmp_path / "out", tmp_path / "out", id_column="id", text_columns="text", overwrite=True)
    mine = tmp_path / "out" / DOCUMENTS / "part-99999.parquet"
    mine.write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"also holds documents/part-99999\.parquet"):
        in_tasks(tmp_path / "out", TABLE, id_column="id", overwrite=True)
    assert mine.read_bytes() == b"mine" and os.listdir(tmp_path) == ["out"]


def test_frequencies_are_part_of_a_result(tmp_path):
    recipe = Recipe(method=MinHash(weighting="tfidf"), threshold=0.7)
    result = dedup(TABLE, id_column="id", output=tmp_path / "memory", recipe=recipe, writing=Writing(check=0))
    file = tmp_path / "memory/frequencies.parquet"
    report = in_tasks(tmp_path / "parts", TABLE, id_column="id", recipe=recipe, frequencies=file)
    assert report["counts"]["removed"] == len(result.removed) > 0
    id = result.removed["id"][0].as_py()
    here, there = (explain(tmp_path / name, id, source=TABLE) for name in ("memory", "parts"))
    assert here == there
