"""Identical: documents of equal bytes, or of equal values in key columns. Nothing is compared or estimated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

from .. import checks
from ..errors import ParameterError
from ..records import dataclass
from ..settings import setting
from .contract import Join


@dataclass(frozen=True, kw_only=True)
class Identical(Join):
    """A document is removed exactly if an earlier one by priority has the same bytes, or the same key.

    Letter case, punctuation and white space count, unlike for copies that other methods find, which have the same
    words: "x + 1" and "x - 1" differ. Two documents that differ have equal fingerprints of 128 bits with a probability
    below 2**-100 for texts of up to a megabyte: see `kernels/texts.py`.

    Parameters
    ----------
    key : str or sequence of str, default None
        Columns, also with commas between them. Documents that have equal values in all of them are identical, whatever
        their text. A document with a null or NaN in one of them is identical to none. If None, the bytes of the text
        are compared, as it is read: of HTML its visible text. Blank texts are identical to none.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a value is out of its range or of another type.

    Examples
    --------
    >>> from neardup_gpu import dedup
    >>> texts = {"text": ["x + 1", "x - 1", "x + 1"], "url": ["a", "b", "b"]}
    >>> dedup(texts, text_columns="text", method="identical").documents["kept"].to_pylist()
    [True, True, False]
    >>> dedup(texts, text_columns="text", method=Identical(key="url")).documents["kept"].to_pylist()
    [True, True, False]
    """

    key: str | Sequence[str] | None = setting(
        None,
        "Documents with equal values in COLUMN, or in several, as in domain,title, are identical.",
        metavar="COLUMN",
        shown="the bytes of the text",
    )

    name: ClassVar[str] = "identical"
    usual_threshold: ClassVar[float | None] = 1.0

    def __post_init__(self) -> None:
        if self.key is not None:
            names = tuple(",".join(checks.columns("key", self.key)).split(","))
            if "" in names or len(set(names)) < len(names):
                raise ParameterError(f"key {','.join(names)!r}: a name is empty or repeated; name each column once")
            object.__setattr__(self, "key", names)

    @property
    def equal_by(self) -> tuple[str, ...]:
        """The columns whose values make documents identical; none if the bytes of the text do."""
        return () if self.key is None else tuple(self.key)

    @property
    def kinds(self) -> tuple[str, str, str]:
        """The words for how two documents are alike."""
        return super().kinds if self.key is None else ("identical", "same_key", "near")

    def settled(self, threshold: float | None) -> Self:
        """Return the method; raise ParameterError if a threshold is given."""
        if threshold != 1.0:
            raise ParameterError(f"threshold {threshold}: method identical takes none; leave it out")
        return self

    def describe(self) -> dict[str, Any]:
        """Return the settings as plain values."""
        return {} if self.key is None else {"key": ",".join(self.key)}

    def in_words(self, threshold: float | None) -> tuple[str, str]:
        """Return the label and the sentence that describe what was found in a report."""
        what = "the same bytes" if self.key is None else f"equal values of {', '.join(self.key)}"
        return "recall", f"100% (exact): all documents with {what} count as one"
