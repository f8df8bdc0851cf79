"""Why a document was removed: the kept one, their resemblance, and the words in which the two differ."""

from __future__ import annotations

import difflib
import html
from collections.abc import Callable, Iterable
from dataclasses import asdict, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import checks
from ..documents import Documents, open_documents
from ..documents.reading_options import reading_of
from ..documents.references import ReferenceSets, open_reference
from ..documents.rereading import columns_of, name_of, text_of
from ..engine.arrays import apart
from ..errors import InputError, ParameterError
from ..methods.frequencies import Frequencies
from ..printable import printable, readable_id
from ..recipe import Recipe
from ..records import dataclass
from ..report import beside, count, resemblance, shorten
from ..stages import as_documents, count_tokens, shingle
from ..stages.conditions import group_words
from ..store.artefacts import DOCUMENTS, UNITS, parts_of, read_report, using_report
from ..store.parquet import read_table
from ..text.raw_text import to_bytes
from ..text.token_kinds import KINDS
from ..text.vocabulary import Vocabulary
from . import diff
from .tables import KIND, REFERENCE

if TYPE_CHECKING:
    from rich.text import Text

ALIKE = {
    "identical": "identical to that of the kept one",
    "same_words": "the same words, with other punctuation, spaces or letter case",
    "same_key": "another one, under the same key",
}
"""Describes a text that counts as the kept one, by its kind."""

