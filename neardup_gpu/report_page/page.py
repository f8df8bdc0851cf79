"""The page: what it says of a run, in one file of HTML that asks for nothing else."""

from __future__ import annotations

import base64
import hashlib
import html as _html
import json
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .. import checks
from ..data import bools
from ..errors import InputError, OutputError, ParameterError
from ..log import log
from ..printable import printable, readable_id
from ..records import dataclass
from ..report import count, facts, histogram, percent, resemblance as in_digits, shown as shown_value, size
from ..results.by_value import WARNED, ByValue, Grouping, most_lost, read_groups
from ..results.tables import KIND
from ..store.outputs import new_file
from . import charts
from .groups import MEMBERS, GroupTable, chosen, groups_of
from .parts import parted
from .run import Run
from .summary import draw, five, picture, shown_pairs
from .texts import Difference, Pair, clean, compared
from .thresholds import curve

if TYPE_CHECKING:
    from markupsafe import Markup

LISTED = 2_000
"""Groups that a page lists, at most."""

WITH_TEXTS = 500
"""Most groups whose texts a page has,"""

TEXTS = 3
"""and removed documents of each of them."""

GROUP_BYTES, TEXT_BYTES = 1_800_000, 2_000_000
"""Bytes of the page for groups and for texts, at most."""

LISTED_VALUES, LISTED_PAIRS = 200, 50
"""Values that a page lists, those that lost most documents, and pairs of values."""

LONGEST_NAME = 300
"""Characters of an id or of a name of a source that are shown, at most."""

GENERATOR = '<meta name="generator" content="neardup report">'
"""By which a file is known as a page of ours."""

INSTALL = "pip install 'neardup-gpu[report]'"


@dataclass(frozen=True)
class Page:
    """A report as a page: a notebook shows it, and `write` puts it into a file; `Result.write_report` makes it.

    Parameters
    ----------
    html : str
        One document, without anything to be loaded.

    Examples
    --------
    >>> from neardup_gpu import dedup
    >>> page = dedup({"text": ["to be or not to be"] * 2}).write_report("page.html")  # doctest: +SKIP
    """

    html: str

    def write(self, path: str | Path, overwrite: bool = False) -> None:
        """Write the page to a file.

        Parameters
        ----------
        path : path
        overwrite : bool, default False
            Replace an earlier page, and nothing else.

        Raises
        ------
        OutputError
            If the path is taken, or cannot be written.
        """
        with new_file(path, overwrite, is_ours=is_page) as file:
            file.write_text(self.html, encoding="utf-8")

    def __repr__(self) -> str:
        return f"Page({size(len(self.html.encode()))} of HTML)"

    def _repr_html_(self) -> str:
        return (
            '<iframe title="neardup report" sandbox="allow-scripts" style="width:100%; height:760px; border:0" '
            f'srcdoc="{_html.escape(self.html)}"></iframe>'
        )


def is_page(path: Path) -> bool:
    """Whether a file is a page that was written here."""
    with path.open("rb") as file:
        return GENERATOR.encode() in file.read(2_000)


def check_installed() -> None:
    """Raise ParameterError unless what draws pages is installed."""
    try:
        import jinja2
        import vl_convert  # noqa: F401
    except ImportError as missing:
        raise ParameterError(f"report: needs {missing.name}, which is not installed; {INSTALL}") from None
    del jinja2


