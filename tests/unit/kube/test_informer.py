"""The informer when the cluster misbehaves."""

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import Forbidden, Gone, KubeError, Resource, TooManyRequests, Unreachable
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.informer import Informer
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.mirror import Mirror, ObjectChange
from koordpolicy.kube.resources import PODS
from tests.unit.kube.builders import pod, store
from tests.virtual_time import run


class Enough(Exception):
    """The scene is over."""


class Scene:
    """An informer over a store, with requests that fail as told and a clock that only counts.

    `script` maps the number of a request (from 1) to what happens to it. `asked` notes the requests, `slept`
    the waits, `heard` the troubles; a wait whose number is in `woken` was cut short. The scene ends after `waits` waits.
    """

    def __init__(
        self,
        script: dict[int, Callable[[], None]],
        *,
        waits: int = 50,
        handlers: Any = (),
        in_steps: bool = False,
    ) -> None:
        self.store: Store = store()
        self.asked: list[str] = []
        self.slept: list[float] = []
        self.heard: list[tuple[str, int]] = []
        self.woken: set[int] = set()
        self.mirror = Mirror(handlers=handlers, in_steps=in_steps)
        self._script = script
        self._waits = waits
        backoff = Backoff(jitter=lambda: 0.0, sleep=self._sleep, initial=1.0, longest=8.0)
        cluster = MemoryCluster(self.store, before_request=self._before)
        self.informer = Informer(cluster, PODS, self.mirror, backoff, on_trouble=self._note)

    async def _before(self, verb: str, resource: Resource) -> None:
        self.asked.append(verb)
        step = self._script.get(len(self.asked))
        if step is not None:
            step()

    async def _sleep(self, seconds: float) -> bool:
        self.slept.append(seconds)
        if len(self.slept) >= self._waits:
            raise Enough
        await asyncio.sleep(0)
        return len(self.slept) in self.woken

    def _note(self, error: KubeError, failures: int) -> None:
        self.heard.append((type(error).__name__, failures))

    def play(self, then: Callable[[], None] | None = None, *, turns: int = 200) -> None:
        """Let the informer run for so many turns of the loop, `then` do something, and let it run again."""

        async def act() -> None:
            task = asyncio.create_task(self.informer.run())
            for action in (then, None):
                for _ in range(turns):
                    await asyncio.sleep(0)
                if task.done():
                    break
                if action is not None:
                    action()
            if not task.done():
                task.cancel()
            with suppress(asyncio.CancelledError, Enough):
                await task

        asyncio.run(act())

    def names(self) -> list[str]:
        return sorted(name for _, name in self.mirror.objects)


def failing(error: KubeError) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


