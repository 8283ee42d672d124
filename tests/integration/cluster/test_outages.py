"""A real API server that is killed, restarted, cut off and made to forget, and clients that live through it."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from koordpolicy.kube import Conflict, Gone, KubeError, MergePatch, NotFound, Object
from koordpolicy.kube.api import ApiCluster, Connection, connect
from koordpolicy.kube.backoff import Backoff
from koordpolicy.kube.informer import Informer
from koordpolicy.kube.leases import LeaseTerms
from koordpolicy.kube.mirror import Key, Mirror, ObjectChange, key_of
from koordpolicy.kube.resources import CONFIG_MAPS, LEASES
from koordpolicy.runtime.leader import Election
from tests.parts.apiserver import ApiServer
from tests.parts.shared import SharedServer

PATIENCE = 90.0


@asynccontextmanager
async def client(kubeconfig: Path) -> AsyncIterator[ApiCluster]:
    async with connect(Connection.load(str(kubeconfig)), jitter=random.random, component="test") as cluster:
        yield cluster


async def until(question: Callable[[], bool], what: str) -> None:
    """Wait for an answer of yes."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not question():  # noqa: ASYNC110  some answers are of another process
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise AssertionError(f"after {PATIENCE:.0f} s still not: {what}") from None


class Following:
    """An informer of the ConfigMaps of a namespace, what its handler heard, and what went wrong.

    What is heard must fit together: nothing is new twice, changes when it is not there, or goes twice.
    """

    def __init__(self, cluster: ApiCluster) -> None:
        self.cluster = cluster
        self.heard: list[ObjectChange] = []
        self.trouble: list[KubeError] = []
        self.mirror = Mirror(handlers=[self._note])
        backoff = Backoff(random.random, initial=0.1, longest=1.0)
        self.informer = Informer(
            cluster,
            CONFIG_MAPS,
            self.mirror,
            backoff,
            namespace="default",
            on_trouble=lambda error, failures: self.trouble.append(error),
        )
        self._known: dict[Key, Object] = {}

    def _note(self, change: ObjectChange) -> None:
        assert self._known.get(change.key) == change.old
        if change.new is None:
            del self._known[change.key]
        else:
            self._known[change.key] = change.new
        self.heard.append(change)

    async def agrees(self) -> None:
        """Wait until the mirror shows what a list says."""
        async with asyncio.timeout(PATIENCE):
            while True:
                with suppress(KubeError):
                    page = await self.cluster.list(CONFIG_MAPS, namespace="default")
                    if {key_of(item): item for item in page.items} == dict(self.mirror.objects):
                        return
                await asyncio.sleep(0.1)


@asynccontextmanager
async def following(cluster: ApiCluster) -> AsyncIterator[Following]:
    follower = Following(cluster)
    task = asyncio.create_task(follower.informer.run())
    try:
        async with asyncio.timeout(PATIENCE):
            await follower.informer.wait_synced()
        yield follower
        assert not task.done(), "the informer gave up"
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def write(cluster: ApiCluster, rounds: int) -> int:
    """Create, change and delete as long as told, whatever happens; gives how many requests failed."""
    failed = 0
    for number in range(rounds):
        name = f"busy-{number % 7}"
        try:
            patch = MergePatch({"data": {"n": str(number)}})
            await cluster.patch(CONFIG_MAPS, name, patch, namespace="default")
            if number % 5 == 0:
                await cluster.delete(CONFIG_MAPS, name, namespace="default")
        except NotFound:
            with suppress(KubeError):
                await cluster.create(CONFIG_MAPS, {"metadata": {"name": name}}, namespace="default")
        except KubeError:
            failed += 1
        await asyncio.sleep(0.02)
    return failed


