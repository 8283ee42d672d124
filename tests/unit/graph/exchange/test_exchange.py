"""Random configurations: imported they decide what Koordinator makes of them, exported and imported again they stay."""

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from koordpolicy.algorithms.colocation import colocation
from koordpolicy.algorithms.strategies import expand
from koordpolicy.graph import Compilation, Compiler, Layer, RuleGraph
from koordpolicy.graph.exchange.documents import Imported
from koordpolicy.graph.exchange.exporting import export
from koordpolicy.graph.exchange.fields import FIELDS, MEASURED
from koordpolicy.graph.exchange.importing import defaults_of, import_config, import_objects
from koordpolicy.graph.exchange.refusing import files_of, without_refused
from koordpolicy.graph.exchange.rendering import strategy_of
from koordpolicy.model.slo_config import COLOCATION, LAYOUTS, SWITCHED_OFF, THRESHOLD, Strategy, read_document
from tests.unit.graph.exchange import configurations
from tests.vectors.policies import PACK, graph

NAMESPACE = "koordinator-system"
COMPILER = Compiler({PACK.name: PACK}.get)


def compiled(documents: Sequence[dict[str, Any]]) -> Compilation:
    """What comes of imported documents."""
    return COMPILER.compile(Layer("overlay", files_of(documents)))


def expected(key: str, text: str, labels: Mapping[str, str]) -> Strategy | None:
    """What Koordinator makes of a document for a node; None where it does not take the document."""
    defaults = {**defaults_of(graph(), key), **({"enable": False} if key in SWITCHED_OFF else {})}
    document = read_document(key, text)
    if key != COLOCATION:
        if key == "host-application-config":
            return expand_applications(document, labels)
        return expand(LAYOUTS[key], document, defaults).of(labels)
    expanded = colocation(document, defaults)
    if expanded is None:
        return None
    found = dict(expanded.of(labels))
    found["enable"] = bool(found["enable"] and expanded.cluster["enable"])
    if not found["enable"]:
        found |= {name: defaults[name] for name in MEASURED}
    carried = {row.path[0] for row in FIELDS[COLOCATION]}
    return {name: value for name, value in found.items() if name in carried}


def expand_applications(document: Any, labels: Mapping[str, str]) -> Strategy:
    """The first entry for the node replaces the list; nothing is merged."""
    chosen = document.cluster or {}
    for entry in document.entries:
        if entry.selector is not None and entry.selector.matches(labels):
            chosen = entry.strategy
            break
    return {"applications": [{**one, "strategy": {}} for one in chosen.get("applications", ())]}


def pruned(value: Any) -> Any:
    """Without what is empty: to koordlets it is as absent."""
    if isinstance(value, Mapping):
        inner = {key: pruned(one) for key, one in value.items()}
        return {key: one for key, one in inner.items() if one not in ({}, [], "")}
    return [pruned(one) for one in value] if isinstance(value, list) else value


def decided(compiled: RuleGraph, key: str, labels: Mapping[str, str]) -> Strategy:
    node = {"labels": dict(labels), "annotations": {}, "name": ""}
    return strategy_of(compiled, key, {"node": node}, configured=True)


def taken(data: Mapping[str, str]) -> Imported:
    """What is imported of a ConfigMap's data, without what is refused."""
    return without_refused(import_config(data, graph()), compiled)


def refused(imported: Imported) -> set[str]:
    """The documents of which something is left out because it would be refused."""
    return {row.source.partition(".")[0] for row in imported.table if row.reason.startswith("KP")}


SEEDS = (*range(12), 1042)


@pytest.mark.parametrize("seed", SEEDS)
def test_imported_policies_decide_what_koordinator_does(seed: int) -> None:
    random = Random(seed)
    data = configurations.data(random)
    imported = taken(data)
    decisions = graph(*imported.documents)
    compared = 0
    for key, text in data.items():
        if key in refused(imported):
            continue
        for labels in configurations.LABELS:
            wanted = expected(key, text, labels)
            if wanted is not None:
                assert pruned(decided(decisions, key, labels)) == pruned(wanted), (key, labels, text)
                compared += 1
    assert compared >= 4 * len(configurations.LABELS)
    assert not [row for row in imported.table if bool(row.decision) == bool(row.reason)]


ROUND_TRIPS = (*range(12, 18), 1014, 1017, 1031, 1042, 1080)


