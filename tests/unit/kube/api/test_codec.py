"""JSON to objects and back."""

import json
from types import MappingProxyType
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.kube import Rejected, Unreachable, freeze
from koordpolicy.kube.api.codec import Codec, encode_object, encode_operations
from koordpolicy.kube.resources import CONFIG_MAPS, EVENTS, LEASES, NODES, PODS

MANAGERS = [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}]
METADATA = {
    "name": "a",
    "generateName": "a-",
    "namespace": "ns",
    "uid": "u",
    "resourceVersion": "7",
    "generation": 2,
    "creationTimestamp": "2026-01-01T00:00:00Z",
    "deletionTimestamp": "2026-01-01T00:01:00Z",
    "deletionGracePeriodSeconds": 30,
    "labels": {"a": "b"},
    "annotations": {"c": "d"},
    "ownerReferences": [{"uid": "o"}],
    "finalizers": ["f"],
}


def body(resource: Any, **more: Any) -> dict[str, Any]:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": METADATA, **more}


def with_managers(obj: dict[str, Any]) -> bytes:
    return json.dumps({**obj, "metadata": {**obj["metadata"], "managedFields": MANAGERS}}).encode()


OBJECTS = [
    (PODS, body(PODS, spec={"nodeName": "n"}, status={"phase": "Running"})),
    (NODES, body(NODES, spec={}, status={"images": [{"names": ["x"]}]})),
    (LEASES, body(LEASES, spec={"holderIdentity": "x"})),
    (
        EVENTS,
        body(
            EVENTS,
            involvedObject={"kind": "Pod"},
            related={"kind": "Node"},
            type="Normal",
            reason="Scheduled",
            action="Binding",
            message="on a node",
            count=3,
            series={"count": 3},
            eventTime=None,
            firstTimestamp="2026-01-01T00:00:00Z",
            lastTimestamp="2026-01-01T00:01:00Z",
            source={"component": "a"},
            reportingComponent="a",
            reportingInstance="b",
        ),
    ),
    (CONFIG_MAPS, body(CONFIG_MAPS, data={"a": "1"}, binaryData={"b": "eA=="}, immutable=True)),
]


@pytest.mark.parametrize(("resource", "obj"), OBJECTS, ids=lambda value: str(value)[:20])
def test_everything_is_kept_but_who_manages_what(resource: Any, obj: dict[str, Any]) -> None:
    wire = with_managers(obj)
    assert Codec().object(resource, wire) == obj
    assert Codec(managed_fields=True).object(resource, wire) == json.loads(wire)
    listed = json.dumps({"metadata": {"resourceVersion": "9"}, "items": [json.loads(wire)]}).encode()
    assert Codec().list(resource, listed).items == [obj]
    frame = Codec().frames(resource).decode(b'{"type":"ADDED","object":' + wire + b"}")
    assert Codec().finished(resource, frame.object) == obj


def test_a_page_says_where_it_stands() -> None:
    wire = {"metadata": {"resourceVersion": "9", "continue": "t", "remainingItemCount": 5}, "items": None}
    page = Codec().list(PODS, json.dumps(wire).encode())
    assert (page.items, page.resource_version, page.continue_token, page.remaining) == ((), "9", "t", 5)


def test_items_of_lists_get_the_type_that_stands_once_on_the_wire() -> None:
    wire = {"metadata": {"resourceVersion": "9"}, "items": [{"metadata": {"name": "a"}}]}
    [item] = Codec().list(PODS, json.dumps(wire).encode()).items
    assert item == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}


class SlimStatus(TypedDict, total=False):
    phase: str


class SlimPod(TypedDict, total=False):
    metadata: dict[str, Any]
    status: SlimStatus


def test_a_shape_keeps_what_it_names() -> None:
    codec = Codec(shapes={PODS: SlimPod})
    obj = body(PODS, spec={"containers": [{}]}, status={"phase": "Running", "containerStatuses": [{}]})
    wire = json.dumps(obj).encode()
    frame = codec.frames(PODS).decode(b'{"type":"ADDED","object":' + wire + b"}")
    assert frame.object == {"metadata": METADATA, "status": {"phase": "Running"}}
    assert codec.object(PODS, wire) == obj, "what may be written back is whole"


@pytest.mark.parametrize(
    "answer", [b"", b"<html>", b"[1]", b'"a"', b"{", b'{"metadata": []}', b"\xff", b"[" * 90_000]
)
def test_what_is_no_answer_of_an_api_server_is_trouble(answer: bytes) -> None:
    with pytest.raises(Unreachable):
        Codec().object(PODS, answer)
    with pytest.raises(Unreachable):
        Codec().list(PODS, answer)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
def test_encoding_is_what_the_standard_library_reads(value: dict[str, Any]) -> None:
    assert json.loads(encode_object(value)) == value
    assert json.loads(encode_object(freeze(value))) == value
    assert json.loads(encode_object(MappingProxyType(value))) == value
    assert json.loads(encode_operations([value])) == [value]


@pytest.mark.parametrize("value", [{"a": object()}, {1: "a"}, {"a": float("nan")}, {"a": {"b": b"bytes"}}])
def test_what_is_not_json_is_rejected(value: Any) -> None:
    with pytest.raises(Rejected):
        encode_object(value)
    with pytest.raises(Rejected):
        encode_operations([value])
