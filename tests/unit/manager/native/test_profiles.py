"""Which profiles an API server can apply by itself, what keeps the others back, and what webhooks are then asked."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.language.documents.writing import yaml_text
from koordpolicy.manager.native.profiles import native_profiles
from koordpolicy.manager.webhooks.cluster_profiles import read_profile
from koordpolicy.manager.webhooks.configuration import NO_CONTROL_PLANE
from koordpolicy.manager.webhooks.profiles import KIND
from koordpolicy.manager.webhooks.scope import ANNOUNCEMENT, mutated_pods
from tests.unit.manager.clusters import cases
from tests.vectors.policies import document, graph

HERE = Path(__file__).parent
STAYING = cases(HERE / "staying_profiles.yaml")


@pytest.mark.parametrize("case", STAYING, ids=[one["what"] for one in STAYING])
def test_what_keeps_a_profile_back(case: dict[str, Any]) -> None:
    policies = graph(*(document(KIND, name, spec) for name, spec in case["profiles"].items()))
    found = native_profiles(policies, (), [read_profile(one) for one in case.get("objects", ())])
    reasons = {one.target.partition("/")[2]: one.reason for one in found.staying}
    expected = case.get("stays", {})
    assert {name: expected.get(name, "") in why for name, why in reasons.items()} == dict.fromkeys(
        expected, True
    ), reasons
    on = {name for name, spec in case["profiles"].items() if spec.get("enabled", True)}
    assert set(found.policies) == on - set(expected)


def test_a_policy_and_its_binding_in_full(golden: Callable[[Path, str], None]) -> None:
    spec = {
        "match": {
            "pods": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["spark"]}]},
            "namespaces": {"matchLabels": {"team": "data"}},
        },
        "enabled": {"cel": "pod.ownerKind != 'Job'"},
        "priorityClassName": "quiet",
        "schedulerName": {"cel": "pod.labels[?'on'].orValue('')"},
        "labels": {"a/b": "c"},
        "copyAnnotations": {"note": "noted"},
        "patch": {"spec": {"nodeSelector": {"pool": "batch"}, "hostname": None}},
        "resourceTranslation": "Never",
        "failurePolicy": "Ignore",
    }
    found = native_profiles(graph(document(KIND, "spark", spec)), (NO_CONTROL_PLANE,)).policies["spark"]
    golden(HERE / "profile.yaml", yaml_text([found.object(), found.binding()]))


def test_what_api_servers_do_the_webhook_is_not_asked_about() -> None:
    match = {"pods": {"matchLabels": {"app": "spark"}}}
    rest = {"match": {"pods": {"matchLabels": {"app": "web"}}}, "probability": "5%", "schedulerName": "s"}
    policies = graph(
        document(KIND, "spark", {"match": match, "qosClass": "BE"}), document(KIND, "rest", rest)
    )
    whole = mutated_pods(policies)
    partly = mutated_pods(policies, native=frozenset({f"{KIND}/spark"}))
    least = mutated_pods(policies, native=frozenset({f"{KIND}/spark", ANNOUNCEMENT}))
    assert whole is not None and partly is not None and least is not None
    assert '"spark"' in whole.condition
    assert '"spark"' not in partly.condition
    assert '"web"' in least.condition
    # Pods whose containers are announced in these very words are nobody's business any more.
    assert "sortBy" in least.condition
    assert "sortBy" not in partly.condition
