"""Runners of the manager: quotas, devices and bindings at admission, asked of the compiled policies."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from koordpolicy.algorithms.quota_admission import admit
from koordpolicy.algorithms.quota_tree import QuotaTree
from koordpolicy.algorithms.records import pod_record
from koordpolicy.language.facts import TIMES
from koordpolicy.manager.controllers.tree_quota import counted, tree_quota
from koordpolicy.manager.webhooks.bindings import binding_roots
from koordpolicy.manager.webhooks.devices import Devices
from koordpolicy.manager.webhooks.quota_admission import demand_of
from koordpolicy.manager.webhooks.quotas import QuotaPods, QuotaRequest, QuotaRules, with_defaults
from koordpolicy.manager.webhooks.rules import Rules
from koordpolicy.model.node import read_node
from koordpolicy.model.pod import read_pod
from koordpolicy.model.protocol import (
    QUOTA_ADMISSION,
    QUOTA_CHILD_REQUEST,
    QUOTA_FORCE_UPDATE,
    QUOTA_GUARANTEED,
    QUOTA_IS_PARENT,
    QUOTA_IS_ROOT,
    QUOTA_NAMESPACES,
    QUOTA_PARENT,
    QUOTA_RESOURCE_KEYS,
    QUOTA_SHARED_WEIGHT,
    QUOTA_STRICT_KEYS,
    QUOTA_TREE_ID,
)
from koordpolicy.model.quantity import amount_text, parse_quantity
from koordpolicy.model.quota import read_quota
from koordpolicy.model.quota_profile import read_quota_profile
from tests.vectors.policies import document, graph
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

_DEVICES: Final = "koordinator.sh/"


def gpu_pod_mutation(given: Given) -> Given:
    resources = {
        key: {f"{_DEVICES}{name}": str(number) for name, number in given[key].items()}
        for key in ("requests", "limits")
    }
    pod = {"metadata": {"name": "pod"}, "spec": {"containers": [{"name": "main", "resources": resources}]}}
    changed = Devices(graph()).rewritten(pod, {})
    after: Any = changed["spec"]["containers"][0]["resources"]  # type: ignore[index]
    return {
        key: {name.removeprefix(_DEVICES): parse_quantity(text).units for name, text in after[key].items()}
        for key in ("requests", "limits")
    }


def binding_admission(given: Given) -> Given:
    scope = given["namespaces"]
    overlay = document(
        "AdmissionRule",
        "binding-user",
        {
            "enabled": True,
            "enforcement": "audit" if given.get("dry_run") else None,
            "parameters": {
                "users": {"type": "list(string)", "value": given["allow_users"]},
                "namespaces": {"type": "list(string)", "value": [scope] if isinstance(scope, str) else scope},
            },
        },
    )
    compiled = graph(overlay)
    pod = given["pod"]
    namespace = {"metadata": {"name": given["namespace"]}}
    obj = None if pod is None else {"metadata": {**pod, "name": "pod", "namespace": given["namespace"]}}
    roots = binding_roots(compiled, obj, "node", namespace, given["username"], 0)
    broken = Rules(compiled).broken("pods/binding", "CREATE", roots)
    return {"decision": "deny" if any(one.enforcement == "enforce" for one in broken) else "allow"}


def quota_defaulting(given: Given) -> Given:
    tree = QuotaTree()
    parent = given["quota"].get("parent")
    if parent is not None:
        tree.put(read_quota(_quota({"name": parent, "tree_id": given.get("parent_tree_id", "")})))
    quota = _quota({"name": "quota", **given["quota"]})
    filled = read_quota(with_defaults(quota, tree, graph(), QuotaRequest("CREATE", 0)))
    return {
        "parent": filled.parent,
        "tree_id": filled.tree,
        "shared_weight": _units(filled.shared_weight or {}),
    }


def quota_validation(given: Given) -> Given:
    settings = given["settings"]
    overlay = []
    if settings.get("guarantee_usage"):
        overlay.append(document("AdmissionRule", "quota-guarantee", {"enabled": True}))
    if settings.get("enable_update_resource_key"):
        overlay.append(document("AdmissionRule", "quota-max-keys", {"parameters": {"equal": False}}))
    compiled = graph(*overlay)
    rules = QuotaRules(compiled, Rules(compiled))
    labelled = {*settings.get("quotas_with_pods", ()), *settings.get("quotas_labelled_on_pods", ())}
    pods = QuotaPods(lambda name: ["default/pod"] if name in labelled else [], lambda _: False)
    tree = QuotaTree()
    results: list[Given] = []
    for one in given["operations"]:
        operation = one["op"].upper()
        named = one["quota"] if "quota" in one else {"name": one["name"]}
        old = tree.get(named["name"])
        quota = read_quota(_quota(named)) if operation != "DELETE" else old or read_quota(_quota(named))
        before = None if operation == "CREATE" else old or quota
        broken = rules.violations(quota, before, tree, pods, QuotaRequest(operation, 0))
        results.append({"allowed": False, "reason": broken[0].reason} if broken else {"allowed": True})
        if broken == ():
            if operation == "DELETE":
                tree.remove(quota.name)
            else:
                tree.put(quota)
    return {"results": results}


def quota_admission(given: Given) -> Given:
    compiled = graph(document("QuotaTree", "quota-admission", {"admission": {"enabled": True}}))
    annotations = {QUOTA_CHILD_REQUEST: _written(given["child_request"])}
    if "admission" in given:
        annotations[QUOTA_ADMISSION] = _written(given["admission"])
    spec = {"max": json.loads(_written(given["max"]))}
    quota = read_quota({"metadata": {"name": "quota", "annotations": annotations}, "spec": spec})
    results: list[Given] = []
    # One by one, as they come; what is counted for nothing changes nothing.
    for requests in given["pods"]:
        container = {"name": "main", "resources": {"requests": json.loads(_written(requests))}}
        pod = read_pod({"metadata": {"name": "pod"}, "spec": {"containers": [container]}})
        roots = {"pod": pod_record(pod, compiled.catalogue, TIMES), "operation": "CREATE"}
        demand = demand_of(compiled, quota, roots)
        verdicts, total = (
            ([], quota.child_request)
            if demand is None
            else admit([demand.request], [demand.limit], quota.child_request)
        )
        exceeded = [name for verdict in verdicts for name in verdict.exceeded]
        results.append({"allowed": False, "exceeded": exceeded} if exceeded else {"allowed": True})
        quota = replace(quota, child_request=total)
    return {"results": results, "child_request_after": dict(quota.child_request)}


def quota_profile(given: Given) -> Given:
    metadata: dict[str, Any] = {"namespace": given["namespace"], "name": given["name"]}
    if "tree_id" in given:
        metadata["labels"] = {QUOTA_TREE_ID: given["tree_id"]}
    if "resource_keys" in given:
        metadata["annotations"] = {QUOTA_RESOURCE_KEYS: json.dumps(given["resource_keys"])}
    spec = {"resourceRatio": given["resource_ratio"]} if "resource_ratio" in given else {}
    nodes = [
        read_node(
            {
                "metadata": {"name": f"node-{at}"},
                "spec": {"unschedulable": one.get("unschedulable", False)},
                "status": {
                    "allocatable": json.loads(_written(one["allocatable"])),
                    "conditions": [{"type": "Ready", "status": str(one.get("ready", True))}],
                },
            }
        )
        for at, one in enumerate(given["nodes"])
    ]
    policies = graph()
    profile = read_quota_profile({"metadata": metadata, "spec": spec})
    found = tree_quota(policies, profile, [counted(policies, node, 0) for node in nodes], 0)
    (units,) = {number // 1000 if name == "cpu" else number for name, number in found.max.items()}
    return {
        "tree_id": found.tree,
        "min": dict(found.min),
        "max_units": units,
        "max_keys": sorted(found.max),
        "total": dict(found.totals.total),
        "unschedulable": dict(found.totals.unschedulable),
    }


def _written(amounts: Mapping[str, int]) -> str:
    """Amounts (cpu in millicores) as the JSON of an annotation."""
    return json.dumps({name: amount_text(name, number) for name, number in amounts.items()})


def _quota(given: Given) -> dict[str, Any]:
    """The API's JSON of a quota; amounts of these vectors are units of any resource."""
    labels = {
        label: str(given[key]).lower() if isinstance(given[key], bool) else given[key]
        for key, label in (
            ("parent", QUOTA_PARENT),
            ("tree_id", QUOTA_TREE_ID),
            ("is_parent", QUOTA_IS_PARENT),
            ("is_root", QUOTA_IS_ROOT),
            ("allow_force_update", QUOTA_FORCE_UPDATE),
        )
        if key in given
    }
    annotations = {
        annotation: json.dumps(given[key])
        for key, annotation in (
            ("shared_weight", QUOTA_SHARED_WEIGHT),
            ("guaranteed", QUOTA_GUARANTEED),
            ("namespaces", QUOTA_NAMESPACES),
            ("max_strict_check", QUOTA_STRICT_KEYS),
        )
        if key in given
    }
    return {
        "metadata": {
            "name": given["name"],
            "namespace": "quotas",
            "labels": labels,
            "annotations": annotations,
        },
        "spec": {key: given[key] for key in ("max", "min") if key in given},
        "status": {"used": given["used"]} if "used" in given else {},
    }


def _units(amounts: Mapping[str, int]) -> dict[str, int]:
    return {name: number // 1000 if name == "cpu" else number for name, number in amounts.items()}


RUNNERS: Mapping[str, Runner] = {
    "gpu_pod_mutation": Runner(gpu_pod_mutation),
    "binding_admission": Runner(binding_admission),
    "quota_defaulting": Runner(quota_defaulting),
    "quota_validation": Runner(quota_validation),
    "quota_admission": Runner(quota_admission),
    "quota_profile": Runner(quota_profile),
}
