"""jsonlines.py: a line is accepted or refused, and read, alike wherever it stands."""

import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from grids import fewer
from hypothesis import example, given, settings, strategies as st

import neardup_gpu as nd
from neardup_gpu import Reading
from neardup_gpu.documents import jsonlines, open_documents
from neardup_gpu.documents.columns import is_string
from neardup_gpu.documents.json_blocks import Block
from neardup_gpu.documents.json_cuts import with_members
from neardup_gpu.documents.rereading import raw_texts
from neardup_gpu.errors import InputError

FILLER = b'{"id": 5, "text": "plain", "n": 7}\n'
PLACES = [0, 100, 150]


def outcome(path, line, place, on_error="stop"):
    """What becomes of a line among ordinary ones: (id, text, n), or that it is refused or skipped."""
    path.write_bytes(FILLER * place + line + b"\n" + FILLER * (200 - place))
    try:
        documents = open_documents(path, id_column="id", text_columns="text", reading=Reading(on_error=on_error))
        rows = []
        for batch in documents.batches(["n"]):
            n = batch.columns["n"]
            n = n.cast(pa.large_binary()) if is_string(n.type) else n  # which may hold what is not Unicode
            columns = [batch.ids.to_pylist(), list(batch.text), n.to_pylist()]
            rows += [(i, t.tobytes(), float(n) if type(n) is int else n) for i, t, n in zip(*columns, strict=True)]
    except InputError as error:
        assert str(error).count("\n") == 0
        return "refused"
    if len(rows) == 200:
        assert documents.skipped["row"].to_pylist() == [place + 1]
        return "skipped"
    i, text, n = rows[place]
    return i, text, "nan" if type(n) is float and math.isnan(n) else n


ODD_NUMBERS = "Inf -Inf -NaN NaN Infinity 1e999 -1e999 1E400 -0 0.0 1. .5 01 +1 0x10 1_000 1e-999 18446744073709551615"
ODD_STRINGS = [r"\ud800", r"\udc00\ud800", r"\ud83d\ude42", r"\x", r"\u00e", r"\/", r"\"", r"\\", "a\tb", "\x00", "[ {"]
numbers = st.one_of(
    st.integers(-(2**65), 2**65).map(str),
    st.floats().map(json.dumps),
    st.sampled_from([*ODD_NUMBERS.split(), "9" * 400, "9" * 5000, "-" + "9" * 5000]),
)
strings = st.one_of(
    st.text().map(json.dumps),
    st.text().map(lambda s: json.dumps(s, ensure_ascii=False)),
    st.sampled_from([*(f'"{word}"' for word in ODD_STRINGS), '"a', "'a'"]),
)
deep = st.sampled_from([1, 400, 498, 499, 500, 501, 1100, 3000]).flatmap(
    lambda n: st.sampled_from(["[" * n + "]" * n, '{"a":' * n + "1" + "}" * n, "[" * n, '"' + "[" * n + '"'])
)
values = st.one_of(numbers, strings, deep, st.sampled_from(["null", "true", "nul", "TRUE", "[]", "{}", "[1,]", "[,]"]))
keys = st.one_of(
    st.sampled_from(['"id"', '"text"', '"n"', '"x"', '"\\u0069d"', '"\\ud800"', '"\\u006e"', '""', "id"]), strings
)


@st.composite
def lines(draw):
    """An object on one line that is right in most parts."""
    parts = {'"id"': "5", '"text"': '"a b"', '"n"': "7"}
    for key in draw(st.lists(st.sampled_from(list(parts)), max_size=2)):
        parts[key] = draw(values)
    members = [f"{key}: {value}" for key, value in parts.items()]
    for _ in range(draw(st.integers(0, 2))):
        members.insert(draw(st.integers(0, len(members))), f"{draw(keys)}: {draw(values)}")
    line = draw(st.sampled_from(["{%s}", "{%s,}", "{%s}{}", "[%s]", "{%s} ", "\ufeff{%s}", "{%s", " {%s}", "{%s}}"]))
    raw = (line % ", ".join(members)).replace("\n", "").replace("\r", "").encode("utf-8", "surrogatepass")
    cut = draw(st.integers(0, len(raw)))
    return draw(st.sampled_from([raw] * 8 + [raw[:cut] + b"\xff" + raw[cut:], raw[:cut] + raw[cut + 1 :]]))


