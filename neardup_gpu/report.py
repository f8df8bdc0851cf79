"""A report as a person reads it: lines for a terminal, a table for a notebook. Nothing here needs NumPy or Arrow.

rich draws what goes to a terminal. It takes 0.1 s to import, so it is imported where it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .printable import printable, shell_path, shell_word

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

RECORDS = {
    "request": "request",
    "metadata": "metadata record",
    "warcinfo": "warcinfo record",
    "revisit": "revisit",
    "segment": "segment",
    "other": "unknown record",
    "no_http": "non-HTTP response",
    "http_status": "non-2xx response",
    "not_text": "non-text payload",
    "undecodable": "undecodable payload",
}
"""Names of records that are not documents, in reports and in words."""

LEFT_OUT = {
    "other_kinds": "files of other kinds",
    "about_the_data": "files about the data",
    "underscored": "names that begin with an underscore",
    "hidden": "names that begin with a dot",
    "results": "results of neardup",
    "artefacts": "files that neardup made",
    "special": "pipes, sockets and devices",
    "dangling": "links to nothing",
    "again": "other names of files that are read",
}
"""Reasons why a file or folder that was found is not read: their names in reports, and in words."""

NO_VALUE = "(none)"
"""How the value of documents that have none is shown."""

BAR_WIDTH = 36
"""Characters of the longest bar of a histogram."""


def count(number: int, noun: str) -> str:
    """ "1 group", "1,234 groups", "2 copies"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def shown(value: str | None) -> str:
    """Return the value of a group of documents as people read it: "(none)" for documents without one."""
    return NO_VALUE if value is None else value


def some(names: Sequence[str], number: int | None = None) -> str:
    """Return the first three names, and how many more there are: "a, b, c and 4 more".

    Parameters
    ----------
    names : sequence of str
    number : int, optional
        The number of all names, if `names` holds only the first ones.
    """
    more = (len(names) if number is None else number) - len(names[:3])
    return ", ".join(names[:3]) + (f" and {more:,} more" if more else "")


def skipped_in_words(skipped: dict[str, Any]) -> str:
    """Return "3 rows", or "at least 3 rows (1,234 bytes of b.csv passed over)" for the `skipped` of a report."""
    rows = count(skipped["rows"], "row")
    if not skipped["at_least"]:
        return rows
    return f"at least {rows} ({count(skipped['bytes'], 'byte')} of {some(skipped['files'])} passed over)"


def unread(description: dict[str, Any]) -> list[str]:
    """Return a line for each reason why files or folders of an input are not read. The last line says if most files
    of a folder are not read, as of unknown kind.

    Parameters
    ----------
    description : dict
        As `Documents.describe` returns it.
    """
    lines, left_out = [], description.get("left_out") or {}
    for reason, found in left_out.items():
        lines.append(unread_names(reason, found["first"], found["files"] + found.get("folders", 0)))
    others = left_out.get("other_kinds", {"files": 0})
    if others["files"] > description.get("num_files", 0):
        numbers = f"{others['files']:,} of {others['files'] + description['num_files']:,}"
        glob = others.get("suggested_glob")
        hint = "" if glob is None else f"; --glob '{glob}' (glob='{glob}') reads the {glob} files"
        lines.append(f"most files, {numbers}, are of other kinds and are not read{hint}")
    return lines


def unread_names(reason: str, first: Sequence[str], number: int) -> str:
    """Return a line that names some files or folders that are not read, by their reason in `LEFT_OUT`."""
    return f"{LEFT_OUT[reason]}: {number:,} ({some(first, number)})"


