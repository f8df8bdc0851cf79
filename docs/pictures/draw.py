"""The drawings of the pages about concepts: python docs/pictures/draw.py writes them beside this file."""

import math
from html import escape
from pathlib import Path

PLAIN, KEPT, GONE, SHARED = (
    ("#e8edf4", "#4a6078"),
    ("#d3ecd9", "#2e7d4f"),
    ("#f8dcd7", "#b23b2a"),
    ("#ffe7a8", "#9a6b00"),
)
INK = "#1d2733"


class Drawing:
    """Boxes, words and arrows, in pixels from the upper left corner."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            f'font-family="system-ui, sans-serif" font-size="14" fill="{INK}" role="img">',
            f"<title>{escape(title)}</title>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
            f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{INK}"/></marker></defs>',
            f'<rect width="{width}" height="{height}" fill="white"/>',
        ]

    def words(self, x: float, y: float, text: str, anchor: str = "middle", **style: str) -> None:
        more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
        self.parts.append(f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{more}>{escape(text)}</text>')

    def box(self, x: float, y: float, width: float, height: float, text: str = "", look=PLAIN, **style: str) -> None:
        fill, stroke = look
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" fill="{fill}" stroke="{stroke}"/>'
        )
        lines = text.split("\n") if text else []
        for at, line in enumerate(lines):
            self.words(x + width / 2, y + height / 2 + 5 + 17 * (at - (len(lines) - 1) / 2), line, **style)

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        self.parts.append(
            f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="{INK}" fill="none" marker-end="url(#head)"/>'
        )

    def line(self, points: list[tuple[float, float]], colour: str = INK, **style: str) -> None:
        path = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
        more = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in style.items())
        self.parts.append(f'<path d="M{path}" stroke="{colour}" fill="none" stroke-width="1.5"{more}/>')

    def text(self) -> str:
        return "\n".join([*self.parts, "</svg>", ""])


def decisions() -> Drawing:
    picture = Drawing(760, 250, "From texts to decisions")
    heads = ("texts", "tokens", "shingles", "candidates", "verified pairs", "decisions")
    for at, head in enumerate(heads):
        picture.words(70 + 124 * at, 22, head, font_weight="bold")
        if at:
            picture.arrow(124 * at - 2, 125, 124 * at + 14, 125)
    for row, name in enumerate("ABC"):
        y = 50 + 60 * row
        picture.box(20, y, 98, 36, f"document {name}")
        for word in range(5):
            picture.box(146 + 19 * word, y + 8, 15, 20)
        for shingle in range(3):
            shared = (row < 2 and shingle != 1 + row) or (row == 2 and shingle == 2)
            picture.box(270 + 33 * shingle, y + 8, 28, 20, look=SHARED if shared else PLAIN)
    picture.box(394, 60, 98, 32, "A and B")
    picture.box(394, 130, 98, 32, "B and C")
    picture.box(518, 60, 98, 32, "0.91", KEPT)
    picture.box(518, 130, 98, 32, "0.12: none", GONE)
    picture.box(642, 50, 98, 36, "A stays", KEPT)
    picture.box(642, 110, 98, 36, "B goes: A", GONE)
    picture.box(642, 170, 98, 36, "C stays", KEPT)
    notes = (
        "read in batches",
        "words alone",
        "sets of numbers",
        "share a rare one",
        "compared exactly",
        "with a reason",
    )
    for at, note in enumerate(notes):
        picture.words(70 + 124 * at, 236, note, font_size="13")
    return picture


def shingles() -> Drawing:
    picture = Drawing(760, 352, "Shingles of two sentences that differ in one word")
    one = ["shall", "report", "to", "the", "Congress", "not", "later", "than", "one", "year"]
    other = [*one[:8], "two", *one[9:]]
    for row, sentence in enumerate((one, other)):
        y = 14 + 162 * row
        for at, word in enumerate(sentence):
            differs = at == 8
            picture.box(12 + 74 * at, y, 68, 28, word, GONE if differs else PLAIN, font_size="13")
        for first in range(6):
            touched = first <= 8 < first + 5
            depth = y + 42 + 17 * first
            picture.box(12 + 74 * first, depth, 68 + 74 * 4, 12, look=GONE if touched else SHARED)
    picture.words(
        380,
        342,
        "Each has 6 shingles of 5 words, and both have 4 of all 8: they resemble each other by 0.5.",
        font_size="14",
    )
    return picture


def kept() -> Drawing:
    picture = Drawing(700, 190, "Who is kept in a chain of versions")
    for at, (name, look, fate) in enumerate(
        (("A", KEPT, "stays"), ("B", GONE, "goes, for A"), ("C", KEPT, "stays"), ("D", GONE, "goes, for C"))
    ):
        x = 40 + 170 * at
        picture.box(x, 60, 90, 50, name, look, font_size="18")
        picture.words(x + 45, 136, fate)
        if at:
            picture.line([(x - 80, 85), (x, 85)])
            picture.words(x - 40, 76, "0.85")
    picture.words(340, 26, "by priority: A before B before C before D")
    picture.words(340, 176, "A and C resemble each other by 0.7: below the threshold of 0.8", font_size="13")
    return picture


def prefix() -> Drawing:
    picture = Drawing(720, 230, "Prefixes of two documents, in order from the rarest shingle")
    picture.words(20, 24, "rarest", anchor="start")
    picture.words(700, 24, "most frequent", anchor="end")
    picture.arrow(76, 19, 590, 19)
    for row, (name, cells) in enumerate((("A", "b c d e f g h i j k"), ("B", "a c d e f g h i j k"))):
        y = 46 + 70 * row
        picture.words(30, y + 26, name, font_size="18")
        for at, cell in enumerate(cells.split()):
            look = SHARED if at < 3 and cell in "cd" else PLAIN
            picture.box(56 + 65 * at, y, 56, 40, cell, look)
    picture.line([(248, 36), (248, 166)], stroke_dasharray="5 4")
    picture.words(150, 186, "looked up: 10 - 8 + 1 = 3")
    picture.words(480, 186, "never looked up")
    picture.words(
        360, 216, "Two sets of 10 at resemblance 0.8 share 9. So they share one of their first 3.", font_size="14"
    )
    return picture


def crowds() -> Drawing:
    picture = Drawing(640, 330, "Pairs of a crowd, and pairs that are listed")
    left, bottom, width, height = 80, 270, 520, 230
    sizes = [2 ** (at / 4) for at in range(4, 69)]  # up to 131,072

    def place(size: float, pairs: float) -> tuple[float, float]:
        return left + width * math.log2(size) / 17, bottom - height * math.log10(max(pairs, 1)) / 10

    for power in range(0, 11, 2):
        x, y = place(1, 10**power)
        picture.line([(x, y), (left + width, y)], "#d5dbe3")
        picture.words(
            x - 8, y + 5, ("1", "100", "10,000", "10⁶", "10⁸", "10¹⁰")[power // 2], anchor="end", font_size="13"
        )
    for size, name in ((10, "10"), (1000, "1,000"), (100_000, "100,000")):
        picture.words(place(size, 1)[0], bottom + 20, name, font_size="13")
    picture.line([place(size, size * (size - 1) / 2) for size in sizes], GONE[1])

    def listed(size: float) -> float:
        few = min(size, 65)
        return few * (few - 1) / 2 + max(size - 65, 0) * 64 + max(size - 65, 0)

    picture.line([place(size, listed(size)) for size in sizes], KEPT[1])
    picture.words(*place(2500, 2.2e8), "pairs: n (n - 1) / 2", anchor="end", fill=GONE[1])
    picture.words(*place(9000, 3.2e4), "listed: at most 128 n", anchor="start", fill=KEPT[1])
    picture.words(left + width / 2, bottom + 46, "n, documents of a crowd (both axes by powers)")
    return picture


def same_bits() -> Drawing:
    picture = Drawing(740, 260, "One result from different ways to compute it")
    picture.box(16, 100, 110, 60, "the same\ndocuments", KEPT)
    ways = ("1 thread", "16 threads, small batches", "an H100", "1,000 tasks, two of them lost")
    for at, way in enumerate(ways):
        y = 20 + 58 * at
        picture.box(230, y, 240, 42, way)
        picture.arrow(130, 130, 226, y + 21)
        picture.arrow(474, y + 21, 596, 130)
    picture.box(602, 90, 122, 80, "the same\ntables,\nbit for bit", KEPT)
    picture.words(71, 190, "and the same recipe", font_size="13")
    return picture


DRAWINGS = (decisions, shingles, kept, prefix, crowds, same_bits)

if __name__ == "__main__":
    for draw in DRAWINGS:
        Path(__file__).with_name(f"{draw.__name__}.svg").write_text(draw().text())
