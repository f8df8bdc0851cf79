"""Make the texts of `neardup demo`, and the truth about them: from one novel always the same files.

    apt-get download r-cran-janeaustenr && dpkg-deb -x r-cran-janeaustenr_*.deb austen
    python tests/support/demo_texts.py austen/usr/lib/R/site-library/janeaustenr/data neardup_gpu/demo

The documents of library.parquet are the passages of a novel. Two made-up collections hold variants of them, as the web
does: mirror.parquet puts passages into the frame of a site or edits them, scans.parquet misreads letters as optical
character recognition does. Each variant says which passage it was made from, how, and their resemblance, which is
computed here from its definition by Python's sets and by nothing else of this package.

The package's demo/NOTICE.md says where the novel comes from.
"""

from __future__ import annotations

import random
import re
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

NOVEL = "PRIDE AND PREJUDICE"

PASSAGE = 450
"""Words of a passage, at least: whole paragraphs of one chapter."""

COLLECTIONS = ("library", "mirror", "scans")

# ------------------------------------------------------------------------------------------------------------- passages


def lines_of_novel(data: Path) -> list[str]:
    """The lines of the novel, from R's lazy-load database: vectors, each compressed behind its length."""
    content, start = (data / "Rdata.rdb").read_bytes(), 0
    while start < len(content):
        unpacking = zlib.decompressobj()
        lines = _strings(unpacking.decompress(content[start + 4 :]))
        if lines[0] == NOVEL:
            return lines
        start = len(content) - len(unpacking.unused_data)
    raise LookupError(f"{data}: no novel begins with {NOVEL}")


def _strings(serialized: bytes) -> list[str]:
    """A vector of strings in R's binary format: XDR, version 3."""
    start = 18 + int.from_bytes(serialized[14:18], "big") + 4  # the name of the encoding, then the vector's type
    number = int.from_bytes(serialized[start : start + 4], "big")
    start += 4
    found = []
    for _ in range(number):
        length = int.from_bytes(serialized[start + 4 : start + 8], "big")
        found.append(serialized[start + 8 : start + 8 + length].decode())
        start += 8 + length
    return found


def passages(lines: list[str]) -> list[dict[str, str]]:
    """The novel as documents: paragraphs of a chapter until they have `PASSAGE` words; a short rest joins the last."""
    chapters = re.split(r"^Chapter (\d+)\n", "\n".join(lines), flags=re.MULTILINE)[1:]
    found = []
    for number, text in zip(chapters[::2], chapters[1::2], strict=True):
        parts: list[list[str]] = [[]]
        for paragraph in re.split(r"\n\s*\n", text.strip()):
            if sum(len(each.split()) for each in parts[-1]) >= PASSAGE:
                parts.append([])
            parts[-1].append(paragraph)
        if len(parts) > 1 and sum(len(each.split()) for each in parts[-1]) < PASSAGE // 2:
            rest = parts.pop()
            parts[-1] += rest
        for place, part in enumerate(parts, 1):
            found.append({"id": f"library/{int(number):02}-{place}", "text": "\n\n".join(part)})
    return found


# ------------------------------------------------------------------------------------------------------------- variants


