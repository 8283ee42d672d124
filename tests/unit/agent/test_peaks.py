"""Peaks: what is sampled, kept, forgotten, and what is made of it."""

from typing import Any

import pytest

from koordpolicy.agent.strategies.peaks import NODE, SYSTEM, Peaks, UseSample, band_key
from koordpolicy.agent.strategies.prediction import NotPredicted, reclaimable
from koordpolicy.agent.strategies.prediction_rules import PredictionRules, prediction_rules
from koordpolicy.algorithms.histogram import CheckpointError
from koordpolicy.algorithms.records import pods_on_node
from koordpolicy.language.facts import TIMES
from koordpolicy.model.pod import Container, Pod
from koordpolicy.model.protocol import QOS_CLASS
from koordpolicy.model.time import NANOSECONDS
from tests.unit.agent.nodes import NOW
from tests.vectors.policies import document, graph

MINUTE, DAY = 60 * NANOSECONDS, 86_400 * NANOSECONDS
GIB = 1 << 30
WEB = {"cpu": 1000, "memory": GIB}


def rules(**spec: Any) -> PredictionRules:
    found = prediction_rules(graph(document("Prediction", "ours", spec)), {}, NOW)
    assert found is not None
    return found


def trained(used: PredictionRules) -> Peaks:
    peaks = Peaks()
    for minute in reversed(range(30)):
        use = UseSample({"u": ("prod", WEB)}, {"cpu": 1500, "memory": 2 * GIB})
        peaks.sample(use, used.bands, used, NOW - minute * MINUTE)
    return peaks


def test_pods_bands_system_and_node_have_peaks_of_their_own() -> None:
    peaks = trained(rules())
    found = {key: peaks.peak(key, rules()) for key in ("u", band_key("prod"), band_key(""), SYSTEM, NODE)}
    assert {key: peak["cpu"] for key, peak in found.items() if peak is not None} == {
        "u": 1035,
        band_key("prod"): 1035,
        band_key(""): 25,
        SYSTEM: 539,
        NODE: 1558,
    }
    assert peaks.peak("nobody", rules()) is None


def test_a_pod_gives_back_what_it_will_not_use() -> None:
    used = rules(coldStart="1h")
    old, young = NOW - 2 * 3600 * NANOSECONDS, NOW - MINUTE
    four = (Container("c", requests={"cpu": 4000, "memory": 4 * GIB}),)
    pods = [
        Pod("web", uid="u", labels={QOS_CLASS: "LS"}, created_at=old, phase="Running", containers=four),
        Pod("new", uid="v", labels={QOS_CLASS: "LS"}, created_at=young, phase="Running", containers=four),
    ]
    node = {
        "pods": pods_on_node(pods, None, graph().catalogue, TIMES),
        "resources.physical": {"cpu": 32_000, "memory": 64 * GIB},
    }
    found = reclaimable(node, pods, trained(used), used, NOW)
    assert found.reclaimable["cpu"] == 4000 - int(1035 * 1.1)
    assert found.peak["cpu"] == int(1035 * 1.1) + 4000
    with pytest.raises(NotPredicted, match="system"):
        reclaimable(node, pods, Peaks(), used, NOW)


def test_what_is_not_measured_is_forgotten() -> None:
    peaks = trained(rules())
    assert peaks.forget(rules(), NOW + 29 * MINUTE) == []
    assert "u" in peaks.forget(rules(), NOW + 31 * MINUTE)
    assert "u" not in peaks
    assert len(peaks) == 0


def test_a_checkpoint_gives_the_same_peak() -> None:
    peaks, restored = trained(rules()), Peaks()
    assert peaks.due(rules(), 2, NOW) == peaks.due(rules(), 9, NOW)[:2]
    kept = peaks.checkpoint("u", NOW)
    assert "u" not in peaks.due(rules(), 9, NOW + MINUTE)
    restored.restore(kept, rules())
    assert restored.peak("u", rules()) == peaks.peak("u", rules())


@pytest.mark.parametrize(
    "broken",
    [
        {},
        {"cpu": {"total": 1.0, "reference": 0, "weights": {"100000": 1}}},
        {"cpu": {"total": -1, "reference": 0, "weights": {}}},
        {"cpu": []},
        {"cpu": {"total": "x", "reference": 0, "weights": {}}},
        {"key": 3},
    ],
)
def test_a_broken_checkpoint_is_refused(broken: dict[str, Any]) -> None:
    kept = trained(rules()).checkpoint("u", NOW)
    spoiled = {**kept, **broken} if broken else {}
    peaks = Peaks()
    with pytest.raises(CheckpointError):
        peaks.restore(spoiled, rules())
    assert "u" not in peaks


def test_nothing_is_predicted_where_policy_says_no() -> None:
    assert prediction_rules(graph(document("Prediction", "ours", {"enabled": False})), {}, NOW) is None