MEMBERS = 20
"""Members of a group that are listed."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why one document stays or goes; `Result.explain` makes it.

    `print` shows it as `neardup explain` does, and a notebook shows the words in colour.

    Parameters
    ----------
    id : int or str
        The document's id.
    kept : bool
        Whether it stays.
    duplicate_of : int or str, default None
        The kept document that stands for it; None if it stays itself.
    kind : str, default None
        How this document is like the kept one; None for a kept document.

        - "identical": the same text, byte for byte.
        - "same_words": the same words in the same order, with other punctuation, spaces or letter case.
        - "same_key": the same key, by the method "identical" with a key.
        - "near": other words.
    in_reference : bool, default False
        Whether the kept document belongs to the reference set.
    measure : "resemblance" or "containment", default "resemblance"
        What decided.
    resemblance : float, default None
        Exact resemblance to the kept document, as verified; None for a kept document, and where it was not verified: a
        chain of pairs led to it, or the distance alone decided.
    containment : float, default None
        By containment, the share of this document's shingles that the kept one has, as verified; None as above.
    of_kept : bool, default False
        By containment, whether the kept document, which is in the reference set, is the one that is contained: then
        `containment` is the share of its shingles, and the words below are those of this document.
    first_word : int, default None
        By containment, unless of spots or circular shingles, where the text lies in the kept one: the shortest stretch
        of it that has all shingles that both have begins with this word, numbered from 1.
    last_word : int, default None
        The last word of that stretch.
    kept_words : int, default None
        By containment, how many words the kept one has.
    distance : int, default None
        By simhash, the number of bits in which the two differ.
    bits : int, default None
        By simhash, the length of a simhash.
    group : int or str, default None
        The kept document of its group.
    members : list, default []
        For a kept document the others of its group, at most 20.
    num_members : int, default 0
        Number of the others of its group.
    shared : int, default 0
        Shingles that both texts have; by a weighting the sum of the smaller weights, in 256ths.
    united : int, default 0
        Shingles that at least one of the texts has; by a weighting the sum of the larger weights.
    size : int, default 0
        Shingles that this text has, or the kept one if `of_kept`; or all their weights.
    weighting : str, default None
        By min-hash with weights, what shingles were weighed by.
    tokens : str, default "words"
        The kind of tokens that were compared. The words below are these tokens.
    words : list of (op, text), default []
        From the kept text to this one. Empty if the texts have the same words in the same order. Each op is one of:
        "equal": words of both texts, written as in the kept one;
        "removed": words that are only in the kept one;
        "added": words that are only in this one;
        "moved_from": words of the kept one that this one has elsewhere, moved or repeated;
        "moved_to": words of this one that the kept one has elsewhere, moved or repeated;
        "cut": a note in place of words that are left out.
    notes : list of str, default []
        Remarks on the diff, such as words that it leaves out.
    unit : str, default None
        The unit that was compared, if it is a part of a document. `words` are then the document: "removed" parts were
        cut, and a note after each, "cut", names its source.
    num_units : int, default 0
        Parts of the document.
    num_cut : int, default 0
        Parts that were cut.

    Examples
    --------
    >>> from neardup_gpu import dedup
    >>> found = dedup({"text": ["to be or not to be that is", "to be or not to be"]}, threshold=0.5).explain(1)
    >>> found.words
    [('equal', 'to be or not to be '), ('removed', 'that is')]
    """

    id: Any
    kept: bool
    duplicate_of: Any = None
    kind: str | None = None
    in_reference: bool = False
    measure: str = "resemblance"
    resemblance: float | None = None
    containment: float | None = None
    of_kept: bool = False
    first_word: int | None = None
    last_word: int | None = None
    kept_words: int | None = None
    distance: int | None = None
    bits: int | None = None
    group: Any = None
    members: list[Any] = field(default_factory=list)
    num_members: int = 0
    shared: int = 0
    united: int = 0
    size: int = 0
    weighting: str | None = None
    tokens: str = "words"
    words: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    unit: str | None = None
    num_units: int = 0
    num_cut: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dict, for JSON.

        Returns
        -------
        dict
            Each field by its name.

        Examples
        --------
        >>> from neardup_gpu import dedup
        >>> dedup({"text": ["to be or not to be"] * 2}).explain(1).to_dict()["duplicate_of"]
        0
        """
        return asdict(self)

    def __repr__(self) -> str:
        return f"Explanation({_facts(self)[0].plain})"

    def __str__(self) -> str:
        return render(self).plain

    def _repr_html_(self) -> str:
        facts = "<br>".join(html.escape(line.plain) for line in _facts(self))
        notes = "".join(f"<p>{html.escape(note)}</p>" for note in self.notes)
        return f"<p>{facts}</p><p>{diff.in_html(self.words)}</p>{notes}"


def explain(
    folder: str | Path,
    id: Any,
    *,
    full: bool = False,
    source: Any = None,
    against: Any = None,
    vocabulary: str | None = None,
) -> Explanation:
    """Say why a document of a finished run stays or goes.

    Parameters
    ----------
    folder : path
        What `dedup` wrote; the input must still be where it was.
    id : int or str
        The document's id; a number may be given as text.
    full : bool, default False
        Leave no words out of the diff of the compared texts.
    source : table, default None
        The documents, if `dedup` was given them in memory.
    against : table, default None
        The reference set, if `dedup` was given it in memory.
    vocabulary : path, default None
        A tokenizer.json, if tokens are ids: its words are shown in place of integers.

    Returns
    -------
    Explanation
        Why the document stays or goes.

    Raises
    ------
    OutputError
        If the folder is not a finished result.
    DamagedError
        If it is not as it was written.
    InputError
        If it has no such document, or the input is gone or has changed since.
    """
    with using_report(folder):
        report = read_report(folder)
        paths = parts_of(folder, report["files"], DOCUMENTS)
        read = lru_cache(maxsize=1)(read_table)  # one part at a time; where there are no others, it is read once
        recipe = Recipe.of(read(paths[0]).schema, str(paths[0]))
        known = None
        if vocabulary is not None:
            if not recipe.shingles.token_kind.of_integers:
                raise ParameterError(f"vocabulary: the tokens of {folder} are not integers; leave it out")
            known = Vocabulary(checks.path("vocabulary", vocabulary))
        measure: Any = recipe.method.measure
        if recipe.ignored is not None or (measure.weighted and recipe.method.needs_statistics):
            measure = recipe.measure_by(Frequencies.load(Path(folder) / "frequencies.parquet"))
        found = explained(
            lambda: map(read, paths),
            lambda: pa.concat_tables(map(read_table, parts_of(folder, report["files"], UNITS))),
            recipe,
            measure,
            id,
            (
                partial(opened_again, report["input"], source, "source", folder),
                partial(opened_again, report["against"], against, "against", folder),
            ),
            name=str(folder),
            full=full,
        )
    return found if known is None else replace(found, words=known.spelled(found.words))


def opened_again(description: dict[str, Any], given: Any, parameter: str, folder: str | Path) -> Documents:
    """Open the described documents, from where they were read or from the documents given."""
    if description["format"] != "memory":
        return open_reference(description)
    if given is None:
        raise InputError(
            f"{folder}: its documents were given in memory; pass them again: explain(folder, id, {parameter}=table)"
        )
    return open_documents(given, reading=reading_of(description))


Tables = Callable[[], Iterable[pa.Table]]
"""Gives the parts of a result's table of documents, one after another."""


