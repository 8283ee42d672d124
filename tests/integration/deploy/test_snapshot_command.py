"""`koordpolicy snapshot` on a real API server, with no more rights than its role gives."""

import io
import re
import time
from pathlib import Path

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.kube.snapshot import read_snapshot
from tests.parts.apiserver import Access

RBAC = "rbac.authorization.k8s.io"


def run(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    code = main(("snapshot", *arguments), Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


def test_a_snapshot_needs_its_role_and_no_more(deployed: Access, tmp_path: Path) -> None:
    node = {"metadata": {"name": "seen"}, "status": {"capacity": {"cpu": "8"}}}
    assert deployed.request("POST", "/api/v1/nodes", node)[0] == 201
    container = {"name": "main", "image": "a", "env": [{"name": "TOKEN", "value": "hunter2"}]}
    pod = {"metadata": {"name": "seen"}, "spec": {"containers": [container]}}
    assert deployed.request("POST", "/api/v1/namespaces/default/pods", pod)[0] == 201

    file = tmp_path / "cluster.json"
    kubeconfig = str(deployed.kubeconfig("nobody"))
    code, out, err = run(str(file), "--kubeconfig", kubeconfig)
    assert (code, out) == (2, "")
    assert "the ClusterRole `koordpolicy-snapshot` permits all that is needed" in err
    assert not file.exists()

    binding = {
        "metadata": {"name": "snapshot-of-nobody"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "koordpolicy-snapshot"},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "nobody"}],
    }
    assert deployed.request("POST", f"/apis/{RBAC}/v1/clusterrolebindings", binding)[0] == 201
    code, out, err = run(str(file), "--kubeconfig", kubeconfig)
    assert (code, err) == (0, "")
    # Others who share the server have nodes and pods of their own.
    snapshot = read_snapshot(file)
    assert re.search(rf"\b{len(snapshot.nodes)} nodes?, {len(snapshot.pods)} pods?\b", out)
    for among in (snapshot.nodes, snapshot.pods):
        assert [one["metadata"]["name"] for one in among].count("seen") == 1
    assert snapshot.absent == ()
    assert "hunter2" not in file.read_text(encoding="utf-8")

    # Others who share the server find nobody without rights.
    bindings = f"/apis/{RBAC}/v1/clusterrolebindings/snapshot-of-nobody"
    assert deployed.request("DELETE", bindings)[0] == 200
    for _ in range(100):
        if deployed.request("GET", "/api/v1/nodes?limit=1", user="nobody")[0] == 403:
            break
        time.sleep(0.1)


def test_without_a_cluster(tmp_path: Path) -> None:
    code, _, err = run(str(tmp_path / "a.json"), "--kubeconfig", str(tmp_path / "none"))
    assert code == 2
    assert "Traceback" not in err
    code, _, err = run(str(tmp_path / "none" / "a.json"))
    assert (code, err) == (2, f"koordpolicy snapshot: there is no directory `{tmp_path / 'none'}`\n")
