"""Managers that serve webhooks to a real API server, with the shipped roles."""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.conftest import REPOSITORY
from tests.integration.runtime.managers import BUNDLE, Manager, Site
from tests.parts.apiserver import Access
from tests.parts.deployed import apply
from tests.parts.processes import Running, free_port
from tests.parts.table import find

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"


@dataclass
class WebhookSite(Site):
    """A cluster whose webhook configurations lead to `port`, where managers or what stands before them answer."""

    port: int = 0
    fronts: list[Running] = field(default_factory=list)

    @contextmanager
    def serving(self, name: str, *more: str, port: int | None = None) -> Iterator[Manager]:
        """A manager that serves webhooks; the API server asks it once this begins."""
        with self.manager(
            name,
            "--webhook", f"127.0.0.1:{port or self.port}", "--webhook-url", f"https://localhost:{self.port}",
            "--webhook-drain", "1s", *more,
        ) as manager:  # fmt: skip
            self.eventually(lambda: self.entries("mutating") and self.entries("validating"), "webhooks")
            yield manager

    @contextmanager
    def fronted(self, name: str, port: int, peer: int) -> Iterator[Manager]:
        """A manager behind a front of its own, which serves at `port` and has another at `peer`."""
        place = self.folder / f"front-{port}"
        place.mkdir(exist_ok=True)
        path = place / "webhook.sock"
        command = [
            sys.executable, "-m", "koordpolicy.cli", "front", "--listen", f"127.0.0.1:{port}", "--server", str(path),
            "--peers", f"127.0.0.1:{peer}", "--drain", "1s",
        ]  # fmt: skip
        environment = {"PYTHONPATH": str(REPOSITORY)}
        with Running(command, place / "log", environment=environment) as front:
            self.fronts.append(front)
            with self.manager(
                name, "--webhook", f"unix:{path}", "--webhook-url", f"https://localhost:{self.port}",
                "--webhook-drain", "1s",
            ) as manager:  # fmt: skip
                self.eventually(lambda: self.entries("mutating") and self.entries("validating"), "webhooks")
                yield manager

    def entries(self, phase: str) -> list[dict[str, Any]]:
        """The webhooks of a configuration."""
        path = f"{CONFIGURATIONS}/{phase}webhookconfigurations/koordpolicy"
        return list(self.access.request("GET", path)[1].get("webhooks") or ())

    def kubectl(self, *arguments: str, user: str = "admin", given: str = "") -> tuple[int, str, str]:
        """What kubectl says: exit code, output, errors."""
        done = subprocess.run(
            [str(find("kubectl").path), f"--kubeconfig={self.access.kubeconfig(user)}", *arguments],
            input=given, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    def create(self, pod: dict[str, Any], namespace: str = "default") -> tuple[int, Any]:
        """Create a pod as any client does."""
        return self.access.request("POST", f"/api/v1/namespaces/{namespace}/pods", pod)


def pod(name: str, labels: dict[str, str] | None = None, **spec: Any) -> dict[str, Any]:
    """A pod of one container with a CPU."""
    resources = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
    container = {"name": "main", "image": "i", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


def make_webhook_site(access: Access, folder: Path) -> WebhookSite:
    """The shipped webhook configurations and Secret as they are before a manager has seen them, and a directory of policies."""
    for phase in ("mutating", "validating"):
        access.request("DELETE", f"{CONFIGURATIONS}/{phase}webhookconfigurations/koordpolicy")
    access.request("DELETE", "/api/v1/namespaces/koordpolicy-system/secrets/koordpolicy-webhook-cert")
    for file in ("secret", "webhooks"):
        apply(access, documents(f"deploy/manager/{file}.yaml"))
    here = WebhookSite(access, folder, port=free_port())
    here.policies.mkdir()
    here.write("koordpolicy.yaml", BUNDLE)
    return here


def documents(path: str) -> Sequence[dict[str, Any]]:
    """The documents of a file of the repository."""
    return list(YAML(typ="safe").load_all((REPOSITORY / path).read_text("utf-8")))


def policy(kind: str, name: str, spec: dict[str, Any]) -> str:
    """A document."""
    return json.dumps(
        {"apiVersion": "koordpolicy.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
    )
