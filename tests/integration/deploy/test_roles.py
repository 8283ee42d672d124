"""What each component may and may not do, asked of a real API server with the roles in `deploy/rbac`."""

from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.parts.apiserver import SYSTEM_NAMESPACE, Access
from tests.parts.deployed import manifests

ALL = ("scheduler", "manager", "agent", "descheduler", "yarn-operator")
ELECTED = ("scheduler", "manager", "descheduler", "yarn-operator")
NONE: tuple[str, ...] = ()

CASES: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    # verb, resource[/subresource], namespace ("" for the cluster), who may
    ("list", "overcommits.koordpolicy.io", "", ALL),
    ("update", "overcommits.koordpolicy.io", "", NONE),
    ("create", "overcommits.koordpolicy.io", "", NONE),
    ("delete", "overcommits.koordpolicy.io", "", NONE),
    ("patch", "overcommits.koordpolicy.io/status", "", ("manager",)),
    ("create", "policyrevisions.koordpolicy.io", "", ALL),
    ("patch", "policyrevisions.koordpolicy.io/status", "", ALL),
    ("delete", "policyrevisions.koordpolicy.io", "", ("scheduler", "manager")),
    ("create", "events", "default", ALL),
    ("create", "leases.coordination.k8s.io", SYSTEM_NAMESPACE, ELECTED),
    ("list", "leases.coordination.k8s.io", SYSTEM_NAMESPACE, ELECTED),
    ("delete", "leases.coordination.k8s.io", SYSTEM_NAMESPACE, ELECTED),
    ("list", "leases.coordination.k8s.io", "kube-system", NONE),
    ("update", "leases.coordination.k8s.io", "kube-system", NONE),
    ("list", "pods", "", ALL),
    ("create", "pods", "default", NONE),
    ("update", "pods", "default", NONE),
    ("patch", "pods", "default", ("manager", "descheduler")),
    ("delete", "pods", "default", ("scheduler", "descheduler")),
    ("create", "pods/binding", "default", ("scheduler",)),
    ("create", "pods/eviction", "default", ("scheduler", "agent", "descheduler")),
    ("patch", "pods/status", "default", ("scheduler",)),
    ("create", "pods/exec", "default", NONE),
    ("list", "nodes", "", ALL),
    ("delete", "nodes", "", NONE),
    ("get", "nodes", "", ("manager",)),
    ("patch", "nodes", "", ("manager", "yarn-operator")),
    ("patch", "nodes/status", "", ("manager",)),
    ("get", "nodes/proxy", "", ("agent",)),
    ("create", "nodes/proxy", "", NONE),
    ("list", "secrets", "", NONE),
    ("get", "secrets", "default", NONE),
    ("create", "secrets", SYSTEM_NAMESPACE, NONE),
    ("list", "secrets", SYSTEM_NAMESPACE, NONE),
    ("list", "configmaps", "", NONE),
    ("list", "configmaps", SYSTEM_NAMESPACE, ("manager",)),
    ("get", "configmaps", SYSTEM_NAMESPACE, ("manager", "agent")),
    ("create", "configmaps", SYSTEM_NAMESPACE, ("manager",)),
    ("create", "configmaps", "default", NONE),
    ("update", "nodemetrics.slo.koordinator.sh/status", "", ("agent",)),
    ("create", "nodemetrics.slo.koordinator.sh", "", ("manager",)),
    ("list", "nodemetrics.slo.koordinator.sh", "", ALL),
    ("list", "devices.scheduling.koordinator.sh", "", ALL),
    ("list", "noderesourcetopologies.topology.node.k8s.io", "", ALL),
    ("create", "podmigrationjobs.scheduling.koordinator.sh", "", ("descheduler",)),
    ("patch", "podmigrationjobs.scheduling.koordinator.sh/status", "", ("descheduler",)),
    ("get", "deployments.apps", "default", ("descheduler",)),
    ("update", "deployments.apps", "default", NONE),
    ("patch", "podgroups.scheduling.sigs.k8s.io", "default", ("scheduler",)),
    ("update", "noderesourcetopologies.topology.node.k8s.io", "", ("agent",)),
    ("patch", "noderesourcetopologies.topology.node.k8s.io", "", ("manager",)),
    ("create", "elasticquotas.scheduling.sigs.k8s.io", "default", ("scheduler", "manager")),
    ("delete", "elasticquotas.scheduling.sigs.k8s.io", "default", NONE),
    ("create", "priorityclasses.scheduling.k8s.io", "", ("manager",)),
    ("delete", "priorityclasses.scheduling.k8s.io", "", ("manager",)),
    ("update", "priorityclasses.scheduling.k8s.io", "", NONE),
    ("create", "devices.scheduling.koordinator.sh", "", ("agent",)),
    ("update", "devices.scheduling.koordinator.sh", "", ("agent",)),
    ("delete", "devices.scheduling.koordinator.sh", "", NONE),
    ("patch", "nodemetrics.slo.koordinator.sh", "", ("manager", "agent")),
    ("create", "clusterroles.rbac.authorization.k8s.io", "", NONE),
    ("escalate", "clusterroles.rbac.authorization.k8s.io", "", NONE),
    ("impersonate", "users", "", NONE),
    ("patch", "validatingwebhookconfigurations.admissionregistration.k8s.io", "", NONE),
    ("create", "validatingadmissionpolicies.admissionregistration.k8s.io", "", ("manager",)),
    ("delete", "validatingadmissionpolicybindings.admissionregistration.k8s.io", "", ("manager",)),
    ("create", "mutatingadmissionpolicies.admissionregistration.k8s.io", "", ("manager",)),
    ("update", "mutatingadmissionpolicybindings.admissionregistration.k8s.io", "", ("manager",)),
    ("create", "serviceaccounts/token", SYSTEM_NAMESPACE, NONE),
    ("create", "tokenreviews.authentication.k8s.io", "", ELECTED),
    ("create", "subjectaccessreviews.authorization.k8s.io", "", ELECTED),
)