def in_one_line(error: BaseException) -> str:
    """Return the kind of an error and the first line of its message."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__


def size(num_bytes: float) -> str:
    """Return a number of bytes in decimal units: "1.2 MB"."""
    number, power = int(num_bytes), 0
    while number >= 1000 ** (power + 1) and power < 8:
        power += 1
    if power == 0:
        return "1 byte" if number == 1 else f"{number} bytes"
    return f"{number / 1000**power:,.1f} {'kMGTPEZY'[power - 1]}B"


def percent(share: float) -> str:
    """A share as a percentage that is 0.0% and 100.0% only where the share is 0 and 1.

    Give counts as one division, 49 / 49, which is rounded once and so never away from 1.
    """
    share = min(1.0, max(0.0, share)) + 0.0  # + 0.0: no negative zero
    if 0 < share < 0.001:
        return f"{100 * share:.2g}%"
    text = _below_one(100 * share, 100, (1, 2, 3, 4))
    return ">99.9999%" if text is None else f"{text}%"


def resemblance(value: float) -> str:
    """A resemblance to four digits, or to more where four would round it to 0 or 1."""
    if 0 < value < 0.0001:
        return f"{value:.1g}"
    return _below_one(value, 1, range(4, 17)) or repr(value)


def _below_one(value: float, top: int, digits: Iterable[int]) -> str | None:
    """Format the value with the fewest digits that do not round it up to `top`."""
    texts = (f"{value:.{number}f}" for number in digits)
    return next((text for text in texts if value == top or float(text) < top), None)


def duration(seconds: float) -> str:
    """ "0.34 s", "12.3 s", "4 min 05 s", "2 h 03 min"."""
    if 0 < seconds < 0.01:
        return "0.01 s"
    if seconds < 99.95:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60:02d} min"


def shorten(text: str, width: int) -> str:
    """Text made printable and shortened in the middle to at most `width` cells of a terminal.

    Chinese, Japanese and Korean characters take two cells each.
    """
    from rich.cells import cell_len

    text = printable(text)
    if len(text) <= width // 2 or cell_len(text) <= width:
        return text
    head, tail = (width - 3) // 2, width - 3 - (width - 3) // 2
    first, last = text[:head], text[len(text) - tail :]  # no character takes less than its own cell, but joiners
    while cell_len(first) > head:
        first = first[:-1]
    while cell_len(last) > tail:
        last = last[1:]
    return f"{first}...{last}"


def histogram(group_sizes: list[list[int]]) -> list[tuple[str, int]]:
    """Groups by size, as (label, number of groups): sizes 2, 3, 4, then ranges that double. Empty without groups."""
    found: dict[tuple[int, int], int] = {}
    for members, groups in group_sizes:
        low = high = members
        if members > 4:
            high = 1 << (members - 1).bit_length()
            low = high // 2 + 1
        found[low, high] = found.get((low, high), 0) + groups
    return [(f"{low:,}" if low == high else f"{low:,} to {high:,}", found[low, high]) for low, high in sorted(found)]


def facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    """The statements of a report, as (label, sentence), without those that say nothing unusual (no nulls, say)."""
    counts, recipe, limits = report["counts"], report["recipe"], report["limits"]
    documents = counts["documents"]
    text = "" if counts["text_bytes"] is None else f"{size(counts['text_bytes'])} of text, "
    overlapping = " in windows that overlap" if str(recipe.get("unit", "")).startswith("window") else ""
    rows = [("documents", f"{documents:,}, {text}{count(counts['tokens'], 'token')}{overlapping}")]
    left_out = report.get("left_out_records") or {}
    if left_out:
        listed = (count(number, RECORDS[kind]) for kind, number in left_out.items())
        rows.append(("left out", ", ".join(listed)))
    lines = unread(report.get("input") or {})
    if report.get("against"):
        sets = report["against"].get("sets") or {"": report["against"]}
        for name, described in sets.items():
            lines += [f"of the reference set{name and f' {name}'}, {line}" for line in unread(described)]
    rows += [("" if i or left_out else "left out", line) for i, line in enumerate(lines)]
    if report.get("against"):
        rows.append(("reference", f"{count(counts['reference_documents'], 'document')}, left untouched"))
    if "near_reference" in counts:
        leaks = counts["near_reference"]
        share = percent(leaks / max(1, documents))
        rows.append(
            ("leaks", f"{leaks:,} ({share}) match a reference document and are removed; near_reference names it")
        )
    rows.append(("kept", f"{counts['kept']:,} ({percent(counts['kept'] / max(1, documents))})"))
    removed = f"{counts['removed']:,} ({percent(counts['removed'] / max(1, documents))})"
    if (unit := recipe.get("unit")) is not None:
        rows += unit_rows(counts, unit)
    elif counts["removed"]:
        removed += f": {', '.join(kinds_removed(counts))}"
    rows.append(("removed", removed))
    if (deciding := report.get("decided_by")) is not None:
        *by_keys, (_, others) = deciding.items()
        said = ", ".join(f"{number:,} by {key}" for key, number in by_keys)
        rows.append(("decided", f"{said}{f', {others:,} by another document than the one named' if others else ''}"))
    rows += _lost_rows(report.get("lost_most"))
    if counts.get("removed_unverified"):
        how = "a chain of pairs" if recipe["threshold"] is not None else f"their {recipe['method']} alone"
        rows.append(
            (
                "unverified",
                f"{counts['removed_unverified']:,} removed by {how}, without a {report.get('measure', 'resemblance')}",
            )
        )
    if report["group_sizes"]:
        rows.append(("groups", f"{counts['groups']:,}, the largest of {report['group_sizes'][-1][0]:,}"))
    sampled = report["recall"]["sampled"]
    proposed = tuple(report["candidates"])
    told = [("recall", line) for line in _sampled(sampled)]
    told = [proposed, *told] if proposed[0] == "recall" else [*told, proposed]
    rows += [("" if i and label == "recall" else label, line) for i, (label, line) in enumerate(told)]
    if limits.get("unlisted_pairs") or not limits.get("all_counted", True):
        rows += [("" if i else "pairs", line) for i, line in enumerate(_unlisted(counts["verified_pairs"], limits))]
    if limits.get("large_buckets"):
        buckets = count(limits["large_buckets"], "large bucket")
        rows.append(("limits", f"{count(limits['uncompared_pairs'], 'pair')} in {buckets} not compared"))
    if counts.get("without_spots"):
        number = count(counts["without_spots"], "document")
        rows.append(("spots", f"none in {number} of too few stop words, compared by shingles instead"))
    rows += _condition_rows(recipe, counts)
    odd = [
        f"{counts['empty']:,} without words" if counts["empty"] else "",
        f"{counts['null_text']:,} null" if counts["null_text"] else "",
        count(counts["invalid_utf8"], "invalid UTF-8 byte") if counts["invalid_utf8"] else "",
        _replaced(counts),
        f"{count(counts['stripped_pages'], 'page')} too tangled to parse, read without their tags"
        if counts.get("stripped_pages")
        else "",
    ]
    if any(odd):
        rows.append(("odd text", ", ".join(filter(None, odd))))
    if unread_ids := report["input"].get("unread_ids"):
        rows.append(("ids", f"row numbers, as no id column was named; files have a column {unread_ids!r}"))
    if repeated := report["input"].get("repeated_ids"):
        done = "left out" if report["input"]["on_duplicate_id"] == "first" else "a number was added to it"
        rows.append(("ids", f"{count(repeated, 'document')} had the id of an earlier one: {done}"))
    if counts.get("skipped"):
        skipped = report.get("skipped", {"rows": counts["skipped"], "at_least": False})
        why = "left out" if repeated else "that cannot be read"
        rows.append(("skipped", f"{skipped_in_words(skipped)} {why}; skipped.parquet lists them"))
    where = count(report["threads"], "thread")
    if report.get("device"):
        where = report["device"]["name"]
    if report.get("tasks"):
        where = f"{count(report['tasks']['workers'], 'worker')} of {where}"
    rows += times(report["timings"], report.get("seconds"), counts["text_bytes"], f" ({report['backend']}, {where})")
    return rows


def _lost_rows(lost: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Say which files or values lost most of their documents, if any did."""
    if lost is None:
        return []
    lines = [
        f"{shorten(shown(each['value']), 40)} lost {each['removed']:,} of {each['documents']:,} documents"
        for each in lost["values"][:3]
    ]
    lines += [f"and {count(lost['number'] - 3, lost['by'])} more lost over half"] if lost["number"] > 3 else []
    return [("" if i else "lost most", line) for i, line in enumerate(lines)]


