"""Why a job removed nothing, or, of short texts, little: one sentence for each reason that applies.

The reasons follow from the numbers of words of all documents, from the recipe, and from the first texts of the input.
A job in memory and a job as tasks count words in the same way, so that they name the same reasons.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..data import added_up
from ..documents.rereading import first_texts
from ..documents.sources import Sources
from ..log import log
from ..recipe import Recipe
from ..report import count

SAMPLED = 200
"""Texts of the input that are looked at."""

SAMPLED_BYTES = 1 << 20
"""Bytes of a batch of the sampled texts."""

EXACT = 64
"""Numbers of words below this one are counted exactly, greater ones with a relative error of at most 1 / 64."""

NO_DOCUMENTS = "the input holds no documents: check the path or the filter that it comes from"

MOST = 0.95
"""Share of the documents for which a reason has to hold, if it need not hold for all."""

Sizes = Sequence[Sequence[int]]
"""(number of words, documents), ascending."""

_URL = re.compile(r"(\w+://|www\.)\S+")
_NUMBER = re.compile(r"[\d\s.,:;/%+()-]*\d[\d\s.,:;/%+()-]*")
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<!")


def sizes_of(num_tokens: np.ndarray) -> list[list[int]]:
    """Count documents by their number of words; of great numbers the six leading bits are kept.

    Parameters
    ----------
    num_tokens : array of int64, shape (documents,)

    Returns
    -------
    list of [int, int]
        At most some thousand sizes, each with its number of documents.
    """
    cut = np.maximum(0, np.frexp(num_tokens.astype(np.float64))[1] - 7)
    sizes, numbers = np.unique(num_tokens >> cut << cut, return_counts=True)
    return [[size, number] for size, number in zip(sizes.tolist(), numbers.tolist(), strict=True)]


def merged(parts: Iterable[Sizes]) -> list[list[int]]:
    """Add up the counts of several parts."""
    found = added_up({size: number} for part in parts for size, number in part)
    return [[size, number] for size, number in sorted(found.items())]


def reasons(removed: int, recipe: Recipe, sources: Sources, of_input: Sizes, of_reference: Sizes | None) -> list[str]:
    """Name the reasons for which a job removed nothing, and log each of them. Short texts are named in any case.

    Parameters
    ----------
    removed : int
        How many documents were removed.
    recipe : Recipe
    sources : Sources
        The first texts of the input are read again if it can be read again.
    of_input, of_reference : sequence of (int, int)
        The counts of `sizes_of`; None without a reference set.

    Returns
    -------
    list of str
        Empty if no reason is known.
    """
    found = [NO_DOCUMENTS]
    if removed:
        found = [] if recipe.only_equal else _of_short("the input", of_input, recipe)
    elif of_input:
        found = [] if recipe.only_equal else [*_of_sizes(recipe, of_input, of_reference)]
        found += _of_texts(sources) if recipe.shingles.token_kind.holds == "text" else []
    for line in found:
        if removed:
            log.info("short texts: %s", line)
        else:
            log.warning("nothing was removed: %s", line)
    return found


def warn_if_empty(counts: Mapping[str, int]) -> None:
    """Warn if an input holds no documents."""
    if not counts["documents"]:
        log.warning(NO_DOCUMENTS)


def of_units(counts: Mapping[str, int], recipe: Recipe) -> list[str]:
    """Say how few paragraphs there are, if nothing was cut and documents have about one each, and log it."""
    are_few = 0 < counts["units"] <= counts["documents"] and recipe.unit.boundaries == "paragraphs"
    if counts["units_cut"] or not are_few:
        return []
    found = f"{count(counts['units'], 'paragraph')} in {count(counts['documents'], 'document')}"
    line = f"there are no more than {found}; try --unit line or sentence (unit)"
    log.warning("nothing was cut: %s", line)
    return [line]


def _of_sizes(recipe: Recipe, of_input: Sizes, of_reference: Sizes | None) -> list[str]:
    """Name the reasons that the numbers of words give."""
    found = _of_set("the input", of_input, recipe)
    if of_reference is None:
        return found
    if not of_reference:
        return [*found, "the reference set is empty: check the path or the filter that it comes from"]
    return [*found, *_of_set("the reference set", of_reference, recipe), *_far_apart(recipe, of_input, of_reference)]


def _of_set(name: str, sizes: Sizes, recipe: Recipe) -> list[str]:
    """Name the reasons that apply to one set of documents."""
    found, noun = [], recipe.shingles.token_kind.noun
    total, empty = _number(sizes), _number(sizes, most=0)
    if empty >= MOST * total:
        found.append(
            f"{empty:,} of {count(total, 'document')} of {name} {_have(empty)} no {noun}s: "
            "check which columns hold the text"
        )
    return found + _of_short(name, sizes, recipe)


def _of_short(name: str, sizes: Sizes, recipe: Recipe) -> list[str]:
    """Say that nearly all documents of a set are too short for the shingles and the threshold, if they are."""
    width, noun = recipe.shingles.size, recipe.shingles.token_kind.noun
    total, empty = _number(sizes), _number(sizes, most=0)
    short = _number(sizes, most=width - 1) - empty
    if recipe.shingles.kind in ("set", "bag") and total > empty and short >= MOST * (total - empty):
        return [
            f"{short:,} of {count(total - empty, 'document')} of {name} with {noun}s {'is' if short == 1 else 'are'} "
            "shorter than a shingle of "
            f"{width} {noun}s, so that they can only be equal: try a smaller --shingle-size (shingle_size); "
            "docs/how_to/choose.md has settings for short texts"
        ]
    most = _spoiled_by_one(recipe)
    fragile = _number(sizes, most=most) - empty
    if total > empty and fragile >= MOST * (total - empty):
        return [
            f"{fragile:,} of {count(total - empty, 'document')} of {name} with {noun}s {_have(fragile)} at most {most} "
            f"{noun}s, "
            f"where one changed {noun} leaves a resemblance below {recipe.threshold}; docs/how_to/choose.md has "
            "settings for short texts"
        ]
    return []


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _spoiled_by_one(recipe: Recipe) -> int:
    """Return the greatest number of tokens at which a changed token in the middle takes a pair below the threshold.

    It changes w of n - w + 1 shingles of w tokens. The number is 0 if the measure is not resemblance.
    """
    width, threshold, measure = recipe.shingles.size, recipe.threshold, recipe.method.measure
    if threshold is None or measure.weighted or measure.directed or recipe.shingles.kind not in ("set", "bag"):
        return 0
    shingles = math.ceil(width * (1 + threshold) / (1 - threshold)) if threshold < 1 else 0
    while shingles and (shingles - width) / (shingles + width) >= threshold:
        shingles -= 1
    return shingles + width - 1


def _far_apart(recipe: Recipe, of_input: Sizes, of_reference: Sizes) -> list[str]:
    """Say that the sizes of input and reference are so far apart that hardly a pair can reach the threshold."""
    measure, threshold = recipe.method.measure, recipe.threshold
    if threshold is None or measure.weighted or recipe.shingles.kind == "spots":
        return []
    mine, known = _shingles(of_input, recipe), _shingles(of_reference, recipe)
    if not mine or not known:
        return []
    direction = recipe.method.direction if measure.directed else "both"
    lengths = [size for size, _ in known]
    slack = 1 + 2 / EXACT  # as sizes are rounded

    def may_reach(size: int) -> bool:
        """Tell whether a reference document has enough shingles, and few enough, for a pair at the threshold."""
        least = 0.0 if direction in ("of", "either") else threshold * size / slack
        most = (
            float("inf") if direction in ("in", "either") else size / threshold * slack if threshold else float("inf")
        )
        place = bisect_left(lengths, least)
        return place < len(lengths) and lengths[place] <= most

    out_of_reach = sum(number for size, number in mine if not may_reach(size))
    total = _number(mine)
    if out_of_reach < MOST * total:
        return []
    noun = recipe.shingles.token_kind.noun
    medians = f"{_median(of_input):,} {noun}s in the input and {_median(of_reference):,} in the reference set"
    advice = (
        "try --method containment with --direction either (method='containment', direction='either')"
        if not measure.directed
        else "try --direction either (direction='either')"
    )
    return [
        f"the documents differ so much in size that {out_of_reach:,} of {total:,} cannot reach the threshold "
        f"{threshold:g} with any reference document (medians: {medians}): {advice}"
    ]


def _shingles(sizes: Sizes, recipe: Recipe) -> list[tuple[int, int]]:
    """Return the most shingles that documents of each number of words have, without documents that have no words."""
    less = 0 if recipe.shingles.kind == "circular" else recipe.shingles.size - 1
    return [(max(1, size - less), number) for size, number in sizes if size]


def _number(sizes: Iterable[Sequence[int]], most: int | None = None) -> int:
    """Count the documents, or those of at most `most` words."""
    return sum(number for size, number in sizes if most is None or size <= most)


def _median(sizes: Sizes) -> int:
    """Return the lower median of the numbers of words of documents that have words."""
    half, seen = (_number(sizes) - _number(sizes, most=0) + 1) // 2, 0
    for size, number in sizes:
        seen += number if size else 0
        if size and seen >= half:
            return size
    return 0


def _of_texts(sources: Sources) -> list[str]:
    """Name the reasons that the first texts of the input give."""
    documents = sources.documents
    texts = first_texts(documents, SAMPLED, SAMPLED_BYTES)
    if not texts:
        return []
    found = []
    where = f"column {documents.text_columns[0]!r}" if len(documents.text_columns) == 1 else "the text"
    for kind, pattern in (("URLs", _URL), ("numbers", _NUMBER)):
        number = sum(pattern.fullmatch(text) is not None for text in texts)
        if number >= MOST * len(texts):
            found.append(
                f"{where} holds {kind}, not texts ({number:,} of the first {len(texts):,}): name the column of the "
                "texts with --text-column (text_columns)"
            )
    are_pages = documents.html and not documents.reads_html  # of a crawl, in which what is a page is known
    if are_pages and not any(_TAG.search(text) for text in texts):
        found.append(f"--html (html) was given, but the first {count(len(texts), 'text')} have no tags: leave it out")
    return found
