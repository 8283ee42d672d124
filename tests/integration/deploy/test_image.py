"""The image's processes in containerd and runc, as the chart's pods have them, against a real API server.

It takes minutes to build an image: `make try-image` does, and names it in KOORDPOLICY_IMAGE.
"""

import http.client
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.integration.deploy.chart import rendered, workloads
from tests.integration.deploy.containers import Containers, containers
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import apply, install, manifests
from tests.parts.fixtures import need
from tests.parts.processes import free_port

IMAGE = os.environ.get("KOORDPOLICY_IMAGE", "")
pytestmark = [
    pytest.mark.skipif(not IMAGE, reason="KOORDPOLICY_IMAGE names no image; `make try-image` builds one"),
    pytest.mark.skipif(os.geteuid() != 0, reason="containers need root"),
]
SECONDS = 120


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
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"co-located": "yes"}},
        "spec": {
            "schedulerName": "koord-scheduler",
            "containers": [
                {"name": "one", "image": "none", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
            ],
        },
    }


PROFILE = {
    "apiVersion": "config.koordinator.sh/v1alpha1",
    "kind": "ClusterColocationProfile",
    "metadata": {"name": "image-test"},
    "spec": {"selector": {"matchLabels": {"co-located": "yes"}}, "labels": {"mutated-by": "the-image"}},
}


def test_manager_and_scheduler_as_the_chart_starts_them(
    there: Containers, own_apiserver: Callable[..., ApiServer], tmp_path: Path
) -> None:
    access = own_apiserver().access
    install(access)
    apply(access, manifests(REPOSITORY / "deploy" / "manager"))
    pods = {
        one["metadata"]["name"].removeprefix("koordpolicy-"): one["spec"]["template"]["spec"]
        for one in workloads(rendered("--set=crds.managed=false"))
    }
    ports = {name: free_port() for name in ("manager", "scheduler", "front")}
    for name in ("manager", "scheduler"):
        places = {volume["name"]: tmp_path / name / volume["name"] for volume in pods[name]["volumes"]}
        for place in places.values():
            place.mkdir(parents=True)
            os.chown(place, 65532, 65532)
        places["kubeconfig"] = tmp_path / f"{name}.kubeconfig"
        places["kubeconfig"].write_bytes(access.kubeconfig(f"koordpolicy-{name}").read_bytes())
        places["kubeconfig"].chmod(0o644)
        environment = {"KUBECONFIG": "/etc/kubeconfig"}
        (container,) = pods[name]["containers"]
        words = [
            word.replace("--http=:8080", f"--http=127.0.0.1:{ports[name]}") for word in container["args"]
        ]
        if name == "manager":
            # Without cluster DNS API servers find the webhooks by an address.
            words.append(f"--webhook-url=https://127.0.0.1:{ports['front']}")
            (front,) = pods[name]["initContainers"]
            before = [f"--listen=127.0.0.1:{ports['front']}", front["args"][1]]
            there.start("front", front, pods[name], places, words=before, environment=environment)
        there.start(name, container, pods[name], places, words=words, environment=environment)
    for name in ("manager", "scheduler"):
        assert ready(ports[name], there.log(name))["policies"]
    assert (
        access.request("POST", "/apis/config.koordinator.sh/v1alpha1/clustercolocationprofiles", PROFILE)[0]
        == 201
    )
    until = time.monotonic() + SECONDS
    for number in range(1_000):
        status, made = access.request("POST", "/api/v1/namespaces/default/pods", pod(f"pod-{number}"))
        if status == 201 and made["metadata"]["labels"].get("mutated-by") == "the-image":
            break
        assert time.monotonic() < until, (status, made, there.log("manager").read_text("utf-8")[-2000:])
        time.sleep(0.5)
