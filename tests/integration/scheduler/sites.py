"""Schedulers as real processes on a real API server: nodes, pods, and what became of them."""

import json
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.model.reading import read_amounts
from tests.conftest import REPOSITORY
from tests.parts.apiserver import SYSTEM_NAMESPACE, Access
from tests.parts.processes import Running, free_port

PATIENCE = 120.0
"""Seconds that anything may take on a busy machine."""

BUNDLE = (
    "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\n"
    "metadata: {name: fleet}\nspec: {extends: [koordinator]}\n"
)
ROOM = {"cpu": "4", "memory": "8Gi", "pods": "20"}


def profile(spec: Mapping[str, Any], name: str = "own") -> str:
    """A document that changes the profile (JSON is YAML)."""
    return json.dumps(
        {
            "apiVersion": "koordpolicy.io/v1alpha1",
            "kind": "SchedulingProfile",
            "metadata": {"name": name},
            "spec": {"schedulerName": "koord-scheduler", **spec},
        }
    )


@dataclass
class Scheduler:
    """One process. `port` is where its status is."""

    running: Running
    port: int
    name: str
    authority: str = ""
    """The certificate by which its server is known, where it serves by TLS."""
    certificate: str = ""
    """The certificate that it lets in, its key beside it."""

    def read(self, path: str) -> tuple[int, str]:
        """What its server answers; status 0 when it does not."""
        context = ssl.create_default_context(cafile=self.authority) if self.authority else None
        if context is not None and self.certificate:
            context.load_cert_chain(self.certificate, str(Path(self.certificate).with_suffix(".key")))
        url = f"{'https' if self.authority else 'http'}://127.0.0.1:{self.port}{path}"
        try:
            with urllib.request.urlopen(url, timeout=10, context=context) as answer:  # noqa: S310
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    @property
    def status(self) -> dict[str, Any]:
        code, text = self.read("/statusz?format=json")
        return dict(json.loads(text)) if code == 200 else {}

    @property
    def leads(self) -> bool:
        return bool(self.status.get("leader", {}).get("leading"))

    def metric(self, line: str) -> float:
        """The value of a metric by its name and labels as scraped; 0 when it is not there."""
        found = [one for one in self.read("/metrics")[1].splitlines() if one.startswith(f"{line} ")]
        return float(found[0].rpartition(" ")[2]) if found else 0.0


