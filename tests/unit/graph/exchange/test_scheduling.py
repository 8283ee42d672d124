"""KubeSchedulerConfigurations: imported they place pods as they say, exported and imported again they stay."""

from pathlib import Path
from random import Random
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.graph import RuleGraph
from koordpolicy.graph.exchange.importing import import_objects
from koordpolicy.graph.exchange.scheduling_export import export_scheduler
from koordpolicy.language.cel.values import Duration
from koordpolicy.model.scheduler_config import KIND
from tests.unit.graph.exchange import scheduler_configurations
from tests.vectors.policies import document, graph

CASES = YAML(typ="safe").load(Path(__file__).with_name("scheduler_cases.yaml").read_text(encoding="utf-8"))
PODS: dict[str, Any] = {
    "pod": {"preemptionPolicy": "PreemptLowerPriority", "labels": {}},
    "namespaceObject": {},
    "cluster": {},
    "now": None,
}


def at_work(compiled: RuleGraph, name: str, things: str) -> set[str]:
    """The filters or scores that a profile has at work; the part of a plugin that is not there yet aside."""
    target = f"SchedulingProfile/{name}"
    return {
        item.name
        for item in compiled.items("SchedulingProfile", name, things)
        if compiled.value(f"{target}.{things}[{item.name}].enabled", **PODS) and item.name != "AmplifiedCPU"
    }


def compare(compiled: RuleGraph, name: str, intended: scheduler_configurations.Intended) -> None:
    target = f"SchedulingProfile/{name}"
    assert at_work(compiled, name, "filters") == intended.filters
    weights = {
        score: compiled.value(f"{target}.scores[{score}].weight", **PODS)
        for score in at_work(compiled, name, "scores")
    }
    assert weights == intended.scores
    assert compiled.value(f"{target}.sampling", **PODS) == intended.sampling
    assert (compiled.value(f"{target}.preemption.policy", **PODS) != "Never") is intended.preempts
    for parameter, wanted in intended.parameters.items():
        value = compiled.value(f"{target}.parameters.{parameter}")
        assert (value.ns if isinstance(value, Duration) else value) == wanted, parameter


@pytest.mark.parametrize("seed", range(10))
def test_profiles_are_imported_as_they_are_meant_and_stay_when_they_are_exported(seed: int) -> None:
    random = Random(seed)
    names = ["koord-scheduler", "default-scheduler"]
    written, intended = zip(*(scheduler_configurations.profile(name, random) for name in names), strict=True)
    seconds = random.randint(1, 9)
    config = {"kind": KIND, "podInitialBackoffSeconds": seconds, "profiles": list(written)}
    imported = import_objects([config], graph())
    assert not [row for row in imported.table if row.reason]
    first = graph(*imported.documents)
    for name, meant in zip(names, intended, strict=True):
        compare(first, name, meant)
        assert first.value(f"SchedulingProfile/{name}.queue.initialBackoff").ns == seconds * 10**9

    exported, table = export_scheduler(first)
    assert exported is not None
    assert not [row for row in table if row.reason]
    second = graph(*import_objects([exported], graph()).documents)
    for name, meant in zip(names, intended, strict=True):
        compare(second, name, meant)
    assert export_scheduler(second)[0] == exported


@pytest.mark.parametrize("case", CASES, ids=[one["name"] for one in CASES])
def test_what_is_taken_and_what_is_not_stands_in_the_table(case: dict[str, Any]) -> None:
    imported = import_objects([{"kind": KIND, **case["config"]}], graph())
    rows = {row.source: f"! {row.reason}" if row.reason else row.decision for row in imported.table}
    assert {source: rows.get(source) for source in case["rows"]} == case["rows"]
    compiled = graph(*imported.documents)
    for decision, wanted in case.get("decided", {}).items():
        value = compiled.value(decision)
        assert (f"{value.ns // 10**9}s" if isinstance(value, Duration) else value) == wanted, decision


def test_what_koord_scheduler_has_nothing_for_is_told_when_it_is_exported() -> None:
    spec = {
        "schedulerName": "koord-scheduler",
        "ties": "First",
        "sampling": {"cel": "pod.labels[?'a'].orValue('') == 'b' ? percent(5) : percent(50)"},
        "parameters": {"usageThresholds": {"value": {}}, "prodBands": {"value": ["prod", "mid"]}},
        "filters": [
            {"name": "LoadAwareScheduling", "require": {"cel": "node.labels[?'a'].orValue('') != 'b'"}},
            {"name": "ours", "require": {"cel": "node.name != 'n'"}},
            {"name": "NodePorts", "enabled": {"cel": "pod.priority > 5"}},
        ],
        "scores": [{"name": "NodeAffinity", "enabled": False}],
    }
    exported, table = export_scheduler(graph(document("SchedulingProfile", "koord-scheduler", spec)))
    assert exported is not None
    told = {
        row.source.removeprefix("SchedulingProfile/koord-scheduler."): row.reason
        for row in table
        if row.reason
    }
    assert told == {
        "sampling": "it is no whole percentage for all pods",
        "ties": "koord-scheduler's configuration has nothing like it",
        "parameters.prodBands": "koord-scheduler's configuration has nothing like it",
        "queue.order": "it reads pod.subPriority; PrioritySort is written",
        "filters[LoadAwareScheduling]": "koord-scheduler has no such plugin",
        "filters[ours]": "koord-scheduler has no such plugin",
        "filters[NodePorts].enabled": "it is not the same for all pods",
    }
    (profile,) = exported["profiles"]
    arguments = {one["name"]: one["args"] for one in profile["pluginConfig"]}
    assert arguments["LoadAwareScheduling"]["usageThresholds"] == {"cpu": 0, "memory": 0}
    enabled = [one["name"] for one in profile["plugins"]["score"]["enabled"]]
    assert "NodeAffinity" not in enabled
    assert "TaintToleration" in enabled
