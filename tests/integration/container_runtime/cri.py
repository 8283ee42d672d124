"""A containerd of a test's own with its CRI service, a small image, and what a kubelet says to it."""

import asyncio
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from koordpolicy.cri.calls import CallFailed, Channel, GrpcCall
from koordpolicy.cri.shapes import CREATE_CONTAINER, IDENTITY, RUN_POD_SANDBOX, UPDATE_RESOURCES
from koordpolicy.cri.wire import Field, Form, Message, Shape
from koordpolicy.runtime_proxy.interceptor import RUNTIME_SERVICE
from tests.parts.processes import Running
from tests.parts.table import find

IMAGE = "docker.io/library/box:1"
_NODE = 2
"""The namespace of the node."""
_NAMESPACES: Shape = {"network": Field(1, Form.INTEGER)}
_POD_SECURITY: Shape = {"namespaces": Field(1, Form.MESSAGE, _NAMESPACES)}
_POD_LINUX: Shape = {"cgroup_parent": Field(1, Form.TEXT), "security": Field(2, Form.MESSAGE, _POD_SECURITY)}
_CONTAINER_SECURITY: Shape = {"namespaces": Field(3, Form.MESSAGE, _NAMESPACES)}
_CONTAINER_LINUX: Shape = {"security": Field(2, Form.MESSAGE, _CONTAINER_SECURITY)}
_IMAGE: Shape = {"image": Field(1, Form.TEXT)}
_CONTAINER: Shape = {
    "image": Field(2, Form.MESSAGE, _IMAGE),
    "command": Field(3, Form.LIST),
    "linux": Field(15, Form.MESSAGE, _CONTAINER_LINUX),
}
_POD: Shape = {"log_directory": Field(3, Form.TEXT), "linux": Field(8, Form.MESSAGE, _POD_LINUX)}


@dataclass(slots=True)
class Kubelet:
    """What says calls of CRI to a socket, one after the other."""

    socket: Path
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    channel: Channel | None = None

    def call(self, name: str, request: bytes = b"", seconds: float = 60) -> bytes:
        """The answer. Raises CallFailed."""

        async def ask() -> bytes:
            if self.channel is None:
                self.channel = Channel(self.socket)
            return await self.channel.call(RUNTIME_SERVICE + name, GrpcCall(request, seconds=seconds))

        return self.loop.run_until_complete(ask())

    def close(self) -> None:
        if self.channel is not None:
            self.loop.run_until_complete(self.channel.close())
        self.loop.close()

    def run_pod(self, pod: Mapping[str, Any], parent: str, attempt: int = 0) -> str:
        """A sandbox for a pod object, with its group below `parent`; its ID."""
        return _id(self.call("RunPodSandbox", pod_request(pod, parent, attempt)))

    def create(
        self, sandbox: str, pod: Mapping[str, Any], parent: str, name: str = "main", **numbers: int
    ) -> str:
        """A container as a kubelet asks for it; its ID."""
        return _id(self.call("CreateContainer", container_request(sandbox, pod, parent, name, **numbers)))

    def start(self, container: str) -> None:
        self.call("StartContainer", identity(container))

    def update(self, container: str, **numbers: int) -> None:
        request = Message(UPDATE_RESOURCES)
        request.put_text("container_id", container)
        linux = request.message("linux")
        for key, value in numbers.items():
            linux.put_integer(key, value)
        request.put_message("linux", linux)
        self.call("UpdateContainerResources", request.encoded())

    def remove(self, sandbox: str) -> None:
        """End a pod with its containers."""
        self.call("StopPodSandbox", identity(sandbox))
        self.call("RemovePodSandbox", identity(sandbox))


def identity(value: str) -> bytes:
    made = Message(IDENTITY)
    made.put_text("id", value)
    return made.encoded()


def _id(answer: bytes) -> str:
    return Message(IDENTITY, answer).text("id")


def _edited(shape: Shape, data: bytes, **values: Any) -> bytes:
    message = Message(shape, data)
    for name, value in values.items():
        if isinstance(value, Message):
            message.put_message(name, value)
        elif isinstance(value, str):
            message.put_text(name, value)
        else:
            message.put_list(name, value)
    return message.encoded()


