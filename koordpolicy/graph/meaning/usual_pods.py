"""Pods that are named as usual, against which fragmentation is measured: each a sort of pods that can be, with a weight."""

from collections.abc import Iterator, Mapping
from typing import Final

from koordpolicy.algorithms.usual_pod import usual_pod
from koordpolicy.diagnostics import Span
from koordpolicy.graph.state import Draft, State
from koordpolicy.language.cel import ir
from koordpolicy.language.kinds.slots import Expression

_KIND: Final = "DeviceSharing"
_FIELD: Final = "scheduling.usualPods"


def usual_pods(state: State) -> None:
    """KP416 for a usual pod that is no sort of pods, or has a weight below nothing."""
    for draft in state.drafts:
        if draft.key.kind == _KIND and draft.key.field == _FIELD:
            for text, weight, place in _listed(state, draft):
                try:
                    usual_pod(text, weight)
                except ValueError as why:
                    state.found.add(
                        "KP416",
                        place,
                        f"{why}",
                        help="write the CPU in millicores, then how many devices with how much of each in percent, then the "
                        "models that will do: `8000m 2x100 A100|H100: 1`",
                    )


def _listed(state: State, draft: Draft) -> Iterator[tuple[str, int, Span]]:
    positions = draft.unit.document.positions
    if isinstance(draft.raw, Mapping):
        for text, weight in draft.raw.items():
            if type(weight) is int:
                yield str(text), weight, positions.key((*draft.path, text))
    elif isinstance(draft.raw, Expression):
        decision = state.decisions.get(draft.key)
        for rule in () if decision is None else decision.rules:
            if (rule.layer, rule.document) == (draft.unit.layer_name, draft.unit.id):
                value = state.resolve_constants(rule.value)
                if isinstance(value, ir.Const) and isinstance(value.value, Mapping):
                    yield from ((str(text), weight, rule.span) for text, weight in value.value.items())
