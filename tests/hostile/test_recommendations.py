"""Recommendations whose objects hold anything: each is decided on, or says what is wrong, and none stops the others."""

import copy
import json
from typing import Any, Final

from koordpolicy.cluster.objects import ClusterObjects
from koordpolicy.kube.port import Object
from koordpolicy.manager.controllers.recommendation import RecommendationController
from koordpolicy.manager.recommender.checkpoints import checkpoint_text
from koordpolicy.manager.recommender.owners import Owners
from koordpolicy.model.metric import NodeMetric, PodMetric
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import RECOMMENDED_BOUNDS, USAGE_HISTORY
from koordpolicy.model.time import NANOSECONDS
from tests.hostile.objects import LEAVES, SHARE, each_spoiled
from tests.vectors.policies import graph

NOW: Final = 1_800_000_000 * NANOSECONDS
KEY: Final = ("team", "web")
GRAPH: Final = graph()
BOUNDS: Final = {"app": {"lower": {"cpu": "1", "memory": "1Gi"}, "upper": {"cpu": "3", "memory": "3Gi"}}}
REAL: Final[dict[str, Any]] = {
    "metadata": {
        "name": "web",
        "namespace": "team",
        "labels": {"a": "b"},
        "annotations": {RECOMMENDED_BOUNDS: json.dumps(BOUNDS)},
    },
    "spec": {
        "target": {
            "type": "podSelector",
            "podSelector": {
                "matchLabels": {"app": "web"},
                "matchExpressions": [{"key": "x", "operator": "DoesNotExist"}],
            },
        }
    },
    "status": {
        "podStatus": {
            "containerStatuses": [{"containerName": "app", "resources": {"cpu": "2", "memory": "2Gi"}}]
        },
        "updateTime": "2026-07-01T08:00:00Z",
        "conditions": [
            {
                "type": "LowConfidence",
                "status": "True",
                "reason": "ShortHistory",
                "message": "m",
                "lastTransitionTime": "2026-07-01T08:00:00Z",
            }
        ],
    },
}


class Site:
    """A controller with a node that reports a pod."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.known: dict[tuple[str, str], Object] = {}
        objects = ClusterObjects()
        objects.set_pod(
            Pod(
                "p",
                "team",
                labels={"app": "web"},
                node_name="n",
                phase="Running",
                containers=(Container("app"),),
            )
        )
        self.controller = RecommendationController(
            lambda: GRAPH,
            objects,
            self.known.get,
            Owners(lambda name: None),
            lambda: NOW,
            lambda policies, problem, key: self.told.append(problem),
        )

    def hear(self, key: tuple[str, str], obj: Any) -> None:
        self.known[key] = obj
        self.controller.heard(key, obj)

    def report(self, at: int) -> int:
        used = PodMetric("team", "p", {"cpu": 500, "memory": 2**30})
        return self.controller.reported(NodeMetric("n", updated_at=at, pods=(used,)))

    def decide(self, key: tuple[str, str]) -> Any:
        plan = self.controller.decide(key, checkpoint=True)
        assert plan is not None
        return json.loads(json.dumps([plan.metadata, plan.status]))


def test_each_is_decided_on_and_none_stops_the_others() -> None:
    site = Site()
    other = copy.deepcopy(REAL)
    other["metadata"]["name"] = "other"
    site.hear(("team", "other"), other)
    refused = 0
    for number, (what, obj) in enumerate(each_spoiled(REAL)):
        site.hear(KEY, obj)
        assert site.report(NOW - number) >= 1, what
        _, status = site.decide(KEY)
        refused += status is not None and status["conditions"][0]["type"] == "ConfigUnsupported"
        assert site.decide(("team", "other"))[0] is not None, what
        site.controller.heard(KEY, None)
    assert refused > 20 / SHARE


def test_a_history_that_holds_anything_is_taken_or_begins_anew() -> None:
    site = Site()
    site.hear(KEY, REAL)
    assert site.report(NOW) == 1
    whole = json.loads(checkpoint_text(site.controller.histories.of(KEY)))
    texts = [json.dumps(one) for _, one in each_spoiled(whole)]
    texts += [json.dumps(leaf) if not isinstance(leaf, float) else str(leaf) for leaf in LEAVES]
    begun = 0
    for number, text in enumerate(texts):
        obj = copy.deepcopy(REAL)
        obj["metadata"]["annotations"][USAGE_HISTORY] = text
        site.controller.heard(KEY, None)
        before = len(site.told)
        site.hear(KEY, obj)
        begun += len(site.told) > before
        assert site.report(NOW - 1 - number) == 1, text
        assert site.decide(KEY) is not None
    assert begun > 20 / SHARE
