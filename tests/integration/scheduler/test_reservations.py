"""A Reservation on a real API server: it bridges a restart of its owner, whatever else wants the room, and of the scheduler."""

import json
from typing import Any

from tests.integration.scheduler.sites import Site

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
    with site.scheduler("s1", "--no-leader-elect"):
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
    with site.scheduler("s2", "--no-leader-elect"):
        # One that starts knows whose room it is.
        _owner(site, "after", "2")
        site.eventually(lambda: "after" in site.where(), "the owner is back in its place")
        site.eventually(lambda: _owners(site) == ["after"], "and stands in the status")
        assert strangers <= set(site.waiting())
        site.do("DELETE", f"{PATH}/web")
        site.gone("after")
        site.eventually(lambda: len(strangers - set(site.where())) < len(strangers), "what was kept is free")
