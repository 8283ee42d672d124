"""Runners of the manager: strategies of `slo-controller-config`, imported as policies and asked of them."""

import json
from collections.abc import Mapping
from typing import Any

from koordpolicy.algorithms.colocation import colocation, with_node
from koordpolicy.algorithms.node_record import NodeSight, node_record
from koordpolicy.algorithms.strategy_checks import CheckedNode, check_config
from koordpolicy.graph import RuleGraph
from koordpolicy.graph.exchange.documents import import_document
from koordpolicy.graph.exchange.rendering import strategy_of
from koordpolicy.language.facts import TIMES
from koordpolicy.model.node import read_node
from koordpolicy.model.protocol import NETWORK_BANDWIDTH
from koordpolicy.model.slo_config import COLOCATION, LAYOUTS, ConfigDocument, read, read_document
from tests.vectors.compare import Comparison
from tests.vectors.policies import graph
from tests.vectors.runners.runner import Runner

Given = Mapping[str, Any]

_NODE: Given = {"metadata": {"name": "node"}}


def nodeslo_strategy(given: Given) -> Given:
    key = given["document"]
    annotation = given["node"].get("network_bandwidth_annotation")
    annotations = {} if annotation is None else {NETWORK_BANDWIDTH: annotation}
    node = {"metadata": {"name": "node", "labels": given["node"]["labels"], "annotations": annotations}}
    document = _document(key, given["config"])
    imported = import_document(key, document, _defaults(key), precedence=1)
    return strategy_of(compiled := graph(*imported.documents), key, _roots(compiled, node))


def _document(key: str, config: Given) -> ConfigDocument:
    """The document with selectors as they stand in a ConfigMap."""
    entries = LAYOUTS[key].entries
    said = {name: value for name, value in config.items() if name != entries}
    if entries in config:
        said[entries] = [_entry(one) for one in config[entries]]
    return read_document(key, json.dumps(said)) or ConfigDocument()


def _entry(given: Given) -> Given:
    entry = {name: value for name, value in given.items() if name != "selector"}
    return {**entry, "nodeSelector": {"matchLabels": given["selector"]}} if "selector" in given else entry


def _defaults(key: str) -> Given:
    """What the built-in policies say, where nothing is configured."""
    pack = graph()
    return strategy_of(pack, key, _roots(pack, _NODE))


def _roots(compiled: RuleGraph, node: Given) -> Given:
    return {"node": node_record(NodeSight(read_node(node)), compiled.catalogue, TIMES, 0)}


def colocation_strategy(given: Given) -> Given:
    document = _document(COLOCATION, given["config"])
    defaults = {**_METRICS, **_defaults(COLOCATION), "enable": False}
    expanded = colocation(document, defaults)
    if expanded is None:
        return {"config_accepted": False}
    labels = given["node"]["labels"]
    annotation = read(LAYOUTS[COLOCATION].strategy, given["node"].get("colocation_strategy_annotation", {}))
    strategy = with_node(expanded.of(labels), annotation, labels)
    enabled = bool(expanded.cluster["enable"] and strategy["enable"])
    return {"config_accepted": True, "strategy": {**strategy, "effective_enabled": enabled}}


_METRICS: Given = {
    "metricAggregateDurationSeconds": 300,
    "metricReportIntervalSeconds": 60,
    "metricAggregatePolicy": {"durations": ["5m0s", "10m0s", "30m0s"]},
    "metricMemoryCollectPolicy": "usageWithoutPageCache",
}


def configmap_validation(given: Given) -> Given:
    data = {key: json.dumps(text) for key, text in given.items() if key != "existing_nodes"}
    nodes = [CheckedNode(node["name"], node["labels"]) for node in given.get("existing_nodes", ())]
    problem = check_config(data, {}, nodes, system_needed=True)
    if problem is None:
        return {"allowed": True}
    return {"allowed": False, **({"reason": problem.reason} if problem.reason else {})}


RUNNERS: Mapping[str, Runner] = {
    "nodeslo_strategy": Runner(nodeslo_strategy),
    "colocation_strategy": Runner(colocation_strategy, Comparison(only_expected=True)),
    "configmap_validation": Runner(configmap_validation),
}
