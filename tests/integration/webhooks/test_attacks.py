"""Hostile reviews, bytes and clients at a manager that serves webhooks, alone and behind a front.

Whatever comes, nothing is admitted that a rule refuses, nothing fails as nobody foresaw, and whoever asks next is answered.
"""

import gzip
import http.client
import json
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runtime.managers import Manager
from tests.integration.webhooks.site import WebhookSite, make_webhook_site, pod, policy
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need
from tests.parts.processes import free_port

LABELS = {"app": "spark"}
MATCH = {"match": {"pods": {"matchLabels": LABELS}}}
PATHS = ("/mutate-pod", "/validate-pod")
SECONDS = 20.0
"""For any answer, on a busy machine."""
HEARING = 0.2
"""For an answer to what need not have one."""
LARGE = "x" * 3_000_000


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("attacks")) as server:
        yield server


def review(obj: Any, **request: Any) -> bytes:
    """What an API server would send about a pod, but for what is said otherwise; None leaves a field out."""
    whole = {
        "uid": "u",
        "operation": "CREATE",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": "default",
        "userInfo": {"username": "jane"},
        "object": obj,
        **request,
    }
    said = {key: value for key, value in whole.items() if value is not None}
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": said}
    ).encode()


def spark(**changes: Any) -> dict[str, Any]:
    """A pod that the rule refuses, but for changes of its spec."""
    made = pod("p", LABELS)
    made["spec"] |= changes
    return made


def asks_for(resources: Any) -> dict[str, Any]:
    return spark(containers=[{"name": "c", "image": "i", "resources": resources}])


def labelled(**metadata: Any) -> dict[str, Any]:
    made = spark()
    made["metadata"] |= metadata
    return made


def nested(depth: int, inner: bytes = b"1") -> bytes:
    return b'{"a":' * depth + inner + b"}" * depth


PODS: Mapping[str, Any] = {
    "3 MB in an annotation": labelled(annotations={"a": LARGE}),
    "3 MB of labels": labelled(labels={**LABELS, **{f"l{at}": "x" * 50 for at in range(40_000)}}),
    "3 MB that escapes double": labelled(annotations={"a": '"\\' * 700_000}),
    "5,000 containers": spark(containers=[{"name": f"c{at}", "image": "i"} for at in range(5_000)]),
    "containers that are an object": spark(containers={"c": 1}),
    "a container that is nothing": spark(containers=[None]),
    "a container that is a list": spark(containers=[[]]),
    "no spec": {key: value for key, value in spark().items() if key != "spec"},
    "a spec that is text": {**spark(), "spec": "x"},
    "labels that are a list": labelled(labels=["app", "spark"]),
    "a label that is a number": labelled(labels={**LABELS, "n": 1}),
    "annotations that are text": labelled(annotations="x"),
    "a name that turns around": labelled(name="\u202eabc\ud800"),
    "requests that are a list": asks_for({"requests": ["cpu"]}),
    "no number": asks_for({"requests": {"cpu": "NaN"}, "limits": {"cpu": "Infinity"}}),
    "a number without end": asks_for({"requests": {"cpu": "1e999999"}}),
    "many digits": asks_for({"requests": {"memory": "9" * 5_000}}),
    "less than nothing": asks_for({"requests": {"cpu": "-5", "memory": "-8Ei"}}),
    "more than fits": asks_for({"requests": {"memory": "8Ei"}, "limits": {"memory": "8Ei"}}),
    "a resource without a name": asks_for({"requests": {"": "1", "a/b/c": "1"}}),
    "a priority beyond all": spark(priority=2**63),
    "tolerations that are text": spark(tolerations="x"),
    "affinity that is a list": spark(affinity=[]),
    "JSON that is none in our annotations": labelled(
        annotations={"node.koordinator.sh/extended-resource-spec": "{" * 100_000}
    ),
    "an object of another kind": {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": "n", "labels": LABELS},
    },
    "a list of pods": [spark()],
    "text": "pod",
    "nothing": None,
}
"""Objects that stand where the pod should; all that are pods break the rule."""

