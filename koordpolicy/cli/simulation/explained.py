"""Why a pod landed where it did, and why best-effort work was held back: tables and places of rules."""

from collections.abc import Iterator, Mapping
from typing import Any

from koordpolicy.cli.counted import counted, number
from koordpolicy.cli.simulation.words import BOLD, DIM, Page, clock

_WIDEST = 17
"""Columns of one score in the table."""

_SHORTER = ("NodeResources", "Scheduling", "Allocation")
"""Parts of names that the table leaves out; below it they stand in full."""


def explained(one: Mapping[str, Any], page: Page) -> Iterator[str]:
    """A placement, or why there is none: what the filters refused, the best nodes score by score, and the rules."""
    end = f"landed on {one['node']}" if one["node"] else "is pending"
    yield page.heading(f"Why {one['pod']} {end}", clock(one["atSeconds"]))
    yield from tables(one, page)


def untried(one: Mapping[str, Any], page: Page) -> Iterator[str]:
    """Why no scheduler of ours has tried a pod, with the admission rules that it breaks."""
    yield page.heading(f"Why {one['pod']} was not tried", clock(one["atSeconds"]))
    if not one["rules"]:
        yield from page.wrapped(one["why"], 2)
    for rule in one["rules"]:
        yield from page.wrapped(
            f"`{rule['name']}` ({rule['enforcement']}): {rule['reason']}: {rule['message']}", 4, "  "
        )
        for line in page.wrapped(rule["rule"], 4):
            yield page.paint(line, DIM)


def tables(one: Mapping[str, Any], page: Page) -> Iterator[str]:
    """What the filters refused, and the best nodes score by score, without a heading."""
    facts = one["podFacts"]
    said = ", ".join(f"{name} {value}" for name, value in facts.items())
    yield f"  {said}; {number(one['feasible'])} of {counted(one['nodes'], 'node')} passed the filters"
    for refusal in one["refusals"]:
        yield from page.wrapped(
            f"{refusal['filter']}: {refusal['reason']}", 10, f"{number(refusal['nodes']):>8}"
        )
        for line in page.wrapped(refusal["rule"], 10):
            yield page.paint(line, DIM)
    if not one["best"]:
        return
    names = [score["name"] for score in one["scores"]]
    column = min(_WIDEST, (page.width - 27) // max(len(names), 1))
    titles = [page.short(_title(name), column - 1) for name in names]
    yield ""
    yield page.paint(
        f"  {'best nodes':18}{'total':>7}" + "".join(f"{title:>{column}}" for title in titles), DIM
    )
    for place, candidate in enumerate(one["best"]):
        scores = "".join(f"{number(candidate['scores'].get(name, 0)):>{column}}" for name in names)
        line = f"  {page.short(candidate['node'], 17):18}{number(candidate['total']):>7}{scores}"
        yield page.paint(line, BOLD) if place == 0 else line
    for score in one["scores"]:
        for line in page.wrapped(f"{score['name']}: {score['rule']}", 4, "  "):
            yield page.paint(line, DIM)


def held(one: Mapping[str, Any], page: Page) -> Iterator[str]:
    """What suppression withheld on a node at its worst, the sum behind the target, and the rules."""
    pods = "one best-effort pod" if one["pods"] == 1 else f"{number(one['pods'])} best-effort pods"
    yield from page.wrapped(
        f"Most was withheld at {clock(one['atSeconds'])} on {one['node']}: {pods} could use"
        f" {number(one['target'])} of {counted(one['capacity'], 'core')}, {number(one['withheld'])} less than"
        " wished. What else took CPU there, in cores:",
        2,
    )
    for name, value in one["figures"].items():
        if value:
            yield f"    {name:32}{value:>8.1f}"
    yield page.paint("  The rules:", DIM)
    for rule in one["rules"]:
        yield from page.wrapped(f"{rule['decision']}  {rule['place']}", 6, "    ")


def _title(name: str) -> str:
    for part in _SHORTER:
        name = name.replace(part, "")
    return name
