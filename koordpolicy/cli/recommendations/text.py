"""Recommendations as a table, and as data."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from koordpolicy.cli.recommendations.found import FoundRecommendation, RecommendationRow
from koordpolicy.manager.recommender.histories import CPU
from koordpolicy.model.quantity import Notation, Quantity

_MEBIBYTE: Final = 1 << 20
_HEAD: Final = (
    "NAMESPACE",
    "WORKLOAD",
    "CONTAINER",
    "RESOURCE",
    "REQUEST",
    "LOWER",
    "TARGET",
    "UPPER",
    "VERDICT",
)


def shown(resource: str, amount: int) -> str:
    """An amount for people: memory in whole mebibytes, rounded up."""
    if resource == CPU:
        return str(Quantity.of_milli(amount))
    return str(Quantity.of(-(-amount // _MEBIBYTE) * _MEBIBYTE, Notation.BINARY))


def table(found: Iterable[FoundRecommendation], *, namespaces: bool = True) -> str:
    """A line for each resource of each container, as kubectl's; `*` where it cannot be relied on yet.

    With `namespaces`, the first column is their namespace.
    """
    lines: list[Sequence[str]] = [_HEAD]
    for one in found:
        star = " *" if one.caution else ""
        lines.extend(
            (one.namespace, one.workload, row.container, row.resource, *_amounts(row, star))
            for row in one.rows
        )
        if not one.rows:
            lines.append((one.namespace, one.workload, "-", "-", "-", "-", "-", "-", "nothing yet"))
    shown_lines = lines if namespaces else [line[1:] for line in lines]
    widths = [max(map(len, column)) for column in zip(*shown_lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in shown_lines
    )


def _amounts(row: RecommendationRow, star: str) -> tuple[str, str, str, str, str]:
    of = row.recommended
    request = "-" if row.request is None else shown(row.resource, row.request)
    lower, target, upper = (shown(row.resource, amount) for amount in (of.lower, of.target, of.upper))
    return request, lower, target, upper, (row.verdict or "-") + star


def data(found: Iterable[FoundRecommendation]) -> list[dict[str, Any]]:
    """The same for programs: amounts as quantities, to the digit."""
    return [
        {
            "namespace": one.namespace,
            "name": one.name,
            "workload": None if not one.target.kind else {"kind": one.target.kind, "name": one.target.name},
            "reliable": not one.caution,
            "caution": one.caution or None,
            "containers": [_row(row) for row in one.rows],
        }
        for one in found
    ]


def _row(row: RecommendationRow) -> dict[str, Any]:
    def exact(amount: int | None) -> str | None:
        if amount is None:
            return None
        return str(Quantity.of_milli(amount) if row.resource == CPU else Quantity.of(amount, Notation.BINARY))

    of = row.recommended
    return {
        "container": row.container,
        "resource": row.resource,
        "request": exact(row.request),
        "lower": exact(of.lower),
        "target": exact(of.target),
        "upper": exact(of.upper),
        "verdict": row.verdict or None,
    }
