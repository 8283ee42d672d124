"""Runners of quotas in the scheduler: the algorithms, and the compiled policies where policy decides."""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.algorithms.quota_limits import PARENT, QuotaLimit, excess, masked
from koordpolicy.algorithms.quota_overuse import OveruseTimer, QuotaMember, revoked, total_of
from koordpolicy.algorithms.quota_split import QuotaShare, scaled_mins, split
from koordpolicy.algorithms.quota_sums import QuotaSums
from koordpolicy.algorithms.quota_tree import QuotaTree
from koordpolicy.algorithms.records import pod_record
from koordpolicy.cluster.prepared import prepared
from koordpolicy.cluster.quota_of_pod import KIND, quota_of_pod, quota_record
from koordpolicy.cluster.quota_policy import QuotaPolicy
from koordpolicy.graph import RuleGraph
from koordpolicy.language.facts import TIMES
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import QUOTA_NAME, ROOT_QUOTA
from koordpolicy.model.quota import Quota
from koordpolicy.model.reading import NOTHING
from koordpolicy.model.time import NANOSECONDS
from koordpolicy.scheduler.sortkeys import sort_key
from tests.vectors.policies import document, graph
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

_PREEMPTIBLE: Final = "quota.scheduling.koordinator.sh/preemptible"


def _policy(**parameters: Any) -> RuleGraph:
    """The built-in pack with these parameters of the trees."""
    spec = {"parameters": {name: {"value": value} for name, value in parameters.items()}}
    return graph(document(KIND, "arguments", spec))


def runtime_flat(given: Given) -> Given:
    shares = [
        QuotaShare(
            one["name"],
            one["request"],
            max(one["min"], one.get("guaranteed", 0)),
            one["weight"],
            one.get("lent", True),
        )
        for one in given["children"]
    ]
    return {"runtime": dict(split(given["total"], shares).runtime)}


def scaled_min(given: Given) -> Given:
    children = given["children"]
    fixed = {one["name"] for one in children if not one.get("scalable", True)}
    return {"scaled_min": scaled_mins(given["total"], {one["name"]: one["min"] for one in children}, fixed)}


def runtime_tree(given: Given) -> Given:
    policy = QuotaPolicy(_policy(enableMinQuotaScale=given["min_scale"]))
    guaranteeing = QuotaPolicy(_policy(enableMinQuotaScale=given["min_scale"], guaranteeUsage=True))
    sums = QuotaSums(given["capacity"])
    for one in given["quotas"]:
        quota = Quota(
            one["name"],
            parent=one.get("parent", ROOT_QUOTA),
            lends=one.get("lent", True),
            max=one.get("max", {}),
            min=one.get("min", {}),
            shared_weight=one.get("weight"),
        )
        terms = (guaranteeing if "guaranteed" in one else policy).kept(quota).terms
        sums.put(terms)
        if "guaranteed" in one:
            assert not terms.lends
            sums.add_used(one["name"], one["guaranteed"])
        sums.add_request(one["name"], masked(one.get("own_request", {}), terms.max.keys()))
    found = {}
    for account in sums:
        name = account.terms.name
        amounts = {
            "child_request": account.child_request,
            "request": account.request,
            "limited": account.limited,
            "scaled_min": sums.scaled_min(name),
        }
        found[name] = {
            **{key: {r: n for r, n in one.items() if n} for key, one in amounts.items()},
            "runtime": dict(sums.runtime(name)),
        }
    return found


def quota_admission(given: Given) -> Given:
    policy = QuotaPolicy(
        _policy(enableRuntimeQuota=given["runtime_enabled"], enableCheckParentQuota=given["check_parent"])
    )
    quotas = {one["name"]: one for one in given["quotas"]}
    kept = {
        name: policy.kept(
            Quota(name, parent=one.get("parent", ROOT_QUOTA), max=one["max"], min=one.get("min", {}))
        )
        for name, one in quotas.items()
    }

    def limit(name: str) -> QuotaLimit:
        one = quotas[name]
        terms = one["max"] if name.startswith("koordinator-") else kept[name].terms.max
        by_runtime = kept[name].by_runtime
        # Every vector says what runtimes are stored: what they come to is for others to show.
        return QuotaLimit(name, one.get("used", {}), one.get("runtime", {}) if by_runtime else terms)

    pod = given["pod"]
    own = quotas[pod["quota"]]
    request = masked(pod["request"], own["max"].keys())
    reserved = QuotaLimit(own["name"], own.get("non_preemptible_used", {}), own.get("min", {}))
    above, name = [], own.get("parent")
    while name is not None:
        above.append(limit(name))
        name = quotas[name].get("parent")
    found = excess(
        request,
        limit(own["name"]),
        reserved if pod.get("non_preemptible") else None,
        above if kept[own["name"]].by_parents else (),
    )
    if found is None:
        return {"allowed": True}
    answer = {"allowed": False, "stage": found.stage, "exceeded": list(found.exceeded)}
    return {**answer, "quota": found.of.name} if found.stage == PARENT else answer