def reflowed(text: str, chance: random.Random) -> str:
    """The same words with other line breaks, and other marks around what is said."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text).replace('"', "'").replace("--", " - ")


def framed(text: str, chance: random.Random) -> str:
    """The passage as a page of a site shows it."""
    page = chance.randint(2, 400)
    return (
        f"Home > Classics > Novels\n\nPage {page}\n\n{text}\n\n"
        f"Previous page {page - 1} | Next page {page + 1} | Back to the contents"
    )


MODERN = {
    "shew": "show",
    "chuse": "choose",
    "to-day": "today",
    "to-morrow": "tomorrow",
    "any body": "anybody",
    "any thing": "anything",
    "every thing": "everything",
    "every body": "everybody",
    "every one": "everyone",
    "favour": "favor",
    "honour": "honor",
    "civility": "courtesy",
    "ladyship": "Ladyship",
    "acquaintance": "friends",
    "directly": "at once",
    "dear": "good",
    "exceedingly": "very",
    "handsome": "beautiful",
    "replied": "said",
    "cried": "said",
}
"""What an editor changes who wants to be read today."""


def edited(text: str, chance: random.Random) -> str:
    """Words for those of another time, and the first sentence left out."""
    for old, new in MODERN.items():
        text = re.sub(rf"\b{old}(s|ed|able|ably)?\b", rf"{new}\1", text)
    return re.sub(r"^[^.!?]{1,300}[.!?][\"']?\s+", "", text, count=1)


def excerpt(text: str, chance: random.Random) -> str:
    """Half of it, as a quotation."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(paragraphs[: max(1, len(paragraphs) // 2)])


MISREAD = {"rn": "m", "h": "b", "e": "c", "li": "h", "cl": "d", "in": "m", "ll": "11", "s": "5", "o": "0", "t": "f"}
"""Letters that optical character recognition takes for others."""


def misread(text: str, chance: random.Random, share: float) -> str:
    """A share of the words with a letter taken for another."""

    def read(found: re.Match[str]) -> str:
        word = found[0]
        taken = [letters for letters in MISREAD if letters in word]
        if not taken or chance.random() >= share:
            return word
        letters = chance.choice(taken)
        return word.replace(letters, MISREAD[letters], 1)

    return re.sub(r"[A-Za-z]+", read, text)


def clean_scan(text: str, chance: random.Random) -> str:
    """About one word of 150 misread."""
    return misread(text, chance, 1 / 150)


def poor_scan(text: str, chance: random.Random) -> str:
    """About one word of ten misread."""
    return misread(text, chance, 1 / 10)


VARIANTS: dict[str, tuple[Callable[[str, random.Random], str], ...]] = {
    "mirror": (reflowed, framed, edited, excerpt, framed),
    "scans": (clean_scan, poor_scan, clean_scan),
}
"""Which variants a collection holds, by turns."""

EVERY = {"mirror": 2, "scans": 3}
"""Of every how many passages a collection has a variant."""


def resemblance(one: str, other: str) -> float:
    """Shared word 5-shingles of two texts, of all that either has: the definition."""
    words = [re.findall(r"\w+", text.lower()) for text in (one, other)]
    first, second = ({tuple(each[i : i + 5]) for i in range(len(each) - 4)} for each in words)
    return len(first & second) / len(first | second)


def collections(library: list[dict[str, str]]) -> dict[str, pa.Table]:
    """The three collections, from the passages."""
    rows: dict[str, list[dict[str, object]]] = {"library": [{**row} for row in library]}
    for name, variants in VARIANTS.items():
        rows[name] = []
        for number, row in enumerate(library[:: EVERY[name]]):
            vary = variants[number % len(variants)]
            text = vary(row["text"], random.Random(f"{name} {row['id']}"))
            rows[name].append(
                {
                    "id": row["id"].replace("library", name),
                    "text": text,
                    "made_from": row["id"],
                    "made_by": vary.__name__,
                    "resemblance": round(resemblance(row["text"], text), 6),
                }
            )
    columns = {"id": pa.string(), "text": pa.string(), "made_from": pa.string(), "made_by": pa.string()}
    schema = pa.schema({**columns, "resemblance": pa.float64()})
    return {name: pa.Table.from_pylist(rows[name], schema=schema) for name in COLLECTIONS}


def main(data: Path, folder: Path) -> None:
    """Write the three files."""
    for name, table in collections(passages(lines_of_novel(data))).items():
        path = folder / f"{name}.parquet"
        pq.write_table(table, path, compression="zstd", compression_level=22, data_page_size=8 << 20, version="2.6")
        print(f"{path}: {table.num_rows} documents, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
