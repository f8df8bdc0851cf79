"""Read the rule that says which document of a group is kept: keys in their order, with commas between them."""

from __future__ import annotations

from typing import NamedTuple

from .errors import ParameterError

FIRST, LONGEST = "first", "longest"
"""Keys that no column has: the order of the input, and the number of tokens."""


class Key(NamedTuple):
    """A key of a rule.

    Parameters
    ----------
    text : str
        The key as the rule has it.
    column : str or None
        The column that it compares; None for `FIRST` and `LONGEST`.
    descending : bool
        Whether the document with the greatest value is kept.
    """

    text: str
    column: str | None
    descending: bool


def keys_of(rule: str) -> list[Key]:
    """Return the keys of a rule. The order of the input decides after the last one.

    Raises
    ------
    ParameterError
        If a key is empty or repeated, or follows "first", which leaves nothing to decide.

    Examples
    --------
    >>> [key.column for key in keys_of("score:desc,longest,first")]
    ['score', None, None]
    """
    keys = [_key(word.strip()) for word in rule.split(",")]
    for place, key in enumerate(keys):
        if not key.text or key.column == "":
            raise ParameterError(f"keep {rule!r}: a key is empty; give a rule such as date:desc,longest")
        if place and keys[place - 1].text == FIRST:
            raise ParameterError(f"keep {rule!r}: nothing is left to decide after first; put first last")
        if any(earlier.column == key.column and (key.column or earlier == key) for earlier in keys[:place]):
            raise ParameterError(f"keep {rule!r}: {key.column or key.text} is named twice; name each key once")
    return keys


def _key(word: str) -> Key:
    if word in (FIRST, LONGEST):
        return Key(word, None, False)
    name, colon, direction = word.rpartition(":")
    if colon and direction in ("asc", "desc"):
        return Key(word, name, direction == "desc")
    return Key(word, word, False)


def checked_rule(rule: str) -> str:
    """Return a rule without spaces around its keys; raises the errors of `keys_of`."""
    return ",".join(key.text for key in keys_of(rule))


def compares_lengths(rule: str) -> bool:
    """Return whether a rule compares numbers of tokens."""
    return any(key.text == LONGEST for key in keys_of(rule))


def keep_columns(rule: str) -> list[str]:
    """Return the columns that a rule compares.

    Examples
    --------
    >>> keep_columns("score:desc,longest,date")
    ['score', 'date']
    """
    return [key.column for key in keys_of(rule) if key.column is not None]
