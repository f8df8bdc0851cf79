"""Lines as units: what is cut is what the definition says, in every format, and nothing else changes."""

import gzip
import json
import re
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from flat import flat
from grids import fewer
from hypothesis import given, settings, strategies as st

import neardup_gpu as nd
from neardup_gpu import Engine, Recipe, Shingles, Unit, errors, open_documents
from neardup_gpu.cli import main
from neardup_gpu.documents.edits import Cuts, Edits
from neardup_gpu.documents.rewritten import with_cuts, write_rewritten
from neardup_gpu.documents.writing_options import Writing

dedup = partial(flat, nd.dedup)

TEXTS = [
    "Menu\nhello world one\r\nfooter text here\nlast",
    "menu!\nanother thing\n\nFooter text, here",
    "Menu\nfooter text here",
    "}\n}\n",
    "menu\n}\nnew words",
    "only this\r\nMENU",
    "ünïcode Straße\nÜNÏCODE, straße\nend\n",
]
LEFT = {
    0: TEXTS[0],
    1: "another thing\n",
    3: TEXTS[3],
    4: "}\nnew words",
    5: "only this",
    6: TEXTS[6],
}


def cut(texts, inside=True):
    """What is left of each text, None if it is dropped, by the definition."""
    seen, left = {}, []
    for number, text in enumerate(texts):
        lines = [(found[1], found[2]) for found in re.finditer(r"([^\n\r]*)(\r\n|\n|\r|$)", text) if found[0]]
        kept, words_left = [], False
        for content, ending in lines:
            words = tuple(re.findall("[a-z]+", content.lower()))
            if words in seen and (inside or seen[words] != number):
                continue
            if words:
                seen[words] = number
            kept.append((content, ending))
            words_left |= bool(words)
        if len(kept) < len(lines) and kept and lines[-1] is not kept[-1] and not lines[-1][1]:
            kept[-1] = kept[-1][0], ""
        dropped = len(kept) < len(lines) and not words_left
        left.append(None if dropped else "".join(content + ending for content, ending in kept))
    return left


@settings(deadline=None, max_examples=fewer(60))
@given(
    st.lists(st.lists(st.sampled_from([*"aB} \n\rc", "a b", "A, b!", "\r\n", "\n\n", "\0", "\f"])).map("".join)),
    st.booleans(),
)
def test_lines_are_cut_by_the_definition(texts, inside):
    documents = {"text": pa.array(texts, pa.string()), "n": list(range(len(texts)))}
    result = dedup(documents, unit="line", inside=inside)
    reader, edits = open_documents(documents), result._edits()
    left = with_cuts(pa.RecordBatch.from_pydict({"text": pa.array(texts, pa.string())}), edits.cuts, "text", None)
    found = [text if kept else None for text, kept in zip(left["text"].to_pylist(), edits.keep.tolist(), strict=True)]
    assert found == cut(texts, inside)
    assert reader.num_rows == len(texts)
    table = result.documents.to_pydict()
    assert [after > 0 for after in table["units_cut"]] == [a != b for a, b in zip(texts, found, strict=True)]
    kept = {id for id, is_kept in zip(table["id"], table["kept"], strict=True) if is_kept}
    assert {other for other in table["duplicate_of"] if other is not None} <= kept
    rows = {(row["id"], row["unit"]): row for row in result.units.to_pylist()}
    for row in rows.values():
        if row["source_id"] is not None:
            pair = row, rows[row["source_id"], row["source_unit"]]
            a, b = (texts[each["id"]].encode()[each["begin"] : each["end"]].decode() for each in pair)
            assert re.findall("[a-z]+", a.lower()) == re.findall("[a-z]+", b.lower()) != []
            assert (row["reason"] == "identical") == (a == b)
    assert result.pairs.num_rows == 0


def written(folder, kind):
    folder.mkdir()
    table = pa.table({"id": [f"d{i}" for i in range(len(TEXTS))], "text": TEXTS, "n": list(range(len(TEXTS)))})
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist()).encode()
    if kind == "parquet":
        pq.write_table(table, folder / "a.parquet", row_group_size=2)
    elif kind == "arrow":
        with pa.ipc.new_file(folder / "a.arrow", table.schema) as file:
            file.write_table(table, 3)
    elif kind == "csv":
        pa.csv.write_csv(table, folder / "a.csv")
    elif kind == "jsonl":
        (folder / "a.jsonl").write_bytes(lines)
    elif kind == "jsonl.gz":
        (folder / "a.jsonl.gz").write_bytes(gzip.compress(lines))
    elif kind == "txt":
        for row in table.to_pylist():
            (folder / f"{row['id']}.txt").write_text(row["text"], newline="")
    else:
        records = []
        for row in table.to_pylist():
            text = row["text"].encode()
            head = f"WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: {row['id']}\r\nContent-Type: text/plain\r\n"
            records.append(f"{head}Content-Length: {len(text)}\r\n\r\n".encode() + text + b"\r\n\r\n")
        (folder / "a.warc").write_bytes(b"".join(records))


