"""Pictures: what is drawn is what theory and reports say, letters can be read, and legends cover nothing.

All figures are drawn by Agg, as they are in a file.
"""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import neardup_gpu as nd
from neardup_gpu import plot, theory
from neardup_gpu.cli.process import main
from neardup_gpu.errors import ParameterError
from neardup_gpu.report import histogram

pyplot = pytest.importorskip("matplotlib.pyplot")

from matplotlib.container import BarContainer  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.text import Text  # noqa: E402

pyplot.switch_backend("agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def texts():
    """Texts of sixty words, some with up to five copies of which some words are replaced."""
    rng, found = np.random.default_rng(1), []
    for number in range(120):
        words = [f"w{word}" for word in rng.integers(0, 5000, 60)]
        found.append(" ".join(words))
        for copy in range(number % 6 if number % 2 else 0):
            changed = list(words)
            for place in rng.choice(60, copy, replace=False):
                changed[place] = f"x{number}y{copy}"
            found.append(" ".join(changed))
    return found


@pytest.fixture(scope="module")
def by_minhash(texts):
    return nd.dedup({"text": texts}, method=nd.MinHash(recall=0.99), threshold=0.6, engine="cpu")


@pytest.fixture(scope="module")
def by_exact(texts):
    return nd.dedup({"text": texts}, threshold=0.45, engine="cpu")


FIGURES = {
    "one filter": lambda one, other: plot.filter_curve("altavista"),
    "seven curves": lambda one, other: plot.filter_curve(
        "altavista", "bing", "bands", (4, 6, 2), nd.BottomK(s=100), nd.ModM(m=1), nd.Exact(), threshold=0.7
    ),
    "a recipe": lambda one, other: plot.filter_curve(one.recipe),
    "powers of ten": lambda one, other: plot.filter_curve("altavista", one.recipe, log=True),
    "resemblances": lambda one, other: plot.resemblances(one),
    "resemblances below a half": lambda one, other: plot.resemblances(other),
    "resemblances, powers of ten": lambda one, other: plot.resemblances(one, log=True),
    "groups": lambda one, other: plot.groups(one),
    "groups, powers of ten": lambda one, other: plot.groups(
        one.report | {"group_sizes": [[2, 12345], [3, 500], [9, 3], [70, 1]]}
    ),
    "no groups": lambda one, other: plot.groups(nd.dedup({"text": ["a b", "c d"]}, engine="cpu")),
    "no pairs": lambda one, other: plot.resemblances(nd.dedup({"text": ["a b", "c d"]}, engine="cpu")),
    "estimates": lambda one, other: plot.estimates([0.2, 0.5, 0.9], [0.25, 0.9, np.nan], 100),
    "recall": lambda one, other: plot.recall(one),
    "recall of exact": lambda one, other: plot.recall(other),
    "low recall": lambda one, other: plot.recall(one.report | {"recall": {"expected": None, "sampled": LOW}}),
}
LOW = {
    "documents": 200,
    "with_duplicates": 9,
    "pairs": 12,
    "recall": 0.31,
    "low": 0.0,
    "high": 0.82,
    "confidence": 0.99,
}
LOW |= {"one_removed": {"share": 0.5, "low": 0.1, "high": 0.9}}


@pytest.mark.parametrize("name", FIGURES)
def test_letters_can_be_read_and_cover_nothing(name, by_minhash, by_exact):
    ax = FIGURES[name](by_minhash, by_exact)
    figure = ax.figure
    figure.canvas.draw()
    shown = figure.bbox
    words = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    assert ax.get_xlabel() and len(words) >= 3
    for text in words:
        assert text.get_fontsize() >= 9 and "$" not in text.get_text(), text
    boxes = [text.get_window_extent() for text in words if drawn(text, ax)]
    for box in boxes:
        assert shown.x0 <= box.x0 and box.x1 <= shown.x1 and shown.y0 <= box.y0 and box.y1 <= shown.y1
    for number, box in enumerate(boxes):
        assert not any(overlap(box, other) for other in boxes[:number])
    legend = ax.get_legend()
    if legend is None:
        return
    box = legend.get_window_extent()
    assert not overlap(box, ax.bbox)
    for line in ax.lines:
        at = line.get_transform().transform(line.get_xydata())
        inside = (at[:, 0] > box.x0) & (at[:, 0] < box.x1) & (at[:, 1] > box.y0) & (at[:, 1] < box.y1)
        assert not inside.any(), line
    for bars in (part for part in ax.containers if isinstance(part, BarContainer)):
        assert not any(overlap(bar.get_window_extent(), box) for bar in bars)
    labels = [text.get_text() for text in legend.get_texts()]
    assert len(set(labels)) == len(labels) == len(ax.get_legend_handles_labels()[1])


def drawn(text, ax):
    """Whether a text is drawn: numbers beyond the ends of an axis are not."""
    x, y = text.get_window_extent().width, text.get_window_extent().height
    if not x or not y:
        return False
    for axis, (low, high) in ((ax.xaxis, sorted(ax.get_xlim())), (ax.yaxis, sorted(ax.get_ylim()))):
        for tick in axis.get_major_ticks():
            if text in (tick.label1, tick.label2):
                return low <= tick.get_loc() <= high
    return True


def overlap(one, other):
    """Whether two boxes have more than a pixel in common, in both directions."""
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    return wide > 1 and min(one.y1, other.y1) - max(one.y0, other.y0) > 1


class TestFilterCurve:
    @pytest.mark.parametrize("log", [False, True])
    def test_lines_are_theory(self, log):
        filters = {"altavista": (6, 14, 2), "20,7,1": (20, 7, 1), (3, 5, 2): (3, 5, 2)}
        ax = plot.filter_curve(*filters, log=log)
        assert len(ax.lines) == 3
        for line, shape in zip(ax.lines, filters.values(), strict=True):
            levels, heights = line.get_data()
            assert (levels[0], levels[-1], len(levels)) == (0, 1, 401)
            assert heights.tolist() == [theory.pass_probability(x, *shape) for x in levels]
            assert line.get_label() == "filter {},{},{}".format(*shape)
        assert ax.get_yscale() == ("log" if log else "linear")

    def test_methods_are_theory(self):
        bits = nd.MinHash(sample_bits=1, candidates="segments")
        methods = [nd.MinHash(filter="bing"), bits, nd.BottomK(s=100), nd.ModM(m=1)]
        ax = plot.filter_curve(*methods, threshold=0.8)
        for line, method in zip(ax.lines, methods, strict=False):
            levels, heights = line.get_data()
            assert heights.tolist() == [method.settled(0.8).expected_recall(x) for x in levels]
        k, s, r = bits.settled(0.8).filter
        levels, heights = ax.lines[1].get_data()
        assert heights == pytest.approx([theory.pass_probability((1 + x) / 2, k, s, r) for x in levels], rel=1e-12)

    def test_a_recipe_has_its_own_threshold(self, by_minhash):
        ax = plot.filter_curve(by_minhash.recipe)
        curve, mark = ax.lines
        assert curve.get_label() == f"filter {theory.choose_filter(0.6, 0.99)}".replace("(", "").replace(
            ")", ""
        ).replace(", ", ",")
        assert mark.get_xdata() == [0.6, 0.6]
        assert plot.filter_curve(by_minhash.recipe, threshold=0.9).lines[1].get_xdata() == [0.9, 0.9]

    @pytest.mark.parametrize("method", [nd.Exact(), nd.Containment()], ids=["exact", "containment"])
    @pytest.mark.parametrize("threshold", [0.8, 0.8013, 1.0, 0.001])
    def test_a_step_where_no_pair_is_missed(self, method, threshold):
        levels, heights = plot.filter_curve(method, threshold=threshold).lines[0].get_data()
        assert (np.diff(levels) >= 0).all() and set(heights) == {0.0, 1.0}
        assert (heights[levels > threshold] == 1).all() and (heights[levels < threshold] == 0).all()
        assert heights[levels == threshold].tolist()[0] == 0 and heights[levels == threshold].tolist()[-1] == 1

    def test_without_filters_the_chosen_one(self):
        shape = theory.choose_filter(0.7, 0.99)
        line = plot.filter_curve(threshold=0.7).lines[0]
        assert line.get_ydata()[280] == theory.pass_probability(0.7, *shape)

    def test_curves_differ_in_more_than_colour(self, by_minhash, by_exact):
        lines = FIGURES["seven curves"](by_minhash, by_exact).lines
        assert len({line.get_color() for line in lines}) == len({str(dash) for dash in plot.DASHES}) == len(lines) == 7
        assert len({(line.get_linestyle(), line._unscaled_dash_pattern) for line in lines}) == 7

    @pytest.mark.parametrize(
        ("filters", "settings", "message"),
        [
            (["nonsense"], {}, "^filter 'nonsense'"),
            ([(3, 2, 9)], {}, "^filter 3,2,9"),
            ([7], {}, "^filters: 7 is not a recipe"),
            ([nd.SimHash()], {}, "^filters: theory does not say how likely simhash"),
            ([nd.BottomK(s=100, candidates="groups")], {}, "^filters: theory does not say how likely bottomk"),
            ([], {"threshold": 1.5}, "^threshold"),
            ([], {"log": "yes"}, "^log"),
        ],
        ids=str,
    )
    def test_what_is_refused(self, filters, settings, message):
        with pytest.raises(nd.NeardupError, match=message) as caught:
            plot.filter_curve(*filters, **settings)
        assert "\n" not in str(caught.value)
        assert not pyplot.get_fignums()  # no empty figure is left


def test_estimates_lie_in_the_band_of_the_theorem():
    """As often as `theory.mean_interval` says, which is at least 99%, of 2,000 pairs of one exact value each."""
    draw = np.random.default_rng(1)
    exact = draw.random(2000)
    ax = plot.estimates(exact, draw.binomial(100, exact) / 100, 100)
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    _, inside, outside = ax.lines
    assert len(inside.get_xdata()) + len(outside.get_xdata()) == 2000 and len(outside.get_xdata()) <= 40
    assert f"{len(outside.get_xdata())} pairs outside" in labels and "99% band of 100 samples" in labels
    for x, y in zip(*outside.get_data(), strict=True):
        low, high = theory.mean_interval(y, 100, 0.01)
        assert not low <= x <= high
    for wrong, name in (([0.5], "estimate"), ([0.5, 1.5], "estimate")):
        with pytest.raises(ParameterError, match=name):
            plot.estimates([0.5, 0.6], wrong, 100)


class TestResults:
    @pytest.mark.parametrize("name", ["by_minhash", "by_exact"])
    def test_resemblances(self, name, request):
        result = request.getfixturevalue(name)
        ax = plot.resemblances(result)
        below, same = ax.containers
        worth = result.pairs["resemblance"].to_numpy()
        edges = np.array([bar.get_x() for bar in below] + [1.0])
        heights = np.array([bar.get_height() for bar in below]) + [bar.get_height() for bar in same]
        assert heights.tolist() == np.histogram(worth, edges)[0].tolist()
        assert heights.sum() == len(worth) and edges[0] <= result.recipe.threshold < edges[1]
        assert sum(bar.get_height() for bar in same) == (worth == 1).sum() > 0
        assert np.allclose(np.diff(edges), 0.01 if name == "by_minhash" else 0.02)
        assert f"resemblance 1: {(worth == 1).sum():,} pairs" in [
            text.get_text() for text in ax.get_legend().get_texts()
        ]

    @pytest.mark.parametrize("threshold", [0.57, 0.7])
    def test_pairs_at_the_threshold_are_drawn(self, by_exact, threshold):
        """Of which the multiples of a bar's width are the nearest floats, not those above."""
        pairs = pa.table({"resemblance": [threshold, 0.9]})
        recipe = replace(by_exact.recipe, threshold=threshold)
        below, _ = plot.resemblances(replace(by_exact, pairs=pairs, recipe=recipe)).containers
        assert sum(bar.get_height() for bar in below) == 2

    def test_containment_is_named(self, texts):
        result = nd.dedup({"text": texts[:40]}, method="containment", threshold=0.9, engine="cpu")
        assert plot.resemblances(result).get_xlabel().startswith("containment")

    def test_groups(self, by_minhash):
        bars = plot.groups(by_minhash).containers[0]
        assert [bar.get_height() for bar in bars] == [
            number for _, number in histogram(by_minhash.report["group_sizes"])
        ]
        assert sum(bar.get_height() for bar in bars) == len(by_minhash.groups())

    def test_recall(self, by_minhash):
        """A mark for each share in percent, with its interval below it."""
        told = by_minhash.report["recall"]
        sampled, one = told["sampled"], told["sampled"]["one_removed"]
        lines = plot.recall(by_minhash).lines
        assert [line.get_xdata() for line in lines if line.get_marker() != "None"] == [
            pytest.approx([100 * share]) for share in (told["expected"], sampled["recall"], one["share"])
        ]
        assert [list(line.get_xdata()) for line in lines if line.get_marker() == "None"] == [
            pytest.approx([100 * each["low"], 100 * each["high"]]) for each in (sampled, one)
        ]

    def test_a_report_as_it_is_written(self, texts, tmp_path):
        source = tmp_path / "texts.parquet"
        pa.parquet.write_table(pa.table({"text": texts[:60]}), source)
        nd.dedup(source, output=tmp_path / "out", engine="cpu")
        report = json.loads((tmp_path / "out" / "report.json").read_text())
        assert len(plot.groups(report).patches) >= 1
        assert plot.recall(report).lines[0].get_xdata() == [100]

    def test_given_axes_are_drawn_in_and_others_are_new(self, by_minhash):
        figure = Figure(figsize=(10, 4), layout="constrained")
        left, right = figure.subplots(1, 2)
        assert plot.resemblances(by_minhash, ax=left) is left and plot.groups(by_minhash, ax=right) is right
        assert not pyplot.get_fignums()
        assert plot.groups(by_minhash).figure is not plot.groups(by_minhash).figure

    def test_axes_that_are_none(self, by_minhash):
        with pytest.raises(nd.errors.ArgumentTypeError, match=r"^ax"):
            plot.groups(by_minhash, ax="left")
        with pytest.raises(nd.errors.ArgumentTypeError, match=r"^ax"):
            plot.filter_curve("bing", ax=Figure())

    def test_what_is_refused(self, texts):
        unverified = nd.dedup({"text": texts[:20]}, method="simhash", engine="cpu")
        for draw in (plot.resemblances, plot.recall):
            with pytest.raises(ParameterError, match=r"^result: .*give dedup a threshold"):
                draw(unverified)
        for draw in (plot.resemblances, plot.groups, plot.recall):
            with pytest.raises(nd.NeardupError, match=r"^result"):
                draw({"counts": 1})
        assert len(plot.groups(unverified).patches) >= 1
        assert len(pyplot.get_fignums()) == 1


class TestWithoutMatplotlib:
    LINE = "needs matplotlib; install it: pip install 'neardup-gpu[plot]'"

    def test_one_line_names_the_extra(self, by_minhash, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        for draw in (plot.resemblances, plot.groups, plot.recall):
            with pytest.raises(ParameterError) as caught:
                draw(by_minhash)
            assert str(caught.value) == f"plot {self.LINE}"
        with pytest.raises(ParameterError, match=r"^plot needs"):
            plot.filter_curve("bing")
        with pytest.raises(ParameterError, match=r"^plot needs"):
            by_minhash.plot()

    def test_the_command(self, monkeypatch, tmp_path, capsys):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        path = tmp_path / "c.png"
        assert main(["curve", "-o", str(path)]) == 2
        said = capsys.readouterr()
        assert said.out == "" and said.err.count("\n") == 1 and "neardup-gpu[plot]" in said.err
        assert not list(tmp_path.iterdir())

    def test_it_is_imported_when_something_is_drawn(self):
        code = "import sys; from neardup_gpu import plot; print('matplotlib' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize(("ending", "first"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_command_writes_pictures(ending, first, tmp_path, capsys):
    path = tmp_path / f"c.{ending}"
    assert main(["curve", "--threshold", "0.7", "-o", str(path)]) == 0
    assert path.read_bytes().startswith(first)
    assert str(path) in capsys.readouterr().out
