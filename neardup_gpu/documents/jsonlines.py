"""JSON lines: blocks of whole lines.

A row is a line that is not blank. Blocks of whole lines are parsed by pyarrow.json (570 MB/s on bills_116_small, one
core; json.loads with its copies gives 110 MB/s). Where that fails, parts of a few hundred lines are parsed by it, and
only parts in which it fails again by json, line by line: to name the broken line, or to read what pyarrow.json refuses
(lone surrogates, U+FFFD in a text; control characters). Which of the two reads a line depends on its neighbours, so
json accepts whatever pyarrow.json does, and a line is accepted or refused wherever it stands: nesting has one bound for
both, both refuse a line in which a column that is read, or an object on the path to it, stands twice, and no type is
settled by the lines that come first. Kept lines are written as the bytes they were, with their own line endings; blank
lines and byte order marks are left out.

The first hundred lines give the columns; a column that the user names and that they lack is looked for further down.
Integer ids are int64, and uint64 from the first one above 2**63 - 1 on. An extra column of integers becomes float64
only if the file holds a number in it with a fraction or an exponent, or beyond 64 bits.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from ..data import numpy_of
from ..errors import InputError
from ..store.uris import brief
from . import nested
from .ahead import Step, ahead, check_stopped, closing, in_order
from .batches import ReadRows, numbered
from .columns import holds_floats, is_utf8, mixed_integers, with_inner_types
from .contract import WHOLE, InferringReader, Part
from .files import FOREIGN, File
from .json_blocks import MARK, Block, LineRange
from .json_spread import Lines, as_array
from .json_values import (
    MAX_DEPTH,
    WIDER,
    Repeating,
    arrow_value,
    is_deep,
    json_type,
    json_type_in_words,
    may_be_deep,
    number_kind,
    parsed,
    repeated_name,
    to_line,
    types_of_members,
)
from .kept import united, writing
from .packed import PACKED_BYTES, chunk_of, unpacked, write_packed
from .reading import reading
from .reading_options import Reading
from .skipped import Noted, Problem

BLOCK_BYTES = 4 << 20  # of JSON lines parsed at once
SAMPLE_BYTES = 1 << 16  # of JSON lines read at once to learn their columns
PART_ROWS = 256  # parsed at once where a block has lines that pyarrow.json refuses


class JsonLines(InferringReader):
    sample = "the first 100 lines"
    row_word = "line"

    def __init__(self, file: File, policy: Reading, part: Part) -> None:
        super().__init__(file, policy, part)
        self.decided: dict[str, int] = {}  # line that decided a column's type
        self.kinds: dict[str, Counter[pa.DataType]] = {}  # how often each type was seen
        self.spread: Lines | None = None  # the last stream that was read from the beginning of the file
        self.gaps = np.array([[0, 1]])  # (row from which on, by how much its line number is greater)
        self.lines_before = 0  # of those before the part, as many as are counted
        self.num_lines = 0  # of the last reading
        self.long_integers: set[str] = set()  # columns of integers, and paths in them, that floats would round
        # The columns of a part are those of the whole.
        self.schema: pa.Schema = self._sample() if part == WHOLE else pa.schema([])

    # -------------------------------------------------------------------------------------------------- parts

    def parts(self, most_bytes: int) -> list[Part]:
        """Return ranges of bytes, each of the lines after the first line feed from its first byte on.

        A compressed file is one part. So is a file in an encoding that the user names, as its first bytes may be a
        mark, and a file whose objects run over several lines.
        """
        size = self.seen.size
        is_spread = self.spread is not None and self.spread.is_spread
        if self.compression is not None or self.policy.encoding is not None or is_spread:
            return super().parts(most_bytes)
        number = max(1, -(-size // most_bytes))
        return [
            Part(start, None if stop == size else stop, None, stop - start, None if start else 0)
            for start, stop in itertools.pairwise(size * i // number for i in range(number + 1))
        ]

    def rows_before(self) -> int:
        """Nothing: messages name lines, which `read` counts."""
        return 0

    def num_places(self, num_rows: int) -> int:
        return self.num_lines

    def _count_lines_before(self) -> int:
        """Lines of the file before the part."""
        with reading(self.name), self.file.system.open_input_file(self.file.path) as file:
            before = LineRange(file, 0, self.part.start)
            return sum(chunk.count(b"\n") for chunk in iter(lambda: before.read(BLOCK_BYTES), b""))

    # -------------------------------------------------------------------------------------------------- lines

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[Any, Any]]:
        """The file, which knows how far it has been read, and the stream of its decompressed bytes."""
        with self.opened() as packed:
            self.num_bytes = packed.size()
            if self.compression is None and (self.part.start or self.part.stop is not None):
                lines = LineRange(packed, self.part.start, self.part.stop)
                self.num_bytes = lines.num_bytes
                yield lines, lines
            else:
                with unpacked(packed, self.compression, self.name, self.policy.encoding) as stream:
                    self.spread = Lines(stream)
                    yield packed, self.spread

    def _blocks(self, size: int | None = None, noted: Noted | None = None) -> Iterator[Block]:
        """Yield blocks of whole lines, at least `size` bytes but for the last; note where the file broke off."""
        with self._opened() as (packed, stream):
            pending: list[bytes] = []
            problem: str | None = None  # of the pending line, which is then no longer held
            line, row, more = 1 + self.lines_before, 0, True
            step = (size or BLOCK_BYTES) if self.compression is None else PACKED_BYTES
            while more:
                check_stopped()
                chunk, broken = chunk_of(stream, size or BLOCK_BYTES, step, self.policy.skips)
                self.share = packed.tell() / max(1, self.num_bytes)
                more = bool(chunk) and broken is None
                cut = chunk.rfind(b"\n") + 1
                if chunk and not cut and broken is None:
                    pending, problem = self._unfinished(pending, chunk, problem, line)
                    continue
                data = b"".join([*pending, chunk[:cut]]) if problem is None else b"#" + chunk[chunk.find(b"\n") : cut]
                if data if broken is None else cut:
                    block = Block.of(data, line, {} if problem is None else {line: problem})
                    line, row = block.next_line, row + block.num_rows
                    yield block
                pending, problem = ([chunk[cut:]] if cut < len(chunk) else []), None
                if broken is not None and noted is not None:
                    reason = f"{self.name} line {line}: cannot be read from here on ({brief(broken)})."
                    left = sum(map(len, pending)) + self.num_bytes - packed.tell()
                    noted.add(reason, self.name, row, line=line, rows=None, num_bytes=left)
            self.num_lines = line - 1 - self.lines_before

    def _unfinished(
        self, pending: list[bytes], chunk: bytes, problem: str | None, line: int
    ) -> tuple[list[bytes], str | None]:
        """Return the part of a line that does not end in this chunk, and its problem; with a problem, no part."""
        if problem is None:
            pending.append(chunk)
            problem = self._problem(pending)
        if problem is None:
            return pending, None
        if not self.policy.skips:
            raise InputError(f"{self.name} line {line}: {problem}", path=self.name, row=line)
        return [], problem

    def _problem(self, pending: list[bytes]) -> str | None:
        """Why the rest of a line that has not ended yet need not be read; None if it must be."""
        if len(pending) < 3:
            begin = b"".join(pending).removeprefix(MARK).lstrip(b" \t\r")[:1]
            if begin == b"[":
                return _ARRAY
            if pending[0][:2] in FOREIGN:
                return FOREIGN[pending[0][:2]]
            if begin not in (b"", b"{"):
                return f"begins with {begin!r}, not with {{ as a JSON object does; correct or remove it."
        if sum(map(len, pending)) > self.policy.max_document_bytes:
            return self.too_long()
        return None

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Line numbers, from 1, of rows of the last reading: int64, shape (rows,)."""
        return rows + self.gaps[np.searchsorted(self.gaps[:, 0], rows, side="right") - 1, 1]

    # -------------------------------------------------------------------------------------------- columns and types

    def _sample(self) -> pa.Schema:
        """Columns and types seen in the first hundred lines that can be read."""
        kinds: dict[str, pa.DataType] = {}
        for value, line in self._first_objects():
            for name, kind in types_of_members(value):
                self._learn(kinds, name, kind, line)
        return pa.schema(list(kinds.items()))

    def _first_objects(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Yield the objects of the sample: the first hundred that can be read, and the line of each."""
        with closing(self._readable()) as objects:
            yield from itertools.islice(objects, 100)

    def _readable(self) -> Iterator[tuple[dict[str, Any], int]]:
        """The objects that can be read, from the beginning, and the line of each; the others raise or are skipped."""
        for block in self._blocks(SAMPLE_BYTES):
            if block.line == 1 and block.num_rows:
                self._check_beginning(block)
            for row in range(block.num_rows):
                try:
                    value = self._object(block, row)
                except InputError:
                    if not self.policy.skips:
                        raise
                    continue
                yield value, int(block.lines[row])

    def _learn(self, kinds: dict[str, pa.DataType], name: str, kind: pa.DataType, line: int) -> None:
        """A value of this type was seen: the first one decides, wider numbers widen; the commonest where rows may be
        skipped."""
        counts = self.kinds.setdefault(name, Counter())
        if not pa.types.is_null(kind):
            counts[kind] += 1
        before = kinds.get(name, pa.null())
        commoner = self.policy.skips and counts[kind] > counts[before]
        if name not in kinds or before == pa.null() != kind or kind in WIDER.get(before, ()) or commoner:
            kinds[name] = kind
            self.decided[name] = line

    def _check_beginning(self, block: Block) -> None:
        begin = block.data[block.starts[0] : block.starts[0] + 2]
        if begin[:1] == b"[" and not self.policy.skips:
            raise InputError(f"{self.name}: {_ARRAY}")
        if begin in FOREIGN:
            raise InputError(f"{self.name}: {FOREIGN[begin]}")

    def look_for(self, name: str, typed: bool, key: bool) -> None:
        """Find a column however far down; `typed`: a value of it that is not null. Of ids the first lines are enough:
        a line without one is an error, unless it may be skipped."""
        kinds = dict(zip(self.schema.names, self.schema.types, strict=True))
        if name not in kinds and ("." in name or nested.is_listed(name)):
            for value, line in self._first_objects():
                for kind in _types_at(value, name):
                    self._learn(kinds, name, kind, line)
            self.schema = pa.schema(list(kinds.items()))
        markers = self.policy.markers if typed and not key else ()
        if markers and pa.types.is_string(kinds.get(name, pa.null())):  # perhaps a marker, and numbers follow
            kinds[name] = pa.null()
            self.kinds.pop(name, None)
        if (name in kinds and not (typed and pa.types.is_null(kinds[name]))) or (key and not self.policy.skips):
            return
        with closing(self._members(name, markers)) as members:
            for kind, line in members:
                self._learn(kinds, name, kind, line)
                if not (typed and pa.types.is_null(kind)):
                    break
        if nested.is_listed(name) and name not in kinds and self._has_only_empty_lists(name):
            kinds[name] = pa.null()
        self.schema = pa.schema(list(kinds.items()))

    def _has_only_empty_lists(self, name: str) -> bool:
        """Return whether a path through lists leads nowhere in the sample for want of values, not of a member."""
        holder_name = name.removesuffix(nested.EACH) if name.endswith(nested.EACH) else name.rpartition(".")[0]
        seen = False
        for value, _ in self._first_objects():
            with contextlib.suppress(nested.UnfitError):
                found = nested.value(value, holder_name)
                seen = seen or found is not nested.NOTHING
                if found is not nested.NOTHING and found:
                    return False
        return seen

    def holds_text(self, name: str) -> bool:
        """Whether a column holds a string anywhere; what else it holds can be skipped."""
        text = pa.list_(pa.string()) if nested.is_listed(name) else pa.string()
        if self.kinds.get(name, {}).get(text):
            return True
        with closing(self._members(name)) as members:
            return any(kind == text for kind, _ in members)

    def _members(self, name: str, markers: Collection[str] = ()) -> Iterator[tuple[pa.DataType, int]]:
        """Yield the type and the line of each value of a column; the type of a marker of missing values is null."""
        # Most files without such a column do not even hold the word.
        last = nested.steps_of(name.rstrip(nested.EACH))[-1]  # of a path
        words = {
            json.dumps(word, ensure_ascii=plain).encode("utf-8", "replace")
            for word in (name, last)
            for plain in (True, False)
        }
        for block in self._blocks():
            if not any(word in block.data for word in words):
                continue
            for row in range(block.num_rows):
                with contextlib.suppress(InputError):  # reading says what is wrong with a line
                    for kind in _types_at(self._object(block, row), name, markers):
                        yield kind, int(block.lines[row])

    def numbers(self, name: str) -> set[str]:
        """Return what a column of numbers holds in the whole file.

        There may be "negative" and "wide" integers (from 2**63 on), "float" (fractions, exponents, integers beyond 64
        bits), and "text", strings other than markers of missing values.
        """
        found: set[str] = set()
        for block in self._blocks():
            for part, kinds in self._in_parts(block, partial(self._kinds_in, name=name)):
                if kinds is not None:
                    found |= kinds
                    continue
                for row in range(part.num_rows):
                    with contextlib.suppress(InputError):  # reading says what is wrong with a line
                        found |= number_kind(nested.value(self._object(part, row), name), self.policy.markers)
            if "text" in found:
                break
        return found

    def _in_parts(self, block: Block, read: Callable[[Block], Any]) -> Iterator[tuple[Block, Any]]:
        """Yield a block with what is read of it or, where pyarrow.json does not read it, its parts with theirs.

        None stands for a part that has to be read line by line.
        """
        found = read(block)
        if found is not None:
            yield block, found
            return
        for part in block.divided(PART_ROWS):
            check_stopped()
            yield part, read(part)

    def _kinds_in(self, block: Block, name: str) -> set[str] | None:
        for kind in (pa.int64(), pa.uint64(), pa.float64()):
            table = self._fast(block, pa.schema([(name, kind)]))
            if table is not None and pa.types.is_floating(kind):
                return {"float"}
            if table is not None:
                span = pc.min_max(table[name]).as_py()
                return ({"negative"} if (span["min"] or 0) < 0 else set()) | (
                    {"wide"} if (span["max"] or 0) >= 2**63 else set()
                )
        return None

    def members(self, name: str) -> list[str]:
        """Names within the objects of a column, in the sample."""
        members = (each for each in self._values_in_sample(name) if type(each) is dict)
        return list(dict.fromkeys(member for each in members for member, _ in types_of_members(each)))

    def texts_within(self, name: str) -> Iterator[str]:
        for each in self._values_in_sample(name):
            yield from nested.texts_within_value(name, each)

    def _values_in_sample(self, name: str) -> Iterator[Any]:
        """Yield the values of a column in the sample; of a path through lists, the values in its lists."""
        for value, _ in self._first_objects():
            with contextlib.suppress(nested.UnfitError):
                found = nested.value(value, name)
                yield from found if isinstance(found, list) and nested.is_listed(name) else [found]

    def in_words(self, name: str, kind: pa.DataType) -> tuple[str, str]:
        return f"{self.name} line {self.decided[name]}", json_type_in_words(kind)

    # -------------------------------------------------------------------------------------------------- rows

    def _object(self, block: Block, row: int) -> dict[str, Any]:
        """Return the object of a row, or raise InputError."""
        problem = block.problems.get(int(block.lines[row])) if block.problems else None
        if problem is None and block.longest > self.policy.max_document_bytes < block.lengths[row]:
            problem = self.too_long()
        if problem is None:
            line = block.row(row)
            if may_be_deep(line) and is_deep(line):
                problem = f"more than {MAX_DEPTH} arrays and objects in one another; flatten or remove it."
        if problem is None:
            try:
                value = parsed(to_line(line))
                if isinstance(value, dict):
                    return value
                problem = 'not a JSON object; each line must be one, such as {"text": ...}.'
            except json.JSONDecodeError as error:
                problem = f"not valid JSON ({error.msg} at column {error.colno}); correct or remove it."
                if line.strip() == b"{":
                    problem = _SPREAD
            except (ValueError, RecursionError) as error:
                problem = f"not valid JSON ({brief(error)}); correct or remove it."
        raise InputError(f"{self.name} line {block.lines[row]}: {problem}", path=self.name, row=int(block.lines[row]))

    def steps(self, schema: pa.Schema, max_bytes: int) -> Iterator[Step[ReadRows | Problem]]:
        """Blocks of lines, which are cut one after another.

        A column whose field is not nullable is never null, and valid UTF-8. One of int64 may come as uint64 where
        values need it, and the other way round. An error names the line of the file, also where the part begins
        further down.
        """
        try:
            yield from self._steps(schema)
        except InputError:
            if not self.part.start or self.policy.skips:
                raise
            self.lines_before = self._count_lines_before()
            for _ in self._blocks():  # fails at the same line
                pass
            raise

    def _steps(self, schema: pa.Schema) -> Iterator[Step[ReadRows | Problem]]:
        row, gaps, noted = 0, [np.array([[0, 1]])], Noted(self.policy.skips)
        for block in self._blocks(noted=noted):
            if block.num_rows == 0:
                continue
            greater = block.lines - np.arange(row, row + block.num_rows)
            changed = np.flatnonzero(np.diff(greater, prepend=gaps[-1][-1, 1]))
            if len(changed):
                gaps.append(np.stack([row + changed, greater[changed]], axis=1))
            yield Step(partial(self._found, block, schema, row, self.share), 2 * len(block.data))
            row += block.num_rows
        self.gaps = np.concatenate(gaps)
        yield Step(noted.drain)

    def _found(self, block: Block, schema: pa.Schema, row: int, share: float) -> Iterator[ReadRows | Problem]:
        """Yield the rows of a block; `row` is the number of the first row."""
        try:
            yield from self._rows(block, schema, row, share)
        except InputError:
            if not self.part.start or self.policy.skips:
                raise
            yield from self._rows(block.moved(self._count_lines_before()), schema, row, share)  # fails at the same line
            raise

    def _rows(self, block: Block, schema: pa.Schema, row: int, share: float) -> Iterator[ReadRows | Problem]:
        for part, table in self._in_parts(block, partial(self._parsed, schema=schema)):
            if table is None:
                noted = Noted(self.policy.skips)
                batch, rows = self._by_line(part, schema, row, noted)
                yield from noted.drain()
                yield ReadRows(batch, rows, share)
                row += part.num_rows
                continue
            yield from numbered(table.to_batches(), row, share)
            row += table.num_rows

    def _parsed(self, block: Block, schema: pa.Schema) -> pa.Table | None:
        """Return the columns of a block; None where it has to be read line by line."""
        for kinds in _guesses(schema):
            table = self._fast(block, kinds)
            if table is not None:
                return table if all(_complete(table[each.name]) for each in schema if not each.nullable) else None
        return None

    def _fast(self, block: Block, schema: pa.Schema) -> pa.Table | None:
        """The block by pyarrow.json; None where it has to be read line by line."""
        if block.num_rows == 0:
            return schema.empty_table()
        if not block.is_plain or len(block.data) >= 1 << 30 or self._nests_too_deep(block):
            return None
        if block.longest > self.policy.max_document_bytes:
            return None
        whole = _with_objects(schema)
        if whole is None:
            return None
        try:
            table = _by_arrow(block.data, whole, int((block.ends - block.starts).max()), "ignore")
        except (pa.ArrowInvalid, UnicodeDecodeError):  # the latter from Arrow's message about the value
            return None
        return _selected(table, schema) if table.num_rows == block.num_rows else None

    def _nests_too_deep(self, block: Block) -> bool:
        """Whether any line has more than `MAX_DEPTH` arrays and objects in one another."""
        if (block.ends - block.starts).max() <= MAX_DEPTH:
            return False
        values = np.frombuffer(block.data, np.uint8)
        arrays, objects = values == ord("["), values == ord("{")
        if np.count_nonzero(arrays) + np.count_nonzero(objects) - block.num_rows < MAX_DEPTH:
            return False
        places = np.flatnonzero(arrays | objects)
        in_line = np.diff(np.searchsorted(places, np.append(block.starts, len(values))))
        return any(is_deep(block.data[block.starts[i] : block.ends[i]]) for i in np.flatnonzero(in_line > MAX_DEPTH))

    def _by_line(
        self, block: Block, schema: pa.Schema, first_row: int, noted: Noted
    ) -> tuple[pa.RecordBatch, np.ndarray]:
        columns: list[list[Any]] = [[] for _ in schema]
        asked_for = [(each, each.name, f"column {each.name!r}") for each in schema]
        has_paths = any("." in name for name in schema.names)
        rows = []
        for row, line in enumerate(block.lines.tolist()):
            where, values = f"{self.name} line {line}: ", []
            try:
                value = self._object(block, row)
                if has_paths or isinstance(value, Repeating):
                    names = (repeated_name(value, name) for name in schema.names)
                    if (again := next(filter(None, names), None)) is not None:
                        raise InputError(f"{where}several members are called {again!r}; remove all but one.")
                for each, name, what in asked_for:
                    member = nested.value(value, name)
                    found = None if member is nested.NOTHING else member
                    values.append(arrow_value(found, each, where + what, self.name, self.policy.markers))
            except nested.UnfitError as error:
                problem = f"{error}; correct the line or name another column."
                noted.add(where + problem, self.name, first_row + row, line=line)
                continue
            except InputError as error:
                noted.add(error, self.name, first_row + row, line=line)
                continue
            rows.append(first_row + row)
            for column, found in zip(columns, values, strict=True):
                column.append(found)
        arrays = []
        for column, target in zip(columns, schema, strict=True):
            kind = target.type
            if pa.types.is_integer(kind):
                known = [number for number in column if number is not None]
                wide, negative = max(known, default=0) >= 2**63, min(known, default=0) < 0
                if wide and negative:
                    raise mixed_integers(self.name, target.name, self.name)
                kind = pa.uint64() if wide else pa.int64()
            # Strings as bytes first: they may not be valid UTF-8.
            if pa.types.is_list(kind) and not pa.types.is_integer(kind.value_type):
                lists = pa.array(column, pa.large_list(pa.binary()))
                arrays.append(pa.LargeListArray.from_arrays(lists.offsets, lists.values.view(kind.value_type)))
            elif pa.types.is_string(kind):
                arrays.append(pa.array(column, pa.binary()).view(kind))
            else:
                arrays.append(pa.array(column, kind))
        return pa.RecordBatch.from_arrays(arrays, schema.names), np.array(rows, np.int64)

    def kept_schema(self) -> pa.Schema:
        """All columns, of all lines that can be read, however deep; times stay strings."""
        blocks = self._blocks(noted=Noted(self.policy.skips))
        found: list[pa.Schema] = []
        self.long_integers = set()
        for schema, long_integers in in_order(
            (Step(partial(self._schema_of, block), 2 * len(block.data)) for block in blocks), lambda _: 0
        ):
            if schema not in found:
                found.append(schema)
            self.long_integers |= long_integers
        wide = {field.name for schema in found for field in schema if field.type == pa.uint64()}

        def widened(field: pa.Field) -> pa.Field:
            return field.with_type(pa.uint64()) if field.name in wide and field.type == pa.int64() else field

        schema = united([pa.schema(map(widened, schema)) for schema in found], self.name)
        self.refuse_rounded(schema)
        return schema

    def refuse_rounded(self, schema: pa.Schema) -> None:
        """Raise InputError if a type of a schema would round whole numbers that `kept_schema` found."""
        for path in sorted(self.long_integers.intersection(_paths_of_floats(schema))):
            raise InputError(
                f"{self.name}: column {path!r} holds a whole number beyond 2**53 and, in other rows, fractions, and no "
                f"type holds both exactly, {_STAYS}"
            )

    def _schema_of(self, block: Block) -> list[tuple[pa.Schema, set[str]]]:
        """Return the columns of a block, and the paths of its integers that floats would round."""
        block = block.select(np.ones(block.num_rows, bool))
        table = self._table(block, None)
        fields = [field.with_type(with_inner_types(field.type, _as_written)) for field in table.schema]
        long_integers: set[str] = set()
        if _LONG_NUMBER.search(block.data):
            if any(holds_floats(field.type) for field in fields):
                fields = self._exact(block, fields)
            for name, column in zip(table.schema.names, table.columns, strict=True):
                long_integers.update(path for chunk in column.chunks for path in _paths_of_long(chunk, name))
        return [(pa.schema(fields), long_integers)]

    def _exact(self, block: Block, fields: list[pa.Field]) -> list[pa.Field]:
        """Return the columns of a block, uint64 where pyarrow.json would round such numbers to float64.

        Raises
        ------
        InputError
            If a whole number would be rounded that is not uint64, or that shares its column with other numbers.
        """
        objects: list[dict[str, Any]] = [{} for _ in range(block.num_rows)]
        for row in range(block.num_rows):
            with contextlib.suppress(InputError):
                objects[row] = self._object(block, row)
        exact = []
        for field in fields:
            values = [value.get(field.name) for value in objects]
            rounded = next((row for row, value in enumerate(values) if _is_rounded(value, field.type)), None)
            if rounded is not None:
                if not all(value is None or (type(value) is int and 0 <= value < 2**64) for value in values):
                    raise InputError(
                        f"{self.name} line {block.lines[rounded]}: column {field.name!r} holds a whole number that no "
                        f"type of its column holds exactly, {_STAYS}",
                        path=self.name,
                        row=int(block.lines[rounded]),
                    )
                field = field.with_type(pa.uint64())
            exact.append(field)
        return exact

    def stored(self) -> Iterator[Block]:
        return self._blocks()

    def batches(self, rows: Block, schema: pa.Schema) -> Iterable[pa.RecordBatch]:
        return self._table(rows, schema).to_batches()

    def _table(self, block: Block, schema: pa.Schema | None) -> pa.Table:
        """Return the lines of a block with all their columns, in types that are inferred unless they are given."""
        if not block.num_rows:
            return pa.table({}) if schema is None else schema.empty_table()
        if block.is_plain and not self._nests_too_deep(block):
            with contextlib.suppress(pa.ArrowInvalid, UnicodeDecodeError):
                table = _whole(block.data, schema)
                table.validate(full=True)
                if table.num_rows == block.num_rows:
                    return table
        values = []
        for row in range(block.num_rows):
            try:
                line = json.dumps(self._object(block, row), ensure_ascii=False)
            except InputError:
                if not self.policy.skips:
                    raise
                continue
            try:
                values.append(line.encode())
            except UnicodeEncodeError:
                raise InputError(
                    f"{self.name} line {block.lines[row]}: holds what is not Unicode, {_STAYS}",
                    path=self.name,
                    row=int(block.lines[row]),
                ) from None
        last = block.lines[-1] if block.num_rows else block.line
        with reading(self.name, f"lines {block.line} to {last} cannot become a table"):
            return _whole(b"\n".join(values), schema)

    def write(self, folder: Path, name: str, kept: Iterator[Step[bytes]]) -> None:
        path = folder / name
        pieces = ahead(in_order(kept, len, 1), 3 * BLOCK_BYTES, len)
        with writing(path, folder):
            write_packed(path, self.compression, self._as_in_file(pieces))

    def _as_in_file(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """Yield pieces of kept lines, in an array if the file is one."""
        with closing(pieces):
            first = next(pieces, b"")  # what the file is, is known when it has been begun
            pieces = itertools.chain([first], pieces)
            yield from as_array(pieces) if self.spread is not None and self.spread.is_array else pieces


_STAYS = (
    "so that its row can only be written as the line that it is; correct it, or leave out what writes rows anew: "
    "another output_format, and cuts in HTML, in several columns or in integers."
)
_LONG_NUMBER = re.compile(rb"[0-9]{16}")
_ARRAY = "an array, not an object; an array of a whole file has to hold objects."
_SPREAD = "begins an object that goes on in the next line; write each object on one line (jq -c .)."


def _whole(lines: bytes, schema: pa.Schema | None) -> pa.Table:
    """All columns of some lines, parsed at once."""
    table = _by_arrow(lines, schema, len(lines), "error" if schema is not None else "infer")
    return table if schema is None else table.select(schema.names)


def _by_arrow(lines: bytes, schema: pa.Schema | None, most_bytes: int, unexpected: str) -> pa.Table:
    """Some lines by pyarrow.json, about `most_bytes` at a time; `unexpected` says what becomes of other fields."""
    parse = pa.json.ParseOptions(explicit_schema=schema, unexpected_field_behavior=unexpected)
    options = pa.json.ReadOptions(use_threads=False, block_size=max(1 << 20, most_bytes + 64))
    return pa.json.read_json(pa.BufferReader(lines), options, parse_options=parse)


def _as_written(kind: pa.DataType) -> pa.DataType:
    """Return an inferred type as it is written: times as the strings they were."""
    return pa.string() if pa.types.is_temporal(kind) else kind


def _is_rounded(value: Any, kind: pa.DataType) -> bool:
    """Whether a value holds a whole number of more digits than the floats of a type keep."""
    if isinstance(value, dict) and pa.types.is_struct(kind):
        return any(_is_rounded(value.get(field.name), field.type) for field in kind)
    if isinstance(value, list) and pa.types.is_list(kind):
        return any(_is_rounded(each, kind.value_type) for each in value)
    if type(value) is not int or not pa.types.is_floating(kind):
        return False
    try:
        return Decimal(repr(float(value))) != value
    except OverflowError:
        return True


def _paths_of_long(values: pa.Array, path: str) -> Iterator[str]:
    """Yield the paths of integers, below `path`, that have more digits than floats keep."""
    if pa.types.is_struct(values.type):
        for place, field in enumerate(values.type):
            yield from _paths_of_long(values.field(place), f"{path}.{field.name}")
    elif pa.types.is_list(values.type):
        yield from _paths_of_long(values.flatten(), path)
    elif pa.types.is_integer(values.type):
        numbers = numpy_of(values.drop_null())
        long = numbers[(numbers > 2**53) | (numbers < -(2**53))].tolist()
        if any(_is_rounded(number, pa.float64()) for number in long):
            yield path


def _paths_of_floats(fields: Iterable[pa.Field], above: str = "") -> Iterator[str]:
    """Yield the paths of floats, as those of `_paths_of_long`."""
    for field in fields:
        kind, path = field.type, f"{above}{field.name}"
        while pa.types.is_list(kind):
            kind = kind.value_type
        if pa.types.is_struct(kind):
            yield from _paths_of_floats(kind, f"{path}.")
        elif pa.types.is_floating(kind):
            yield path


def _guesses(schema: pa.Schema) -> Iterator[pa.Schema]:
    """Yield the schema, one with the other 64-bit integers, and one with integers in place of ids that are strings."""
    nullable = pa.schema([each.with_nullable(True) for each in schema])
    yield nullable
    others = {pa.int64(): pa.uint64(), pa.uint64(): pa.int64()}
    if any(kind in others for kind in schema.types):
        yield pa.schema([each.with_type(others.get(each.type, each.type)) for each in nullable])
    if any(each.metadata and not each.nullable for each in schema):
        yield pa.schema([each if each.nullable else pa.field(each.name, pa.int64()) for each in schema])


def _types_at(value: dict[str, Any], name: str, markers: Collection[str] = ()) -> Iterator[pa.DataType]:
    """Yield the type of what an object holds under a name; of a path through lists, that of each list of values.

    The type of a marker of missing values is null.
    """
    with contextlib.suppress(nested.UnfitError):
        found = nested.value(value, name)
        if found is nested.NOTHING:
            return
        if not nested.is_listed(name):
            yield json_type(found, markers)
            return
        for kind in dict.fromkeys(map(json_type, found or ())):
            yield kind if pa.types.is_null(kind) else pa.list_(kind)


def _with_objects(schema: pa.Schema) -> pa.Schema | None:
    """The schema, and the objects and arrays that its paths lead through; None if a column would be both an object and
    something else.

    A path without arrays stays a column, too, as lines may have such a name.
    """
    tree: dict[str, Any] = {}
    for each in schema:
        *outer, last = nested.steps_of(each.name)
        kind = each.type.value_type if nested.is_listed(each.name) else each.type
        inner = tree
        for step in outer:
            inner = inner.setdefault(step, {})
            if not isinstance(inner, dict):
                return None
        if outer and last in inner:
            return None
        inner[last] = kind if outer else inner.get(last, kind)
        if inner[last] is not kind or (nested.EACH in inner and len(inner) > 1):
            return None
    paths = [each for each in schema if "." in each.name and not nested.is_listed(each.name)]
    return pa.schema([*((name, _object_type(kind)) for name, kind in tree.items()), *paths])


def _object_type(tree: Any) -> pa.DataType:
    if not isinstance(tree, dict):
        return tree
    if nested.EACH in tree:
        return pa.list_(_object_type(tree[nested.EACH]))
    return pa.struct([(name, _object_type(kind)) for name, kind in tree.items()])


def _selected(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of the schema: those of a path have the values of the path where there are none of its name."""
    columns = []
    for name in schema.names:
        first, *others = nested.steps_of(name)
        if nested.is_listed(name):
            column = pa.chunked_array([nested.follow(chunk, others) for chunk in table[first].chunks])
        else:
            column = table[name]
            if others and column.null_count:
                chunks = [nested.follow(chunk, others) for chunk in table[first].chunks]
                inner = pa.chunked_array(chunks, schema.field(name).type)
                column = inner if column.null_count == len(column) else pc.coalesce(column, inner)
        columns.append(column)
    return pa.Table.from_arrays(columns, schema.names)


def _complete(column: pa.ChunkedArray) -> bool:
    """Whether no value is null or invalid UTF-8."""
    return not column.null_count and is_utf8(column)
