"""A real YARN: a ResourceManager and one NodeManager on loopback, whose containers are processes."""

import json
import os
import time
from collections.abc import Mapping
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Self

from tests.parts.processes import Ended, Running, free_port

PATIENCE = 120.0
"""Seconds until a JVM answers on a busy machine."""


class Yarn:
    """Both programs, started one by one; a context manager that stops them. `registers` is what the NodeManager says it has."""

    def __init__(self, program: Path, folder: Path, registers: tuple[int, int] = (1024, 1)) -> None:
        self._program = program
        self._folder = folder
        names = ("client", "scheduler", "tracker", "admin", "web", "nm", "localizer", "nm-web")
        self._ports = {name: free_port() for name in names}
        self.url = f"http://127.0.0.1:{self._ports['web']}"
        self._started: dict[str, Running] = {}
        folder.mkdir()
        memory, vcores = registers
        _write(folder / "conf" / "yarn-site.xml", self._settings(memory, vcores))
        _write(
            folder / "conf" / "core-site.xml",
            {"hadoop.tmp.dir": str(folder / "tmp"), "fs.defaultFS": "file:///"},
        )
        _write(
            folder / "conf" / "capacity-scheduler.xml",
            {
                "yarn.scheduler.capacity.root.queues": "default",
                "yarn.scheduler.capacity.root.default.capacity": "100",
                "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
                # Without it memory alone is counted.
                "yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource.DominantResourceCalculator",
            },
        )
        (folder / "conf" / "log4j.properties").write_text(
            "log4j.rootLogger=INFO,A\nlog4j.appender.A=org.apache.log4j.ConsoleAppender\n"
            "log4j.appender.A.layout=org.apache.log4j.PatternLayout\n"
            "log4j.appender.A.layout.ConversionPattern=%d %p %c{1}: %m%n\n",
            "ascii",
        )

    def _settings(self, memory: int, vcores: int) -> Mapping[str, str]:
        at = {name: f"127.0.0.1:{port}" for name, port in self._ports.items()}
        return {
            "yarn.resourcemanager.hostname": "127.0.0.1",
            "yarn.resourcemanager.address": at["client"],
            "yarn.resourcemanager.scheduler.address": at["scheduler"],
            "yarn.resourcemanager.resource-tracker.address": at["tracker"],
            "yarn.resourcemanager.admin.address": at["admin"],
            "yarn.resourcemanager.webapp.address": at["web"],
            "yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "300",
            "yarn.resourcemanager.connect.retry-interval.ms": "500",
            "yarn.scheduler.maximum-allocation-mb": "131072",
            "yarn.scheduler.maximum-allocation-vcores": "128",
            "yarn.nodemanager.address": at["nm"],
            "yarn.nodemanager.localizer.address": at["localizer"],
            "yarn.nodemanager.webapp.address": at["nm-web"],
            "yarn.nodemanager.local-dirs": str(self._folder / "local"),
            "yarn.nodemanager.log-dirs": str(self._folder / "logs"),
            "yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage": "100",
            "yarn.nodemanager.resource.memory-mb": str(memory),
            "yarn.nodemanager.resource.cpu-vcores": str(vcores),
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
        }

    def start(self, daemon: str) -> Running:
        """Start `resourcemanager` or `nodemanager`; the first is awaited."""
        log = self._folder / f"{daemon}.log"
        environment = {"YARN_CONF_DIR": str(self._folder / "conf"), "HOME": str(self._folder)}
        running = Running(
            [self._program, daemon], log, environment={**os.environ, **environment}, folder=self._folder
        )
        self._started[daemon] = running
        if daemon == "resourcemanager":
            running.ready(lambda: self.ask("GET", "/ws/v1/cluster/info")[0] == 200, PATIENCE)
        return running

    def kill(self, daemon: str) -> None:
        """End it at once."""
        self._started.pop(daemon).kill()

    def node(self) -> dict[str, Any]:
        """The NodeManager as the ResourceManager tells of it; empty while it does not."""
        _, answer = self.ask("GET", "/ws/v1/cluster/nodes")
        nodes = (answer.get("nodes") or {}).get("node") or [{}]
        return dict(nodes[0])

    def offered(self) -> tuple[int, int]:
        """Mebibytes and vcores that containers may have there."""
        total = self.node().get("totalResource", {})
        return int(total.get("memory", -1)), int(total.get("vCores", -1))

    def used(self) -> tuple[int, int]:
        """Mebibytes and vcores that containers have there."""
        node = self.node()
        return int(node.get("usedMemoryMB", -1)), int(node.get("usedVirtualCores", -1))

    def run(self, command: str, memory: int, vcores: int) -> None:
        """Submit an application of one container."""
        status, made = self.ask("POST", "/ws/v1/cluster/apps/new-application?user.name=root", {})
        assert status == 200, made
        application = {
            "application-id": made["application-id"],
            "application-name": "test",
            "application-type": "YARN",
            "max-app-attempts": 1,
            "am-container-spec": {"commands": {"command": command}},
            "resource": {"memory": memory, "vCores": vcores},
        }
        status, answer = self.ask("POST", "/ws/v1/cluster/apps?user.name=root", application)
        assert status == 202, answer

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None
    ) -> tuple[int, dict[str, Any]]:
        """Status and JSON of an answer; status 0 where there is none."""
        connection = HTTPConnection("127.0.0.1", self._ports["web"], timeout=30)
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        with closing(connection):
            try:
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = connection.getresponse()
                text = answer.read()
            except OSError:
                return 0, {}
        return answer.status, json.loads(text) if text.startswith(b"{") else {}

    def __enter__(self) -> Self:
        try:
            self.start("resourcemanager")
            manager = self.start("nodemanager")
            until = time.monotonic() + PATIENCE
            manager.ready(lambda: self.node().get("state") == "RUNNING", until - time.monotonic())
        except Ended:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for running in reversed(self._started.values()):
            running.stop()


def _write(file: Path, settings: Mapping[str, str]) -> None:
    file.parent.mkdir(exist_ok=True)
    rows = "".join(
        f"<property><name>{name}</name><value>{value}</value></property>\n"
        for name, value in settings.items()
    )
    file.write_text(f"<configuration>\n{rows}</configuration>\n", "utf-8")
