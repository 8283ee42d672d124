"""A kubelet's /pods for an agent to ask: the pods that are there, over HTTP on loopback."""

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.benchmarks.colocation.pods import BenchPod


@contextmanager
def serving(pods: Sequence[BenchPod], node: str) -> Iterator[str]:
    """The URL of a server of these pods."""
    items = [pod.object(node) for pod in pods]
    body = json.dumps({"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": items}).encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path.split("?")[0].rstrip("/") == "/pods"
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body) if found else 0))
            self.end_headers()
            if found:
                with suppress(ConnectionError):  # the agent was stopped
                    self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: the agent says what goes wrong."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join(10)
        server.server_close()
