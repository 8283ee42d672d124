"""Elections over the in-memory cluster, on virtual time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import Object, Resource, Unreachable
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import LEASES, NAMESPACES
from koordpolicy.runtime.leader import Callbacks, Election, own_identity
from tests.virtual_time import run


def now() -> float:
    return asyncio.get_running_loop().time() - 1000.0


class Line(MemoryCluster):
    """A client whose answers to writes may get lost after they took effect, while its user is in `deaf`."""

    def __init__(self, store: Store, user: str, deaf: set[str], before_request: Any) -> None:
        super().__init__(store, user=user, before_request=before_request)
        self._deaf = deaf
        self._name = user

    async def update(self, resource: Resource, obj: Object, **options: Any) -> Object:
        return await self._answered(await super().update(resource, obj, **options))

    async def create(self, resource: Resource, obj: Object, **options: Any) -> Object:
        return await self._answered(await super().create(resource, obj, **options))

    async def _answered(self, answer: Object) -> Object:
        if self._name in self._deaf:
            await asyncio.sleep(30.0)
            raise Unreachable("no answer")
        return answer


class Scene:
    """A cluster, contenders for one lease, and what happened when."""

    def __init__(self) -> None:
        self.store = Store(lambda: 1_750_000_000)
        self.store.create(NAMESPACES, {"metadata": {"name": "system"}})
        self.diary: list[tuple[float, str]] = []
        self.working: set[str] = set()
        self.away: set[str] = set()
        """Contenders whose requests do not arrive."""
        self.deaf: set[str] = set()
        """Contenders whose writes arrive, and who do not hear so."""
        self.late: dict[str, float] = {}
        """How many seconds late the answers to a contender come."""
        self.winding_up = 0.0

    def contender(self, name: str, begins_ns: int = 1_750_000_000 * 10**9) -> Election:
        async def request(verb: str, resource: Resource) -> None:
            await asyncio.sleep(0.01 + self.late.get(name, 0.0))
            if name in self.away:
                await asyncio.sleep(30.0)
                raise Unreachable("no route")

        callbacks = Callbacks(
            started=lambda: self.note(f"{name} leads"), stopped=lambda: self.note(f"{name} stops")
        )
        cluster = Line(self.store, name, self.deaf, request)
        return Election(
            cluster,
            "system",
            "lease",
            name,
            jitter=lambda: 0.0,
            callbacks=callbacks,
            wall_ns=lambda: begins_ns + int(now() * 1e9),
        )

    def note(self, what: str) -> None:
        self.diary.append((round(now(), 1), what))

    def work(self, name: str, seconds: float = 1e6) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            assert not self.working, "two work at once"
            self.working.add(name)
            try:
                await asyncio.sleep(seconds)
            finally:
                if self.winding_up:
                    await asyncio.sleep(self.winding_up)
                self.working.remove(name)

        return work

    def begin(self, election: Election, seconds: float = 1e6) -> "asyncio.Task[None]":
        return asyncio.create_task(election.run(self.work(election.identity, seconds)))

    def holder(self) -> str:
        return str(self.store.get(LEASES, "lease", namespace="system")["spec"]["holderIdentity"])


async def stop(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_the_first_leads_and_the_second_waits() -> None:
    async def story() -> None:
        scene = Scene()
        a, b = scene.contender("a"), scene.contender("b")
        tasks = [scene.begin(a)]
        await asyncio.sleep(1)
        tasks.append(scene.begin(b))
        await asyncio.sleep(300)
        assert scene.diary == [(0.0, "a leads")]
        assert (a.leading, b.leading, b.leader) == (True, False, "a")
        for task in tasks:
            await stop(task)

    run(story())


def test_who_leaves_properly_is_followed_at_once() -> None:
    async def story() -> None:
        scene = Scene()
        first = scene.begin(scene.contender("a"))
        await asyncio.sleep(1)
        second = scene.begin(scene.contender("b"))
        await asyncio.sleep(20)
        await stop(first)
        assert scene.holder() == ""
        await asyncio.sleep(3)
        assert [what for _, what in scene.diary] == ["a leads", "a stops", "b leads"]
        assert scene.diary[2][0] - scene.diary[1][0] <= 2.1
        await stop(second)

    run(story())


def test_who_dies_is_followed_when_the_lease_has_run_out() -> None:
    async def story() -> None:
        scene = Scene()
        first = scene.begin(scene.contender("a"))
        await asyncio.sleep(1)
        second = scene.begin(scene.contender("b"))
        await asyncio.sleep(20)
        scene.away.add("a")
        died = now()
        await asyncio.sleep(60)
        taken = next(at for at, what in scene.diary if what == "b leads")
        stopped = next(at for at, what in scene.diary if what == "a stops")
        # Its last renewal was within the two seconds before, and b looks each two seconds.
        assert 13.0 <= taken - died <= 18.0
        assert 7.9 <= stopped - died <= 10.1
        assert stopped < taken
        for task in (first, second):
            await stop(task)

    run(story())


def test_clocks_of_other_machines_decide_nothing() -> None:
    async def story() -> None:
        scene = Scene()
        tasks = []
        for name, begins_ns in (("a", 0), ("b", 2 * 10**18)):
            tasks.append(scene.begin(scene.contender(name, begins_ns)))
            await asyncio.sleep(1)
        await asyncio.sleep(100)
        assert scene.diary == [(0.0, "a leads")]
        for task in tasks:
            await stop(task)

    run(story())


def test_a_leader_cut_off_stops_before_another_begins_and_stands_again() -> None:
    async def story() -> None:
        scene = Scene()
        scene.winding_up = 3.0  # less than the five seconds between renew deadline and duration
        tasks = [scene.begin(scene.contender("a"))]
        await asyncio.sleep(1)
        tasks.append(scene.begin(scene.contender("b")))
        await asyncio.sleep(10)
        scene.away.add("a")
        await asyncio.sleep(100)
        scene.away.clear()
        await asyncio.sleep(40)
        scene.away.add("b")
        await asyncio.sleep(40)
        leaders = [what for _, what in scene.diary]
        assert leaders == ["a leads", "a stops", "b leads", "b stops", "a leads"]
        scene.away.clear()
        for task in tasks:
            await stop(task)

    run(story())


def test_short_trouble_costs_nothing() -> None:
    async def story() -> None:
        scene = Scene()
        tasks = [scene.begin(scene.contender("a"))]
        await asyncio.sleep(1)
        tasks.append(scene.begin(scene.contender("b")))
        for _ in range(5):
            await asyncio.sleep(11)
            scene.store.compact()
            lease = scene.store.get(LEASES, "lease", namespace="system")
            # Somebody labels the lease: the next renewal meets a version it does not know.
            scene.store.update(
                LEASES, {**lease, "metadata": {**lease["metadata"], "labels": {"x": f"{now()}"}}}
            )
        assert scene.diary == [(0.0, "a leads")]
        for task in tasks:
            await stop(task)

    run(story())


def test_a_lease_that_somebody_takes_by_force_is_lost_at_once() -> None:
    async def story() -> None:
        scene = Scene()
        task = scene.begin(scene.contender("a"))
        await asyncio.sleep(10)
        lease = scene.store.get(LEASES, "lease", namespace="system")
        scene.store.update(LEASES, {**lease, "spec": {**lease["spec"], "holderIdentity": "z"}})
        await asyncio.sleep(4)
        assert [what for _, what in scene.diary] == ["a leads", "a stops"]
        assert scene.holder() == "z", "what is not ours is not given back"
        await asyncio.sleep(20)
        assert scene.holder() == "a"
        await stop(task)

    run(story())


def test_a_deleted_lease_is_made_anew_by_the_leader() -> None:
    async def story() -> None:
        scene = Scene()
        task = scene.begin(scene.contender("a"))
        await asyncio.sleep(10)
        scene.store.delete(LEASES, "lease", namespace="system")
        await asyncio.sleep(4)
        assert scene.holder() == "a"
        assert scene.diary == [(0.0, "a leads")]
        await stop(task)

    run(story())


def test_answers_to_old_questions_win_no_lease_that_is_lost_at_once() -> None:
    """A server that comes back answers what was asked long ago, and then at once."""

    async def story() -> None:
        scene = Scene()
        scene.late["a"] = 12.0  # longer than the renew deadline
        election = scene.contender("a")
        task = scene.begin(election)
        await asyncio.sleep(60)
        assert scene.diary == []
        scene.late.clear()
        await asyncio.sleep(60)
        assert [what for _, what in scene.diary] == ["a leads"]
        scene.late["a"] = 100.0
        await asyncio.sleep(60)
        assert not election.leading
        assert election.leader == "", "whatever the record says, it does not lead"
        scene.late["a"] = 7.0
        await asyncio.sleep(60)
        scene.late.clear()
        await asyncio.sleep(60)
        assert [what for _, what in scene.diary] == ["a leads", "a stops", "a leads"]
        await stop(task)

    run(story())


def test_who_stands_by_and_who_loses_the_lease_says_why_at_once(caplog: pytest.LogCaptureFixture) -> None:
    said: list[tuple[float, str]] = []

    class Note(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            said.append((round(now(), 1), record.getMessage()))
            return True

    async def story() -> None:
        scene = Scene()
        scene.winding_up = 4.0
        tasks = [scene.begin(scene.contender("a"))]
        await asyncio.sleep(1)
        tasks.append(scene.begin(scene.contender("b")))
        await asyncio.sleep(10)
        scene.away.add("a")
        await asyncio.sleep(30)
        scene.away.clear()
        await asyncio.sleep(5)
        for at, what in said:
            if "not leading" in what:
                assert (at, "a stops") in scene.diary
        for task in tasks:
            await stop(task)

    with caplog.at_level("INFO"), caplog.filtering(Note()):
        run(story())
    assert [what for _, what in said if "lead" in what] == [
        "leading system/lease as a",
        "standing by for system/lease: a leads",
        "not leading system/lease any more: its lease could not be renewed within 10 s",
        "leading system/lease as b",
        "standing by for system/lease: b leads",
    ]


def test_a_lease_that_is_not_given_back_is_told_with_a_reason(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        scene = Scene()
        task = scene.begin(scene.contender("a"))
        await asyncio.sleep(5)
        scene.late["a"] = 100.0
        await stop(task)

    with caplog.at_level("INFO"):
        run(story())
    (said,) = [record.getMessage() for record in caplog.records if "not given back" in record.getMessage()]
    assert said == "lease system/lease was not given back: no answer within 5 s"


def test_work_that_ends_gives_the_lease_back() -> None:
    async def story() -> None:
        scene = Scene()
        await scene.begin(scene.contender("a"), seconds=30)
        assert [what for _, what in scene.diary] == ["a leads", "a stops"]
        assert scene.holder() == ""

    run(story())


def test_work_that_fails_is_heard_and_gives_the_lease_back() -> None:
    async def story() -> None:
        scene = Scene()

        async def fail() -> None:
            await asyncio.sleep(5)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await scene.contender("a").run(fail)
        assert scene.holder() == ""

    run(story())


def test_the_lease_is_kept_while_the_work_winds_up() -> None:
    async def story() -> None:
        scene = Scene()
        scene.winding_up = 40.0
        first = scene.begin(scene.contender("a"))
        await asyncio.sleep(1)
        second = scene.begin(scene.contender("b"))
        await asyncio.sleep(5)
        first.cancel()
        await asyncio.sleep(39)
        assert scene.holder() == "a"
        assert scene.diary[-1] == (6.0, "a stops"), "it says at once that it does not lead"
        await asyncio.sleep(5)
        assert scene.working == {"b"}
        scene.winding_up = 0.0
        await stop(second)

    run(story())


@dataclass(frozen=True, slots=True)
class Turn:
    """For so many seconds these contenders are cut off, one way or the other."""

    seconds: float
    away: frozenset[str]
    deaf: frozenset[str]


someone = st.frozensets(st.sampled_from("abc"), max_size=2)


@given(st.lists(st.builds(Turn, st.floats(0.0, 40.0), someone, someone), max_size=12), st.floats(0.0, 4.5))
def test_whoever_is_cut_off_never_do_two_work_at_once(turns: list[Turn], winding_up: float) -> None:
    async def story() -> None:
        scene = Scene()
        scene.winding_up = winding_up
        tasks = [scene.begin(scene.contender(name)) for name in "abc"]
        for turn in turns:
            scene.away |= turn.away
            scene.deaf |= turn.deaf
            await asyncio.sleep(turn.seconds)
            assert len(scene.working) <= 1
            scene.away.clear()
            scene.deaf.clear()
            await asyncio.sleep(turn.seconds / 2)
        await asyncio.sleep(60)
        assert [task for task in tasks if task.done()] == []
        assert len(scene.working) == 1, "in the end somebody works"
        for task in tasks:
            await stop(task)

    run(story())


def test_an_identity_is_a_processs_own() -> None:
    assert own_identity("s1") != own_identity("s1")
    assert own_identity("s1").startswith("s1_")
