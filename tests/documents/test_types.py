"""Types of columns: what is written stays what it was, what decides is compared as what it is, and what nobody asked
for is not in the way."""

import json
import uuid

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat
from grids import pairs_of
from pyarrow import feather

from neardup_gpu import Index, Reading, Recipe, Workers, Writing, dedup, substrings
from neardup_gpu.documents import jsonlines
from neardup_gpu.errors import InputError
from neardup_gpu.printable import readable_id

PNG = b"\x89PNG"

# -------------------------------------------------------------------------------------------------------- written rows


@pytest.mark.parametrize(
    "column",
    [
        pa.array([{"bytes": PNG, "path": "a"}] * 2),
        pa.array([[PNG]] * 2),
        pa.array([[{"image": PNG}]] * 2),
        pa.array([[PNG]] * 2, pa.list_(pa.dictionary(pa.int32(), pa.binary()))),
    ],
    ids=["struct", "list", "list of structs", "list of dictionaries"],
)
@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz"])
def test_bytes_within_others_are_refused_as_json_before_all_work(tmp_path, column, kind):
    table = pa.table({"text": ["one", "two"], "image": column})
    with pytest.raises(InputError, match=r"column 'image' of type .* cannot be written as JSON lines"):
        dedup(table, output=tmp_path / "out", writing=Writing(output_format=kind))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_bytes_are_written_as_json_if_they_are_utf8_and_never_replaced(tmp_path, kind):
    table = pa.table({"text": ["one", "two"], "raw": pa.array(["caf\xe9".encode(), None], kind)})
    dedup(table, output=tmp_path / "out", writing=Writing(output_format="jsonl"))
    lines = [json.loads(line) for line in (tmp_path / "out/kept/part-00000.jsonl").read_text().splitlines()]
    assert lines == [{"text": "one", "raw": "caf\xe9"}, {"text": "two", "raw": None}]
    table = pa.table({"text": ["one", "two"], "raw": pa.array([b"caf\xe9", PNG], kind)})
    with pytest.raises(InputError, match=r"column 'raw' holds bytes that are not UTF-8 \(b'caf\\xe9'\).*write Parquet"):
        dedup(table, output=tmp_path / "bad", writing=Writing(output_format="jsonl"))
    assert not (tmp_path / "bad").exists()


def test_two_ids_of_bytes_stay_two_in_a_report(tmp_path):
    ids = [b"\x89PNG", b"\x88PNG", b"\x87PNG", b"\x86PNG"]
    table = pa.table({"id": ids, "text": ["one two", "one two", "three", "three"]})
    result = dedup(table, id_column="id", output=tmp_path / "out")
    shown = [group["id"] for group in json.loads((tmp_path / "out/report.json").read_text())["largest_groups"]]
    assert (
        shown == ["\\x89PNG", "\\x87PNG"] == [readable_id(id) for id in result.documents["group"].unique().to_pylist()]
    )


def test_whole_numbers_of_json_are_not_rounded(tmp_path):
    numbers = [5, 2**64 - 1, 2**63 - 1]
    lines = [f'{{"text": "{number}", "h": {number}}}\n' for number in numbers]
    (tmp_path / "in.jsonl").write_text("".join(lines))
    dedup(tmp_path / "in.jsonl", output=tmp_path / "out", writing=Writing(output_format="parquet"))
    assert pq.read_table(tmp_path / "out/kept")["h"].to_pylist() == numbers
    for beyond in (b"1.5", b"-1", b"123456789012345678901234567890"):
        (tmp_path / "in.jsonl").write_bytes(
            b'{"text": "a", "h": 18446744073709551615}\n{"text": "b", "h": %s}\n' % beyond
        )
        with pytest.raises(InputError, match=r"in.jsonl line 1: column 'h' holds a whole number that no type"):
            dedup(tmp_path / "in.jsonl", output=tmp_path / "bad", writing=Writing(output_format="parquet"))
        assert not (tmp_path / "bad").exists()
        dedup(tmp_path / "in.jsonl", output=tmp_path / "out", writing=Writing(counts=True, overwrite=True))
        assert b'"h": %s,"copies":0,"near":0}\n' % beyond in (tmp_path / "out/kept/in.jsonl").read_bytes()


