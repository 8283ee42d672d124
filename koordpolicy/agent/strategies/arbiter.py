"""Who decides about a file that several strategies want: as policy says, and told wherever they differ."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from koordpolicy.agent.plan import FileValue, Group, Plan, Write
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.graph import Facts
from koordpolicy.language.facts import TIMES

KIND: Final = "Arbitration"
ANY_FILE: Final = "any"
_FIRST: Final = "First"
_SMALLEST: Final = "Smallest"

WantedFile = tuple[str, Group]


@dataclass(frozen=True, slots=True)
class FileConflict:
    """A file that several strategies wanted otherwise, and who decided about it by which rule."""

    file: str
    group: Group
    winner: str
    losers: Sequence[str]
    rule: str

    @property
    def words(self) -> str:
        """For people."""
        others = ", ".join(self.losers)
        return f"{self.file} of {self.group.words}: {self.winner} goes before {others} ({self.rule})"


@dataclass(frozen=True, slots=True)
class SettledPlan:
    """One plan of many, no file in it by two strategies, and what was settled."""

    plan: Plan
    conflicts: Sequence[FileConflict] = ()


def settle(graph: RuleGraph, plans: Iterable[Plan], node: Facts, now: int) -> SettledPlan:
    """Put plans together, in their order. A strategy that holds a file keeps it from those that come after it.

    Raises `CelError` where policy cannot decide.
    """
    listed = list(plans)
    wanted = _wanted(listed)
    winners: dict[WantedFile, str] = {}
    conflicts = []
    for place, by_strategy in wanted.items():
        if len(by_strategy) < 2:
            continue
        rules = _Rules(graph, place[0], node, now)
        winner = rules.winner(by_strategy)
        winners[place] = winner
        if (
            len({value for value in by_strategy.values() if value is not None})
            + (None in by_strategy.values())
            > 1
        ):
            losers = [name for name in by_strategy if name != winner]
            conflicts.append(FileConflict(*place, winner, losers, rules.words))
    writes = tuple(
        write
        for plan in listed
        for write in plan.writes
        if winners.get((write.file, write.group), write.strategy) == write.strategy
    )
    return SettledPlan(
        Plan(
            writes,
            tuple(eviction for plan in listed for eviction in plan.evictions),
            (*(note for plan in listed for note in plan.notes), *(one.words for one in conflicts)),
        ),
        tuple(conflicts),
    )


def _wanted(plans: Sequence[Plan]) -> Mapping[WantedFile, dict[str, FileValue | None]]:
    """By file and group, what each strategy wants there in the end; None where it wants it left as it is."""
    found: dict[WantedFile, dict[str, FileValue | None]] = {}
    for plan in plans:
        for place, strategy in plan.holds.items():
            found.setdefault(place, {})[strategy] = None
        for write in plan.writes:
            found.setdefault(_place(write), {})[write.strategy] = write.value
    return found


def _place(write: Write) -> WantedFile:
    return (write.file, write.group)


class _Rules:
    """What policy says of one file: its own rules, else those of any file."""

    def __init__(self, graph: RuleGraph, file: str, node: Facts, now: int) -> None:
        subjects = graph.subjects(KIND)
        self._file = file if file in subjects else ANY_FILE
        self._rule, self._order = _FIRST, list[str]()
        if self._file in subjects:
            about = graph.about(KIND, self._file, {"node": node, "now": TIMES.timestamp(now)})
            self._rule = about.value("rule")
            self._order = list(about.value("order") or ())

    @property
    def words(self) -> str:
        """The rule, and where it stands."""
        return f"{KIND}/{self._file}: {self._rule}"

    def winner(self, wanted: Mapping[str, FileValue | None]) -> str:
        """Whose value it is. Where values do not compare, the order decides; who is not in it comes last, by name."""
        first = min(wanted, key=lambda name: (self._place(name), name))
        numbers = {name: value for name, value in wanted.items() if isinstance(value, int)}
        if self._rule == _FIRST or len(numbers) < len(wanted):
            return first
        ordered = sorted(numbers, key=lambda name: (_size(numbers[name]), self._place(name), name))
        return (
            ordered[0]
            if self._rule == _SMALLEST
            else max(ordered, key=lambda name: (_size(numbers[name]), -self._place(name)))
        )

    def _place(self, name: str) -> int:
        return self._order.index(name) if name in self._order else len(self._order)


def _size(value: int) -> float:
    """How large a limit is; -1 is none."""
    return float("inf") if value == -1 else value
