"""The ConfigMap `slo-controller-config` in front of the in-memory cluster: what is refused, and in which words."""

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from koordpolicy.kube import resources
from koordpolicy.kube.admission import AdmissionRequest, Operation
from koordpolicy.kube.errors import KubeError
from koordpolicy.kube.known import FixedObjects
from koordpolicy.kube.port import MergePatch
from koordpolicy.manager.webhooks.hooks import WEBHOOKS
from koordpolicy.manager.webhooks.node_rules import NodeValidation
from koordpolicy.manager.webhooks.slo_config import ConfigValidation
from koordpolicy.manager.webhooks.webhook import WebhookContext
from tests.unit.manager.clusters import SmallCluster
from tests.vectors.policies import graph

LABELS = {"koordinator.sh/configmap-type": "slo-controller-config"}


def config(**data: Any) -> dict[str, Any]:
    """A ConfigMap; `_` in keys stands for `-`."""
    texts = {
        key.replace("_", "-"): value if isinstance(value, str) else json.dumps(value)
        for key, value in data.items()
    }
    return {"metadata": {"name": "slo-controller-config", "labels": LABELS}, "data": texts}


def entry(name: str, labels: dict[str, str], **more: Any) -> dict[str, Any]:
    return {"name": name, "nodeSelector": {"matchLabels": labels}, **more}


GOOD = config(
    colocation_config={"enable": True, "nodeConfigs": [entry("a", {"pool": "a"}, degradeTimeMinutes=5)]},
    cpu_burst_config={"clusterStrategy": {"policy": "auto"}},
)


@pytest.fixture
def small() -> SmallCluster:
    made = SmallCluster(graph())
    made.create(
        resources.NODES, {"metadata": {"name": "n", "labels": {"pool": "a", "zone": "1"}}, "status": {}}
    )
    return made


def test_a_sound_one_is_admitted_and_deleted_without_a_question(small: SmallCluster) -> None:
    small.create(resources.CONFIG_MAPS, GOOD)
    small.store.delete(resources.CONFIG_MAPS, "slo-controller-config", namespace="default")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"cpu_burst_config": "{"}, '"reason":"ParseConfigFail"'),
        (
            {"cpu_burst_config": {"clusterStrategy": {"cpuBurstPercent": 0}}},
            "cpuBurstPercent is 0: at least 1",
        ),
        ({"resource_qos_config": {}, "system_config": "{"}, "ParseConfigFail"),
        (
            {"colocation_config": {"nodeConfigs": [entry("a", {"pool": "a"}), entry("b", {"zone": "1"})]}},
            "colocation-config: the entries a, b all select the node n",
        ),
        (
            {
                "colocation_config": {
                    "nodeConfigs": [entry("a", {"x": "1"}), entry("b", {"x": "1", "y": "2"})]
                }
            },
            "NodeStrategiesOverlap",
        ),
        (
            {
                "system_config": {"clusterStrategy": {"totalNetworkBandwidth": "1G"}},
                "resource_qos_config": {
                    "clusterStrategy": {
                        "lsClass": {"networkQOS": {"egressRequest": 60}},
                        "beClass": {"networkQOS": {"egressRequest": 50}},
                    }
                },
            },
            "egressRequest: the requests of all classes are more than 100",
        ),
        (
            {
                "system_config": {},
                "resource_qos_config": {
                    "clusterStrategy": {
                        "lsClass": {"networkQOS": {"egressRequest": 60}},
                        "beClass": {"networkQOS": {"egressRequest": "50"}},
                    }
                },
            },
            "requests of the network are percentages, or quantities, not both",
        ),
    ],
)
def test_the_first_thing_that_is_wrong_is_told(small: SmallCluster, data: dict[str, Any], words: str) -> None:
    with pytest.raises(KubeError) as refused:
        small.create(resources.CONFIG_MAPS, config(**data))
    assert words in str(refused.value)


def test_classes_of_isolation_need_no_bandwidth_beside_them(small: SmallCluster) -> None:
    strategy = {"lsClass": {"networkQOS": {"egressRequest": 60}}}
    small.create(resources.CONFIG_MAPS, config(resource_qos_config={"clusterStrategy": strategy}))