def overuse_victims(given: Given) -> Given:
    compiled = graph()
    about, order = compiled.about(KIND, ""), prepared(compiled, f"{KIND}.revocation.order")
    members = []
    for one in given["pods"]:
        pod = Pod(
            one["name"],
            priority=one["priority"],
            started_at=one["start"] * NANOSECONDS,
            labels={_PREEMPTIBLE: "false"} if one.get("non_preemptible") else {},
        )
        roots = {"pod": pod_record(pod, compiled.catalogue, TIMES), "now": TIMES.timestamp(0)}
        spared = about.value("revocation.spared", namespaceObject={}, **roots)
        members.append((sort_key(order, roots), QuotaMember(one["name"], one["request"], spared)))
    ordered = [one for _, one in sorted(members, key=lambda pair: pair[0])]
    return {"victims": revoked(total_of(ordered), given["runtime"], ordered)}


def overuse_trigger(given: Given) -> Given:
    timer, after = OveruseTimer(0), given["delay_seconds"]
    return {
        "triggered": [timer.over(one["t"], one["used"], one["runtime"], after) for one in given["samples"]]
    }


def quota_preemption_eligible(given: Given) -> Given:
    compiled = _policy(
        disableDefaultQuotaPreemption=given["disable_default_quota_preemption"], preemptOtherQuotas=False
    )

    def record(one: Given) -> Given:
        labels = {_PREEMPTIBLE: "false"} if one.get("non_preemptible") else {}
        return pod_record(Pod("pod", priority=one["priority"], labels=labels), compiled.catalogue, TIMES)

    victim, preemptor = given["victim"], given["preemptor"]
    about = compiled.about(KIND, "", {"pod": record(preemptor), "victim": record(victim)})
    name, other = preemptor["quota"], victim["quota"]
    records = {"quota": quota_record(name, Quota(name)), "victimQuota": quota_record(other, Quota(other))}
    return {"eligible": about.value("scheduling.preempts", **records)}


def quota_of_a_pod(given: Given) -> Given:
    tree, namespace = QuotaTree(), given["namespace"]
    known = given["known"]
    for one in given["namespace_objects"]:
        tree.put(Quota(one, namespace=one))
    for one, name in given["namespace_bindings"].items():
        tree.put(Quota(name, namespaces=(*getattr(tree.get(name), "namespaces", ()), one)))
    compiled = _policy(disableDefaultQuota=given["disable_default"])
    labels = {QUOTA_NAME: given["label"]} if given["label"] else {}
    pod = pod_record(Pod("pod", namespace, labels=labels), compiled.catalogue, TIMES)
    name, _ = quota_of_pod(compiled, _Known(tree, known), {"pod": pod}, namespace)
    return {"quota": name}


class _Known(QuotaTree):
    """The quotas that objects of namespaces lead to, of which a scheduler knows some."""

    def __init__(self, tree: QuotaTree, known: list[str]) -> None:
        super().__init__()
        self._tree, self._known = tree, known

    def get(self, name: str) -> Quota | None:
        return Quota(name, min=NOTHING) if name in self._known else None

    def led_to(self, namespace: str) -> tuple[str, str]:
        return self._tree.led_to(namespace)


RUNNERS: Mapping[str, Runner] = {
    "runtime_flat": Runner(runtime_flat, irrelevant=frozenset({"resource"})),
    "scaled_min": Runner(scaled_min, irrelevant=frozenset({"resource"})),
    "runtime_tree": Runner(runtime_tree),
    "quota_admission": Runner(quota_admission),
    "overuse_victims": Runner(overuse_victims),
    "overuse_trigger": Runner(overuse_trigger),
    "quota_preemption_eligible": Runner(quota_preemption_eligible),
    "quota_of_pod": Runner(quota_of_a_pod),
}
