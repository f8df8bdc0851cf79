"""Pictures of filters and results, by matplotlib (extra `plot`).

Each function draws into the axes that it is given, or into those of a new figure of pyplot, and returns the axes.
Legends stand above the axes, so that they cover no curve; nothing is set in less than 9 points; colours are those of
Okabe and Ito (2008), which people of any colour vision tell apart, and curves differ in their dashes as well.

    >>> from neardup_gpu import plot
    >>> axes = plot.filter_curve("altavista", "bands")  # doctest: +SKIP
    >>> axes.figure.savefig("curves.svg")  # doctest: +SKIP
"""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import checks, theory
from .errors import ArgumentTypeError, ParameterError
from .methods.contract import Join, Sketch
from .methods.minhash import MinHash
from .recipe import Recipe
from .report import count, histogram, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .results.result import Result

__all__ = ["estimates", "filter_curve", "groups", "recall", "resemblances"]


def __dir__() -> list[str]:
    return __all__


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 2)))
GREY = "#666666"
LABEL, TICK, SMALL = 11, 10, 9.5
"""Sizes of letters, in points: of axes, of numbers and legends, and of numbers on bars."""

LEVELS = np.arange(401) / 400
"""Resemblances at which curves are computed."""

LEAST = 1e-12
"""The end of a logarithmic scale of probabilities."""


def filter_curve(*filters: Any, threshold: float | None = None, log: bool = False, ax: Axes | None = None) -> Axes:
    """Draw how likely two documents become candidates, by their resemblance.

    Parameters
    ----------
    filters : Recipe, method, str or tuple of int
        A curve for each: of a recipe, of a method's settings such as MinHash(filter="bing") or Exact(), or of a filter
        by its name, as "k,s,r" or as (k, s, r). Without any, the filter that is chosen for the threshold.
    threshold : float in (0, 1], default None
        Marked by a line, and what settings are completed for; that of the recipes, or 0.8, unless given.
    log : bool, default False
        Draw probabilities on a logarithmic scale, down to 1e-12.
    ax : matplotlib.axes.Axes, default None
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
        A line for each filter, of 401 resemblances from 0 to 1, labelled, in the order given; a step for settings that
        miss no pair. Where there is none, a line at the threshold, if one was given or a recipe has one.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If theory does not say how likely candidates are, as by simhash, or a filter is impossible; if matplotlib is not
        installed.

    Notes
    -----
    Source: Broder 2000, section 3, and figures 1 and 2.

    Examples
    --------
    >>> axes = filter_curve("altavista", (20, 7, 1), threshold=0.8)  # doctest: +SKIP
    """
    log = checks.flag("log", log)
    if threshold is not None:
        threshold = checks.fraction("threshold", threshold, zero=False)
    shown_threshold = threshold
    for given in filters:
        if shown_threshold is None and isinstance(given, Recipe):
            shown_threshold = given.threshold
    wanted = 0.8 if shown_threshold is None else shown_threshold
    curves = [_curve(given, wanted) for given in filters or (MinHash(),)]
    ax = _axes(ax)
    for number, curve in enumerate(curves):
        style = {"color": COLOURS[number % len(COLOURS)], "linestyle": DASHES[number % len(DASHES)]}
        ax.plot(curve.resemblance, curve.probability, label=curve.label, linewidth=2, **style)
    # A step is a mark, too.
    if shown_threshold is not None and all(len(curve.resemblance) == len(LEVELS) for curve in curves):
        _mark(ax, shown_threshold)
    _words(ax, "resemblance (share of shingles in common)", "probability of becoming a candidate")
    ax.set(xlim=(0, 1), ylim=(0, 1.02), xticks=np.linspace(0, 1, 11))
    if log:
        _logarithmic(ax, LEAST, 2)
    ax.grid(color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)
    return _legend(ax)


class _Curve(NamedTuple):
    """A curve: its name, and where it runs."""

    label: str
    resemblance: np.ndarray
    probability: np.ndarray


def _curve(given: Any, threshold: float) -> _Curve:
    """The curve of a recipe, a method or a filter."""
    if isinstance(given, Recipe):
        method = given.method
    elif isinstance(given, Join | Sketch):
        method = given
    elif isinstance(given, str):
        method = MinHash(filter=theory.parse_filter(given))
    elif isinstance(given, tuple | list) and len(given) == 3:
        method = MinHash(filter=theory.check_filter(*given))
    else:
        raise ParameterError(f"filters: {checks.shown(given)} is not a recipe, method, name of a filter or (k, s, r)")
    method = method.settled(threshold)
    if isinstance(method, Join):
        step = np.sort(np.append(LEVELS, [threshold, threshold]))
        probability = (step >= threshold).astype(float)
        probability[np.searchsorted(step, threshold)] = 0.0  # the foot of the step
        return _Curve(f"{method.name}: every pair from {threshold:g} on", step, probability)
    chances = [method.expected_recall(float(level)) for level in LEVELS]
    if any(chance is None for chance in chances):
        raise ParameterError(
            f"filters: theory does not say how likely {method.name} makes candidates by these settings"
        )
    return _Curve(method.label, LEVELS, np.array(chances))