KINDS = {"parquet": "parquet", "arrow": "arrow", "csv": "parquet", "jsonl": "jsonl", "jsonl.gz": "jsonl.gz"}
KINDS |= {"txt": "parquet", "warc": "parquet"}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shard_bytes", [None, "1MB"])
def test_kept_is_rewritten_in_every_format(tmp_path, kind, shard_bytes):
    if kind == "warc":
        pytest.importorskip("fastwarc")
    written(tmp_path / "in", kind)
    options = {} if kind in ("txt", "warc") else {"id_column": "id"}
    result = dedup(tmp_path / "in", unit="line", output=tmp_path / "out", shard_bytes=shard_bytes, **options)
    (file,) = (tmp_path / "out/kept").iterdir()
    assert file.name.endswith(f".{KINDS[kind]}")
    kept = open_documents(tmp_path / "out/kept")
    (batch,) = kept.batches(() if kind in ("txt", "warc") else ["n"])
    assert [batch.text[i].tobytes().decode() for i in range(batch.num_rows)] == list(LEFT.values())
    if "id" in options.values():
        assert batch.columns["n"].to_pylist() == list(LEFT)
    stored = pq.read_table(tmp_path / "out/documents.parquet")
    assert stored.equals(result.documents)
    assert stored["units"].to_pylist() == [4, 3, 2, 2, 3, 2, 3]
    assert stored["units_cut"].to_pylist() == [0, 2, 2, 0, 1, 1, 0]
    assert stored["words"].to_pylist() == [8, 6, 4, 0, 3, 3, 5]
    assert stored["words_left"].to_pylist() == [8, 2, 0, 0, 2, 2, 5]
    counts = json.loads((tmp_path / "out/report.json").read_text())["counts"]
    assert (counts["units"], counts["units_cut"], counts["removed"], counts["empty"]) == (19, 6, 1, 1)


def test_several_files_and_skipped_rows(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "x y\\nonce"}\nbroken\n{"text": "X Y\\ntwice"}\n')
    (tmp_path / "b.jsonl").write_text(
        '{"text": null}\nbroken\n{"text": "x y"}\n{"text": "twice\\nX y\\nz", "more": 1}\n'
    )
    result = dedup(tmp_path, glob="*.jsonl", unit="line", on_error="skip", output=tmp_path / "out")
    assert result.documents["kept"].to_pylist() == [True, True, True, False, True]
    lines = [line for name in "ab" for line in (tmp_path / f"out/kept/{name}.jsonl").read_text().splitlines()]
    texts = [json.loads(line)["text"] for line in lines]
    assert texts == ["x y\nonce", "twice", None, "z"]


def test_the_document_of_better_priority_keeps_the_line():
    documents = {"text": ["a b\nc", "a b\nd e f g", "c\nA B"], "date": [2, 3, 1]}
    assert dedup(documents, unit="line", keep="date").documents["units_cut"].to_pylist() == [2, 1, 0]
    assert dedup(documents, unit="line", keep="longest").documents["units_cut"].to_pylist() == [1, 0, 2]
    assert dedup(documents, unit="line").documents["units_cut"].to_pylist() == [0, 1, 2]


def test_invalid_bytes_stay_as_they_are(tmp_path):
    texts = [b"one\xff\ntwo", b"two\nthree\xfe\n", b"ONE\xff\nfour"]
    result = dedup({"text": texts}, unit="line", output=tmp_path / "out")
    assert pq.read_table(tmp_path / "out/kept")["text"].to_pylist() == [texts[0], b"three\xfe\n", b"four"]
    assert result.report["counts"]["invalid_utf8"] == 3


