"""Histories of gangs and quotas: whatever comes, goes, changes and fails, in whatever order.

Pods take one core each, so that what fits can be told by counting. After each step: no node and no quota has been given more
than it may have, and accounts are what the pods are. At rest: gangs are whole or absent, whoever fits is in, and nobody was tried
more often than something happened.
"""

from collections.abc import Mapping
from typing import Any, Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from koordpolicy.graph import RuleGraph
from koordpolicy.model.protocol import GANG_MINIMUM, GANG_NAME, QUOTA_NAME
from koordpolicy.scheduler.scheduler import Scheduler
from tests.unit.scheduler.test_quotas import gone, quota
from tests.unit.scheduler.world import World, node, pod
from tests.vectors.policies import document, graph

TEAMS: Final = ("a", "b", "")
SIZES = st.integers(1, 4)
REST: Final = 15
"""Seconds after which whoever backs off does not any more."""
_LONGEST: Final = 4
"""Times that they pass until nothing happens any more; pods are tried again whatever happened after more than that."""
_GRAPHS: Final[dict[str, RuleGraph]] = {}


def policies(placement: str) -> RuleGraph:
    found = _GRAPHS.get(placement)
    if found is None:
        own = document("GangScheduling", "own", {"parameters": {"placement": placement}})
        found = _GRAPHS[placement] = graph(own)
    return found


class Histories(RuleBasedStateMachine):
    """A scheduler, and what the cluster would show of it."""

    placement: str = "OneByOne"

    def __init__(self) -> None:
        super().__init__()
        self.world = World(policies(self.placement))
        self.scheduler: Scheduler = self.world.scheduler
        self.pods: dict[str, Mapping[str, Any]] = {}
        self.where: dict[str, str] = {}
        self.gangs: dict[str, list[str]] = {}
        self.spoilt: set[str] = set()
        """Gangs that have lost a pod, or a binding of one: those come by themselves."""
        self.most = {"a": 4, "b": 4}
        self.cores = {"n0": 2, "n1": 2}
        self.count = 0
        self.events = 0
        """Things that have happened that may help somebody."""
        for name, cores in self.cores.items():
            self._node(name, cores)
        for name, most in self.most.items():
            quota(self.scheduler, name, min="1", max=str(most))

    def _node(self, name: str, cores: int) -> None:
        self.scheduler.set_node(node(name, {"allocatable": {"cpu": str(cores), "memory": "100Gi"}}))

    # --- what happens -----------------------------------------------------------------------------

    @rule(
        sizes=st.lists(SIZES, min_size=1, max_size=3),
        team=st.sampled_from(TEAMS),
        priority=st.sampled_from((9100, 9500)),
    )
    def gangs_come(self, sizes: list[int], team: str, priority: int) -> None:
        for size in sizes:
            self._gang(size, team, priority)

    def _gang(self, size: int, team: str, priority: int) -> None:
        self.count += 1
        name = f"g{self.count}"
        said = {GANG_NAME: name, GANG_MINIMUM: str(size)}
        self.gangs[name] = [self._pod(f"{name}-{at}", team, priority, said) for at in range(size)]

    @rule(team=st.sampled_from(TEAMS))
    def pod_comes(self, team: str) -> None:
        self.count += 1
        self._pod(f"p{self.count}", team, 9500, {})

    def _pod(self, name: str, team: str, priority: int, annotations: Mapping[str, str]) -> str:
        labels = {QUOTA_NAME: team} if team else {}
        given = {"labels": labels, "annotations": annotations, "priority": priority, "request": {"cpu": "1"}}
        self.pods[name] = given
        self.world.submit(name, given)
        self.events += 1
        return name

    @precondition(lambda self: self.pods)
    @rule(which=st.data())
    def pod_goes(self, which: Any) -> None:
        self._leaves(which.draw(st.sampled_from(sorted(self.pods))))

    def _leaves(self, name: str) -> None:
        gang = name.partition("-")[0]
        if gang in self.gangs:
            self.gangs[gang].remove(name)
            self.spoilt.add(gang)
        self._gone(name)

    @precondition(lambda self: self.gangs)
    @rule(which=st.data(), at_rest=st.booleans())
    def gang_goes(self, which: Any, at_rest: bool) -> None:
        if at_rest:
            self.it_comes_to_rest()
        gang = which.draw(st.sampled_from(sorted(self.gangs)))
        self.spoilt.add(gang)
        for name in self.gangs.pop(gang):
            self._gone(name)

    def _gone(self, name: str) -> None:
        del self.pods[name]
        self.where.pop(name, None)
        self.scheduler.remove_pod(("default", name))
        self.events += 1

    @rule(name=st.sampled_from(("n0", "n1", "n2")), more=st.integers(0, 2))
    def node_grows(self, name: str, more: int) -> None:
        self.cores[name] = self.cores.get(name, 0) + more
        self._node(name, self.cores[name])
        self.events += 1

    @rule(name=st.sampled_from("ab"), most=st.integers(1, 6))
    def quota_changes(self, name: str, most: int) -> None:
        self.most[name] = most
        quota(self.scheduler, name, min="1", max=str(most))
        self.events += 1

    @rule(name=st.sampled_from("ab"))
    def quota_goes_and_comes(self, name: str) -> None:
        gone(self.scheduler, name)
        quota(self.scheduler, name, min="1", max=str(self.most[name]))
        self.events += 1

    @rule(seconds=st.sampled_from((0.2, 1, 5, 20)))
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(steps=st.integers(1, 6), fails=st.booleans())
    def some_are_decided_on(self, steps: int, fails: bool) -> None:
        """So many steps; the first binding may fail."""
        for _ in range(steps):
            fails = self._step(fails=fails) != "bound" and fails

    def _step(self, *, fails: bool = False) -> str:
        """One step of the scheduler: what came of it, empty for nothing."""
        used = {name: self._used(name) for name in self.most}
        found = self.scheduler.schedule_next()
        if found is None:
            return ""
        for name, before in used.items():
            now = self._used(name)
            assert now <= before or now <= self._limit(name), f"{name} was given more than it may have"
        decision = found[0]
        for victim in () if decision.preemption is None else decision.preemption.sent_away:
            self._leaves(victim.pod[1])
        if not decision.placed or self.scheduler.awaits_permit(decision):
            return "decided"
        name = decision.pod[1]
        if fails:
            self.spoilt.add(name.partition("-")[0])
            self.events += 1
            self.scheduler.forget(pod(name, self.pods[name]))
        else:
            self.where[name] = decision.node
            self.scheduler.set_pod(pod(name, {**self.pods[name], "node": decision.node, "phase": "Running"}))
        return "bound"

    # --- what always holds ------------------------------------------------------------------------

    def _account(self, name: str) -> Any:
        return self.scheduler.cache.state.quotas.sums(name).get(name)

    def _used(self, name: str) -> int:
        return int(self._account(name).used.get("cpu", 0)) // 1000

    def _limit(self, name: str) -> float:
        return float(self.scheduler.cache.state.quotas.limit(name).get("cpu", 10**9)) / 1000

    @invariant()
    def nothing_is_overfilled(self) -> None:
        cache = self.scheduler.cache
        for name, cores in self.cores.items():
            assert len(cache.pods_on(name)) <= cores

    @invariant()
    def accounts_are_what_pods_are(self) -> None:
        cache = self.scheduler.cache
        for name in self.most:
            mine = [one for one, said in self.pods.items() if said["labels"].get(QUOTA_NAME) == name]
            assert self._account(name).child_request.get("cpu", 0) == 1000 * len(mine)
            assert self._used(name) == sum(cache.node_of(("default", one)) is not None for one in mine)

    @invariant()
    def what_is_certain_is_so(self) -> None:
        quotas = self.scheduler.cache.state.quotas
        for name in self.pods:
            member = quotas.member(("default", name))
            if member is not None and member.quota in self.most:
                found = quotas.excess(
                    member, member.request
                )  # reckoned with runtimes, whether or not they need be known
                assert (quotas.excess(member) is None) == (found is None)

    # --- what holds at rest -----------------------------------------------------------------------

    @rule()
    def it_comes_to_rest(self) -> None:
        gangs = self.scheduler.gangs
        assert gangs is not None
        before = gangs.timings.count
        for _ in range(_LONGEST):
            steps = 0
            while self._step():
                steps += 1
                assert steps < 2000, "it goes on for ever"
            self.world.pass_time(REST)
        tried = gangs.timings.count - before
        assert tried <= len(self.gangs) * (1 + self.events), "each is tried once, and once for what happened"
        self.events = 0
        free = sum(self.cores.values()) - len(self.where)
        for gang, names in self.gangs.items():
            there = [name for name in names if name in self.where]
            if gang not in self.spoilt:
                assert len(there) in (0, len(names)), f"{gang} is there in part: {there}"
                if not there:
                    self._has_no_room(gang, len(names), free)
        for name in self.pods:
            if "-" not in name and name not in self.where:
                self._has_no_room(name, 1, free)

    def teardown(self) -> None:
        self.it_comes_to_rest()

    def _has_no_room(self, who: str, size: int, free: int) -> None:
        team = self.pods[who if who in self.pods else f"{who}-0"]["labels"].get(QUOTA_NAME, "")
        fits = not team or self._used(team) + size <= self._limit(team)
        assert free < size or not fits, f"{who} would fit"