def resemblances(result: Result, *, log: bool = False, ax: Axes | None = None) -> Axes:
    """Draw how much the pairs of a result resemble each other, from its threshold to 1.

    Parameters
    ----------
    result : Result
        Of `dedup`, with a threshold.
    log : bool, default False
        Draw numbers of pairs on a logarithmic scale, where the last bar hides the others.
    ax : matplotlib.axes.Axes, default None
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
        Bars of the listed pairs, 0.01 wide (0.02 where the threshold is below 0.5); pairs of resemblance 1 have a
        colour of their own. By containment, it is containment that is drawn.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If nothing was verified, as by simhash alone; if matplotlib is not installed.

    Examples
    --------
    >>> from neardup_gpu import dedup
    >>> axes = resemblances(dedup({"text": ["to be or not to be"] * 2}))  # doctest: +SKIP
    """
    log = checks.flag("log", log)
    if not hasattr(result, "pairs"):  # `result.py` imports this module, so its class cannot be named here
        raise ArgumentTypeError(f"result: {checks.shown(result)}; give a Result", parameter="result")
    threshold, measure = result.recipe.threshold, result.recipe.method.measure.name
    if threshold is None:
        raise ParameterError("result: nothing was verified, so there is no resemblance; give dedup a threshold")
    worth = result.pairs[measure].drop_null().to_numpy()
    width = 0.01 if threshold >= 0.5 else 0.02
    edges = np.append(np.arange(np.floor(threshold / width + 1e-9), np.rint(1 / width)) * width, 1.0)
    edges = np.round(edges, 2)  # 70 * 0.01 is more than 0.7
    if len(edges) == 1:  # a threshold of 1
        edges = np.array([1 - width, 1.0])
    numbers = np.histogram(worth, edges)[0]
    same = int((worth == 1).sum())
    others, alike = numbers.copy(), np.zeros_like(numbers)
    others[-1], alike[-1] = numbers[-1] - same, same
    ax = _axes(ax)
    bar: dict[str, Any] = {"width": np.diff(edges), "align": "edge", "edgecolor": "white", "linewidth": 0.5}
    ax.bar(edges[:-1], others, color=COLOURS[0], label=f"{measure} below 1: {count(len(worth) - same, 'pair')}", **bar)
    ax.bar(
        edges[:-1],
        alike,
        bottom=others,
        color=COLOURS[4],
        label=f"{measure} 1: {count(same, 'pair')}",
        hatch="///",
        **bar,
    )
    _mark(ax, threshold)
    _words(ax, f"{measure} (share of shingles in common), bars of {width:g}", "listed pairs")
    ax.set(xlim=(min(edges[0], threshold) - width, 1 + width))
    if log:
        _logarithmic(ax, 0.7, 2 * max(1, numbers.max()))
    else:
        _whole(ax, numbers.max())
    return _legend(ax)


