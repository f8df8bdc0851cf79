"""Compressed files of lines and of text: what is read, what of a damaged file is, and what is written again."""

from __future__ import annotations

import io

import numpy as np
import pytest
from flat import flat
from packing import PACK, UNPACK

import neardup_gpu as nd
from neardup_gpu.documents.packed import COMPRESSIONS, Unpacked, write_packed

TEXTS = ["to be or not to be", "whether it is nobler in the mind", "to be or not to be"]
LINES = {
    ".jsonl": "".join(f'{{"id": {i}, "text": "{text}"}}\n' for i, text in enumerate(TEXTS)),
    ".json": "".join(f'{{"id": {i}, "text": "{text}"}}\n' for i, text in enumerate(TEXTS)),
    ".csv": "id,text\n" + "".join(f"{i},{text}\n" for i, text in enumerate(TEXTS)),
    ".tsv": "id\ttext\n" + "".join(f"{i}\t{text}\n" for i, text in enumerate(TEXTS)),
}


def test_every_compression_is_tried():
    assert set(PACK) == set(COMPRESSIONS)


def texts_of(source, **options):
    return [
        batch.text[row].tobytes().decode()
        for batch in flat(nd.open_documents, source, **options).batches()
        for row in range(batch.num_rows)
    ]


@pytest.mark.parametrize("compression", PACK)
@pytest.mark.parametrize("extension", LINES)
def test_lines_are_read_and_written_again(extension, compression, tmp_path):
    path = tmp_path / f"d{extension}{compression}"
    path.write_bytes(PACK[compression](LINES[extension].encode()))
    assert texts_of(path, id_column="id") == texts_of(tmp_path, id_column="id") == TEXTS
    result = nd.dedup(path, id_column="id", output=tmp_path / "out", recipe=nd.Recipe(shingles=nd.Shingles(2)))
    assert result.removed["id"].to_pylist() == [2]
    kept = UNPACK[compression]((tmp_path / "out" / "kept" / path.name).read_bytes()).decode()
    assert kept == LINES[extension][: -len(LINES[extension].splitlines(keepends=True)[-1])]


@pytest.mark.parametrize("compression", PACK)
def test_text_and_pages(compression, tmp_path):
    """Each file is read as one text, and what is kept is copied as it is."""
    pages = {"a.txt": TEXTS[0], "b/c.md": TEXTS[1], "d.html": f"<title>x</title><p>{TEXTS[0]}<script>no</script>"}
    for name, text in pages.items():
        path = tmp_path / "in" / f"{name}{compression}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PACK[compression](text.encode()))
    documents = nd.open_documents(tmp_path / "in")
    (batch,) = documents.batches()
    assert batch.ids.to_pylist() == [f"{name}{compression}" for name in sorted(pages)]
    texts = [batch.text[row].tobytes().decode().split() for row in range(3)]
    assert texts == [TEXTS[0].split(), TEXTS[1].split(), ["x", *TEXTS[0].split()]]
    nd.dedup(tmp_path / "in", output=tmp_path / "out", recipe=nd.Recipe(shingles=nd.Shingles(2)))
    for path in (tmp_path / "out" / "kept").rglob(f"*{compression}"):
        assert path.read_bytes() == (tmp_path / "in" / path.relative_to(tmp_path / "out" / "kept")).read_bytes()
    workers = nd.Workers(work_dir=tmp_path / "work", number=1, slice_bytes=1)
    report = nd.dedup(tmp_path / "in", output=tmp_path / "tasks", workers=workers).report
    assert report["counts"]["documents"] == 3


@pytest.mark.parametrize("compression", PACK)
def test_a_long_text_that_packs_well_is_read_whole(compression, tmp_path):
    text = "to be or not to be " * 200_000
    (tmp_path / f"a.txt{compression}").write_bytes(PACK[compression](text.encode()))
    assert texts_of(tmp_path) == [text]
    with pytest.raises(nd.errors.InputError, match="longer than 1,000,000 bytes"):
        texts_of(tmp_path, max_document_bytes=1_000_000)


@pytest.mark.parametrize("compression", PACK)
def test_a_damaged_text_is_refused_or_skipped(compression, tmp_path):
    packed = PACK[compression](b"".join(np.random.default_rng(1).bytes(9000).hex().encode() for _ in range(9)))
    (tmp_path / f"a.txt{compression}").write_bytes(packed[: len(packed) // 2])
    (tmp_path / f"b.txt{compression}").write_bytes(PACK[compression](b"to be"))
    with pytest.raises(nd.errors.InputError, match=r"a\.txt.*: cannot be read \(.*(cut off|Truncated)"):
        texts_of(tmp_path)
    documents = nd.open_documents(tmp_path, reading=nd.Reading(on_error="skip"))
    assert [batch.ids.to_pylist() for batch in documents.batches()] == [[f"b.txt{compression}"]]
    assert documents.skipped.num_rows == 1


@pytest.mark.parametrize("compression", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
class TestUnpacked:
    DATA = np.random.default_rng(2).integers(97, 110, 300_000, np.uint8).tobytes()

    def read(self, packed, compression, size):
        stream, parts = Unpacked(io.BytesIO(packed), COMPRESSIONS[compression], "x"), []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("neardup_gpu.documents.packed.INPUT_BYTES", 1 + size // 2)
            try:
                while part := stream.read(size):
                    assert len(part) <= size
                    parts.append(part)
            except OSError as error:
                with pytest.raises(OSError, match=r"damaged|cut off"):
                    stream.read(size)
                return b"".join(parts), str(error)
        return b"".join(parts), None

    def test_streams_one_after_another(self, compression, size):
        pack, data = PACK[compression], self.DATA[: 1000 * size]
        for packed, expected in [
            (pack(data), data),
            (pack(data) + pack(b"") + pack(data[:50]), data + data[:50]),
            (b"", b""),
        ]:
            assert self.read(packed, compression, size) == (expected, None)
        if compression == ".xz":
            assert self.read(pack(data) + b"\0" * 8 + pack(b"end") + b"\0" * 4, compression, size) == (
                data + b"end",
                None,
            )

    def test_what_comes_before_damage_is_read(self, compression, size):
        pack, data = PACK[compression], self.DATA[: 1000 * size]
        for packed in (pack(data) + pack(data)[:-9], pack(data) + b"no stream at all"):
            found, error = self.read(packed, compression, size)
            assert found[: len(data)] == data and data.startswith(found[len(data) :])
            assert "damaged" in error or "cut off" in error


@pytest.mark.parametrize("compression", ["bz2", "xz"])
def test_pieces_become_one_stream(compression, tmp_path):
    write_packed(tmp_path / "x", compression, iter([b"to be ", b"", b"or not"]))
    assert UNPACK[f".{compression}"]((tmp_path / "x").read_bytes()) == b"to be or not"
