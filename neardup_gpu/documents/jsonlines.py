"""JSON lines: blocks of whole lines.

A row is a line that is not blank. Blocks of whole lines are parsed by pyarrow.json (570 MB/s on
bills_116_small, one core; json.loads with its copies gives 110 MB/s), and again by json.loads, line by line, only where
that fails: to name the broken line, or to read what json.loads accepts (lone surrogates, which become U+FFFD). Kept
lines are written as the bytes they were, with their own line endings; blank lines and a byte order mark are left out.
The columns are those of the first hundred lines. Integers stay integers: int64, or uint64 where the first hundred lines
hold one above 2**63 - 1. An extra column of integers becomes float64 only if the file holds a number in it with a
fraction or an exponent, or beyond 64 bits.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from ..errors import InputError
from .batches import ahead
from .find import File, partition_of, suffix_of
from .kept import Rows, writing
from .reading import brief, reading

BLOCK_BYTES = 4 << 20  # of JSON lines parsed at once


class JsonLines:
    rewindable = True
    num_files = 1
    num_rows = None
    num_bytes = 0
    share = 0.0  # of the file that has been read

    def __init__(self, file: File) -> None:
        self.file, self.name = file, file.name
        packed = PurePosixPath(file.path).suffix.lower()
        self.compression = {".gz": "gzip", ".zst": "zstd"}.get(packed)
        self.decided: dict[str, int] = {}  # line that decided a column's type
        self.schema: pa.Schema = self._sample()

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[pa.NativeFile, pa.NativeFile]]:
        """The file as it is, which knows how far it has been read, and what is in it."""
        with self.file.system.open_input_file(self.file.path) as packed:
            self.num_bytes = packed.size()
            if self.compression is None:
                yield packed, packed
            else:
                with pa.CompressedInputStream(packed, self.compression) as stream:
                    yield packed, stream

    def _blocks(self, size: int = BLOCK_BYTES) -> Iterator[_Block]:
        """Blocks of whole lines, at least `size` bytes but for the last."""
        with reading(self.name), self._opened() as (packed, stream):
            pending: list[bytes] = []
            line, first = 1, True
            while True:
                chunk = stream.read(size)
                if first and chunk.startswith(b"\xef\xbb\xbf"):
                    chunk = chunk[3:]
                    if not chunk:
                        chunk = stream.read(size)
                first = False
                self.share = packed.tell() / max(1, self.num_bytes)
                cut = chunk.rfind(b"\n") + 1
                if chunk and not cut:
                    pending.append(chunk)
                    continue
                data = b"".join([*pending, chunk[:cut]])
                if data:
                    block = _Block.of(data, line)
                    line = block.next_line
                    yield block
                if not chunk:
                    return
                pending = [chunk[cut:]] if cut < len(chunk) else []

    def _sample(self) -> pa.Schema:
        """Columns and types seen in the first hundred lines."""
        kinds: dict[str, pa.DataType] = {}
        with contextlib.closing(self._blocks(1 << 16)) as blocks:  # type: ignore[type-var]
            seen = 0
            for block in blocks:
                if seen == 0 and block.num_rows and block.data[block.starts[0] : block.starts[0] + 1] == b"[":
                    raise InputError(f"{self.name}: a JSON array; write one object on each line (jq -c '.[]').")
                for row in range(min(block.num_rows, 100 - seen)):
                    for name, value in self._object(block, row).items():
                        kind = _json_type(value)
                        before = kinds.get(name, pa.null())
                        if name not in kinds or before == pa.null() != kind or kind in _WIDER.get(before, ()):
                            kinds[name] = kind
                            self.decided[name] = int(block.lines[row])
                seen += block.num_rows
                if seen >= 100:
                    break
        return pa.schema(list(kinds.items()))

    def _object(self, block: _Block, row: int) -> dict[str, Any]:
        where = f"{self.name} line {block.lines[row]}"
        line = block.data[block.starts[row] : block.ends[row]]
        try:
            value = json.loads(line.decode("utf-8", "surrogateescape"), strict=False)
        except json.JSONDecodeError as error:
            raise InputError(
                f"{where}: not valid JSON ({error.msg} at column {error.colno}); correct or remove it."
            ) from None
        except (ValueError, RecursionError) as error:
            raise InputError(f"{where}: not valid JSON ({brief(error)}); correct or remove it.") from None
        if not isinstance(value, dict):
            raise InputError(f'{where}: not a JSON object; each line must be one, such as {{"text": ...}}.')
        return value

    def has_float(self, name: str) -> bool:
        """Whether a column of integers may hold, further down, a number that is none, or one beyond 64 bits."""
        digits = 21 if self.schema.field(name).type == pa.uint64() else 20
        keys = {json.dumps(name).encode(), json.dumps(name, ensure_ascii=False).encode("utf-8", "replace")}
        key = b"|".join(re.escape(key) for key in sorted(keys))
        number = re.compile(rb"(?:%s)\s*:\s*-?(?:\d+[.eE]|\d{%d})" % (key, digits))
        return any(number.search(block.data) for block in self._blocks())

    def read(self, schema: pa.Schema, max_bytes: int) -> Iterator[pa.RecordBatch]:
        parse = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
        for block in self._blocks():
            if block.num_rows == 0:
                continue
            table = None
            if block.is_plain and len(block.data) < 1 << 30:
                size = max(1 << 20, int((block.ends - block.starts).max()) + 64)
                with contextlib.suppress(pa.ArrowInvalid, UnicodeDecodeError):
                    # A UnicodeDecodeError comes from Arrow's message about the value.
                    table = pa.json.read_json(
                        pa.BufferReader(block.data), pa.json.ReadOptions(block_size=size), parse_options=parse
                    )
            if table is None or table.num_rows != block.num_rows:
                yield self._by_line(block, schema)
            else:
                yield from table.select(schema.names).to_batches()

    def _by_line(self, block: _Block, schema: pa.Schema) -> pa.RecordBatch:
        columns: list[list[Any]] = [[] for _ in schema]
        for row in range(block.num_rows):
            value = self._object(block, row)
            for column, field in zip(columns, schema, strict=True):
                where = f"{self.name} line {block.lines[row]}: column {field.name!r}"
                column.append(_json_value(value.get(field.name), field.type, where))
        arrays = []
        for column, kind in zip(columns, schema.types, strict=True):
            # Strings as bytes first: they may hold what is not UTF-8.
            arrays.append(
                pa.array(column, pa.binary()).view(kind) if pa.types.is_string(kind) else pa.array(column, kind)
            )
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def write(self, folder: Path, part: str, rows: Rows) -> None:
        path = folder / f"{partition_of(self.file.path)}{part}{suffix_of(self.file)}"
        with writing(path, folder), pa.output_stream(str(path), compression=self.compression) as stream:
            for block in ahead(self._blocks()):
                keep = rows.take(block.num_rows, self.name)
                for start, stop in block.runs(keep):
                    stream.write(memoryview(block.data)[start:stop])


@dataclass(frozen=True, eq=False)
class _Block:
    """Whole lines of a JSON-lines file; a row is a line that is not blank."""

    data: bytes
    starts: np.ndarray  # of each row
    ends: np.ndarray  # without trailing blanks and line ending
    nexts: np.ndarray  # where the next line begins
    lines: np.ndarray  # line number, from 1
    next_line: int

    @classmethod
    def of(cls, data: bytes, line: int) -> _Block:
        values = np.frombuffer(data, np.uint8)
        nexts = np.flatnonzero(values == 10) + 1
        if not data.endswith(b"\n"):
            nexts = np.append(nexts, len(data))
        starts = np.concatenate([[0], nexts[:-1]]).astype(np.int64)
        ends = nexts.copy()
        # The line ending is stripped from all lines at once, what blanks remain line by line: few lines have any.
        blank = np.zeros(256, bool)
        blank[[9, 10, 13, 32]] = True
        for _ in range(2):
            ends -= (ends > starts) & blank[values[ends - 1]]
        for i in np.flatnonzero((ends > starts) & blank[values[ends - 1]]):
            ends[i] = starts[i] + len(data[starts[i] : ends[i]].rstrip(b" \t\r\n"))
        full = ends > starts
        return cls(data, starts[full], ends[full], nexts[full], line + np.flatnonzero(full), line + len(nexts))

    @property
    def num_rows(self) -> int:
        return len(self.starts)

    @property
    def is_plain(self) -> bool:
        """Whether each line begins and ends as an object does, so that no object runs over two lines."""
        values = np.frombuffer(self.data, np.uint8)
        return bool(np.all(values[self.starts] == ord("{")) and np.all(values[self.ends - 1] == ord("}")))

    def runs(self, keep: np.ndarray) -> Iterator[tuple[int, int]]:
        """Byte ranges of the kept lines, neighbours joined."""
        starts, stops = self.starts[keep], self.nexts[keep]
        if len(starts) == 0:
            return
        breaks = np.flatnonzero(starts[1:] != stops[:-1])
        firsts, lasts = np.concatenate([[0], breaks + 1]), np.append(breaks, len(stops) - 1)
        yield from zip(starts[firsts].tolist(), stops[lasts].tolist(), strict=True)


_WIDER = {pa.int64(): (pa.uint64(), pa.float64()), pa.uint64(): (pa.float64(),)}


def _json_type(value: Any) -> pa.DataType:
    if value is None:
        return pa.null()
    if isinstance(value, str):
        return pa.string()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int) and -(2**63) <= value < 2**64:
        return pa.int64() if value < 2**63 else pa.uint64()
    if isinstance(value, list):
        return pa.list_(pa.null())
    return pa.struct([]) if isinstance(value, dict) else pa.float64()


def json_words(kind: pa.DataType) -> str:
    """What a JSON column of this type holds, for messages."""
    if pa.types.is_list(kind):
        return "an array"
    if pa.types.is_struct(kind):
        return "an object"
    if pa.types.is_boolean(kind):
        return "true or false"
    return "an integer" if pa.types.is_integer(kind) else "a number with a fraction or beyond 64 bits"


def _json_value(value: Any, kind: pa.DataType, where: str) -> Any:
    """A value as Arrow takes it: strings as UTF-8, lone surrogates replaced."""
    if value is None:
        return None
    if pa.types.is_string(kind) and isinstance(value, str):
        try:
            return value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            return re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", value).encode("utf-8", "surrogateescape")
    if isinstance(value, bool) == pa.types.is_boolean(kind):
        if pa.types.is_boolean(kind) or (pa.types.is_floating(kind) and isinstance(value, (int, float))):
            return value
        low, high = (0, 2**64) if kind == pa.uint64() else (-(2**63), 2**63)
        if pa.types.is_integer(kind) and isinstance(value, int) and low <= value < high:
            return value
    words = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}
    names = {pa.string(): "text", pa.float64(): "a number", pa.int64(): "a 64-bit integer", pa.bool_(): "true or false"}
    names[pa.uint64()] = "an unsigned 64-bit integer"
    found, wanted = words.get(type(value), "a number"), names.get(kind, str(kind))
    if found == "a number" and pa.types.is_integer(kind):
        found = f"the number {value}"
    raise InputError(f"{where} holds {found}, not {wanted}; correct the line or name another column.")
