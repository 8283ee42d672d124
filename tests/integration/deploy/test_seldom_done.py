"""What processes do seldom, done with the roles that are shipped: by their own code where it can be called alone, else by the same request."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from koordpolicy.descheduler.migration.evictors import EVICTORS
from koordpolicy.descheduler.migration.job import MigrationJob
from koordpolicy.descheduler.migration.workloads import WorkloadFinder
from koordpolicy.kube import Cluster, MergePatch, NotFound, Preconditions
from koordpolicy.kube.api import Connection, connect
from koordpolicy.kube.resources import (
    CLUSTER_NETWORK_TOPOLOGIES,
    CONFIG_MAPS,
    ELASTIC_QUOTAS,
    KUBERNETES_POD_GROUPS,
    LEASES,
    NODE_METRICS,
    NODE_SLOS,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_GROUPS,
    POD_MIGRATION_JOBS,
    PODS,
    POLICY_REVISIONS,
    RESERVATIONS,
    Resource,
)
from koordpolicy.manager.controllers.node_object import remove_after_node, write_spec
from koordpolicy.manager.native.keeping import KEEPER
from koordpolicy.manager.recommender.owners import Owners
from koordpolicy.model.pod import Owner, Pod, read_pod
from koordpolicy.model.protocol import SELECTED_NODE
from tests.parts.apiserver import SYSTEM_NAMESPACE, Access

CONTAINER = {"name": "one", "image": "none"}
TEMPLATE = {"metadata": {"labels": {"of": "test"}}, "spec": {"containers": [CONTAINER]}}
SELECTED = {"replicas": 0, "selector": {"matchLabels": {"of": "test"}}, "template": TEMPLATE}
JOB = {"template": {"spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}, "suspend": True}
OWNERS = {
    # kind -> where its objects are, and their spec
    "Deployment": ("/apis/apps/v1", "deployments", SELECTED),
    "ReplicaSet": ("/apis/apps/v1", "replicasets", SELECTED),
    "StatefulSet": ("/apis/apps/v1", "statefulsets", {**SELECTED, "serviceName": "one"}),
    "ReplicationController": ("/api/v1", "replicationcontrollers", {**SELECTED, "selector": {"of": "test"}}),
    "Job": ("/apis/batch/v1", "jobs", JOB),
}
REVISION = {"bundle": "seldom", "revision": "one", "digest": "sha256:" + "0" * 64}
MATCH = {"matchConstraints": {"resourceRules": [{"apiGroups": ["none"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["none"]}]}}  # fmt: skip
ADMISSION = {
    "validatingadmissionpolicies": {**MATCH, "validations": [{"expression": "true"}]},
    "validatingadmissionpolicybindings": {"policyName": "seldom", "validationActions": ["Warn"]},
    "mutatingadmissionpolicies": {
        **MATCH, "reinvocationPolicy": "Never",
        "mutations": [{"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "Object{}"}}],
    },
    "mutatingadmissionpolicybindings": {"policyName": "seldom"},
}  # fmt: skip


def made(access: Access, path: str, body: dict[str, Any]) -> dict[str, Any]:
    status, answer = access.request("POST", path, body)
    assert status == 201, answer
    return dict(answer)


def pod(access: Access, name: str) -> Pod:
    """A pod that nobody places: it goes at once when it is deleted."""
    body = {"metadata": {"name": name}, "spec": {"schedulerName": "nobody", "containers": [CONTAINER]}}
    return read_pod(made(access, "/api/v1/namespaces/default/pods", body))


def by(access: Access, component: str, act: Callable[[Cluster], Awaitable[Any]]) -> Any:
    """Do something with the role of a component."""

    async def done() -> Any:
        connection = Connection.load(str(access.kubeconfig(f"koordpolicy-{component}")))
        async with connect(connection, jitter=random.random, component="test") as cluster:
            return await act(cluster)

    return asyncio.run(done())


def of(resource: Resource, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        "spec": spec,
    }


def uid_of(obj: dict[str, Any]) -> str:
    return str(obj["metadata"]["uid"])


def test_agents_evict(deployed: Access) -> None:
    one = pod(deployed, "of-agent")
    by(
        deployed,
        "agent",
        lambda cluster: cluster.evict("default", one.name, preconditions=Preconditions(uid=one.uid)),
    )
    assert deployed.request("GET", f"/api/v1/namespaces/default/pods/{one.name}")[0] == 404


@pytest.mark.parametrize("evictor", EVICTORS)
def test_each_evictor_of_the_descheduler(deployed: Access, evictor: str) -> None:
    one = pod(deployed, f"of-{evictor.lower()}")
    job = MigrationJob(name="seldom", uid="seldom", pod=one.key, raw={})
    by(deployed, "descheduler", lambda cluster: EVICTORS[evictor](cluster, one, job, 0))
    status, found = deployed.request("GET", f"/api/v1/namespaces/default/pods/{one.name}")
    assert status == (200 if evictor == "SoftEviction" else 404)
    assert evictor != "SoftEviction" or found["metadata"]["annotations"]


@pytest.mark.parametrize("kind", OWNERS)
def test_the_descheduler_knows_how_many_replicas_there_are_to_be(deployed: Access, kind: str) -> None:
    base, plural, spec = OWNERS[kind]
    body = {"metadata": {"name": "seldom"}, "spec": spec}
    owner = made(deployed, f"{base}/namespaces/default/{plural}", body)
    api_version = base.removeprefix("/apis/").removeprefix("/api/")
    if kind == "Deployment":  # it is known by the ReplicaSets that it controls
        above = {
            "apiVersion": api_version,
            "kind": kind,
            "name": "seldom",
            "uid": uid_of(owner),
            "controller": True,
        }
        body = {"metadata": {"name": "of-deployment", "ownerReferences": [above]}, "spec": SELECTED}
        owner, kind = made(deployed, f"{base}/namespaces/default/replicasets", body), "ReplicaSet"
    named = Owner(kind, owner["metadata"]["name"], uid_of(owner), controller=True, api_version=api_version)
    finder = lambda cluster: WorkloadFinder(cluster, lambda: 0.0).of("default", named)  # noqa: E731
    assert by(deployed, "descheduler", finder).replicas is not None


def test_the_descheduler_asks_which_kinds_have_a_scale(deployed: Access) -> None:
    named = Owner("Nothing", "none", "none", controller=True, api_version="example.com/v1")
    finder = lambda cluster: WorkloadFinder(cluster, lambda: 0.0).of("default", named)  # noqa: E731
    assert by(deployed, "descheduler", finder).replicas is None


@pytest.mark.parametrize("component", ["descheduler", "scheduler"])
def test_gangs_of_kubernetes_itself_are_followed_where_a_server_has_them(
    deployed: Access, component: str
) -> None:
    async def follow(cluster: Cluster) -> None:
        async with cluster.watch(KUBERNETES_POD_GROUPS, resource_version="1") as events:
            await anext(aiter(events))

    with pytest.raises(NotFound):  # this one has none; without the right it would say Forbidden
        by(deployed, component, follow)


@pytest.mark.parametrize(
    ("component", "resource", "path", "spec"),
    [
        ("descheduler", POD_MIGRATION_JOBS, "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs", {"podRef": {"namespace": "default", "name": "none"}}),
        ("descheduler", RESERVATIONS, "/apis/scheduling.koordinator.sh/v1alpha1/reservations", {"template": TEMPLATE, "owners": [{"object": {"name": "none"}}]}),
        ("scheduler", RESERVATIONS, "/apis/scheduling.koordinator.sh/v1alpha1/reservations", {"template": TEMPLATE, "owners": [{"object": {"name": "none"}}]}),
        ("scheduler", POLICY_REVISIONS, "/apis/koordpolicy.io/v1alpha1/policyrevisions", REVISION),
        ("manager", POLICY_REVISIONS, "/apis/koordpolicy.io/v1alpha1/policyrevisions", REVISION),
    ],
    ids=lambda value: str(value) if isinstance(value, Resource | str) else "",
)  # fmt: skip
def test_what_is_over_is_taken_away(
    deployed: Access, component: str, resource: Resource, path: str, spec: dict[str, Any]
) -> None:
    uid = uid_of(made(deployed, path, of(resource, f"over-{component}", spec)))
    gone = Preconditions(uid=uid)
    by(deployed, component, lambda cluster: cluster.delete(resource, f"over-{component}", preconditions=gone))
    assert deployed.request("GET", f"{path}/over-{component}")[0] == 404


@pytest.mark.parametrize("resource", [NODE_METRICS, NODE_SLOS], ids=str)
def test_what_is_kept_for_a_node_goes_after_it(deployed: Access, resource: Resource) -> None:
    path = f"/apis/slo.koordinator.sh/v1alpha1/{resource.plural}"
    made(deployed, path, of(resource, "gone", {}))
    assert by(deployed, "manager", lambda cluster: remove_after_node(cluster, resource, "gone"))
    assert deployed.request("GET", f"{path}/gone")[0] == 404


def test_the_manager_reads_quotas_again_and_takes_old_revisions_for_agents_away(deployed: Access) -> None:
    quota = of(ELASTIC_QUOTAS, "seldom", {"min": {}, "max": {}})
    made(deployed, "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/elasticquotas", quota)
    assert by(deployed, "manager", lambda cluster: cluster.get(ELASTIC_QUOTAS, "seldom", namespace="default"))
    maps = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/configmaps"
    made(deployed, maps, {"metadata": {"name": "koordpolicy-agents-old"}})
    old = lambda cluster: cluster.delete(CONFIG_MAPS, "koordpolicy-agents-old", namespace=SYSTEM_NAMESPACE)  # noqa: E731
    by(deployed, "manager", old)
    assert deployed.request("GET", f"{maps}/koordpolicy-agents-old")[0] == 404


@pytest.mark.parametrize("kind", ["Job", "ReplicaSet"])
def test_the_recommender_asks_who_controls_a_controller(deployed: Access, kind: str) -> None:
    base, plural, spec = OWNERS[kind]
    made(deployed, f"{base}/namespaces/default/{plural}", {"metadata": {"name": "asked"}, "spec": spec})
    asked = lambda cluster: Owners(lambda _: None).look_up(cluster, f"default/{kind}/asked")  # noqa: E731
    assert by(deployed, "manager", asked) is False


@pytest.mark.parametrize("plural", ADMISSION)
def test_what_api_servers_decide_by_themselves_is_changed(deployed: Access, plural: str) -> None:
    path = f"/apis/admissionregistration.k8s.io/v1/{plural}"
    body = {
        "metadata": {"name": "seldom", "labels": {"app.kubernetes.io/managed-by": KEEPER}},
        "spec": ADMISSION[plural],
    }
    found = made(deployed, path, body)
    resource = Resource("admissionregistration.k8s.io", "v1", plural, found["kind"], namespaced=False)
    found["metadata"]["labels"]["changed"] = "yes"
    assert by(deployed, "manager", lambda cluster: cluster.update(resource, found))


def test_the_scheduler_binds_volumes_and_reads_pods(deployed: Access) -> None:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/none"},
    }
    made(deployed, "/api/v1/persistentvolumes", {"metadata": {"name": "seldom"}, "spec": spec})
    assert by(deployed, "scheduler", lambda cluster: cluster.get(PERSISTENT_VOLUMES, "seldom"))
    patch = MergePatch({"metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}}})
    assert by(deployed, "scheduler", lambda cluster: cluster.patch(PERSISTENT_VOLUMES, "seldom", patch))
    pod(deployed, "of-extender")  # what an extender that binds reads first
    assert by(deployed, "scheduler", lambda cluster: cluster.get(PODS, "of-extender", namespace="default"))


def test_the_scheduler_sends_pods_away_for_others(deployed: Access) -> None:
    one = pod(deployed, "victim")
    gone = Preconditions(uid=one.uid)
    by(
        deployed,
        "scheduler",
        lambda cluster: cluster.delete(PODS, one.name, namespace="default", preconditions=gone),
    )
    assert deployed.request("GET", f"/api/v1/namespaces/default/pods/{one.name}")[0] == 404


def test_the_scheduler_selects_nodes_for_claims(deployed: Access) -> None:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    path = "/api/v1/namespaces/default/persistentvolumeclaims"
    made(deployed, path, {"metadata": {"name": "seldom"}, "spec": spec})

    async def select(cluster: Cluster) -> None:
        found = await cluster.get(PERSISTENT_VOLUME_CLAIMS, "seldom", namespace="default")
        version = found["metadata"]["resourceVersion"]
        patch = MergePatch({"metadata": {"resourceVersion": version, "annotations": {SELECTED_NODE: "none"}}})
        await cluster.patch(PERSISTENT_VOLUME_CLAIMS, "seldom", patch, namespace="default")

    by(deployed, "scheduler", select)
    assert deployed.request("GET", f"{path}/seldom")[1]["metadata"]["annotations"] == {SELECTED_NODE: "none"}


def test_the_scheduler_makes_quotas_that_are_always_there(deployed: Access) -> None:
    quota = of(ELASTIC_QUOTAS, "always", {"max": {"cpu": "1"}})
    assert by(
        deployed, "scheduler", lambda cluster: cluster.create(ELASTIC_QUOTAS, quota, namespace="default")
    )


@pytest.mark.parametrize(
    ("resource", "path", "spec", "subresource"),
    [
        (POD_GROUPS, "/apis/scheduling.sigs.k8s.io/v1alpha1/namespaces/default/podgroups", {"minMember": 1}, ""),
        (CLUSTER_NETWORK_TOPOLOGIES, "/apis/scheduling.koordinator.sh/v1alpha1/clusternetworktopologies", {"networkTopologySpec": [{"topologyLayer": "NodeTopologyLayer"}]}, "status"),
    ],
    ids=str,
)  # fmt: skip
def test_the_scheduler_says_how_it_stands(
    deployed: Access, resource: Resource, path: str, spec: dict[str, Any], subresource: str
) -> None:
    status: dict[str, Any] = {"detailStatus": []} if subresource else {"phase": "Pending"}
    made(deployed, path, of(resource, "told", spec))
    where = {"namespace": "default"} if resource.namespaced else {}
    told = lambda cluster: cluster.patch(resource, "told", MergePatch({"status": status}), subresource=subresource, **where)  # noqa: E731  # fmt: skip
    by(deployed, "scheduler", told)
    assert deployed.request("GET", f"{path}/told")[1]["status"] == status


def test_the_manager_asks_for_other_measurements(deployed: Access) -> None:
    path = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
    made(deployed, path, of(NODE_METRICS, "asked", {}))
    wanted = {"metricCollectPolicy": {"reportIntervalSeconds": 60}}
    by(deployed, "manager", lambda cluster: write_spec(cluster, NODE_METRICS, "asked", wanted, wanted))
    assert deployed.request("GET", f"{path}/asked")[1]["spec"] == wanted


def test_who_ends_takes_its_lease_away(deployed: Access) -> None:
    leases = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases"
    made(deployed, leases, {"metadata": {"name": "ended"}, "spec": {"holderIdentity": "one"}})
    by(deployed, "scheduler", lambda cluster: cluster.delete(LEASES, "ended", namespace=SYSTEM_NAMESPACE))
    assert deployed.request("GET", f"{leases}/ended")[0] == 404
