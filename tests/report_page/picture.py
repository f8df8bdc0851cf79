"""The pictures of a report in the docs: made news of which some are edited, and a feed that repeats the others.

python tests/report_page/picture.py docs/pictures
"""

import contextlib
import random
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from neardup_gpu import Writing

TOWNS = [
    "Aldbury",
    "Brixham",
    "Corfe",
    "Dunster",
    "Elham",
    "Frome",
    "Goring",
    "Helmsley",
    "Ilkley",
    "Keswick",
    "Ludlow",
    "Mere",
]
WHO = ["The council", "The school board", "A group of residents", "The harbour office", "The county library"]
DID = ["approved", "put off", "discussed", "opened a hearing on", "withdrew", "paid for", "voted down"]
WHAT = ["a new bridge", "the flood wall", "longer opening hours", "the bus line to the coast", "a bicycle lane"]
WHEN = ["on Monday", "late on Tuesday", "this week", "after two years of talks", "at its last meeting", "by one vote"]
WHY = ["costs had doubled", "the plans were not ready", "the bank agreed", "nobody had objected", "rain was forecast"]


def news(draw: random.Random) -> list[str]:
    """The sentences of an article."""
    town = draw.choice(TOWNS)
    said = []
    for _ in range(14):
        who, did, what = draw.choice(WHO), draw.choice(DID), draw.choice(WHAT)
        said.append(f"{who} of {town} {did} {what} {draw.choice(WHEN)}, as {draw.choice(WHY)}.")
    return said


def shards(folder: Path) -> Path:
    """Three files of articles, of which the last one mostly repeats the others."""
    draw = random.Random(4)
    articles = [news(draw) for _ in range(900)]
    rows: dict[str, list[dict[str, str]]] = {"local-papers": [], "press-agency": [], "syndicated-feed": []}
    for number, article in enumerate(articles):
        name = "local-papers" if number < 600 else "press-agency"
        rows[name].append({"id": f"{name}/{number:04}", "text": " ".join(article)})
        if draw.random() < 0.35:
            for copy in range(draw.choice([1, 1, 1, 2, 3])):
                text = " ".join(article)
                for _ in range(draw.randrange(4)):
                    text = text.replace(draw.choice(WHEN), draw.choice(WHEN), 1)
                other = draw.choice(["syndicated-feed"] * 5 + ["local-papers"])
                rows[other].append({"id": f"{other}/{number:04}-{copy}", "text": text})
    for number in range(60):
        rows["syndicated-feed"].append({"id": f"own/{number:04}", "text": " ".join(news(draw))})
    folder.mkdir()
    for name, each in rows.items():
        pq.write_table(pa.Table.from_pylist(each), folder / f"{name}.parquet")
    return folder


def draw(browser, page: Path, folder: Path) -> None:
    """Take two pictures of a page: its summary, and a group that was opened."""
    from browser import opened

    with opened(browser, page) as tab:
        tab.set_viewport_size({"width": 1000, "height": 1010})
        tab.screenshot(path=folder / "report.png")
        tab.set_viewport_size({"width": 1000, "height": 900})
        tab.locator("#sort").select_option("least")
        tab.locator("#groups button").first.click()
        tab.locator("#browser").evaluate("heading => heading.closest('section').scrollIntoView()")
        tab.mouse.move(0, 0)
        tab.screenshot(path=folder / "report_group.png")


def main(target: Path) -> None:
    from browser import launched

    from neardup_gpu import dedup

    with tempfile.TemporaryDirectory() as folder, launched() as browser, contextlib.chdir(folder):
        dedup(shards(Path("news")), id_column="id", output="deduplicated", writing=Writing(report=True))
        draw(browser, Path("deduplicated", "report.html"), target)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "support"))
    main(Path(sys.argv[1]).absolute())