@settings(max_examples=fewer(60), deadline=None)
@given(lines())
@example(b'{"id": 9223372036854775808, "text": "a"}')
@example(b'{"id": 1, "text": "a", "x": %s%s}' % (b"[" * 200_000, b"]" * 200_000))
@example(b'{"id": 1, "text": "a", "x": Inf}')
@example(b'{"id": 1, "text": "a", "x": %s}' % (b"9" * 5000))
@example(b'{"id": 1, "text": "a", "n": -NaN}')
@example(b'{"id": 1, "text": "a", "n": 9223372036854775808}')
@example(b'\xef\xbb\xbf{"id": 1, "text": "a"}')
@example(b'{"id": 1, "text": "a"}\x00}')
@example(b'{"id": 1, "text": 5}')
@example(b'{"id": "1", "text": "a"}')
@example(b'{"id": 1, "text": "a", "n": "1"}')
@example(b'{"id": 5, "text": "a b", "n": "\xff"}')
def test_a_line_is_judged_alike_anywhere(tmp_path_factory, line):
    if not line.strip(b" \t\r\n\xef\xbb\xbf"):
        return
    path = tmp_path_factory.mktemp("lines") / "x.jsonl"
    for on_error in ("stop", "skip"):
        found = [outcome(path, line, place, on_error) for place in PLACES]
        assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("line", "accepted"),
    [
        (b'{"id": 1, "text": "a", "x": %s%s}' % (b"[" * 499, b"]" * 499), True),
        (b'{"id": 1, "text": "a", "x": %s%s}' % (b"[" * 500, b"]" * 500), False),
        (b'{"id": 1, "text": "%s"}' % (b"[{" * 5000), True),
        (b'{"id": 18446744073709551615, "text": "a"}', True),
        (b'{"id": 18446744073709551616, "text": "a"}', False),
    ],
)
def test_in_the_middle_of_a_block_of_megabytes(tmp_path, line, accepted):
    filler = b'{"id": 5, "text": "%s"}\n' % (b"word " * 200)
    for before, after in ((0, 5000), (2500, 2500), (5000, 0)):
        (tmp_path / "x.jsonl").write_bytes(filler * before + line + b"\n" + filler * after)
        try:
            batches = list(open_documents(tmp_path / "x.jsonl", id_column="id").batches())
            assert sum(batch.num_rows for batch in batches) == 5001
            assert accepted
        except InputError as error:
            assert not accepted and f"line {before + 1}:" in str(error)


def test_negative_and_wide_ids_do_not_meet(tmp_path):
    for first, second in (("-1", str(2**63)), (str(2**63), "-1")):
        for between in (0, 200):
            middle = '{"id": 1, "text": "a"}\n' * between
            (tmp_path / "x.jsonl").write_text(f'{{"id": {first}, "text": "a"}}\n{middle}{{"id": {second}, "text": ""}}')
            with pytest.raises(InputError, match=r"x\.jsonl: column 'id' holds negative integers and integers from 2"):
                list(open_documents(tmp_path / "x.jsonl", id_column="id").batches())


def test_integers_that_widen_between_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(jsonlines, "BLOCK_BYTES", 100)
    numbers = [*range(300), 2**63, 2**64 - 1, *range(300, 600)]
    rows = [json.dumps({"id": number, "text": "a", "n": number}) for number in numbers]
    (tmp_path / "x.jsonl").write_text("\n".join(rows))
    for max_bytes in (1, 5000, 1 << 20):
        batches = list(open_documents(tmp_path / "x.jsonl", id_column="id").batches(["n"], max_bytes=max_bytes))
        assert [i for batch in batches for i in batch.ids.to_pylist()] == numbers
        assert {batch.columns["n"].type for batch in batches} == {pa.uint64()}
        assert [i for batch in batches for i in batch.columns["n"].to_pylist()] == numbers


def test_texts_are_found_by_ids_of_int64_and_of_uint64(tmp_path):
    rows = [json.dumps({"id": number, "text": "a" * 9000 + str(number)}) for number in (*range(2000), 2**63, 2**64 - 1)]
    (tmp_path / "x.jsonl").write_text("\n".join(rows))
    documents = open_documents(tmp_path / "x.jsonl", id_column="id")
    assert len({batch.ids.type for batch in documents.batches()}) == 2
    found = raw_texts(documents, [1, 2**63])
    assert {id: text.lstrip(b"a") for id, text in found.items()} == {1: b"1", 2**63: str(2**63).encode()}