def test_whole_numbers_of_json_next_to_fractions_in_another_block_or_file(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonlines, "BLOCK_BYTES", 100)
    (tmp_path / "in").mkdir()
    lines = [json.dumps({"text": "a", "h": {"n": [number]}}) + "\n" for number in [2**53 + 1, *range(20), 0.5]]
    for files in ({"a": lines}, {"a": lines[:1], "b": lines[-1:]}):
        for name, some in files.items():
            (tmp_path / f"in/{name}.jsonl").write_text("".join(some))
        with pytest.raises(
            InputError, match=r"a.jsonl: column 'h.n' holds a whole number beyond 2\*\*53 and, in other"
        ):
            dedup(tmp_path / "in", output=tmp_path / "out", writing=Writing(output_format="parquet"))
    (tmp_path / "in/a.jsonl").write_text("".join(lines[1:]))  # small whole numbers keep all digits
    dedup(tmp_path / "in", output=tmp_path / "out", writing=Writing(output_format="parquet"))


@pytest.mark.parametrize(
    "line", [b'{"text": "caf\xe9"}', b'{"text": "a \\ud800"}', b'{"text": "a", "b": {"c": ["\xff"]}}']
)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_json_that_is_not_unicode_becomes_no_other_format(tmp_path, line, on_error):
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "fine"}\n\n' + line + b"\n")
    with pytest.raises(InputError, match=r"in.jsonl line 3: holds what is not Unicode"):
        dedup(
            tmp_path / "in.jsonl",
            output=tmp_path / "out",
            reading=Reading(on_error=on_error),
            writing=Writing(output_format="parquet"),
        )
    dedup(
        tmp_path / "in.jsonl",
        output=tmp_path / "out",
        reading=Reading(on_error=on_error),
        writing=Writing(output_format="jsonl"),
    )
    assert line in (tmp_path / "out/kept/in.jsonl").read_bytes()


def test_a_text_file_that_is_not_utf8_becomes_no_json(tmp_path):
    for name, text in (("a", b"fine"), ("b", b"caf\xe9 noir")):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / f"in/{name}.txt").write_bytes(text)
    lines = Writing(output_format="jsonl")
    with pytest.raises(InputError, match=r"in/b.txt: is not UTF-8 at byte 4, .*encoding='.*write Parquet"):
        dedup(tmp_path / "in", output=tmp_path / "out", writing=lines)  # as it is read, before all work
    with pytest.raises(InputError, match=r"in/a.txt to .*b.txt: there is text that is not UTF-8, .*write Parquet"):
        substrings(
            tmp_path / "in", output=tmp_path / "out", length=9, writing=lines, workers=Workers(work_dir=tmp_path / "w")
        )
    dedup(tmp_path / "in", output=tmp_path / "out")
    assert (tmp_path / "out/kept/b.txt").read_bytes() == b"caf\xe9 noir"


@pytest.mark.parametrize("id", [b"\\ud800", b"\xff"])
def test_an_id_of_json_that_is_not_unicode_is_refused(tmp_path, id):
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "fine", "id": "a"}\n{"text": "b", "id": "' + id + b'"}\n')
    with pytest.raises(InputError, match="line 2: column 'id' is not valid UTF-8; correct the id"):
        dedup(tmp_path / "in.jsonl", id_column="id")
    skipped = dedup(tmp_path / "in.jsonl", id_column="id", reading=Reading(on_error="skip")).skipped
    assert skipped["row"].to_pylist() == [2]


# ----------------------------------------------------------------------------------------------- columns that decide

SAME = "the quick brown fox jumps over the lazy dog"


def kept_values(source, tmp_path, column="v", by_tasks=False, keep="v:desc", **how):
    """The values of the column that `keep` names, of the one document that stays of copies; and warnings, but one."""
    if by_tasks:
        folder = tmp_path / f"job{len(list(tmp_path.iterdir()))}"
        workers = Workers(work_dir=folder / "work", number=1, slice_bytes=20, partitions=2)
        report = flat(
            dedup, source, output=folder / "out", workers=workers, recipe=Recipe(keep=keep), engine="cpu", **how
        ).report
        table = pa.concat_tables(pq.read_table(path) for path in sorted((folder / "out/documents").iterdir()))
        kept = np.flatnonzero(table["kept"].to_pylist())
        return kept.tolist(), [line for line in report["warnings"] if "short texts" not in line]
    result = flat(dedup, source, keep=keep, **how)
    kept = np.flatnonzero(result.documents["kept"].to_pylist())
    return kept.tolist(), [line for line in result.warnings if "short texts" not in line]


