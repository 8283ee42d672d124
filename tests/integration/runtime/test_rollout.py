"""A rollout in a cluster: managers with their shipped role, a real API server, and the command that people use."""

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.integration.runtime.managers import Site, make_site, share
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

ROLLOUT = """\
apiVersion: koordpolicy.io/v1alpha1
kind: Rollout
metadata: {name: careful}
spec:
  every: 1s
  steps:
    - {name: shadow, shadow: {}, untilResumed: true}
    - {name: elsewhere, canary: {share: 5%}, hold: 1s}
    - {name: here, canary: {share: 50%}, untilResumed: true}
"""
"""The only node stands at 21 % of all, by its name."""


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("rollouts")) as server:
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> Site:
    made = make_site(server.access, tmp_path)
    made.write("rollout.yaml", ROLLOUT)
    return made


def rollout(site: Site, *arguments: str) -> tuple[int, str]:
    """The command as a person runs it."""
    out = io.StringIO()
    code = main(["rollout", *arguments, "--kubeconfig", str(site.access.kubeconfig())], Terminal(out, out))
    return code, out.getvalue()


def standing(site: Site) -> dict[str, Any]:
    """The newest rollout as data; empty before the first."""
    code, text = rollout(site, "status", "--output", "json")
    assert code == 0, text
    found = json.loads(text)
    return found[0] if found else {}


def is_at(site: Site, step: str, phase: str) -> bool:
    now = standing(site)
    return (now.get("stepName"), now.get("phase")) == (step, phase)


def test_a_revision_goes_live_step_by_step_and_people_have_a_hand_on_it(site: Site) -> None:
    with site.manager("m1") as first, site.manager("m2") as second:
        site.eventually(lambda: site.offered() == 60_000, "the pack decides")
        leader, standby = (first, second) if first.leads else (second, first)
        site.write("share.yaml", share(30))
        site.eventually(lambda: is_at(site, "shadow", "Paused"), "it is in the shadow")
        told = standing(site)

        def differences() -> int:
            return int(standing(site)["kinds"].get("Overcommit", {}).get("different", 0))

        site.eventually(lambda: differences() > 0, "what the leader decides both are asked")
        assert site.offered() == 60_000
        code, text = rollout(site, "resume")
        assert (code, "asked to resume" in text) == (0, True), text
        site.eventually(lambda: is_at(site, "here", "Paused"), "the node is a canary")
        site.eventually(lambda: site.offered() == 30_000, "the new revision decides about it")
        active = [manager.status["policies"]["active"]["digest"] for manager in (first, second)]
        assert len(set(active)) == 1, "both still run the old one"
        leader.running.kill()
        site.eventually(lambda: standby.leads, "the standby takes over in the middle")
        assert is_at(site, "here", "Paused")
        site.eventually(lambda: site.offered() == 30_000, "and decides alike")
        code, text = rollout(
            site, "status", told["revision"][7:15] if ":" in told["revision"] else told["name"]
        )
        assert code == 0, text
        assert "goes on with the step `here`" in text
        rollout(site, "resume")
        site.eventually(lambda: standing(site).get("phase") == "Complete", "the rollout is over")
        history = [(entry["event"], entry["by"]) for entry in standing(site)["history"]]
        assert [event for event, _ in history] == [
            "Started", "Paused", "Resumed", "Step", "Step", "Paused", "Resumed", "Completed",
        ]  # fmt: skip
        assert history[2][1] != "koordpolicy", "whoever resumed it is named"
        digest = standing(site)["digest"]
        site.eventually(
            lambda: standby.status["policies"]["active"]["digest"] == digest, "the standby runs it"
        )
        _, events = site.access.request("GET", "/api/v1/namespaces/default/events")
        reasons = {event["reason"] for event in events["items"]}
        assert {"RolloutStarted", "RolloutStep", "RolloutPaused", "RolloutCompleted"} <= reasons


@pytest.mark.soak
def test_an_aborted_revision_goes_nowhere_and_a_fix_begins_anew(site: Site) -> None:
    with site.manager("m1") as manager:
        site.eventually(lambda: site.offered() == 60_000, "the pack decides")
        site.write("share.yaml", share(30))
        site.eventually(lambda: is_at(site, "shadow", "Paused"), "it is in the shadow")
        rollout(site, "resume")
        site.eventually(lambda: site.offered() == 30_000, "the node is a canary")
        name = standing(site)["name"]
        path = f"/apis/koordpolicy.io/v1alpha1/policyrevisions/{name}"
        status, answer = site.access.request(
            "PATCH", path, {"metadata": {"annotations": {"koordpolicy.io/rollout": "abort"}}}
        )
        assert status == 200, answer
        site.eventually(lambda: site.offered() == 60_000, "the old revision decides again")
        site.eventually(lambda: standing(site)["phase"] == "Aborted", "the rollout is over")
        code, text = rollout(site, "status", name)
        assert (code, "aborted" in text) == (1, True)
        assert manager.status["policies"]["rejected"]["reason"] == "Aborted"
        assert rollout(site, "pause")[0] == 2
        site.write("share.yaml", share(40))
        site.eventually(lambda: is_at(site, "shadow", "Paused"), "the fix is on its way")
        assert standing(site)["name"] != name
