"""Two policies compared by simulation: on a terminal, in a comment on a merge request, as data."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from koordpolicy.cli import markup
from koordpolicy.cli.counted import counted
from koordpolicy.cli.simulation.made import short_digest
from koordpolicy.cli.simulation.pairs import Pairs
from koordpolicy.cli.simulation.words import (
    DIM,
    GREEN,
    YELLOW,
    Page,
    length,
    milliseconds,
    percent,
    points,
    waits_note,
)
from koordpolicy.simulator.comparison import Compared, Unit, compare

_NAME: Final = 30
_POINTS: Final = "points"
_IN_THEMSELVES: Final = (Unit.SHARE, Unit.SECONDS, Unit.MILLISECONDS)
"""Units that stand beside each number; the others stand once, behind all of them."""


def found(pairs: Pairs) -> dict[str, Any]:
    """The comparison as data; of one that was interrupted what is known, with no measures where nothing is."""
    before, after = (
        {"policies": one.name, "digest": one.digest, "commit": one.commit or None} for one in pairs.policies
    )
    return {
        "before": before,
        "after": after,
        "seeds": len(pairs.before),
        "made": pairs.made.data(),
        "interrupted": None if pairs.interrupted is None else pairs.interrupted.data(),
        "workload": pairs.before[0]["workload"] if pairs.before else None,
        "measures": [
            {
                "name": one.measure.name,
                "unit": str(one.measure.unit),
                "before": one.before,
                "after": one.after,
                "difference": one.difference,
                "relative": one.relative,
                "low": one.low,
                "high": one.high,
                "matters": one.matters,
                "better": one.better,
            }
            for one in _compared(pairs)
        ],
    }


def _compared(pairs: Pairs) -> list[Compared]:
    return compare(pairs.before, pairs.after) if pairs.before else []


def render(pairs: Pairs, page: Page) -> str:
    """The comparison for a terminal."""
    return "\n".join(_lines(pairs, page)) + "\n"


def _lines(pairs: Pairs, page: Page) -> Iterator[str]:
    first, second = pairs.names
    over = f", {_time(pairs)}" if pairs.before else ""
    yield page.heading("What would be otherwise", f"{counted(len(pairs.before), 'seed')}{over}")
    nodes = f", {counted(pairs.before[0]['workload']['nodes'], 'node')}" if pairs.before else ""
    yield from page.wrapped(f"from {first} to {second}{nodes}", 2)
    if pairs.interrupted is not None:
        yield from (page.paint(line, YELLOW) for line in page.wrapped(pairs.interrupted.text, 2))
    compared = _compared(pairs)
    if compared:
        yield ""
        yield from _table_of(compared, len(pairs.before), page)
        notes = list(_notes(pairs, compared))
        yield from [""] if notes else []
        for note in notes:
            yield from (page.paint(line, DIM) for line in page.wrapped(note, 2))
    yield ""
    yield from pairs.made.lines(page, " → ".join(["policies " + _digest(pairs, 0), _digest(pairs, 1)]))


def _digest(pairs: Pairs, side: int) -> str:
    return short_digest(pairs.policies[side].digest)


def _time(pairs: Pairs) -> str:
    """How much time is compared, of how much."""
    whole = length(pairs.before[0]["workload"]["seconds"])
    until = None if pairs.interrupted is None else pairs.interrupted.until
    return whole if until is None else f"{length(until)} of {whole}"


def _notes(pairs: Pairs, compared: Sequence[Compared]) -> Iterator[str]:
    """What is to be known of the figures."""
    if any(one.measure.name.startswith("wait for") and (one.before or one.after) for one in compared):
        yield waits_note(pairs.before[0]["workload"]["intervalSeconds"])
    reports = (*pairs.before, *pairs.after)
    if not any(one["batch"]["coreHours"] for one in reports):
        yield (
            "no pod was best-effort work, by either: what holds such work back, limits or evicts it decides nothing here;"
            " a ColocationProfile says which pods are"
        )
    elif not any(one["agents"] for one in reports):
        yield "what agents do beside reports and suppression, such as evictions, is simulated with --agents"


def worse_lines(pairs: Pairs, page: Page) -> Iterator[str]:
    """The measures that are worse for sure, as in the table of a comparison."""
    worse = [one for one in _compared(pairs) if one.matters and one.better is False]
    widths = _widths(worse, _name_width(worse, page))
    for one in worse:
        yield _line(one, page, widths)


@dataclass(frozen=True, slots=True)
class _Widths:
    """Columns of a table on a terminal."""

    name: int
    before: int
    after: int


def _table_of(compared: Sequence[Compared], seeds: int, page: Page) -> Iterator[str]:
    sure = [one for one in compared if one.matters]
    rest = [one for one in compared if not one.matters and (one.before or one.after)]
    name = _name_width([*sure, *rest], page)
    if not sure:
        yield "  nothing that is sure" if seeds > 1 else "  one seed tells nothing for sure; see --seeds"
    widths = _widths(sure, name)
    for one in sure:
        yield _line(one, page, widths)
    if rest:
        yield ""
        yield page.paint("  the same, or not sure:", DIM)
        widths = _widths(rest, name)
        for one in rest:
            yield page.paint(_line(one, Page(page.width), widths), DIM)


def _name_width(shown: Sequence[Compared], page: Page) -> int:
    return max((len(page.short(one.measure.name, _NAME)) for one in shown), default=0)


def _widths(shown: Sequence[Compared], name: int) -> _Widths:
    return _Widths(
        name,
        max((len(_amount(one.before, one.measure.unit)) for one in shown), default=0),
        max((len(_amount(one.after, one.measure.unit)) for one in shown), default=0),
    )


def _line(one: Compared, page: Page, widths: _Widths) -> str:
    style = {True: GREEN, False: YELLOW, None: ""}[one.better]
    unit = one.measure.unit
    front = (
        f"  {page.short(one.measure.name, _NAME).ljust(widths.name)}"
        f"  {_amount(one.before, unit).rjust(widths.before)} → {_amount(one.after, unit).ljust(widths.after)}  "
    )
    margin, relative = _margin(one), _relative(one)
    if unit not in _IN_THEMSELVES:
        margin += f" {unit}"
    if relative and len(front) + len(margin) + len(relative) < page.width:
        margin += f" {relative}"
    if len(front) + len(margin) > page.width:  # below it then
        front = f"{front.rstrip()}\n{' ' * (widths.name + 4)}"
    return f"{front}{page.paint(margin, style)}".rstrip()


def _margin(one: Compared) -> str:
    """The difference, and between what it lies for sure enough; of shares in percentage points."""
    sign = "+" if one.difference >= 0 else "−"
    unit = one.measure.unit
    show = points if unit is Unit.SHARE else (lambda number: _amount(number, unit))
    text = f"{sign}{show(abs(one.difference))}"
    if one.low is not None and one.high is not None:
        text += f" ± {show((one.high - one.low) / 2)}"
    return f"{text} {_POINTS}" if unit is Unit.SHARE else text


def _relative(one: Compared) -> str:
    """The difference beside what there was, in percent; "" where that says nothing, as of shares, which have points."""
    if one.relative is None or not one.difference or one.measure.unit is Unit.SHARE:
        return ""
    return f"({'+' if one.relative >= 0 else '−'}{percent(abs(one.relative))})"


def _amount(number: float, unit: Unit) -> str:
    if unit is Unit.SHARE:
        return percent(number)
    if unit is Unit.SECONDS:
        return length(number)
    if unit is Unit.MILLISECONDS:
        return milliseconds(number / 1000)
    return f"{number:,.0f}" if number == int(number) or number >= 100 else f"{number:,.1f}"


def render_markdown(pairs: Pairs) -> str:
    """The comparison as GitHub and GitLab show it in a comment."""
    compared = _compared(pairs)
    sure = [one for one in compared if one.matters]
    rest = [one for one in compared if not one.matters and (one.before or one.after)]
    matter = "matters" if len(sure) == 1 else "matter"
    said = f"{counted(len(sure), 'difference')} that {matter}" if compared else "nothing is compared"
    first, second = map(markup.code, pairs.names)
    lines = [f"**Simulated: {said}**, from {first} to {second}", ""]
    if pairs.interrupted is not None:
        lines += [f"**Partial**: {markup.plain(pairs.interrupted.text)}", ""]
    if compared:
        nodes = counted(pairs.before[0]["workload"]["nodes"], "node")
        over = ", ".join((nodes, _time(pairs), counted(len(pairs.before), "seed")))
        lines += [f"{over}; ± is the interval of 95 %", ""]
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
    for note in _notes(pairs, compared) if compared else ():
        lines += [f"{note[0].upper()}{note[1:]}.", ""]
    digests = " → ".join(markup.code(_digest(pairs, side)) for side in (0, 1))
    return "\n".join([*lines, pairs.made.markdown(f"policies {digests}"), ""])


def _table(compared: Sequence[Compared]) -> list[str]:
    marks = {True: "better", False: "**worse**", None: ""}
    return [
        "| | before | after | difference | |",
        "|---|--:|--:|--:|---|",
        *(
            f"| {markup.name(one.measure.name)} ({_unit(one.measure.unit)}) | {_amount(one.before, one.measure.unit)}"
            f" | {_amount(one.after, one.measure.unit)} | {f'{_margin(one)} {_relative(one)}'.rstrip()} | {marks[one.better]} |"
            for one in compared
        ),
    ]


def _unit(unit: Unit) -> str:
    return {Unit.SHARE: "share", Unit.SECONDS: "time", Unit.MILLISECONDS: "time"}.get(unit, str(unit))
