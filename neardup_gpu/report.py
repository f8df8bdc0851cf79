"""A report as a person reads it: lines for a terminal, a table for a notebook. Nothing here needs NumPy or Arrow."""

from __future__ import annotations

import html as _html
import shlex
from typing import Any, NamedTuple

BAR_WIDTH = 36
"""Characters of the longest bar of a histogram."""


class Style(NamedTuple):
    """What the place that shows the text can do.

    Parameters
    ----------
    colour : bool
        ANSI escapes are understood.
    blocks : bool
        Block characters can be encoded.
    width : int
        Characters in a line.
    """

    colour: bool = False
    blocks: bool = True
    width: int = 80

    def paint(self, text: str, code: str) -> str:
        """The text in an ANSI style such as "1" (bold) or "31" (red), or as it is without colour."""
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text

    def bold(self, text: str) -> str:
        """A heading."""
        return self.paint(text, "1")

    def dim(self, text: str) -> str:
        """Something that may be skipped."""
        return self.paint(text, "2")

    def bar(self, share: float, width: int = BAR_WIDTH) -> str:
        """A bar of `share` (0 to 1) of `width` characters; anything above 0 shows."""
        if share <= 0:
            return ""
        if not self.blocks:
            return "#" * max(1, round(share * width))
        eighths = max(1, round(share * width * 8))
        return "█" * (eighths // 8) + ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")[eighths % 8]


def count(number: int, noun: str) -> str:
    """ "1 group", "1,234 groups", "2 copies"."""
    if number == 1:
        return f"1 {noun}"
    return f"{number:,} {noun[:-1]}ies" if noun.endswith("y") else f"{number:,} {noun}s"


def size(num_bytes: float) -> str:
    """A number of bytes in decimal units: "1.2 MB"."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 1000:
            return f"{num_bytes:,.0f} {unit}" if unit == "bytes" else f"{num_bytes:.1f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:,.1f} TB"


def percent(share: float) -> str:
    """A share as a percentage that never rounds up to 100 or down to 0."""
    if 0 < share < 0.001:
        return f"{100 * share:.2g}%"
    for digits in (1, 2, 3, 4):
        text = f"{100 * share:.{digits}f}"
        if share == 1 or float(text) < 100:
            return f"{text}%"
    return ">99.9999%"


def duration(seconds: float) -> str:
    """ "0.34 s", "12.3 s", "4 min 05 s"."""
    if seconds < 100:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def shorten(text: str, width: int) -> str:
    """The text, its middle left out where it is longer than `width`; control characters are escaped."""
    text = printable(text)
    if len(text) <= width:
        return text
    head = (width - 3) // 2
    return f"{text[:head]}...{text[len(text) - (width - 3 - head) :]}"


def printable(text: str) -> str:
    """The text with control characters escaped, so that no document can steer a terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def histogram(group_sizes: list[list[int]]) -> list[tuple[str, int]]:
    """Groups by size as (label, number of groups): 2, 3, 4, then ranges that double. Nothing for no groups."""
    found: dict[tuple[int, int], int] = {}
    for members, groups in group_sizes:
        low = high = members
        if members > 4:
            high = 1 << (members - 1).bit_length()
            low = high // 2 + 1
        found[low, high] = found.get((low, high), 0) + groups
    return [(f"{low:,}" if low == high else f"{low:,} to {high:,}", found[low, high]) for low, high in sorted(found)]


def facts(report: dict[str, Any]) -> list[tuple[str, str]]:
    """What a report says, as (label, sentence). What is as anyone expects (no nulls, no limits met) is left out."""
    counts, recipe, limits = report["counts"], report["recipe"], report["limits"]
    documents = counts["documents"]
    share = 1 / documents if documents else 0.0
    rows = [("documents", f"{documents:,}, {size(counts['text_bytes'])} of text, {count(counts['tokens'], 'token')}")]
    if report.get("against"):
        rows.append(("reference", f"{count(counts['reference_documents'], 'document')}, left untouched"))
    rows.append(("kept", f"{counts['kept']:,} ({percent(counts['kept'] * share)})"))
    removed = f"{counts['removed']:,} ({percent(counts['removed'] * share)})"
    if counts["removed"]:
        removed += f": {counts['removed_exact']:,} exact, {counts['removed_near']:,} near"
    rows.append(("removed", removed))
    by_simhash = recipe.get("method") == "simhash"
    if counts.get("removed_unverified"):
        how = "their simhash alone" if by_simhash and recipe["threshold"] is None else "a chain of pairs"
        rows.append(("unverified", f"{counts['removed_unverified']:,} removed by {how}, without a resemblance"))
    if report["group_sizes"]:
        rows.append(("groups", f"{counts['groups']:,}, the largest of {report['group_sizes'][-1][0]:,}"))
    if by_simhash:
        verified = "" if recipe["threshold"] is None else f", verified at resemblance {recipe['threshold']}"
        kind = f"{recipe['features']}, {recipe['weighting']}"
        rows.append(("radius", f"{recipe['radius']} of {recipe['bits']} bits ({kind}){verified}"))
        known = []
    else:
        expected = percent(report["recall"]["expected"])
        known = [f"{expected} expected at resemblance {recipe['threshold']} (filter {recipe['filter']})"]
    sampled = report["recall"]["sampled"]
    known += [] if sampled is None else _sampled(sampled)
    rows += [("" if i else "recall", line) for i, line in enumerate(known)]
    if limits["large_buckets"]:
        buckets = count(limits["large_buckets"], "large bucket")
        rows.append(("limits", f"{count(limits['uncompared_pairs'], 'pair')} in {buckets} not compared"))
    odd = [
        f"{counts[key]:,} {what}"
        for key, what in (
            ("empty", "without words"),
            ("null_text", "null"),
            ("invalid_utf8", "invalid UTF-8 sequences"),
        )
        if counts[key]
    ]
    if odd:
        rows.append(("odd text", ", ".join(odd)))
    if counts.get("skipped"):
        rows.append(("skipped", f"{count(counts['skipped'], 'row')} that cannot be read; skipped.parquet lists them"))
    seconds = sum(report["timings"].values())
    speed = f", {counts['text_bytes'] / 1e6 / seconds:.1f} MB/s" if seconds else ""
    where = count(report["threads"], "thread")
    if report.get("device"):
        where = report["device"]["name"]
    rows.append(("time", f"{duration(seconds)}{speed} ({report['backend']}, {where})"))
    return rows


def _sampled(sampled: dict[str, Any]) -> list[str]:
    sample = f"a sample of {count(sampled['documents'], 'document')}"
    if not sampled["with_duplicates"] or sampled["recall"] is None:
        return [f"{sample}, none with a duplicate: nothing to estimate from"]
    interval = f"{percent(sampled['low'])} to {percent(sampled['high'])}"
    return [
        f"{percent(sampled['recall'])} in {sample}, {sampled['with_duplicates']:,} with duplicates",
        f"{interval} with {100 * sampled['confidence']:g}% confidence",
    ]


def summary(
    report: dict[str, Any],
    style: Style = Style(),  # noqa: B008 (immutable)
    *,
    output: str | None = None,
    example: str | None = None,
    verbose: bool = False,
) -> str:
    """A report as lines for a terminal.

    Parameters
    ----------
    report : dict
        As in report.json.
    style : Style
    output : str, optional
        The folder of the result; nothing was written unless given.
    example : str, optional
        Id of a removed document, for the command that is offered next.
    verbose : bool
        Seconds of each stage, counts of pairs and the recipe as well.
    """
    lines = [_row(label, text, style) for label, text in facts(report)]
    bars = histogram(report["group_sizes"])
    if bars:
        lines += ["", style.bold("groups by size")]
        most = max(groups for _, groups in bars)
        wide = max(len(label) for label, _ in bars)
        long = max(len(f"{groups:,}") for _, groups in bars)
        room = min(BAR_WIDTH, style.width - wide - long - 6)
        lines += [
            f"  {label:>{wide}}  {groups:>{long},}  {style.paint(style.bar(groups / most, room), '36')}"
            for label, groups in bars
        ]
        lines += ["", style.bold("largest groups")]
        lines += [
            f"  {group['size']:>7,}  {shorten(str(group['id']), style.width - 11)}"
            for group in report["largest_groups"]
        ]
    if verbose:
        lines += ["", style.bold("stages")]
        lines += [f"  {stage:10} {seconds:8.3f} s" for stage, seconds in report["timings"].items()]
        lines += ["", style.bold("pairs")]
        names = ("shingles", "representatives", "candidate_pairs", "verified_pairs")
        lines += [f"  {name.replace('_', ' '):16} {report['counts'][name]:>13,}" for name in names]
        lines += ["", style.bold("recipe"), *recipe_lines(report["recipe"])]
    lines.append("")
    if output is None:
        lines.append(_row("written", "nothing (dry run); --output OUT keeps the result", style))
    else:
        counted = "frequencies.parquet, " if report["recipe"].get("frequencies") else ""
        left_out = "skipped.parquet, " if "skipped" in report["counts"] else ""
        files = f"documents.parquet, pairs.parquet, {counted}{left_out}kept/, report.json"
        lines.append(_row("written", f"{output}: {files}", style))
        if example is not None:
            dashes = "-- " if example.startswith("-") else ""
            lines.append(_row("next", f"neardup explain {dashes}{shlex.quote(output)} {shlex.quote(example)}", style))
    return "\n".join(lines)


def recipe_lines(recipe: dict[str, Any]) -> list[str]:
    """A recipe, one setting a line."""
    return [f"  {name:14} {value}" for name, value in recipe.items()]


def _row(label: str, text: str, style: Style) -> str:
    return f"{style.bold(f'{label:10}')} {text}"


def html(report: dict[str, Any]) -> str:
    """A report as one small table for a notebook; no script, no style sheet, ids escaped."""
    rows = [(label, _html.escape(text)) for label, text in facts(report)]
    bars = histogram(report["group_sizes"])
    most = max((groups for _, groups in bars), default=1)
    for i, (label, groups) in enumerate(bars):
        bar = f"<div style='background:#4c9; height:0.8em; width:{max(1, round(240 * groups / most))}px'></div>"
        rows.append(("" if i else "groups by size", f"{label}: {groups:,} {bar}"))
    for i, group in enumerate(report["largest_groups"]):
        name = _html.escape(shorten(str(group["id"]), 60))
        rows.append(("" if i else "largest groups", f"{group['size']:,}: {name}"))
    left = "style='text-align:left'"
    return (
        f"<table>{''.join(f'<tr><th {left}>{label}</th><td {left}>{text}</td></tr>' for label, text in rows)}</table>"
    )