def write_csv(path, values, column="v"):
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"{column},text\n" + "".join(f"{value},{SAME}\n" for value in values))
    return path


def write_lines(path, values, column="v"):
    path.parent.mkdir(exist_ok=True)
    rows = [{column: value, "text": SAME} if value is not ... else {"text": SAME} for value in values]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


tasks_too = pytest.mark.parametrize("by_tasks", [False, True], ids=["memory", "tasks"])


@pytest.mark.parametrize("marker", ["n/a", "NA", "null", "", "NaN", "None"])
def test_markers_of_missing_values_do_not_make_numbers_text(tmp_path, marker):
    by_tasks = marker == "n/a"
    path = write_csv(tmp_path / "in/a.csv", ["9", marker, "10", "2.5"])
    assert kept_values(path, tmp_path, by_tasks=by_tasks) == ([2], [])
    assert kept_values(path, tmp_path, keep="v:asc") == ([3], [])
    path = write_lines(tmp_path / "in2/a.jsonl", [9, marker, 10, 2.5])
    assert kept_values(path, tmp_path, by_tasks=by_tasks) == ([2], [])
    path = write_lines(tmp_path / "in2/b.jsonl", [marker, 9, 10, ...])
    assert kept_values(path, tmp_path, by_tasks=by_tasks) == ([2], [])


@tasks_too
def test_other_text_among_numbers_is_said(tmp_path, by_tasks):
    path = write_csv(tmp_path / "in/a.csv", ["10", "9", "unknown", "8"])
    kept, (warning,) = kept_values(path, tmp_path, by_tasks=by_tasks)
    assert kept == [2]
    assert warning == (
        f"column 'v' is compared as text, since 'unknown' in {path} row 3 is not a number: correct it, or name it with "
        "--null-values (null_values) if it marks a missing value"
    )
    assert kept_values(path, tmp_path, by_tasks=by_tasks, null_values="unknown") == ([0], [])
    kept, (warning,) = kept_values(path, tmp_path, by_tasks=by_tasks, null_values=["none"])
    for values in ([10, 9, "unknown", 8], ["unknown", 10, 9, 8])[: 1 + (not by_tasks)]:
        path = write_lines(tmp_path / "in/a.jsonl", values)
        kept, (warning,) = kept_values(path, tmp_path, by_tasks=by_tasks)
        assert [values[i] for i in kept] == ["unknown"]
        assert f"'unknown' in {path} line {values.index('unknown') + 1} is not a number" in warning
        kept, warnings = kept_values(path, tmp_path, by_tasks=by_tasks, null_values=["unknown"])
        assert ([values[i] for i in kept], warnings) == ([10], [])


@pytest.mark.parametrize("values", [["10", "9", "+11", " 2"], ["1,000", "9", "2", "3"], ["$10", "$9", "$2", "$3"]])
def test_numbers_as_strings_are_never_compared_as_text_in_silence(tmp_path, values):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"v": values, "text": [SAME] * 4}), path)
    _, (warning,) = kept_values(path, tmp_path)
    assert "compared as text" in warning


@pytest.mark.parametrize(
    "values", [["2026-01-31", "2026-02-01"], ["20260131", "20260201"], ["a", "b"], ["x1", "x2"], [None, "v1.2"]]
)
def test_nothing_is_said_of_other_text(tmp_path, values):
    table = pa.table({"v": values, "text": [SAME] * 2})
    assert kept_values(table, tmp_path) == ([1], [])


def test_numbers_of_csv_in_all_their_forms(tmp_path):
    path = write_csv(tmp_path / "in/a.csv", ["9", "+10", " 11", ".5", "1e2", "5."])
    assert kept_values(path, tmp_path) == ([4], [])
    assert kept_values(path, tmp_path, keep="v:asc") == ([3], [])