def make(run: Run, *, text: bool = True, by: str | None = None) -> Page:
    """Make the page of a run.

    Parameters
    ----------
    run : Run
    text : bool, default True
        Whether it holds texts, for which the input is read once more.
    by : str, optional
        The column of the input by whose values documents are counted, for which the input is read once more, or "file".
        If None, it is the column of the run's report, else the file.

    Notes
    -----
    Memory: about 400 bytes for each document and 200 for each listed pair, ids among them, and the texts that are
    shown.
    """
    text, by = checks.flag("text", text), checks.optional(checks.text, "by", by)
    check_installed()
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    ours = files(__package__)
    parts = {name: (ours / name).read_text(encoding="utf-8") for name in ("template.html", "page.css", "page.js")}
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["count"] = count
    environment.filters["commas"] = lambda number: f"{number:,}"
    environment.filters["share"] = lambda part, whole: percent(part / whole if whole else 0)
    script = parts["page.js"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    shown = environment.from_string(parts["template.html"]).render(
        **gathered(run, text, by),
        generator=Markup(GENERATOR),
        style=Markup(parts["page.css"]),
        script=Markup(script),
        script_hash=digest,
        embedded=_embedded,
    )
    return Page(shown)


def _embedded(value: Any) -> Markup:
    """JSON that may stand inside a script element, whatever it holds."""
    from jinja2.utils import htmlsafe_json_dumps

    return htmlsafe_json_dumps(value, partial(json.dumps, separators=(",", ":")), ensure_ascii=False)


def _num_bytes(value: Any) -> int:
    return len(_embedded(value).encode())


# --------------------------------------------------------------------------------------------------------- what it says


def gathered(run: Run, text: bool, by: str | None) -> dict[str, Any]:
    """The data for the template, as plain values."""
    report, groups = run.report, groups_of(run)
    found = _groups_by(run, by)
    steps = curve(run) if run.units is None else None
    worth = pc.drop_null(run.pairs[run.column]).to_numpy()
    kinds = run.pairs[KIND].cast(pa.string())
    drawn: dict[str, str | None] = {"pairs": None, "groups": None}
    if run.recipe.threshold is not None and run.recipe.threshold < 1 and bool((worth < 1).any()):
        drawn["pairs"] = charts.resemblances(worth, run.recipe.threshold, run.column)
    elif run.recipe.threshold is None and "distance" in run.pairs.column_names and len(run.pairs):
        distances = np.bincount(run.pairs["distance"].to_numpy())
        drawn["pairs"] = charts.bars([(str(bits), int(n)) for bits, n in enumerate(distances)], "bits", "pairs")
    if report["group_sizes"]:
        drawn["groups"] = charts.bars(histogram(report["group_sizes"]), "documents in a group", "groups", log=True)
    drawn_pairs = draw(run, groups)
    listed, differences = _listed(run, groups, found, text, drawn_pairs.pairs)
    losses = None if found is None else _losses(run, found)
    return {
        "summary": five(run, losses, drawn_pairs),
        "picture": picture(report["counts"], losses),
        "to_check": shown_pairs(drawn_pairs, differences, run.documents["id"], _id),
        "name": printable(run.name),
        "report": report,
        "counts": report["counts"],
        "measure": run.column,
        "threshold": run.recipe.threshold,
        "sentences": sentences(run, len(groups)),
        "facts": [row for row in facts(report) if row[0] not in ("documents", "kept", "removed", "groups")],
        "timings": _timings(report),
        "charts": drawn,
        "copies": int((worth == 1).sum()),
        "alike": {kind: pc.sum(pc.equal(kinds, kind)).as_py() or 0 for kind in run.recipe.method.kinds},
        "num_pairs": len(run.pairs),
        "steps": steps,
        "is_exact": steps is not None and all(step.least == step.most for step in steps),
        "losses": losses,
        "warned": f"{WARNED:.0%}",
        "why_nothing": [clean(line) for line in report.get("warnings", ())],
        "parted": None if run.units is None else parted(run, run.units(), text),
        "groups": listed,
        "num_groups": len(groups),
        "members": TEXTS,
        "data": {"steps": steps, "removed": report["counts"]["removed"], "measure": run.column, **listed["data"]},
    }


def sentences(run: Run, num_groups: int) -> list[str]:
    """Return what a run removed in whole sentences, which follow the first one of `summary.five`."""
    counts, recipe, said = run.report["counts"], run.recipe, list[str]()
    removed = counts["removed"]
    if recipe.unit.divides:
        number, cut = counts["units"], counts["units_cut"]
        said.append(
            f"Of {count(number, 'part')} of documents ({recipe.unit}), {cut:,} are cut as copies of kept parts."
        )
        if "tokens_left" in counts:
            said.append(f"That leaves {counts['tokens_left']:,} of {counts['tokens']:,} words.")
        return said
    if removed:
        kinds = run.recipe.method.kinds
        same_text, same_words, near = (counts[f"removed_{kind}"] for kind in kinds)
        said.append(
            f"Of the removed ones {same_text:,} {'is' if same_text == 1 else 'are'} identical to the kept document, "
            f"{same_words:,} {'has' if same_words == 1 else 'have'} the {kinds[1].replace('_', ' ')}, and {near:,} "
            f"{'is' if near == 1 else 'are'} nearly the same."
        )
        groups = f"They form {count(num_groups, 'group')}, each of one kept document and those that it stands for"
        if run.report["group_sizes"]:
            groups += f"; the largest has {count(run.report['group_sizes'][-1][0], 'document')}"
        said.append(f"{groups}.")
    else:
        said.append("No document is a near-duplicate of another.")
    if recipe.threshold is None:
        said.append("Nothing was verified: the distance of sketches alone decided.")
    elif run.recipe.only_against:
        said.append(f"A document is removed when it matches a reference document by at least {recipe.threshold:g}.")
    elif recipe.method.equal_by is not None:
        what = f"values of {', '.join(recipe.method.equal_by)}" if recipe.method.equal_by else "bytes"
        said.append(f"A document is removed when a kept one has the same {what}.")
    elif run.column == "containment":
        said.append(f"A document is removed when a kept one contains at least {recipe.threshold:g} of its shingles.")
    else:
        said.append(f"A document is removed when it resembles a kept one by at least {recipe.threshold:g}.")
    if run.report.get("against"):
        said.append(
            f"The {count(counts['reference_documents'], 'document')} of a reference set may stand for others and are "
            "never removed."
        )
        if (leaks := counts.get("near_reference")) is not None:
            how, verb = ("matches", "is") if leaks == 1 else ("match", "are")
            said.append(f"{count(leaks, 'document')} of the input {how} one of them and {verb} removed.")
    return said


def _timings(report: dict[str, Any]) -> list[tuple[str, float, float]]:
    """(stage, seconds, share of the longest)."""
    timings = {stage: seconds for stage, seconds in report.get("timings", {}).items() if seconds > 0}
    longest = max(timings.values(), default=1)
    return [(stage, seconds, seconds / longest) for stage, seconds in timings.items()]


def _groups_by(run: Run, by: str | None) -> Grouping | None:
    """Group the documents of a run by a column of the input, or by their files or folders; None without any."""
    by = by or run.report.get("by", {}).get("column")
    if by is not None:
        return read_groups(by, run.documents, run.source(), None)[0]
    return Grouping.of_files(run.documents["file"]) if "file" in run.documents.column_names else None


def _losses(run: Run, found: Grouping) -> dict[str, Any]:
    """Return the groups that lost most, and the pairs of groups with most near-duplicates between them."""
    removed = found.count(~bools(run.documents["kept"].combine_chunks()))
    rows = sorted(found.rows(removed=removed), key=lambda row: (-row["removed"], -row["documents"]))
    warnings, no_words = most_lost(rows), np.zeros(len(run.documents), np.int64)
    units = None if run.units is None else run.units()
    pairs = ByValue.of(found, no_words, run.documents, run.pairs, units).pairs.slice(0, LISTED_PAIRS)

    def named(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [row | {"name": _name(row["value"])} for row in rows]

    return {
        "kind": found.column,
        "kinds": {"file": "files", "folder": "folders"}.get(found.column, f"values of {found.column}"),
        "number": len(rows),
        "rows": named(rows[:LISTED_VALUES]),
        "pairs": [row | {name: _name(row[name]) for name in ("value_a", "value_b")} for row in pairs.to_pylist()],
        "warnings": named(warnings[:20]),
        "num_warnings": len(warnings),
    }


def _name(value: str | None) -> str:
    return _short(shown_value(value))


# --------------------------------------------------------------------------------------------------------- its groups


def _listed(
    run: Run, groups: GroupTable, found: Grouping | None, text: bool, others: list[Pair]
) -> tuple[dict[str, Any], dict[int, Difference]]:
    """The groups that are listed, and the sentence about those that are not; how their and other pairs differ."""
    picked, how = chosen(groups, LISTED)
    differences, why_not = _differences(run, groups, picked[:WITH_TEXTS], text, others)
    sources: dict[int, int] = {}
    rows: list[dict[str, Any]] = []
    texts: list[Any] = []
    group_bytes = text_bytes = 0
    left_out = False
    for group in picked.tolist():
        named = dict(sources)
        row = _group(run, groups, found, group, named)
        names = [] if found is None else [_name(found.names[source]) for source in list(named)[len(sources) :]]
        length = _num_bytes([row, names])
        if group_bytes + length > GROUP_BYTES:
            how = how or "those that fit a page"
            continue
        for member in row["members"]:
            shown = differences.get(member.pop("row"))
            if shown is None:
                continue
            words = [[_OPS[op], part] for op, part in shown.words]
            text_bytes += (more := _num_bytes([words, shown.notes]))
            if text_bytes > TEXT_BYTES:
                text_bytes -= more
                left_out = True
                continue
            member["text"] = len(texts)
            texts.append([words, shown.notes])
        group_bytes += length
        sources = named
        rows.append(row)
    names = [] if found is None else [_name(found.names[source]) for source in sources]
    shown_groups = {
        "shown": len(rows),
        "how": how,
        "why_not": why_not,
        "with_texts": sum(any("text" in member for member in row["members"]) for row in rows),
        "left_out": left_out,
        "data": {
            "groups": rows,
            "texts": texts,
            "sources": names,
            "distances": "distance" in run.documents.schema.names,
        },
    }
    return shown_groups, differences


_OPS = {"equal": 0, "removed": 1, "added": 2, "cut": 3, "moved_from": 4, "moved_to": 5}


def _group(run: Run, groups: GroupTable, found: Grouping | None, group: int, sources: dict[int, int]) -> dict[str, Any]:
    members = groups.members(group)
    every = groups.rows[groups.offsets[group] : groups.offsets[group + 1]]
    kept = groups.kept[group].as_py()
    row: dict[str, Any] = {
        "id": _id(kept),
        "size": int(groups.sizes[group]),
        "reference": bool(groups.in_reference[group]),
    }
    if not np.isnan(groups.least[group]):
        row |= {"least": round(float(groups.least[group]), 6), "most": round(float(groups.most[group]), 6)}
    if found is not None:
        mine = np.unique(found.codes[np.concatenate([members, every[: 8 * MEMBERS]])])[: 2 * MEMBERS].tolist()
        row["sources"] = [sources.setdefault(code, len(sources)) for code in mine]
    names = ["id", run.column, *(["distance"] if "distance" in run.documents.column_names else [])]
    table = run.documents.select(names).take(members).to_pylist()
    row["members"] = []
    for number, member in zip(members, table, strict=True):
        before, word, behind = run.command(member["id"])
        shown = {"row": number, "id": _id(member["id"]), "command": before + word + behind}
        if member[run.column] is not None:
            shown["worth"] = in_digits(member[run.column])
        if member.get("distance") is not None:
            shown["distance"] = member["distance"]
        if found is not None:
            shown["source"] = sources.setdefault(int(found.codes[number]), len(sources))
        row["members"].append(shown)
    return row


def _differences(
    run: Run, groups: GroupTable, picked: np.ndarray, text: bool, others: list[Pair]
) -> tuple[dict[int, Difference], str | None]:
    """How documents of the groups differ from their kept ones, by row; or why that is missing."""
    if not text:
        return {}, "Texts were left out, as you chose."
    pairs = [groups.pair(group, row) for group in picked.tolist() for row in groups.members(group, TEXTS)]
    pairs += [pair for pair in others if pair.row not in {each.row for each in pairs}]
    try:
        return compared(run, pairs), None
    except InputError as error:
        why = printable(" ".join(str(error).split())).rstrip(".")
        log.warning("report: texts are not shown: %s", why)
        return {}, f"Texts are not shown: {why}."


def _id(id: Any) -> str:
    return _short(readable_id(id))


def _short(name: str) -> str:
    name = clean(name).replace("\n", "\\n")
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME // 2]}...{name[-LONGEST_NAME // 2 :]}"


def check_outside(path: str | Path, folder: str | Path) -> None:
    """Raise OutputError if a file would lie in the folder of a result, whose files are counted."""
    if Path(path).resolve().is_relative_to(Path(folder).resolve()):
        raise OutputError(f"{path}: lies in the result, whose files stay as they are; name a file outside {folder}")
