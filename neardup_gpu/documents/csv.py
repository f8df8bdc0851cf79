"""CSV and TSV: blocks of whole rows.

A row ends at a line ending outside of quotes, and quotes count if they open a field, as in RFC 4180; empty lines are
skipped. After a closing quote only a delimiter or a line ending may follow. Where something else follows,
the line on which the row begins is a row that cannot be read, and the next row begins on the next line. A quote that
nothing closes may be that of a file that was cut off, so nothing after it is read. The first row names the columns.
Blocks of whole rows are found by one regular expression and parsed by pyarrow.csv, which opens a field where the
expression does. An empty field is null, and ``""`` an empty string. Text is UTF-8, with or without a byte order mark;
bytes of it that are not UTF-8 are given as they are. A file in another encoding, which the user names, is read as
UTF-8. Kept rows are written as the bytes they were, or as UTF-8 where an encoding was named, below the mark and the
header of the file.

Fields say nothing about types: a column is of integers if every value of it is written as integers are, without
leading zeros, of numbers if every value is a number, and else of strings. Only the columns of ids and those that decide
are looked at for that, which reads the file once more.
"""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from ..data import arrow_bytes
from ..errors import InputError
from ..log import log
from ..records import dataclass
from ..report import shorten
from ..store.uris import brief
from .ahead import Step, ahead, check_stopped, closing, in_order
from .batches import ReadRows, size_of
from .columns import bytes_are_utf8
from .compared import Values, without_markers
from .contract import InferringReader, Part
from .files import FOREIGN, POINTER, File
from .json_blocks import MARK, RowBlock
from .kept import writing
from .packed import PACKED_BYTES, chunk_of, unpacked, write_packed
from .reading import reading
from .reading_options import Reading
from .skipped import Noted, Problem

BLOCK_BYTES = 4 << 20  # of rows parsed at once
SAMPLE_BYTES = 1 << 16  # read to learn the header
AUTO = "auto"
"""The delimiter that is found out by the first line."""

_NAMES = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
_WORDS = {"\t": "tab"}


@dataclass(frozen=True, eq=False)
class _CsvBlock(RowBlock):
    """Whole rows of a file."""

    broken: np.ndarray  # bool: whether a row has something after a closing quote
    row: int  # number of the first one, from 0
    line: int  # on which the block begins, from 1
    next_line: int

    def _others(self, keep: np.ndarray, moved: np.ndarray) -> dict[str, np.ndarray]:
        return {"broken": self.broken[keep]}

    def lines_of(self, places: list[int]) -> list[int]:
        """Return the lines on which some rows of the block begin."""
        feeds = np.flatnonzero(np.frombuffer(self.data, np.uint8) == ord(_ending(self.data)))
        return (self.line + np.searchsorted(feeds, self.starts[places])).tolist()