def _condition_rows(recipe: dict[str, Any], counts: dict[str, Any]) -> list[tuple[str, str]]:
    """Say which documents and shingles were not compared because of the recipe's conditions."""
    rows = []
    if (within := recipe.get("within")) is not None:
        alone = counts["without_value"]
        without = f"; {count(alone, 'document')} without a value compared with none" if alone else ""
        rows.append(("within", f"{within}: only documents of equal values were compared{without}"))
    if (ratio := recipe.get("length_ratio")) is not None:
        rows.append(("length", f"only documents whose numbers of tokens have a ratio of {ratio} or more were compared"))
    if (most := recipe.get("ignore_common")) is not None:
        number, alone = count(counts["common_shingles"], "shingle"), counts["only_common"]
        without = f"; {count(alone, 'document')} without any other, kept" if alone else ""
        rows.append(("common", f"{number} of more than {count(most, 'document')} left out{without}"))
    return rows


def table_by(column: str, rows: Sequence[dict[str, Any]], names: Sequence[str], number: int, where: str) -> list[Any]:
    """Return the lines that show counts by the values of a column.

    Parameters
    ----------
    column : str
    rows : sequence of dict
        A value, and a count for each of `names`. The first 20 are shown.
    names : sequence of str
    number : int
        Number of all rows.
    where : str
        The file that has more rows.
    """
    lines = ["", heading(f"by {column}"), beside(f"  {'':24}" + "".join(f"{_spaced(name):>16}" for name in names))]
    for found in rows[:20]:
        numbers = "".join(f"{found[name]:>16,}" for name in names)
        lines.append(beside(f"  {shorten(shown(found['value']), 24):24}{numbers}"))
    if number > 20:
        lines.append(beside(f"  and {number - 20:,} more in {where}"))
    return lines