def explained(
    tables: Tables,
    units: Callable[[], Any],
    recipe: Recipe,
    measure: Any,
    id: Any,
    sources: tuple[Callable[[], Documents], Callable[[], Any]],
    *,
    name: str,
    full: bool,
) -> Explanation:
    """Explain a row of a result's table of documents.

    `units` reads the table of units, if there is one; `sources` open the input and the reference set.
    """
    documents, reference = sources
    row, entry = row_of(tables, id, name)
    (found,) = entry.to_pylist()
    own = entry["id"][0]
    if recipe.unit.divides:
        table, text = units(), text_of(documents(), own, row)
        parts = table.filter(pc.equal(table["id"], own)).to_pylist()
        if parts and parts[-1]["end"] > len(to_bytes(text)):
            raise _changed(documents(), name)
        words, notes = diff.struck(parts, text, full=full)
        return Explanation(
            found["id"],
            found["kept"],
            duplicate_of=found["duplicate_of"],
            in_reference=bool(found.get("in_reference")),
            group=found["group"],
            words=words,
            notes=notes,
            unit=recipe.unit.unit,
            num_units=found["units"],
            num_cut=found["units_cut"],
        )
    if found["kept"]:
        listed, number = _members(tables, own)
        return Explanation(found["id"], True, group=found["id"], members=listed, num_members=number)

    in_reference = bool(found.get("in_reference"))
    target = entry["duplicate_of"][0]
    if in_reference:
        known = reference()
        known = known.named(found.get(REFERENCE)) if isinstance(known, ReferenceSets) else known
        kept_text = text_of(known, target, None)
    else:
        kept_text = text_of(documents(), target, row_of(tables, target.as_py(), name)[0])
    text = text_of(documents(), own, row)
    names = target.as_py(), own.as_py()
    tokens, _ = count_tokens(as_documents([kept_text, text], recipe), recipe, "cpu", names)
    ours = shingle(tokens, recipe, backend="cpu")
    if recipe.ignored is not None and recipe.within:  # common shingles are those of the group
        ids = pa.chunked_array([pa.array([own.as_py()], own.type)])
        group, _ = group_words(columns_of(documents(), ids, [row], recipe.within), 0, 0)
        ours = apart(ours, np.repeat(group, 2))
    a, b = (measure.counting(np.unique(ours[number])) for number in (0, 1))
    common, told = np.intersect1d(a, b, assume_unique=True), found[measure.name]
    if in_reference:
        measure = measure.with_reference
    shared, left, right = measure.sums(ours) if measure.weighted else (len(common), len(a), len(b))
    kind = found.get(KIND)
    same_words = np.array_equal(tokens[0], tokens[1])
    alike = {"identical": diff.are_identical(kept_text, text), "same_words": same_words}.get(kind, True)
    if not alike or (told is not None and left and right and told != measure.of(shared, left, right)):
        raise _changed(documents(), name)
    told_of: dict[str, Any] = {measure.name: told}
    whole = 0  # the text that contains the other one
    if measure.directed and measure.size_of_part(left, right) != right:
        whole, told_of["of_kept"] = 1, True
    # A spot does not say which word it begins with, and circular shingles may lie at both ends.
    if measure.directed and recipe.shingles.kind not in ("spots", "circular"):
        told_of |= _place(ours[whole], common, tokens.sizes[whole], recipe.shingles.size)
    words, notes = diff.differences(kept_text, text, recipe, full=full, names=names)
    return Explanation(
        found["id"],
        False,
        duplicate_of=found["duplicate_of"],
        kind=kind,
        in_reference=in_reference,
        measure=measure.name,
        **told_of,
        distance=found.get("distance"),
        bits=recipe.method.bits if "distance" in found else None,
        group=found["group"],
        shared=shared,
        united=left + right - shared,
        size=left if whole else right,
        weighting=recipe.method.weighting if measure.weighted else None,
        tokens=str(recipe.shingles.tokens),
        words=words,
        notes=notes,
    )


