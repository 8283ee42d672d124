"""Who may ask an extender, with the real API server's word on it: nobody else places pods."""

import http.client
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.integration.scheduler.sites import Scheduler, Site
from tests.parts.processes import free_port
from tests.unit.runtime.http.certificates import Pair, certificate

CALLER = "kube-scheduler"
"""A user of the test's API server, `system:kube-scheduler`, who by its own roles may bind pods, but not ask us."""
VERBS = ("filter", "prioritize", "preempt", "bind")


@dataclass
class Extender:
    """One that asks the API server about its callers, and a pod for it to bind."""

    site: Site
    process: Scheduler
    port: int
    uid: str

    def ask(
        self, verb: str, body: Any, *, user: str = "", token: str = "", shown: Pair | None = None
    ) -> tuple[int, str]:
        context = ssl.create_default_context(cafile=self.process.authority)
        if shown is not None:
            pem, key = self.site.folder / "shown.crt", self.site.folder / "shown.key"
            pem.write_bytes(shown.pem)
            key.write_bytes(shown.key)
            context.load_cert_chain(pem, key)
        token = self.site.access.token(user) if user else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60, context=context)
        try:
            connection.request("POST", f"/{verb}", json.dumps(body), headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def bind(self, **credentials: Any) -> tuple[int, str]:
        body = {"PodNamespace": "default", "PodName": "p", "PodUID": self.uid, "Node": "a"}
        return self.ask("bind", body, **credentials)

    def permit(self, user: str) -> None:
        """Give a user the role that is shipped for callers."""
        self.site.do(
            "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            {
                "metadata": {"name": "test-callers"},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "koordpolicy-extender-caller",
                },
                "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
            },
        )  # fmt: skip


@pytest.fixture
def client() -> Pair:
    return certificate(2, "/O=some/CN=by-certificate")


@pytest.fixture
def extender(site: Site, client: Pair) -> Iterator[Extender]:
    own = certificate(1)
    files: dict[str, tuple[Path, bytes]] = {
        "--tls-cert-file": (site.folder / "tls.crt", own.pem),
        "--tls-private-key-file": (site.folder / "tls.key", own.key),
        "--tls-client-ca-file": (site.folder / "client.crt", client.pem),
    }
    for path, data in files.values():
        path.write_bytes(data)
    (site.folder / "client.key").write_bytes(client.key)
    flags = [part for flag, (path, _) in files.items() for part in (flag, str(path))]
    site.do("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/test-callers", also=404)
    site.node("a")
    site.pod("p", scheduler="nobody-schedules")
    uid = site.pods()["p"]["metadata"]["uid"]
    port = free_port()
    with site.scheduler(
        "extender", "--extender", f"127.0.0.1:{port}", "--delegated-auth", *flags, ready=False
    ) as process:
        # Whom the API server does not let read is not told whether it answers.
        site.eventually(lambda: process.read("/readyz")[0] == 200, "it is ready")
        yield Extender(site, process, port, uid)
    site.do("DELETE", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/test-callers", also=404)


def test_without_the_right_credentials_no_pod_is_bound(extender: Extender, client: Pair) -> None:
    for verb in VERBS:
        assert extender.ask(verb, {})[0] == 401
        assert extender.ask(verb, {}, token="nobody-s") == (401, "unauthorized: the token is not known\n")
        assert extender.ask(verb, {}, user="nobody")[0] == 403
    assert extender.bind()[0] == 401
    assert extender.bind(user="nobody")[0] == 403
    status, said = extender.bind(user=CALLER)
    assert status == 403
    assert "`system:kube-scheduler` may not post /bind (a nonResourceURL for RBAC)" in said
    # A certificate says who somebody is; what they may do is the API server's to say.
    assert extender.bind(shown=client)[0] == 403
    assert extender.site.where() == {}
    assert extender.process.read("/metrics")[0] == 403
    assert extender.process.read("/statusz")[0] == 403
    assert extender.process.read("/healthz")[0] == 200


@pytest.mark.parametrize("by", ["token", "certificate"])
def test_whom_the_api_server_permits_is_answered(extender: Extender, client: Pair, by: str) -> None:
    token = by == "token"
    extender.permit("system:kube-scheduler" if token else "by-certificate")
    shown: dict[str, Any] = {"user": CALLER} if token else {"shown": client}
    site = extender.site
    site.eventually(lambda: extender.ask("prioritize", {}, **shown)[0] == 400, "it is permitted")
    site.eventually(lambda: "the extender has not read" not in extender.bind(**shown)[1], "it answers")
    site.eventually(lambda: site.where() == {"p": "a"}, "it is bound")