def _on_node(shape: Shape) -> Message:
    namespaces = Message(_NAMESPACES)
    namespaces.put_integer("network", _NODE)
    security = Message(shape)
    security.put_message("namespaces", namespaces)
    return security


def pod_config(pod: Mapping[str, Any], parent: str, attempt: int = 0) -> Message:
    """The configuration of a pod's sandbox, on the node's network."""
    metadata = pod["metadata"]
    request = Message(RUN_POD_SANDBOX)
    config = request.message("config")
    name = config.message("metadata")
    for key in ("name", "uid", "namespace"):
        name.put_text(key, metadata[key])
    name.put_integer("attempt", attempt)
    config.put_message("metadata", name)
    config.put_texts("labels", {**metadata.get("labels", {}), "io.kubernetes.pod.uid": metadata["uid"]})
    config.put_texts("annotations", metadata.get("annotations", {}))
    linux = _edited(_POD_LINUX, b"", cgroup_parent=parent, security=_on_node(_POD_SECURITY))
    data = _edited(_POD, config.encoded(), log_directory="/var/log", linux=Message(_POD_LINUX, linux))
    return Message(config.shape, data)


def pod_request(pod: Mapping[str, Any], parent: str, attempt: int = 0) -> bytes:
    request = Message(RUN_POD_SANDBOX)
    request.put_message("config", pod_config(pod, parent, attempt))
    return request.encoded()


def container_request(sandbox: str, pod: Mapping[str, Any], parent: str, name: str, **numbers: int) -> bytes:
    request = Message(CREATE_CONTAINER)
    request.put_text("pod_sandbox_id", sandbox)
    config = request.message("config")
    metadata = config.message("metadata")
    metadata.put_text("name", name)
    config.put_message("metadata", metadata)
    linux = config.message("linux")
    resources = linux.message("resources")
    for key, value in numbers.items():
        resources.put_integer(key, value)
    linux.put_message("resources", resources)
    whole = _edited(_CONTAINER_LINUX, linux.encoded(), security=_on_node(_CONTAINER_SECURITY))
    data = _edited(
        _CONTAINER,
        config.encoded(),
        image=Message(_IMAGE, _edited(_IMAGE, b"", image=IMAGE)),
        command=["/bin/sleep", "100000"],
        linux=Message(_CONTAINER_LINUX, whole),
    )
    request.put_message("config", Message(config.shape, data))
    request.put_message("sandbox_config", pod_config(pod, parent))
    return request.encoded()