@dataclass
class Site:
    """A server, a namespace for the test's pods, a directory of policies, and schedulers that follow it."""

    access: Access
    folder: Path
    schedulers: list[Scheduler] = field(default_factory=list)
    bound: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Where each pod (by uid) was seen: its name and its node."""

    @property
    def policies(self) -> Path:
        return self.folder / "policies"

    def write(self, name: str, text: str) -> None:
        """Put a file into the directory as an editor does."""
        draft = self.folder / "draft"
        draft.write_text(text, "utf-8")
        draft.replace(self.policies / name)

    @contextmanager
    def scheduler(
        self, name: str, *more: str, ready: bool = True, policies: bool = True
    ) -> Iterator[Scheduler]:
        """A scheduler with its shipped role, by the directory of policies if not said otherwise; stopped at the end."""
        port = free_port()
        command = [
            sys.executable, "-m", "koordpolicy.cli", "scheduler",
            *(("--policies", str(self.policies)) if policies else ()),
            "--kubeconfig", str(self.access.kubeconfig("koordpolicy-scheduler")), "--instance", name,
            "--http", f"127.0.0.1:{port}", *more,
        ]  # fmt: skip
        log = self.folder / f"{name}.log"
        with Running(command, log, environment={"PYTHONPATH": str(REPOSITORY)}) as running:
            given = dict(pairwise(more))
            files = given.get("--tls-cert-file", ""), given.get("--tls-client-ca-file", "")
            one = Scheduler(running, port, name, *files)
            self.schedulers.append(one)
            try:
                if ready:
                    running.ready(lambda: one.read("/readyz")[0] == 200, PATIENCE)
                yield one
            finally:
                self.schedulers.remove(one)

    # --- what there is ----------------------------------------------------------------------------

    def do(self, method: str, path: str, body: Any = None, *, also: int = 0) -> Any:
        """One request that must succeed, or fail with the status `also`."""
        status, answer = self.access.request(method, path, body)
        assert status < 300 or status == also, answer
        return answer

    def node(self, name: str, room: Mapping[str, str] = ROOM, **labels: str) -> None:
        """A node that is ready."""
        self.do("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}})
        # Without a node controller nobody takes away the taint of a new node.
        self.do("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
        self.resize(name, room)

    def resize(self, name: str, room: Mapping[str, str]) -> None:
        """A node has other room now."""
        status = {"capacity": room, "allocatable": room}
        self.do("PATCH", f"/api/v1/nodes/{name}/status", {"status": status})

    def measured(self, name: str, cpu: str, memory: str = "1Gi") -> None:
        """A node reports what it uses."""
        path = "/apis/slo.koordinator.sh/v1alpha1/nodemetrics"
        self.do(
            "POST", path,
            {"apiVersion": "slo.koordinator.sh/v1alpha1", "kind": "NodeMetric", "metadata": {"name": name}, "spec": {}},
            also=409,
        )  # fmt: skip
        usage = {"resources": {"cpu": cpu, "memory": memory}}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        report = {"updateTime": now, "nodeMetric": {"nodeUsage": usage, "systemUsage": {"resources": {}}}}
        self.do("PATCH", f"{path}/{name}/status", {"status": report})

    def pod(self, name: str, cpu: str = "500m", *, scheduler: str = "koord-scheduler", **more: Any) -> None:
        """A pod that waits for a node."""
        metadata = {"name": name, **more.pop("metadata", {})}
        requests = {"cpu": cpu, "memory": "64Mi"}
        container = {"name": "main", "image": "pause", "resources": {"requests": requests}}
        spec = {"schedulerName": scheduler, "containers": [container], **more}
        self.do("POST", "/api/v1/namespaces/default/pods", {"metadata": metadata, "spec": spec})

    def gone(self, name: str) -> None:
        """A pod goes at once."""
        self.do("DELETE", f"/api/v1/namespaces/default/pods/{name}?gracePeriodSeconds=0", also=404)

    # --- what became of it ------------------------------------------------------------------------

    def pods(self) -> dict[str, dict[str, Any]]:
        """All pods by name. Where they are is remembered: none may ever be on two nodes."""
        found = self.do("GET", "/api/v1/namespaces/default/pods")["items"]
        for one in found:
            node, uid = one["spec"].get("nodeName"), one["metadata"]["uid"]
            if node:
                here = (one["metadata"]["name"], node)
                assert self.bound.setdefault(uid, here) == here, "a pod has moved"
        return {one["metadata"]["name"]: one for one in found}

    def where(self) -> dict[str, str]:
        """The node of each pod that has one."""
        return {
            name: one["spec"]["nodeName"] for name, one in self.pods().items() if one["spec"].get("nodeName")
        }

    def waiting(self) -> list[str]:
        """The pods without a node."""
        return [name for name, one in self.pods().items() if not one["spec"].get("nodeName")]

    def refusal(self, name: str) -> tuple[str, str]:
        """Reason and message of a pod's condition."""
        status = self.pods()[name].get("status", {})
        for one in status.get("conditions", ()):
            if one["type"] == "PodScheduled" and one["status"] == "False":
                return one["reason"], one["message"]
        return "", ""

    def events(self) -> list[tuple[str, str, str, int]]:
        """All Events of pods: name, reason, message, how often."""
        found = self.do("GET", "/api/v1/namespaces/default/events")["items"]
        return [
            (
                one["involvedObject"]["name"],
                one["reason"],
                one.get("message", ""),
                int((one.get("series") or {}).get("count") or one.get("count") or 1),
            )
            for one in found
            if one["involvedObject"]["kind"] == "Pod"
        ]

    def check_capacity(self) -> None:
        """No node that is there holds more than it has."""
        nodes = {one["metadata"]["name"]: one for one in self.do("GET", "/api/v1/nodes")["items"]}
        used: dict[str, Counter[str]] = {name: Counter() for name in nodes}
        for one in self.pods().values():
            node = one["spec"].get("nodeName")
            if node in used:
                used[node].update(read_amounts(one["spec"]["containers"][0]["resources"]["requests"]))
                used[node]["pods"] += 1
        for name, amounts in used.items():
            # One that comes in this moment has no status yet, and no pods.
            room = read_amounts(nodes[name]["status"].get("allocatable", {}))
            over = {
                key: (value, room.get(key, 0)) for key, value in amounts.items() if value > room.get(key, 0)
            }
            assert not over, f"{name} is over capacity: {over}"

    def eventually(self, question: Callable[[], object], what: str, seconds: float = PATIENCE) -> float:
        """Wait until the question is answered with yes; how many seconds that took."""
        began = time.monotonic()
        while not question():
            if time.monotonic() - began > seconds:
                logs = "\n".join(
                    f"--- {one.name} {one.status}\n{one.running.tail(30)}" for one in self.schedulers
                )
                pytest.fail(f"still not: {what}; waiting {self.waiting()[:10]}\n{logs}")
            time.sleep(0.05)
        return time.monotonic() - began

    def holder(self, lease: str = "koordpolicy-scheduler") -> str:
        """Who holds a lease."""
        path = f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases/{lease}"
        status, found = self.access.request("GET", path)
        return str(found["spec"].get("holderIdentity") or "") if status == 200 else ""


def bindings(site: Site) -> list[str]:
    """The pods that were said to be placed, once for each time."""
    return [name for name, reason, _, often in site.events() for _ in range(often) if reason == "Scheduled"]


def make_site(access: Access, folder: Path) -> Site:
    """An empty cluster and the built-in pack alone. What an earlier test left on the server goes first."""
    here = Site(access, folder)
    for path in (
        "/api/v1/namespaces/default/pods?gracePeriodSeconds=0",
        "/api/v1/namespaces/default/events",
        "/api/v1/nodes",
        "/apis/slo.koordinator.sh/v1alpha1/nodemetrics",
        "/apis/topology.node.k8s.io/v1alpha1/noderesourcetopologies",
        "/apis/koordpolicy.io/v1alpha1/policyrevisions",
        f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM_NAMESPACE}/leases",
    ):
        here.do("DELETE", path, also=404)
    here.do(
        "POST", "/apis/scheduling.k8s.io/v1/priorityclasses",
        {"metadata": {"name": "important"}, "value": 9900}, also=409,
    )  # fmt: skip
    here.policies.mkdir()
    here.write("koordpolicy.yaml", BUNDLE)
    return here
