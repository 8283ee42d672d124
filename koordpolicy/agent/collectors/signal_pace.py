"""How often it is measured what pods wait for, as policy says; nothing where neither a rule nor policy itself asks for it."""

from dataclasses import dataclass

from koordpolicy.agent.collection import KIND
from koordpolicy.agent.strategies.interference import KIND as INTERFERENCE
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record


@dataclass(frozen=True, slots=True)
class SignalPace:
    """Nanoseconds between measurements of pressure and of cycles, and how long cycles are counted (0 for not at all).

    `waits` says whether it is measured how long tasks wait, `presses` whether pressure is.
    """

    pressure: int
    cpi: int
    cpi_window: int
    presses: bool = True
    waits: bool = True


def decide_signal_pace(graph: RuleGraph, node: Record, now: int) -> SignalPace | None:
    """What holds for the node; None where nobody asks for any of it. Raises `CelError`."""
    asked = bool(graph.subjects(INTERFERENCE))
    about = graph.about(KIND, "", {"node": node, "now": TIMES.timestamp(now)})
    presses = asked or bool(about.value("pressure.always"))
    counts = asked or bool(about.value("cpi.always"))
    if not presses and not counts:
        return None
    return SignalPace(
        about.value("pressure.every").ns,
        about.value("cpi.every").ns,
        about.value("cpi.window").ns if counts else 0,
        presses,
        asked,
    )
