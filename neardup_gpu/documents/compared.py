"""The values of columns that are compared, such as the one that decides who is kept.

Numbers are compared as numbers, also where they are written as text, as in CSV, or are mixed with markers of missing
values. Ordered categories are compared in their order. Whatever else is text is compared as text; where it looks like
numbers, a remark says so and names a row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from ..errors import InputError
from ..report import shorten
from .columns import decoded, is_string

NUMBER = r"^[ \t]*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*$"
INTEGER = r"^(0|-?[1-9][0-9]{0,18}|[1-9][0-9]{19})$"
INEXACT = r"^[ \t+]|[ \t]$|^-?0[0-9]|^-?\.|[0-9]{16}"
"""Numbers that would become other strings if they were written as numbers."""
LIKE_A_NUMBER = r"^[\s+$€£¥-]*[.,]?[0-9][0-9.,'_\s]*([eE][+-]?[0-9]+)?[\s%]*$"
"""Also numbers with a currency, a percent sign, or marks between thousands; not dates such as 2026-01-31."""


class Values:
    """Finds out what strings are, such as the values of a column of CSV: integers, numbers, or text.

    Attributes
    ----------
    numbers : set of str
        Of integers "negative", and "wide" for those from 2**63 on; "float" for other numbers.
    may_be_numbers : bool
        Whether all values so far are numbers.
    are_exact : bool
        Whether all of them are what they were once they are numbers: without leading zeros or more than 15 digits.
    """

    def __init__(self) -> None:
        self.may_be_numbers = self.are_exact = True
        self._are_integers = True
        self._numbers: set[str] = set()
        self._any = False

    def add(self, values: pa.Array) -> None:
        """Look at more values without nulls."""
        if not self.may_be_numbers or not len(values):
            return
        self._any = True
        self._are_integers = self._are_integers and _all_match(values, INTEGER)
        self.are_exact = self.are_exact and not pc.any(pc.match_substring_regex(values, INEXACT)).as_py()
        if not self._are_integers:
            self.may_be_numbers = _all_match(values, NUMBER)
            return
        least, most = _span(values)
        self._numbers |= ({"negative"} if least < 0 else set()) | ({"wide"} if most >= 2**63 else set())
        self._are_integers = most < 2**64 and not {"negative", "wide"} <= self._numbers

    @property
    def numbers(self) -> set[str]:
        return set() if not self.may_be_numbers else self._numbers if self._are_integers else {"float"}

    @property
    def type(self) -> pa.DataType:
        """The type that holds all of them; null if there are none."""
        if not self.may_be_numbers:
            return pa.string()
        if not self._any:
            return pa.null()
        if not self._are_integers:
            return pa.float64()
        return pa.uint64() if "wide" in self._numbers else pa.int64()


def _all_match(values: pa.Array, pattern: str) -> bool:
    return pc.all(pc.match_substring_regex(values, pattern)).as_py() in (True, None)


def _span(values: pa.Array) -> tuple[int, int]:
    """Return the least and the greatest of integers written as strings."""
    try:
        found = pc.min_max(values.cast(pa.int64())).as_py()
        return found["min"], found["max"]
    except pa.ArrowInvalid:
        numbers = [int(value) for value in values.to_pylist()]
        return min(numbers), max(numbers)


def is_ordered(kind: pa.DataType) -> bool:
    """Return whether a type has ordered categories: those of pandas, Enum of Polars, ordered dictionaries of Arrow."""
    return pa.types.is_dictionary(kind) and kind.ordered


def without_markers(column: pa.Array, markers: Sequence[str]) -> pa.Array:
    """Return strings with null in place of each marker of a missing value."""
    is_marker = pc.is_in(column, pa.array(markers, column.type))
    return pc.if_else(is_marker, pa.scalar(None, column.type), column)


def numbers_of(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return strings that are numbers, as `NUMBER` describes them, in a type of numbers."""
    plain = pc.replace_substring_regex(pc.utf8_trim(column, characters=" \t"), r"^\+", "")
    return plain.cast(kind)


def compared(column: pa.Array, kind: pa.DataType, markers: Sequence[str]) -> pa.Array:
    """Return a column that is compared in the type that it has in all files.

    Parameters
    ----------
    column : pyarrow.Array
    kind : pyarrow.DataType
    markers : sequence of str
        What strings say that there is no value; none where the file itself marks missing values.
    """
    column = decoded(column, None)
    if is_string(column.type) and markers:
        column = without_markers(column, markers)
    if is_string(column.type) and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return numbers_of(column, kind)
    return decoded(column, kind)


# ------------------------------------------------------------------------------------------------- ordered categories


def categories_of(dictionary: pa.Array) -> tuple[str, ...]:
    """Return the categories of a dictionary, in their order, as strings."""
    return tuple(value for value in _as_strings(decoded(dictionary, None)).to_pylist() if value is not None)


