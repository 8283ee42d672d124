"""A Reservation on a real API server: it bridges a restart of its owner, whatever else wants the room, and kills of the scheduler."""

import json
from typing import Any

import pytest

from koordpolicy.model.cpuset import parse_cpuset
from koordpolicy.model.protocol import QOS_CLASS, RESOURCE_STATUS
from tests.integration.scheduler.sites import Site
from tests.integration.scheduler.test_cpus import machine

PATH = "/apis/scheduling.koordinator.sh/v1alpha1/reservations"
ALLOCATED = "scheduling.koordinator.sh/reservation-allocated"


def _create(site: Site, name: str, cpu: str, **spec: Any) -> None:
    container = {"name": "main", "image": "pause", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    template = {"spec": {"schedulerName": "koord-scheduler", "containers": [container]}}
    owners = [{"labelSelector": {"matchLabels": {"app": name}}}]
    body = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "Reservation",
        "metadata": {"name": name},
        "spec": {"template": template, "owners": owners, "ttl": "1h", **spec},
    }
    site.do("DELETE", f"{PATH}/{name}", also=404)
    site.do("POST", PATH, body)


def _status(site: Site, name: str) -> dict[str, Any]:
    return dict(site.do("GET", f"{PATH}/{name}").get("status", {}))


def _owner(site: Site, name: str, cpu: str) -> None:
    site.pod(name, cpu, metadata={"labels": {"app": "web"}}, terminationGracePeriodSeconds=0)


def _owners(site: Site) -> list[str]:
    return [one["name"] for one in _status(site, "web").get("currentOwners", [])]


def test_a_reservation_bridges_a_restart_of_its_owner(site: Site) -> None:
    site.node("only")
    _create(site, "web", "2", allocateOnce=False)
    with site.scheduler("s1", "--no-leader-elect") as first:
        site.eventually(lambda: _status(site, "web").get("phase") == "Available", "it has a node")
        assert _status(site, "web")["nodeName"] == "only"
        _owner(site, "before", "2")
        site.eventually(lambda: "before" in site.where(), "its owner takes from it")
        written = json.loads(site.pods()["before"]["metadata"]["annotations"][ALLOCATED])
        assert written["name"] == "web"
        site.eventually(lambda: _owners(site) == ["before"], "its status names the owner")
        for number in range(8):
            site.pod(f"stranger-{number}", "1", terminationGracePeriodSeconds=0)
        site.eventually(
            lambda: (
                all("Insufficient cpu" in site.refusal(name)[1] for name in site.waiting()) and site.waiting()
            ),
            "others take what is left, and no more",
        )
        strangers = set(site.waiting())
        site.gone("before")
        site.eventually(lambda: _owners(site) == [], "nobody owns it now")
        assert strangers <= set(site.waiting()), "what is kept is not theirs"
        first.running.kill()
    with site.scheduler("s2", "--no-leader-elect"):
        # One that starts knows whose room it is.
        _owner(site, "after", "2")
        site.eventually(lambda: "after" in site.where(), "the owner is back in its place")
        site.eventually(lambda: _owners(site) == ["after"], "and stands in the status")
        assert strangers <= set(site.waiting())
        site.do("DELETE", f"{PATH}/web")
        site.gone("after")
        site.eventually(lambda: len(strangers - set(site.where())) < len(strangers), "what was kept is free")


def _cpus(obj: Any) -> frozenset[int]:
    said = obj["metadata"].get("annotations", {}).get(RESOURCE_STATUS, "{}")
    return parse_cpuset(json.loads(said).get("cpuset", ""))


def _own(site: Site, name: str, app: str) -> None:
    labels = {QOS_CLASS: "LSR", "app": app}
    site.pod(
        name, "2", metadata={"labels": labels}, priorityClassName="important", terminationGracePeriodSeconds=0
    )


@pytest.mark.soak
def test_killed_again_and_again_owners_have_the_cpus_that_are_kept(site: Site) -> None:
    machine(site, "a", zones=1)
    template = {
        "metadata": {"labels": {QOS_CLASS: "LSR"}},
        "spec": {
            "schedulerName": "koord-scheduler",
            "priority": 9500,
            "containers": [{"name": "main", "image": "pause", "resources": {"requests": {"cpu": "4"}}}],
        },
    }
    _create(site, "web", "4", template=template, allocateOnce=False)
    for at, app in enumerate(("web", "other", "web")):
        with site.scheduler(f"s{at}", "--no-leader-elect") as scheduler:
            if at == 0:
                site.eventually(lambda: _status(site, "web").get("phase") == "Available", "it has a node")
            before = len(site.where())
            _own(site, f"{app}-{at}", app)
            site.eventually(lambda before=before: len(site.where()) > before, "it is bound")  # type: ignore[misc]  # the default is the value
            scheduler.running.kill()
    kept = _cpus(site.do("GET", f"{PATH}/web"))
    assert len(kept) == 4
    with site.scheduler("last", "--no-leader-elect"):
        _own(site, "other-3", "other")
        site.eventually(lambda: not site.waiting(), "all have CPUs")
        has = {name: _cpus(pod) for name, pod in site.pods().items()}
        assert sorted(cpu for cpus in has.values() for cpu in cpus) == list(range(8)), (
            "each has two of its own"
        )
        assert has["web-0"] | has["web-2"] == kept
        _own(site, "other-4", "other")
        site.eventually(lambda: site.refusal("other-4")[1] != "", "no CPU is left for others")
        site.gone("web-0")
        _own(site, "web-5", "web")
        site.eventually(lambda: "web-5" in site.where(), "the next owner has its place")
        assert _cpus(site.pods()["web-5"]) == has["web-0"]
        assert set(site.waiting()) == {"other-4"}