def test_other_reviews_are_answered_while_a_large_one_is_checked() -> None:
    entries = [entry(f"n{number}", {"host": str(number)}) for number in range(3_000)]
    asked = AdmissionRequest(
        Operation.CREATE,
        resources.CONFIG_MAPS,
        "",
        "koordinator-system",
        "slo-controller-config",
        config(colocation_config={"enable": True, "nodeConfigs": entries}),
        None,
    )
    context = WebhookContext(graph, FixedObjects(), lambda: 0, lambda: 0.0)

    async def turns() -> int:
        checked = asyncio.ensure_future(ConfigValidation(context).answer(asked))
        count = 0
        while not checked.done():
            await asyncio.sleep(0)
            count += 1
        assert checked.result() is None
        return count

    assert asyncio.run(turns()) > 5


def test_only_what_changed_is_looked_at(small: SmallCluster) -> None:
    small.create(resources.CONFIG_MAPS, GOOD)
    small.store.patch(
        resources.CONFIG_MAPS,
        "slo-controller-config",
        MergePatch({"data": {"anything": "else"}}),
        namespace="default",
    )
    with pytest.raises(KubeError):
        small.store.patch(
            resources.CONFIG_MAPS,
            "slo-controller-config",
            MergePatch({"data": {"cpu-burst-config": "[]"}}),
            namespace="default",
        )


def test_others_are_none_of_our_business(small: SmallCluster) -> None:
    small.create(resources.CONFIG_MAPS, {"metadata": {"name": "other"}, "data": {"cpu-burst-config": "{"}})


def relabelled(before: dict[str, str], after: dict[str, str]) -> AdmissionRequest:
    """A node whose labels change."""
    old, new = ({"metadata": {"name": "n", "labels": one}, "status": {}} for one in (before, after))
    return AdmissionRequest(Operation.UPDATE, resources.NODES, "", "", "n", new, old)


FOLLOWED = config(
    colocation_config={"nodeConfigs": [entry("a", {"pool": "a"}), entry("b", {"zone": "1"})]},
    cpu_burst_config="{",
    system_config=json.dumps(None),
)["data"]


@pytest.mark.parametrize(
    ("documents", "before", "after", "refused"),
    [
        (FOLLOWED, {"pool": "a"}, {"pool": "a", "zone": "1"}, True),
        (FOLLOWED, {"pool": "a"}, {"pool": "a", "zone": "2"}, False),
        (FOLLOWED, {"pool": "a", "zone": "1"}, {"pool": "a", "zone": "1"}, False),  # it was so already
        ({}, {"pool": "a"}, {"pool": "a", "zone": "1"}, False),
        (None, {"pool": "a"}, {"pool": "a", "zone": "1"}, False),
    ],
)
def test_labels_by_which_two_entries_would_select_a_node_are_refused(
    documents: dict[str, str] | None, before: dict[str, str], after: dict[str, str], refused: bool
) -> None:
    context = WebhookContext(
        graph,
        FixedObjects(),
        lambda: 0,
        lambda: 0.0,
        slo_config=None if documents is None else lambda: documents,
    )
    answer = NodeValidation(context).answer(relabelled(before, after))
    assert (answer is not None) == refused
    if answer is not None:
        assert (answer.allowed, answer.code) == (False, 400)
        assert "ExistNodeConfict" in answer.message
        assert "the entries a, b all select the node n" in answer.message


def test_labels_of_nodes_are_asked_about_where_a_config_is_followed() -> None:
    bare = WebhookContext(graph, FixedObjects(), lambda: 0, lambda: 0.0)
    followed = replace(bare, slo_config=dict)
    (webhook,) = [one for one in WEBHOOKS if one.name == "validate-node"]
    without, within = (webhook.here(context).scope(graph()) for context in (bare, followed))
    assert without == webhook.scope(graph())
    assert within is not None
    assert Operation.UPDATE in within.operations
    assert within.condition.endswith("object.metadata.?labels != oldObject.metadata.?labels")
