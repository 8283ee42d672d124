"""Revisions as the console shows them: in which order, which are live, and which answers here."""

import asyncio
from typing import Any

from koordpolicy.cli.console_revisions import LiveRevisions
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import POLICY_REVISIONS
from koordpolicy.model.policy_revision import Instance, InstanceState, PolicyRevision, RevisionStatus, to_json

BEGAN = 1_767_225_600
NAMES = ("m", "a", "z", "b")


def shown(here: str) -> list[dict[str, Any]]:
    """Four revisions that came one after the other; processes decide by the first again, and compare with the last."""
    states = {
        "m": (InstanceState.ACTIVE, "2026-02-01T00:00:00Z"),
        "b": (InstanceState.SHADOW, "2026-01-01T00:00:03Z"),
    }

    async def run() -> list[dict[str, Any]]:
        now = [float(BEGAN)]
        cluster = MemoryCluster(Store(lambda: now[0]))
        for name in NAMES:
            state, since = states.get(name, (InstanceState.REJECTED, "2026-03-01T00:00:00Z"))
            status = RevisionStatus(instances=(Instance("one", "scheduler", state, since=since),))
            made = to_json(PolicyRevision(name, name * 40, name * 64, status=status))
            kept = await cluster.create(POLICY_REVISIONS, {**made, "metadata": {"name": name}})
            stood = {**kept, "status": made["status"]}
            await cluster.update(POLICY_REVISIONS, stood, subresource="status")
            now[0] += 1
        revisions = LiveRevisions(cluster, "me")
        revisions.here = here
        await revisions.look()
        return revisions.all()

    return asyncio.run(run())


def test_the_newest_comes_first() -> None:
    assert [one["metadata"]["name"] for one in shown("")] == ["m", "b", "z", "a"]


def test_whether_what_answers_is_live_is_told_by_content() -> None:
    def told(here: str) -> dict[str, tuple[bool, bool]]:
        return {one["metadata"]["name"]: (one["live"], one["here"]) for one in shown(here)}

    apart = {"m": (True, False), "b": (False, False), "z": (False, False), "a": (False, False)}
    assert told("") == told("0" * 64) == apart
    assert told("m" * 64) == {**apart, "m": (True, True)}
    assert told("b" * 64) == {**apart, "b": (False, True)}
