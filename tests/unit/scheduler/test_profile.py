"""The pack's profile is all columns; and what a profile reads decides what it costs."""

from koordpolicy.cluster.events import Event
from koordpolicy.scheduler.profile import profile_of
from tests.unit.scheduler.world import PROFILE, policies


def test_nothing_of_the_built_in_profile_is_evaluated_node_by_node() -> None:
    profile = profile_of(policies(), PROFILE)
    assert profile.evaluate is not None
    assert set(profile.reasons) == {"LoadAwareScheduling"}
    assert profile.fallback == ()


def test_nor_with_every_parameter_in_use() -> None:
    parameters = {
        "prodUsageThresholds": {"value": {"cpu": "50%"}},
        "aggregatedUsageThresholds": {"value": {"cpu": "50%", "example.com/x": "10%"}},
        "usageAggregationType": "p95",
        "dominantResourceWeight": 3,
        "resourceWeights": {"value": {"cpu": 1, "memory": 2}},
        "scoreAccordingProdUsage": True,
        "supportedResources": ["example.com/y"],
        "allowCustomizeEstimation": True,
    }
    assert profile_of(policies({"parameters": parameters}), PROFILE).fallback == ()


def test_nor_with_parameters_of_their_own_for_a_pool() -> None:
    pool = {
        "match": {"nodes": {"matchLabels": {"pool": "colocated"}}},
        "parameters": {"nodeMetricExpiration": "5m"},
    }
    assert profile_of(policies(pool), PROFILE).fallback == ()


def test_each_filter_knows_what_can_help_against_it() -> None:
    helped = {step.name: step.helped_by for step in profile_of(policies(), PROFILE).filters}
    nodes = {Event.NODE_ADDED, Event.NODE_CHANGED}
    assert helped["TaintToleration"] == nodes
    assert helped["NodeResourcesFit"] == nodes | {Event.POD_GONE}
    assert helped["LoadAwareScheduling"] == nodes | {Event.POD_GONE, Event.METRIC_CHANGED}


def test_only_what_is_read_is_read() -> None:
    profile = profile_of(policies(), PROFILE)
    assert profile.reads_now
    assert not profile.reads_cluster
    assert "pods" not in profile.node_facts
    assert "name" not in profile.pod_facts
