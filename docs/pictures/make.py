"""The pictures of the pages on concepts, drawn by neardup_gpu.plot: python docs/pictures/make.py [FOLDER].

The documents are made here, with fixed seeds, so each run draws the same.
"""

import random
import sys
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

import neardup_gpu as nd
from neardup_gpu import plot


def documents(number=1500, words=200):
    """Texts of random words, and copies of which up to two fifths of the words are replaced."""
    rng = random.Random(1)
    texts = []
    for place in range(number):
        text = [f"w{rng.randrange(20_000)}" for _ in range(words)]
        texts.append(" ".join(text))
        for copy in range(place % 4):
            changed = list(text)
            for at in rng.sample(range(words), int(rng.triangular(0, 20, 0))):
                changed[at] = f"x{place}y{copy}"
            texts.append(" ".join(changed))
    return texts


def pictures():
    """Each picture by its name: a figure."""
    texts = documents()
    engine = "cpu"
    near = nd.dedup(texts=texts, threshold=0.5, engine=engine)
    steep = nd.dedup(texts=texts, threshold=0.8, method=nd.MinHash(filter="altavista"), engine=engine)
    chosen = nd.dedup(texts=texts, threshold=0.8, method=nd.MinHash(recall=0.99), engine=engine)
    exact = nd.Exact()
    one = {
        "filters": lambda ax: plot.filter_curve("bands", (20, 7, 1), "bing", "altavista", exact, threshold=0.8, ax=ax),
        "filters_log": lambda ax: plot.filter_curve("bands", (20, 7, 1), "bing", "altavista", log=True, ax=ax),
        "one_feature": lambda ax: plot.filter_curve((1, 7, 1), (5, 7, 1), (20, 7, 1), (20, 7, 4), ax=ax),
        "resemblances": lambda ax: plot.resemblances(near, ax=ax),
        "recall_steep": lambda ax: plot.recall(steep, ax=ax),
        "recall_chosen": lambda ax: plot.recall(chosen, ax=ax),
    }
    for name, draw in one.items():
        figure = Figure(figsize=(6.4, 3.0 if name.startswith("recall") else 4.0), layout="constrained")
        draw(figure.add_subplot())
        yield name, figure


def make(folder):
    """Write all pictures into a folder, as SVG of the same bytes by the same matplotlib."""
    with matplotlib.rc_context({"svg.hashsalt": "neardup", "font.family": "DejaVu Sans"}):
        for name, figure in pictures():
            figure.savefig(Path(folder) / f"{name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    make(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
