"""The pictures of the pages on concepts, drawn with neardup_gpu.plot: python docs/pictures/make.py [FOLDER].

Documents are made here, with fixed seeds, and what was measured is read from benchmarks/results; so each run draws the
same.
"""

import json
import random
import sys
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.figure import Figure

import neardup_gpu as nd
from neardup_gpu import papers, plot, theory

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
LETTERS = 10.5
"""Size of letters in the pictures that are drawn here, in points."""


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
    near = nd.dedup({"text": texts}, threshold=0.5, engine=engine)
    steep = nd.dedup({"text": texts}, method=nd.MinHash(filter="altavista"), threshold=0.8, engine=engine)
    chosen = nd.dedup({"text": texts}, method=nd.MinHash(recall=0.99), threshold=0.8, engine=engine)
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


def measured():
    """Pictures of what was measured, by name: a figure each."""
    yield "passed", passed()
    simhashes = json.loads((RESULTS / "epyc-zen4-2cores-simhash.json").read_text())["figures"]["simhash"]
    yield "simhash_radius", radius(simhashes)
    yield "simhash_weights", weights(simhashes)
    yield "simhash_random", leading_bits(simhashes)
    yield "simhash_intervals", intervals(simhashes)
    tables = json.loads((RESULTS / "epyc-zen4-2cores-hamming.json").read_text())["figures"]["compression"]
    yield "simhash_tables", bits_a_word(tables)


def passed():
    """Pairs of known resemblance under 25 seeds: the share that become candidates, on the curve of theory."""
    texts = documents(200)
    recipe = nd.Recipe(threshold=0.8, method=nd.MinHash(recall=0.99))
    shingles = nd.stages.shingle(nd.stages.tokenize(texts, recipe), recipe)
    rows = np.arange(len(texts) - 1)
    pairs = nd.stages.verify(shingles, nd.stages.Pairs(rows, rows + 1), 0.05)
    left, right, resemblance = pairs.pairs.left, pairs.pairs.right, pairs.resemblance
    found = []
    for seed in range(1, 26):
        drawn = recipe.with_(seed=seed)
        method = drawn.method
        keys = method.keys(
            method.sketch(nd.stages.shingle(nd.stages.tokenize(texts, drawn), drawn), seed=seed), seed=seed
        )
        found.append(method.are_candidates(keys, left, right))
    share = np.array(found)
    figure, (ax,) = panels(1, 4.0)
    plot.filter_curve(recipe, ax=ax)
    for low in np.arange(0.1, 1, 0.05):
        inside = (resemblance >= low) & (resemblance < low + 0.05)
        if inside.sum() < 5:
            continue
        bound = papers.hoeffding(share[:, inside].size)
        mean = share[:, inside].mean()
        expected = np.mean([theory.pass_probability(x, *method.filter) for x in resemblance[inside]])
        assert abs(mean - expected) <= bound
        at = resemblance[inside].mean()
        ax.errorbar(at, mean, bound, fmt="o", color=plot.COLOURS[1], capsize=3, markersize=5, zorder=3)
    ax.plot([], [], "o", color=plot.COLOURS[1], label="measured, 25 seeds")
    ax.set_ylim(0, 1.05)
    above(ax, 3)
    return figure


def radius(figures):
    """Precision and recall by radius, of two corpora: tokens by logarithmic weights, truth at 0.8."""
    figure, axes = panels(2, 3.6)
    for ax, corpus, name in zip(axes, ("bills_116", "manpages"), ("bills", "manual pages"), strict=True):
        drawn = one(figures, "figure 1, equal sampling: precision at k = 3, simhash of tokens, log, 64 bits", corpus)
        ax.plot(drawn["k"], drawn["exact_precision"], plot.DASHES[0], color=plot.COLOURS[0], linewidth=2)
        ax.plot(drawn["k"], drawn["exact_recall"], plot.DASHES[0], color=plot.COLOURS[1], linewidth=2)
        every = one(figures, "best F1, simhash of tokens, log, 64 bits", corpus)
        ax.plot(every["k"][1:], every["precision"][1:], plot.DASHES[1], color=plot.COLOURS[0], linewidth=2)
        ax.plot(every["k"][1:], every["recall"][1:], plot.DASHES[1], color=plot.COLOURS[1], linewidth=2)
        ax.set(xticks=range(1, 11), ylim=(0, 1.02))
        words(ax, f"radius k (bits), {name}", "")
    handles = [
        *(
            axes[0].plot([], [], color=plot.COLOURS[i], linewidth=2, label=n)[0]
            for i, n in enumerate(("precision", "recall"))
        ),
        axes[0].plot([], [], plot.DASHES[0], color=plot.GREY, linewidth=2, label="as many pairs at each distance")[0],
        axes[0].plot([], [], plot.DASHES[1], color=plot.GREY, linewidth=2, label="all pairs")[0],
    ]
    figure.legend(handles=handles, loc="outside upper left", ncols=2, frameon=False, fontsize=LETTERS)
    return figure


