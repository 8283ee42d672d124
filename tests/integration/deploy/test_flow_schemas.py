"""In which turn a real API server takes the requests of each component, by the FlowSchemas in `deploy/rbac`."""

import http.client
import ssl
import time

import pytest

from tests.parts.apiserver import SYSTEM_NAMESPACE, Access

API = "/apis/flowcontrol.apiserver.k8s.io/v1"
LEASES = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases"
PODS = "/api/v1/pods?limit=1"
PATIENCE = 30.0


def schema_of(access: Access, component: str, path: str) -> str:
    """The name of the FlowSchema by which the server took a component's GET, as the response's header tells."""
    context = ssl.create_default_context(cafile=str(access.authority))
    connection = http.client.HTTPSConnection("127.0.0.1", access.port, timeout=30, context=context)
    try:
        connection.request(
            "GET", path, headers={"Authorization": f"Bearer {access.token(f'koordpolicy-{component}')}"}
        )
        uid = connection.getresponse().headers["X-Kubernetes-PF-FlowSchema-UID"]
    finally:
        connection.close()
    status, listed = access.request("GET", f"{API}/flowschemas")
    assert status == 200
    (name,) = [one["metadata"]["name"] for one in listed["items"] if one["metadata"]["uid"] == uid]
    return str(name)


@pytest.mark.parametrize("component", ["scheduler", "manager", "descheduler", "yarn-operator"])
def test_leases_go_before_all_else_of_a_component(component: str, deployed: Access) -> None:
    end = time.monotonic() + PATIENCE  # the server takes up schemas a moment after it has stored them
    wanted = {
        f"{LEASES}/koordpolicy-{component}": "koordpolicy-leases",
        LEASES: "koordpolicy",
        PODS: "koordpolicy",
    }
    while (found := {path: schema_of(deployed, component, path) for path in wanted}) != wanted:
        assert time.monotonic() < end, found
        time.sleep(0.2)


def test_agents_stand_with_other_accounts(deployed: Access) -> None:
    assert schema_of(deployed, "agent", PODS) == "service-accounts"


def test_they_come_after_those_of_the_system_and_before_those_of_all_accounts(deployed: Access) -> None:
    items = deployed.request("GET", f"{API}/flowschemas")[1]["items"]
    specs = {one["metadata"]["name"]: one["spec"] for one in items}
    order = sorted(specs, key=lambda name: (specs[name]["matchingPrecedence"], name))
    before, after = order.index("koordpolicy-leases"), order.index("koordpolicy")
    assert order[before : after + 2] == ["koordpolicy-leases", "koordpolicy", "service-accounts"]
    assert specs["koordpolicy-leases"]["priorityLevelConfiguration"] == {"name": "leader-election"}
    assert specs["koordpolicy"]["priorityLevelConfiguration"] == {"name": "workload-high"}


def test_the_levels_are_there(deployed: Access) -> None:
    for name in ("koordpolicy-leases", "koordpolicy"):
        conditions = deployed.request("GET", f"{API}/flowschemas/{name}")[1]["status"].get("conditions", ())
        assert {one["type"]: one["status"] for one in conditions} == {"Dangling": "False"}
