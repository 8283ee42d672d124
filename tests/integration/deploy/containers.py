"""Containers of an image in a real containerd and runc, with what a pod's container says of itself. As root."""

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.parts.processes import Running
from tests.parts.table import find

_SECONDS = 180
USER = 65532
"""The account of the image."""


@dataclass(frozen=True, slots=True)
class Containers:
    """A containerd, its socket, and the image in it."""

    socket: Path
    programs: Path
    image: str
    folder: Path
    started: list[str] = field(default_factory=list)

    def run(self, name: str, words: Sequence[str], *options: str) -> subprocess.CompletedProcess[str]:
        """A container until it ends, in the host's network, its root read-only."""
        return self._ctr("run", "--rm", "--read-only", "--net-host", *options, self.image, name, *words)

    def start(
        self,
        name: str,
        container: Mapping[str, Any],
        pod: Mapping[str, Any],
        places: Mapping[str, Path],
        *,
        words: Sequence[str],
        environment: Mapping[str, str],
    ) -> None:
        """A container of a pod's spec in the background. `places` are its volumes' directories on this machine.

        Taken from the spec: command, capabilities, privileges, read-only root, mounts, limit of memory; the user is the image's, which the spec asks for. The arguments are
        `words`, since ports and addresses are a test's own.
        """  # fmt: skip
        context = {**pod.get("securityContext", {}), **container["securityContext"]}
        assert context["readOnlyRootFilesystem"]
        assert not context["allowPrivilegeEscalation"]
        options = ["--detach", "--read-only", "--net-host", "--log-uri", f"file://{self.log(name)}"]
        assert context["runAsUser"] == USER
        if context["capabilities"]["drop"] == ["ALL"]:
            options += [word for one in _DEFAULT_CAPABILITIES for word in ("--cap-drop", one)]
        for mount in container["volumeMounts"]:
            source = places[mount["name"]]
            kind = "ro" if mount.get("readOnly") else "rw"
            options += ["--mount", f"type=bind,src={source},dst={mount['mountPath']},options=rbind:{kind}"]
        options += ["--mount", f"type=bind,src={places['kubeconfig']},dst=/etc/kubeconfig,options=rbind:ro"]
        for key, value in environment.items():
            options += ["--env", f"{key}={value}"]
        options += ["--memory-limit", str(_bytes(container["resources"]["limits"]["memory"]))]
        ran = self._ctr("run", *options, self.image, name, *container["command"], *words)
        assert ran.returncode == 0, ran.stderr
        self.started.append(name)

    def log(self, name: str) -> Path:
        """Where a container's output goes."""
        return self.folder / f"{name}.log"

    def stop(self, name: str) -> None:
        """SIGTERM, after ten seconds SIGKILL, and nothing is left of it."""
        self._ctr("task", "kill", "--signal", "SIGTERM", name)
        until = time.monotonic() + 10
        while "RUNNING" in self._ctr("task", "ls").stdout and time.monotonic() < until:
            time.sleep(0.2)
        self._ctr("task", "delete", "--force", name)
        self._ctr("container", "delete", name)

    def _ctr(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.programs / "ctr", "--address", self.socket, *words],
            capture_output=True, text=True, timeout=_SECONDS, check=False, env=_environment(self.programs),
        )  # fmt: skip


@contextmanager
def containers(archive: Path, folder: Path) -> Iterator[Containers]:
    """A containerd of a test's own, with an archive's image; stopped at the end with all that it ran."""
    here = find("containerd").path.parent
    programs = here / "root" / "usr" / "bin" if (here / "root").exists() else here
    if not (programs / "runc").exists() and (programs.parent / "sbin" / "runc").exists():
        shutil.copy2(programs.parent / "sbin" / "runc", programs / "runc")
    config = folder / "config.toml"
    config.write_text(
        f'version = 2\nroot = "{folder / "root"}"\nstate = "{folder / "state"}"\n'
        'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n'
        f'[grpc]\naddress = "{folder / "containerd.sock"}"\n',
        "utf-8",
    )
    started = Running(
        [programs / "containerd", "--config", config],
        folder / "containerd.log",
        environment=_environment(programs),
    )
    with started as daemon:
        found = Containers(folder / "containerd.sock", programs, "", folder)
        daemon.ready(lambda: found._ctr("version").returncode == 0, 60)
        told = found._ctr("images", "import", "--no-unpack", str(archive))
        assert told.returncode == 0, told.stderr
        image = found._ctr("images", "ls", "--quiet").stdout.split()[0]
        there = Containers(found.socket, programs, image, folder)
        try:
            yield there
        finally:
            for name in there.started:
                there.stop(name)


def _environment(programs: Path) -> dict[str, str]:
    libraries = programs.parent / "lib" / "x86_64-linux-gnu"
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(libraries)}


def _bytes(quantity: str) -> int:
    return int(quantity[:-2]) * {"Mi": 2**20, "Gi": 2**30}[quantity[-2:]]


_DEFAULT_CAPABILITIES = tuple(
    f"CAP_{one}"
    for one in (
        "CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP",
        "NET_BIND_SERVICE", "SYS_CHROOT", "KILL", "AUDIT_WRITE",
    )
)  # fmt: skip
"""What containerd gives a container that says nothing."""
