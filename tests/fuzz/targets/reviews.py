"""Pods as an API server hands them to the webhooks."""

import asyncio
import json
from collections.abc import Awaitable, Sequence
from functools import lru_cache
from inspect import isawaitable

from koordpolicy.kube.admission import AdmissionRequest, Handler, Operation
from koordpolicy.kube.known import FixedObjects
from koordpolicy.kube.resources import PODS
from koordpolicy.manager.webhooks.hooks import WEBHOOKS
from koordpolicy.manager.webhooks.webhook import WebhookContext
from koordpolicy.model.reading import ObjectError
from tests.fuzz.mutations import mutate_json
from tests.fuzz.target import Target
from tests.fuzz.targets.policies import NOW, graph_of_the_pack
from tests.hostile.objects import pod


@lru_cache(maxsize=1)
def _handlers() -> tuple[Handler, ...]:
    context = WebhookContext(graph_of_the_pack, FixedObjects(), lambda: NOW, lambda: 50.0)
    return tuple(one.handler(context) for one in WEBHOOKS if PODS in one.resources)


def _seeds() -> Sequence[bytes]:
    return tuple(
        json.dumps({"operation": operation, "object": one, "old": old, "namespace": "default"}).encode()
        for one in (pod(), pod(node=""))
        for operation, old in (("CREATE", None), ("UPDATE", one))
    )


def _run(data: bytes) -> None:
    review = json.loads(data)
    if not isinstance(review, dict) or str(review.get("operation")) not in ("CREATE", "UPDATE"):
        return
    asked, old = review.get("object"), review.get("old")
    if not isinstance(asked, dict) or not (old is None or isinstance(old, dict)):
        return
    request = AdmissionRequest(Operation(review["operation"]), PODS, "", "default", "p", asked, old)
    for handler in _handlers():
        try:
            answer = handler(request)
            if isawaitable(answer):
                asyncio.run(_awaited(answer))
        except ObjectError:
            continue


async def _awaited(answer: Awaitable[object]) -> None:
    await answer


REVIEWS = Target("reviews", "pods in front of the webhooks", _seeds, mutate_json, _run)
