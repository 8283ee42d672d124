"""How often it is measured what pods wait for, as policy says; nothing where no rule asks for it."""

from dataclasses import dataclass

from koordpolicy.agent.collection import KIND
from koordpolicy.agent.strategies.interference import KIND as INTERFERENCE
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.model.facts import Record


@dataclass(frozen=True, slots=True)
class SignalPace:
    """Nanoseconds between measurements of pressure and of cycles, and how long cycles are counted (0 for not at all)."""

    pressure: int
    cpi: int
    cpi_window: int


def decide_signal_pace(graph: RuleGraph, node: Record, now: int) -> SignalPace | None:
    """What holds for the node; None where no rule of Interference is there. Raises `CelError`."""
    if not graph.subjects(INTERFERENCE):
        return None
    about = graph.about(KIND, "", {"node": node, "now": TIMES.timestamp(now)})
    return SignalPace(
        about.value("pressure.every").ns, about.value("cpi.every").ns, about.value("cpi.window").ns
    )
