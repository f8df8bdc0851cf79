"""Reading: inputs that change, lines that are odd, files that lie, are damaged, encrypted or without end."""

import base64
import gzip
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from .judge import WORDS, case

DEDUP = ["dedup", "--id-column", "id", "-o", "out"]
CHANGED = "has changed since it was first read"


def changing(source, code, stage="write"):
    """Statements that run dedup, and `code` when a stage begins."""
    return (
        "import os\n"
        "def change(stage, done, total):\n"
        f"    if stage == {stage!r} and done == 0:\n"
        f"        {code}\n"
        f"nd.dedup({source!r}, output='out', progress=change)\n"
    )


def text_of(i):
    """Thirty words that no other document has."""
    return " ".join(f"{word}{i}x{j}" for j, word in enumerate(WORDS * 2))


def table(num=60, **columns):
    """Documents a0, a1, ...; the last is a near-duplicate of the fourth."""
    texts = [text_of(i) for i in range(num)]
    texts[-1] = f"{texts[3]} amended"
    return pa.table({"id": [f"a{i}" for i in range(num)], "text": texts, **columns})


def arrow(path, data, **options):
    opener = pa.ipc.new_stream if path.suffix == ".arrows" else pa.ipc.new_file
    with opener(str(path), data.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(data, max_chunksize=20)
    return path


def patched(path, old, new, count=1):
    """Bytes replaced inside a file."""
    data = path.read_bytes()
    assert old in data and len(old) == len(new), path
    path.write_bytes(data.replace(old, new, count))


def offsets(values):
    """Arrow's offsets of strings, as they lie in a file."""
    return np.cumsum([0] + [len(value.encode()) for value in values]).astype(np.int32).tobytes()


def skipped_of(box, name="out/skipped.parquet"):
    return pq.read_table(box / name).to_pylist()


def kept_ids(box, name="out/kept"):
    """Ids of the kept rows, whatever the parts are called."""
    ids = []
    for path in sorted(box.path.glob(f"{name}/**/*")):
        if path.suffix == ".parquet":
            ids += pq.read_table(path)["id"].to_pylist()
        elif path.suffix == ".jsonl":
            ids += [json.loads(line)["id"] for line in path.read_text().splitlines()]
        elif path.suffix == ".arrow":
            ids += pa.ipc.open_file(path).read_all()["id"].to_pylist()
    return ids


# ---------------------------------------------------------------------------------------- inputs that change


@case(says=("d.parquet", CHANGED), writes=("d.parquet",))
def parquet_is_rewritten_between_the_passes(box):
    box.documents("d.parquet")
    rows = [{"id": f"z{i}", "text": "other"} for i in range(6)]
    return changing("d.parquet", f"pq.write_table(pa.Table.from_pylist({rows!r}), 'd.parquet')")


@case(says=("d.parquet", CHANGED), writes=("d.parquet",))
def parquet_with_the_same_size_and_time(box):
    path, rows = box / "d.parquet", box.rows()
    pq.write_table(pa.Table.from_pylist(rows), path, compression="none")
    rows[1]["text"] = rows[1]["text"].replace("bill", "lilb")
    pq.write_table(pa.Table.from_pylist(rows), box / "other", compression="none")
    assert (box / "other").stat().st_size == path.stat().st_size
    keep = "s = os.stat('d.parquet'); "
    write = "f = open('d.parquet', 'r+b'); f.write(open('other', 'rb').read()); f.close(); "
    return changing("d.parquet", f"{keep}{write}os.utime('d.parquet', ns=(s.st_atime_ns, s.st_mtime_ns))")


@case(says=("d.jsonl", CHANGED), writes=("d.jsonl",))
def json_lines_of_the_same_length(box):
    box.documents("d.jsonl")
    return changing("d.jsonl", "t = Path('d.jsonl').read_text(); Path('d.jsonl').write_text(t.replace('bill', 'lilb'))")


@case(says=("d.jsonl", CHANGED), writes=("d.jsonl",))
def json_lines_change_before_they_are_first_read(box):
    box.documents("d.jsonl")
    code = "Path('d.jsonl').write_text(Path('d.jsonl').read_text() + '{}')"
    return changing("d.jsonl", code, stage="sketch")


@case(says=("d.arrow", CHANGED), writes=("d.arrow", "other.arrow"))
def arrow_replaced_by_another_file_of_the_same_size_and_time(box):
    box.documents("d.arrow")
    box.write("other.arrow", (box / "d.arrow").read_bytes().replace(b"bill", b"lilb"))
    keep = "s = os.stat('d.arrow'); os.utime('other.arrow', ns=(s.st_atime_ns, s.st_mtime_ns)); "
    return changing("d.arrow", f"{keep}os.rename('other.arrow', 'd.arrow')")


@case(says=("texts/b.txt", CHANGED), writes=("texts",))
def a_text_file_is_replaced(box):
    for name in "abc":
        box.write(f"texts/{name}.txt", text_of(ord(name)))
    return changing("texts", "Path('texts/b.txt').write_text('something else')")


@case(says=("d.jsonl.gz", CHANGED), writes=("d.jsonl.gz",))
def a_compressed_file_grows(box):
    box.write("d.jsonl.gz", gzip.compress(box.documents("x.jsonl").read_bytes()))
    return changing("d.jsonl.gz", "f = open('d.jsonl.gz', 'ab'); f.write(b'0'); f.close()")


@case(says=("two/b.arrows", "no such file"), writes=("two",))
def a_stream_vanishes_between_the_passes(box):
    for name in "ab":
        arrow(box.write(f"two/{name}.arrows", b""), table(4))
    return changing("two", "os.remove('two/b.arrows')")


@case(says=("d.parquet", CHANGED), writes=("d.parquet",))
def a_uri_of_a_file_that_is_rewritten(box):
    uri = box.documents("d.parquet").as_uri()
    return changing(uri, "pq.write_table(pq.read_table('d.parquet').slice(1), 'd.parquet')")


# ---------------------------------------------------------------------------------------- lines, wherever they stand


def with_line(box, line, place, num=160):
    """A file of ordinary lines and one other."""
    lines = [json.dumps({"id": i, "text": text_of(i), "n": i}).encode() for i in range(num)]
    lines[place] = line
    return box.write("d.jsonl", b"\n".join(lines) + b"\n")


@case(status=0, writes="out")
def an_id_of_64_bits_behind_a_hundred_lines(box):
    with_line(box, b'{"id": 18446744073709551615, "text": "a b c d e f g"}', 150)
    return [*DEDUP, "d.jsonl"]


@case(says=("column 'id' holds negative integers and integers from 2**63 on", "strings"))
def negative_and_64_bit_ids(box):
    with_line(box, b'{"id": 18446744073709551615, "text": "a b"}\n{"id": -1, "text": "b c"}', 150)
    return [*DEDUP, "d.jsonl"]


@case(status=0, writes="out")
def a_keep_column_of_64_bits_behind_a_hundred_lines(box):
    with_line(box, b'{"id": 1000, "text": "a b", "n": 9223372036854775808}', 150)
    return [*DEDUP, "d.jsonl", "--keep", "n:desc"]


DEEP = b'{"id": 1000, "text": "a b", "x": %s%s}' % (b"[" * 200_000, b"]" * 200_000)


@case(says=("d.jsonl line 1:", "more than 500 arrays and objects in one another"))
def a_deep_first_line(box):
    with_line(box, DEEP, 0)
    return [*DEDUP, "d.jsonl"]


@case(says=("d.jsonl line 151:", "more than 500 arrays and objects in one another"))
def a_deep_late_line(box):
    with_line(box, DEEP, 150)
    return [*DEDUP, "d.jsonl"]


@case(status=0, writes="out")
def brackets_in_strings_are_not_depth(box):
    with_line(box, b'{"id": 1000, "text": "%s \\" %s"}' % (b"[{" * 5000, b"[" * 5000), 0)
    return [*DEDUP, "d.jsonl"]


@case(status=0, writes="out")
def numbers_that_only_arrow_reads_in_the_first_line(box):
    with_line(box, b'{"id": 1000, "text": "a", "x": [Inf, -Inf, -NaN], "y": %s}' % (b"9" * 5000), 0)
    return [*DEDUP, "d.jsonl"]


@case(status=0, writes="out")
def numbers_beyond_any_float_as_priority(box):
    with_line(box, b'{"id": 1000, "text": "a", "n": 1e999}\n{"id": 1001, "text": "b", "n": %s}' % (b"9" * 900), 150)
    return [*DEDUP, "d.jsonl", "--keep", "n"]


@case(status=0, writes="out")
def byte_order_marks_of_files_that_were_joined(box):
    with_line(box, b'\xef\xbb\xbf{"id": 1000, "text": "a"}', 150)
    return [*DEDUP, "d.jsonl"]


@case(status=0, writes="out")
def a_column_that_begins_behind_a_hundred_lines(box):
    with_line(box, b'{"id": 1000, "text": "a", "date": "2020-01-01"}', 150)
    return [*DEDUP, "d.jsonl", "--keep", "date"]


@case(says=("d.jsonl", "no column 'bdoy'", "id, text, n"))
def a_column_that_is_nowhere(box):
    with_line(box, b'{"id": 1000, "text": "a"}', 150)
    return [*DEDUP, "d.jsonl", "--text-column", "bdoy"]


@case(status=0, writes="out", hides="Unicode")
def keys_that_are_no_unicode(box):
    with_line(box, b'{"\\ud800": 1, "\xff\xfe": 2, "id": 1000, "text": "a b"}', 0)
    return [*DEDUP, "d.jsonl"]


@case(says=("no column", "d.jsonl"))
def a_column_name_that_is_no_unicode(box):
    box.documents("d.jsonl")
    return "nd.dedup('d.jsonl', text_columns='\\ud800')"


@case(says=("d.jsonl line 151:", "not valid JSON"))
def a_null_byte_behind_an_object(box):
    with_line(box, b'{"id": 1000, "text": "a"}\x00}', 150)
    return [*DEDUP, "d.jsonl"]


@case(says=("d.jsonl line 151:", "'id'", "is not valid UTF-8"))
def an_id_that_is_not_utf8(box):
    rows = [b'{"id": "a%d", "text": "a b"}' % i for i in range(150)]
    box.write("d.jsonl", b"\n".join([*rows, b'{"id": "\xff", "text": "a"}']))
    return [*DEDUP, "d.jsonl"]


@case(says=("d.jsonl line 3:", "'id'", "is null"))
def a_null_id_is_named_by_its_line(box):
    box.write("d.jsonl", '{"id": 1, "text": "a"}\n\n{"text": "b"}\n')
    return [*DEDUP, "d.jsonl"]


@case(says=("d.jsonl", "UTF-16", "--encoding utf-16"))
def json_lines_in_utf16(box):
    box.write("d.jsonl", '{"text": "a"}\n'.encode("utf-16"))
    return ["dedup", "d.jsonl", "-o", "out"]


@case(says=("d.jsonl", "gzip", ".gz"))
def json_lines_that_are_gzip_by_another_name(box):
    box.write("d.jsonl", gzip.compress(b'{"text": "a"}\n'))
    return ["dedup", "d.jsonl", "-o", "out"]


# ---------------------------------------------------------------------------------------- without end


@case(says=("d.jsonl.gz line 1:", "begins with"), max_mb=400, max_seconds=5)
def a_gigabyte_of_zeros_in_gzip(box):
    box.write("d.jsonl.gz", gzip.compress(bytes(64 << 20)) * 16)
    return ["dedup", "d.jsonl.gz", "-o", "out"]


@case(says=("d.jsonl.zst line 2:", "begins with"), max_mb=400, max_seconds=5)
def zeros_behind_a_good_line_in_zstd(box):
    raw = b'{"text": "a"}\n' + bytes(512 << 20)
    box.write("d.jsonl.zst", pa.compress(raw, codec="zstd", asbytes=True))
    return ["dedup", "d.jsonl.zst", "-o", "out"]


@case(says=("d.jsonl.gz line 1:", "longer than 30,000,000 bytes", "--max-document-bytes"), max_mb=500, max_seconds=10)
def a_string_without_end(box):
    box.write("d.jsonl.gz", gzip.compress(b'{"text": "') + gzip.compress(b"a" * (64 << 20)) * 16)
    return ["dedup", "d.jsonl.gz", "-o", "out", "--max-document-bytes", "30000000"]


@case(says=("d.json", "the end of the array is missing"), max_mb=400)
def an_array_that_is_cut_off(box):
    box.write("d.json", b'[{"text": "a"}' + b', {"text": "a"}' * 200_000)
    return ["dedup", "d.json", "-o", "out"]


@case(says=("big.txt", "longer than 1,000 bytes", "--max-document-bytes"))
def a_text_file_beyond_the_bound(box):
    box.write("texts/a.txt", "a b c")
    box.write("texts/big.txt", "a " * 501)
    return ["dedup", "texts", "-o", "out", "--max-document-bytes", "1000"]


@case(says=("big.html", "longer than 1,073,741,824 bytes"))
def a_page_of_absurd_size(box):
    with open(box / "big.html", "wb") as file:
        file.truncate((1 << 30) + 1)
    return ["dedup", "big.html", "-o", "out"]


@case(says="--max-document-bytes must be >= 1, got 0")
def a_bound_of_nothing(box):
    box.documents("d.jsonl")
    return ["dedup", "d.jsonl", "-o", "out", "--max-document-bytes", "0"]


@case(says=("--on-error 'ignore'", "stop", "skip"))
def a_policy_that_is_none(box):
    box.documents("d.jsonl")
    return ["dedup", "d.jsonl", "-o", "out", "--on-error", "ignore"]


# ---------------------------------------------------------------------------------------- Arrow


@case(says=("d.arrows", "cut off"))
def a_stream_without_its_end(box):
    arrow(box / "d.arrows", table())
    box.cut("d.arrows", -8)
    return [*DEDUP, "d.arrows"]


@case(says=("d.arrows", "cut off"))
def a_stream_that_ends_after_its_schema(box):
    with pa.ipc.new_stream(str(box / "d.arrows"), table().schema):
        pass
    box.cut("d.arrows", -8)
    return [*DEDUP, "d.arrows"]


@case(says=("d.arrows", "after the end of the Arrow stream"))
def two_streams_in_one_file(box):
    path = arrow(box / "d.arrows", table())
    path.write_bytes(path.read_bytes() * 2)
    return [*DEDUP, "d.arrows"]


@case(says=("d.arrow", "not a readable Arrow IPC file"))
def an_arrow_file_without_its_end(box):
    arrow(box / "d.arrow", table())
    box.cut("d.arrow", -10)
    return [*DEDUP, "d.arrow"]


def lying(box, name, column, old, new):
    """A file whose column has an offset that leads outside."""
    data = table(60, extra=[f"value {i}" for i in range(60)])
    path = arrow(box / name, data)
    values = data[column].to_pylist()[:20]
    right = offsets(values)
    wrong = bytearray(right)
    wrong[4 * old : 4 * old + 4] = np.int32(new).tobytes()
    patched(path, right, bytes(wrong))


@case(says=("d.arrow", "batch 1 is damaged", "larger than values array"))
def an_extra_column_with_a_lying_offset(box):
    lying(box, "d.arrow", "extra", 20, 3_000_000)
    return [*DEDUP, "d.arrow"]


@case(says=("d.arrows", "batch 1 is damaged", "Offset invariant failure"))
def a_text_column_with_a_lying_offset(box):
    lying(box, "d.arrows", "text", 5, 2**31 - 1)
    return [*DEDUP, "d.arrows"]


@case(says=("d.arrow", "batch 1 is damaged"))
def an_id_column_with_offsets_that_fall(box):
    lying(box, "d.arrow", "id", 7, -4)
    return [*DEDUP, "d.arrow"]


@case(says=("d.arrow", "batch 1 is damaged", "out of bounds"))
def a_dictionary_index_out_of_range(box):
    kinds = pa.array([f"kind {i % 5}" for i in range(60)]).dictionary_encode()
    data = table(60, kind=kinds)
    path = arrow(box / "d.arrow", data)
    right = kinds.indices.slice(0, 20).to_numpy().astype(np.int32).tobytes()
    patched(path, right, right[:4] + np.int32(99_999).tobytes() + right[8:])
    return [*DEDUP, "d.arrow"]


@case(says=("d.arrow", "batch 1 is damaged"))
def a_view_that_leads_outside(box):
    values = [f"a view of some length {i}" for i in range(60)]
    path = arrow(box / "d.arrow", table(60, view=pa.array(values, pa.string_view())))
    place = np.array([len(values[1])], np.int32).tobytes() + values[1][:4].encode()
    patched(
        path, place + np.array([0, len(values[0])], np.int32).tobytes(), place + np.array([0, 10**9], "i4").tobytes()
    )
    return [*DEDUP, "d.arrow"]


@case(says=("d.arrow", "batch 1 is damaged"))
def lists_with_lying_offsets(box):
    lists = [[f"a{i}"] * 2 for i in range(60)]
    path = arrow(box / "d.arrow", table(60, tags=lists))
    right = np.arange(0, 42, 2).astype(np.int32).tobytes()
    patched(path, right, right[:-4] + np.int32(500_000).tobytes())
    return [*DEDUP, "d.arrow"]


@case(
    status=0,
    writes="out",
    then=lambda box, _: _equal(pa.ipc.open_file(next(box.path.glob("out/kept/*.arrow"))).read_all()["raw"].chunk(0)),
)
def an_extra_column_that_is_not_utf8_is_written_as_it_was(box):
    raw = pa.array([b"\xff\xfe raw"] * 60, pa.binary()).view(pa.string())
    arrow(box / "d.arrow", table(60, raw=raw))
    return [*DEDUP, "d.arrow"]


def _equal(column):
    assert set(column.view(pa.binary()).to_pylist()) == {b"\xff\xfe raw"}


@case(says=("d.arrow", "the name of a column is not UTF-8"))
def a_column_whose_name_is_not_utf8(box):
    patched(arrow(box / "d.arrow", table(60, xqzw=[1] * 60)), b"xqzw", b"\xffqzw", 9)
    return [*DEDUP, "d.arrow"]


def with_lying_sizes(box, size):
    """A compressed Arrow file whose buffers all say that they take so many bytes."""
    path = arrow(box / "d.feather", table(), compression="zstd")
    data = bytearray(path.read_bytes())
    frames = [at for at in range(len(data)) if data[at : at + 4] == b"\x28\xb5\x2f\xfd"]
    assert len(frames) > 6
    for at in frames:
        data[at - 8 : at] = np.int64(size).tobytes()
    path.write_bytes(data)
    return [*DEDUP, "d.feather"]


@case(says="d.feather", max_mb=600)
def a_compressed_body_that_claims_a_terabyte(box):
    return with_lying_sizes(box, 2**40)


@case(says="d.feather", max_mb=600)
def a_compressed_body_that_claims_less_than_it_holds(box):
    return with_lying_sizes(box, 16)


@case(says="d.feather", max_mb=600)
def a_compressed_body_that_claims_less_than_nothing(box):
    return with_lying_sizes(box, -5)


@case(says=("input", "cannot be read", "ffset"))
def a_table_in_memory_with_a_lying_offset(box):
    return (
        "offsets, data = pa.py_buffer(np.array([0, 4, 3_000_000, 6], np.int32)), pa.py_buffer(b'abcdef')\n"
        "text = pa.Array.from_buffers(pa.string(), 3, [None, offsets, data])\n"
        "nd.dedup(pa.table({'text': ['a', 'b', 'c'], 'extra': text}), text_columns='text', output='out')\n"
    )


# ---------------------------------------------------------------------------------------- Parquet


def encrypted(box, **settings):
    import pyarrow.parquet.encryption as pe

    class Keys(pe.KmsClient):
        def wrap_key(self, key, _):
            return base64.b64encode(key)

        def unwrap_key(self, key, _):
            return base64.b64decode(key)

    configuration = pe.EncryptionConfiguration(footer_key="footer", **settings)
    properties = pe.CryptoFactory(lambda _: Keys()).file_encryption_properties(pe.KmsConnectionConfig(), configuration)
    data = table(60, secret=["s"] * 60)
    with pq.ParquetWriter(box / "d.parquet", data.schema, encryption_properties=properties) as writer:
        writer.write_table(data)
    return [*DEDUP, "d.parquet"]


@case(says=("d.parquet", "is encrypted"))
def an_encrypted_text_column(box):
    return encrypted(box, column_keys={"key": ["text"]}, plaintext_footer=True)


@case(says=("d.parquet", "is encrypted"))
def an_encrypted_column_that_nobody_asks_for(box):
    return encrypted(box, column_keys={"key": ["secret"]}, plaintext_footer=True)


@case(says=("d.parquet", "is encrypted"))
def an_encrypted_footer(box):
    return encrypted(box, column_keys={"key": ["text"]})


@case(says=("d.parquet", "is encrypted"))
def a_parquet_file_that_is_encrypted_whole(box):
    return encrypted(box, uniform_encryption=True)


@case(says=("d.parquet", "row group 1 cannot be read", "CRC"))
def a_page_whose_checksum_is_wrong(box):
    pq.write_table(table(), box / "d.parquet", compression="none", write_page_checksum=True)
    patched(box / "d.parquet", b"bill7x0", b"bill8x0")
    return [*DEDUP, "d.parquet"]


@case(says=("d.parquet", "not a readable Parquet file"))
def a_footer_longer_than_its_file(box):
    path = box.documents("d.parquet")
    path.write_bytes(path.read_bytes()[:-8] + np.uint32(2**31 - 1).tobytes() + b"PAR1")
    return [*DEDUP, "d.parquet"]


@case(status=0, writes="out", max_mb=900)
def one_long_page_repeated_a_thousand_times(box):
    data = pa.table({"id": range(5000), "text": ["word " * 2000] * 5000})
    pq.write_table(data, box / "d.parquet")
    return [*DEDUP, "d.parquet"]


# ---------------------------------------------------------------------------------------- ids


@case(says=("id 'a7' stands for 2 documents", "in/a.parquet row 8", "in/b.parquet row 3"))
def an_id_twice_in_two_parquet_files_is_found_before_all_work(box):
    (box / "in").mkdir()
    pq.write_table(table(), box / "in/a.parquet")
    pq.write_table(pa.table({"id": ["x", "y", "a7"], "text": ["k l", "m n", "o p"]}), box / "in/b.parquet")
    return (
        "def stop(stage, done, total):\n"
        "    raise SystemExit('it works already')\n"
        "nd.dedup('in', id_column='id', progress=stop)\n"
    )


@case(says=("id 5 stands for 3 documents", "d.arrow row 1", "d.arrow row 2", "..."))
def an_id_three_times_in_arrow(box):
    arrow(box / "d.arrow", pa.table({"id": [5, 5, 6, 5], "text": ["a b", "c d", "e f", "g h"]}))
    return [*DEDUP, "d.arrow"]


@case(says=("id 'x' stands for 2 documents", "in/a.jsonl line 3", "in/b.jsonl line 1"))
def an_id_twice_in_json_lines_is_named_by_its_lines(box):
    box.write("in/a.jsonl", '{"id": "w", "text": "a b"}\n\n{"id": "x", "text": "c d"}\n')
    box.write("in/b.jsonl", '{"id": "x", "text": "e f"}\n')
    return [*DEDUP, "in"]


@case(says=("d.parquet", "'id'", "null in document 51"))
def a_null_id_in_parquet_is_found_before_all_work(box):
    ids = [f"a{i}" if i != 50 else None for i in range(60)]
    pq.write_table(table().set_column(0, "id", pa.array(ids)), box / "d.parquet", row_group_size=20)
    return "nd.dedup('d.parquet', id_column='id', progress=lambda *_: 1 / 0)"


@case(says=("reference set: id 'a1' stands for 2 documents", "known.parquet row 2", "known.parquet row 4"))
def an_id_twice_in_the_reference_set(box):
    box.documents("d.parquet")
    pq.write_table(pa.table({"id": ["a0", "a1", "b", "a1"], "text": list("abcd")}), box / "known.parquet")
    return [*DEDUP, "d.parquet", "--against", "known.parquet"]


# ---------------------------------------------------------------------------------------- rows that are skipped


def _skips(rows, kept):
    """Assert what skipped.parquet says, and which ids are kept."""

    def check(box, ended):
        found = [(entry["file"], entry["row"], entry["rows"]) for entry in skipped_of(box)]
        assert found == rows, found
        assert kept_ids(box) == kept, kept_ids(box)
        assert all(entry["reason"] for entry in skipped_of(box))
        assert json.loads((box / "out/report.json").read_text())["counts"]["skipped"] == sum(r[2] or 1 for r in rows)

    return check


SKIP = [*DEDUP, "--on-error", "skip"]


@case(
    status=0,
    writes="out",
    says="skipped",
    then=_skips([("d.jsonl", n, 1) for n in (2, 5, 7, 8)], [0, 2, 5, *range(8, 12)]),
)
def broken_lines_are_skipped(box):
    lines = [json.dumps({"id": i, "text": text_of(i)}) for i in range(12)]
    lines[1], lines[4], lines[6], lines[7] = '{"id": 1', '{"id": 4, "text": [1]}', '{"text": "a"}', '{"id": "x"}'
    lines[3] = ""
    box.write("d.jsonl", "\n".join(lines) + "\n")
    return [*SKIP, "d.jsonl"]


@case(status=0, writes="out", then=_skips([("d.jsonl", 1, 1)], [*range(1, 160)]))
def a_first_line_of_another_type_is_skipped(box):
    with_line(box, b'{"id": {"a": 1}, "text": 5}', 0)
    return [*SKIP, "d.jsonl"]


@case(status=0, writes="out", then=_skips([("d.jsonl", 1, 1)], [*range(1, 160)]))
def an_endless_line_is_skipped(box):
    with_line(box, b"\x00" * (20 << 20), 0)
    return [*SKIP, "d.jsonl"]


@case(
    status=0,
    writes="out",
    then=_skips([("d.parquet", 8, 1), ("d.parquet", 21, 20)], [f"a{i}" for i in range(59) if i != 7 and i // 20 != 1]),
)
def a_damaged_row_group_and_a_null_id_are_skipped(box):
    ids = [f"a{i}" if i != 7 else None for i in range(60)]
    data = table(60, extra=[f"extra {i}" for i in range(60)]).set_column(0, "id", pa.array(ids))
    pq.write_table(data, box / "d.parquet", row_group_size=20, compression="none", write_page_checksum=True)
    patched(box / "d.parquet", b"extra 33", b"extra 34")
    return [*SKIP, "d.parquet"]


@case(status=0, writes="out", then=_skips([("d.arrow", 1, 20)], [f"a{i}" for i in range(20, 60)]))
def a_damaged_arrow_batch_is_skipped(box):
    lying(box, "d.arrow", "extra", 20, 3_000_000)
    return [*SKIP, "d.arrow"]


@case(status=0, writes="out", then=_skips([("in/b.parquet", None, None)], ["a0", "a1", "a2"]))
def a_file_that_cannot_be_read_at_all_is_skipped(box):
    (box / "in").mkdir()
    pq.write_table(table().slice(0, 3), box / "in/a.parquet")
    box.write("in/b.parquet", b"PAR1 nothing PAR1")
    return [*SKIP, "in"]


def _only_the_tail(box, ended):
    (entry,) = skipped_of(box)
    assert entry["rows"] is None and "from here on" in entry["reason"]
    documents = pq.read_table(box / "out/documents.parquet")
    assert documents["id"].to_pylist() == list(range(entry["row"] - 1))
    kept = b"".join(gzip.decompress(path.read_bytes()) for path in box.path.glob("out/kept/*"))
    assert kept.count(b"\n") == len(documents)


@case(status=0, writes="out", then=_only_the_tail)
def a_cut_gzip_file_gives_what_comes_before(box):
    raw = "".join(json.dumps({"id": i, "text": text_of(i)}) + "\n" for i in range(2000)).encode()
    box.write("d.jsonl.gz", gzip.compress(raw)[:-60_000])
    return [*SKIP, "d.jsonl.gz"]


def _the_large_one(box, ended):
    (entry,) = skipped_of(box)
    assert entry["file"].endswith("b.txt") and "longer than" in entry["reason"]
    assert sorted(path.name for path in box.path.glob("out/kept/**/*.txt")) == ["a.txt", "c.txt"]


@case(status=0, writes="out", then=_the_large_one)
def a_text_file_that_cannot_be_read_is_skipped(box):
    for name, times in (("a", 1), ("b", 100), ("c", 1)):
        box.write(f"texts/{name}.txt", text_of(ord(name)) * times)
    return ["dedup", "texts", "-o", "out", "--on-error", "skip", "--max-document-bytes", "2000"]


@case(says=("no documents that can be read", "3 rows left out", "d.jsonl", "not valid JSON"))
def nothing_but_broken_lines(box):
    box.write("d.jsonl", "{a}\n{b}\n{c}\n")
    return [*SKIP, "d.jsonl", "--text-column", "text"]


@case(says=("id 3 stands for 2 documents", "d.jsonl line 1", "d.jsonl line 3"))
def skipping_does_not_hide_repeated_ids(box):
    box.write("d.jsonl", '{"id": 3, "text": "a b"}\n{oops\n{"id": 3, "text": "c d"}\n')
    return [*SKIP, "d.jsonl"]


@case(status=0, writes=("s.parquet", "s.skipped.parquet"), then=lambda box, _: _beside(box))
def sketches_list_what_they_skip_beside_them(box):
    with_line(box, b"{oops", 150)
    return ["sketch", "d.jsonl", "--id-column", "id", "-o", "s.parquet", "--on-error", "skip"]


def _beside(box):
    (entry,) = skipped_of(box, "s.skipped.parquet")
    assert (entry["row"], len(pq.read_table(box / "s.parquet"))) == (151, 159)


@case(status=0, says=("158 was removed", "kept         100"))
def explain_finds_rows_behind_those_that_were_skipped(box):
    lines = [json.dumps({"text": text_of(i), "date": i}) for i in range(160)]
    lines[2], lines[5] = "{oops", json.dumps({"text": "a b", "date": "?"})
    lines[158] = json.dumps({"text": text_of(100) + " amended", "date": 158})
    box.write("d.jsonl", "\n".join(lines))
    box.run("dedup", "d.jsonl", "-o", "out", "--on-error", "skip", "--keep", "date", "-q")
    return ["explain", "out", "158"]


@case(says=("d.arrow", "'id'", "null in document 1"))
def an_id_column_of_nothing_but_nulls(box):
    arrow(box / "d.arrow", table().set_column(0, "id", pa.nulls(60)))
    return [*DEDUP, "d.arrow"]


@case(status=0, writes="out", then=lambda box, _: _short(box))
def an_id_column_that_is_null_in_one_file_is_skipped(box):
    (box / "in").mkdir()
    arrow(box / "in/a.arrow", table().set_column(0, "id", pa.nulls(60, pa.string())))
    arrow(box / "in/b.arrow", table())
    return [*SKIP, "in"]


def _short(box):
    assert {entry["file"] for entry in skipped_of(box)} == {"in/a.arrow"} and len(skipped_of(box)) == 60
    assert kept_ids(box) == [f"a{i}" for i in range(59)]
