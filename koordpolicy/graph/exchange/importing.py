"""Koordinator's configuration as policies: of all objects that say something, in one table."""

import re
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.algorithms.colocation import colocation
from koordpolicy.algorithms.strategy_checks import outside
from koordpolicy.diagnostics import Diagnostics
from koordpolicy.diagnostics.nearest import nearest
from koordpolicy.graph.exchange.documents import Imported, Taken, import_document
from koordpolicy.graph.exchange.profiles import KIND as PROFILE
from koordpolicy.graph.exchange.profiles import import_profile
from koordpolicy.graph.exchange.rendering import strategy_of
from koordpolicy.graph.exchange.scheduling import import_scheduler
from koordpolicy.graph.graph import RuleGraph
from koordpolicy.language.documents.manifests import read_manifests
from koordpolicy.model.scheduler_config import KIND as SCHEDULER
from koordpolicy.model.slo_config import (
    COLOCATION,
    CONFIG_MAP,
    LAYOUTS,
    NEVER_NULL,
    ConfigDocument,
    ConfigError,
    Strategy,
    read_document,
)
from koordpolicy.model.slo_unknown import unknown_keys

_NOT_TAKEN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "ElasticQuota": "it stays an object of the cluster, which the scheduler and the webhooks read",
        "ElasticQuotaProfile": "it stays an object of the cluster",
    }
)


def defaults_of(graph: RuleGraph, key: str) -> Strategy:
    """What the policies of a graph say for a node that nothing else is known of: what a document is merged over."""
    return strategy_of(graph, key, {"node": {"labels": {}, "annotations": {}, "name": ""}}, configured=True)


def import_objects(objects: Iterable[Mapping[str, Any]], graph: RuleGraph) -> Imported:
    """The policies that decide what these objects make Koordinator decide, above those of a graph."""
    result = Imported()
    for obj in objects:
        kind, name = str(obj.get("kind", "")), str((obj.get("metadata") or {}).get("name", ""))
        if kind == "ConfigMap" and name == CONFIG_MAP:
            result.add(import_config(obj.get("data") or {}, graph))
        elif kind == PROFILE:
            result.add(import_profile(obj))
        elif kind == SCHEDULER:
            result.add(import_scheduler(obj, graph))
        elif kind == "ConfigMap":
            for config in _scheduler_configs(name, obj.get("data") or {}):
                result.add(import_scheduler(config, graph))
        elif kind in _NOT_TAKEN:
            result.table.append(
                Taken(f"{kind}/{name}" if name else kind, reason=_NOT_TAKEN[kind], keeps=True)
            )
    return result


def _scheduler_configs(name: str, data: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    """The configurations of schedulers that a ConfigMap holds as files; files of other kinds are nobody's business."""
    for key, text in data.items():
        if SCHEDULER in text:
            for document in read_manifests(f"{name}/{key}", text, Diagnostics()):
                if document.data.get("kind") == SCHEDULER:
                    yield document.data


def import_config(data: Mapping[str, str], graph: RuleGraph, precedence: int = 0) -> Imported:
    """The policies of a ConfigMap `slo-controller-config`, from `precedence` upwards."""
    result = Imported()
    for key, text in data.items():
        if key not in LAYOUTS:
            result.table.append(Taken(key, reason="nothing in policies says that yet"))
            continue
        try:
            document = read_document(key, text) if text else ConfigDocument()
        except ConfigError as error:
            result.table.append(Taken(key, reason=str(error)))
            continue
        if document is None and key in NEVER_NULL:
            result.table.append(Taken(key, reason="it is `null`, over which Koordinator ends"))
            continue
        result.add(import_text(key, document or ConfigDocument(), defaults_of(graph, key), precedence))
        result.table.extend(_unknown(key, text) if text else ())
    return result


def _unknown(key: str, text: str) -> Iterator[Taken]:
    for place, known in unknown_keys(key, text):
        close = nearest(place.rpartition(".")[2], known)
        meant = f"; did you mean `{close}`?" if close else ""
        yield Taken(place, reason=f"Koordinator knows no such field, and passes over it{meant}")


def import_text(key: str, document: ConfigDocument, defaults: Strategy, precedence: int = 0) -> Imported:
    """The policies of one document, unless Koordinator would not take it."""
    if key == COLOCATION and colocation(document, {**defaults, "enable": False}) is None:
        return Imported(
            table=[
                Taken(key, reason="what it says for the cluster is invalid; Koordinator keeps the old one")
            ]
        )
    beyond = [
        Taken(f"{key}: {words.split(' ')[0]}", reason=words)
        for strategy in (document.cluster or {}, *(entry.strategy for entry in document.entries))
        for words in outside(LAYOUTS[key].strategy, strategy)
        if not re.search("written beside it$", words)
    ]
    found = import_document(key, document, defaults, precedence)
    found.table.extend(beyond)
    return found