def _changed(documents: Documents, name: str) -> InputError:
    """Make the error for documents that are not those of a result."""
    return InputError(f"{name_of(documents)}: has changed since {name} was made from it; run neardup dedup again")


def _members(tables: Tables, kept: pa.Scalar) -> tuple[list[Any], int]:
    """Ids of the first documents that a kept one stands for, and the number of all of them."""
    listed: list[Any] = []
    number = 0
    for table in tables():
        members = table.filter(pc.and_(pc.equal(table["group"], kept), pc.invert(table["kept"])))
        if "in_reference" in table.column_names:
            members = members.filter(pc.invert(members["in_reference"]))
        listed += members["id"].slice(0, MEMBERS - len(listed)).to_pylist()
        number += members.num_rows
    return listed, number


def _place(shingles: np.ndarray, common: np.ndarray, num_words: Any, width: int) -> dict[str, int]:
    """Find a text in a container: the first of the shortest stretches that have all common shingles.

    Parameters
    ----------
    shingles : array of uint64
        Of the container, in the order of its words.
    common : array of uint64
        Ascending.
    num_words : int
        Of the container.
    width : int
        Words of a shingle.
    """
    if len(common) == 0:
        return {}
    places = np.flatnonzero(np.isin(shingles, common))
    which = np.searchsorted(common, shingles[places])
    before = np.full(len(places), -1)  # the last earlier place of each one's shingle
    order = np.argsort(which, kind="stable")
    again = which[order[1:]] == which[order[:-1]]
    before[order[1:][again]] = order[:-1][again]
    num_found = np.cumsum(before < 0)
    first, best = 0, (0, len(places) - 1)
    after = np.full(len(places), len(places))
    after[before[before >= 0]] = np.flatnonzero(before >= 0)
    for last in range(int(np.searchsorted(num_found, len(common))), len(places)):
        while after[first] <= last:  # it comes again
            first += 1
        if places[last] - places[first] < places[best[1]] - places[best[0]]:
            best = first, last
    begin, end = int(places[best[0]]), min(int(places[best[1]]) + width, int(num_words))
    return {"first_word": begin + 1, "last_word": end, "kept_words": int(num_words)}


def row_of(tables: Tables, id: Any, folder: str) -> tuple[int, pa.Table]:
    """Row of a document, and a table of that row alone; its id may be given as text."""
    before = 0
    for table in tables():
        kind = table["id"].type
        is_bytes = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        try:
            if isinstance(id, str):
                wanted = pa.scalar(id.encode("utf-8", "surrogateescape") if is_bytes else id).cast(kind)
            else:
                wanted = pa.scalar(id, kind)
            row = pc.index(table["id"], wanted).as_py()
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
            break  # all parts have ids of one type
        if row >= 0:
            return before + row, table.slice(row, 1)
        before += table.num_rows
    raise InputError(f"{folder}: no document {id!r}; {_ids_there(tables, str(id))}")


def _ids_there(tables: Tables, id: str) -> str:
    """Which ids there are: all integers, or those that look like one that there is not."""
    spans: list[int] = []
    first: list[str] = []
    similar: list[str] = []
    for table in tables():
        ids = table["id"]
        if pa.types.is_integer(ids.type):
            spans += [value for value in pc.min_max(ids).as_py().values() if value is not None]
            continue
        is_text = pa.types.is_string(ids.type) or pa.types.is_large_string(ids.type)
        some = [readable_id(value) for value in ids.slice(0, 10_000 - len(first)).to_pylist()]
        text = ids.cast(pa.large_string()) if is_text else pa.array(some, pa.large_string())
        if id:
            like = text.filter(pc.match_substring(text, printable(id), ignore_case=True))
            similar += like.slice(0, 100 - len(similar)).to_pylist()
        first += some
    if spans:
        return f"ids are integers from {min(spans)} to {max(spans)}"
    pool = dict.fromkeys([*similar, *first])
    close = difflib.get_close_matches(id, list(pool), 3, 0.5) or similar[:3] or first[:3]
    return f"it has {', '.join(shorten(c, 80) for c in close)}" if close else "it holds no documents"