# --- containerd ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Containerd:
    """The program, which may be killed and started again."""

    folder: Path
    program: Path
    tools: Path
    """The folder of ctr and of Debian's shim, beside which runc stands."""
    shim: Path | None = None
    """The folder of another shim."""
    running: Running | None = None

    @property
    def socket(self) -> Path:
        return self.folder / "containerd.sock"

    @property
    def nri_socket(self) -> Path | None:
        """The socket of NRI, where it has that."""
        return None if self.shim is None else self.folder / "nri.sock"

    def start(self) -> None:
        self.running = Running(
            [self.program, "--config", self.folder / "config.toml"],
            self.folder / "containerd.log",
            environment=self.environment(),
        )
        self.running.__enter__()
        self.running.ready(self.answers, 60)

    def kill(self) -> None:
        assert self.running is not None
        self.running.kill()

    def answers(self) -> bool:
        kubelet = Kubelet(self.socket)
        try:
            kubelet.call("Version", seconds=1)
        except CallFailed:
            return False
        finally:
            kubelet.close()
        return True

    def ctr(self, *words: str) -> None:
        ran = subprocess.run(
            [self.tools / "ctr", "--address", self.socket, "--namespace", "k8s.io", *words],
            capture_output=True, text=True, timeout=60, check=False, env=self.environment(),
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr

    def environment(self) -> dict[str, str]:
        libraries = self.tools.parent / "lib" / "x86_64-linux-gnu"
        path = f"{self.shim or self.tools}:{self.tools.parent / 'sbin'}:{self.tools}:{os.environ['PATH']}"
        return {**os.environ, "PATH": path, "LD_LIBRARY_PATH": str(libraries)}


@contextmanager
def containerd(folder: Path, *, nri: bool = False) -> Iterator[Containerd]:
    """A containerd with CRI and the image, with NRI a newer one; at its end no container is left."""
    there = find("containerd").path.parent / "root" / "usr"
    assert there.exists(), "containerd is taken from the parts that tests make, with runc beside it"
    found = Containerd(folder, there / "bin" / "containerd", there / "bin")
    if nri:
        shim = find("containerd-shim-runc-v2").path.parent
        found = Containerd(folder, find("containerd-2").path, there / "bin", shim)
    config = _NRI_CONFIG if nri else _CONFIG
    (folder / "config.toml").write_text(config.format(folder=folder, image=IMAGE), "utf-8")
    found.start()
    try:
        archive = folder / "image.tar"
        make_image(archive, find("busybox").path.parent / "root" / "bin" / "busybox")
        found.ctr("images", "import", str(archive))
        yield found
    finally:
        _remove_all(found)
        assert found.running is not None
        found.running.__exit__(None, None, None)
        _end_shims(found)
        shutil.rmtree(folder / "root", ignore_errors=True)


def _end_shims(found: Containerd) -> None:
    """A runtime that is killed as it starts a container forgets the shim, which nobody asks to end any more."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = command.read_bytes().split(b"\0")
            if words[0].endswith(b"containerd-shim-runc-v2") and str(found.socket).encode() in words:
                os.kill(int(command.parent.name), signal.SIGKILL)


def _remove_all(found: Containerd) -> None:
    """The shims of containers live on without containerd, so that each has to be ended."""
    kubelet = Kubelet(found.socket)
    pods: Shape = {"items": Field(1, Form.MESSAGES, IDENTITY)}
    try:
        for one in Message(pods, kubelet.call("ListPodSandbox")).messages("items"):
            kubelet.remove(one.text("id"))
    finally:
        kubelet.close()


# Without CAP_SYS_RESOURCE, as in some containers, no score can be lowered: sandboxes then keep the test's own.
_CONFIG = """version = 2
root = "{folder}/root"
state = "{folder}/state"
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "{image}"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
"""


_NRI_CONFIG = """version = 3
root = "{folder}/root"
state = "{folder}/state"
disabled_plugins = ["io.containerd.tracing.processor.v1.otlp"]
[grpc]
address = "{folder}/containerd.sock"
[plugins."io.containerd.cri.v1.images"]
snapshotter = "native"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{image}"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
snapshotter = "native"
[plugins."io.containerd.nri.v1.nri"]
disable = false
socket_path = "{folder}/nri.sock"
plugin_path = "{folder}/nri-plugins"
plugin_config_path = "{folder}/nri-config"
"""


def make_image(archive: Path, busybox: Path) -> None:
    """An OCI archive with one program under some of its names."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as made:
        for name in ("bin", "proc", "sys", "dev", "etc", "tmp"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            made.addfile(folder)
        _add(made, "bin/busybox", busybox.read_bytes(), 0o755)
        for name in ("sh", "sleep"):
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            made.addfile(link)
    config = _json(
        {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Entrypoint": ["/bin/sleep", "100000"], "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [_digest(layer.getvalue())]},
        }
    )
    media = "application/vnd.oci.image"
    manifest = _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{media}.manifest.v1+json",
            "config": _described(f"{media}.config.v1+json", config),
            "layers": [_described(f"{media}.layer.v1.tar", layer.getvalue())],
        }
    )
    of_image = {"annotations": {"io.containerd.image.name": IMAGE}}
    index = {"schemaVersion": 2, "manifests": [_described(f"{media}.manifest.v1+json", manifest) | of_image]}
    with tarfile.open(archive, "w") as whole:
        _add(whole, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
        _add(whole, "index.json", _json(index))
        for blob in (layer.getvalue(), config, manifest):
            _add(whole, f"blobs/sha256/{_digest(blob).removeprefix('sha256:')}", blob)


def _add(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))


def _json(said: Any) -> bytes:
    return json.dumps(said).encode()


def _digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def _described(media: str, data: bytes) -> dict[str, Any]:
    return {"mediaType": media, "digest": _digest(data), "size": len(data)}


def environment_of(pid: int) -> Sequence[str]:
    """The environment that a process began with."""
    return Path("/proc", str(pid), "environ").read_bytes().decode().strip("\0").split("\0")
