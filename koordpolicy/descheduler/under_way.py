"""A round while it goes on: by which revision, and whether that one still decides."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from koordpolicy.algorithms.work import T, Work
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.same import differs_for
from koordpolicy.language.facts import Component
from koordpolicy.model.time import time_text


class RoundSuperseded(Exception):
    """Another revision decides now, otherwise than the one that work goes by: what is not done yet is left undone."""


@dataclass(slots=True)
class StandingGraph:
    """What work goes by, beside `live`, which gives the graph that decides at the moment.

    `components` are those whose decisions the work rests on. A graph that says the same to them supersedes nothing.
    """

    graph: RuleGraph
    live: Callable[[], RuleGraph]
    components: tuple[Component, ...] = (Component.DESCHEDULER,)
    _same: RuleGraph | None = None
    """The last other graph that was found to say the same."""

    @property
    def stands(self) -> bool:
        """Whether the live graph says the same. It takes no time as long as that graph is not another one."""
        now = self.live()
        if now is self.graph or now is self._same:
            return True
        if now.digest != self.graph.digest and any(
            differs_for(one, self.graph, now) for one in self.components
        ):
            return False
        self._same = now
        return True

    def check(self) -> None:
        """Raises `RoundSuperseded` where the live graph says otherwise."""
        if not self.stands:
            raise RoundSuperseded

    def while_it_stands(self, work: Work[T]) -> Work[T]:
        """The work, ended by `RoundSuperseded` before the piece at which the live graph says otherwise."""
        try:
            while True:
                self.check()
                try:
                    next(work)
                except StopIteration as end:
                    result: T = end.value
                    return result
                yield
        finally:
            work.close()


@dataclass(slots=True)
class RoundUnderWay:
    """A round of a profile, for people to see. `since` is in nanoseconds since 1970."""

    profile: str
    revision: str
    since: int
    standing: StandingGraph
    found: int | None = None
    """How many pods it would have go; None while it looks for them."""
    evicted: int = 0
    """Pods that it let go at once."""
    migrating: int = 0
    """Pods that it made migrations for."""
    told: int = 0
    """Pods of which it is known what came of them."""

    def status(self) -> dict[str, Any]:
        """What `/statusz` shows of it."""
        return {
            "profile": self.profile,
            "revision": self.revision,
            "since": time_text(self.since),
            "doing": "looking for pods" if self.found is None else "letting pods go",
            "found": self.found,
            "evictions": self.evicted,
            "migrations": self.migrating,
        }

    def left(self) -> str:
        """What it had done when it was dropped, in words."""
        if self.found is None:
            return "no pod had been let go yet"
        return (
            f"{self.evicted} pods were evicted and {self.migrating} migrations made before; "
            f"{self.found - self.told} of {self.found} pods stay"
        )