def weights(figures):
    """Precision against recall, by what is summarised and how it is weighed; the mark is radius 3."""
    figure, axes = panels(2, 3.8)
    schemes = ("tokens, tf", "tokens, log", "tokens, tfidf", "shingles, tf", "shingles, log")
    for ax, corpus, name in zip(axes, ("bills_116", "manpages"), ("bills", "manual pages"), strict=True):
        for number, scheme in enumerate(schemes):
            drawn = one(figures, f"best F1, simhash of {scheme}, 64 bits", corpus)
            style = {"color": plot.COLOURS[number], "linestyle": plot.DASHES[number], "linewidth": 2}
            ax.plot(drawn["recall"], drawn["precision"], label=scheme, **style)
            at = drawn["k"].index(3)
            ax.plot(drawn["recall"][at], drawn["precision"][at], "o", color=plot.COLOURS[number], markersize=7)
        ax.set(xlim=(0, 1.02), ylim=(0, 1.03))
        words(ax, f"recall, {name}", "precision" if ax is axes[0] else "")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False, fontsize=LETTERS)
    return figure


def leading_bits(figures):
    """Of sorted simhashes of bills, where the xor of neighbours has its highest bit; and of random ones."""
    figure, (ax,) = panels(1, 3.8)
    what = "figure 2a: xors of neighbours that lead so low as 0.001 of random ones do, simhash of {}, 64 bits"
    for number, scheme in enumerate(("tokens, tf", "shingles, tf")):
        drawn = one(figures, what.format(scheme), "bills_116")
        places = np.arange(63, -1, -1)
        shares = np.where(np.array(drawn["positions_63_to_0"]) > 0, drawn["positions_63_to_0"], np.nan)
        style = {"color": plot.COLOURS[number], "linestyle": plot.DASHES[number], "linewidth": 2}
        ax.plot(places, shares, label=f"simhashes of {scheme}", **style)
    ax.plot(places, drawn["random"], ":", color=plot.GREY, linewidth=2, label="random fingerprints")
    plot._logarithmic(ax, 1e-5, 1)
    words(ax, "highest bit in which sorted neighbours differ", "share of neighbours")
    above(ax, 2)
    return figure


def intervals(figures):
    """Draw the share of the simhashes of bills in each of 128 equal intervals, and the share of random ones."""
    figure, (ax,) = panels(1, 3.8)
    what = "figure 2b: variance of 128 buckets over that of random ones, simhash of {}, 64 bits"
    for number, scheme in enumerate(("tokens, log", "shingles, log")):
        shares = np.array(one(figures, what.format(scheme), "bills_116")["fractions"])
        style = {"color": plot.COLOURS[number], "linestyle": plot.DASHES[number], "linewidth": 1.5}
        ax.stairs(shares, baseline=None, label=f"simhashes of {scheme}", **style)
    ax.axhline(1 / len(shares), color=plot.GREY, linestyle=":", linewidth=2, label="random fingerprints")
    ax.set(xlim=(0, len(shares)), ylim=(0, 0.14), xticks=range(0, len(shares) + 1, 16))
    words(ax, "interval of 128: the leading seven bits", "share of fingerprints")
    above(ax, 2)
    return figure


def bits_a_word(figures):
    """Bits of a fingerprint in a compressed table, by the number of fingerprints."""
    figure, (ax,) = panels(1, 3.8)
    random_words = [line for line in figures if line["what"] == "compressed table" and line["of"] == "random words"]
    derived = next(line for line in figures if line["what"] == "compressed table, derived")
    sizes = [line["words"] for line in random_words]
    ax.plot([*sizes, derived["words"]], [line["expected"] for line in random_words] + [derived["median"]], "-",
            color=plot.COLOURS[0], linewidth=2, label="expected, random")  # fmt: skip
    ax.plot([*sizes, derived["words"]], [line["bound"] for line in [*random_words, derived]], "--",
            color=plot.COLOURS[1], linewidth=2, label="least of any code, random")  # fmt: skip
    ax.plot(sizes, [line["median"] for line in random_words], "o", color=plot.COLOURS[0], label="measured, random")
    for number, (corpus, name) in enumerate((("bills_116", "bills"), ("manpages", "manual pages"))):
        own = [line for line in figures if line.get("of") == f"simhashes of {corpus}"]
        ax.plot(own[0]["words"], own[0]["median"], "sD"[number], color=plot.COLOURS[number + 2], markersize=7,
                label=f"measured, {name}")  # fmt: skip
    ax.set(xscale="log", ylim=(0, 70), xlim=(500, 2e10))
    ax.set_xticks([1e3, 1e6, 1e9], ["thousand", "million", "billion"])
    ax.axhline(64, color=plot.GREY, linestyle=":", linewidth=1.5, label="not compressed")
    words(ax, "fingerprints in the table", "bits a fingerprint")
    ax.minorticks_off()
    above(ax, 2)
    return figure


# ------------------------------------------------------------------------------------------------------------- drawing


def one(figures, what, corpus):
    """The measured figure of that name."""
    found = [line for line in figures if line["what"] == what and line.get("corpus") == corpus]
    return next(line for line in found if line.get("truth", 0.8) == 0.8)


def panels(number, height):
    figure = Figure(figsize=(6.4, height), layout="constrained")
    return figure, list(figure.subplots(1, number, squeeze=False)[0])


def words(ax, x, y):
    plot._words(ax, x, y)
    ax.grid(color="#DDDDDD", linewidth=0.6)


def above(ax, columns):
    """A legend above the axes."""
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=columns, frameon=False, fontsize=LETTERS)


def make(folder):
    """Write all pictures into a folder, as SVG of the same bytes by the same matplotlib."""
    with matplotlib.rc_context({"svg.hashsalt": "neardup", "font.family": "DejaVu Sans"}):
        for name, figure in (*pictures(), *measured()):
            figure.savefig(Path(folder) / f"{name}.svg", metadata={"Date": None, "Creator": None})


if __name__ == "__main__":
    make(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
