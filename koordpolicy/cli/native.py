"""Which admission rules and profiles API servers can decide by themselves, for `koordpolicy check --native`."""

from collections import defaultdict
from collections.abc import Iterator
from textwrap import wrap

from koordpolicy.graph import RuleGraph
from koordpolicy.manager.native.admission import native_admission
from koordpolicy.manager.webhooks.configuration import NO_CONTROL_PLANE
from koordpolicy.manager.webhooks.scope import ANNOUNCEMENT


def native_lines(graph: RuleGraph, width: int) -> Iterator[str]:
    """How many, and of the others what keeps them back, those together that have one reason; one alone with its place."""
    found = native_admission(graph, (NO_CONTROL_PLANE,))
    able = sorted(found.policies.keys() - {ANNOUNCEMENT})
    whole = len(able) + len(found.staying)
    yield f"API servers can decide {len(able)} of {whole} rules and profiles in use by themselves:"
    yield from _names(able, width)
    reasons: dict[str, list[str]] = defaultdict(list)
    places: dict[str, str] = {}
    for one in found.staying:
        reasons[one.reason].append(one.target)
        places[one.target] = one.place
    for reason, targets in sorted(reasons.items(), key=lambda one: (len(one[1]), one[0])):
        if len(targets) == 1 and places[targets[0]]:
            yield f"{targets[0]} stays with the webhook ({places[targets[0]]}):"
            yield from _indented(reason, width)
        else:
            front = f"{len(targets)} stay with the webhook: {reason}"
            yield from wrap(front, width, break_on_hyphens=False, break_long_words=False)
            yield from _names(sorted(targets), width)


def _names(targets: list[str], width: int) -> Iterator[str]:
    yield from _indented(", ".join(targets) or "none", width)


def _indented(text: str, width: int) -> Iterator[str]:
    yield from wrap(
        text,
        width,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
