"""How files are compressed and unpacked by other means than those of the package."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pyarrow as pa


def _zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    return sink.getvalue().to_pybytes()


def _unzstd(data):
    return pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()


PACK = {".gz": gzip.compress, ".zst": _zstd, ".bz2": bz2.compress, ".xz": lzma.compress}
UNPACK = {".gz": gzip.decompress, ".zst": _unzstd, ".bz2": bz2.decompress, ".xz": lzma.decompress}