class HistoriesAtOnce(Histories):
    """The same where a gang is decided on in one go."""

    placement = "AtOnce"


_FEW: Final = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestHistories = Histories.TestCase
TestHistories.settings = _FEW
TestHistoriesAtOnce = HistoriesAtOnce.TestCase
TestHistoriesAtOnce.settings = _FEW


def test_one_that_came_while_a_gang_held_the_room_gets_it() -> None:
    """A gang that has become too large for its quota gives back what its first pod held, when another pod has come in between."""
    state = HistoriesAtOnce()
    state.gangs_come(priority=9500, sizes=[2], team="a")
    state.quota_changes(most=1, name="a")
    state.some_are_decided_on(fails=False, steps=1)
    state.pod_comes(team="a")
    state.it_comes_to_rest()
    assert "p2" in state.where


def test_the_next_one_has_room_that_a_gang_gives_back_which_was_let_past_the_gate_before() -> None:
    """Of a gang that does not fit as a whole one pod has had the room that is new in its quota."""
    state = Histories()
    state.gangs_come(priority=9100, sizes=[3, 3, 1], team="")
    state.quota_changes(most=2, name="a")
    state.gangs_come(priority=9100, sizes=[3, 3, 1], team="a")
    state.it_comes_to_rest()
    state.node_grows(more=1, name="n0")
    state.it_comes_to_rest()
    assert "g6-0" in state.where


def test_one_that_was_looked_at_while_a_gang_held_the_room_gets_it() -> None:
    """Room comes free for one that waits for its quota, and a new gang that does not fit as a whole holds it for a moment."""
    state = HistoriesAtOnce()
    state.gangs_come(priority=9100, sizes=[4, 1], team="b")
    state.it_comes_to_rest()
    state._leaves("g1-0")
    state.gangs_come(priority=9100, sizes=[4], team="b")
    state.it_comes_to_rest()
    assert "g2-0" in state.where
