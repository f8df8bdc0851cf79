"""A result in a later session: read from its folder, pickled, its rows, and its ids in pandas."""

import json
import pickle
import shutil

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from neardup_gpu import Reading, Recipe, Result, Workers, dedup
from neardup_gpu.errors import InputError, NeardupError, OutputError, ParameterError

LARGE = 2**60 + 1
TABLE = pa.table(
    {
        "id": [LARGE, LARGE + 1, LARGE + 2, LARGE + 3],
        "text": ["to be or not to be that is"] * 2 + ["something else entirely"] * 2,
        "page": [1, 2, 3, 4],
    }
)
KEPT, REMOVED = [1, 3], [2, 4]


def write(folder, kind):
    """Write the table as a file of a kind, with one line of JSON that cannot be read."""
    path = folder / f"pages.{kind}"
    if kind == "parquet":
        pyarrow.parquet.write_table(TABLE, path, row_group_size=1)
    elif kind == "csv":
        pyarrow.csv.write_csv(TABLE, path)
    else:
        lines = [json.dumps(row) for row in TABLE.to_pylist()]
        path.write_text("\n".join([lines[0], "no JSON", *lines[1:]]))
    return path


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "memory"])
def test_rows_have_all_columns(tmp_path, kind):
    source = TABLE if kind == "memory" else write(tmp_path, kind)
    reading = Reading() if kind == "memory" else Reading(on_error="skip")
    result = dedup(source, id_column="id", text_columns="text", reading=reading)
    assert result.kept_rows().equals(TABLE.take([0, 2]).cast(result.kept_rows().schema))
    assert result.removed_rows()["page"].to_pylist() == REMOVED
    assert result.removed_rows()["id"].to_pylist() == result.removed["id"].to_pylist()


def made_here(folder, kind):
    path, reading = folder / f"pages.{kind}", Reading(on_error="skip")
    return dedup(path, id_column="id", text_columns="text", reading=reading)


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl"])
@pytest.mark.parametrize("workers", [None, 1])
def test_a_folder_holds_the_result(tmp_path, kind, workers):
    out = tmp_path / "out"
    options = {} if workers is None else {"workers": Workers(number=workers, work_dir=tmp_path / "work")}
    made = dedup(
        write(tmp_path, kind),
        id_column="id",
        text_columns="text",
        output=out,
        reading=Reading(on_error="skip"),
        **options,
    )
    found = Result.load(out)
    assert found.documents.equals(made.documents) and found.pairs.equals(made.pairs)
    assert found.recipe == made.recipe and found.report == made.report
    assert found.groups().to_pylist() == made.groups().to_pylist()
    assert found.kept_rows()["page"].to_pylist() == KEPT and found.removed_rows()["page"].to_pylist() == REMOVED
    assert str(found.explain(LARGE + 1)) == str(made.explain(LARGE + 1))
    assert "something else entirely" in found._repr_html_()
    assert found.at(0.9).documents.equals(made_here(tmp_path, kind).at(0.9).documents)
    with pytest.raises(ParameterError, match=r"below 0\.8"):
        found.at(0.5)


def test_a_folder_of_units(tmp_path):
    texts = pa.table({"id": ["a", "b"], "text": ["one two three\nfour five six", "one two three\nseven eight"]})
    made = dedup(
        texts, id_column="id", text_columns="text", recipe=Recipe(unit="line", threshold=1), output=tmp_path / "out"
    )
    assert Result.load(tmp_path / "out").units.equals(made.units)


def test_what_is_no_result(tmp_path):
    with pytest.raises(OutputError, match="not a finished result"):
        Result.load(tmp_path)
    path = write(tmp_path, "parquet")
    dedup(path, id_column="id", text_columns="text", output=tmp_path / "out")
    found = Result.load(tmp_path / "out")
    path.unlink()
    assert len(found.removed) == 2  # the input is not needed for this
    with pytest.raises(InputError, match=r"pages\.parquet"):
        found.kept_rows()
    shutil.rmtree(tmp_path / "out")
    with pytest.raises(NeardupError):
        Result.load(tmp_path / "out")


def test_pickle_carries_the_result_and_not_the_input(tmp_path):
    texts = pa.table({"id": range(2_000), "text": [f"{i % 1_000} " * 200 for i in range(2_000)]})
    made = dedup(texts, id_column="id", text_columns="text", output=tmp_path / "out")
    for result in (made, Result.load(tmp_path / "out")):
        data = pickle.dumps(result)
        found = pickle.loads(data)
        assert len(data) < texts.nbytes / 5
        assert found.documents.equals(made.documents) and found.pairs.equals(made.pairs)
        assert found.report == made.report and len(found) == 2_000 and repr(found) == repr(made)
        for ask in (found.kept_rows, found.removed_rows, lambda again=found: again.explain(1)):
            with pytest.raises(InputError, match="pickle carries none"):
                ask()


def test_length():
    assert len(dedup(TABLE, id_column="id", text_columns="text")) == 4
    nothing = dedup(TABLE.slice(0, 0), id_column="id", text_columns="text")
    assert len(nothing) == 0 and nothing  # a result is one, also if it is of nothing


def test_integers_stay_integers_in_pandas(tmp_path):
    pytest.importorskip("pandas")
    made = dedup(TABLE, id_column="id", text_columns="text", against=TABLE.slice(0, 1), output=tmp_path / "out")
    for result in (made, Result.load(tmp_path / "out")):
        for table in (result.documents, result.removed, result.documents.select(["duplicate_of", "kept"])):
            found = table.to_pandas()["duplicate_of"].dropna().tolist()
            assert found and found == table["duplicate_of"].drop_null().to_pylist()
        found = result.documents.to_pandas()
        assert found["near_reference"].dropna().tolist() == [LARGE, LARGE] and str(found["id"].dtype) == "int64"
    smaller = dedup({"text": ["to be or not"] * 2}).documents
    assert smaller.to_pandas()["duplicate_of"].astype(object).tolist()[1] == 0


def test_an_explanation_reads_well():
    result = dedup(TABLE, id_column="id", text_columns="text")
    found = result.explain(LARGE + 1)
    assert repr(found) == f"Explanation({LARGE + 1} was removed)"
    assert str(found).splitlines()[1] == f"kept         {LARGE}"
    texts = ["to be or not to be <b>that</b> is the question", "to be or not to be that is a question"]
    near = dedup({"text": texts}, threshold=0.1).explain(1)
    assert "<del" in near._repr_html_() and "<ins" in near._repr_html_() and "<b>" not in near._repr_html_()
    assert "[-" in str(near) and "{+" in str(near)


def test_a_picture_shows_itself():
    pytest.importorskip("matplotlib")
    figure = dedup(TABLE, id_column="id", text_columns="text").plot()
    assert figure._repr_png_().startswith(b"\x89PNG")

    from matplotlib import pyplot

    assert not pyplot.get_fignums()  # a notebook would show it twice
