"""Policies as objects, applied by Flux's real kustomize-controller that waits for their health."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.integration.gitops.flux import Flux, flux
from tests.integration.gitops.site import (
    BROKEN,
    BROKEN_CODE,
    BUILT_IN_SHARE,
    SERVER,
    Site,
    conditions,
    message,
    policy,
    share,
    site,
)
from tests.parts.fixtures import need

FILE = "policies/share.yaml"


@pytest.fixture(scope="module")
def running(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flux]:
    """The controller on a cluster of this file's own: policies apply to a whole cluster."""
    program = need(pytestconfig, "kustomize-controller", *SERVER)[0]
    with site(tmp_path_factory.mktemp("flux")) as here, flux(here, program) as controller:
        yield controller


@contextmanager
def source(running: Flux, name: str) -> Iterator[tuple[Flux, Site]]:
    """A source that is taken away in the end, with what was applied from it."""
    try:
        yield running, running.site
    finally:
        running.forget(name)
    here = running.site
    here.eventually(lambda: here.offered() == BUILT_IN_SHARE, "the built-in pack decides alone again")


def is_ready(flux: Flux, name: str, revision: str) -> bool:
    found = flux.kustomization(name)
    return (
        conditions(found).get("Ready") == "True"
        and (found or {})["status"]["lastAppliedRevision"] == revision
    )


def has_failed(flux: Flux, name: str, revision: str) -> bool:
    """Whether the controller has given up on that revision; it would wait for two minutes."""
    status = (flux.kustomization(name) or {}).get("status", {})
    ready = [one["status"] for one in status.get("conditions", ()) if one["type"] == "Ready"]
    return ready == ["False"] and status.get("lastAttemptedRevision") == revision


def test_policies_that_compile_are_ready_and_decide(running: Flux) -> None:
    with source(running, "good") as (flux, here):
        revision = flux.publish("good", {FILE: share(50)})
        flux.reconcile("good")
        here.eventually(lambda: is_ready(flux, "good", revision), "the Kustomization is ready")
        applied = here.policy()
        assert conditions(applied) == {"Ready": "True"}
        assert applied is not None
        assert {
            entry["manager"] for entry in applied["metadata"]["managedFields"] if not entry.get("subresource")
        } == {"kustomize-controller"}
        assert applied["spec"] == {"resource": "batch", "parameters": {"cpuReclaim": "50%"}}
        here.eventually(lambda: here.offered() == 50_000, "the node offers half")
        revision = flux.publish("good", {FILE: share(40)})
        here.eventually(lambda: is_ready(flux, "good", revision), "the next commit is ready")
        here.eventually(lambda: here.offered() == 40_000, "the next commit decides")


def test_a_policy_that_does_not_compile_fails_at_once_with_its_diagnostic(running: Flux) -> None:
    with source(running, "broken") as (flux, here):
        revision = flux.publish("broken", {FILE: share(50)})
        flux.reconcile("broken")
        here.eventually(lambda: is_ready(flux, "broken", revision), "the Kustomization is ready")
        revision = flux.publish("broken", {FILE: BROKEN})
        here.eventually(lambda: has_failed(flux, "broken", revision), "the Kustomization has failed")
        told = message(flux.kustomization("broken"), "Ready")
        assert "failed early due to stalled resources: [Overcommit/share status: 'Failed']" in told
        stalled = here.policy()
        assert conditions(stalled) == {"Ready": "False", "Stalled": "True"}
        assert BROKEN_CODE in message(stalled, "Stalled")
        assert "noSuchParameter" in message(stalled, "Stalled")
        assert here.offered() == 50_000, "the last good revision decides"
        revision = flux.publish("broken", {FILE: share(30)})
        here.eventually(lambda: is_ready(flux, "broken", revision), "the fix heals it")
        assert conditions(here.policy()) == {"Ready": "True"}
        here.eventually(lambda: here.offered() == 30_000, "the fix decides")


def test_the_very_first_commit_may_be_broken(running: Flux) -> None:
    with source(running, "first") as (flux, here):
        good = policy("margin", "parameters: {memoryReclaim: 50%}")
        revision = flux.publish("first", {FILE: BROKEN, "policies/margin.yaml": good})
        flux.reconcile("first")
        here.eventually(lambda: has_failed(flux, "first", revision), "the Kustomization has failed")
        assert conditions(here.policy()) == {"Ready": "False", "Stalled": "True"}
        assert "Stalled" not in conditions(here.policy("margin")), "who is innocent is not blamed"
        assert here.offered() == BUILT_IN_SHARE
        revision = flux.publish("first", {FILE: share(20), "policies/margin.yaml": good})
        here.eventually(lambda: is_ready(flux, "first", revision), "the fix heals it")
        here.eventually(lambda: here.offered() == 20_000, "the fix decides")


def test_what_leaves_git_decides_no_more(running: Flux) -> None:
    with source(running, "pruned") as (flux, here):
        files = {FILE: share(50), "policies/other.yaml": policy("other", "parameters: {memoryReclaim: 50%}")}
        revision = flux.publish("pruned", files)
        flux.reconcile("pruned")
        here.eventually(lambda: is_ready(flux, "pruned", revision), "the Kustomization is ready")
        here.eventually(lambda: here.offered() == 50_000, "the node offers half")
        del files[FILE]
        revision = flux.publish("pruned", files)
        here.eventually(lambda: is_ready(flux, "pruned", revision), "the next commit is ready")
        assert here.policy() is None
        here.eventually(lambda: here.offered() == BUILT_IN_SHARE, "the node offers what the pack says")
        assert conditions(here.policy("other")) == {"Ready": "True"}


def test_what_the_api_server_refuses_is_told_and_changes_nothing(running: Flux) -> None:
    with source(running, "refused") as (flux, here):
        revision = flux.publish(
            "refused", {FILE: share(50), "policies/bad.yaml": policy("bad", "noSuchField: {}")}
        )
        flux.reconcile("refused")
        here.eventually(lambda: has_failed(flux, "refused", revision), "the Kustomization has failed")
        assert "noSuchField" in message(flux.kustomization("refused"), "Ready")
        assert here.policy() is None
        assert here.offered() == BUILT_IN_SHARE
