"""PodGroups of Kubernetes' own on a real API server that has them: their pods are bound together, their condition says so."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.integration.scheduler.sites import Site, make_site
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

_GROUPS: Final = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
_SERVED: Final = ("--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true")


@pytest.fixture
def site(pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[Site]:
    """A server of its own: the others' does not serve these."""
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path / "server", arguments=_SERVED) as server:
        yield make_site(server.access, tmp_path)


def _group(site: Site, name: str, minimum: int) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    about = {"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup"}
    site.do("POST", _GROUPS, {**about, "metadata": {"name": name}, "spec": spec})
    for number in range(minimum):
        site.pod(f"{name}-{number}", "1", schedulingGroup={"podGroupName": name})


def _condition(site: Site, name: str) -> dict[str, Any]:
    conditions = site.do("GET", f"{_GROUPS}/{name}").get("status", {}).get("conditions", [])
    return next((one for one in conditions if one["type"] == "PodGroupScheduled"), {})


def test_a_group_is_bound_as_a_whole_and_says_how_it_stands(site: Site) -> None:
    site.node("n-0", {"cpu": "4", "memory": "8Gi", "pods": "20"})
    _group(site, "fits", 3)
    _group(site, "large", 5)
    with site.scheduler("s1", "--no-leader-elect"):
        site.eventually(lambda: _condition(site, "fits").get("status") == "True", "the one that fits is in")
        site.eventually(
            lambda: _condition(site, "large").get("status") == "False", "the other one says why not"
        )
        assert sorted(site.where()) == ["fits-0", "fits-1", "fits-2"]
        assert _condition(site, "large")["reason"] == "Unschedulable"
        assert "Insufficient cpu" in _condition(site, "large")["message"]
        site.node("n-1", {"cpu": "8", "memory": "8Gi", "pods": "20"})
        site.eventually(lambda: _condition(site, "large").get("status") == "True", "there is room now")
        assert len(site.where()) == 8
