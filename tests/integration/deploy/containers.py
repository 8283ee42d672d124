"""Containers of an image in a real containerd and runc, with what a pod's container says of itself. As root."""

import json
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.parts.processes import Running
from tests.parts.table import find

_SECONDS = 180


@dataclass(frozen=True, slots=True)
class Containers:
    """A containerd, its socket, and the image in it."""

    socket: Path
    programs: Path
    archive: Path
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

        Taken from the spec: command, user, capabilities, privileges, read-only root, mounts, limit of memory. The arguments are `words`,
        since ports and addresses are a test's own.
        """  # fmt: skip
        context = {**pod.get("securityContext", {}), **container["securityContext"]}
        assert not context["allowPrivilegeEscalation"]
        spec = json.loads(self._ctr("oci", "spec").stdout)
        process, linux = spec["process"], spec["linux"]
        image = _configuration(self.archive)
        process["args"] = [*container["command"], *words]
        process["env"] = [*image["Env"], *(f"{key}={value}" for key, value in environment.items())]
        process["cwd"] = image.get("WorkingDir") or "/"
        process["user"] = {"uid": context["runAsUser"], "gid": context["runAsUser"]}
        process["noNewPrivileges"] = True
        if context["capabilities"]["drop"] == ["ALL"]:
            process["capabilities"] = {}
        spec["root"] = {"path": str(self._root()), "readonly": context["readOnlyRootFilesystem"]}
        linux["namespaces"] = [one for one in linux["namespaces"] if one["type"] != "network"]
        linux["resources"]["memory"] = {"limit": _bytes(container["resources"]["limits"]["memory"])}
        kubeconfig = {"name": "kubeconfig", "mountPath": "/etc/kubeconfig", "readOnly": True}
        for mount in (*container["volumeMounts"], kubeconfig):
            options = ["rbind", "ro" if mount.get("readOnly") else "rw"]
            source, place = str(places[mount["name"]]), mount["mountPath"]
            spec["mounts"].append(
                {"type": "bind", "source": source, "destination": place, "options": options}
            )
        file = self.folder / f"{name}.json"
        file.write_text(json.dumps(spec), "utf-8")
        ran = self._ctr(
            "run", "--detach", "--log-uri", f"file://{self.log(name)}", "--config", str(file), name
        )
        assert ran.returncode == 0, ran.stderr
        self.started.append(name)

    def _root(self) -> Path:
        """The image's files, mounted once for all containers: runc makes the places of mounts there, containers write nothing."""
        place = self.folder / "image"
        if not place.exists():
            place.mkdir()
            told = self._ctr("images", "mount", "--rw", self.image, str(place))
            assert told.returncode == 0, told.stderr
        return place

    def unmount(self) -> None:
        """Take the image's files away, when no container is left."""
        place = self.folder / "image"
        if place.exists():
            self._ctr("images", "unmount", "--rm", str(place))

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
        self.started.remove(name)

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
        found = Containers(folder / "containerd.sock", programs, archive, "", folder)
        daemon.ready(lambda: found._ctr("version").returncode == 0, 60)
        told = found._ctr("images", "import", "--no-unpack", str(archive))
        assert told.returncode == 0, told.stderr
        image = found._ctr("images", "ls", "--quiet").stdout.split()[0]
        there = Containers(found.socket, programs, archive, image, folder)
        try:
            yield there
        finally:
            for name in tuple(there.started):
                there.stop(name)
            there.unmount()


def _environment(programs: Path) -> dict[str, str]:
    libraries = programs.parent / "lib" / "x86_64-linux-gnu"
    return {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LD_LIBRARY_PATH": str(libraries)}


def _bytes(quantity: str) -> int:
    return int(quantity[:-2]) * {"Mi": 2**20, "Gi": 2**30}[quantity[-2:]]


def _configuration(archive: Path) -> dict[str, Any]:
    """What an image's containers start with, of an archive with one image: `Env`, `WorkingDir`."""
    with tarfile.open(archive) as files:

        def read(name: str) -> Any:
            found = files.extractfile(name)
            assert found is not None
            return json.load(found)

        def blob(described: Mapping[str, str]) -> Any:
            return read(f"blobs/{described['digest'].replace(':', '/')}")

        (manifest,) = read("index.json")["manifests"]
        found: dict[str, Any] = blob(blob(manifest)["config"])["config"]
        return found
