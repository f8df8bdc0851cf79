"""Read Arrow and Parquet files of which bytes were changed, in a process of its own: `python mutated.py KIND SEED N`.

A mutation ends in the documents or in a NeardupError. Whatever else is raised is printed, with the mutation's number; a
crash shows in the exit status. Memory that is free holds a word that no output may hold.
"""

import random
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup_gpu import Reading
from neardup_gpu.documents import open_documents
from neardup_gpu.errors import NeardupError

KINDS = ("file", "stream", "feather", "plain", "dictionary", "zstd")
SECRET = b"SECRETSECRET"
WORDS = {4: [b"\xff\xff\xff\x7f", b"\xff" * 4, b"\0\0\0\x80", b"\0\0\1\0", b"\0" * 4]}
WORDS[8] = [b"\xff" * 7 + b"\x7f", b"\0\0\0\0\1\0\0\0", b"\xf0" + b"\xff" * 7]


def written(path, kind):
    """Forty documents with columns of many types."""
    num = range(40)
    data = pa.table(
        {
            "id": [f"i{i}" for i in num],
            "text": [f"some text {i} " * 5 for i in num],
            "extra": [f"extra {i}" for i in num],
            "kind": pa.array([f"kind {i % 5}" for i in num]).dictionary_encode(),
            "tags": [[f"tag {i}"] * (i % 3) for i in num],
            "more": [{"a": i, "b": str(i)} for i in num],
        }
    )
    if kind in ("plain", "dictionary", "zstd"):
        compression, version = ("zstd", "2.0") if kind == "zstd" else ("none", "1.0")
        options = {"compression": compression, "data_page_version": version, "use_dictionary": kind != "plain"}
        pq.write_table(data, path, row_group_size=20, **options)
        return
    data = data.append_column("view", pa.array([f"a view of some length {i}" for i in num], pa.string_view()))
    opener = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression="lz4" if kind == "feather" else None)
    with opener(str(path), data.schema, options=options) as writer:
        writer.write_table(data, max_chunksize=20)


def mutated(good, draw):
    """The bytes with a bit, a byte or a word changed, or cut."""
    data = bytearray(good)
    for _ in range(draw.choice([1, 1, 1, 2, 4])):
        at, how = draw.randrange(len(data)), draw.random()
        if how < 0.4:
            data[at] ^= 1 << draw.randrange(8)
        elif how < 0.6:
            data[at] = draw.randrange(256)
        elif how < 0.95:
            size = draw.choice([4, 8])
            at = at // size * size
            data[at : at + size] = draw.choice(WORDS[size])[: len(data) - at]
        else:
            del data[max(at, 1) :]
    return bytes(data)


def outcome(path, on_error, columns):
    """All that can be read of a file, as bytes, the kept rows with it."""
    documents = open_documents(path, id_column="id", text_columns="text", reading=Reading(on_error=on_error))
    found, num_rows = [], 0
    for batch in documents.batches(columns):
        num_rows += batch.num_rows
        found += [batch.text[i].tobytes() for i in range(batch.num_rows)]
        for column in (batch.ids, *batch.columns.values()):
            as_bytes = column.view(pa.binary()) if pa.types.is_string(column.type) else column
            found += [str(value).encode() for value in as_bytes.to_pylist()]
    with tempfile.TemporaryDirectory() as folder:
        documents.write_kept(Path(folder, "kept"), np.arange(num_rows) % 2 == 0)
        found += [part.read_bytes() for part in Path(folder, "kept").iterdir()]
    return b"".join(found)


def main(kind, seed, count):
    """Exit status: whether anything but documents and NeardupErrors came of it."""
    draw, wrong, read = random.Random(f"{kind} {seed}"), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.parquet" if kind in KINDS[3:] else "x.arrows" if kind == "stream" else "x.arrow")
        written(path, kind)
        good = path.read_bytes()
        for number in range(count):
            waste = [bytearray(SECRET * 40 * size) for size in range(1, 40)]
            del waste
            path.write_bytes(mutated(good, draw))
            try:
                assert SECRET not in outcome(path, draw.choice(["stop", "skip"]), draw.choice([[], ["extra", "kind"]]))
                read += 1
            except NeardupError as error:
                assert "\n" not in str(error)
            except Exception as error:
                print(f"{kind} {seed} mutation {number}: {error!r}", flush=True)
                Path(f"{folder}-{kind}-{seed}-{number}").write_bytes(path.read_bytes())
                wrong += 1
    print(f"{kind} {seed}: {read} of {count} read, {wrong} wrong")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
