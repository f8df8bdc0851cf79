"""Types of columns: what is written stays what it was, what decides is compared as what it is, and what nobody asked
for is not in the way."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from neardup_gpu import Recipe, ScaleOut, dedup, dedup_in_tasks
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
        dedup(table, output=tmp_path / "out", output_format=kind)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary(), pa.binary_view()])
def test_bytes_are_written_as_json_if_they_are_utf8_and_never_replaced(tmp_path, kind):
    table = pa.table({"text": ["one", "two"], "raw": pa.array(["caf\xe9".encode(), None], kind)})
    dedup(table, output=tmp_path / "out", output_format="jsonl")
    lines = [json.loads(line) for line in (tmp_path / "out/kept/part-00000.jsonl").read_text().splitlines()]
    assert lines == [{"text": "one", "raw": "caf\xe9"}, {"text": "two", "raw": None}]
    table = pa.table({"text": ["one", "two"], "raw": pa.array([b"caf\xe9", PNG], kind)})
    with pytest.raises(InputError, match=r"column 'raw' holds bytes that are not UTF-8 \(b'caf\\xe9'\).*write Parquet"):
        dedup(table, output=tmp_path / "bad", output_format="jsonl")
    assert not (tmp_path / "bad").exists()


def test_two_ids_of_bytes_stay_two_in_a_report(tmp_path):
    ids = [b"\x89PNG", b"\x88PNG", b"\x87PNG", b"\x86PNG"]
    table = pa.table({"id": ids, "text": ["one two", "one two", "three", "three"]})
    result = dedup(table, id_column="id", output=tmp_path / "out")
    shown = [group["id"] for group in json.loads((tmp_path / "out/report.json").read_text())["largest_groups"]]
    assert (
        shown == ["\\x89PNG", "\\x87PNG"] == [readable_id(id) for id in result.documents["group"].unique().to_pylist()]
    )


@pytest.mark.parametrize(
    "line", [b'{"text": "caf\xe9"}', b'{"text": "a \\ud800"}', b'{"text": "a", "b": {"c": ["\xff"]}}']
)
@pytest.mark.parametrize("on_error", ["stop", "skip"])
def test_json_that_is_not_unicode_becomes_no_other_format(tmp_path, line, on_error):
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "fine"}\n\n' + line + b"\n")
    with pytest.raises(InputError, match=r"in.jsonl line 3: holds what is not Unicode"):
        dedup(tmp_path / "in.jsonl", output=tmp_path / "out", output_format="parquet", on_error=on_error)
    dedup(tmp_path / "in.jsonl", output=tmp_path / "out", output_format="jsonl", on_error=on_error)
    assert line in (tmp_path / "out/kept/in.jsonl").read_bytes()


def test_a_text_file_that_is_not_utf8_becomes_no_other_format(tmp_path):
    for name, text in (("a", b"fine"), ("b", b"caf\xe9 noir")):
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / f"in/{name}.txt").write_bytes(text)
    with pytest.raises(InputError, match=r"in/b.txt: is not UTF-8 at byte 4, .* leave output_format out"):
        dedup(tmp_path / "in", output=tmp_path / "out", output_format="jsonl")
    dedup(tmp_path / "in", output=tmp_path / "out")
    assert (tmp_path / "out/kept/b.txt").read_bytes() == b"caf\xe9 noir"


@pytest.mark.parametrize("id", [b"\\ud800", b"\xff"])
def test_an_id_of_json_that_is_not_unicode_is_refused(tmp_path, id):
    (tmp_path / "in.jsonl").write_bytes(b'{"text": "fine", "id": "a"}\n{"text": "b", "id": "' + id + b'"}\n')
    with pytest.raises(InputError, match="line 2: column 'id' is not valid UTF-8; correct the id"):
        dedup(tmp_path / "in.jsonl", id_column="id")
    skipped = dedup(tmp_path / "in.jsonl", id_column="id", on_error="skip").skipped
    assert skipped["row"].to_pylist() == [2]


# ----------------------------------------------------------------------------------------------- columns that decide

SAME = "the quick brown fox jumps over the lazy dog"


def kept_values(source, tmp_path, column="v", by_tasks=False, keep="v:desc", **how):
    """The values of the column that `keep` names, of the one document that stays of copies; and the warnings."""
    if by_tasks:
        folder = tmp_path / f"job{len(list(tmp_path.iterdir()))}"
        scale_out = ScaleOut(work_dir=folder / "work", workers=1, slice_bytes=20, partitions=2)
        report = dedup_in_tasks(
            source, output=folder / "out", scale_out=scale_out, recipe=Recipe(keep=keep), engine="cpu", **how
        )
        table = pa.concat_tables(pq.read_table(path) for path in sorted((folder / "out/documents").iterdir()))
        kept = np.flatnonzero(table["kept"].to_pylist())
        return kept.tolist(), report["warnings"]
    result = dedup(source, keep=keep, **how)
    return np.flatnonzero(result.documents["kept"].to_pylist()).tolist(), list(result.warnings)


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


def ordered(values, categories=CATEGORIES, kind=None):
    dictionary = pa.array(categories, kind or pa.string())
    codes = [None if value is None else categories.index(value) for value in values]
    return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), dictionary, ordered=True)


@tasks_too
@pytest.mark.parametrize("form", ["pandas", "polars", "arrow", "parquet", "arrow file", "several", "integers"])
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
    with pytest.raises(InputError, match="column 'v' has its categories in different orders, high < low and"):
        kept_values(tmp_path / "in", tmp_path, by_tasks=by_tasks)
    pq.write_table(pa.table({"text": [SAME], "v": ["mid"]}), tmp_path / "in/b.parquet")
    with pytest.raises(InputError, match="ordered categories, low < high, and 'mid' is not one of them"):
        kept_values(tmp_path / "in", tmp_path, by_tasks=by_tasks)


def test_categories_of_polars_are_written(tmp_path):
    pl = pytest.importorskip("polars")
    columns = {"a": pl.Series(["mid"], dtype=pl.Enum(CATEGORIES)), "b": pl.Series(["x"], dtype=pl.Categorical)}
    for kind in ("parquet", "arrow", "jsonl"):
        dedup(pl.DataFrame({"text": ["one"]} | columns), output=tmp_path / kind, output_format=kind)
    dedup(pl.DataFrame({"text": ["one"]} | columns), output=tmp_path / "own")
    for name in ("own", "parquet"):
        table = pq.read_table(tmp_path / name / "kept")
        assert table.to_pylist() == [{"text": "one", "a": "mid", "b": "x"}]
        assert table["a"].type.ordered