@pytest.mark.parametrize("name", ["text", "date", "n"])
def test_a_column_that_begins_further_down(tmp_path, name):
    filler = [json.dumps({"id": i, "other": 1} | ({} if name == "text" else {"text": "a"})) for i in range(150)]
    late = json.dumps({"id": 150, "text": "b", "date": "2020", "n": 0.5})
    (tmp_path / "x.jsonl").write_text("\n".join([*filler, late]))
    columns = [] if name == "text" else [name]
    batches = list(open_documents(tmp_path / "x.jsonl", id_column="id").batches(columns))
    assert sum(batch.num_rows for batch in batches) == 151
    assert batches[-1].text[batches[-1].num_rows - 1].tobytes() == b"b"
    for each in columns:
        assert batches[-1].columns[each].to_pylist()[-2:] == [None, "2020" if each == "date" else 0.5]


def test_lines_have_a_bound(tmp_path):
    long = b'{"id": 1, "text": "%s"}' % (b"x" * 100_000)
    most = len(long)
    for place in (0, 150):
        (tmp_path / "x.jsonl").write_bytes(FILLER * place + long + b"\n" + FILLER * 3)
        for bound, fits in ((most, True), (most - 1, False), (1000, False)):
            try:
                documents = open_documents(
                    tmp_path / "x.jsonl", id_column="id", reading=Reading(max_document_bytes=bound)
                )
                assert sum(batch.num_rows for batch in documents.batches()) == place + 4
                assert fits
            except InputError as error:
                assert not fits and f"line {place + 1}: longer than {bound:,} bytes" in str(error)
        documents = open_documents(
            tmp_path / "x.jsonl", id_column="id", reading=Reading(max_document_bytes=1000, on_error="skip")
        )
        assert sum(batch.num_rows for batch in documents.batches()) == place + 3
        assert documents.skipped["row"].to_pylist() == [place + 1]


@pytest.mark.parametrize("block_bytes", [50, 1 << 20])
def test_skipped_lines_leave_the_others_as_they_were(tmp_path, monkeypatch, block_bytes):
    monkeypatch.setattr(jsonlines, "BLOCK_BYTES", block_bytes)
    rows, bad = [], []
    for i in range(400):
        if i % 7 == 3:
            bad.append(2 * i + 1)
            rows.append([b"{", b"x" * 3000, b'{"text": 5, "id": 1}', b'{"text": "a", "id": null}'][i % 4])
        else:
            rows.append(b'{"id": %d, "text": "a%d"}' % (i, i))
    (tmp_path / "x.jsonl").write_bytes(b"\n\n".join(rows) + b"\n")
    for max_bytes in (1, 1000, 1 << 20):
        documents = open_documents(
            tmp_path / "x.jsonl", id_column="id", reading=Reading(on_error="skip", max_document_bytes=2000)
        )
        ids = [i for batch in documents.batches(max_bytes=max_bytes) for i in batch.ids.to_pylist()]
        assert ids == [i for i in range(400) if i % 7 != 3]
        assert documents.skipped["row"].to_pylist() == bad
        assert set(documents.skipped["rows"].to_pylist()) == {1}
        keep = np.array(ids) % 2 == 0
        documents.write_kept(tmp_path / "kept", keep)
        kept = (tmp_path / "kept/x.jsonl").read_bytes()
        assert kept == b"".join(rows[i] + b"\n" for i in range(400) if i % 7 != 3 and i % 2 == 0)
        numbered = open_documents(
            tmp_path / "x.jsonl", text_columns="text", reading=Reading(on_error="skip", max_document_bytes=2000)
        )
        found = [i for batch in numbered.batches(max_bytes=max_bytes) for i in batch.ids.to_pylist()]
        # There, a null id is no mistake.
        assert found == [i for i in range(400) if i % 7 != 3 or i % 4 == 3]


TWICE = {
    "text": ['{"text": "a", "text": "b"}', '{"text": "a", "te\\u0078t": "b"}', '{"text": null, "text": null}'],
    "m.text": [
        '{"m": {"text": "a", "text": "b"}}',
        '{"m": {"text": "a"}, "m": {"x": 1}}',
        '{"m.text": "a", "m.text": "b"}',
    ],
}


@pytest.mark.parametrize("column, line", [(column, line) for column in TWICE for line in TWICE[column]])
@pytest.mark.parametrize("neighbours", [1, 600])
def test_a_column_that_stands_twice_in_a_line_is_refused(column, line, neighbours, tmp_path):
    good = '{"text": "good", "m": {"text": "good"}, "more": 1, "more": 2}\n'
    path = tmp_path / "d.jsonl"
    path.write_text(good * neighbours + line + "\n" + good)
    said = rf"line {neighbours + 1}: several members are called '(m|text|m\.text)'"
    with pytest.raises(InputError, match=said):
        list(open_documents(path, text_columns=column).batches())
    documents = open_documents(path, text_columns=column, reading=Reading(on_error="skip"))
    assert sum(batch.num_rows for batch in documents.batches()) == neighbours + 1
    assert documents.skipped["row"].to_pylist() == [neighbours + 1]