CATEGORIES = ["low", "mid", "high"]
OF_CATEGORIES = ["arrow", "parquet", "arrow file", "several", "integers"]


def ordered(values, categories=CATEGORIES, kind=None):
    dictionary = pa.array(categories, kind or pa.string())
    codes = [None if value is None else categories.index(value) for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), dictionary, ordered=True)


@tasks_too
@pytest.mark.parametrize("form", ["pandas", "polars", *OF_CATEGORIES])
def test_ordered_categories_are_compared_in_their_order(tmp_path, form, by_tasks):
    values = ["mid", None, "high", "low"]
    columns = {"text": [SAME] * 4}
    if form == "pandas":
        pd = pytest.importorskip("pandas")
        source = pd.DataFrame(columns | {"v": pd.Categorical(values, categories=CATEGORIES, ordered=True)})
    elif form == "polars":
        pl = pytest.importorskip("polars")
        source = pl.DataFrame(columns | {"v": pl.Series(values, dtype=pl.Enum(CATEGORIES))})
    elif form == "integers":
        source = pa.table(columns | {"v": ordered([2, None, 1, 3], [3, 2, 1], pa.int64())})
    else:
        source = pa.table(columns | {"v": ordered(values)})
    if form == "parquet":
        pq.write_table(source, tmp_path / "a.parquet", row_group_size=1)
        source = tmp_path / "a.parquet"
    elif form == "arrow file":
        with pa.ipc.new_file(tmp_path / "a.arrow", source.schema) as writer:
            writer.write_table(source, max_chunksize=1)
        source = tmp_path / "a.arrow"
    elif form == "several":
        (tmp_path / "in").mkdir()
        for i, value in enumerate(values):
            some = [value] if value in ("mid", None) else ["low", "high"]
            part = pa.table({"text": [SAME], "v": ordered([value], CATEGORIES if i == 3 else [v for v in some if v])})
            pq.write_table(part, tmp_path / f"in/{i}.parquet")
        source = tmp_path / "in"
    assert kept_values(source, tmp_path, by_tasks=by_tasks) == ([2], [])
    assert kept_values(source, tmp_path, keep="v:asc") == ([3], [])


@tasks_too
def test_categories_in_different_orders_are_refused(tmp_path, by_tasks):
    (tmp_path / "in").mkdir()
    for name, categories in (("a", ["low", "high"]), ("b", ["high", "low"])):
        pq.write_table(pa.table({"text": [SAME], "v": ordered(["low"], categories)}), tmp_path / f"in/{name}.parquet")
    with pytest.raises(InputError, match=r"column 'v' has its categories in different orders, high < low and"):
        kept_values(tmp_path / "in", tmp_path, by_tasks=by_tasks)
    pq.write_table(pa.table({"text": [SAME], "v": ["mid"]}), tmp_path / "in/b.parquet")
    with pytest.raises(InputError, match="ordered categories, low < high, and 'mid' is not one of them"):
        kept_values(tmp_path / "in", tmp_path, by_tasks=by_tasks)


def test_categories_of_polars_are_written(tmp_path):
    pl = pytest.importorskip("polars")
    columns = {"a": pl.Series(["mid"], dtype=pl.Enum(CATEGORIES)), "b": pl.Series(["x"], dtype=pl.Categorical)}
    for kind in ("parquet", "arrow", "jsonl"):
        dedup(pl.DataFrame({"text": ["one"]} | columns), output=tmp_path / kind, writing=Writing(output_format=kind))
    dedup(pl.DataFrame({"text": ["one"]} | columns), output=tmp_path / "own")
    for name in ("own", "parquet"):
        table = pq.read_table(tmp_path / name / "kept")
        assert table.to_pylist() == [{"text": "one", "a": "mid", "b": "x"}]
        assert table["a"].type.ordered


# ------------------------------------------------------------------------------------------- refused without need, once

