"""Validation of the ConfigMap `slo-controller-config`, for clusters that configure by it."""

import asyncio
from collections.abc import Iterable, Iterator
from typing import Final

from koordpolicy.algorithms.strategy_checks import CheckedNode, ConfigProblem, check_config
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.graph import RuleGraph
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest
from koordpolicy.kube.port import Object
from koordpolicy.kube.resources import NODES
from koordpolicy.manager.webhooks.scope import Scope
from koordpolicy.manager.webhooks.webhook import WebhookContext
from koordpolicy.model.protocol import CONFIG_MAP_TYPE
from koordpolicy.model.reading import ObjectError, mapping, texts
from koordpolicy.model.slo_config import CONFIG_MAP

_LARGE: Final = 50_000
"""Characters of documents above which they are checked in a thread, so that other reviews are answered meanwhile."""
BAD_REQUEST: Final = 400
"""With it the API server shows the text, as Koordinator has it."""


def labelled_config(_: RuleGraph) -> Scope:
    """ConfigMaps with the label that Koordinator asks for."""
    return Scope(objects=({"key": CONFIG_MAP_TYPE, "operator": "In", "values": [CONFIG_MAP]},))


class ConfigValidation:
    """Refuses documents that do not make sense: those that changed, the first thing that is wrong with them."""

    def __init__(self, context: WebhookContext) -> None:
        self._objects = context.objects

    async def answer(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        """A refusal, or None. Raises ObjectError for a ConfigMap that is none."""
        if request.object is None or request.name != CONFIG_MAP:
            return None
        data = texts(request.object, "data")
        old = {} if request.old_object is None else texts(request.old_object, "data")
        nodes = _nodes(tuple(self._objects.every(NODES)))
        if sum(map(len, data.values())) < _LARGE or not _has_loop():
            problem = check_config(data, old, nodes)
        else:
            problem = await asyncio.to_thread(check_config, data, old, nodes)
        return None if problem is None else AdmissionAnswer(False, told(problem), code=BAD_REQUEST)


def _has_loop() -> bool:
    """False in a simulation, where nobody else waits for an answer."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _nodes(nodes: Iterable[Object]) -> Iterator[CheckedNode]:
    """The nodes of the cluster; one whose labels cannot be read conflicts with nothing."""
    for node in nodes:
        try:
            metadata = mapping(node, "metadata")
            yield CheckedNode(str(metadata["name"]), texts(metadata, "labels", "metadata"))
        except ObjectError:
            continue


def told(problem: ConfigProblem) -> str:
    """A problem in the form in which Koordinator's clients read it."""
    if not problem.reason:
        return problem.message
    return f'___{{"reason":{json_text(problem.reason)},"message":{json_text(problem.message)}}}___'
