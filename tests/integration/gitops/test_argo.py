"""Policies as objects, applied by Argo CD's real engine; their health by the script that we ship for Argo CD."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.deploy.lua import health
from tests.integration.gitops.argo import LAST_APPLIED, MARK, Clone, argo
from tests.integration.gitops.site import (
    BROKEN,
    BROKEN_CODE,
    BUILT_IN_SHARE,
    POLICIES,
    SERVER,
    Site,
    conditions,
    policy,
    share,
    site,
)
from tests.parts.fixtures import need

OTHER = policy("other", "parameters: {memoryReclaim: 50%}")


@pytest.fixture(scope="module")
def started(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Site, Clone]]:
    """The agent on a cluster of this file's own: policies apply to a whole cluster."""
    program = need(pytestconfig, "gitops-agent", "git", *SERVER)[0]
    with site(tmp_path_factory.mktemp("argo")) as here, argo(here, program) as clone:
        yield here, clone


@pytest.fixture
def running(started: tuple[Site, Clone]) -> Iterator[tuple[Site, Clone]]:
    """The same, with one policy in force at the start and none in the end."""
    here, clone = started
    clone.commit({"share.yaml": share(50)})
    here.eventually(lambda: here.offered() == 50_000, "the first commit decides")
    yield here, clone
    clone.commit({})
    here.eventually(lambda: here.offered() == BUILT_IN_SHARE, "the built-in pack decides alone again")


def test_a_commit_is_applied_and_decides(running: tuple[Site, Clone]) -> None:
    here, clone = running
    before = here.policy()
    assert before is not None
    assert MARK in before["metadata"]["annotations"]
    clone.commit({"share.yaml": share(40), "other.yaml": OTHER})
    here.eventually(lambda: here.offered() == 40_000, "the commit decides")
    here.eventually(
        lambda: conditions(here.policy("other")) == {"Ready": "True"}, "the second policy is ready"
    )
    after = here.policy()
    assert after is not None
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"] == {"resource": "batch", "parameters": {"cpuReclaim": "40%"}}
    assert LAST_APPLIED in after["metadata"]["annotations"]


def test_what_leaves_git_is_pruned(running: tuple[Site, Clone]) -> None:
    here, clone = running
    clone.commit({"other.yaml": OTHER})
    here.eventually(lambda: here.policy() is None, "the policy is pruned")
    here.eventually(lambda: here.offered() == BUILT_IN_SHARE, "the built-in pack decides again")
    assert here.policy("other") is not None


@pytest.mark.parametrize("drift", ["changed", "deleted"])
def test_drift_is_undone(running: tuple[Site, Clone], drift: str) -> None:
    here, _ = running
    before = here.policy()
    assert before is not None
    there = f"{POLICIES}/overcommits/share"
    if drift == "deleted":
        here.send("DELETE", there)
    else:
        here.send("PATCH", there, {"spec": {"parameters": {"cpuReclaim": "10%"}}})

    def healed() -> bool:
        now: dict[str, Any] = here.policy() or {"spec": None, "metadata": {}}
        return bool(now["spec"] == before["spec"] and now["metadata"] != before["metadata"])

    here.eventually(healed, "the object is as in Git")
    here.eventually(lambda: conditions(here.policy()) == {"Ready": "True"}, "it is ready")
    here.eventually(lambda: here.offered() == 50_000, "it decides")


def test_applying_again_changes_nothing(running: tuple[Site, Clone]) -> None:
    here, _ = running
    log = here.folder / "gitops-agent.log"

    def unchanged() -> bool:
        """Whether the agent looked three times, and the object is as it was."""
        before, rounds = here.policy(), log.read_text().count("triggered by timer")
        here.eventually(
            lambda: log.read_text().count("triggered by timer") >= rounds + 3, "the agent looked again"
        )
        return conditions(before) == {"Ready": "True"} and here.policy() == before

    # What an earlier test undid may still make a revision or two. If one side wrote what the other changes back, it
    # would never be quiet.
    here.eventually(unchanged, "neither side writes what the other changes back")


def test_health_is_told_by_the_shipped_script(
    running: tuple[Site, Clone], part: Callable[[str], Path]
) -> None:
    lua = part("lua")
    here, clone = running
    here.eventually(lambda: health(lua, here.policy())[0] == "Healthy", "the policy is healthy")
    new = {**(here.policy() or {}), "status": {}}
    assert health(lua, new)[0] == "Progressing"
    clone.commit({"share.yaml": BROKEN, "other.yaml": OTHER})
    here.eventually(lambda: health(lua, here.policy())[0] == "Degraded", "the broken policy is degraded")
    assert BROKEN_CODE in health(lua, here.policy())[1]
    assert health(lua, here.policy("other"))[0] == "Progressing", (
        "it waits for the other, and is not to blame"
    )
    assert here.offered() == 50_000, "the last good revision decides"
    clone.commit({"share.yaml": share(30), "other.yaml": OTHER})
    here.eventually(lambda: health(lua, here.policy())[0] == "Healthy", "the fix heals it")
    here.eventually(lambda: health(lua, here.policy("other"))[0] == "Healthy", "and the one that waited")
    here.eventually(lambda: here.offered() == 30_000, "the fix decides")