WRITERS = {
    "parquet": lambda path, rows: pq.write_table(pa.Table.from_pylist(rows), path),
    "arrow": lambda path, rows: feather.write_feather(pa.Table.from_pylist(rows), path),
    "jsonl": lambda path, rows: path.write_text("".join(json.dumps(row) + "\n" for row in rows)),
    "csv": lambda path, rows: path.write_text(
        ",".join(rows[0]) + "\n" + "".join(",".join(str(value) for value in row.values()) + "\n" for row in rows)
    ),
}
TEXTS = ["one two three four five six", "seven eight nine ten eleven twelve", "one two three four five six"]
formats = pytest.mark.parametrize("form", list(WRITERS))
formats_by_turns = pytest.mark.parametrize(("form", "by_tasks"), pairs_of(WRITERS, [True, False]))


def write_shards(folder, form, *shards):
    """Files of some formats, each of some rows, whose names say their order; a path may lead through folders."""
    for i, rows in enumerate(shards):
        name, rows = rows if isinstance(rows, tuple) else (f"{i}", rows)
        path = folder / f"{name}.{form}"
        path.parent.mkdir(parents=True, exist_ok=True)
        WRITERS[form](path, rows)
    return folder


def decided(source, tmp_path, by_tasks=False, keep="first", **how):
    """(id, kept, duplicate_of) of each document."""
    if by_tasks:
        folder = tmp_path / f"job{len(list(tmp_path.iterdir()))}"
        workers = Workers(work_dir=folder / "work", number=1, slice_bytes=20, partitions=2)
        recipe = Recipe(keep=keep)
        flat(dedup, source, output=folder / "out", workers=workers, recipe=recipe, engine="cpu", **how)
        table = pa.concat_tables(pq.read_table(path) for path in sorted((folder / "out/documents").iterdir()))
    else:
        table = flat(dedup, source, keep=keep, **how).documents
    return list(zip(*(table[name].to_pylist() for name in ("id", "kept", "duplicate_of")), strict=True))


@formats_by_turns
def test_ids_that_are_integers_in_one_shard_and_strings_in_another(tmp_path, form, by_tasks):
    shards = [{"id": 7, "text": TEXTS[0]}, {"id": 8, "text": TEXTS[1]}], [{"id": "x", "text": TEXTS[2]}]
    source = write_shards(tmp_path / "in", form, *shards)
    expected = [("7", True, None), ("8", True, None), ("x", False, "7")]
    assert decided(source, tmp_path, by_tasks, id_column="id") == expected
    source = write_shards(tmp_path / "in2", form, *reversed(shards))
    expected = [("x", True, None), ("7", False, "x"), ("8", True, None)]
    assert decided(source, tmp_path, by_tasks, id_column="id") == expected
    write_shards(tmp_path / "in2", form, [{"id": 7, "text": TEXTS[0]}], [{"id": "7", "text": TEXTS[2]}])
    with pytest.raises(InputError, match=r"id '?7'? stands for 2 documents"):
        decided(source, tmp_path, by_tasks, id_column="id")


@tasks_too
def test_ids_of_a_reference_set_may_be_of_another_type(tmp_path, by_tasks):
    known = pa.table({"id": ["x"], "text": TEXTS[:1]})
    mine = pa.table({"id": [7, 8], "text": TEXTS[1:]})
    expected = [("7", True, None), ("8", False, "x")]
    assert decided(mine, tmp_path, by_tasks, id_column="id", against=known) == expected
    known, mine = pa.table({"id": [7], "text": TEXTS[:1]}), pa.table({"id": ["x"], "text": TEXTS[2:]})
    assert decided(mine, tmp_path, by_tasks, id_column="id", against=known) == [("x", False, "7")]


@pytest.mark.parametrize("form", ["memory", "parquet"])
@tasks_too
def test_uuids_are_ids(tmp_path, form, by_tasks):
    ids = [uuid.UUID(int=3 << 64), uuid.UUID(int=2), uuid.UUID(int=2**128 - 1)]
    table = pa.table({"id": pa.array([id.bytes for id in ids], pa.uuid()), "text": TEXTS})
    if form == "parquet":
        pq.write_table(table, tmp_path / "a.parquet")
        table = tmp_path / "a.parquet"
    first, second, third = map(str, ids)
    expected = [(first, True, None), (second, True, None), (third, False, first)]
    assert decided(table, tmp_path, by_tasks, id_column="id") == expected