@pytest.mark.parametrize(
    ("name", "data", "left"),
    [
        ("a.csv", b'text\n"x y\nbad \xff"\n"X y\nz"\n', [b"x y\nbad \xff", b"z"]),
        ("a.jsonl", b'{"text": "x y\\nbad \xff"}\n{"text": "x y\\nz \xff"}\n', [b"x y\nbad \xff", b"z \xff"]),
        ("a.txt", b"x y\nbad \xff\n", [b"x y\nbad \xff\n"]),
    ],
)
def test_invalid_bytes_in_files(tmp_path, name, data, left):
    (tmp_path / name).write_bytes(data)
    dedup(tmp_path / name, unit="line", output=tmp_path / "out")
    (batch,) = open_documents(tmp_path / "out/kept").batches()
    assert [row.tobytes() for row in batch.text] == left


def test_lines_of_json_change_only_in_the_text_that_is_cut(tmp_path):
    rows = r"""{"id":"a", "text":"once\u00e9 \"1\"\nmenu, please\nend","n":1.50,"x":[1,"a",{"text":"menu"}]}
{"n": 1e5, "id": "b", "text": "caf\u00e9 \ud83d\ude00\n<MENU\u002c please\r\n>two \/ \ud800"}
{"text": "<Menu please\n>b c| d", "seams": "16", "repeated": [{"begin": 12, "end": 15}], "id": "c"}
{"id": "d", "big": 123456789012345678901234567890, "text": null}
""".replace("\n", "\r\n")
    (tmp_path / "a.jsonl").write_bytes(re.sub("[<>]", "", rows).encode())
    expected = re.sub("<.*>", "", rows).replace('"16"', '"0 4"').replace('12, "end": 15', '0, "end": 3')
    for shard_bytes in (None, "1MB"):
        out = tmp_path / f"out{shard_bytes}"
        dedup(tmp_path / "a.jsonl", id_column="id", unit="line", output=out, shard_bytes=shard_bytes)
        (file,) = (out / "kept").iterdir()
        assert file.read_bytes().decode() == expected


def test_seams_of_an_earlier_run_move_with_the_text(tmp_path):
    table = {"text": ["a b\nx", "a b\nc é| d"], "seams": ["", "8"]}
    dedup(table, unit="line", text_columns="text", output=tmp_path / "out")
    assert pq.read_table(tmp_path / "out/kept").to_pylist()[1] == {"text": "c é| d", "seams": "0 4"}
    dedup({**table, "seams": ["mine", None]}, unit="line", text_columns="text", output=tmp_path / "mine")
    assert pq.read_table(tmp_path / "mine/kept")["seams"].to_pylist() == ["mine", None]


def test_bytes_in_another_encoding_become_utf_8(tmp_path):
    texts = ["Привет\nмир".encode("cp1251"), "привет\nдругой".encode("cp1251")]
    dedup({"text": texts}, unit="line", encoding="cp1251", output=tmp_path / "out")
    assert pq.read_table(tmp_path / "out/kept")["text"].to_pylist()[1].decode() == "другой"


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string()), pa.binary()])
def test_the_type_of_the_column_stays(tmp_path, kind):
    table = pa.table({"text": pa.array([b"a\nb", None, b"c", b"a\nd"]).cast(pa.string()).cast(kind)})
    dedup(table, unit="line", output=tmp_path / "out")
    dedup(table, output=tmp_path / "whole")
    kept, whole = (pq.read_table(tmp_path / name / "kept") for name in ("out", "whole"))
    assert kept.schema == whole.schema
    assert kept["text"].cast(pa.string()).to_pylist() == ["a\nb", None, "c", "d"]


def test_edits_over_skipped_rows_and_files():
    edits = Edits(np.array([True, False, True]), Cuts(np.array([0, 2, 2, 3]), np.array([0, 4, 1]), np.array([2, 5, 3])))
    part = edits.of(1, 3)
    assert part.cuts.offsets.tolist() == [0, 0, 1]
    assert part.cuts_of_kept().begins.tolist() == [1]
    batch = pa.RecordBatch.from_pydict({"text": ["abcdef", "xyz", None]})
    spans = edits.cuts._replace(offsets=np.array([0, 2, 3, 3]))
    assert with_cuts(batch, spans, "text", None)["text"].to_pylist() == ["cdf", "x", None]
    assert with_cuts(batch.slice(1), spans.of(1, 3), "text", None)["text"].to_pylist() == ["x", None]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"method": "minhash", "threshold": 1}, "unit 'line' and method: at threshold 1 only equal lines are found"),
        ({"shingle_size": 3}, "unit 'line' and shingle_size"),
        ({"length_ratio": 0.5}, "unit 'line' and length_ratio: at threshold 1"),
        ({"empty": "equal"}, "unit 'line' and empty: a document without text has no lines"),
        ({"cluster": "components"}, "unit 'line' and cluster"),
        ({"unit": "page"}, "unit must be one of document, paragraph, line, sentence, sentences:N, .* not 'page'"),
        ({"unit": "window:50/200"}, "the step is above the size"),
        ({"unit": "window"}, "unit must be one of"),
        ({"unit": "line:3"}, "unit must be one of"),
        ({"unit": "window:0"}, "unit must be one of"),
        ({"unit": "document", "min_words": 3}, "min_words: says which parts of documents are cut"),
        ({"keep_copies": 0}, "keep_copies"),
        ({"inside": "no"}, "inside"),
    ],
)
def test_what_is_not_supported_is_refused_in_one_line(options, told):
    with pytest.raises((errors.ParameterError, errors.ArgumentTypeError), match=told) as found:
        dedup({"text": ["a\nb"], "title": ["c"]}, **{"unit": "line", **options})
    assert "\n" not in str(found.value)


