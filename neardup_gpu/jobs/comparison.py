"""Two texts compared: their resemblance, how much of each the other contains, and the words in which they differ."""

from __future__ import annotations

import html as _html
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import checks
from ..errors import ArgumentTypeError, ParameterError
from ..recipe import Recipe, Shingles
from ..records import dataclass
from ..report import beside, count, percent, resemblance as in_digits
from ..results.diff import differences, in_html, legend, wrapped
from ..stages import count_tokens, shingle, utf8
from ..text.raw_text import TO_STRING

if TYPE_CHECKING:
    from rich.text import Text


@dataclass(frozen=True, repr=False)
class Comparison:
    """How two texts A and B compare, by their shingles; `compare` makes it.

    Parameters
    ----------
    resemblance : float
        |A n B| / |A u B|; 0 if either has no words.
    identical : bool
        Whether the two texts are equal.
    same_words : bool
        Whether the two texts are identical, or have words and those of both are the same, in the same order.
    containment_a : float
        Share of A's shingles that B has, |A n B| / |A|; 0 for a text without words.
    containment_b : float
        Share of B's shingles that A has, |A n B| / |B|; 0 for a text without words.
    shared : int
        Number of distinct shingles that both have.
    num_a : int
        Number of distinct shingles of A.
    num_b : int
        Number of distinct shingles of B.
    words : list of (op, text)
        From A to B. Empty if the texts have the same words in the same order. Each op is one of:
        "equal": words of both texts, written as in A;
        "removed": words that are only in A;
        "added": words that are only in B;
        "moved_from": words of A that B has elsewhere, moved or repeated;
        "moved_to": words of B that A has elsewhere, moved or repeated;
        "cut": a note in place of words that are left out.
    notes : list of str
        Remarks on the diff, such as words that it leaves out.

    Examples
    --------
    >>> from neardup_gpu import compare
    >>> found = compare("to be or not to be", "to be or not", shingles=Shingles(2))
    >>> found.shared, found.num_a, found.num_b, float(found)
    (3, 4, 3, 0.75)
    """

    resemblance: float
    identical: bool
    same_words: bool
    containment_a: float
    containment_b: float
    shared: int
    num_a: int
    num_b: int
    words: list[tuple[str, str]]
    notes: list[str]

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dict, for JSON.

        Returns
        -------
        dict
            Each field by its name.

        Examples
        --------
        >>> from neardup_gpu import compare
        >>> compare("to be or not to be", "to be or not", shingles=Shingles(2)).to_dict()["containment_b"]
        1.0
        """
        return asdict(self)

    def __float__(self) -> float:
        return self.resemblance

    def __repr__(self) -> str:
        return (
            f"Comparison(resemblance {self.resemblance:.4f}: {self.shared:,} of "
            f"{self.num_a + self.num_b - self.shared:,} shingles shared; B has {self.containment_a:.1%} of A, "
            f"A has {self.containment_b:.1%} of B)"
        )

    def _repr_html_(self) -> str:
        notes = "".join(f"<p>{_html.escape(note)}</p>" for note in self.notes)
        return f"<p>{_html.escape(repr(self))}</p><p>{in_html(self.words)}</p>{notes}"


def compare(a: Any, b: Any, *, shingles: Shingles | None = None, full: bool = False) -> Comparison:
    """Compare two texts.

    Parameters
    ----------
    a : str or bytes
        The first text. Bytes are UTF-8, in which each invalid byte is a letter that equals only itself. For the tokens
        "ids", it is a list or array of integers.
    b : str or bytes
        The second text.
    shingles : Shingles, default None
        The kind of shingles. If None, it is Shingles(5, "set").
    full : bool, default False
        Leave no words out of the diff.

    Returns
    -------
    Comparison
        Resemblance and containment: Broder 1997, section 2.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If an argument is not as described above.

    Examples
    --------
    >>> compare("to be or not to be", "to be or not", shingles=Shingles(2))
    Comparison(resemblance 0.7500: 3 of 4 shingles shared; B has 75.0% of A, A has 100.0% of B)
    """
    recipe = Recipe() if shingles is None else Recipe(shingles=shingles)
    kind = recipe.shingles.token_kind
    read, shown = integers_of if kind.of_integers else _bytes_of, TO_STRING[kind.holds]
    raw = [read("a", a), read("b", b)]
    tokens, _ = count_tokens(utf8(raw), recipe, "cpu")
    made = shingle(tokens, recipe, backend="cpu")
    mine, theirs = np.unique(made[0]), np.unique(made[1])
    shared = len(np.intersect1d(mine, theirs, assume_unique=True))

    def share(of: int) -> float:
        return shared / of if of else 0.0

    words, notes = differences(shown(raw[0]), shown(raw[1]), recipe, full=checks.flag("full", full))
    union = len(mine) + len(theirs) - shared
    return Comparison(
        resemblance=share(union),
        identical=raw[0] == raw[1],
        same_words=raw[0] == raw[1] or (len(tokens[0]) > 0 and np.array_equal(tokens[0], tokens[1])),
        containment_a=share(len(mine)),
        containment_b=share(len(theirs)),
        shared=shared,
        num_a=len(mine),
        num_b=len(theirs),
        words=words,
        notes=notes,
    )


def integers_of(name: str, numbers: Any) -> bytes:
    """Return integers as a document of 8 bytes each.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If they are not integers of 64 bits with a sign.
    """
    if isinstance(numbers, (str, bytes)):
        raise ArgumentTypeError(f"{name}: {checks.shown(numbers)} is text; the tokens 'ids' are a list of integers")
    return bytes(checks.array(name, numbers, np.int64, convert=True, hint="token ids").tobytes())


def _bytes_of(name: str, text: str | bytes) -> bytes:
    """Return a text as UTF-8.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If it is neither bytes nor Unicode text.
    """
    if isinstance(text, bytes):
        return text
    try:
        return checks.text(name, text, "give a str, or UTF-8 as bytes").encode()
    except UnicodeEncodeError:
        raise ParameterError(f"{name}: {checks.shown(text)} is not Unicode text; give such texts as bytes") from None


def render(found: Comparison, *, width: int = 80, colour: bool = False) -> Text:
    """A comparison as rich draws it on a terminal; without colour, differences read [-removed-] and {+added+}."""
    from rich.text import Text

    united = found.num_a + found.num_b - found.shared
    lines = [
        beside(f"resemblance  {in_digits(found.resemblance)} ({found.shared:,} of {count(united, 'shingle')} shared)"),
        beside(f"containment  {percent(found.containment_a)} of A in B, {percent(found.containment_b)} of B in A"),
    ]
    if found.identical:
        lines.append(beside("texts        identical"))
    elif found.same_words:
        lines.append(beside("texts        the same words, with other punctuation, spaces or letter case"))
    if found.words:
        lines += [beside("words        ") + legend(found.words, "A", "B", colour), Text()]
        lines += wrapped(found.words, width, colour)
    if found.notes:
        lines += [Text(), *map(beside, found.notes)]
    return Text("\n").join(lines)
