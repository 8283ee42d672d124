"""A real API server that answers each write of a node with 429, or with 409: what people are told of, and what comes of it."""

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runtime.managers import make_site, share
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need
from tests.unit.runtime.http.certificates import certificate

WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
REASONS = {429: "TooManyRequests", 409: "Conflict"}


class Storm:
    """A webhook on the status of nodes: what it answers, API servers answer who has asked."""

    def __init__(self, folder: Path) -> None:
        self.code = 0
        """0 lets all through."""
        self.answered = 0
        pair = certificate(5)
        (folder / "pem").write_bytes(pair.pem)
        (folder / "key").write_bytes(pair.key)
        self.authority = pair.pem
        storm = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                said: dict[str, Any] = {"uid": body["request"]["uid"], "allowed": not storm.code}
                if storm.code:
                    storm.answered += 1
                    said["status"] = {"code": storm.code, "reason": REASONS[storm.code], "message": "a storm"}
                text = json.dumps({**body, "request": None, "response": said}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, format: str, *args: object) -> None:
                """Requests are nobody's news."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "pem", folder / "key")
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self.url = f"https://127.0.0.1:{self._server.server_port}/"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def configuration(self) -> dict[str, Any]:
        """What has an API server ask it."""
        rule = {
            "apiGroups": [""],
            "apiVersions": ["v1"],
            "operations": ["UPDATE"],
            "resources": ["nodes/status"],
        }
        webhook = {
            "name": "storm.example.com",
            "clientConfig": {"url": self.url, "caBundle": base64.b64encode(self.authority).decode()},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        return {"metadata": {"name": "storm"}, "webhooks": [webhook]}


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("storms")) as server:
        yield server


@pytest.fixture
def storm(tmp_path: Path) -> Iterator[Storm]:
    made = Storm(tmp_path)
    yield made
    made.close()


@pytest.mark.parametrize("code", REASONS)
@pytest.mark.soak
def test_what_is_not_taken_is_told_and_written_once_it_is_over(
    code: int, server: ApiServer, storm: Storm, tmp_path: Path
) -> None:
    (folder := tmp_path / "site").mkdir()
    site = make_site(server.access, folder)

    def throttled() -> str:
        """What the condition says, of whichever revision has it."""
        _, found = site.access.request("GET", "/apis/koordpolicy.io/v1alpha1/policyrevisions")
        said = [one for obj in found["items"] for one in (obj.get("status") or {}).get("conditions", ())]
        return "".join(one["message"] for one in said if one["type"] == "Throttled")

    site.access.request("DELETE", f"{WEBHOOKS}/storm")
    with site.manager("m1", "--unready-after", "2") as manager:
        site.eventually(lambda: site.offered() == 60_000, "the pack decides")
        assert site.access.request("POST", WEBHOOKS, storm.configuration)[0] == 201
        storm.code = code
        site.write("share.yaml", share(30))
        if code == 429:
            site.eventually(throttled, "a condition")
            assert "manager m1 (patch nodes)" in throttled()
            assert manager.status["putOffByAPIServer"] == ["patch nodes"]
        else:
            site.eventually(lambda: storm.answered >= 4, "tries")
            told = [line for line in manager.running.tail(500).splitlines() if "a storm" in line]
            assert len(told) == 1, "one line for a node, not one for each try"
            failed = 'koordpolicy_reconcile_total{queue="nodes",result="failed"}'
            assert (manager.metric(failed) or 0) >= 3
            assert throttled() == ""
        assert manager.read("/readyz")[0] == 200, "another replica would fare as it does"
        assert site.offered() == 60_000
        tries = storm.answered
        storm.code = 0
        site.eventually(lambda: site.offered() == 30_000, "the node follows")
        assert tries < 40, "each waits longer than the one before"
        site.eventually(lambda: throttled() == "", "no condition any more")
        assert manager.metric("koordpolicy_event_loop_held_total") in (None, 0)
        assert "Traceback" not in manager.running.tail(500)
    site.access.request("DELETE", f"{WEBHOOKS}/storm")
