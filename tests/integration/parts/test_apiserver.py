"""The API server of the tests is a real one: it asks who comes, forgets, and dies like one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.parts.apiserver import USERS, Access, ApiServer
from tests.parts.controllers import FAKE_NODE
from tests.parts.processes import Ended, alive
from tests.parts.shared import SharedServer

CONFIGS = "/api/v1/namespaces/default/configmaps"


def eventually(question: Callable[[], bool], seconds: float = 60.0) -> bool:
    until = time.monotonic() + seconds
    while not question():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


def run(command: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("user", USERS)
def test_users_are_known_and_only_the_administrator_may_do_all(apiserver: SharedServer, user: str) -> None:
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    status, answer = apiserver.request(
        "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review, user=user
    )
    assert (status, answer["status"]["userInfo"]["username"]) == (201, USERS[user][0])
    status, _ = apiserver.request(
        "POST", "/api/v1/namespaces?dryRun=All", {"metadata": {"name": "not-made"}}, user=user
    )
    assert status == (201 if user == "admin" else 403)


def test_a_stranger_is_turned_away(
    apiserver: SharedServer, part: Callable[[str], Path], tmp_path: Path
) -> None:
    stranger = apiserver.kubeconfig("nobody").read_text().replace("token-of-nobody", "nonsense")
    file = tmp_path / "kubeconfig"
    file.write_text(stranger)
    asked = run([part("kubectl"), f"--kubeconfig={file}", "get", "namespaces"])
    assert asked.returncode == 1
    assert "must be logged in" in asked.stderr


def test_kubectl_takes_the_kubeconfig(apiserver: SharedServer, part: Callable[[str], Path]) -> None:
    asked = run(
        [part("kubectl"), f"--kubeconfig={apiserver.kubeconfig('nobody')}", "auth", "can-i", "get", "pods"]
    )
    assert (asked.returncode, asked.stdout.strip()) == (1, "no"), asked.stderr


def test_something_is_done_once_for_a_server(apiserver: SharedServer) -> None:
    done: list[int] = []
    for number in (1, 2):
        apiserver.once(f"test-{os.getpid()}", lambda number=number: done.append(number))  # type: ignore[misc]
    assert done == [1]


def test_controllers_collect_garbage(apiserver: SharedServer, part: Callable[[str], Path]) -> None:
    part("kube-controller-manager")
    apiserver.want("kube-controller-manager")
    status, owner = apiserver.request("POST", CONFIGS, {"metadata": {"generateName": "owner-"}})
    assert status == 201
    names = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    belongs = {
        "generateName": "owned-",
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", **names}],
    }
    _, owned = apiserver.request("POST", CONFIGS, {"metadata": belongs})
    apiserver.request("DELETE", f"{CONFIGS}/{names['name']}")
    there = f"{CONFIGS}/{owned['metadata']['name']}"
    assert eventually(lambda: apiserver.request("GET", there)[0] == 404)


def test_kwok_runs_pods(apiserver: SharedServer, part: Callable[[str], Path]) -> None:
    part("kwok")
    apiserver.want("kwok")
    node = {"metadata": {"name": "kwok-of-parts", "annotations": FAKE_NODE}}
    assert apiserver.request("POST", "/api/v1/nodes", node)[0] == 201
    try:
        containers = [{"name": "main", "image": "pause"}]
        pod = {
            "metadata": {"name": "kwok-of-parts"},
            "spec": {"nodeName": "kwok-of-parts", "containers": containers},
        }
        assert apiserver.request("POST", "/api/v1/namespaces/default/pods", pod)[0] == 201

        def runs() -> bool:
            _, seen = apiserver.request("GET", "/api/v1/namespaces/default/pods/kwok-of-parts")
            return bool(seen["status"]["phase"] == "Running")

        assert eventually(runs)
        apiserver.request("DELETE", "/api/v1/namespaces/default/pods/kwok-of-parts")
    finally:
        apiserver.request("DELETE", "/api/v1/nodes/kwok-of-parts")


def test_a_proxy_breaks_the_way(apiserver: SharedServer) -> None:
    with apiserver.proxy() as proxy:
        port = int(proxy.url.rpartition(":")[2])
        through = Access(apiserver.folder, port, apiserver.etcd_port)
        assert through.request("GET", "/readyz")[0] == 200
        proxy.refuse()
        with pytest.raises(ConnectionError):
            through.request("GET", "/readyz")
        proxy.accept()
        assert through.request("GET", "/readyz")[0] == 200
        assert str(port) in proxy.kubeconfig("admin").read_text()


def test_an_own_server_dies_comes_back_and_forgets(own_apiserver: Callable[..., ApiServer]) -> None:
    server = own_apiserver()
    ask = server.access.request
    assert ask("POST", CONFIGS, {"metadata": {"name": "kept"}, "data": {"a": "1"}})[0] == 201
    _, page = ask("GET", f"{CONFIGS}?limit=1")
    old = page["metadata"]["resourceVersion"]
    server.kill()
    with pytest.raises(ConnectionError):
        ask("GET", "/readyz")
    server.start()
    assert ask("GET", f"{CONFIGS}/kept")[1]["data"] == {"a": "1"}
    ask("PATCH", f"{CONFIGS}/kept", {"data": {"a": "2"}})
    server.forget()
    status, event = ask("GET", f"{CONFIGS}?watch=1&timeoutSeconds=5&resourceVersion={old}")
    assert (status, event.get("code") or event["object"]["code"]) in {(200, 410), (410, 410)}


def test_nothing_outlives_who_started_it(part: Callable[[str], Path], tmp_path: Path) -> None:
    part("etcd"), part("kube-apiserver")
    script = (
        "import sys, time; from pathlib import Path; from tests.parts.apiserver import ApiServer\n"
        "with ApiServer(Path(sys.argv[1])) as server: print(server.pid, flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        assert alive(pid)
        process.send_signal(signal.SIGKILL)
    assert eventually(lambda: not alive(pid), 20)


def test_the_log_tells_why_a_server_does_not_start(own_apiserver: Callable[..., ApiServer]) -> None:
    with pytest.raises(Ended, match="unknown flag: --no-such-flag"):
        own_apiserver(arguments=["--no-such-flag"])
