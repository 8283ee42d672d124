"""A real API server, looked at and never written to; and who may ask the console at all."""

import contextlib
import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.console.console import console
from tests.parts.shared import SharedServer

PATIENCE = 30.0


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The console of a cluster without anything."""
    file = tmp_path_factory.mktemp("cluster") / "cluster.json"
    file.write_text(json.dumps({"kind": "List", "items": []}))
    with console("-f", str(file)) as address:
        yield address


def asked(address: str, path: str, token: str = "", body: object = None) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    data = None
    if body is not None:
        data, headers["Content-Type"] = json.dumps(body), "application/json"
    connection = http.client.HTTPConnection(address.removeprefix("http://"), timeout=20)
    with contextlib.closing(connection):
        connection.request("GET" if data is None else "POST", path, data, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    return answer.status, json.loads(text) if answer.status == 200 else text


def test_a_live_cluster_is_followed(apiserver: SharedServer) -> None:
    name = "seen-by-the-console"
    with console("--live", "--every", "1s", "--kubeconfig", str(apiserver.kubeconfig("admin"))) as address:
        assert asked(address, "/api/world")[1]["kind"] == "live"
        node = {"metadata": {"name": name}, "status": {"capacity": {"cpu": "8"}}}
        assert apiserver.request("POST", "/api/v1/nodes", node)[0] == 201
        end = time.monotonic() + PATIENCE
        while {"what": "node", "name": name} not in asked(address, f"/api/search?q={name}")[1]:
            assert time.monotonic() < end
            time.sleep(0.2)
        code, told = asked(address, f"/api/node?name={name}&room=1")
        assert (code, told["cpu"], told["pods"]) == (200, 8000, [])

        # A pod that was there is remembered once it is gone.
        pods = "/api/v1/namespaces/default/pods"
        spec = {"nodeName": name, "containers": [{"name": "main", "image": "none"}]}
        assert apiserver.request("POST", pods, {"metadata": {"name": name}, "spec": spec})[0] == 201
        end = time.monotonic() + PATIENCE
        while not asked(address, f"/api/node?name={name}")[1]["pods"]:
            assert time.monotonic() < end
            time.sleep(0.2)
        gone = {"gracePeriodSeconds": 0}
        assert apiserver.request("DELETE", f"{pods}/{name}", gone)[0] == 200
        while asked(address, f"/api/node?name={name}")[1]["pods"]:
            assert time.monotonic() < end
            time.sleep(0.2)
        (span,) = asked(address, f"/api/pod?name={name}")[1]["history"]
        assert (span["node"], span["outcome"]) == (name, "gone")


def test_with_a_token_only_its_owner_is_answered(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret\n")
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": []}))
    flags = ("-f", str(tmp_path / "cluster.json"), "--bearer-token-file", str(tmp_path / "token"))
    with console(*flags) as address:
        assert asked(address, "/api/world")[0] == 401
        assert asked(address, "/api/check", body={"files": {}})[0] == 401
        assert asked(address, "/api/world", "another")[0] == 401
        assert asked(address, "/api/world", "s3cret")[0] == 200
        code, told = asked(address, "/api/check", "s3cret", {"files": {"a.yaml": "kind: [\n"}})
        assert (code, told["compiles"]) == (200, False)
        assert told["findings"][0]["file"] == "a.yaml"


def test_files_are_named_from_their_bundle_and_not_by_paths_of_the_host(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "pools").mkdir(parents=True)
    api = "apiVersion: koordpolicy.io/v1alpha1\n"
    (bundle / "koordpolicy.yaml").write_text(
        f"{api}kind: PolicyBundle\nmetadata: {{name: ours}}\nspec: {{extends: [koordinator]}}\n"
    )
    pool = f"{api}kind: CPUSuppress\nmetadata: {{name: pool}}\nspec:\n  parameters: {{threshold: 75%}}\n"
    (bundle / "pools" / "a.yaml").write_text(pool)
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": []}))
    with console("-p", str(bundle), "-f", str(tmp_path / "cluster.json")) as address:
        assert sorted(asked(address, "/api/files")[1]["own"]) == ["koordpolicy.yaml", "pools/a.yaml"]
        assert asked(address, "/api/source?file=pools/a.yaml")[1]["text"] == pool
        told = asked(address, "/api/graph?name=CPUSuppress.target")[1]
        assert "pools/a.yaml" in json.dumps(told)
        assert str(tmp_path) not in json.dumps(told)
        edited = {"pools/a.yaml": pool.replace("threshold", "treshold")}
        (finding,) = asked(address, "/api/check", body={"files": edited})[1]["findings"]
        assert (finding["file"], finding["from"][0]) == ("pools/a.yaml", 5)


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/api/check", {"files": {"a.txt": ""}}, "no YAML"),
        ("/api/check", {"files": {"a.yaml": 1}}, "maps paths to texts"),
        ("/api/check", [], "JSON object"),
        ("/api/complete", {"file": "a.yaml", "text": "a", "offset": True}, "`offset` is a number"),
        ("/api/complete", {"file": "a.yaml", "text": "a", "offset": 9}, "from 0 to 1"),
        ("/api/node?name=nobody", None, "no node `nobody`"),
        ("/api/node", None, "say which one"),
        ("/api/source?file=/etc/passwd", None, "no file of these policies"),
        ("/api/graph?name=Nothing.here", None, "Nothing"),
        ("/api/state?after=-1", None, "a number"),
        ("/api/clock", {"paused": True}, "only a simulation"),
    ],
)
def test_what_cannot_be_answered_says_why(empty: str, path: str, body: object, said: str) -> None:
    code, told = asked(empty, path, body=body)
    assert code == 404
    assert said in told
