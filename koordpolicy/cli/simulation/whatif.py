"""Two policies compared by simulation: on a terminal, in a comment on a merge request, as data."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from koordpolicy.cli import markup
from koordpolicy.cli.counted import counted
from koordpolicy.cli.simulation.words import DIM, GREEN, YELLOW, Page, length, milliseconds, percent
from koordpolicy.simulator.comparison import Compared, Unit, compare

Report = Mapping[str, Any]
_NAME = 30
_IN_THEMSELVES: Final = (Unit.SHARE, Unit.SECONDS, Unit.MILLISECONDS)
"""Units that stand beside each number; the others stand once, behind all of them."""


def found(before: Sequence[Report], after: Sequence[Report], names: tuple[str, str]) -> dict[str, Any]:
    """The comparison as data; `names` are what the policies are called."""
    return {
        "before": {"policies": names[0], "digest": before[0]["policies"]["digest"]},
        "after": {"policies": names[1], "digest": after[0]["policies"]["digest"]},
        "seeds": len(before),
        "workload": before[0]["workload"],
        "measures": [
            {
                "name": one.measure.name,
                "unit": str(one.measure.unit),
                "before": one.before,
                "after": one.after,
                "difference": one.difference,
                "low": one.low,
                "high": one.high,
                "matters": one.matters,
                "better": one.better,
            }
            for one in compare(before, after)
        ],
    }


def render(before: Sequence[Report], after: Sequence[Report], names: tuple[str, str], page: Page) -> str:
    """The comparison for a terminal."""
    return "\n".join(_lines(before, after, names, page)) + "\n"


def _lines(
    before: Sequence[Report], after: Sequence[Report], names: tuple[str, str], page: Page
) -> Iterator[str]:
    workload = before[0]["workload"]
    yield page.heading(
        "What would be otherwise", f"{counted(len(before), 'seed')}, {length(workload['seconds'])}"
    )
    yield from page.wrapped(f"from {names[0]} to {names[1]}, {counted(workload['nodes'], 'node')}", 2)
    compared = compare(before, after)
    sure = [one for one in compared if one.matters]
    yield ""
    if not sure:
        yield (
            "  nothing that is sure" if len(before) > 1 else "  one seed tells nothing for sure; see --seeds"
        )
    for one in sure:
        yield _line(one, page)
    rest = [one for one in compared if not one.matters and (one.before or one.after)]
    if rest:
        yield ""
        yield page.paint("  the same, or not sure:", DIM)
        for one in rest:
            yield page.paint(_line(one, Page(page.width)), DIM)


def _line(one: Compared, page: Page) -> str:
    style = {True: GREEN, False: YELLOW, None: ""}[one.better]
    name = page.short(one.measure.name, _NAME).ljust(_NAME)
    moved = f"{_amount(one.before, one.measure.unit):>11} → {_amount(one.after, one.measure.unit):<11}"
    margin = _margin(one)
    if one.measure.unit not in _IN_THEMSELVES:
        margin += f" {one.measure.unit}"
    return f"  {name}{moved} {page.paint(margin, style) if style else margin}".rstrip()


def _margin(one: Compared) -> str:
    """The difference, and between what it lies for sure enough."""
    sign = "+" if one.difference >= 0 else "−"
    text = f"{sign}{_amount(abs(one.difference), one.measure.unit)}"
    if one.low is None or one.high is None:
        return text
    return f"{text} ± {_amount((one.high - one.low) / 2, one.measure.unit)}"


def _amount(number: float, unit: Unit) -> str:
    if unit is Unit.SHARE:
        return percent(number)
    if unit is Unit.SECONDS:
        return length(number)
    if unit is Unit.MILLISECONDS:
        return milliseconds(number / 1000)
    return f"{number:,.0f}" if number == int(number) or number >= 100 else f"{number:,.1f}"


def render_markdown(before: Sequence[Report], after: Sequence[Report], names: tuple[str, str]) -> str:
    """The comparison as GitHub and GitLab show it in a comment."""
    workload = before[0]["workload"]
    compared = compare(before, after)
    sure = [one for one in compared if one.matters]
    rest = [one for one in compared if not one.matters and (one.before or one.after)]
    matter = "matters" if len(sure) == 1 else "matter"
    title = f"**Simulated: {counted(len(sure), 'difference')} that {matter}**, from {markup.code(names[0])} to {markup.code(names[1])}"
    over = ", ".join(
        (counted(workload["nodes"], "node"), length(workload["seconds"]), counted(len(before), "seed"))
    )
    lines = [title, "", f"{over}; ± is the interval of 95 %", ""]
    if sure:
        lines += [*_table(sure), ""]
    if rest:
        lines += [
            "<details><summary>The same, or not sure</summary>",
            "",
            *_table(rest),
            "",
            "</details>",
            "",
        ]
    return "\n".join(lines)


def _table(compared: Sequence[Compared]) -> list[str]:
    marks = {True: "better", False: "**worse**", None: ""}
    return [
        "| | before | after | difference | |",
        "|---|--:|--:|--:|---|",
        *(
            f"| {markup.name(one.measure.name)} ({_unit(one.measure.unit)}) | {_amount(one.before, one.measure.unit)}"
            f" | {_amount(one.after, one.measure.unit)} | {_margin(one)} | {marks[one.better]} |"
            for one in compared
        ),
    ]


def _unit(unit: Unit) -> str:
    return {Unit.SHARE: "share", Unit.SECONDS: "time", Unit.MILLISECONDS: "time"}.get(unit, str(unit))