def test_uuids_keep_their_type_in_kept_rows(tmp_path):
    table = pa.table({"id": pa.array([uuid.UUID(int=i).bytes for i in range(3)], pa.uuid()), "text": TEXTS})
    dedup(table, id_column="id", output=tmp_path / "out")
    assert pq.read_table(tmp_path / "out/kept").equals(table.slice(0, 2))


@tasks_too
@pytest.mark.parametrize("kind", [pa.float64(), pa.null(), pa.float32()], ids=str)
@pytest.mark.parametrize("place", [0, 1])
def test_a_shard_whose_text_is_all_null(tmp_path, kind, place, by_tasks):
    if by_tasks and (kind != pa.float64() or place):
        return
    nulls = pa.nulls(2, kind) if pa.types.is_null(kind) else pa.array([None, float("nan")], kind)
    shards = [pa.table({"body": nulls, "n": [1, 2]}), pa.table({"body": TEXTS, "n": [1, 2, 3]})]
    (tmp_path / "in").mkdir()
    for i, shard in enumerate(shards if place == 0 else shards[::-1]):
        pq.write_table(shard, tmp_path / f"in/{i}.parquet")
    kept = [kept for _, kept, _ in decided(tmp_path / "in", tmp_path, by_tasks)]
    assert kept == ([True] * 4 + [False] if place == 0 else [True, True, False, True, True])
    shards[0] = shards[0].set_column(0, "body", pa.array([0.5, None]))
    pq.write_table(shards[0], tmp_path / f"in/{place}.parquet")
    with pytest.raises(InputError, match=f"{place}.parquet: column 'body' holds double, not text"):
        decided(tmp_path / "in", tmp_path, by_tasks)


@formats_by_turns
def test_a_shard_that_lacks_the_column_that_decides(tmp_path, form, by_tasks):
    shards = [{"text": TEXTS[0]}], [{"v": 1, "text": TEXTS[0]}], [{"v": 3, "text": TEXTS[0]}]
    source = write_shards(tmp_path / "in", form, *shards)
    for keep, best in (("v:desc", 2), ("v:asc", 1)):
        kept, (warning,) = kept_values(source, tmp_path, by_tasks=by_tasks, keep=keep)
        assert kept == [best]
        assert warning == f"{source}/0.{form} has no column 'v', so that its rows have no value there"
    with pytest.raises(InputError, match=r"0\.\w+: no column 'w'; it has text"):
        dedup(source, keep="w")


@formats_by_turns
def test_folders_stand_for_columns(tmp_path, form, by_tasks):
    names = ["year=2024/lang=de/a", "year=2025/lang=fr%20CA/a", "year=999/lang=__HIVE_DEFAULT_PARTITION__/a"]
    source = write_shards(tmp_path / "in", form, *((name, [{"text": TEXTS[0]}]) for name in names))
    for keep, best in (("year:desc", 1), ("year:asc", 2), ("lang:asc", 0), ("lang:desc", 1)):
        assert kept_values(source, tmp_path, by_tasks=by_tasks and keep == "year:desc", keep=keep) == ([best], [])
    expected = [("2024", True, None), ("2025", False, "2024"), ("999", False, "2024")]
    found = decided(source, tmp_path, by_tasks, id_column="year")
    assert [tuple(map(str, row)) for row in found] == [tuple(map(str, row)) for row in expected]
    with pytest.raises(InputError, match=r"id 2024 stands for 2 documents|column 'lang' is null"):
        write_shards(tmp_path / "in", form, ("year=2024/b", [{"text": TEXTS[0]}]))
        decided(source, tmp_path, by_tasks, id_column="year")


@formats
def test_a_column_of_the_file_comes_before_its_folder(tmp_path, form):
    source = write_shards(
        tmp_path / "in", form, ("v=1/a", [{"v": 5, "text": TEXTS[0]}]), ("v=2/a", [{"v": 4, "text": TEXTS[0]}])
    )
    assert kept_values(source, tmp_path, keep="v:desc") == ([0], [])
    dedup(source, keep="v:desc", output=tmp_path / "out")
    assert [str(path.relative_to(tmp_path / "out/kept")) for path in sorted((tmp_path / "out/kept").rglob("*.*"))] == [
        f"v=1/a.{form}",
        f"v=2/a.{form}",
    ]