def _spaced(name: str) -> str:
    return name.replace("_", " ")


def unit_rows(counts: dict[str, Any], unit: str) -> list[tuple[str, str]]:
    """Say how many parts of documents were cut, and how many words that left."""
    number, cut, listed, sources = (counts[name] for name in ("units", "units_cut", "units_listed", "short_sources"))
    plural = unit if unit.startswith("sentences") else f"{unit.partition(':')[0]}s"
    rows = [(plural, f"{number:,}: {cut:,} ({percent(cut / max(1, number))}) cut as copies")]
    if listed:
        rows.append(("", f"{listed:,} copies are listed and were not cut; the table of units says why"))
    if (after := counts.get("tokens_left")) is not None:
        before = counts["tokens"]
        rows.append(("words left", f"{after:,} of {before:,} ({percent(after / max(1, before))})"))
    if sources:
        rows.append(("", f"{count(sources, 'document')} below drop_below kept, as they hold what was cut elsewhere"))
    return rows


def kinds_removed(counts: dict[str, Any]) -> list[str]:
    """Return how many documents were removed for each way of being alike: "3 identical", "1 same words", "0 near"."""
    kinds = [name.removeprefix("removed_") for name in counts if name.startswith("removed_")]
    return [f"{counts[f'removed_{kind}']:,} {kind.replace('_', ' ')}" for kind in kinds if kind != "unverified"]


def times(
    timings: dict[str, float], seconds: float | None = None, text_bytes: int | None = None, where: str = ""
) -> list[tuple[str, str]]:
    """Time of a job, and time of compiling kernels, which is not counted in the first or in its rate.

    Parameters
    ----------
    timings : dict of str to float
        As `Clock` has them.
    seconds : float, optional
        Of the whole job; the sum of its stages unless given.
    text_bytes : int, optional
        For the rate, which is left out where the job was too short to have one.
    where : str
        Words to append.
    """
    compiling = timings.get("compile", 0.0)
    seconds = max(0.0, (sum(timings.values()) if seconds is None else seconds) - compiling)
    rate = f", {size(text_bytes / seconds)}/s" if text_bytes is not None and seconds >= 0.1 else ""
    rows = [("time", f"{duration(seconds)}{rate}{where}")]
    if compiling:
        rows.append(("compiling", f"{duration(compiling)} more, for the kernels"))
    return rows


def _sampled(sampled: dict[str, Any] | None) -> list[str]:
    """The share of near-duplicates that a run found, estimated from its sample."""
    if sampled is None:
        return []
    sample = f"a sample of {count(sampled['documents'], 'document')}"
    if not sampled["with_duplicates"]:
        return [f"not estimated: {sample} holds none with a near-duplicate"]
    lines = [
        f"{percent(sampled['recall'])} of near-duplicate pairs found, by {sample}",
        f"{percent(sampled['low'])} to {percent(sampled['high'])} with {100 * sampled['confidence']:g}% confidence"
        f", from the {sampled['with_duplicates']:,} that have any",
    ]
    if sampled["one_removed"]["share"] > sampled["recall"]:
        lines.append(f"{percent(sampled['one_removed']['share'])} of the pairs lost a document, found or not")
    return lines


