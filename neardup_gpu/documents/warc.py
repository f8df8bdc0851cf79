"""WARC and WET: the records of a crawl as documents.

| record | what it is |
|---|---|
| `response` by HTTP, status 200 to 299, of a type of text | a document: its payload, of HTML the visible text |
| `resource` of a type of text | a document, in the same way |
| `conversion` of a type of text, as in WET files | a document: its text |
| all others | counted by their kind, and named in the report: `report.RECORDS` |

The type of a payload is the Content-Type that the server sent, without that what the crawler found
(WARC-Identified-Payload-Type). Kept records are written as the bytes they were; from a file whose gzip members are not
single records, each as a member of its own.
"""

from __future__ import annotations

import contextlib
import gzip
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from ..errors import InputError
from ..store.uris import brief
from .ahead import Step, check_stopped, closing, in_order
from .batches import PIECE_BYTES, ROW_BYTES, ReadRows
from .contract import FileReader, Part
from .edits import Items
from .files import File
from .html import without_markup
from .http_payloads import UndecodableError, is_text, text_of, undone
from .kept import writing
from .reading import reading
from .reading_options import Reading
from .row_groups import ROW_GROUP_BYTES
from .skipped import Noted, Problem
from .warc_records import END, DamagedRecordError, Framed, Records

SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("url", pa.string()),
        ("date", pa.timestamp("us", "UTC")),
        ("content_type", pa.string()),
        ("text", pa.large_string()),
    ]
)
"""WARC-Record-ID as it stands in the header, WARC-Target-URI, WARC-Date, the type of the payload, and its text."""

_MAX_HTTP_HEADER = 1 << 20
_CONTENT_FIELD = re.compile(rb"^content-(?:type|length)(?=[ \t]*:)", re.IGNORECASE | re.MULTILINE)


class _Document(NamedTuple):
    """A record that is a document."""

    framed: Framed
    values: dict[str, Any]
    parsed: bool  # its HTML, if it is any


