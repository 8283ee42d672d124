"""The image's processes in containerd and runc, as the chart's pods have them, against a real API server.

It takes minutes to build an image: `make try-image` does, and names it in KOORDPOLICY_IMAGE.
"""

import http.client
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.integration.deploy.chart import rendered, workloads
from tests.integration.deploy.containers import Containers, containers
from tests.parts.apiserver import Access, ApiServer
from tests.parts.deployed import apply, install, manifests
from tests.parts.fixtures import need
from tests.parts.kubelet import OwnGroups, OwnKubelet, has_writable_groups
from tests.parts.processes import free_port

IMAGE = os.environ.get("KOORDPOLICY_IMAGE", "")
pytestmark = [
    pytest.mark.skipif(not IMAGE, reason="KOORDPOLICY_IMAGE names no image; `make try-image` builds one"),
    pytest.mark.skipif(os.geteuid() != 0, reason="containers need root"),
]
SECONDS = 150


@pytest.fixture(scope="module")
def there(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    need(pytestconfig, "containerd", "helm", "etcd", "kube-apiserver")
    with containers(REPOSITORY / IMAGE, tmp_path_factory.mktemp("containers")) as found:
        yield found


def test_commands_run_with_a_read_only_root(there: Containers) -> None:
    said = there.run("version", ["koordpolicy", "--version"])
    assert (said.returncode, said.stdout.split()[0]) == (0, "koordpolicy"), said.stderr
    example = f"type=bind,src={REPOSITORY / 'examples' / '02-tune-one-pool'},dst=/policies,options=rbind:ro"
    said = there.run("check", ["koordpolicy", "check", "/policies"], "--mount", example)
    assert said.returncode == 0, said.stdout + said.stderr
    for program in ("git --version", "ssh -V", "ssh-keygen -?", "gpg --version"):
        said = there.run(program.split()[0], program.split())
        assert "error while loading" not in said.stderr, said.stderr
        assert said.stdout + said.stderr


def test_every_library_finds_what_it_links_to(there: Containers) -> None:
    code = (
        "import os, subprocess\n"
        "bad = []\n"
        "for top in ('/usr/bin', '/usr/lib', '/usr/local'):\n"
        "    for folder, _, files in os.walk(top):\n"
        "        for name in files:\n"
        "            path = os.path.join(folder, name)\n"
        "            if os.path.islink(path) or open(path, 'rb').read(4) != b'\\x7fELF': continue\n"
        "            said = subprocess.run(['/lib64/ld-linux-x86-64.so.2', '--list', path], capture_output=True, text=True)\n"
        "            if 'not found' in said.stdout + said.stderr: bad.append((path, said.stdout + said.stderr))\n"
        "print(bad)\n"
    )
    said = there.run("libraries", ["python3", "-c", code])
    assert said.returncode == 0, said.stderr
    assert said.stdout.strip() == "[]"


def ready(port: int, container: Path) -> dict[str, Any]:
    """What a process says of itself once it is ready."""
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            answer = connection.getresponse()
            answer.read()
            if answer.status == 200:
                connection.request("GET", "/statusz", headers={"Accept": "application/json"})
                found: dict[str, Any] = json.loads(connection.getresponse().read())
                return found
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.3)
    raise AssertionError(container.read_text("utf-8")[-3000:])


def pod(name: str) -> dict[str, Any]:
    amounts = {"cpu": "200m", "memory": "64Mi"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"co-located": "yes"}},
        "spec": {
            "containers": [
                {"name": "one", "image": "none", "resources": {"requests": amounts, "limits": amounts}}
            ]
        },
    }


PROFILE = {
    "apiVersion": "config.koordinator.sh/v1alpha1",
    "kind": "ClusterColocationProfile",
    "metadata": {"name": "image-test"},
    "spec": {
        "selector": {"matchLabels": {"co-located": "yes"}},
        "labels": {"mutated-by": "the-image"},
        "qosClass": "BE",
        "priorityClassName": "koord-batch",
        "schedulerName": "koord-scheduler",
    },
}
NODE = "image-node"
DEPLOYMENTS = ("manager", "scheduler", "descheduler", "yarn-operator")