def _replaced(counts: dict[str, Any]) -> str:
    """Say how many documents hold U+FFFD, of a report of this version."""
    if not counts.get("replaced_text"):
        return ""
    garbled = f" ({counts['garbled_text']:,} of them more than 5%)" if counts["garbled_text"] else ""
    return f"{count(counts['replaced_text'], 'document')} with U+FFFD for bytes that cannot be decoded{garbled}"


def _unlisted(listed: int, limits: dict[str, Any]) -> list[str]:
    """Describe the pairs that a result does not list."""
    more, most = limits["unlisted_pairs"], limits["max_partners"]
    least = "" if limits["all_counted"] else "at least "
    left_out = f"{least}{more:,} more are not" if more else "perhaps not all"
    return [
        f"{listed:,} are listed, {left_out}: a document lists its first {count(most, 'partner')}",
        "--max-partners all (max_partners=None) lists every pair; who is kept is the same",
    ]


def summary(
    report: dict[str, Any],
    width: int = 80,
    *,
    output: str | None = None,
    example: str | None = None,
    verbose: bool = False,
    page: bool = False,
) -> list[RenderableType]:
    """A report as rich draws it on a terminal.

    Parameters
    ----------
    report : dict
        As in report.json.
    width : int
        Of the terminal.
    output : str, optional
        The folder of the result; nothing was written unless given.
    example : str, optional
        Id of a removed document, for the command that is offered next.
    verbose : bool
        Seconds of each stage, counts of pairs and the recipe as well.
    page : bool
        Whether report.html was written, too.
    """
    parts: list[RenderableType] = [row(label, text) for label, text in facts(report)]
    if (by := report.get("by")) is not None:
        columns = ("documents", "kept", "removed", "words")
        parts += table_by(by["column"], by["values"], columns, by["num_values"], "report.json")
        if by["pairs"]:
            parts += ["", heading(f"pairs between values of {by['column']}")]
        for each in by["pairs"][:10]:
            both = " and ".join(shorten(shown(each[name]), 24) for name in ("value_a", "value_b"))
            parts.append(beside(f"  {each['pairs']:>7,}  {both}"))
        if by["num_pairs"] > 10:
            parts.append(beside(f"  and {by['num_pairs'] - 10:,} more in report.json"))
    bars = histogram(report["group_sizes"])
    if bars:
        parts += ["", heading("groups by size"), _bars(bars, width), "", heading("largest groups")]
        for group in report["largest_groups"]:
            parts.append(beside(f"  {group['size']:>7,}  {shorten(str(group['id']), width - 11)}"))
    if verbose:
        parts += ["", heading("stages")]
        parts += [beside(f"  {stage:10} {seconds:8.3f} s") for stage, seconds in report["timings"].items()]
        parts += ["", heading("pairs")]
        filtered = {f"filtered, {name}": number for name, number in report.get("filtered", {}).items()}
        counts = report["counts"] | filtered
        names = ("shingles", "representatives", "comparisons", *filtered, "candidate_pairs", "verified_pairs")
        parts += [beside(f"  {name.replace('_', ' '):16} {counts[name]:>13,}") for name in names if name in counts]
        parts += ["", heading("recipe"), *recipe_lines(report["recipe"])]
    parts.append("")
    if output is None:
        parts.append(row("written", "nothing (dry run); --output OUT keeps the result"))
    else:
        counted = "frequencies.parquet, " if {"frequencies", "ignored"} & report["recipe"].keys() else ""
        left_out = "skipped.parquet, " if "skipped" in report["counts"] else ""
        tables = "documents/, pairs/" if "tasks" in report else "documents.parquet, pairs.parquet"
        kept = "kept_ids/" if "tasks" in report else "kept_ids.parquet"
        kept = kept if report.get("written", {}).get("ids_only") else "kept/"
        parted = ("units/, " if "tasks" in report else "units.parquet, ") if "units" in report["counts"] else ""
        files = f"{tables}, {parted}{counted}{left_out}{kept}, {'report.html, ' if page else ''}report.json"
        parts.append(row("written", f"{output}: {files}"))
        if example is not None:
            dashes = "-- " if example.startswith("-") else ""
            parts.append(row("next", f"neardup explain {dashes}{shell_path(output)} {shell_word(example)}"))
    return parts