def test_everything_converges_after_the_server_was_killed(own_apiserver: Callable[[], ApiServer]) -> None:
    server = own_apiserver()

    async def story() -> None:
        async with client(server.kubeconfig()) as cluster, following(cluster) as follower:
            working: set[str] = set()
            most = 0
            elections = [
                Election(cluster, "default", "leader", name, jitter=random.random) for name in ("a", "b")
            ]

            async def work(name: str) -> None:
                nonlocal most
                working.add(name)
                most = max(most, len(working))
                try:
                    await asyncio.sleep(3600)
                finally:
                    working.remove(name)

            async def stand(election: Election) -> None:
                await election.run(lambda: work(election.identity))

            standing = [asyncio.create_task(stand(election)) for election in elections]
            await until(lambda: len(working) == 1, "one leads")
            writing = asyncio.create_task(write(cluster, 600))
            for _ in range(2):
                await asyncio.sleep(1)
                await asyncio.to_thread(server.kill)
                await asyncio.sleep(4)  # longer than requests are repeated
                await asyncio.to_thread(server.start)
            assert await writing > 0, "the outage was felt"
            await write(cluster, 20)
            await follower.agrees()
            await until(lambda: len(working) == 1, "one leads")
            assert most == 1
            assert follower.trouble
            for task in standing:
                task.cancel()
            await asyncio.gather(*standing, return_exceptions=True)
            lease = await cluster.get(LEASES, "leader", namespace="default")
            assert lease["spec"]["holderIdentity"] == ""

    asyncio.run(story())


def test_after_a_lost_history_only_what_changed_is_heard(own_apiserver: Callable[[], ApiServer]) -> None:
    server = own_apiserver()

    async def story() -> None:
        with server.proxy() as proxy:
            async with (
                client(server.kubeconfig()) as direct,
                client(proxy.kubeconfig()) as cluster,
            ):
                for name in ("kept", "changed", "removed", "replaced"):
                    await direct.create(CONFIG_MAPS, {"metadata": {"name": name}}, namespace="default")
                async with following(cluster) as follower:
                    follower.heard.clear()
                    await asyncio.to_thread(proxy.refuse)
                    patch = MergePatch({"data": {"a": "1"}})
                    await direct.patch(CONFIG_MAPS, "changed", patch, namespace="default")
                    for name in ("removed", "replaced"):
                        await direct.delete(CONFIG_MAPS, name, namespace="default")
                    for name in ("replaced", "new"):
                        await direct.create(CONFIG_MAPS, {"metadata": {"name": name}}, namespace="default")
                    await asyncio.to_thread(server.forget)
                    assert follower.heard == []
                    await asyncio.to_thread(proxy.accept)
                    await follower.agrees()
                    signs = [
                        ("+" if change.old is None else "-" if change.new is None else "~") + change.key[1]
                        for change in follower.heard
                    ]
                    assert sorted(signs) == ["+new", "+replaced", "-removed", "-replaced", "~changed"]
                    assert any(isinstance(error, Gone) for error in follower.trouble)

    asyncio.run(story())


QUICK = LeaseTerms(duration=3.0, renew_deadline=2.0, retry=0.3)


def test_the_next_one_takes_over_at_once_or_when_the_lease_has_run_out(apiserver: SharedServer) -> None:
    async def story() -> None:
        with apiserver.proxy() as proxy:
            async with client(proxy.kubeconfig()) as first_way, client(apiserver.kubeconfig()) as way:
                clock = asyncio.get_running_loop().time
                began: dict[str, float] = {}
                ended: dict[str, float] = {}

                async def work(name: str) -> None:
                    assert not set(began) - set(ended), "two work at once"
                    began[name] = clock()
                    try:
                        await asyncio.sleep(3600)
                    finally:
                        ended[name] = clock()

                def stand(cluster: ApiCluster, name: str) -> "asyncio.Task[None]":
                    election = Election(
                        cluster, "default", "takeover", name, jitter=random.random, terms=QUICK
                    )
                    return asyncio.create_task(election.run(lambda: work(name)))

                one = stand(first_way, "one")
                await until(lambda: "one" in began, "the first leads")
                two = stand(way, "two")
                await asyncio.sleep(1.0)
                await asyncio.to_thread(proxy.hold)  # silence: nothing is refused, nothing is answered
                silent = clock()
                await until(lambda: "two" in began, "the second leads")
                assert ended["one"] < began["two"]
                assert began["two"] - silent > QUICK.duration - 2 * QUICK.retry
                one.cancel()
                proxy.release()
                await asyncio.gather(one, return_exceptions=True)

                three = stand(way, "three")
                await asyncio.sleep(1.0)
                assert "three" not in began
                two.cancel()
                await asyncio.gather(two, return_exceptions=True)
                await until(lambda: "three" in began, "the third leads")
                assert began["three"] - ended["two"] < QUICK.duration, "it did not have to wait"
                three.cancel()
                await asyncio.gather(three, return_exceptions=True)
                with suppress(Conflict):
                    await way.delete(LEASES, "takeover", namespace="default")

    asyncio.run(story())
