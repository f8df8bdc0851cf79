"""Values of JSON: a line parsed as pyarrow.json does it, how deep it nests, and its members as Arrow takes them."""

from __future__ import annotations

import contextlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from typing import Any

import pyarrow as pa

from ..errors import InputError
from .columns import outside_int64

MAX_DEPTH = 500  # of arrays and objects in one another; json itself ends near 1,000

_STRING = r'"(?:[^"\\]++|\\.)*+"?'
_BRACKETS = re.compile(_STRING.encode() + rb"|[\[{]|[\]}]", re.DOTALL)
_ODD_NUMBERS = re.compile(_STRING + r"|-NaN\b|-?\bInf\b", re.DOTALL)


def _integer(digits: str) -> int | float:
    """An integer; infinity where it has more digits than Python converts."""
    return int(digits) if len(digits) <= 4000 else float(digits)


class Repeating(dict[str, Any]):
    """An object in which names stand several times: the last value of each."""

    names: frozenset[str] = frozenset()


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        found = Repeating(found)
        found.names = frozenset(name for name, number in Counter(name for name, _ in pairs).items() if number > 1)
    return found


_DECODER = json.JSONDecoder(strict=False, parse_int=_integer, object_pairs_hook=_members)
_SCAN: Callable[[str, int], tuple[Any, int]] = _DECODER.scan_once  # type: ignore[attr-defined]


def _decoded(text: str) -> Any:
    with contextlib.suppress(StopIteration):
        value, end = _SCAN(text, 0)  # without blanks on either side, as most lines are
        if end == len(text):
            return value
    return _DECODER.decode(text)


_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # both halves of a character
    rb"|(?P<lone>\\u[dD][cC][89a-fA-F][0-9a-fA-F])"
    rb"|\\.",
    re.DOTALL,
)


def to_line(data: bytes) -> str:
    """Return a line of JSON as a string: U+DC80 to U+DCFF stand for bytes that are not UTF-8, and for nothing else.

    An escape of a surrogate, such as ``\\udcc3``, becomes one of U+FFFD.
    """
    if b"\\ud" in data or b"\\uD" in data:
        data = _ESCAPES.sub(lambda found: rb"\ufffd" if found["lone"] else found[0], data)
    return data.decode("utf-8", "surrogateescape")


def parsed(text: str) -> Any:
    """Return a line as JSON, with all that pyarrow.json accepts as well: -NaN, Inf and -Inf.

    Raises
    ------
    json.JSONDecodeError
        If the line is not JSON.
    """
    try:
        return _decoded(text)
    except json.JSONDecodeError:
        if "Inf" not in text and "NaN" not in text:
            raise
        usual = _ODD_NUMBERS.sub(lambda found: _USUAL.get(found[0], found[0]), text)
        with contextlib.suppress(json.JSONDecodeError):
            return _DECODER.decode(usual)
        raise


_USUAL = {"-NaN": "NaN", "Inf": "Infinity", "-Inf": "-Infinity"}


def may_be_deep(line: bytes) -> bool:
    return len(line) > MAX_DEPTH and line.count(b"{") + line.count(b"[") > MAX_DEPTH


def is_deep(line: bytes) -> bool:
    """Whether more than `MAX_DEPTH` arrays and objects are in one another."""
    depth = 0
    for found in _BRACKETS.finditer(line):
        sign = line[found.start()]
        if sign in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                return True
        elif sign in b"]}":
            depth -= 1
    return False


WIDER = {pa.int64(): (pa.uint64(), pa.float64()), pa.uint64(): (pa.float64(),)}


def types_of_members(value: dict[str, Any]) -> Iterator[tuple[str, pa.DataType]]:
    """Names and types of an object's members; a name that is not Unicode names no column."""
    for name, member in value.items():
        try:
            name.encode("utf-8")
        except UnicodeEncodeError:
            continue
        yield name, json_type(member)


