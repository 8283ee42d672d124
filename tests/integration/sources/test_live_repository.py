"""Decisions that follow a repository: what is committed decides, what is broken changes nothing."""

import asyncio
from pathlib import Path

from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.live import LivePolicies
from koordpolicy.runtime.policies.revisions import Reason, RejectedRevision
from koordpolicy.source.git.repository import RepositorySource
from tests.integration.sources.repositories import GitServer, Upstream, git, serving
from tests.integration.sources.syncs import syncing
from tests.unit.runtime.scenes import broken, running, tree, until


def test_commits_decide_and_broken_ones_change_nothing(
    upstream: Upstream, server: GitServer, target: Path
) -> None:
    first = upstream.commit(tree(1000))
    sync = syncing(server.url(), target, period=60, pause=0.01)
    live = LivePolicies(RepositorySource(sync), Metrics("test"))
    refused: list[RejectedRevision] = []
    live.subscribe_rejected(refused.append)

    def target_now() -> object:
        return live.graph.ask("CPUSuppress.target", node={}).value

    async def scene() -> None:
        async with running(live.run()):
            await until(lambda: live.active)
            assert live.active is not None
            assert live.active.revision.commit == first
            assert target_now() == 1000
            bad = await asyncio.to_thread(upstream.commit, broken())
            sync.trigger()
            await until(lambda: live.rejected)
            (rejected,) = refused
            assert (rejected.revision.commit, rejected.reason) == (bad, Reason.COMPILE_FAILED)
            assert rejected.errors[0].span.file == "all.yaml"
            assert target_now() == 1000
            fixed = await asyncio.to_thread(upstream.commit, tree(2000))
            sync.trigger()
            await until(lambda: live.active and live.active.revision.commit == fixed)
            assert (target_now(), live.rejected) == (2000, None)
            git(upstream.bare, "update-ref", "-d", "refs/heads/main")
            sync.trigger()
            await until(lambda: live.trouble)
            assert target_now() == 2000
            back = await asyncio.to_thread(upstream.commit, tree(3000))
            sync.trigger()
            await until(lambda: live.active and live.active.revision.commit == back)
            assert (target_now(), live.trouble) == (3000, None)

    asyncio.run(scene())


def test_a_restart_while_the_repository_is_away(upstream: Upstream, target: Path) -> None:
    commit = upstream.commit(tree(1000))

    async def scene(address: str) -> None:
        live = LivePolicies(RepositorySource(syncing(address, target)), Metrics("test"))
        async with running(live.run()):
            await until(lambda: live.active)
            assert live.active is not None
            assert live.active.revision.commit == commit

    with serving(upstream.bare.parent) as server:
        address = server.url()
        asyncio.run(scene(address))
    asyncio.run(scene(address))