class Csv(InferringReader):
    as_strings = True
    sample = "the header"

    def __init__(self, file: File, policy: Reading, part: Part) -> None:
        super().__init__(file, policy, part)
        suffixes = PurePosixPath(file.path.lower()).suffixes
        is_tsv = ".tsv" in suffixes[-2:] if policy.input_format is None else policy.input_format == "tsv"
        usual = "\t" if is_tsv else ","
        self.delimiter = policy.delimiter or usual
        self._kinds: dict[str, Values] = {}
        self.mark = self.header = b""
        if self.delimiter == AUTO:
            self.delimiter = self._found_delimiter(usual)
        first = b""
        with closing(self._blocks(SAMPLE_BYTES)) as blocks:
            for block in blocks:
                first = self.header or block.data[: block.nexts[0] if len(block.nexts) else 0]
                if first:
                    break
        names = self._names(first)
        self.schema = pa.schema([(name, pa.string()) for name in names])
        self.doubtful_header = next(filter(_looks_like_data, names), None) if policy.header else None

    # -------------------------------------------------------------------------------------------------- rows as bytes

    def _blocks(self, size: int | None = None, noted: Noted | None = None) -> Iterator[_CsvBlock]:
        """Yield blocks of about `size` bytes without the header; note the place at which the file broke off."""
        size = size or BLOCK_BYTES
        with (
            self.opened() as packed,
            unpacked(packed, self.compression, self.name, self.policy.encoding) as stream,
        ):
            self.num_bytes = packed.size()
            step = size if self.compression is None else PACKED_BYTES
            first_row = -1 if self.policy.header else 0  # the header is row -1
            data, row, line, more, begins = b"", first_row, 1, True, True
            while more:
                check_stopped()
                chunk, broken = chunk_of(stream, max(size, len(data)), step, self.policy.skips)
                self.share = packed.tell() / max(1, self.num_bytes)
                more = bool(chunk) and broken is None
                data += chunk
                if begins:
                    begins, data = False, self._begun(data)
                ends, broken_rows = self._ends(data, more, broken)
                cut = int(ends[-1]) if len(ends) else 0
                problem: str | None = None
                for block in _cut(data[:cut], ends, broken_rows, row, line, size):
                    if block.row < 0 and len(block.starts):
                        if block.broken[0]:
                            problem = f"the header: {_BROKEN}"
                            break
                        self.header, block = block.data[block.starts[0] : block.nexts[0]], _without_first(block)
                    row, line = block.row + len(block.starts), block.next_line
                    yield block
                else:
                    data = data[cut:]
                    problem = self._unfinished(data, more, broken)
                if problem is not None:
                    left = len(data) + packed.size() - packed.tell()
                    error = InputError(f"{self.name}: row {max(1, row + 1)} (line {line}): {problem}")
                    if noted is None and not self.policy.skips:
                        raise error
                    if noted is not None:
                        noted.add(error, self.name, max(0, row), rows=None, num_bytes=left)
                    return

    def _begun(self, data: bytes) -> bytes:
        """Return the first bytes without their mark; raise InputError if they show that the file is not CSV."""
        if data[:2] in FOREIGN:
            raise InputError(f"{self.name}: {FOREIGN[data[:2]]}")
        if data.startswith(POINTER):
            raise InputError(f"{self.name}: is a pointer of Git LFS, not data.")
        self.mark = MARK if data.startswith(MARK) else b""
        return data.removeprefix(MARK)

    def _ends(self, data: bytes, more: bool, broken: OSError | None) -> tuple[np.ndarray, np.ndarray]:
        """Return where rows end, with their line endings, and whether something follows a closing quote in each.

        The last row is left out if it may go on in bytes that follow, or is within quotes.
        """
        found = [(match.end() << 2) | (match.lastindex or 0) for match in _rows(self.delimiter).finditer(data)]
        ends, kinds = np.array(found, np.int64) >> 2, np.array(found, np.int64) & 3
        whole = np.diff(ends, prepend=0) > 0  # at the end of the bytes there is one more match, of nothing
        ends, kinds = ends[whole], kinds[whole]
        is_cut = (more or broken is not None) and not data.endswith(b"\n")
        if len(ends) and (is_cut or kinds[-1] == _OPEN):
            ends, kinds = ends[:-1], kinds[:-1]
        return ends, kinds == _LINE

    def _unfinished(self, data: bytes, more: bool, broken: OSError | None) -> str | None:
        """Return the problem of bytes that are less than a row; None while more bytes follow."""
        if broken is not None:
            return f"cannot be read from here on ({brief(broken)})."
        most = self.policy.max_document_bytes
        if data and not more:
            return "a field begins with a quote that nothing closes; double the quotes within fields."
        if len(data) > most:
            return (
                f"longer than {most:,} bytes, perhaps as nothing closes a quote; correct it, or allow more with "
                "max_document_bytes=..."
            )
        return None

    # -------------------------------------------------------------------------------------------- columns and types

    def _names(self, first: bytes) -> list[str]:
        """Return the names of the columns, by the first row; none of an empty file."""
        if not first:
            return []
        if self.policy.header and not _is_utf8(first):
            raise InputError(f"{self.name}: the header is not UTF-8; name its encoding: encoding='windows-1252'.")
        text = io.StringIO(first.decode("utf-8", "replace"), newline="")
        try:
            names = next(csv.reader(text, delimiter=self.delimiter))
        except csv.Error as error:
            raise InputError(f"{self.name}: the header cannot be read ({brief(error)}).") from None
        if not self.policy.header:
            return [f"f{number}" for number in range(len(names))]
        if len(names) == 1 and self.policy.delimiter is None:
            other = _commonest_delimiter(first)
            if other is not None:
                raise InputError(
                    f"{self.name}: its only column would be {shorten(names[0], 60)!r}; if a {_NAMES[other]} divides "
                    f"the fields, give delimiter={_WORDS.get(other, other)!r}, and if there is only one column, "
                    f"delimiter={_WORDS.get(self.delimiter, self.delimiter)!r}."
                )
        return names

    def _found_delimiter(self, usual: str) -> str:
        """Return the delimiter that the first line of the file has most often, and log it."""
        with (
            self.opened() as packed,
            unpacked(packed, self.compression, self.name, self.policy.encoding) as stream,
        ):
            data = stream.read(SAMPLE_BYTES).removeprefix(MARK)
        lines = data.lstrip(b"\r\n").splitlines()
        found = (_commonest_delimiter(lines[0]) if lines else None) or usual
        log.info("%s: fields are divided by a %s", self.name, _NAMES[found])
        return found

    def look_for(self, name: str, typed: bool, key: bool) -> None:
        """Find out what a column holds; one of ids is of integers or of strings."""
        if not typed or name in self._kinds or self.schema.names.count(name) != 1:
            return
        values = self._kinds[name] = self._values_of([name], () if key else self.policy.markers)[name]
        shown = pa.string() if key and pa.types.is_floating(values.type) else values.type
        self.schema = self.schema.set(self.schema.get_field_index(name), pa.field(name, shown))

    def _values_of(self, names: list[str], markers: Sequence[str] = ()) -> dict[str, Values]:
        """Return what some columns hold besides markers of missing values, by one reading of the file."""
        found = {name: Values() for name in names}
        steps = self._steps(pa.schema([(name, pa.string()) for name in names]), Noted(True))
        with closing(in_order(steps, size_of)) as items:
            for item in items:
                if isinstance(item, Problem):
                    continue
                for name, values in found.items():
                    values.add(without_markers(item.batch[name], markers).drop_null())
                if not any(values.may_be_numbers for values in found.values()):
                    break
        return found

    def holds_text(self, name: str) -> bool:
        """Return whether there is one column of this name: whatever it holds is text."""
        return self.schema.names.count(name) == 1

    def numbers(self, name: str) -> set[str]:
        return self._kinds[name].numbers if name in self._kinds else set()

    def in_words(self, name: str, kind: pa.DataType) -> tuple[str, str]:
        return self.name, "numbers"

    # -------------------------------------------------------------------------------------------------- rows

    def steps(self, schema: pa.Schema, max_bytes: int) -> Iterator[Step[ReadRows | Problem]]:
        """Blocks of rows, which are cut one after another."""
        return self._steps(schema, Noted(self.policy.skips))

    def _steps(self, schema: pa.Schema, noted: Noted) -> Iterator[Step[ReadRows | Problem]]:
        for block in self._blocks(noted=noted):
            yield Step(partial(self._found, block, schema, noted.skips, self.share), 2 * len(block.data))
        yield Step(noted.drain)

    def _found(self, block: _CsvBlock, schema: pa.Schema, skips: bool, share: float) -> Iterator[ReadRows | Problem]:
        """The good rows of a block, and the others."""
        noted, problems = Noted(skips), self._problems(block)
        good = _without(np.arange(len(block.starts)), problems)
        table = self._parsed(block, good, schema, problems)
        places = sorted(problems)
        for place, line in zip(places, block.lines_of(places), strict=True):
            where = f"{self.name}: row {block.row + place + 1} (line {line})"
            noted.add(f"{where}: {problems[place]}", self.name, block.row + place)
        yield from noted.drain()
        rows = block.row + _without(good, problems)
        start = 0
        for batch in table.to_batches():
            yield ReadRows(batch, rows[start : start + batch.num_rows], share)
            start += batch.num_rows

    def _problems(self, block: _CsvBlock) -> dict[int, str]:
        """Return the problems of rows whose bytes are wrong, by row."""
        found = dict.fromkeys(np.flatnonzero(block.broken).tolist(), _BROKEN)
        for place in np.flatnonzero(block.nexts - block.starts > self.policy.max_document_bytes).tolist():
            found[place] = self.too_long()
        return found

    def _parsed(self, block: _CsvBlock, good: np.ndarray, schema: pa.Schema, problems: dict[int, str]) -> pa.Table:
        """The columns of the good rows; those with too few or too many fields are added to the problems."""
        if not len(good):
            return schema.empty_table()
        data = block.data[block.starts[0] : block.nexts[-1]]
        if len(good) < len(block.starts):
            (data,) = block.raw(good)

        shown = _NAMES.get(self.delimiter, repr(self.delimiter))

        def refuse(row: Any) -> str:
            fields = f"{row.actual_columns} field{'' if row.actual_columns == 1 else 's'}"
            problems[int(good[row.number - 1])] = (
                f"has {fields}, not {row.expected_columns} as the header; quote fields that hold a {shown}, "
                "a quote or a line ending."
            )
            return "skip"

        if not _is_utf8(data):  # pyarrow cannot show such a row to the handler
            first = pa.schema([(self.schema.names[0], pa.string())])
            self._read(data.translate(_HIGH_AS_LETTERS), first, refuse)
            if len(fitting := _without(good, problems)) < len(good):
                good, data = fitting, b"".join(block.data[block.starts[i] : block.nexts[i]] for i in fitting.tolist())
        return self._read(data, schema, refuse) if len(good) else schema.empty_table()

    def _read(self, data: bytes, schema: pa.Schema, refuse: Any) -> pa.Table:
        """Return some columns of whole rows; `refuse` is called with those of too few or too many fields."""
        names = self.schema.names
        columns = [str(names.index(name)) for name in schema.names]
        with reading(self.name):
            table = pa.csv.read_csv(
                pa.BufferReader(data),
                pa.csv.ReadOptions(
                    column_names=[str(i) for i in range(len(names))],
                    block_size=max(1 << 20, len(data) + 64),
                    use_threads=False,
                ),
                pa.csv.ParseOptions(
                    delimiter=self.delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=True,
                    invalid_row_handler=refuse,
                ),
                pa.csv.ConvertOptions(
                    column_types=dict(zip(columns, schema.types, strict=True)),
                    include_columns=list(dict.fromkeys(columns)),
                    null_values=[""],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=False,
                    check_utf8=False,
                ),
            )
        return pa.Table.from_arrays([table[column] for column in columns], schema.names)

    def stored(self) -> Iterator[_CsvBlock]:
        return self._blocks()

    def batches(self, rows: _CsvBlock, schema: pa.Schema) -> Iterable[pa.RecordBatch]:
        own = pa.schema([field for field in schema if field.name in self.schema.names])
        return self._parsed(rows, np.arange(rows.num_rows), own, {}).to_batches()

    def write(self, folder: Path, name: str, kept: Iterator[Step[bytes]]) -> None:
        path = folder / name
        first = Step(lambda: [self.mark + self.header])
        pieces = in_order(itertools.chain([first], kept), len, 1)
        with writing(path, folder):
            write_packed(path, self.compression, ahead(pieces, 3 * BLOCK_BYTES, len))

    def kept_schema(self) -> pa.Schema:
        """All columns, of strings where there are no values, or numbers with leading zeros or 16 digits and more."""
        names = self.schema.names
        values = self._values_of(names) if len(set(names)) == len(names) else {}
        numbers = {
            name: each.type
            for name, each in values.items()
            if pa.types.is_integer(each.type) or (pa.types.is_floating(each.type) and each.are_exact)
        }
        return pa.schema([(name, numbers.get(name, pa.string())) for name in names])