def test_other_jobs_refuse_the_recipe(tmp_path):
    recipe = Recipe(unit=Unit("window:20/5", min_words=4, inside=True), threshold=0.5)
    assert Recipe.from_json(recipe.to_json()) == recipe
    with pytest.raises(errors.ParameterError, match="unit 'line' and tokens 'ids'"):
        Recipe(unit="line", shingles=Shingles(tokens="ids"))
    recipe = Recipe(unit="line")
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert "unit" not in Recipe().describe()
    with pytest.raises(errors.ParameterError, match="is for dedup"):
        nd.audit({"id": [1], "text": ["a"]}, kept={"id": [1]}, id_column="id", recipe=recipe)
    nested = [{"page": {"text": "a\nb"}}]
    (tmp_path / "nested.jsonl").write_text(json.dumps(nested[0]))
    for source in (nested, tmp_path / "nested.jsonl"):
        with pytest.raises(errors.ParameterError, match="not inside another one"):
            dedup(source, text_columns="page.text", unit="line")


def test_command_line(tmp_path, capsys):
    written(tmp_path / "in", "jsonl")
    options = ["--id-column", "id", "--report", "-o", str(tmp_path / "out")]
    assert main(["dedup", str(tmp_path / "in"), "--unit", "line", *options]) == 0
    printed = capsys.readouterr().out
    assert "19: 6 (31.6%) cut as copies" in printed and printed.endswith("out d1\n")
    assert (tmp_path / "out/report.html").exists()
    assert main(["explain", str(tmp_path / "out"), "d2"]) == 0
    assert main(["info", str(tmp_path / "out")]) == 0
    assert main(["dedup", str(tmp_path / "in"), "--unit", "line", "--threshold", "0.5", "--dry-run"]) == 0


def test_kept_dataset():
    pytest.importorskip("datasets")
    assert dedup(texts=TEXTS, unit="line").kept_dataset()["text"][:] == list(LEFT.values())


def test_a_source_that_changed_is_an_error(tmp_path):
    written(tmp_path / "in", "parquet")
    documents = open_documents(tmp_path / "in", id_column="id")
    result = dedup(tmp_path / "in", id_column="id", unit="line")
    for _ in documents.batches():
        pass
    table = pq.read_table(tmp_path / "in/a.parquet")
    pq.write_table(pa.concat_tables([table, table]), tmp_path / "in/a.parquet")
    with pytest.raises(errors.InputError, match="has changed"):
        write_rewritten(documents, tmp_path / "kept", result._edits(), Writing(output_format="parquet"))


def test_pages_in_a_folder_of_text_files_are_cut_as_their_visible_text(tmp_path):
    for name, body in (("a", "<p>Menu</p><p>first</p>"), ("b", "<p>menu</p><p>second</p>")):
        (tmp_path / f"{name}.html").write_text(f"<html><body>{body}</body></html>")
    dedup(tmp_path, unit="line", output=tmp_path / "out")
    first, second = pq.read_table(tmp_path / "out/kept")["text"].to_pylist()
    assert re.findall("[a-z]+", first.lower()) == ["menu", "first"]
    assert re.findall("[a-z]+", second.lower()) == ["second"]


def test_blocks_of_a_page_are_paragraphs(tmp_path):
    """Loose text beside a block is a paragraph of its own; a line break divides none."""
    pages = [
        "Loose words<p>menu of the<br>site</p>and more<ul><li>one<li>two</ul>",
        "<div>Menu of the<br/>site</div>x y",
    ]
    found = dedup(pa.table({"text": pages}), html=True, unit="paragraph", threshold=1, output=tmp_path / "out")
    rows = found.units.sort_by([("id", "ascending"), ("unit", "ascending")])
    assert rows["source_id"].to_pylist() == [None] * 5 + [0, None]
    kept = pq.read_table(tmp_path / "out/kept")["extracted_text"].to_pylist()
    assert kept == ["Loose words\n\nmenu of the\nsite\n\nand more\n\n\none\n\ntwo\n\n", "\nx y"]


