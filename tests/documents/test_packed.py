"""Compressed files that are written: by gzip, pieces are compressed at once and make one member."""

import gzip
import zlib

import numpy as np
import pyarrow as pa
import pytest

from neardup_gpu.documents.packed import write_packed
from neardup_gpu.engine.processors import with_threads

RANDOM = np.random.default_rng(3)
WORDS = [RANDOM.integers(97, 123, 6, np.uint8).tobytes() + b" " for _ in range(500)]


def pieces(sizes):
    """Words, in pieces of so many."""
    return [b"".join(WORDS[i] for i in RANDOM.integers(0, len(WORDS), size)) for size in sizes]


@pytest.mark.parametrize("sizes", [[], [0], [1], [0, 3, 0], [20_000] * 9, [1] * 300, [9000, 1, 0, 2, 7000, 30_000]])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("compression", ["gzip", "zstd", None])
def test_what_was_written_is_read(tmp_path, sizes, threads, compression):
    path, data = tmp_path / "packed", pieces(sizes)
    with with_threads(threads):
        write_packed(path, compression, iter(data))
    with pa.input_stream(str(path), compression=compression) as stream:
        assert stream.read() == b"".join(data)
    if compression == "gzip":
        assert gzip.decompress(path.read_bytes()) == b"".join(data)
        one = zlib.decompressobj(wbits=31)
        assert one.decompress(path.read_bytes()) == b"".join(data)
        assert one.eof
        assert one.unused_data == b""  # there is no second member, which some readers leave out


def test_pieces_refer_back_to_those_before_them(tmp_path):
    noise = RANDOM.integers(0, 256, 20_000, np.uint8).tobytes()
    write_packed(tmp_path / "x.gz", "gzip", iter([noise] * 20))
    assert (tmp_path / "x.gz").stat().st_size < 1.2 * len(noise)
    text = pieces([50_000] * 8)
    write_packed(tmp_path / "y.gz", "gzip", iter(text))
    assert (tmp_path / "y.gz").stat().st_size < 1.01 * len(gzip.compress(b"".join(text), 9))


def test_an_error_among_the_pieces(tmp_path):
    def failing():
        yield b"first"
        raise ValueError("second")

    with with_threads(2), pytest.raises(ValueError, match="second"):
        write_packed(tmp_path / "x.gz", "gzip", failing())