@lru_cache(maxsize=8)
def _rows(delimiter: str) -> re.Pattern[bytes]:
    """Return a pattern that matches one row after another.

    Group 1 is the last field of a row if the bytes end within its quotes, and group 2 the line on which a row
    begins that has something after a closing quote.
    """
    # Not `(?:a|b)?+`: before Python 3.11.5, that keeps what its last try read in vain (gh-106052). `(?>a|b|)` does not.
    delimiter = re.escape(delimiter)
    quoted, ending = r'"[^"]*+(?:""[^"]*+)*+', r"(?:\r\n?|\n|\Z)"
    field = rf'(?>{quoted}"|[^{delimiter}\r\n"][^{delimiter}\r\n]*+|)'
    fields = rf"{field}(?:{delimiter}{field})*+"
    return re.compile(rf"{fields}(?:{ending}|({quoted}\Z))|([^\r\n]*+{ending})".encode())


_OPEN, _LINE = 1, 2
_BROKEN = "text follows the quote that closes a field; double the quotes within fields."


def _commonest_delimiter(line: bytes) -> str | None:
    """Return the usual delimiter that a line has most often outside of quotes; None if it has none."""
    bare = re.sub(rb'"[^"]*"', b"", line)
    most = max(_NAMES, key=lambda delimiter: bare.count(delimiter.encode()))
    return most if most.encode() in bare else None


