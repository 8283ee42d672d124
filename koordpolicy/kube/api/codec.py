"""JSON to objects and back, decoding no more than is kept.

Skipping is much cheaper than building and forgetting, so what nobody reads is never built. Where the fields of
a kind are known, `metadata.managedFields`, often the larger half of an object, costs almost nothing.
"""

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, TypedDict, cast

import msgspec

from koordpolicy.kube.errors import Unreachable
from koordpolicy.kube.frozen import freeze, is_json
from koordpolicy.kube.port import Object, ObjectList
from koordpolicy.kube.resources import EVENTS, LEASES, Resource

_DECODERS: Final = 64
"""Kinds whose decoders are kept at a time; components use a dozen."""


class ObjectMetadata(TypedDict, total=False):
    """What is kept of `metadata`: everything but `managedFields`."""

    name: str
    generateName: str
    namespace: str
    uid: str
    resourceVersion: str
    generation: int
    creationTimestamp: Any
    deletionTimestamp: Any
    deletionGracePeriodSeconds: Any
    labels: Any
    annotations: Any
    ownerReferences: Any
    finalizers: Any
    selfLink: Any


class Plain(TypedDict, total=False):
    """An object whose kind has `spec` and `status` and nothing else."""

    apiVersion: str
    kind: str
    metadata: ObjectMetadata
    spec: Any
    status: Any


class EventObject(TypedDict, total=False):
    """An Event of the core group: managers own more of it than it says."""

    apiVersion: str
    kind: str
    metadata: ObjectMetadata
    involvedObject: Any
    related: Any
    type: Any
    reason: Any
    action: Any
    message: Any
    count: Any
    series: Any
    eventTime: Any
    firstTimestamp: Any
    lastTimestamp: Any
    source: Any
    reportingComponent: Any
    reportingInstance: Any


_KINDS: Final = MappingProxyType[Resource, type]({LEASES: Plain, EVENTS: EventObject})
"""Kinds without `status` whose fields are known all the same."""


class _ListMetadata(msgspec.Struct):
    resourceVersion: str = ""  # noqa: N815  the wire's name
    token: str | None = msgspec.field(default=None, name="continue")
    remainingItemCount: int | None = None  # noqa: N815  the wire's name


class Codec:
    """Decodes and encodes the objects of a cluster.

    `managed_fields` keeps that part of the metadata. `shapes` names, for a resource, a TypedDict of what lists
    and watches keep of its objects; such objects are for reading, since writing them back would lose the rest.
    """

    def __init__(
        self, *, managed_fields: bool = False, shapes: Mapping[Resource, type] | None = None
    ) -> None:
        self._keeps_managers = managed_fields
        self._shapes = dict(shapes or {})
        self._object = lru_cache(_DECODERS)(self._object_decoder)
        self._list = lru_cache(_DECODERS)(self._list_decoder)
        self._frame = lru_cache(_DECODERS)(self._frame_decoder)

    def object(self, resource: Resource, body: bytes) -> Object:
        """One object. Raises Unreachable for what is no object: some server, but not this API."""
        obj = _decoded(self._object(resource), body)
        return self.finished(resource, obj)

    def list(self, resource: Resource, body: bytes) -> ObjectList:
        """One page of a list."""
        with _uncollected():
            page = _decoded(self._list(resource), body)
        items = page.items or ()
        for item in items:
            # Lists of built-in kinds say once what their items are.
            if "kind" not in item:
                item["apiVersion"] = resource.api_version
                item["kind"] = resource.kind
            self.finished(resource, item)
        metadata = page.metadata
        return ObjectList(items, metadata.resourceVersion, metadata.token or "", metadata.remainingItemCount)

    def frames(self, resource: Resource) -> msgspec.json.Decoder[Any]:
        """A decoder of the lines of a watch: values with `type` and `object`."""
        return self._frame(resource)

    def finished(self, resource: Resource, obj: dict[str, Any]) -> dict[str, Any]:
        """Drop what the decoder had to build although nobody wants it; the same object."""
        if not self._keeps_managers and not self._skips_managers(resource):
            metadata = obj.get("metadata")
            if type(metadata) is dict:
                metadata.pop("managedFields", None)
        return obj

    def _skips_managers(self, resource: Resource) -> bool:
        return resource.has_status or resource in self._shapes or resource in _KINDS

    def _kept(self, resource: Resource) -> Any:
        if not self._keeps_managers and self._skips_managers(resource):
            return _KINDS.get(resource, Plain)
        return dict[str, Any]

    def _object_decoder(self, resource: Resource) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(self._kept(resource))

    def _list_decoder(self, resource: Resource) -> msgspec.json.Decoder[Any]:
        kept = self._shapes.get(resource) or self._kept(resource)
        fields = [("metadata", _ListMetadata), ("items", list[kept] | None, None)]  # type: ignore[valid-type]
        return msgspec.json.Decoder(msgspec.defstruct("Page", cast(Any, fields)))

    def _frame_decoder(self, resource: Resource) -> msgspec.json.Decoder[Any]:
        kept = self._shapes.get(resource) or self._kept(resource)
        return msgspec.json.Decoder(msgspec.defstruct("Frame", [("type", str), ("object", kept)]))


def encode(value: Mapping[str, Any]) -> bytes:
    """The JSON of an object that was looked through before, or made here."""
    return msgspec.json.encode(value)


def encode_object(obj: Object) -> bytes:
    """The JSON of an object that somebody hands in. Raises Rejected, naming the place, for what is not JSON."""
    return msgspec.json.encode(obj if is_json(obj) else freeze(obj))


def encode_operations(operations: Sequence[Mapping[str, Any]]) -> bytes:
    """The JSON of a JSON patch. Raises Rejected for what is not JSON."""
    return msgspec.json.encode([freeze(operation) for operation in operations])


@contextmanager
def _uncollected() -> Iterator[None]:
    """Hold the collector of cycles back: JSON has none, and looking for them takes as long as decoding a page."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _decoded(decoder: msgspec.json.Decoder[Any], body: bytes) -> Any:
    try:
        return decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unreachable(f"the server's answer is not what an API server says: {error}") from error