@pytest.mark.parametrize("seed", ROUND_TRIPS)
def test_what_is_exported_and_imported_is_exported_again_as_it_was(seed: int) -> None:
    data = configurations.data(Random(seed))
    first = graph(*taken(data).documents)
    written = export(first, NAMESPACE)
    second = graph(*import_objects(written.objects, graph()).documents)
    again = export(second, NAMESPACE)
    assert documents(again.objects[0]) == documents(written.objects[0])
    assert not {row.source for row in written.table if row.reason} & set(LAYOUTS)
    for key in LAYOUTS:
        for labels in configurations.LABELS:
            assert pruned(decided(second, key, labels)) == pruned(decided(first, key, labels)), (key, labels)


def test_what_would_be_refused_is_left_out_and_told() -> None:
    cluster = {"enable": True, "cpuSuppressThresholdPercent": 0, "memoryEvictThresholdPercent": 80}
    imported = taken({"resource-threshold-config": json.dumps({"clusterStrategy": cluster})})
    (told,) = [row for row in imported.table if row.reason]
    assert told.source == "resource-threshold-config.clusterStrategy.cpuSuppressThresholdPercent"
    assert told.reason.startswith("KP406: `CPUSuppress.target` is 0 on an idle node")
    decisions = decided(graph(*imported.documents), THRESHOLD, {})
    assert (decisions["cpuSuppressThresholdPercent"], decisions["memoryEvictThresholdPercent"]) == (65, 80)


def documents(config: Mapping[str, Any]) -> dict[str, Any]:
    return {key: json.loads(text) for key, text in config["data"].items()}


def test_what_cannot_be_taken_is_told() -> None:
    data = {
        "resource-threshold-config": json.dumps(
            {
                "clusterStrategy": {"cpuSuppressPolicy": "nonsense"},
                "nodeStrategies": [
                    {"name": "nobody", "cpuSuppressThresholdPercent": 1},
                    {"name": "all", "nodeSelector": {}, "enable": True},
                    {"name": "late", "nodeSelector": {"matchLabels": {"a": "1"}}, "enable": False},
                ],
            }
        ),
        "system-config": json.dumps({"clusterStrategy": {"schedFeatures": {"NO-NAME": True}}}),
        "cpu-burst-config": "{",
        "unheard-of": "{}",
    }
    told = {row.source: row.reason for row in import_config(data, graph()).table if row.reason}
    at = "resource-threshold-config.nodeStrategies"
    assert told == {
        f"{at}[0] (nobody)": "it has no selector that makes sense, and selects no node",
        "resource-threshold-config.clusterStrategy.enable": "entries for all nodes say it",
        f"{at}[2] (late)": "earlier entries select all its nodes",
        "resource-threshold-config.clusterStrategy.cpuSuppressPolicy": "`nonsense` is none of `cpuset`, `cfsQuota`",
        "system-config.clusterStrategy.schedFeatures.NO-NAME": "`NO-NAME` is no name",
        "cpu-burst-config": (
            "cpu-burst-config: not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
        ),
        "unheard-of": "nothing in policies says that yet",
    }


def test_what_is_not_written_is_not_told_as_written() -> None:
    data = {"system-config": '{"clusterStrategy": {"minFreeKbytesFactor": 100}}', "colocation-config": "{}"}
    sources = {row.source for row in import_config(data, graph()).table}
    assert 'system-config.clusterStrategy.totalNetworkBandwidth (absent: "0")' in sources
    assert "colocation-config.enable (absent: false)" in sources
    assert not {"system-config.clusterStrategy.totalNetworkBandwidth", "colocation-config.enable"} & sources


@pytest.mark.parametrize("seed", range(40, 46))
def test_keys_that_nobody_knows_are_told_one_by_one_and_change_nothing(seed: int) -> None:
    random = Random(seed)
    data = configurations.data(random)
    strange, places = {}, set()
    for key, text in data.items():
        document, more = configurations.with_unknown_keys(json.loads(text), key, random)
        strange[key] = json.dumps(document)
        places |= more
    before, after = import_config(data, graph()), import_config(strange, graph())
    assert after.documents == before.documents
    told = [row for row in after.table if row not in before.table]
    assert len(places) > 5
    assert {row.source for row in told} == places
    assert all("knows no such field" in row.reason for row in told)


def test_a_misspelt_key_is_told_what_is_near() -> None:
    entry = {
        "name": "web",
        "nodeSelector": {},
        "cpuReclaimThresholdPercnt": 40,
        "CPUReclaimThresholdPercent": 50,
    }
    table = import_config({COLOCATION: json.dumps({"nodeConfigs": [entry]})}, graph()).table
    assert [(row.source, row.reason.partition(";")[2]) for row in table if row.reason] == [
        (
            f"{COLOCATION}.nodeConfigs[0].cpuReclaimThresholdPercnt",
            " did you mean `cpuReclaimThresholdPercent`?",
        )
    ]