class Warc(FileReader):
    usual_ids = "id"
    reads_html = True
    row_word = "record"
    schema = SCHEMA

    def __init__(self, file: File, policy: Reading, part: Part) -> None:
        if find_spec("fastwarc") is None:
            raise InputError(f"{file.name}: WARC is read by FastWARC; install it: pip install 'neardup-gpu[warc]'")
        super().__init__(file, policy, part)
        self.num_bytes = self.seen.size
        self.num_records = 0
        self.left_out: Counter[str] = Counter()
        self._numbers = [np.empty(0, np.int64)]  # of the records that are rows

    def num_places(self, num_rows: int) -> int:
        return self.num_records

    def places(self, rows: np.ndarray) -> np.ndarray:
        """Numbers of the records in the file, from 1."""
        self._numbers = [np.concatenate(self._numbers)]
        return self._numbers[0][rows]

    # ------------------------------------------------------------------------------------------------------ documents

    def steps(self, schema: pa.Schema, max_bytes: int) -> Iterator[Step[ReadRows | Problem]]:
        """One step: where a record begins is known only to who has read those before it."""
        yield Step(partial(self._found, schema, min(max_bytes, PIECE_BYTES)))

    def _found(self, schema: pa.Schema, max_bytes: int) -> Iterator[ReadRows | Problem]:
        """A row is a document, or one that is too long."""
        noted = Noted(self.policy.skips)
        rows: list[int] = []
        found: list[dict[str, Any]] = []
        size = self.stripped_pages = 0
        for row, document in enumerate(self._rows(noted)):
            yield from noted.drain()
            if document is None:
                continue
            self.stripped_pages += not document.parsed
            text_bytes = len(document.values["text"]) + ROW_BYTES
            if found and size + text_bytes > max_bytes:
                yield ReadRows(_batch(found, schema), np.array(rows, np.int64), self.share)
                rows, found, size = [], [], 0
            rows.append(row)
            found.append(document.values)
            size += text_bytes
        yield from noted.drain()
        yield ReadRows(_batch(found, schema), np.array(rows, np.int64), self.share)

    def _rows(self, noted: Noted, texts: bool = True) -> Iterator[_Document | None]:
        """Documents, and None for each that is too long; other records are counted. Without `texts` these are empty."""
        self.left_out, self._numbers, numbers = Counter(), [], list[int]()
        self.num_records = row = 0
        with self.opened() as file:
            records = Records(file)
            while True:
                check_stopped()
                framed: Framed | None = None
                try:
                    framed = records.next(self._wanted)
                    if framed is None:
                        break
                    self.num_records += 1
                    found = self._document(framed, records.packed, texts)
                except DamagedRecordError as error:
                    self.num_records += framed is None
                    if not noted.skips or framed is not None:
                        self._skip(error, noted, row, None, None)
                        continue
                    resumed = records.resume()
                    place = records.place if resumed else self.num_bytes
                    self._skip(error, noted, row, None, place - error.place)
                    if not resumed:
                        break
                    continue
                self.share = file.tell() / max(1, self.num_bytes)
                if isinstance(found, str):
                    self.left_out[found] += 1
                    continue
                if found is None:
                    most = f"{self.policy.max_document_bytes:,} bytes; allow more with max_document_bytes=..."
                    self._skip(DamagedRecordError(framed.start, f"is longer than {most}"), noted, row, 1, None)
                yield found
                row += 1
                numbers.append(self.num_records)
                if len(numbers) == 1 << 16:
                    self._numbers.append(np.array(numbers, np.int64))
                    numbers = []
        self._numbers.append(np.array(numbers, np.int64))

    def _skip(self, error: DamagedRecordError, noted: Noted, row: int, rows: int | None, num_bytes: int | None) -> None:
        message = f"{self.name}: the record at byte {error.place:,} {error.problem}"
        noted.add(message, self.name, row, line=self.num_records, rows=rows, num_bytes=num_bytes)

    def _wanted(self, header: bytes, length: int) -> bool:
        """Whether the content of a record has to be held; of what is too long nothing is."""
        with contextlib.suppress(OSError):  # `_document` says what is wrong with it
            return length <= self.policy.max_document_bytes and _left_out(_parsed(header, b"")) is None
        return False

    def _document(self, framed: Framed, packed: bool, texts: bool) -> _Document | str | None:
        """Return the document that a record is, or why it is not a document; None if it is too long.

        Raises
        ------
        DamagedRecordError
            If its header cannot be read, or its bytes are not those that were written, which in plain files only a
            digest says.
        """
        try:
            record = _parsed(framed.header, framed.content or b"")
        except OSError as error:
            raise DamagedRecordError(framed.start, f"cannot be read ({brief(error)})") from None
        if framed.content is None:
            return _left_out(record)
        headers = record.headers
        digest = headers.get("WARC-Block-Digest", "").lower()
        if not packed and digest.startswith("sha1:") and not record.verify_block_digest():
            raise DamagedRecordError(framed.start, "has other bytes than its WARC-Block-Digest says")
        try:
            read = self._read_payload(record, texts)
        except OverflowError:
            return None
        if isinstance(read, str):
            return read
        kind, (text, parsed) = read
        url = (headers.get("WARC-Target-URI") or "").strip()
        values = {
            "id": headers.get("WARC-Record-ID"),
            "url": url.removeprefix("<").removesuffix(">") or None,
            "date": _date(headers.get("WARC-Date")),
            "content_type": kind or None,
            "text": text,
        }
        return _Document(framed, values, parsed)

    def _read_payload(self, record: Any, texts: bool) -> Any:
        """Return the media type and the text of a record, or why it is not a document."""
        charset, identified = None, record.headers.get("WARC-Identified-Payload-Type")
        encodings: list[str] = []
        declared = record.headers.get("Content-Type")
        if record.is_http:
            try:
                record.parse_http(max_header_len=_MAX_HTTP_HEADER, quirks_mode=True)
            except OSError:
                return "undecodable"
            http = record.http_headers
            if http is None or not 200 <= (http.status_code or 0) < 300:
                return "http_status"
            declared = http.get("Content-Type")
            for name in ("Content-Encoding", "Transfer-Encoding"):
                for value in http.get_multiple(name):
                    encodings += [each.strip().lower() for each in value.split(",")]
        kind, charset = _media_type(declared)
        if not kind:
            kind = _media_type(identified)[0]
        if not is_text(kind):
            return "not_text"
        cut = record.headers.get("WARC-Truncated") is not None
        try:
            payload = undone(record.reader.read(), encodings, self.policy.max_document_bytes, cut)
        except UndecodableError:
            return "undecodable"
        return kind, text_of(payload, kind, charset, self.policy.tree, self.policy.encoding) if texts else (b"", True)

    # ---------------------------------------------------------------------------------------------------------- kept

    def stored(self) -> Iterator[Items[Framed | None]]:
        """Yield the records that are documents, and None for a document that is too long."""
        found: list[Framed | None] = []
        size = 0
        for document in self._rows(Noted(self.policy.skips), texts=False):
            found.append(None if document is None else document.framed)
            size += 0 if document is None else len(document.framed.content or b"")
            if size >= ROW_GROUP_BYTES // 2:
                yield Items(found, size)
                found, size = [], 0
        yield Items(found, size)

    def batches(self, rows: Items[Framed], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """Yield the columns of some documents, with the text that a reader sees."""
        with reading(self.name):
            documents = (self._document(framed, packed=True, texts=True) for framed in rows.items)
            values = [document.values for document in documents if isinstance(document, _Document)]
        yield _batch(values, SCHEMA)

    def write(self, folder: Path, name: str, kept: Iterator[Step[Framed]]) -> None:
        path = folder / name
        with reading(self.name):
            source = self.file.system.open_input_file(self.file.path)
        with (
            source,
            writing(path, folder),
            open(path, "wb") as output,
            closing(in_order(kept, lambda _: 0, 1)) as records,
        ):
            for framed in records:
                if framed.stop is None:
                    assert framed.content is not None
                    output.write(gzip.compress(framed.header + framed.content + END, mtime=0))
                else:
                    with reading(self.name):
                        source.seek(framed.start)
                        stored = source.read(framed.stop - framed.start)
                    output.write(stored)


def _batch(found: list[dict[str, Any]], schema: pa.Schema) -> pa.RecordBatch:
    arrays = []
    for field in schema:
        values = [values[field.name] for values in found]
        kind = SCHEMA.field(field.name).type
        if field.name == "text":
            arrays.append(pa.array(without_markup(values), pa.large_binary()).view(kind))
        else:
            arrays.append(pa.array(values, kind))
    return pa.RecordBatch.from_arrays(arrays, schema.names)


def _parsed(header: bytes, content: bytes) -> Any:
    """Return a record as FastWARC reads it, which knows two names of fields in one spelling only."""
    from fastwarc.warc import WarcRecord

    return WarcRecord.from_bytes(_CONTENT_FIELD.sub(lambda name: name[0].title(), header) + content)


def _left_out(record: Any) -> str | None:
    """Return why a record is not a document, as far as its header says; None if it may be one."""
    kind = (record.headers.get("WARC-Type") or "").strip().lower()
    if kind in ("request", "metadata", "warcinfo", "revisit"):
        return kind
    if kind == "continuation" or record.headers.get("WARC-Segment-Number"):
        return "segment"
    if kind not in ("response", "resource", "conversion"):
        return "other"
    if kind == "response" and not record.is_http:
        return "no_http"
    declared = _media_type(record.headers.get("Content-Type") or record.headers.get("WARC-Identified-Payload-Type"))
    return None if record.is_http or is_text(declared[0]) else "not_text"


def _media_type(value: str | None) -> tuple[str, str | None]:
    """The type in a Content-Type, in lower case, and its charset."""
    kind, *parameters = (value or "").split(";")
    charset = None
    for parameter in parameters:
        name, _, text = parameter.partition("=")
        if name.strip().lower() == "charset" and charset is None:
            charset = text.strip()
    return kind.strip().lower(), charset


def _date(value: str | None) -> datetime | None:
    """A WARC-Date, which may lack all but the year (WARC/1.1, 5.4); None where there is none."""
    text = (value or "").strip()
    with contextlib.suppress(ValueError, OverflowError):  # the latter of a time zone at the ends of the calendar
        found = datetime.fromisoformat(text + {4: "-01-01", 7: "-01"}.get(len(text), ""))
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    return None
