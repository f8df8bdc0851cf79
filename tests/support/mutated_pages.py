"""Compare the words of `--html` with those of `--html tree` on pages of HTML that were damaged at random.

    NEARDUP_CORPORA=folder python tests/support/mutated_pages.py --pages 36000 --seed 1 --json counts.json

A third of the pages are real ones, a third are real ones with pieces of `PIECES` put between their tags, and a third
consist of such pieces alone. Each page then suffers one to three of the damages of `damaged`.

The tree decides. A page *loses* text if the tree has a letter more often than the fast reader, and *shows* text if the
tree has a letter less often. Otherwise a page whose words differ has only another order or other borders of words.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from neardup_gpu.documents.html import read_page
from neardup_gpu.kernels import visible_text

CORPORA = ("openjdk_html", "installguide_html")
LONGEST = 30_000
"""Length of the longest real page that is taken, in characters. Long pages differ in nothing but the time they take."""

PIECES = (
    "<svg viewBox='0 0 9 9'><title>chart of sales</title><style>.bar { fill: red }</style><g><path d='M0 0'/></g>"
    "<text x=1>axis label</text><desc>drawn by <b>hand</b></desc></svg>",
    "<svg><style><![CDATA[ .a > .b { fill: blue } ]]></style><defs><linearGradient id=g><stop offset=1 />"
    "</linearGradient></defs><a href=x><text>linked <tspan>words</tspan></text></a></svg>",
    "<svg width=9><foreignObject><div><p>wrapped prose</p><style>p > b { top: 0 }</style></div></foreignObject>"
    "<script>draw('<g>')</script><circle r=1 /></svg>",
    "<a href='/home'><svg aria-hidden=true><use href='#icon'/></svg> home page</a>",
    "<button type=button><svg><path d=M1/><title>close</title></svg></button>",
    "<math><mi>x</mi><mo>=</mo><mn>42</mn><mtext>metres <i>high</i></mtext><mrow><ms>string</ms></mrow></math>",
    "<math display=block><semantics><mrow><mi>y</mi></mrow><annotation encoding='application/x-tex'>y</annotation>"
    "<annotation-xml encoding='text/html'><p>spoken form</p></annotation-xml></semantics></math>",
    "<label>city <input list=cities></label><datalist id=cities><option value=Rome>Roma<option value=Oslo>Oslo town"
    "</datalist>",
    "<datalist id=d><select><option>first choice</option><option>second choice</option></select></datalist>",
    "<template id=row><tr><td class=name>later</td><td><slot>filled</slot></td></tr></template>",
    "<template><style>p { top: 0 }</style><p>shadow <template>inner</template> content</p><script>go('</p>')</script>"
    "</template>",
    "<noscript><p>please enable scripts</p><img src=pixel.gif></noscript>",
    "<noscript><iframe src=tag.html>tracking frame</iframe></noscript>",
    "<select name=size><optgroup label=l><option>small<option selected>large</optgroup><hr><option>huge</select>",
    "<select><option value=1>one</option><option value=2>two</option></select>",
    "<textarea rows=3>typed <b>text</b> &amp; more</textarea>",
    "<title>headline &mdash; site</title>",
    "<iframe src=video.html>no frames here</iframe>",
    "<noframes>ancient browser</noframes>",
    "<noembed>embedded <b>fallback</b></noembed>",
    "<table><caption>prices</caption><colgroup><col><col></colgroup><thead><tr><th>item<th>cost</thead><tbody><tr>"
    "<td>bread</td><td>3 euros</td></tr><tr><td><table><tr><td>nested cell</td></tr></table></td></tr></tbody></table>",
    "<table><tr><td>open <b>bold cell<td>another cell<tr><td>last <i>row</table>",
    "<!-- a comment with <b>tags</b> -->",
    "<!-- dashes -- and --!> seen",
    "<![CDATA[ no section here ]]>",
    "<script>if (a < b) document.write('<p>written</p>')</script>",
    "<script><!--\ndocument.write('<script>nested</script>') //--></script>",
    '<script type=\'application/json\'>{"html": "<div>data</div>"}</script>',
    "<style>p::before { content: '<b>' }</style>",
    "<p>first paragraph<p>second with <a href=x>anchor</a>, <b>bold <i>both</b> slanted</i> and <code>code</code>",
    "<div class=a><div class=b><span>deep span</span></div><ul><li>alpha<li>beta<ul><li>gamma</ul></ul></div>",
    "<dl><dt>term<dd>meaning <q>quoted</q></dl><hr><pre>\n verbatim\n  lines</pre>",
    "<form action=x><fieldset><legend>fields</legend><input type=text value='a > b'><label>tick</label></fieldset>"
    "</form>",
    "<details open><summary>more about it</summary><p>the details</p></details>",
    "<object data=x><param name=a><p>no plugin</p></object><video controls><source src=v>no video</video>",
    "<ruby>kanji<rp>(</rp><rt>reading</rt><rp>)</rp></ruby> soft<wbr>break",
    "<xmp><b>raw sample</b></xmp>",
    "<h2 id=h>heading <small>small print</small></h2><blockquote>cited words<footer>source</footer></blockquote>",
    "<font color=red>red words</font> <center>centred</center> <nobr>one line</nobr>",
    "<p title=\"x > y\" data-a='<b>'>attribute traps</p>",
)
"""Pieces of pages with what a reader of HTML may stumble over. Each is whole."""

PLAIN = ("plain words stand here", "some more prose follows", "closing remarks", "nothing else to read")

HEAD = "<!doctype html><html lang=en><head><meta charset=utf-8><title>page of pieces</title></head><body><main>"
TAIL = "</main><footer>the very end</footer></body></html>"

KINDS = ("real", "grafted", "written")

DAMAGES = ("delete", "delete end", "delete end", "duplicate", "move", "move", "cut tag", "byte", "cut", "join")

_TAG = re.compile(r"</?[A-Za-z][^>]*>")
_END_TAG = re.compile(r"</[A-Za-z][^>]*>")


def real_pages(folder: Path) -> list[str]:
    """Return the pages of the corpora that are not longer than `LONGEST`, one of every seven."""
    import pyarrow.parquet as pq

    pages = []
    for name in CORPORA:
        column = pq.read_table(folder / f"{name}.parquet", columns=["html"])["html"]
        pages += [page for page in column.to_pylist()[::7] if len(page) <= LONGEST]
    return pages


def written_page(draw: random.Random) -> str:
    """Return a page of three to twelve pieces, with plain words around them."""
    parts = [part for _ in range(draw.randint(3, 12)) for part in (draw.choice(PIECES), draw.choice(PLAIN))]
    return HEAD + "\n".join(parts) + TAIL


def grafted(page: str, draw: random.Random) -> str:
    """Return the page with one to four pieces between its tags."""
    for _ in range(draw.randint(1, 4)):
        at = draw.choice([found.end() for found in _TAG.finditer(page)] or [0])
        page = page[:at] + draw.choice(PIECES) + page[at:]
    return page


def damaged(page: str, other: str, draw: random.Random) -> str:
    """Return the page after one damage: to a tag, to a byte, to its end, or joined with a part of another page."""
    how = draw.choice(
        ("delete", "delete end", "delete end", "duplicate", "move", "move", "cut tag", "byte", "cut", "join")
    )
    tags = list((_END_TAG if how == "delete end" else _TAG).finditer(page))
    if how == "cut" or not tags:
        return page[: draw.randint(0, len(page))]
    if how == "join":
        return page[: draw.randint(0, len(page))] + other[draw.randint(0, len(other)) :]
    start, stop = draw.choice(tags).span()
    tag = page[start:stop]
    if how in ("delete", "delete end"):
        return page[:start] + page[stop:]
    if how == "cut tag":
        return page[: draw.randint(start + 1, stop - 1)] + page[stop:]
    if how == "byte":
        at = draw.randint(start, stop - 1)
        return page[:at] + draw.choice(("", draw.choice("<>/\"'=!- &x"))) + page[at + 1 :]
    at = draw.choice(tags).start()
    if how == "duplicate":
        return page[:at] + tag + page[at:]
    rest = page[:start] + page[stop:]
    at = min(at, len(rest))
    return rest[:at] + tag + rest[at:]


def pages(kind: str, number: int, seed: int, originals: list[str]) -> Iterator[str]:
    """Yield damaged pages of one kind: "real", "grafted" or "written"."""
    draw = random.Random(f"{kind} {seed}")

    def whole() -> str:
        if kind == "written":
            return written_page(draw)
        page = draw.choice(originals)
        return page if kind == "real" else grafted(page, draw)

    for _ in range(number):
        page = whole()
        for _ in range(draw.randint(1, 3)):
            page = damaged(page, whole(), draw)
        yield page


def difference(fast: str, tree: str) -> list[str]:
    """Return how the words of the fast reader differ from those of the tree; nothing if they are the same.

    The differences are "loses" and "shows", or else "order" or "borders". Text that only moves, or is only divided into
    other words, is not lost.
    """
    if fast.split() == tree.split():
        return []
    ours, theirs = "".join(fast.split()), "".join(tree.split())
    if ours == theirs:
        return ["borders"]
    counted, wanted = Counter(ours), Counter(theirs)
    found = ["loses"] * bool(wanted - counted) + ["shows"] * bool(counted - wanted)
    return found or ["order"]


def num_doubtful(kind: str, number: int, seed: int, originals: list[str]) -> int:
    """Return how many of the damaged pages the fast reader leaves to the tree."""
    raw = [page.encode() for page in pages(kind, number, seed, originals)]
    ends = np.cumsum([0, *map(len, raw)], dtype=np.int64)
    return int(visible_text.cpu(np.frombuffer(b"".join(raw), np.uint8), ends)[2].sum())


def compare(
    kind: str, number: int, seed: int, originals: list[str], read: Callable[[str], str]
) -> tuple[Counter, list[tuple[str, list[str]]]]:
    """Return how many damaged pages differ in which way, and the pages that lose or show text."""
    counts, found = Counter(), []
    for page in pages(kind, number, seed, originals):
        differences = difference(read(page), read_page(page, tree=True).text)
        counts.update(differences or ["same"])
        if {"loses", "shows"} & set(differences):
            found.append((page, differences))
    return counts, found


def main() -> None:
    """Compare the pages of every kind, print the counts and write them as JSON."""
    parser = argparse.ArgumentParser(description="Compare both readers of HTML on damaged pages.")
    parser.add_argument("--pages", type=int, default=36_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="the file for the counts")
    given = parser.parse_args()
    originals, counts, doubtful = real_pages(Path(os.environ["NEARDUP_CORPORA"])), {}, {}
    for kind in KINDS:
        number = given.pages // len(KINDS)
        found, differing = compare(kind, number, given.seed, originals, lambda page: read_page(page).text)
        counts[kind], doubtful[kind] = dict(found), num_doubtful(kind, number, given.seed, originals)
        print(kind, counts[kind], f"{doubtful[kind]} read by the tree", *differing, sep="\n", flush=True)
    if given.json:
        total = sum((Counter(each) for each in counts.values()), Counter())
        result = {"seed": given.seed, "total": dict(total), "counts": counts, "read by the tree": doubtful}
        given.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
