"""The chart of the engines: time per node over the number of nodes, both on logarithmic scales."""

from collections.abc import Mapping
from pathlib import Path

from matplotlib.figure import Figure

_OURS = {"column program": "#1a5fb4", "row program": "#62a0ea"}
_OTHERS = ("#5e5c64", "#9a6700", "#a2561f", "#7d3c98", "#2f7d4f")


def draw(times: Mapping[str, Mapping[int, float]], target: Path) -> None:
    """Write `target`.png and `target`.svg: nanoseconds per node by engine and number of nodes."""
    figure = Figure(figsize=(9, 5.4), layout="constrained")
    axes = figure.add_subplot()
    rest = iter(_OTHERS)
    for name, points in times.items():
        own = name in _OURS
        colour = _OURS.get(name) or next(rest)
        sizes, values = list(points), list(points.values())
        style = "--" if name == "NumPy by hand" else "-"
        axes.plot(sizes, values, style, color=colour, linewidth=2.4 if own else 1.4, marker="o", markersize=4)
        axes.annotate(
            f"{name}, {_amount(values[-1])}",
            (sizes[-1], values[-1]),
            xytext=(8, 0),
            textcoords="offset points",
            va="center",
            color=colour,
            fontweight="bold" if own else "normal",
        )
    axes.set(xscale="log", yscale="log", xlabel="nodes", ylabel="time per node, ns")
    axes.set_title("A filter and a score of five terms, per node", loc="left")
    axes.set_xlim(right=max(axes.get_xlim()[1] * 12, 1))
    ticks = sorted({size for points in times.values() for size in points})
    axes.set_xticks(ticks, [f"{size:,}" for size in ticks])
    axes.minorticks_off()
    axes.grid(visible=True, which="major", alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    target.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".png", ".svg"):
        figure.savefig(target.with_suffix(suffix), dpi=150)


def _amount(nanoseconds: float) -> str:
    return f"{nanoseconds / 1000:.3g} µs" if nanoseconds >= 1000 else f"{nanoseconds:.3g} ns"
