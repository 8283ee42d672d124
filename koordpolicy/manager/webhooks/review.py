"""An AdmissionReview (admission.k8s.io/v1): read from what an API server sends, and written with the answer."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from koordpolicy.algorithms.json_patch import json_patch
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionRequest, Operation
from koordpolicy.kube.resources import Resource
from koordpolicy.manager.webhooks.webhook import Webhook
from koordpolicy.model.reading import ObjectError, mapping, text
from koordpolicy.runtime.http.json_bodies import write_json

API_VERSION: Final = "admission.k8s.io/v1"
KIND: Final = "AdmissionReview"

WARNING: Final = 250
"""Characters of a warning: the API server cuts what is longer than 256."""
_WARNINGS: Final = 16
_MESSAGE: Final = 32_000
_OPERATIONS: Final = MappingProxyType({str(one): one for one in Operation})


@dataclass(frozen=True, slots=True)
class Review:
    """A request with the id by which its answer is known."""

    uid: str
    request: AdmissionRequest


def read_review(body: Any, webhook: Webhook) -> Review:
    """What a webhook is asked. Raises ObjectError for what is no review, or none that this webhook decides."""
    if not isinstance(body, Mapping):
        raise ObjectError("the body is no AdmissionReview")
    if body.get("kind") != KIND or body.get("apiVersion") != API_VERSION:
        raise ObjectError(f"the body is no {KIND} of {API_VERSION}")
    asked = mapping(body, "request")
    uid = text(asked, "uid", "request")
    if not uid:
        raise ObjectError("request.uid: a review without a uid")
    said = text(asked, "operation", "request")
    operation = _OPERATIONS.get(said)
    if operation is None or operation not in webhook.operations:
        raise ObjectError(
            f"request.operation: `{said}` is none that {webhook.name} decides: {', '.join(webhook.operations)}"
        )
    resource = _resource(mapping(asked, "resource", "request"), webhook)
    subresource = text(asked, "subResource", "request")
    if subresource not in webhook.subresources:
        raise ObjectError(f"request.subResource: `{subresource}` is none that {webhook.name} decides")
    user = mapping(asked, "userInfo", "request")
    groups = user.get("groups") or ()
    request = AdmissionRequest(
        operation,
        resource,
        subresource,
        text(asked, "namespace", "request"),
        text(asked, "name", "request"),
        _object(asked, "object"),
        _object(asked, "oldObject"),
        text(user, "username", "request.userInfo"),
        dry_run=asked.get("dryRun") is True,
        groups=tuple(str(one) for one in groups) if isinstance(groups, list) else (),
    )
    if operation is not Operation.DELETE and request.object is None:
        raise ObjectError("request.object: it is missing")
    return Review(uid, request)


def write_review(review: Review, answer: AdmissionAnswer, audit: Mapping[str, str]) -> bytes:
    """The answer as an API server takes it; `audit` are annotations beside those of the answer."""
    response: dict[str, Any] = {"uid": review.uid, "allowed": answer.allowed}
    if not answer.allowed:
        response["status"] = {"code": answer.code, "message": answer.message[:_MESSAGE]}
    elif answer.object is not None and review.request.object is not None:
        patch = json_patch(review.request.object, answer.object)
        if patch:
            response["patchType"] = "JSONPatch"
            response["patch"] = base64.b64encode(write_json(patch)).decode()
    if answer.warnings:
        response["warnings"] = [_short(one) for one in answer.warnings[:_WARNINGS]]
    annotations = {**audit, **answer.audit}
    if annotations:
        response["auditAnnotations"] = annotations
    return write_json({"apiVersion": API_VERSION, "kind": KIND, "response": response})


def _resource(said: Mapping[str, Any], webhook: Webhook) -> Resource:
    asked = said.get("group"), said.get("version"), said.get("resource")
    for one in webhook.resources:
        if (one.group, one.version, one.plural) == asked:
            return one
    name = f"{said.get('resource')}.{said.get('version')}.{said.get('group')}"
    raise ObjectError(f"request.resource: `{name}` is none that {webhook.name} decides")


def _object(asked: Mapping[str, Any], field: str) -> Mapping[str, Any] | None:
    found = asked.get(field)
    if found is None:
        return None
    if not isinstance(found, Mapping):
        raise ObjectError(f"request.{field}: it is no object")
    return found


def _short(warning: str) -> str:
    return warning if len(warning) <= WARNING else f"{warning[: WARNING - 1]}…"
