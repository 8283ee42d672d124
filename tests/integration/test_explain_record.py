"""`koordpolicy explain DECISION NAME`, and `diff -c`, on what `kubectl get` gives."""

import io
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

EXAMPLE = Path(__file__).parents[2] / "examples/02-tune-one-pool"
AMOUNTS = {"cpu": "32", "memory": "64Gi", "pods": "110"}
OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"pool": pool}},
        "status": {"capacity": AMOUNTS, "allocatable": AMOUNTS},
    }
    for name, pool in (("n1", "night"), ("n2", "day"))
]
OBJECTS.append(
    {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "shop", "labels": {"koordinator.sh/qosClass": "LS"}},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
    }
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("cluster") / "all.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": OBJECTS}))
    return str(file)


def call(*words: str) -> tuple[int, str, str]:
    terminal = Terminal(out := io.StringIO(), err := io.StringIO())
    return main(words, terminal), out.getvalue(), err.getvalue()


@pytest.mark.parametrize(("node", "threshold"), [("n1", "85%"), ("n2", "65%")])
def test_a_decision_about_a_node_of_the_manifests(cluster: str, node: str, threshold: str) -> None:
    words = ("explain", "CPUSuppress.parameters.threshold", node, "-p", str(EXAMPLE), "-f", cluster)
    code, out, err = call(*words)
    assert code == 0, err
    assert out.startswith(f"CPUSuppress.parameters.threshold = {threshold}")
    (told,) = json.loads(call(*words, "-o", "json")[1])
    assert told["value"] == threshold


def test_a_decision_about_a_pod_of_the_manifests(cluster: str) -> None:
    words = ("explain", "AdmissionRule/batch-needs-be.require", "shop/p", "-f", cluster)
    code, out, err = call(*words)
    assert code == 0, err
    assert out.startswith("AdmissionRule/batch-needs-be.require = true")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("CPUSuppress.target", "n3"), "is asked about no node `n3`; it is asked about 2 nodes"),
        (("AdmissionRule/batch-needs-be.require", "p"), "there is `shop/p`"),
        (("CPUSuppress.targe", "n1"), "did you mean"),
        (("CPUSuppress.target", "n1", "-g", "x"), "give one of the two"),
    ],
)
def test_what_is_not_there_is_told(cluster: str, words: tuple[str, ...], said: str) -> None:
    code, _, err = call("explain", *words, "-f", cluster)
    assert code == 2
    assert said in err


def test_diff_takes_what_kubectl_gives(cluster: str, tmp_path: Path) -> None:
    new = tmp_path / "new"
    shutil.copytree(EXAMPLE, new)
    night = new / "night.yaml"
    night.write_text(
        night.read_text(encoding="utf-8").replace("threshold: 85%", "threshold: 90%"), encoding="utf-8"
    )
    code, out, err = call("diff", str(EXAMPLE), str(new), "-c", cluster, "-o", "json")
    assert code == 0, err
    assert json.loads(out)["cluster"]["nodes"] == 2
    (tmp_path / "none.yaml").write_text("a: 1\n")
    code, _, err = call("diff", str(EXAMPLE), str(new), "-c", str(tmp_path / "none.yaml"))
    assert code == 2
    assert "none.yaml" in err


def test_a_whole_cluster_may_be_large(tmp_path: Path) -> None:
    pods = [{**OBJECTS[2], "metadata": {"name": f"p{at}", "namespace": "shop"}} for at in range(5_000)]
    file = tmp_path / "large.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*OBJECTS, *pods]}, indent=2))
    assert file.stat().st_size > 1_500_000
    words = ("CPUSuppress.parameters.threshold", "n1", "-p", str(EXAMPLE), "-f", str(file))
    code, out, err = call("explain", *words)
    assert code == 0, err
    assert out.startswith("CPUSuppress.parameters.threshold = 85%")


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", '{"kind": "List", "items": 5}', "NaN", "\ud800"])
def test_what_is_no_cluster_is_told(tmp_path: Path, text: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    code, _, err = call("explain", "CPUSuppress.target", "n1", "-f", str(file))
    assert code == 2
    assert "a.json" in err or "no node `n1`" in err