REVIEWS: Mapping[str, bytes] = {
    "nothing": b"",
    "half of it": review(spark())[:-20],
    "text": b'"review"',
    "null": b"null",
    "a list": b"[" + review(spark()) + b"]",
    "two of them": review(spark()) * 2,
    "no request": b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
    "a request that is a list": b'{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":[]}',
    "another version": review(spark()).replace(b"admission.k8s.io/v1", b"admission.k8s.io/v9"),
    "another kind": review(spark()).replace(b"AdmissionReview", b"TokenReview"),
    "no uid": review(spark(), uid=None),
    "a uid that is a number": review(spark(), uid=5),
    "no operation": review(spark(), operation=None),
    "an unknown operation": review(spark(), operation="EXPLODE"),
    "an operation in small letters": review(spark(), operation="create"),
    "CONNECT": review(spark(), operation="CONNECT"),
    "an operation that is a list": review(spark(), operation=["CREATE"]),
    "another resource": review(spark(), resource={"group": "", "version": "v1", "resource": "secrets"}),
    "a resource that is text": review(spark(), resource="pods"),
    "another subresource": review(spark(), subResource="exec"),
    "a subresource that is a number": review(spark(), subResource=1),
    "a namespace that is a list": review(spark(), namespace=["default"]),
    "a user that is text": review(spark(), userInfo="root"),
    "an update of nothing": review(spark(), operation="UPDATE"),
    "an update of text": review(spark(), operation="UPDATE", oldObject="x"),
    "deep": nested(200_000),
    "deep in the pod": review({"metadata": "@"}).replace(b'"@"', nested(100_000)),
    "deep lists": b"[" * 500_000,
    "not UTF-8": review(spark()).replace(b"spark", b"sp\xff\xfe"),
    "UTF-16": review(spark()).decode().encode("utf-16"),
    "a mark before it": b"\xef\xbb\xbf" + review(spark()),
    "NaN": review(spark()).replace(b'"uid": "u"', b'"uid": NaN'),
    "a number of 100,000 digits": review({"metadata": "@"}).replace(b'"@"', b"9" * 100_000),
    "a number too large for a float": review({"metadata": "@"}).replace(b'"@"', b"1e999999"),
    "half a character": review(spark()).replace(b'"jane"', b'"\\ud800"'),
    "zeros": b"\0" * 1_000_000,
    "17 MB": b'{"a":"' + b"x" * 17_000_000 + b'"}',
}
"""Bodies that are no review of a pod, or none that a webhook for pods can decide."""

HEAD = b"POST /validate-pod?timeout=10s HTTP/1.1\r\nHost: a\r\n"
GOOD = review(spark())
BOMB = gzip.compress(b"0" * 50_000_000)
BYTES: Mapping[str, bytes] = {
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\xfc\x03\x03" * 50,
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0",
    "HTTP/1.0": b"POST /validate-pod HTTP/1.0\r\nContent-Length: 0\r\n\r\n",
    "two lengths": HEAD + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\n" + GOOD,
    "a length below nothing": HEAD + b"Content-Length: -1\r\n\r\n" + GOOD,
    "a length without end": HEAD + b"Content-Length: 999999999999999999999\r\n\r\n",
    "a length and chunks": HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "chunks that are none": HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    "less than its length": HEAD + b"Content-Length: 5000\r\n\r\n" + GOOD[:100],
    "half a head": HEAD,
    "a long head": HEAD + b"X: " + b"y" * 200_000 + b"\r\n\r\n",
    "many lines": HEAD + b"X: y\r\n" * 20_000 + b"\r\n",
    "an unknown encoding": HEAD + b"Content-Encoding: zip\r\nContent-Length: 4\r\n\r\nabcd",
    "gzip that is none": HEAD + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
    "much out of little": HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB) + BOMB,
    "who a front says it is": HEAD
    + b"Koordpolicy-Forwarded: 00\r\nKoordpolicy-Client-Certificate: e30=\r\nContent-Length: %d\r\n\r\n"
    % len(GOOD)
    + GOOD,
    "no time to answer": HEAD.replace(b"10s", b"0s") + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD,
    "a time that is none": HEAD.replace(b"10s", b"-9e9h") + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD,
    "another path": HEAD.replace(b"/validate-pod", b"/../etc/passwd") + b"Content-Length: 0\r\n\r\n",
    "another method": b"DELETE /validate-pod HTTP/1.1\r\nHost: a\r\n\r\n",
    "requests that nobody waits for": (HEAD + b"Content-Length: %d\r\n\r\n" % len(GOOD) + GOOD) * 50,
}
"""What is sent by TLS, whatever HTTP says."""