def one_order(orders: Iterable[Sequence[str]], name: str) -> list[str]:
    """Return the order of all categories: that of the file that has the most of them.

    Raises
    ------
    InputError
        If a file has other categories, or has them in another order.
    """
    longest: Sequence[str] = ()
    several = sorted({tuple(order) for order in orders}, key=lambda order: (-len(order), order))
    for order in several:
        longest = longest or order
        rest = iter(longest)
        if not all(category in rest for category in order):
            raise InputError(
                f"column {name!r} has its categories in different orders, {_in_order(longest)} and {_in_order(order)}; "
                "give it the same categories everywhere."
            )
    return list(longest)


def ranks_of(column: pa.ChunkedArray, categories: Sequence[str], name: str) -> pa.ChunkedArray:
    """Return the rank of each value among ordered categories.

    Raises
    ------
    InputError
        If a value is not a category, for example if only some files have categories.
    """
    values = _as_strings(column)
    ranks = pc.index_in(values, pa.array(categories, values.type))
    if ranks.null_count > values.null_count:
        other = values.filter(pc.and_(pc.is_null(ranks), pc.is_valid(values)))[0].as_py()
        raise InputError(
            f"column {name!r} has ordered categories, {_in_order(categories)}, and {shorten(repr(other), 40)} is not "
            "one of them; give it the same categories everywhere."
        )
    return ranks


def _as_strings(values: Any) -> Any:
    return values if is_string(values.type) and not pa.types.is_string_view(values.type) else values.cast(pa.string())


def _in_order(categories: Sequence[str]) -> str:
    return shorten(" < ".join(categories), 60)


# --------------------------------------------------------------------------------------------- text that is compared


class Looks:
    """The form of the strings of a column that is compared.

    Attributes
    ----------
    like : tuple of (int, str), or None
        The document, from 0, and the value of the first one that looks like a number.
    other : tuple of (int, str), or None
        The same of the first one that is not a number.
    width : int or None
        The length of all of them, if they are digits of one length, whose order as text is that as numbers; 0 if they
        are not; None if there are none.
    """

    def __init__(self) -> None:
        self.like: tuple[int, str] | None = None
        self.other: tuple[int, str] | None = None
        self.width: int | None = None

    def add(self, column: pa.Array, first: int) -> None:
        """Look at the values of documents that begin with number `first`."""
        if not is_string(column.type) or column.null_count == len(column):
            return
        self.like = self.like or _first(column, pc.match_substring_regex(column, LIKE_A_NUMBER), first)
        self.other = self.other or _first(column, pc.invert(pc.match_substring_regex(column, NUMBER)), first)
        if self.width == 0:
            return
        widths = pc.min_max(pc.binary_length(column)).as_py()
        digits = pc.all(pc.match_substring_regex(column, "^[0-9]+$")).as_py()
        width = widths["max"] if digits and widths["min"] == widths["max"] else 0
        self.width = width if self.width in (None, width) else 0

    def seen(self, place: Callable[[int], tuple[str, str, int]]) -> SeenStrings:
        """Return what was seen, with the places of documents: the file, what a row is called, and its number."""
        like, other = (None if each is None else (*each, *place(each[0])) for each in (self.like, self.other))
        return SeenStrings(like, other, self.width)


class SeenStrings(NamedTuple):
    """`Looks` of an input or of a slice: the document, the value, the file, "row" or "line", and its number."""

    like: tuple[int, str, str, str, int] | None
    other: tuple[int, str, str, str, int] | None
    width: int | None


def remark(name: str, parts: Sequence[SeenStrings]) -> str | None:
    """Say that numbers of a column are compared as text; None if there are none.

    Parameters
    ----------
    name : str
    parts : sequence of SeenStrings
        What was seen in the input, or in all slices of it.
    """
    widths = {part.width for part in parts if part.width is not None}
    like = next((part.like for part in parts if part.like is not None), None)
    other = next((part.other for part in parts if part.other is not None), None)
    if like is None or (len(widths) == 1 and 0 not in widths):
        return None
    _, value, *where = other or like
    shown, place = shorten(repr(value), 40), " ".join(map(str, where))
    if other is None:
        return (
            f"column {name!r} holds numbers as strings, such as {shown} in {place}, so it is compared as text: store "
            "them as numbers"
        )
    return (
        f"column {name!r} is compared as text, since {shown} in {place} is not a number: correct it, or name it with "
        "--null-values (null_values) if it marks a missing value"
    )


def _first(column: pa.Array, mask: pa.Array, first: int) -> tuple[int, str] | None:
    """Return the first value at which a mask holds, and the number of its document."""
    place = pc.index(mask, True).as_py()
    if place < 0:
        return None
    return first + place, column[place].as_buffer().to_pybytes().decode("utf-8", "backslashreplace")
