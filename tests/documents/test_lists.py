"""Text in lists: `messages[].content` and `paragraphs[]`, from every form of input that has lists."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from flat import flat

import neardup_gpu as nd
from neardup_gpu import cli
from neardup_gpu.documents.nested import select
from neardup_gpu.documents.reading_options import ReadingIntegers
from neardup_gpu.documents.slices import slices_of

TALKS = [
    [("user", "to be or not to be that is the question"), ("assistant", "whether it is nobler in the mind to suffer")],
    [("user", "to be or not to be that is the question"), ("assistant", "whether it is nobler in the mind to suffer")],
    [("system", None), ("user", "the slings and arrows of outrageous fortune")],
    [("user", None)],
    [],
    None,
]
TEXTS = [
    None if talk is None or not any(text for _, text in talk) else "\n".join(text for _, text in talk if text)
    for talk in TALKS
]
ROWS = [
    {"id": number, "messages": None if talk is None else [{"role": role, "content": text} for role, text in talk]}
    for number, talk in enumerate(TALKS)
]
MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))
TABLE = pa.table({"id": [row["id"] for row in ROWS], "messages": pa.array([r["messages"] for r in ROWS], MESSAGES)})
CONTENT = {"text_columns": "messages[].content", "id_column": "id"}


def texts_of(source, **options):
    """The text of each document, None for null ones as they are counted."""
    found, nulls = [], 0
    for batch in flat(nd.open_documents, source, **{**CONTENT, **options}).batches():
        found += [batch.text[row].tobytes().decode() for row in range(batch.num_rows)]
        nulls += batch.num_null
    assert nulls == found.count("")
    return [text or None for text in found]


def parquet(folder):
    pq.write_table(TABLE, folder / "d.parquet", row_group_size=2)
    return folder / "d.parquet"


def arrow_file(folder):
    with pa.ipc.new_file(folder / "d.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE, 2)
    return folder / "d.arrow"


def arrow_stream(folder):
    with pa.ipc.new_stream(folder / "d.arrows", TABLE.schema) as writer:
        writer.write_table(TABLE, 4)
    return folder / "d.arrows"


def json_lines(folder):
    (folder / "d.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    return folder / "d.jsonl"


def json_lines_by_line(folder):
    """Lines that pyarrow.json refuses, so that each is read by itself."""
    lines = [json.dumps({**row, "odd": "\ud800"}) for row in ROWS]
    (folder / "d.jsonl").write_text("\n".join(lines))
    return folder / "d.jsonl"


def json_lines_without_members(folder):
    """A message without the member, one that is null, and a line without messages, as null values."""
    rows = [json.loads(json.dumps(row)) for row in ROWS]
    del rows[2]["messages"][0]["content"], rows[5]["messages"]
    rows[3]["messages"][0] = None
    (folder / "d.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder / "d.jsonl"


def pandas(folder):
    return pytest.importorskip("pandas").DataFrame(ROWS)


def polars(folder):
    return pytest.importorskip("polars").from_arrow(TABLE)


def datasets(folder):
    return pytest.importorskip("datasets").Dataset(TABLE)


FORMS = [parquet, arrow_file, arrow_stream, json_lines, json_lines_by_line, json_lines_without_members]
IN_MEMORY = [lambda _: TABLE, lambda _: ROWS, lambda _: TABLE.to_reader(2), pandas, polars, datasets]


@pytest.mark.parametrize("form", FORMS + IN_MEMORY, ids=lambda form: form.__name__)
def test_every_form_gives_the_same_texts(form, tmp_path):
    assert texts_of(form(tmp_path)) == TEXTS


@pytest.mark.parametrize(
    "values",
    [
        pa.array([["a", "b"], None, [], [None], ["c", None]], pa.large_list(pa.large_string())),
        pa.array([["a", "b"], None, [], [None], ["c", None]], pa.list_view(pa.string_view())),
        pa.array([["a", "b"], None, [], [None], ["c", None]], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
        pa.array([["a", "b"], None, [None, None], [None, None], ["c", None]], pa.list_(pa.string(), 2)),
        pa.array([[b"a", b"b"], None, [], [None], [b"c", None]], pa.list_(pa.binary())),
    ],
    ids=lambda values: str(values.type),
)
def test_lists_of_every_layout(values):
    texts = ["a\nb", None, None, None, "c"]
    options = {"text_columns": "p[]", "id_column": None}
    assert texts_of(pa.table({"p": values}), **options) == texts
    sliced = pa.table({"p": pa.concat_arrays([values, values]).slice(2, 6)})
    assert texts_of(sliced, **options) == [*texts[2:], *texts[:3]]


def test_lists_within_lists_and_structs(tmp_path):
    values = [[["a", "b"], None, ["c"]], None, [[], ["d"]], [[None]]]
    options = {"text_columns": "m.p[][]", "id_column": None}
    rows = [{"m": {"p": value}} for value in values]
    texts = ["a\nb\nc", None, "d", None]
    assert texts_of(rows, **options) == texts
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "d.parquet")
    assert texts_of(tmp_path / "d.parquet", **options) == texts
    (tmp_path / "d.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert texts_of(tmp_path / "d.jsonl", **options) == texts


def test_pages_of_a_list_are_read_one_by_one():
    """A page that leaves its style open hides nothing of the next one."""
    pages = [["<p>to be<style>x", "<p>or not"]]
    (text,) = texts_of({"p": pages}, text_columns="p[]", id_column=None, html=True)
    assert text.split() == ["to", "be", "or", "not"]


def test_a_column_of_the_whole_name_wins():
    table = pa.table({"p[]": ["whole"], "p": [["part"]]})
    assert texts_of(table, text_columns="p[]", id_column=None) == ["whole"]


@pytest.mark.parametrize("kind", [pa.list_(pa.string(), 2), pa.list_view(pa.string()), pa.large_list(pa.string())])
def test_a_column_whose_own_name_is_like_a_path(kind):
    table = pa.table({"c[]": pa.array([["a", "b"], None, ["c", None]], kind)})
    assert texts_of(table, text_columns="c[]", id_column=None) == ["a\nb", None, "c"]


def test_many_rows_are_the_same_in_any_batch():
    rng = np.random.default_rng(1)
    lists = [[str(number)] * int(length) for number, length in enumerate(rng.integers(0, 5, 5000))]
    table = pa.table({"p": lists})
    assert texts_of(table, text_columns="p[]", id_column=None) == ["\n".join(each) or None for each in lists]
    assert select(table.to_batches()[0].slice(7, 3), ["p[]"]).column(0).to_pylist() == lists[7:10]


REFUSED = {
    "messages": "Try text_columns='messages[].content'.",
    "messages[]": "Try text_columns='messages[].content'.",
    "messages.content": "Try text_columns='messages[].content'.",
    "messages[].content[]": "'messages[].content",
    "messages[].body": "'messages[]' has role, content",
    "id[]": "no column 'id[]'",
    "nothing[].content": "no column 'nothing[].content'",
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("form", [parquet, json_lines], ids=lambda form: form.__name__)
def test_paths_that_do_not_fit(form, name, tmp_path):
    with pytest.raises(nd.errors.InputError) as caught:
        list(nd.open_documents(form(tmp_path), text_columns=name).batches())
    assert REFUSED[name] in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("form", [parquet, json_lines], ids=lambda form: form.__name__)
def test_without_a_column_of_text_a_path_is_suggested(form, tmp_path, capsys):
    path = form(tmp_path)
    assert cli.main(["dedup", str(path), "--dry-run", "-q"]) == 2
    assert "Try --text-column 'messages[].content'." in capsys.readouterr().err


def test_ids_are_no_lists(tmp_path):
    with pytest.raises(nd.errors.InputError, match="holds lists of string, not integers or strings"):
        nd.open_documents(parquet(tmp_path), text_columns="messages[].content", id_column="messages[].role")


def test_lines_whose_values_are_of_other_types(tmp_path):
    values = [
        [{"content": "a"}],
        ["b"],
        "c",
        {"content": "d"},
        [{"content": [{"text": "e"}]}],
        [{"content": 3}],
        [{"content": "f"}],
    ]
    path = tmp_path / "d.jsonl"
    path.write_text("".join(f"{json.dumps({'id': i, 'messages': value})}\n" for i, value in enumerate(values)))
    documents = flat(nd.open_documents, path, **CONTENT, on_error="skip")
    assert [batch.ids.to_pylist() for batch in documents.batches()] == [[0, 6]]
    reasons = documents.skipped.column("reason").to_pylist()
    assert [reason.partition(";")[0] for reason in reasons] == [
        "'messages[]' is not an object",
        "'messages' is not an array",
        "'messages' is not an array",
        "column 'messages[].content' holds an array, not text",
        "column 'messages[].content' holds a number, not text",
    ]
    with pytest.raises(nd.errors.InputError, match=r"line 2: 'messages\[\]' is not an object"):
        texts_of(path)


def test_a_list_of_which_the_first_hundred_lines_say_nothing(tmp_path):
    rows = [{"id": i, "p": []} for i in range(150)] + [{"id": 150, "p": ["to be"]}]
    path = tmp_path / "d.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert texts_of(path, text_columns="p[]")[-1] == "to be"


def test_a_file_whose_lists_are_all_empty_is_read(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": 1, "messages": []}\n{"id": 2, "messages": null}\n')
    assert texts_of(path) == texts_of(path, text_columns="messages[]") == [None, None]


@pytest.mark.parametrize("form", [parquet, json_lines], ids=lambda form: form.__name__)
def test_jobs_read_them_alike(form, tmp_path):
    """One run, tasks, a reference set, sketches and an index."""
    path = form(tmp_path)
    whole = flat(nd.dedup, path, **CONTENT, output=tmp_path / "one")
    assert whole.removed.column("duplicate_of").to_pylist() == [0]
    workers = nd.Workers(work_dir=tmp_path / "work", number=1, slice_bytes=100)
    report = flat(nd.dedup, path, **CONTENT, output=tmp_path / "tasks", workers=workers).report
    assert report["counts"]["removed"] == 1
    kept = [flat(nd.open_documents, tmp_path / each, **CONTENT) for each in ("one", "tasks")]
    assert [[batch.ids.to_pylist() for batch in each.batches()] for each in kept] == [[[0, 2, 3, 4, 5]]] * 2
    left = flat(nd.dedup, path, **CONTENT, against=path, only_against=True)
    assert left.removed.column("id").to_pylist() == [0, 1, 2]
    assert flat(nd.sketches.sketch, path, tmp_path / "s.parquet", **CONTENT)["null_text"] == 3
    with nd.Index.create(tmp_path / "index") as index:
        assert flat(index.add, path, **CONTENT).removed == 1
        assert flat(index.query, [path], **CONTENT)["id"].to_pylist()[:2] == [0, 1]
    assert cli.main(["explain", str(tmp_path / "one"), "1"]) == 0


def test_an_integer_outside_64_bits_is_named_by_its_row_in_the_file(tmp_path):
    """The row is counted from the beginning of the file, in whatever row group, and in whatever part a task reads."""
    rows = pa.array([[1, 2, 3], None, [4], [], [5, 6], [7, 2**63 + 5]], pa.list_(pa.uint64()))
    pq.write_table(pa.table({"tokens": rows}), tmp_path / "rows.parquet", row_group_size=2)
    with pa.ipc.new_file(tmp_path / "rows.arrow", pa.schema([("tokens", rows.type)])) as writer:
        writer.write_table(pa.table({"tokens": rows}), max_chunksize=2)
    for name in ("rows.parquet", "rows.arrow"):
        documents = nd.open_documents(tmp_path / name, reading=ReadingIntegers(text_columns="tokens"))
        for each in (documents, slices_of(documents, 1)[-1].open()):
            with pytest.raises(nd.errors.InputError, match="row 6: column 'tokens' holds the number 92233720368547758"):
                list(each.batches())