def groups(result: Result | Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw how many groups of near-duplicates have how many documents.

    Parameters
    ----------
    result : Result or mapping
        A result, or its report (the contents of report.json).
    ax : matplotlib.axes.Axes, default None
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
        A bar for groups of 2, 3 and 4 documents, and for ranges that double above, each with its number. The scale is
        logarithmic where the largest number is more than 20 times the smallest.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If `result` is neither; if matplotlib is not installed.

    Examples
    --------
    >>> from neardup_gpu import dedup
    >>> axes = groups(dedup({"text": ["to be or not to be"] * 2}))  # doctest: +SKIP
    """
    report = _report(result)
    bars = histogram(report["group_sizes"])
    ax = _axes(ax)
    drawn = ax.bar(range(len(bars)), [number for _, number in bars], color=COLOURS[0])
    turn = 90 if len(bars) > 10 else 0
    ax.bar_label(drawn, labels=[f"{number:,}" for _, number in bars], fontsize=SMALL, padding=2, rotation=turn)
    slanted: dict[str, Any] = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"} if len(bars) > 5 else {}
    ax.set_xticks(range(len(bars)), [name for name, _ in bars], **slanted)
    numbers = [number for _, number in bars]
    found = count(report["counts"]["groups"], "group")
    _words(ax, "documents in a group", f"groups, of {found}" if bars else "groups")
    if numbers and max(numbers) > 20 * min(numbers):
        _logarithmic(ax, 0.5, (300 if turn else 3) * max(numbers))
    else:
        _whole(ax, max(numbers, default=0))
    if not bars:
        ax.set(xticks=[], yticks=[])
        words = "no two documents resemble each other so much"
        ax.text(0.5, 0.5, words, ha="center", fontsize=LABEL, transform=ax.transAxes)
    return ax


def recall(result: Result | Mapping[str, Any], *, ax: Axes | None = None) -> Axes:
    """Draw which share of the near-duplicate pairs a run found: by theory, and by its sample with the interval.

    Parameters
    ----------
    result : Result or mapping
        A result, or its report (the contents of report.json).
    ax : matplotlib.axes.Axes, default None
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
        A row for what theory expects of pairs exactly at the threshold, for the sampled share that the method found,
        and for the share of pairs with one removed document: each only where the report has it.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the report says nothing of recall, as where nothing was verified; if matplotlib is not installed.

    Examples
    --------
    >>> from neardup_gpu import MinHash, dedup
    >>> axes = recall(dedup({"text": ["to be or not to be"] * 2}, method=MinHash()))  # doctest: +SKIP
    """
    report = _report(result)
    told = report["recall"]
    rows: list[tuple[str, float, tuple[float, float] | None]] = []
    sampled = told["sampled"] if told["sampled"] and told["sampled"]["with_duplicates"] else None
    if told["expected"] is not None:
        rows.append(("expected by theory,\njust at the threshold", told["expected"], None))
    confidence = 0.0 if sampled is None else sampled["confidence"]
    if sampled is not None:
        one = sampled["one_removed"]
        rows.append(("found by the method,\nin a sample", sampled["recall"], (sampled["low"], sampled["high"])))
        rows.append(("one of the pair removed,\nin a sample", one["share"], (one["low"], one["high"])))
    if not rows:
        raise ParameterError("result: its report says nothing of recall; give dedup a threshold, or a check of recall")
    ax = _axes(ax)
    names = []
    for number, (label, share, interval) in enumerate(rows):
        name = f"{label}: {percent(share)}"
        if interval is not None:
            low, high = math.floor(1000 * interval[0]) / 10, math.ceil(1000 * interval[1]) / 10
            name += f"\n{100 * confidence:g}%: {low:.1f}% to {high:.1f}%"
            ax.plot(100 * np.array(interval), [number] * 2, color=COLOURS[number], linewidth=3, solid_capstyle="butt")
        ax.plot(100 * share, number, marker="o" if interval else "D", color=COLOURS[number], markersize=8)
        names.append(name)
    room = max(5.0, 100 - 100 * min(min(share, *(interval or (share,))) for _, share, interval in rows))
    ax.set(yticks=range(len(rows)), yticklabels=names, ylim=(len(rows) - 0.4, -0.6))
    ax.set(xlim=(max(-3, 100 - 1.15 * room), 100 + 0.06 * room))
    worth = f"{report.get('measure', 'resemblance')} {report['recipe']['threshold']} or more"
    _words(ax, f"share of the pairs of {worth} (%)", "")
    ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    ax.set_axisbelow(True)
    return ax


def estimates(exact: Any, estimate: Any, samples: int, *, failure: float = 0.01, ax: Axes | None = None) -> Axes:
    """Draw estimates against exact values, with the band that theory gives for the mean of independent samples.

    Parameters
    ----------
    exact : array of float, shape (pairs,)
        The exact value of each pair, from 0 to 1, as `stages.verify` returns it.
    estimate : array of float, shape (pairs,)
        The estimate of each pair, as `estimate` of a method returns it. Pairs whose estimate is NaN are not drawn.
    samples : int
        The number of samples that each estimate is the mean of.
    failure : float in (0, 1), default 0.01
        The probability that the estimate of a pair lies outside the band is at most this.
    ax : matplotlib.axes.Axes, default None
        Where to draw; a new figure unless given.

    Returns
    -------
    matplotlib.axes.Axes
        The band, the diagonal and a point for each pair. The legend says how many pairs lie outside the band.

    Raises
    ------
    ParameterError, ArgumentTypeError
        If the arrays differ in length or have other values; if matplotlib is not installed.

    Notes
    -----
    An estimate e of the value x is inside if trials * KL(e, x) <= ln(2 / failure): see `theory.mean_interval`.

    Examples
    --------
    >>> axes = estimates([0.5, 0.9], [0.52, 0.88], 100)  # doctest: +SKIP
    """
    samples = checks.integer("samples", samples, 1, 2**32)
    failure = checks.fraction("failure", failure, zero=False, one=False, hint="0.01 is usual")
    exact = checks.array("exact", exact, np.float64, convert=True, hint="from 0 to 1")
    estimate = checks.array("estimate", estimate, np.float64, (len(exact),), convert=True, hint="one for each pair")
    known = ~np.isnan(estimate)
    exact, estimate = exact[known], estimate[known]
    for name, values in (("exact", exact), ("estimate", estimate)):
        if not ((values >= 0) & (values <= 1)).all():
            raise ParameterError(f"{name}: values must be between 0 and 1", parameter=name)
    low, high = theory.mean_interval(estimate, samples, failure)
    outside = (exact < low) | (exact > high)
    ax = _axes(ax)
    least, most = theory.mean_interval(LEVELS, samples, failure)  # of an estimate: read along the other axis
    confidence = f"{100 * (1 - failure):g}% band of {count(samples, 'sample')}"
    ax.fill_betweenx(LEVELS, least, most, color=COLOURS[5], alpha=0.3, linewidth=0, label=confidence)
    ax.plot([0, 1], [0, 1], color=GREY, linestyle=":", linewidth=1.5, label="estimate = exact value")
    inside = f"{count(int((~outside).sum()), 'pair')} inside"
    ax.plot(exact[~outside], estimate[~outside], ".", color=COLOURS[0], markersize=4, label=inside)
    beyond = f"{count(int(outside.sum()), 'pair')} outside"
    ax.plot(exact[outside], estimate[outside], "x", color=COLOURS[1], markersize=5, label=beyond)
    _words(ax, "exact value", "estimate")
    ax.set(xlim=(0, 1), ylim=(0, 1.02))
    return _legend(ax)


# ------------------------------------------------------------------------------------------------------ what all share


def _report(result: Any) -> Mapping[str, Any]:
    """Return the report of a result, or the report itself if that was given."""
    result = getattr(result, "report", result)
    if not isinstance(result, Mapping) or not {"counts", "group_sizes", "recall", "recipe"} <= result.keys():
        raise ParameterError("result: neither a result of dedup nor its report (the contents of report.json)")
    return result


def shown_figure(**options: Any) -> Figure:
    """Return a figure that a notebook shows, also before any other picture, and that pyplot does not know."""
    from matplotlib.figure import Figure

    class ShownFigure(Figure):
        """A figure with the form that a notebook looks for."""

        def _repr_png_(self) -> bytes:
            written = io.BytesIO()
            self.savefig(written, format="png")
            return written.getvalue()

    return ShownFigure(layout="constrained", **options)


def matplotlib_of(what: str) -> None:
    """Make sure that there is matplotlib.

    Raises
    ------
    ParameterError
        In one line that begins with what needs it and names the extra.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ParameterError(f"{what} needs matplotlib; install it: pip install 'neardup-gpu[plot]'") from None


def _axes(ax: Axes | None) -> Axes:
    """The axes given, or those of a new figure."""
    matplotlib_of("plot")
    if ax is not None:
        from matplotlib.axes import Axes

        return checks.instance("ax", ax, (Axes,))
    from matplotlib import pyplot

    return pyplot.subplots(figsize=(6.4, 4.0), layout="constrained")[1]


def _mark(ax: Axes, threshold: float) -> None:
    """A line at the threshold."""
    ax.axvline(threshold, color=GREY, linestyle=":", linewidth=1.5, label=f"threshold {threshold:g}")


def _whole(ax: Axes, largest: int) -> None:
    """A scale of whole numbers from 0 to somewhat above the largest."""
    from matplotlib.ticker import MaxNLocator

    ax.yaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(ylim=(0, 1.12 * max(1, largest)))


def _logarithmic(ax: Axes, least: float, most: float) -> None:
    """A logarithmic scale whose numbers have no small exponents: 0.01, 1e-12."""
    ax.set(yscale="log", ylim=(least, most))
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    ax.yaxis.set_minor_formatter("")


def _words(ax: Axes, x: str, y: str) -> None:
    """Names of both axes, in letters that can be read."""
    ax.set_xlabel(x, fontsize=LABEL)
    ax.set_ylabel(y, fontsize=LABEL)
    ax.tick_params(labelsize=TICK)


def _legend(ax: Axes) -> Axes:
    """Explain the lines and bars, above the axes."""
    from matplotlib.lines import Line2D

    named = list(zip(*ax.get_legend_handles_labels(), strict=True))
    named.sort(key=lambda entry: isinstance(entry[0], Line2D))  # bars before lines, else in the order drawn
    number = len(named)
    ax.legend(
        [handle for handle, _ in named],
        [label for _, label in named],
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.3,
        ncols=2 if number > 1 else 1,
        frameon=False,
        fontsize=TICK,
        handlelength=2.6,
    )
    return ax