def may(access: Access, component: str, verb: str, resource: str, namespace: str, name: str = "") -> bool:
    """Whether the server lets a component's account do that."""
    main, _, subresource = resource.partition("/")
    plural, _, group = main.partition(".")
    attributes = {
        "verb": verb,
        "group": group,
        "resource": plural,
        "subresource": subresource,
        "namespace": namespace,
        "name": name,
    }
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{SYSTEM_NAMESPACE}:koordpolicy-{component}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM_NAMESPACE}"],
            "resourceAttributes": attributes,
        },
    }
    status, answer = access.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)
    assert status == 201, answer
    return bool(answer["status"]["allowed"])


@pytest.mark.parametrize(
    ("verb", "resource", "namespace", "permitted"),
    CASES,
    ids=[f"{case[0]} {case[1]} {case[2]}" for case in CASES],
)
def test_who_may(
    verb: str, resource: str, namespace: str, permitted: tuple[str, ...], deployed: Access
) -> None:
    assert tuple(one for one in ALL if may(deployed, one, verb, resource, namespace)) == permitted


def test_the_manager_minds_its_own_webhooks_and_certificate(deployed: Access) -> None:
    webhooks = "validatingwebhookconfigurations.admissionregistration.k8s.io"
    assert may(deployed, "manager", "patch", webhooks, "", "koordpolicy")
    assert not may(deployed, "manager", "patch", webhooks, "", "other")
    assert may(deployed, "manager", "update", "secrets", SYSTEM_NAMESPACE, "koordpolicy-webhook-cert")
    assert not may(deployed, "manager", "get", "secrets", SYSTEM_NAMESPACE, "other")
    for unused in ("podgroups.scheduling.sigs.k8s.io", "reservations.scheduling.koordinator.sh"):
        assert not may(deployed, "manager", "list", unused, "")
    for kept in ("nodeslos.slo.koordinator.sh", "nodemetrics.slo.koordinator.sh"):
        assert not may(deployed, "manager", "update", kept, "")


def test_requests_are_judged_by_these_roles(deployed: Access) -> None:
    nodes = "/api/v1/nodes?limit=1"
    assert deployed.request("GET", nodes, user="koordpolicy-scheduler")[0] == 200
    assert deployed.request("GET", nodes, user="nobody")[0] == 403
    assert deployed.request("GET", "/api/v1/secrets", user="koordpolicy-manager")[0] == 403


RULES = [
    pytest.param(role["metadata"]["name"], rule, id=f"{role['metadata']['name']}-{number}")
    for role in manifests(REPOSITORY / "deploy" / "rbac")
    for number, rule in enumerate(role.get("rules", ()))
]


@pytest.mark.parametrize(("role", "rule"), RULES)
def test_no_rule_is_wider_than_it_says(role: str, rule: dict[str, Any]) -> None:
    assert "*" not in rule["verbs"]
    if "nonResourceURLs" in rule:
        assert not any("*" in path for path in rule["nonResourceURLs"])
        return
    assert "*" not in rule["apiGroups"]
    if any("*" in resource for resource in rule["resources"]):
        assert rule["apiGroups"] == ["koordpolicy.io"], role
