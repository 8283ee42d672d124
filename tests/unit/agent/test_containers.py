"""What pods and containers get from the kernel, by the compiled policies."""

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.agent.hooks.containers import GroupNumbers, pod_numbers
from koordpolicy.language.cel.errors import CelError
from koordpolicy.model import protocol as wire
from koordpolicy.model.pod import Pod, read_pod
from tests.unit.agent.nodes import NOW, record, sight
from tests.vectors.policies import document, graph

CASES = YAML(typ="safe").load(Path(__file__).with_name("containers.yaml").read_text(encoding="utf-8"))


def pod_of(case: dict[str, Any]) -> Pod:
    annotations = {}
    if "announced" in case:
        annotations[wire.EXTENDED_RESOURCE_SPEC] = json.dumps({"containers": case["announced"]})
    return read_pod(
        {
            "metadata": {"name": "p", "labels": {wire.QOS_CLASS: case["qos"]}, "annotations": annotations},
            "spec": {
                "containers": [{"name": name, "resources": one} for name, one in case.get("spec", {}).items()]
            },
        }
    )


def shown(numbers: GroupNumbers) -> list[int | None] | None:
    found = [numbers.shares, numbers.quota, numbers.memory_limit]
    return None if found == [None, None, None] else found


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["name"]))
def test_numbers(case: dict[str, Any]) -> None:
    documents = [
        document(one["kind"], one["metadata"]["name"], one["spec"]) for one in case.get("policies", ())
    ]
    compiled = graph(*documents)
    ratio = {wire.CPU_NORMALIZATION_RATIO: case["ratio"]} if "ratio" in case else {}
    found = pod_numbers(compiled, pod_of(case), record(compiled, sight(annotations=ratio)), NOW)
    assert shown(found.pod) == case["pod"]
    assert {name: shown(one) for name, one in found.containers.items()} == case["containers"]


@pytest.mark.parametrize(
    "annotation", ["{", "[]", '{"containers": {"c": {"limits": {"cpu": "much"}}}}', "{}"]
)
def test_an_annotation_that_says_nothing_readable_leaves_the_pod_alone(annotation: str) -> None:
    annotations = {wire.EXTENDED_RESOURCE_SPEC: annotation}
    pod = Pod("p", labels={wire.QOS_CLASS: "BE"}, annotations=annotations)
    assert pod_numbers(graph(), pod, record(graph(), sight()), NOW).pod == GroupNumbers()


def test_what_cannot_be_decided_is_not_guessed() -> None:
    case = {"qos": "BE", "spec": {"main": {"limits": {wire.BATCH_CPU: "1k"}}}}
    facts = record(graph(), sight())
    del facts["suppression.byQuota"]
    with pytest.raises(CelError, match=r"suppression\.byQuota"):
        pod_numbers(graph(), pod_of(case), facts, NOW)
