"""Make flags from the settings of the methods, and arguments of the library from the given flags."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ..methods import METHODS, names_with
from ..settings import setting
from .options import MATCHING, Given, flags, given, refuse_others

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
class Shingles:
    """Which shingles are compared, and how random constants are drawn."""

    shingle_size: int = setting(5, "Number of words per shingle.", metavar="W")
    shingling: str = setting("set", "How shingles are counted: set, bag, circular or spots.", metavar="KIND")
    stop_words: str | None = setting(
        None, "Stop words for spots: a language such as de, or a file.", metavar="LIST", shown="en"
    )
    seed: int = setting(1, "Seed for all random constants.", metavar="N")


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """Document frequencies for weights."""

    frequencies: str | None = setting(
        None, "Document frequencies for tfidf, from an earlier run.", metavar="FILE", shown="counted"
    )


@dataclass(frozen=True, kw_only=True)
class Verified:
    """Whether near simhashes are verified."""

    verify: bool = setting(
        False, "Remove near simhashes only if their resemblance reaches --threshold, as by all other methods."
    )


DECIDING = {
    name: (
        kind,
        *((Weighed,) if any(field.name == "frequencies" for field in fields(kind)) else ()),
        *((Verified,) if kind.usual_threshold is None else ()),
    )
    for name, kind in METHODS.items()
}
"""The settings that `neardup dedup` takes, by method. The first method is the default."""

SKETCHING = {name: tuple(kind for kind in DECIDING[name] if kind is not Verified) for name in _SUMMARISING}
"""The settings that `neardup sketch` takes, by method. The first method is the default."""


def method_flags(settings: dict[str, tuple[type, ...]]) -> Any:
    """Return flags for the settings of all methods; see `flags`."""
    return flags(MATCHING, *dict.fromkeys(kind for kinds in settings.values() for kind in kinds))


ChoiceFlags: Any = flags(MATCHING, Choice)
SummaryFlags: Any = flags(MATCHING, Summary)
ShinglesFlags: Any = flags(MATCHING, Shingles)


def chosen(
    all_settings: dict[str, tuple[type, ...]], choice: Given | None, shingles: Given | None, settings: Given | None
) -> dict[str, Any]:
    """Return the settings that these flags choose, as `dedup` and `sketch` take them.

    Parameters
    ----------
    all_settings : dict
        The settings that the command takes, by the method; the first one is usual.
    choice, shingles, settings : Given or None
        Of `Choice` or `Summary`, of `Shingles` and of the methods.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If one is impossible, or of another method.
    """
    values = {"method": next(iter(all_settings)), **given(choice, shingles)}
    of_method, name = given(settings), values["method"]
    if name not in all_settings:
        return values  # which the library refuses
    refuse_others("--method", name, all_settings, settings)
    frequencies, verify = of_method.pop("frequencies", None), of_method.pop("verify", False)
    if verify:
        values.setdefault("threshold", 0.8)
    return {**values, "method": METHODS[name](**of_method), "frequencies": frequencies}