OWN = (
    # kind, spec, what is told to stay behind
    (
        "Overcommit",
        {"resource": "batch", "cpu": {"cel": "node.capacity.cpu * percent(10)"}},
        "Overcommit/batch.cpu",
    ),
    ("Overcommit", {"resource": "mid", "memory": "1Gi"}, "Overcommit/mid.memory"),
    ("CPUSuppress", {"target": {"cel": "node.capacity.cpu * percent(50)"}}, "CPUSuppress.target"),
    ("CPUSuppress", {"parameters": {"threshold": "50%"}}, ""),
    ("CPUSuppress", {"interval": "5s"}, "CPUSuppress.interval"),
    ("SystemTuning", {"networkBandwidth": "10G"}, ""),
    ("AdmissionRule", {"require": {"cel": "pod.name != ''"}, "message": "x"}, "AdmissionRule/own"),
    ("SchedulingProfile", {"schedulerName": "own", "sampling": "50%"}, "SchedulingProfile/own"),
)


@pytest.mark.parametrize(("kind", "spec", "left"), OWN)
@pytest.mark.parametrize("match", [None, {"nodes": {"matchLabels": {"pool": "web"}}}])
def test_what_is_said_beyond_the_configuration_is_told(
    kind: str, spec: dict[str, Any], left: str, match: dict[str, Any] | None
) -> None:
    if match is not None and kind in ("AdmissionRule", "SchedulingProfile"):
        return
    policy = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": kind,
        "metadata": {"name": "own"},
        "spec": {**spec, **({"match": match} if match else {})},
    }
    table = export(graph(policy), NAMESPACE).table
    told = [row.source.partition(" ")[0] for row in table if row.reason and not row.layer]
    assert told == ([left] if left else [])


def test_entries_keep_their_names() -> None:
    document = {
        "nodeStrategies": [
            {"name": "Front End", "nodeSelector": {"matchLabels": {"pool": "web"}}, "policy": "auto"},
            {
                "name": "spare",
                "nodeSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]},
                "policy": "none",
            },
        ]
    }
    policies = taken({"cpu-burst-config": json.dumps(document)}).documents
    written = documents(export(graph(*policies), NAMESPACE).objects[0])["cpu-burst-config"]
    names = [one["name"] for one in written["nodeStrategies"]]
    assert "Front End" in names
    assert len(set(names)) == len(names)


PROFILE = {
    "apiVersion": "config.koordinator.sh/v1alpha1",
    "kind": "ClusterColocationProfile",
    "metadata": {"name": "reports", "annotations": {"config.koordinator.sh/skip-update-resources": "true"}},
    "spec": {
        "namespaceSelector": {"matchLabels": {"team": "data"}},
        "selector": {"matchExpressions": [{"key": "job", "operator": "Exists"}]},
        "probability": "50%",
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
        "koordinatorPriority": 7,
        "schedulerName": "koord-scheduler",
        "labels": {"x": "y"},
        "annotations": {"p": "q"},
        "labelKeysMapping": {"old": "new"},
        "annotationKeysMapping": {"from": "to"},
        "labelSuffixes": {"job": "-batch"},
        "patch": {"spec": {"terminationGracePeriodSeconds": 30}},
    },
}


def test_a_profile_comes_back_as_it_was() -> None:
    imported = import_objects([PROFILE], graph())
    assert not [row for row in imported.table if row.reason]
    exported = export(graph(*imported.documents), NAMESPACE)
    profiles = [one for one in exported.objects if one["kind"] == "ClusterColocationProfile"]
    assert profiles == [PROFILE]


def test_what_no_profile_can_say_is_told() -> None:
    imported = import_objects([PROFILE], graph())
    imported.documents[0]["spec"]["match"]["condition"] = "pod.name != ''"
    table = export(graph(*imported.documents), NAMESPACE).table
    assert "Koordinator's profiles have selectors alone" in [row.reason for row in table]


def test_policies_that_look_beyond_labels_are_not_written() -> None:
    policy = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "CPUBurst",
        "metadata": {"name": "large"},
        "spec": {"match": {"condition": "node.capacity.cpu > cpu('32')"}, "policy": "auto"},
    }
    table = export(graph(policy), NAMESPACE).table
    assert "its policies read node.capacity.cpu; a ConfigMap knows labels alone" in [
        row.reason for row in table
    ]
