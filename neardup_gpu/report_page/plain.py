"""Make pages of sections without a script: those of an audit and of a check for contamination."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from typing import Any

from ..printable import printable
from ..report import shorten, shown


def plain_page(kind: str, report: dict[str, Any], lead: str, body: Iterable[str]) -> str:
    """Return a page as one document of HTML.

    Parameters
    ----------
    kind : str
        The first word of the title; in lower case, the command.
    report : dict
        The report, whose input names the page.
    lead : str
        Sentences below the title.
    body : iterable of str
        HTML.
    """
    style = (files(__package__) / "page.css").read_text(encoding="utf-8")
    name = escape(printable(", ".join(report["input"]["paths"]) or "documents in memory"))
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            f'<meta name="generator" content="neardup {kind.lower()}">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            f"<title>{kind}: {name}</title><style>{style}</style></head><body>",
            f"<header><h1>{kind} <small><bdi>{name}</bdi></small></h1><p>{escape(lead)}</p></header>",
            "<main>",
            *body,
            "</main>",
            "</body></html>\n",
        ]
    )


def section(title: str, inner: Iterable[str]) -> Iterator[str]:
    """Yield a section with a heading."""
    yield f"<section><h2>{escape(title)}</h2>"
    yield from inner
    yield "</section>"


def side_by_side(title: str, sides: Iterable[tuple[str, str]], note: str = "") -> str:
    """Return texts side by side. Each side has a name, and its text as HTML; so has the note after the title."""
    boxes = "".join(
        f'<div class="side"><h5><bdi>{escape(printable(shorten(name, 200)))}</bdi></h5><p>{text}</p></div>'
        for name, text in sides
    )
    return f'<div class="member"><h4>{escape(title)}{note}</h4><div class="sides">{boxes}</div></div>'


def count_table(first: str, names: Sequence[str], rows: Iterable[tuple[str, Sequence[str]]]) -> Iterator[str]:
    """Yield a table of counts.

    Parameters
    ----------
    first : str
        The head of the first column, which has the names of the rows.
    names : sequence of str
        The heads of the other columns; underscores become spaces.
    rows : iterable of (str, sequence of str)
        The name of each row, and its cells.
    """
    head = "".join(f'<th scope="col" class="number">{name.replace("_", " ")}</th>' for name in names)
    yield f'<div class="scroll"><table><thead><tr><th scope="col">{escape(first)}</th>{head}</tr></thead><tbody>'
    for name, cells in rows:
        row = "".join(f'<td class="number">{cell}</td>' for cell in cells)
        yield f'<tr><th scope="row"><bdi>{escape(printable(shorten(name, 300)))}</bdi></th>{row}</tr>'
    yield "</tbody></table></div>"


def by_section(by: dict[str, Any], names: Sequence[str]) -> Iterator[str]:
    """Yield the section with the counts of each value of a column, which are the entry `by` of a report."""
    rows = ((shown(each["value"]), [f"{each[name]:,}" for name in names]) for each in by["values"])
    return section(f"By {by['column']}", count_table(by["column"], names, rows))


def flow_table(by: dict[str, Any]) -> Iterator[str]:
    """Yield the table of the tokens that documents of one value share with those of another one."""
    rows = (
        (f"{shown(each['value'])} \u2190 {shown(each['source_value'])}", [f"{each['tokens']:,}"])
        for each in by["pairs"]
    )
    return count_table(f"{by['column']} \u2190 source", ["tokens"], rows)