def _bars(bars: list[tuple[str, int]], width: int) -> RenderableType:
    """Numbers of groups with a bar each, one line for each size."""
    from rich.table import Table

    table = Table.grid(padding=(0, 0, 0, 2), pad_edge=True)
    for _ in range(2):
        table.add_column(justify="right", no_wrap=True)
    room = min(BAR_WIDTH, width - 6 - sum(max(map(len, column)) for column in zip(*_labels(bars), strict=True)))
    most = max(groups for _, groups in bars)
    for (label, groups), (_, number) in zip(bars, _labels(bars), strict=True):
        table.add_row(label, number, _Bar(groups, most, room))
    return table


def _labels(bars: list[tuple[str, int]]) -> list[tuple[str, str]]:
    return [(label, f"{groups:,}") for label, groups in bars]


class _Bar:
    """A bar of blocks, or of dashes if the terminal's encoding has no blocks; any number above 0 shows."""

    def __init__(self, value: int, most: int, width: int) -> None:
        self.value, self.most, self.width = max(value, most / width), most, width

    def __rich_console__(self, console: Any, options: Any) -> Any:
        from rich.bar import Bar
        from rich.progress_bar import ProgressBar

        if options.ascii_only:
            length = max(1, round(self.width * self.value / self.most))
            yield ProgressBar(1, 1, length, finished_style="cyan")
        else:
            yield Bar(self.most, 0, self.value, width=self.width, color="cyan")


def heading(text: str) -> Text:
    """A line in bold."""
    return beside((text, "bold"))


def ending(seconds: float, output: str | None, files: Sequence[str], broken: Sequence[str]) -> list[Any]:
    """Return the last lines of a summary: the time, the files that were written, and the limits that were exceeded."""
    written = [] if output is None else [row("written", f"{output}: {', '.join(files)}")]
    return [row("time", duration(seconds)), *written, *(row("failed", line) for line in broken)]


def row(label: str, text: str, width: int = 10) -> Text:
    """A label and its value."""
    return beside((f"{label:{width}}", "bold"), f" {text}")


def beside(*parts: str | tuple[str, str]) -> Text:
    """Join several parts, some of them with a style, into one line."""
    from rich.text import Text

    styled = [(part, "") if isinstance(part, str) else part for part in parts]
    return Text.assemble(*((printable(text), style) for text, style in styled))


def recipe_lines(recipe: dict[str, Any]) -> list[Text]:
    """A recipe, one setting a line."""
    shown = {**recipe, **({"max_partners": "all"} if recipe.get("max_partners", 0) is None else {})}
    return [beside(f"  {name:14} {shorten(str(value), 100)}") for name, value in shown.items()]


def html(report: dict[str, Any]) -> str:
    """A report as one small table for a notebook; no script, no style sheet, ids escaped."""
    from html import escape

    rows = [(label, escape(printable(text))) for label, text in facts(report)]
    rows += [("warning", escape(printable(line))) for line in report.get("warnings", ())]
    bars = histogram(report["group_sizes"])
    most = max((groups for _, groups in bars), default=1)
    for i, (label, groups) in enumerate(bars):
        bar = f"<div style='background:#4c9; height:0.8em; width:{max(1, round(240 * groups / most))}px'></div>"
        rows.append(("" if i else "groups by size", f"{label}: {groups:,} {bar}"))
    for i, group in enumerate(report["largest_groups"]):
        name = escape(shorten(str(group["id"]), 60))
        rows.append(("" if i else "largest groups", f"{group['size']:,}: {name}"))
    left = "style='text-align:left'"
    return (
        f"<table>{''.join(f'<tr><th {left}>{label}</th><td {left}>{text}</td></tr>' for label, text in rows)}</table>"
    )