def _looks_like_data(name: str) -> bool:
    """Return whether a name in the header is a number, a date, an address, or longer than names are."""
    return _DATA.fullmatch(name) is not None or len(name) > 100 or len(name.split()) > 6


_DATA = re.compile(r"[-+]?\d[\d.,eE+-]*|\d{4}-\d\d-\d\d.*|\w+://.*|\S+\s.*[.!?]", re.DOTALL)


def _cut(data: bytes, ends: np.ndarray, broken: np.ndarray, row: int, line: int, size: int) -> Iterator[_CsvBlock]:
    """Yield the rows in blocks of about `size` bytes, at least one row each, without blank lines."""
    start = first = 0
    while start < len(data):
        stop_row = min(int(np.searchsorted(ends, start + size)), len(ends) - 1) + 1
        stop = int(ends[stop_row - 1])
        part = data[start:stop]
        inner = ends[first:stop_row] - start
        starts = np.append(0, inner[:-1])
        values = np.frombuffer(part, np.uint8)
        full = ~(np.isin(values[starts], (10, 13)))
        is_broken = broken[first:stop_row][full]
        next_line = line + part.count(_ending(part))
        yield _CsvBlock(part, starts[full], inner[full], is_broken, row, line, next_line)
        row, line, start, first = row + int(np.count_nonzero(full)), next_line, stop, stop_row


def _ending(data: bytes) -> bytes:
    """Return the byte with which lines end: old files have carriage returns alone."""
    return b"\n" if b"\n" in data else b"\r"


def _without_first(block: _CsvBlock) -> _CsvBlock:
    rest = block.starts[1:], block.nexts[1:], block.broken[1:]
    return _CsvBlock(block.data, *rest, block.row + 1, block.line, block.next_line)


def _without(places: np.ndarray, problems: dict[int, str]) -> np.ndarray:
    """The places of rows without problems."""
    return places[~np.isin(places, list(problems))] if problems else places


def _is_utf8(data: bytes) -> bool:
    return bytes_are_utf8(arrow_bytes(data, np.array([0, len(data)])))


_HIGH_AS_LETTERS = bytes(range(128)) + b"x" * 128
