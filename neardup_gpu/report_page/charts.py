"""Charts as SVG: Vega-Lite draws them when the page is made, so that the page carries drawings and no library.

Weighed, as bytes in a page: Plotly 4.8 MB, Vega-Lite with Vega 0.9 MB, each a library that must run before anything
shows; the two drawings of the demo's page 19 kB, which show at once, print, follow the page's colours by its style
sheet, and name each bar to screen readers. What moves on the page, the mark of the threshold, moves without a library.
vl-convert has Vega-Lite in its wheel and needs neither a browser nor a network.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

WIDTH, HEIGHT = 640, 200
"""Size of the plot, in pixels, without its axes."""

BINS = 40


def resemblances(worth: np.ndarray, threshold: float, measure: str) -> str:
    """A histogram of what pairs are worth, from the threshold to 1, and the mark of a threshold.

    Parameters
    ----------
    worth : array of float64
        At least the threshold; 1 is not drawn, as copies would hide all others.
    """
    counts, edges = np.histogram(worth[worth < 1], bins=BINS, range=(threshold, 1))
    bars = [
        {"from": round(float(low), 6), "to": round(float(high), 6), "pairs": int(number)}
        for low, high, number in zip(edges[:-1], edges[1:], counts, strict=True)
        if number
    ]
    scale = {"domain": [threshold, 1], "nice": False}
    said = "format(datum.pairs, ',') + ' pairs from ' + format(datum.from, '.3~f') + ' to ' + format(datum.to, '.3~f')"
    drawn = {
        "transform": [{"calculate": said, "as": "said"}],
        "data": {"values": bars},
        "mark": {"type": "bar", "binSpacing": 1},
        "encoding": {
            "x": {"field": "from", "type": "quantitative", "scale": scale, "title": measure, "bin": {"binned": True}},
            "x2": {"field": "to"},
            "y": {"field": "pairs", "type": "quantitative", "title": "pairs", "axis": {"tickCount": 5}},
            "description": {"field": "said"},
        },
    }
    mark = {
        "name": "threshold",
        "data": {"values": [{"at": threshold}]},
        "mark": {"type": "rule", "strokeWidth": 2, "aria": False},
        "encoding": {"x": {"field": "at", "type": "quantitative", "scale": scale}},
    }
    return _svg({"layer": [drawn, mark]})


def bars(rows: list[tuple[str, int]], across: str, up: str, *, log: bool = False) -> str:
    """A bar for each label; by the logarithm where `log`."""
    said = f"format(datum.number, ',') + ' {up}, {across} ' + datum.label"
    scale: dict[str, Any] = {}
    axis: dict[str, Any] = {"tickCount": 4, "format": ",~f"}
    if log:
        decades = range(len(str(max(number for _, number in rows))))
        scale, axis = {"type": "log", "domainMin": 0.5}, {"values": [10**power for power in decades], "format": ",~f"}
    return _svg(
        {
            "transform": [{"calculate": said, "as": "said"}],
            "data": {"values": [{"label": label, "number": number} for label, number in rows]},
            "mark": {"type": "bar"},
            "encoding": {
                "x": {
                    "field": "label",
                    "type": "ordinal",
                    "sort": None,
                    "title": across,
                    "axis": {"labelAngle": 0 if len(rows) < 9 else -40},
                },
                "y": {
                    "field": "number",
                    "type": "quantitative",
                    "title": up,
                    "scale": scale,
                    "axis": axis,
                },
                **({"y2": {"datum": 0.5}} if log else {}),
                "description": {"field": "said"},
            },
        }
    )


def kept_and_removed(rows: list[tuple[str, int, int]]) -> str:
    """A bar for each source, divided into its kept and its removed documents: (name, documents, removed)."""
    values: list[dict[str, Any]] = [
        {
            "name": name if len(name) <= 28 else f"{name[:12]}...{name[-13:]}",
            "from": documents - removed,
            "to": documents,
            "said": f"{name}: {documents - removed:,} kept, {removed:,} removed",
        }
        for name, documents, removed in rows
    ]
    extent = 8 * max(len(row["name"]) for row in values)  # letters of other fonts are wider than Vega assumes
    source = {
        "field": "name",
        "type": "ordinal",
        "sort": None,
        "title": None,
        "axis": {"labelLimit": 260, "minExtent": extent},
    }
    common: dict[str, Any] = {"y": source, "description": {"field": "said"}}
    kept = {"field": "from", "type": "quantitative", "title": "documents: kept, then removed", "axis": {"tickCount": 5}}
    return _svg(
        {
            "height": {"step": 26},
            "data": {"values": values},
            "layer": [
                {"name": "kept", "mark": {"type": "bar"}, "encoding": {**common, "x": kept}},
                {"name": "gone", "mark": {"type": "bar"}, "encoding": {**common, "x": kept, "x2": {"field": "to"}}},
            ],
        }
    )


def _svg(spec: dict[str, Any]) -> str:
    import vl_convert

    axis = {"labelFontSize": 12, "titleFontSize": 13, "titleFontWeight": "normal", "domain": False, "grid": False}
    upright = {"grid": True, "minExtent": 44, "titlePadding": 12}
    whole = {
        "width": WIDTH,
        "height": HEIGHT,
        "background": None,
        "padding": 4,
        "config": {
            "view": {"stroke": None},
            "axis": axis,
            "axisY": upright,
        },
        **spec,
    }
    drawn = vl_convert.vegalite_to_svg(whole)
    found = re.search(r'<svg[^>]* width="([\d.]+)" height="([\d.]+)"', drawn)
    assert found is not None
    fixed = f'width="{found[1]}" height="{found[2]}"'
    return drawn.replace(fixed, "", 1)  # the view box stays, so the style sheet decides