def test_an_unreachable_cluster_is_asked_again_ever_more_slowly() -> None:
    down = failing(Unreachable("no route"))
    scene = Scene(dict.fromkeys(range(1, 7), down))
    scene.store.create(PODS, pod("a"))
    scene.play()
    assert scene.asked == ["list"] * 7 + ["watch"]
    assert scene.slept == [1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert scene.heard == [("Unreachable", n) for n in range(1, 7)]
    assert scene.names() == ["a"]


def test_the_mirror_stays_while_the_cluster_is_away_and_goes_on_without_a_list() -> None:
    down = failing(Unreachable("no route"))
    scene = Scene({3: down, 4: down})
    scene.store.create(PODS, pod("a"))

    def outage() -> None:
        scene.store.disconnect()
        scene.store.create(PODS, pod("b"))
        assert scene.names() == ["a"]

    scene.play(outage)
    assert scene.asked == ["list", "watch", "watch", "watch", "watch"]
    assert scene.names() == ["a", "b"]


def test_success_makes_it_patient_again() -> None:
    down = failing(Unreachable("no route"))
    scene = Scene({1: down, 2: down, 5: down})

    def later() -> None:
        scene.store.create(PODS, pod("a"))
        asyncio.get_running_loop().call_soon(
            lambda: asyncio.get_running_loop().call_soon(scene.store.disconnect)
        )

    scene.play(later)
    assert scene.slept[:2] == [1.0, 2.0]
    assert scene.slept[2:] == [2.0], (
        "the end of the stream was the first failure, the refused watch the second"
    )


def test_a_lost_version_is_listed_anew_at_once_but_not_in_a_hurry_for_ever() -> None:
    gone = failing(Gone("too old"))
    scene = Scene({2: gone, 4: gone, 6: gone})
    scene.play()
    assert scene.asked == ["list", "watch"] * 3 + ["list", "watch"]
    assert scene.slept == [2.0, 4.0]
    assert scene.heard == [("Gone", 1), ("Gone", 2), ("Gone", 3)]


def test_streams_that_end_at_once_are_not_reopened_without_pause() -> None:
    class Hasty(Store):
        """A store whose watches have ended before they begin."""

        def watch(self, *args: Any, **arguments: Any) -> Any:
            watch = super().watch(*args, **arguments)
            watch.end()
            return watch

    scene = Scene({}, waits=3)
    hasty = Hasty(lambda: 0.0)
    cluster = MemoryCluster(hasty, before_request=scene._before)
    backoff = Backoff(jitter=lambda: 0.0, sleep=scene._sleep, initial=1.0, longest=8.0)
    scene.informer = Informer(cluster, PODS, scene.mirror, backoff)
    scene.play()
    assert scene.slept == [2.0, 4.0, 8.0]
    assert scene.asked == ["list"] + ["watch"] * 4


def test_quiet_streams_that_lasted_are_no_failures() -> None:
    class Quiet(Store):
        """A store whose watches end after minutes in which nothing happened."""

        def watch(self, *args: Any, **arguments: Any) -> Any:
            watch = super().watch(*args, **arguments)
            asyncio.get_running_loop().call_later(300.0, watch.end)
            return watch

    async def story() -> None:
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            await asyncio.sleep(seconds)

        cluster = MemoryCluster(Quiet(lambda: 0.0))
        backoff = Backoff(jitter=lambda: 0.0, sleep=sleep)
        informer = Informer(cluster, PODS, Mirror(), backoff)
        task = asyncio.create_task(informer.run())
        await asyncio.sleep(3600)
        assert slept == []
        assert informer.failures <= 1
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    run(story())


def test_a_server_that_asks_for_patience_gets_it() -> None:
    scene = Scene(
        {1: failing(TooManyRequests("slow down", retry_after=17.0)), 2: failing(TooManyRequests("again"))}
    )
    scene.play()
    assert scene.slept == [17.0, 2.0]


def test_permissions_may_come_later() -> None:
    scene = Scene({1: failing(Forbidden("not yet"))})
    scene.store.create(PODS, pod("a"))
    scene.play()
    assert scene.names() == ["a"]
    assert scene.heard == [("Forbidden", 1)]


def test_a_server_without_its_roles_yet_is_asked_again_soon_however_long_it_was_away() -> None:
    down, forbidden = failing(Unreachable("no route")), failing(Forbidden("roles are not loaded"))
    scene = Scene({**dict.fromkeys(range(1, 6), down), **dict.fromkeys(range(6, 9), forbidden), 9: down})
    scene.play()
    assert scene.slept[:5] == [1.0, 2.0, 4.0, 8.0, 8.0]
    assert scene.slept[5:8] == [1.0, 2.0, 4.0]
    assert scene.slept[8:] == [8.0], "what is no matter of permissions is asked as before"


def test_who_is_woken_from_a_wait_is_as_patient_as_at_first() -> None:
    down = failing(Unreachable("no route"))
    scene = Scene(dict.fromkeys((*range(1, 8), 10), down))
    scene.woken = {4}

    def later() -> None:
        scene.store.create(PODS, pod("a"))
        asyncio.get_running_loop().call_soon(
            lambda: asyncio.get_running_loop().call_soon(scene.store.disconnect)
        )

    scene.play(later)
    assert scene.slept == [1.0, 2.0, 4.0, 8.0, 1.0, 2.0, 4.0, 2.0], "the last after a stream that had worked"
    assert [failures for _, failures in scene.heard] == [1, 2, 3, 4, 5, 6, 7, 2]


@pytest.mark.parametrize("in_steps", [False, True])
def test_pages_that_outlive_the_history_are_listed_all_at_once(in_steps: bool) -> None:
    scene = Scene({}, in_steps=in_steps)
    for index in range(501):
        scene.store.create(PODS, pod(f"p{index}"))

    def time_passes() -> None:
        scene.store.delete(PODS, "p0")
        scene.store.compact()

    scene._script[2] = time_passes
    scene.play()
    assert scene.asked == ["list", "list", "list", "watch"]
    assert len(scene.mirror.objects) == 500
    assert scene.informer.synced


def test_in_steps_others_get_their_turn_and_the_next_page_is_on_its_way() -> None:
    asked: list[int] = []
    requests: list[str] = []

    def takes_a_while(_change: ObjectChange) -> None:
        asked.append(len(requests))
        time.sleep(0.001)

    scene = Scene({}, in_steps=True, handlers=[takes_a_while])
    scene.asked = requests
    for index in range(1201):
        scene.store.create(PODS, pod(f"p{index:04}"))

    async def story() -> list[int]:
        task, sizes = asyncio.create_task(scene.informer.run()), [0]
        while not scene.informer.synced:
            await asyncio.sleep(0)
            sizes.append(len(scene.mirror.objects))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return sizes

    sizes = asyncio.run(story())
    assert sizes[-1] == 1201
    # A slice is ten of them at most, and the one at its end.
    assert 1 <= max(after - before for before, after in pairwise(sizes)) <= 11
    assert [asked[at] for at in (0, 100, 499, 500, 600, 1200)] == [1, 2, 2, 2, 3, 3]


def test_many_events_that_came_together_let_others_have_their_turn() -> None:
    seen: list[int] = []
    scene = Scene({}, handlers=[lambda _change: time.sleep(0.001)])

    async def story() -> None:
        task = asyncio.create_task(scene.informer.run())
        await scene.informer.wait_synced()
        for index in range(200):
            scene.store.create(PODS, pod(f"p{index:03}"))
        while len(scene.mirror.objects) < 200:
            await asyncio.sleep(0)
            seen.append(len(scene.mirror.objects))
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(story())
    assert max(after - before for before, after in pairwise([0, *seen])) <= 11


@pytest.mark.parametrize(("in_steps", "order"), [(False, ["-a", "+c"]), (True, ["+c", "-a"])])
def test_of_a_later_list_the_differences_are_told(in_steps: bool, order: list[str]) -> None:
    told: list[str] = []
    scene = Scene(
        {},
        in_steps=in_steps,
        handlers=[lambda change: told.append(("-" if change.new is None else "+") + change.key[1])],
    )
    for name in "ab":
        scene.store.create(PODS, pod(name))

    def away() -> None:
        told.clear()
        scene.store.disconnect()
        scene.store.delete(PODS, "a")
        scene.store.create(PODS, pod("c"))
        scene.store.compact()

    scene.play(away)
    assert told == order
    assert scene.names() == ["b", "c"]


def test_who_is_stopped_amid_a_list_leaves_no_request_behind() -> None:
    amid = asyncio.Event()
    scene = Scene(
        {2: failing(Unreachable("no route"))},
        in_steps=True,
        handlers=[lambda change: amid.set() if change.key[1] == "p300" else None],
    )
    for index in range(501):
        scene.store.create(PODS, pod(f"p{index:03}"))

    async def story() -> int:
        task = asyncio.create_task(scene.informer.run())
        await amid.wait()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return len(asyncio.all_tasks())

    assert asyncio.run(story()) == 1


def test_what_a_handler_raises_is_told_of_and_the_informer_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    def fails(change: ObjectChange) -> None:
        raise ZeroDivisionError(change.key[1])

    scene = Scene({}, handlers=[fails])
    scene.store.create(PODS, pod("a"))
    scene.play()
    assert scene.informer.synced
    assert "internal error, please report: ZeroDivisionError: a" in caplog.text


@given(st.integers(-5, 10_000), st.floats(0, 1, exclude_max=True))
def test_waits_stay_within_their_bounds(failures: int, jitter: float) -> None:
    backoff = Backoff(jitter=lambda: jitter)
    delay = backoff.delay(failures)
    assert 0.8 <= delay <= 60.0
    assert backoff.delay(failures + 1) >= delay


def test_an_error_that_nobody_foresaw_ends_no_informer(caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("File descriptor 17 is used by transport")

    scene = Scene({1: fail, 4: fail})
    scene.store.create(PODS, pod("a"))
    scene.play()
    assert scene.names() == ["a"]
    assert scene.heard[0] == ("Unreachable", 1)
    assert "following pods failed" in caplog.text
