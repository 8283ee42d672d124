"""Container hooks that say something at stages where it is never read."""

from typing import Final

from koordpolicy.diagnostics import Note, Severity
from koordpolicy.graph.meaning.constants import reached_constants
from koordpolicy.graph.rules import Decision, Rule
from koordpolicy.graph.state import State

_KIND: Final = "ContainerHook"
_POD, _CREATE, _UPDATE, _RUNNING = "RunPodSandbox", "CreateContainer", "UpdateContainer", "Running"
_OF_FIELD: Final = {
    "pod.annotations": (_POD,),
    "container.environment": (_CREATE,),
    "container.annotations": (_CREATE, _UPDATE),
    "container.unified": (_CREATE, _UPDATE),
    **{f"pod.{name}": (_RUNNING,) for name in ("cpuRequest", "cpuLimit", "memoryLimit")},
    **{
        f"container.{name}": (_CREATE, _UPDATE, _RUNNING)
        for name in ("cpuRequest", "cpuLimit", "memoryLimit", "cpus", "oomScore")
    },
}
"""The stages at which a field has an effect: see `agent/hooks/`."""


def hooks(state: State) -> None:
    """KP419 for fields of hooks that speak at none of the stages at which these are read."""
    for key, decision in state.decisions.items():
        if key.kind != _KIND or key.field != "stages":
            continue
        said = _stages(state, decision)
        for other, read in state.decisions.items():
            wanted = _OF_FIELD.get(other.field, ())
            if said is not None and other.target == key.target and wanted and said[1].isdisjoint(wanted):
                _report(state, said[0], read.rules, other.field, wanted)


def _stages(state: State, decision: Decision) -> tuple[Rule, frozenset[str]] | None:
    """All stages that a hook may speak at, and who says so first; None where that depends on what only run time knows."""
    everywhere = next((at for at, rule in enumerate(decision.rules) if rule.match.test is None), None)
    said = reached_constants(state, decision)
    if everywhere is None or len(said) <= everywhere:
        return None
    stages = [one for _, value in said if isinstance(value, list | tuple) for one in value]
    return said[0][0], frozenset(stages)


def _report(state: State, stages: Rule, said: tuple[Rule, ...], field: str, wanted: tuple[str, ...]) -> None:
    own = [one for one in (*said, stages) if one.layer == state.own.name]
    if not own:
        return
    blamed = own[0]
    other = stages if blamed is not stages else said[0]
    names = " or ".join(f"`{one}`" for one in wanted)
    state.found.add(
        "KP419",
        blamed.span,
        f"`{field}` is read at {names} alone, and `{stages.document}` speaks at other stages",
        notes=(Note(f"`{other.key.field}` is said here", other.span),),
        help=f"add {names} to `stages`",
        severity=Severity.WARNING,
    )
