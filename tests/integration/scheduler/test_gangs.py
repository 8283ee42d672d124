"""Gangs on a real API server: whole or absent, over kills of the scheduler, and what their PodGroups say of it."""

import json
import time
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.integration.scheduler.sites import Site

_GROUPS: Final = "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups"
_LABEL: Final = "pod-group.scheduling.sigs.k8s.io"
_SIZES: Final = (4, 7, 3, 6, 2, 8, 5, 4, 3, 6, 7, 2)
"""Pods of each gang: 57 in all."""
_KILLS: Final = 4


def _gang(site: Site, name: str, size: int) -> None:
    site.do(
        "POST", _GROUPS,
        {
            "apiVersion": "scheduling.sigs.k8s.io/v1alpha1", "kind": "PodGroup",
            "metadata": {"name": name}, "spec": {"minMember": size},
        },
    )  # fmt: skip
    for number in range(size):
        site.pod(f"{name}-{number}", "1", metadata={"labels": {_LABEL: name}})


def _bound(site: Site) -> Counter[str]:
    """How many pods of each gang are bound, at one moment."""
    return Counter(name.rpartition("-")[0] for name in site.where())


def _in_part(site: Site, sizes: Mapping[str, int]) -> list[str]:
    return [name for name, count in _bound(site).items() if count < sizes[name]]


def _status(site: Site) -> dict[str, dict[str, Any]]:
    return {one["metadata"]["name"]: one.get("status", {}) for one in site.do("GET", _GROUPS)["items"]}


@pytest.mark.soak
def test_killed_again_and_again_every_gang_is_whole_or_absent(site: Site) -> None:
    site.do("DELETE", _GROUPS)
    for number in range(5):
        site.node(f"n-{number}", {"cpu": "8", "memory": "64Gi", "pods": "60"})
    sizes = {f"g{number}": size for number, size in enumerate(_SIZES)}
    for name, size in sizes.items():
        _gang(site, name, size)
    for _ in range(_KILLS):
        with site.scheduler("s1", "--no-leader-elect", ready=False) as scheduler:
            before = sum(_bound(site).values())
            site.eventually(lambda than=before: _works(site, than), "it works")  # type: ignore[misc]
            scheduler.running.kill()
        # Nobody writes now. What is bound in part has its room until somebody goes on.
        left = _in_part(site, sizes)
        site.check_capacity()
        with site.scheduler("s1", "--no-leader-elect") as scheduler:
            site.eventually(lambda: not _in_part(site, sizes), "what was begun is finished")
            assert all(_bound(site)[name] == sizes[name] for name in left)
            scheduler.running.kill()
    with site.scheduler("s1", "--no-leader-elect"):
        site.eventually(
            lambda: all(site.refusal(name)[0] for name in site.waiting()), "the others are told why"
        )
        site.eventually(lambda: _rests(site), "it comes to rest")
        found = _bound(site)
        assert all(count == sizes[name] for name, count in found.items()), "whole or absent"
        absent = [size for name, size in sizes.items() if name not in found]
        assert min(absent) > 40 - sum(found.values()), "whoever fits is in"
        site.eventually(
            lambda: all(
                _status(site)[name].get("phase") == ("Scheduled" if name in found else "Scheduling")
                for name in sizes
            ),
            "PodGroups say so",
        )
        # One that ends makes room for another one, as a whole.
        gone = next(name for name in found if sizes[name] >= min(absent))
        for number in range(sizes[gone]):
            site.gone(f"{gone}-{number}")
        site.eventually(lambda: len(set(_bound(site)) - set(found)) > 0, "the room is taken", 60)
        site.eventually(lambda: not _in_part(site, sizes), "as a whole")
        site.eventually(
            lambda: _status(site)[gone].get("phase") == "Pending", "and told of the one that is gone"
        )
    site.check_capacity()


def test_a_gang_displaces_others_as_a_whole(site: Site) -> None:
    site.do("DELETE", _GROUPS)
    policy = {"spec": {"parameters": {"enablePreemption": {"value": True}}}, "metadata": {"name": "own"}}
    head = {"apiVersion": "koordpolicy.io/v1alpha1", "kind": "GangScheduling"}
    site.write("gangs.yaml", json.dumps({**head, **policy}))
    for number in range(2):
        site.node(f"n-{number}", {"cpu": "2", "memory": "64Gi", "pods": "60"})
    with site.scheduler("s1", "--no-leader-elect") as scheduler:
        for number in range(2):
            site.pod(f"low-{number}", "1500m")
        site.eventually(lambda: len(site.where()) == 2, "the nodes are taken")
        group = {
            "apiVersion": "scheduling.sigs.k8s.io/v1alpha1",
            "kind": "PodGroup",
            "metadata": {"name": "g"},
        }
        site.do("POST", _GROUPS, {**group, "spec": {"minMember": 2}})
        for number in range(2):
            labels = {"labels": {_LABEL: "g"}}
            site.pod(f"g-{number}", "1500m", priorityClassName="important", metadata=labels)

        def leaving() -> set[str]:
            found = site.pods()
            return {
                name
                for name in ("low-0", "low-1")
                if name not in found or "deletionTimestamp" in found[name]["metadata"]
            }

        site.eventually(lambda: leaving() == {"low-0", "low-1"}, "both have to go")
        nominated = [site.pods()[f"g-{number}"]["status"].get("nominatedNodeName") for number in range(2)]
        assert sorted(map(str, nominated)) == ["n-0", "n-1"]
        site.gone("low-0")
        time.sleep(1.0)
        assert not _bound(site)["g"], "nobody is bound before all have gone"
        site.gone("low-1")
        site.eventually(lambda: _bound(site)["g"] == 2, "the gang has its places")
        written = [site.pods()[f"g-{number}"]["metadata"]["annotations"] for number in range(2)]
        for one in written:
            assert one["internal.scheduling.koordinator.sh/bind-gang-group-id"] == "default/g"
            assert one["internal.scheduling.koordinator.sh/bind-gang-member-count"] == "2"
        told = [about for about, reason, _, _ in site.events() if reason == "Preempted"]
        assert len(told) == 2
        counted = 'scheduler_job_preemption_duration_seconds_count{result="success"}'
        site.eventually(lambda: scheduler.metric(counted) >= 1, "it is counted")
        assert scheduler.metric("scheduler_waiting_gang_group_number") == 0
    site.check_capacity()


def _works(site: Site, than: int) -> bool:
    """Whether more is bound than before, or nothing more fits."""
    return sum(_bound(site).values()) > than or not site.waiting() or _rests(site)


def _rests(site: Site) -> bool:
    """Whether nothing is bound for a moment, and all that wait were told why."""
    before = _bound(site)
    time.sleep(1.0)
    return _bound(site) == before and all(site.refusal(name)[0] for name in site.waiting())