def render(found: Explanation, *, width: int = 80, colour: bool = False) -> Text:
    """An explanation as rich draws it on a terminal; without colour, differences read [-removed-] and {+added+}."""
    from rich.text import Text

    lines = _facts(found)
    if found.words and found.unit is not None:
        lines += [Text(), *diff.in_lines(found.words, width, colour)]
    elif found.words:
        legend = diff.legend(found.words, "the kept one", "this one", colour)
        lines += [_line(f"{_noun_of(found)}s", "") + legend, Text(), *diff.wrapped(found.words, width, colour)]
    if found.notes:
        lines += [Text(), *map(beside, found.notes)]
    return Text("\n").join(lines)


def _facts(found: Explanation) -> list[Text]:
    """Return the lines of an explanation that come before the words."""
    name = readable_id(found.id), "bold"
    if found.unit is not None:
        cut = f"{found.num_cut:,} of {found.num_units:,} parts ({found.unit}) are cut"
        head = f" was kept; {cut}" if found.kept else f" was removed, for {readable_id(found.duplicate_of)}; {cut}"
        return [beside(name, head)]
    if found.kept:
        if not found.num_members:
            return [beside(name, " was kept; nothing was removed for it")]
        lines = [beside(name, f" was kept, and stands for {count(found.num_members, 'document')}:")]
        lines += [beside(f"  {shorten(readable_id(member), 1000)}") for member in found.members]
        if found.num_members > len(found.members):
            lines.append(beside(f"  and {found.num_members - len(found.members):,} more"))
        return lines
    where = " of the reference set" if found.in_reference else ""
    lines = [beside(name, " was removed"), _line("kept", f"{readable_id(found.duplicate_of)}{where}")]
    if found.distance is not None:
        lines.append(_line("distance", f"{found.distance} of {found.bits} bits"))
    shingles = f"{found.shared:,} of {count(found.united, 'shingle')} shared"
    if found.weighting is not None:
        shingles = f"{found.shared / 256:,.1f} of {found.united / 256:,.1f} by {found.weighting} weights shared"
    told, of = found.resemblance, found.united
    if found.measure == "containment":
        told, of = found.containment, found.size
        shingles = f"{found.shared:,} of its {count(of, 'shingle')} are in the kept one"
        if found.of_kept:
            shingles = f"{found.shared:,} of the kept one's {count(of, 'shingle')} are in it"
    why = ""
    if told is None and found.kind == "same_key":
        told = found.shared / of if of else 0.0
    elif told is None:
        told = found.shared / of if of else 0.0
        chain = "a chain of pairs joins them" if found.distance is None else "by their distance"
        why = f", not verified: {chain}"
    noun = _noun_of(found)
    if found.kind in ALIKE:
        alike = ALIKE[found.kind] if noun == "word" or found.kind in ("identical", "same_key") else f"the same {noun}s"
        lines.append(_line("text", alike))
    if of:
        lines.append(_line(found.measure, f"{resemblance(told)} ({shingles}){why}"))
    if found.kept_words is not None:
        whose = "its" if found.of_kept else "the kept one's"
        stretch = f"{noun}s {found.first_word:,} to {found.last_word:,} of {whose} {found.kept_words:,}"
        lines.append(_line("where", f"{stretch} have all that both have"))
    return lines


def _noun_of(found: Explanation) -> str:
    """Return the word for the tokens that were compared."""
    return KINDS[found.tokens].noun if found.tokens in KINDS else "token"


def _line(label: str, text: str) -> Text:
    return beside(f"{label:12} {text}")