class Cluster:
    """An API server with one node, and processes of the image as the chart's pods have them."""

    def __init__(self, there: Containers, access: Access, folder: Path) -> None:
        self.there, self.access, self._folder = there, access, folder
        self._pods = {
            one["metadata"]["name"].removeprefix("koordpolicy-"): one["spec"]["template"]["spec"]
            for one in workloads(
                rendered(
                    "--set=crds.managed=false",
                    "--set=yarnOperator.enabled=true,yarnOperator.urls={http://127.0.0.1:9}",
                )
            )
        }

    def prepare(self) -> None:
        install(self.access)
        apply(self.access, manifests(REPOSITORY / "deploy" / "manager"))
        assert self.access.request("POST", "/api/v1/nodes", {"metadata": {"name": NODE}})[0] == 201
        # Nobody here takes the taint away that nodes begin with.
        untainted = self.access.request("PATCH", f"/api/v1/nodes/{NODE}", {"spec": {"taints": None}})
        assert untainted[0] == 200
        # More than this machine may have, so that something is left for batch work however busy it is.
        amounts = {"cpu": "64", "memory": "64Gi", "pods": "110"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}}
        assert self.access.request("PATCH", f"/api/v1/nodes/{NODE}/status", status)[0] == 200

    def start(self, name: str, changed: Mapping[str, str], *more: str) -> None:
        """A component's container. `changed` are the chart's arguments that are another machine's; "" leaves one out."""
        spec = self._pods[name]
        (container,) = spec["containers"]
        self.there.start(
            name, container, spec, self._places(name), words=[*_words(container, changed), *more],
            environment={"KUBECONFIG": "/etc/kubeconfig", "NODE_NAME": NODE},
        )  # fmt: skip

    def start_front(self, address: str) -> None:
        """The container that stands before the manager's."""
        spec = self._pods["manager"]
        (front,) = spec["initContainers"]
        words = [f"--listen={address}", front["args"][1]]
        self.there.start(
            "front", front, spec, self._places("manager"), words=words,
            environment={"KUBECONFIG": "/etc/kubeconfig"},
        )  # fmt: skip

    def _places(self, name: str) -> dict[str, Path]:
        """Where a pod's volumes are: directories of the test's own, and the node's where the chart wants them."""
        spec = self._pods[name]
        owner = spec["securityContext"]["runAsUser"]
        places = {}
        for volume in spec["volumes"]:
            if volume.get("hostPath", {}).get("type") == "Directory":
                places[volume["name"]] = Path(volume["hostPath"]["path"])
                continue
            place = places[volume["name"]] = self._folder / name / volume["name"]
            place.mkdir(parents=True, exist_ok=True)
            os.chown(place, owner, owner)
        kubeconfig = places["kubeconfig"] = self._folder / f"{name}.kubeconfig"
        kubeconfig.write_bytes(self.access.kubeconfig(f"koordpolicy-{name}").read_bytes())
        kubeconfig.chmod(0o644)
        return places

    def until(self, question: Callable[[], Any], name: str) -> Any:
        """What a question answers once it answers; a container's log where it does not."""
        end = time.monotonic() + SECONDS
        while not (found := question()):
            assert time.monotonic() < end, self.there.log(name).read_text("utf-8")[-3000:]
            time.sleep(0.5)
        return found

    def get(self, path: str) -> Any:
        status, found = self.access.request("GET", path)
        return found if status == 200 else None


def _words(container: Mapping[str, Any], changed: Mapping[str, str]) -> list[str]:
    found = [changed.get(word.partition("=")[0], word) for word in container["args"]]
    return [word for word in found if word]


@pytest.fixture
def cluster(there: Containers, own_apiserver: Callable[..., ApiServer], tmp_path: Path) -> Cluster:
    found = Cluster(there, own_apiserver(deployed=True).access, tmp_path)
    found.prepare()
    return found


@pytest.mark.skipif(
    not has_writable_groups(), reason="this machine's control groups (version 1) cannot be written"
)
def test_a_pod_is_mutated_placed_and_held_in_its_group(cluster: Cluster) -> None:
    there = cluster.there
    ports = {name: free_port() for name in (*DEPLOYMENTS, "front")}
    cluster.start_front(f"127.0.0.1:{ports['front']}")
    for name in DEPLOYMENTS:
        # Without cluster DNS API servers find the webhooks by an address.
        more = [f"--webhook-url=https://127.0.0.1:{ports['front']}"] if name == "manager" else []
        cluster.start(name, {"--http": f"--http=127.0.0.1:{ports[name]}"}, *more)
    for name in DEPLOYMENTS:
        assert ready(ports[name], there.log(name))["policies"]
    with OwnKubelet(OwnGroups("koordpolicy-image"), NODE) as kubelet:
        own = {
            "--kubelet-url": f"--kubelet-url={kubelet.url}",
            "--kubelet-ca-file": "",
            "--kubelet-server-name": "",
            "--instance": f"--instance={NODE}",
        }
        cluster.start("agent", own, f"--kubelet-cgroup-root={kubelet.groups.parent}")
        profiles = "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles"
        assert cluster.access.request("POST", profiles, PROFILE)[0] == 201

        def offered() -> bool:
            node = cluster.get(f"/api/v1/nodes/{NODE}")
            return int(node["status"]["allocatable"].get("kubernetes.io/batch-cpu", 0)) > 0

        # What the agent measures the manager makes into resources of the node.
        cluster.until(offered, "agent")
        made = cluster.until(partial(_mutated, cluster.access), "manager")
        batch = {"kubernetes.io/batch-cpu": "200", "kubernetes.io/batch-memory": "64Mi"}
        assert made["spec"]["containers"][0]["resources"]["requests"] == batch
        path = f"/api/v1/namespaces/default/pods/{made['metadata']['name']}"
        cluster.until(lambda: cluster.get(path)["spec"].get("nodeName") == NODE, "scheduler")
        (group,) = kubelet.run(cluster.get(path))
        files = kubelet.groups
        cluster.until(lambda: files.file("cpu", group, "cpu.shares") == "204", "agent")
        cluster.until(lambda: files.file("cpu", group, "cpu.cfs_quota_us") == "20000", "agent")
        cluster.until(lambda: files.file("memory", group, "memory.limit_in_bytes") == str(64 << 20), "agent")
        there.stop("agent")


def _mutated(access: Access, numbers: Iterator[int] = count()) -> Any:  # noqa: B008  # names differ
    """A pod that was made and changed by the webhook; None while it was not."""
    status, made = access.request("POST", "/api/v1/namespaces/default/pods", pod(f"pod-{next(numbers)}"))
    if status == 201 and made["metadata"]["labels"].get("mutated-by") == "the-image":
        return made
    return None
