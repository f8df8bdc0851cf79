"""The settings of methods as flags, and the recipe that given flags make."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import ParameterError
from ..methods import METHODS, names_with
from ..records import dataclass
from ..settings import setting
from .options import Given, given, refuse_others

if TYPE_CHECKING:
    from ..recipe import Recipe

_SUMMARISING = names_with("sketch")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """How candidates are found, and which are near-duplicates."""

    method: str = setting("exact", f"How near-duplicates are found: {', '.join(METHODS)}.", metavar="NAME")
    threshold: float | None = setting(
        None, "Minimum resemblance, or containment, above 0 and up to 1.", metavar="X", shown="0.8, 0.9 by containment"
    )


@dataclass(frozen=True, kw_only=True)
class Summary:
    """How documents are summarised."""

    method: str = setting("minhash", f"How documents are summarised: {', '.join(_SUMMARISING)}.", metavar="NAME")
    threshold: float | None = setting(
        None, "Threshold for which a filter is chosen, above 0 and up to 1.", metavar="X", shown="0.8"
    )


@dataclass(frozen=True, kw_only=True)
class ShingleSettings:
    """Which shingles are compared, and how random constants are drawn."""

    tokens: str = setting(
        "words",
        "Kind of tokens: words, letters (for noisy text), lines, code, ids (integers) or chunks (binary files).",
        metavar="KIND",
    )
    language: str | None = setting(
        None, "For code: the language whose comments are left out.", metavar="NAME", shown="by the names of files"
    )
    shingle_size: int | None = setting(
        None, "Number of tokens per shingle.", metavar="W", shown="5, of letters 24, of lines and chunks 1"
    )
    shingling: str = setting("set", "How shingles are counted: set, bag, circular or spots.", metavar="KIND")
    stop_words: str | None = setting(
        None, "Stop words, at which spots begin: a language such as de, or a file.", metavar="LIST", shown="en"
    )
    drop_words: str | None = setting(
        None,
        "Words left out before shingles are made, as --stop-words says where spots begin.",
        metavar="LIST",
        shown="none",
    )
    fold: str | None = setting(
        None,
        "Differences that are ignored, with commas between them: marks, hyphens, digits.",
        metavar="LIST",
        shown="none",
    )
    stem: str | None = setting(
        None, "For simhash: the language by whose rules words become stems, such as en.", metavar="LANG", shown="none"
    )
    seed: int = setting(1, "Seed for all random constants.", metavar="N")


@dataclass(frozen=True, kw_only=True)
class Conditions:
    """Which documents are compared at all."""

    within: list[str] | None = setting(
        None,
        "Compare only documents with equal values in COLUMN, or in several, as in site,language.",
        metavar="COLUMN",
        shown="all",
    )
    length_ratio: float | None = setting(
        None,
        "Compare two documents only if the shorter one has at least this share of the longer one's tokens.",
        metavar="R",
    )
    ignore_common: str | None = setting(
        None,
        "For exact and containment: leave out shingles of more than N documents, or of more than a share such as 0.1.",
        metavar="N",
        shown="none",
    )
    empty: str = setting("kept", "Documents without text: kept, or equal, which keeps one of them.", metavar="WHAT")


@dataclass(frozen=True, kw_only=True)
class Listing:
    """Which pairs are listed."""

    max_partners: str = setting(
        "64",
        "Maximum number of listed pairs per document with better documents, and again with kept documents; or all.",
        metavar="N",
    )


@dataclass(frozen=True, kw_only=True)
class Verifying:
    """Whether near simhashes are verified."""

    verify: bool = setting(
        False, "Remove near simhashes only if their resemblance reaches --threshold, as by all other methods."
    )


DECIDING: dict[str, tuple[type, ...]] = {
    name: (kind, Verifying) if kind.usual_threshold is None else (kind,) for name, kind in METHODS.items()
}
"""The settings that `neardup dedup` takes, by method. The first method is the default."""

SKETCHING: dict[str, tuple[type, ...]] = {name: (METHODS[name],) for name in _SUMMARISING}
"""The settings that `neardup sketch` takes, by method. The first method is the default."""


def chosen_recipe(settings: dict[str, tuple[type, ...]], of_method: Given | None, **own: Any) -> Recipe:
    """Return the recipe that flags choose.

    Parameters
    ----------
    settings : dict
        The settings that the command takes, by method; the first method is the default.
    of_method : Given or None
        The given settings of methods, by flags of `method_flags`.
    **own : settings by name
        The other given settings: of a recipe and of its shingles.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If a setting is impossible, or of another method.
    """
    from ..recipe import Recipe

    name, shingles = own.pop("method", next(iter(settings))), chosen_shingles(own)
    if name not in settings:
        return Recipe(shingles=shingles, method=name, **own)  # which the library refuses
    if "ignore_common" in own:
        own["ignore_common"] = _number_or_share(own["ignore_common"])
    refuse_others(name, of_method)
    values = given(of_method)
    if values.pop("verify", False):
        own.setdefault("threshold", 0.8)
    return Recipe(shingles=shingles, method=METHODS[name](**values), **own)


def listed(values: Given | None) -> dict[str, int | None]:
    """Return the settings of `Listing` that are given, as numbers, or None for all."""
    words = given(values, of=Listing)
    try:
        return {name: None if word == "all" else int(word) for name, word in words.items()}
    except ValueError:
        raise ParameterError(f"max_partners {words['max_partners']}: give a whole number, or all") from None


def _number_or_share(word: str) -> int | float:
    """Return what --ignore-common gives: a whole number, or a share with a decimal point."""
    try:
        return float(word) if "." in word else int(word)
    except ValueError:
        raise ParameterError(f"ignore_common {word}: give a number of documents, or a share such as 0.1") from None


def chosen_shingles(own: dict[str, Any]) -> Any:
    """Return the kind of shingles that flags choose, whose settings are taken out of the given ones."""
    from ..recipe import SHINGLE_SETTINGS as NAMES, Shingles as Kind

    return Kind(**{NAMES[each]: own.pop(each) for each in NAMES if each in own})