def test_a_stream_and_ids_alone(tmp_path):
    table = pa.table({"text": TEXTS})
    with pytest.raises(errors.InputError, match="a stream cannot be read again"):
        dedup(table.to_reader(), unit="line", output=tmp_path / "out")
    result = dedup(table.to_reader(), unit="line", ids_only=True, output=tmp_path / "ids")
    assert pq.read_table(tmp_path / "ids/kept_ids.parquet")["id"].to_pylist() == list(LEFT)
    assert result.report["written"] == {"ids_only": True}
    for engine in ("reference", Engine(threads=1), Engine(threads=2)):
        again = dedup(table, unit="line", engine=engine, batch_bytes=1)
        assert again.documents.equals(result.documents)
        assert again.pairs.equals(result.pairs)


@pytest.mark.parametrize("kind", ["parquet", "jsonl", "csv"])
@pytest.mark.parametrize("shard_bytes", [None, "1MB"])
def test_pages_and_joined_columns_are_written_as_extracted_text(tmp_path, kind, shard_bytes):
    rows = [
        {"id": "a", "title": "Menu", "text": "<p>All rights reserved</p><p>The river <b>rose</b>.</p>"},
        {"id": "b", "title": "Bridges", "text": "<p>all rights, reserved</p><p>The bridge holds.</p>"},
        {"id": "c", "title": None, "text": "<p>The river rose</p>"},
    ]
    table = pa.Table.from_pylist(rows)
    if kind == "parquet":
        pq.write_table(table, tmp_path / "in.parquet")
    elif kind == "csv":
        pa.csv.write_csv(table, tmp_path / "in.csv")
    else:
        (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    options = {"id_column": "id", "unit": "paragraph", "output_format": kind if kind != "csv" else "jsonl"}
    options |= {"shard_bytes": shard_bytes, "text_columns": ["title", "text"], "html": True}
    result = dedup(tmp_path / f"in.{kind}", output=tmp_path / "out", **options)
    kept = open_documents(tmp_path / "out/kept", text_columns=["extracted_text"])
    (batch,) = kept.batches(["id", "text"])
    texts = [batch.text[i].tobytes().decode() for i in range(batch.num_rows)]
    assert [text.split("\n\n\n\n")[0].strip() for text in texts] == ["Menu", "Bridges"]
    assert [re.findall("[A-Za-z]+", text)[1:] for text in texts] == [
        ["All", "rights", "reserved", "The", "river", "rose"],
        ["The", "bridge", "holds"],
    ]
    assert batch.columns["text"].to_pylist() == [row["text"] for row in rows[:2]]
    assert result.documents["kept"].to_pylist() == [True, True, False]
    again = dedup(tmp_path / "out/kept", id_column="id", text_columns=["extracted_text"], unit="paragraph")
    assert again.report["counts"]["units_cut"] == 0
    assert again.units.select(["begin", "end"]).num_rows == 5
    assert result.explain("b").words[1][0] == "removed"
    with pytest.raises(errors.ParameterError, match="'extracted_text', which is there already"):
        dedup(tmp_path / "out/kept", id_column="id", text_columns=["title", "text"], unit="paragraph")


def test_joined_columns_that_are_not_utf_8(tmp_path):
    documents = {"a": [b"x\xff", b"one"], "b": [b"one", b"x"]}
    result = dedup(documents, text_columns=["a", "b"], unit="line")
    assert result.units["kept"].to_pylist() == [True, True, False, True]
    with pytest.raises(errors.InputError, match="holds text that is not UTF-8"):
        dedup(documents, text_columns=["a", "b"], unit="line", output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_part_that_is_too_short_has_no_source_in_the_reference_set():
    recipe = Recipe(unit=Unit("line", min_words=2))
    reference = {"id": ["k"], "text": ["yes\nthe ferry is late"]}
    result = nd.dedup(
        {"id": ["a"], "text": ["yes\nThe ferry is late\nno more"]}, id_column="id", against=reference, recipe=recipe
    )
    rows = result.units.select(["kept", "source_id", "copies", "reason", "in_reference"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        (True, None, 1, None, False),
        (False, "k", 2, "same_words", True),
        (True, None, 1, None, False),
    ]