def test_an_index_takes_shards_that_differ(tmp_path):
    with Index.create(tmp_path / "index", columns=["v", "year"]) as index:
        rows = [{"id": 7, "v": 1, "text": TEXTS[0]}], [{"id": "x", "text": TEXTS[1]}]
        source = write_shards(tmp_path / "in", "parquet", ("year=2024/a", rows[0]), ("year=2025/a", rows[1]))
        assert index.add(source, id_column="id").documents == 2
        assert index.add(source, id_column="id").already == 2
        found = index.query({"text": [TEXTS[0], TEXTS[1]]}, columns=["v", "year"])
        assert found.select(["id", "v", "year"]).to_pylist() == [
            {"id": "7", "v": 1, "year": 2024},
            {"id": "x", "v": None, "year": 2025},
        ]


class Odd:
    """An object that Arrow has no type for."""


@pytest.mark.parametrize("form", ["pandas", "dict", "dicts"])
def test_columns_that_nobody_asked_for_are_not_in_the_way(tmp_path, form):
    columns = {"id": ["a", "b", "c"], "text": TEXTS, "odd": [1, "x", [2]], "odder": [Odd(), 1, None]}
    source = columns
    if form == "pandas":
        source = pytest.importorskip("pandas").DataFrame(columns)
    elif form == "dicts":
        source = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    assert decided(source, tmp_path, id_column="id") == [("a", True, None), ("b", True, None), ("c", False, "a")]
    assert dedup(source, output=tmp_path / "ids", writing=Writing(ids_only=True)).report["counts"]["kept"] == 2
    for asked in ({"output": tmp_path / "out"}, {"keep": "odd"}, {"id_column": "odd"}, {"text_columns": "odd"}):
        with pytest.raises(InputError, match="input: column 'odd' cannot become an Arrow column"):
            flat(dedup, source, **asked)
    for name in ("text", "body"):  # no other column is taken for the text
        with pytest.raises(InputError, match=f"input: column '{name}' cannot become an Arrow column"):
            dedup({name: ["a", 1, [2]], "title": TEXTS})
    workers = Workers(work_dir=tmp_path / "work", number=1)
    with pytest.raises(InputError, match="input: column 'odd' cannot become an Arrow column"):
        dedup(source, output=tmp_path / "out", workers=workers)
    assert not (tmp_path / "out").exists()


def test_columns_of_one_name_that_nobody_asked_for(tmp_path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(zip("abc", TEXTS, [1, 2, 3], [4, 5, 6], strict=True), columns=["id", "text", "n", "n"])
    assert decided(frame, tmp_path, id_column="id") == [("a", True, None), ("b", True, None), ("c", False, "a")]
    with pytest.raises(InputError, match="2 columns named 'n'"):
        dedup(frame, keep="n")
    with pytest.raises(InputError, match="several columns have one name"):
        dedup(frame, output=tmp_path / "out")


def test_an_index_compares_ordered_categories_in_their_order(tmp_path):
    with Index.create(tmp_path / "index", columns=["v"]) as index:
        for values in (["mid", "high"], ["low", None]):
            index.add(pa.table({"text": [SAME] * 2, "v": ordered(values)}))
        for keep, best in (("v:desc", 1), ("v:asc", 2)):
            assert np.flatnonzero(index.decide(keep=keep).documents["kept"].to_pylist()).tolist() == [best]
        with pytest.raises(InputError, match=r"column 'v' has its categories in different orders"):
            index.add(pa.table({"text": [SAME], "v": ordered(["mid"], ["mid", "low"])}))
        assert len(index) == 4
    with Index.open(tmp_path / "index") as index:
        assert index.decide(keep="v:desc").documents["kept"].to_pylist() == [False, True, False, False]


def test_an_index_says_what_it_compares_as_text(tmp_path, caplog):
    with Index.create(tmp_path / "index", columns=["v"]) as index:
        index.add(write_csv(tmp_path / "in/a.csv", ["9", "unknown"]))
        assert "column 'v' is compared as text, since 'unknown' in" in caplog.text