def repeated_name(members: dict[str, Any], name: str) -> str | None:
    """Return a name on a path that stands several times in an object; None if there is no such name."""
    if isinstance(members, Repeating) and name in members.names:
        return name
    inner: Any = members
    for part in name.split("."):
        if isinstance(inner, Repeating) and part in inner.names:
            return part
        inner = inner.get(part) if isinstance(inner, dict) else None
    return None


def json_type(value: Any, markers: Collection[str] = ()) -> pa.DataType:
    """Return the type of a value; that of a marker of missing values is null."""
    if value is None or (markers and isinstance(value, str) and value in markers):
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


def number_kind(value: Any, markers: Collection[str]) -> set[str]:
    """Return what a value of a column of numbers is, as `InferringReader.numbers` has it."""
    if isinstance(value, str):
        return set() if value in markers else {"text"}
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return set()
    if isinstance(value, float) or not -(2**63) <= value < 2**64:
        return {"float"}
    return {"negative"} if value < 0 else {"wide"} if value >= 2**63 else set()


def json_type_in_words(kind: pa.DataType) -> str:
    """Return the name of a JSON column's type, for messages."""
    if pa.types.is_list(kind):
        return "an array"
    if pa.types.is_struct(kind):
        return "an object"
    if pa.types.is_boolean(kind):
        return "true or false"
    if pa.types.is_string(kind):
        return "text"
    return "an integer" if pa.types.is_integer(kind) else "a number with a fraction or beyond 64 bits"


COMPARED = b"compared"
"""The key in the metadata of a field whose column is compared (see `compared.py`), or holds integers among strings."""


def arrow_value(value: Any, target: pa.Field, where: str, path: str, markers: Collection[str] = ()) -> Any:
    """Return a value as Arrow takes it: strings as UTF-8. `path` is the file, for errors.

    In a column that is compared, numbers may stand among strings, and markers of missing values among numbers; where
    some files have strings as ids, integers may stand among them.
    """
    kind = target.type
    is_compared = target.metadata is not None and COMPARED in target.metadata
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if is_compared and pa.types.is_string(kind) and (is_integer or (target.nullable and isinstance(value, float))):
        value = json.dumps(value)
    if is_compared and not pa.types.is_string(kind) and isinstance(value, str) and value in markers:
        return None
    if value is None:
        if not target.nullable:
            raise InputError(f"{where} is null; every document needs an id.", path=path)
        return None
    if pa.types.is_list(kind) and isinstance(value, list):
        values = [arrow_value(each, pa.field(target.name, kind.value_type), where, path) for each in value]
        if pa.types.is_integer(kind.value_type) and (most := max(filter(None, values), default=0)) >= 2**63:
            raise InputError(f"{where} holds {outside_int64(most)}", path=path)
        return values
    if pa.types.is_string(kind) and isinstance(value, str):
        try:
            return to_utf8(value) if target.nullable else value.encode()
        except UnicodeEncodeError:
            raise InputError(f"{where} is not valid UTF-8; correct the id.", path=path) from None
    if isinstance(value, bool) == pa.types.is_boolean(kind):
        if pa.types.is_boolean(kind):
            return value
        if pa.types.is_floating(kind) and isinstance(value, (int, float)):
            return _float(value)
        if pa.types.is_integer(kind) and isinstance(value, int) and -(2**63) <= value < 2**64:
            return value
    words = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}
    names = {pa.string(): "text", pa.float64(): "a number", pa.bool_(): "true or false"}
    names[pa.list_(pa.string())] = "an array of texts"
    wanted = "a 64-bit integer" if pa.types.is_integer(kind) else names.get(kind, str(kind))
    found = words.get(type(value), "a number")
    if found == "a number" and pa.types.is_integer(kind):
        found = f"the number {value}" if isinstance(value, float) or abs(value) < 10**30 else "a larger number"
    problem = f"{where} holds {found}, not {wanted}; correct the line or name another column."
    raise InputError(problem, path=path)


def to_utf8(value: str) -> bytes:
    """Return the bytes of a text as they were in the file, with U+FFFD for surrogates that were written as escapes."""
    try:
        return value.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return re.sub("[\ud800-\udc7f\udd00-\udfff]", "\ufffd", value).encode("utf-8", "surrogateescape")


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")
