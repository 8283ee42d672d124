"""What webhooks know of quotas and their pods, kept from change to change, beside what a look at everything says."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube.memory import Store
from koordpolicy.kube.port import MergePatch
from koordpolicy.kube.resources import ELASTIC_QUOTAS, NAMESPACES, PODS
from koordpolicy.manager.webhooks.quota_pods import PodsOfQuotas
from koordpolicy.manager.webhooks.quota_view import MOST_ADMITTED, QuotaView
from koordpolicy.model.protocol import QUOTA_NAME
from koordpolicy.model.quota import Quota

NAMES = ("a", "b", "c")
NAMESPACE_NAMES = ("web", "shop")


def store() -> Store:
    made = Store(lambda: 0)
    for name in NAMESPACE_NAMES:
        made.create(NAMESPACES, {"metadata": {"name": name}})
    return made


def labelled(name: str, quota: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": {QUOTA_NAME: quota}}}


CHANGES = st.lists(
    st.tuples(st.sampled_from(NAMESPACE_NAMES), st.sampled_from(NAMES), st.sampled_from(["", "q", "r", "-"]))
)


@given(CHANGES, st.integers(0, 5))
def test_pods_are_found_by_quota_and_namespace(changes: list[tuple[str, str, str]], begin: int) -> None:
    cluster = store()
    pods = None
    for at, (namespace, name, quota) in enumerate(changes):
        if at == begin:
            pods = PodsOfQuotas(cluster)
        there = cluster.find(PODS, name, namespace=namespace) is not None
        if quota == "-":
            if there:
                cluster.delete(PODS, name, namespace=namespace, grace_seconds=0)
        elif there:
            cluster.patch(PODS, name, MergePatch(labelled(name, quota)), namespace=namespace)
        else:
            spec = {"containers": [{"name": "main", "image": "i"}]}
            cluster.create(PODS, {**labelled(name, quota), "spec": spec}, namespace=namespace)
    known = (pods or PodsOfQuotas(cluster)).known
    every = [one["metadata"] for one in cluster.every(PODS)]
    for quota in ("q", "r"):
        expected = {
            f"{one['namespace']}/{one['name']}" for one in every if one["labels"][QUOTA_NAME] == quota
        }
        assert set(known.labelled(quota)) == expected
    for namespace in NAMESPACE_NAMES:
        assert known.in_namespace(namespace) == any(one["namespace"] == namespace for one in every)


def test_quotas_of_one_name_are_known_each() -> None:
    cluster = store()
    view = QuotaView(cluster)
    for namespace in NAMESPACE_NAMES:
        cluster.create(ELASTIC_QUOTAS, {"metadata": {"name": "team"}, "spec": {}}, namespace=namespace)
    assert [one["metadata"]["namespace"] for one in view.objects("team")] == ["web", "shop"]
    assert view.tree(0).get("team").namespace == "shop"  # type: ignore[union-attr]
    cluster.delete(ELASTIC_QUOTAS, "team", namespace="shop")
    assert view.tree(0).get("team").namespace == "web"  # type: ignore[union-attr]
    cluster.delete(ELASTIC_QUOTAS, "team", namespace="web")
    assert (view.tree(0).get("team"), view.objects("team")) == (None, [])


def test_only_so_many_requests_that_were_not_heard_of_count() -> None:
    view = QuotaView(store())
    names = [f"q{at}" for at in range(MOST_ADMITTED + 1)]
    for name in names:
        view.admitted(name, Quota(name), 0)
    assert [view.tree(0).get(name) is None for name in names] == [True, *[False] * MOST_ADMITTED]