def test_of_another_name_that_stands_twice_the_last_value_counts(tmp_path):
    lines = [
        '{"text": "a", "n": 1, "n": null, "m": {"x": 1, "x": 2}}',
        '{"n": 1, "text": "b", "m": {}, "n": 2, "m": {"x": 3}}',
    ]
    (tmp_path / "d.jsonl").write_text("\n".join(lines))
    nd.dedup(tmp_path / "d.jsonl", output=tmp_path / "out", writing=nd.Writing(output_format="parquet"))
    assert pq.read_table(tmp_path / "out/kept").to_pylist() == [json.loads(line) for line in lines]


def test_escaped_halves_of_characters_never_become_bytes(tmp_path):
    path = tmp_path / "d.jsonl"
    path.write_bytes(
        b'{"text": "caf\\udcc3\\uDCA9"}\n'
        b'{"text": "caf\xc3\xa9 \\ud83d\\udc80"}\n'  # a whole character, whose second half looks like such an escape
        b'{"text": "caf\xc3 \\\\udcc3"}\n'  # a backslash, and letters
    )
    (batch,) = open_documents(path).batches()
    assert [batch.text[row].tobytes() for row in range(3)] == [
        "caf\ufffd\ufffd".encode(),
        "café \U0001f480".encode(),
        b"caf\xc3 \\udcc3",
    ]


written = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text('a"\\\u00e9 {}[],:')),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text('sea"\\{', max_size=5), inner)),
    max_leaves=6,
)
names = st.one_of(st.just("seams"), st.text('sea"\\{:, ', max_size=5))


blanks = st.sampled_from(["", " "])
values_to_add = st.one_of(st.none(), st.text('a"\\ \u00e9', max_size=4))


@given(st.lists(st.tuples(st.dictionaries(names, written), st.booleans(), blanks, blanks), min_size=1), st.data())
def test_new_members_are_those_of_python(rows, data):
    """New members replace those of their names, in place, or become the last ones; all other bytes stay."""
    lines = [
        begin + json.dumps(row, ensure_ascii=ascii, separators=(f"{blank},", f":{blank}"))[:-1] + blank + "}" + blank
        for row, ascii, begin, blank in rows
    ]
    block = Block.of("\n".join(lines).encode(), 1, {})
    columns = {name: [data.draw(values_to_add) for _ in rows] for name in ("seams", "e")}
    found = with_members(block, {name: pa.array(values, pa.string()) for name, values in columns.items()})
    for number, (row, *_) in enumerate(rows):
        line, expected = found.row(number).decode(), dict(row)
        for name, values in columns.items():
            if values[number] is not None or name in row:
                expected[name] = values[number]
        assert list(json.loads(line).items()) == list(expected.items())
        if expected == row and "seams" not in row and "e" not in row:
            assert line == lines[number].rstrip()


def test_a_member_is_found_however_its_name_is_written():
    block = Block.of(b'{"se\\u0061ms": "1", "a": 2}\n', 1, {})
    assert with_members(block, {"seams": pa.array(["3"])}).data == b'{"se\\u0061ms": "3", "a": 2}\n'


@pytest.mark.parametrize("nothing", ["null", "[]", "[null]", '{"x": null}'])
def test_a_column_of_nulls_has_the_type_of_other_blocks_and_files(nothing, tmp_path):
    value = nothing.replace("null", "2") if "null" in nothing else "[2]"
    files = {"a": f'{{"text": "a", "n": {nothing}, "o": null}}\n', "b": f'{{"text": "b", "n": {value}, "o": null}}'}
    for name, text in files.items():
        (tmp_path / f"{name}.jsonl").write_text(text)
    (tmp_path / "one.jsonl").write_text("".join(files.values()))
    for shard_bytes in (None, "1MB"):
        writing = nd.Writing(output_format="parquet", shard_bytes=shard_bytes, overwrite=True)
        for source in ([tmp_path / "a.jsonl", tmp_path / "b.jsonl"], tmp_path / "one.jsonl"):
            nd.dedup(source, output=tmp_path / "out", writing=writing)
            table = pq.read_table(tmp_path / "out/kept")
            assert table.to_pylist() == [json.loads(line) for line in files.values()]
            assert table.schema.field("o").type == pa.string()
