"""Dashboards as pictures: Grafana's JSON drawn from what a Prometheus has, so that somebody can look at them where there is no Grafana.

Panels stand where `gridPos` puts them, 24 columns wide; of units those that our dashboards use are known, and of overrides unit and side
of the axis.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter

Range = Callable[[str], Sequence[Mapping[str, Any]]]
"""Series of an expression over the time that is drawn: `metric` by label, `values` as pairs of seconds since 1970 and text."""

_COLUMNS: Final = 24
_UNITS: Final = {"bytes": "B", "s": "s", "ops": "/s"}
_MOST: Final = 8
"""Lines of a legend."""


def draw(board: Mapping[str, Any], ask: Range, file: Path) -> list[str]:
    """Write a dashboard as PNG; gives the titles of panels that have nothing to show."""
    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    figure = Figure(figsize=(14, rows * 0.36 + 0.6))
    figure.suptitle(board["title"], x=0.01, ha="left", fontweight="bold")
    empty = []
    for panel in board["panels"]:
        at = panel["gridPos"]
        axes = figure.add_axes(
            (
                at["x"] / _COLUMNS + 0.05,
                1 - (at["y"] + at["h"] - 1.4) / (rows + 1.4) - 1.4 / (rows + 1.4),
                at["w"] / _COLUMNS - 0.09,
                (at["h"] - 2.8) / (rows + 1.4),
            )
        )
        axes.set_title(panel["title"], loc="left", fontsize=9)
        drawn = _table(panel, ask, axes) if panel["type"] == "table" else _lines(panel, ask, axes)
        if not drawn:
            empty.append(panel["title"])
            axes.text(0.5, 0.5, "No data", ha="center", transform=axes.transAxes, color="gray")
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=80)
    return empty


def _lines(panel: Mapping[str, Any], ask: Range, axes: Axes) -> int:
    usual = panel["fieldConfig"]["defaults"]
    right: Axes | None = None
    handles: list[Line2D] = []
    for target in panel["targets"]:
        own = {**usual, **_overridden(panel, target["refId"])}
        side = axes
        if own.get("custom", {}).get("axisPlacement") == "right":
            side = right = right or axes.twinx()
        for series in ask(target["expr"]):
            times = [float(time) for time, _ in series["values"]]
            values = [float(value) for _, value in series["values"]]
            (line,) = side.plot(times, values, color=f"C{len(handles) % 10}")
            line.set_label(_legend(target, series["metric"]))
            handles.append(line)
        _axis(side, own)
    axes.xaxis.set_major_formatter(FuncFormatter(_clock))
    axes.grid(alpha=0.25)
    if handles:
        axes.legend(handles=handles[:_MOST], fontsize=6, loc="upper left", framealpha=0.6)
    return len(handles)


def _axis(axes: Axes, own: Mapping[str, Any]) -> None:
    axes.yaxis.set_major_formatter(EngFormatter(_UNITS.get(own.get("unit", ""), "")))
    axes.tick_params(labelsize=7)
    if own.get("min") == 0:
        axes.set_ylim(bottom=0)


def _clock(seconds: float, _: int | None = None) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S")


def _table(panel: Mapping[str, Any], ask: Range, axes: Axes) -> int:
    axes.set_axis_off()
    found = [series["metric"] for target in panel["targets"] for series in ask(target["expr"])]
    names = sorted({name for one in found for name in one if not name.startswith("__")})
    if found:
        axes.table(
            [[one.get(name, "")[:24] for name in names] for one in found], colLabels=names, loc="upper center"
        )
    return len(found)


def _overridden(panel: Mapping[str, Any], target: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for one in panel["fieldConfig"]["overrides"]:
        if one["matcher"] == {"id": "byFrameRefID", "options": target}:
            for said in one["properties"]:
                place, _, name = said["id"].rpartition(".")
                (found.setdefault(place, {}) if place else found)[name] = said["value"]
    return found


def _legend(target: Mapping[str, Any], labels: Mapping[str, str]) -> str:
    return re.sub(r"\{\{(\w+)\}\}", lambda one: labels.get(one.group(1), ""), target.get("legendFormat", ""))
