"""Which rules an API server can decide by itself, and what keeps the others back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.language.documents.writing import yaml_text
from koordpolicy.manager.native.rules import native_rules
from koordpolicy.manager.webhooks.configuration import NO_CONTROL_PLANE
from tests.unit.manager.clusters import cases
from tests.vectors.policies import document, graph

HERE = Path(__file__).parent
STAYING = cases(HERE / "staying.yaml")


@pytest.mark.parametrize("case", STAYING, ids=[one["what"] for one in STAYING])
def test_what_keeps_a_rule_back(case: dict[str, Any]) -> None:
    found = native_rules(graph(document("AdmissionRule", "it", case["spec"])), ())
    reasons = [one.reason for one in found.staying if one.target == "AdmissionRule/it"]
    if case.get("why"):
        (reason,) = reasons
        assert case["why"] in reason
        assert "it" not in found.policies
    else:
        assert not reasons
        assert ("it" in found.policies) == ("why" not in case)


def test_an_exception_keeps_a_rule_back() -> None:
    exception = document(
        "PolicyException",
        "for-a-while",
        {
            "match": {"pods": {"matchLabels": {"team": "a"}}},
            "overrides": {"AdmissionRule/it.enforcement": "warn"},
            "owner": "team-a",
            "reason": "they move",
            "expires": "2035-01-01",
        },
    )
    found = native_rules(graph(document("AdmissionRule", "it", {"require": False}), exception), ())
    (reason,) = [one.reason for one in found.staying if one.target == "AdmissionRule/it"]
    assert "a PolicyException overrides it for a time" in reason


def test_policies_and_bindings_in_full(golden: Callable[[Path, str], None]) -> None:
    rules = {
        "teams-say-so": {
            "match": {
                "pods": {"matchLabels": {"app": "spark"}},
                "namespaces": {"matchLabels": {"team": "data"}},
            },
            "operations": ["CREATE"],
            "require": {"cel": "pod.request.cpu <= cpu('4') && pod.rawBand != 'prod'"},
            "reason": "too-much",
            "message": {"cel": "pod.name + ' asks for too much'"},
            "enforcement": "warn",
            "failurePolicy": "Ignore",
        },
        "keeps-its-class": {"operations": ["UPDATE"], "require": {"cel": "pod.qosLabel == oldPod.qosLabel"}},
    }
    found = native_rules(
        graph(*(document("AdmissionRule", name, spec) for name, spec in rules.items())), (NO_CONTROL_PLANE,)
    )
    objects = [
        one for name in rules for one in (found.policies[name].object(), found.policies[name].binding())
    ]
    golden(HERE / "policies.yaml", yaml_text(objects))
