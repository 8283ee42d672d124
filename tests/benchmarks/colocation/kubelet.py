"""A kubelet's /pods for an agent to ask: the pods that are there, over HTTP on loopback."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from tests.benchmarks.colocation.pods import BenchPod
from tests.parts.http_answers import answering


@contextmanager
def serving(pods: Sequence[BenchPod], node: str) -> Iterator[str]:
    """The URL of a server of these pods."""
    items = [pod.object(node) for pod in pods]
    body = json.dumps({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}).encode()

    def said(path: str, _headers: Mapping[str, str]) -> tuple[int, bytes]:
        return (200, body) if path.split("?", maxsplit=1)[0].rstrip("/") == "/pods" else (404, b"")

    with answering(said) as url:
        yield url