class Attacker:
    """Sends to the webhooks of a site."""

    def __init__(self, site: WebhookSite) -> None:
        self._port = site.port
        self._context = ssl.create_default_context()
        self._context.check_hostname, self._context.verify_mode = False, ssl.CERT_NONE

    def post(self, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """A request as it should be: the status, 0 for none, and what a review says."""
        client = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=SECONDS, context=self._context)
        try:
            with suppress(OSError):  # one that is too large is not heard to its end
                client.request("POST", path, body, {"Content-Type": "application/json"})
            answer = client.getresponse()
            text = answer.read()
            return answer.status, json.loads(text)["response"] if answer.status == 200 else {}
        except (OSError, http.client.HTTPException):
            return 0, {}
        finally:
            client.close()

    @contextmanager
    def sent(self, data: bytes) -> Iterator[ssl.SSLSocket]:
        """A connection over which bytes were sent; who sends them then says no more."""
        with (
            socket.create_connection(("127.0.0.1", self._port), timeout=SECONDS) as plain,
            self._context.wrap_socket(plain) as client,
        ):
            with suppress(OSError):  # more of this is not heard
                client.sendall(data)
            client.settimeout(HEARING)
            yield client

    def heard(self, data: bytes) -> bytes:
        """What comes back of bytes within a moment."""
        told = b""
        with self.sent(data) as client, suppress(OSError):
            while piece := client.recv(65_536):
                told += piece
        return told

    def is_well(self) -> bool:
        """Whether the rule is followed as if nothing had happened."""
        good = [self.post(path, review(labelled(labels={**LABELS, "team": "a"}))) for path in PATHS]
        bad = self.post("/validate-pod", GOOD)
        return [one["allowed"] for _, one in (*good, bad)] == [True, True, False]


def alone(site: WebhookSite) -> AbstractContextManager[Manager]:
    return site.serving("m1")


def behind_a_front(site: WebhookSite) -> AbstractContextManager[Manager]:
    return site.fronted("m1", site.port, free_port())


@pytest.mark.parametrize("served", [alone, behind_a_front])
def test_attacks(
    served: Callable[[WebhookSite], AbstractContextManager[Manager]], server: ApiServer, tmp_path: Path
) -> None:
    site = make_webhook_site(server.access, tmp_path)
    site.write("spark.yaml", policy("ColocationProfile", "spark", {**MATCH, "qosClass": "LS"}))
    rule = {
        **MATCH,
        "require": {"cel": "'team' in pod.labels"},
        "reason": "team",
        "message": "say whose it is",
    }
    site.write("team.yaml", policy("AdmissionRule", "team", rule))
    with served(site) as manager:
        attacker = Attacker(site)
        site.eventually(lambda: attacker.post("/validate-pod", GOOD)[0] == 200, "reviews")
        for name, obj in PODS.items():
            body = review(obj) if obj is not None else review("@").replace(b'"@"', b"null")
            for path in PATHS:
                status, said = attacker.post(path, body)
                assert status in {200, 400, 413}, (name, path, status)
                assert path != "/validate-pod" or not said.get("allowed"), name
            assert attacker.is_well(), name
        for name, body in REVIEWS.items():
            for path in PATHS:
                status, said = attacker.post(path, body)
                assert status in {0, 200, 400, 413}, (name, path, status)
                assert status or len(body) > 16_000_000, name
                assert path != "/validate-pod" or not said.get("allowed"), name
            assert attacker.is_well(), name
        for name, data in BYTES.items():
            told = attacker.heard(data)
            assert b'"allowed":true' not in told.replace(b" ", b""), name
            assert b"HTTP/1.1 500" not in told, name
            assert attacker.is_well(), name
        with ExitStack() as stack:
            for data in [*BYTES.values()] * 3:
                stack.enter_context(attacker.sent(data[: len(data) // 2]))
            assert attacker.is_well(), "while others keep it waiting"
        assert attacker.is_well()
        page = manager.read("/metrics")[1]
        assert "koordpolicy_internal_errors_total{" not in page
        assert "koordpolicy_http_failures_total{" not in page
        assert manager.metric("koordpolicy_event_loop_held_total") in (None, 0)
        assert (manager.metric("process_resident_memory_bytes") or 0) < 800_000_000
        logs = [one.tail(2_000) for one in (manager.running, *site.fronts)]
        assert not any("Traceback" in one for one in logs), logs
        assert all(one.running for one in (manager.running, *site.fronts))
