"""The charts of the benchmark: what stays unallocated by workload, and what is allocated as pods arrive."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from matplotlib.figure import Figure

from tests.benchmarks.gpu.published import UNALLOCATED, WORKLOADS

_COLOURS: Final = {
    "random": "#9a9996",
    "dot-product": "#9a6700",
    "clustering": "#7d3c98",
    "packing": "#2f7d4f",
    "best-fit": "#a2561f",
    "fgd": "#62a0ea",
    "balanced": "#1a5fb4",
}


_HEADROOM: Final = 1.15


def draw_unallocated(found: Mapping[str, Mapping[str, float]], target: Path) -> None:
    """Write `target`.png and `target`.svg: percent of the GPUs by policy and workload, what is published as a ring."""
    figure = Figure(figsize=(10, 5), layout="constrained")
    axes = figure.add_subplot()
    named = [one for one in WORKLOADS if any(one in values for values in found.values())]
    step = 0.8 / max(1, len(found))
    for place, (policy, values) in enumerate(found.items()):
        places = [at - 0.4 + step * (place + 0.5) for at, one in enumerate(named) if one in values]
        heights = [values[one] for one in named if one in values]
        axes.bar(places, heights, 0.9 * step, color=_COLOURS.get(policy), label=policy)
        if policy in UNALLOCATED:
            told = [UNALLOCATED[policy][WORKLOADS.index(one)] for one in named if one in values]
            axes.plot(places, told, "o", color="black", markerfacecolor="none", markersize=5)
    axes.plot([], [], "o", color="black", markerfacecolor="none", label="published")
    axes.set_xticks(range(len(named)), named)
    axes.set(ylabel="GPUs not allocated at 100 % arrival, %")
    axes.set_title("What is left of GPUs when as many have been asked for as there are", loc="left")
    axes.legend(frameon=False, ncols=4, loc="upper left")
    axes.set_ylim(top=_HEADROOM * axes.get_ylim()[1])  # what the legend covers
    _save(figure, target)


def draw_arrival(found: Mapping[str, Sequence[float]], target: Path) -> None:
    """Write `target`.png and `target`.svg: percent allocated, by percent arrived from 0 on, where policies differ."""
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    for policy, values in found.items():
        width = 2.4 if policy == "balanced" else 1.4
        label = f"{policy}, {values[-1]:.1f} %"
        axes.plot(range(len(values)), values, color=_COLOURS.get(policy), linewidth=width, label=label)
    axes.set(xlabel="GPUs asked for, % of all", ylabel="GPUs allocated, %", xlim=(75, 130), ylim=(75, 100))
    axes.set_title("The default workload", loc="left")
    axes.legend(frameon=False, loc="lower right")
    axes.grid(visible=True, alpha=0.25)
    _save(figure, target)


def _save(figure: Figure, target: Path) -> None:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    target.parent.mkdir(parents=True, exist_ok=True)
    for suffix in (".png", ".svg"):
        figure.savefig(target.with_suffix(suffix), dpi=150)
