"""`koordpolicy explain pod -f pod.yaml`: what admission makes of pods, and which rules made it."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.vectors.policies import document

RESOURCES = {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}
POLICIES = (
    {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "PolicyBundle",
        "metadata": {"name": "mine"},
        "spec": {"extends": ["koordinator"]},
    },
    document(
        "ColocationProfile",
        "spark",
        {
            "match": {"pods": {"matchLabels": {"app": "spark"}}},
            "qosClass": "BE",
            "band": "batch",
            "labels": {"who": {"cel": "pod.labels['app'] + '-x'"}},
            "patch": {"spec": {"terminationGracePeriodSeconds": 10}},
        },
    ),
    document(
        "ColocationProfile",
        "never",
        {
            "match": {"pods": {"matchLabels": {"app": "spark"}}},
            "probability": "0%",
            "labels": {"drawn": "in"},
        },
    ),
    document(
        "AdmissionRule",
        "team",
        {"require": {"cel": "'team' in pod.labels"}, "message": "say whose it is", "enforcement": "warn"},
    ),
)


def pod(labels: dict[str, str], resources: dict[str, Any] = RESOURCES) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "shop", "labels": labels},
        "spec": {"containers": [{"name": "main", "image": "i", "resources": resources}]},
    }


def ask(folder: Path, *objects: dict[str, Any], more: tuple[str, ...] = ()) -> tuple[int, str, str]:
    for number, one in enumerate(POLICIES):
        (folder / f"{number}.yaml").write_text(json.dumps(one), encoding="utf-8")
    (folder / "koordpolicy.yaml").write_text(json.dumps(POLICIES[0]), encoding="utf-8")
    (folder / "0.yaml").unlink()
    file = folder.with_suffix(".pods.yaml")
    file.write_text("\n---\n".join(json.dumps(one) for one in objects), encoding="utf-8")
    out, err = io.StringIO(), io.StringIO()
    code = main(("explain", "pod", "-f", str(file), "-p", str(folder), *more), Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


def asked(folder: Path, *objects: dict[str, Any]) -> Any:
    code, out, err = ask(folder, *objects, more=("-o", "json"))
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "policies"
    made.mkdir()
    return made


def test_each_line_has_the_rule_that_made_it(folder: Path) -> None:
    found = asked(folder, pod({"app": "spark"}))
    assert found["allowed"] is True
    made = {one["decision"]: one for one in found["changes"]}
    assert list(made) == [
        "ColocationProfile/spark.labels[who]",
        "ColocationProfile/spark.qosClass",
        "ColocationProfile/spark.band",
        "ColocationProfile/spark.patch",
        "PriorityBand/batch.resources.names",
    ]
    assert made["ColocationProfile/spark.labels[who]"]["lines"] == [
        {"path": "metadata.labels.who", "value": "spark-x"}
    ]
    for one in found["changes"][:4]:
        assert Path(one["places"][0]["file"]).name == "1.yaml"
    assert {"path": "spec.containers[0].resources.requests.cpu", "old": "1"} in made[
        "PriorityBand/batch.resources.names"
    ]["lines"]
    assert found["warnings"] == ["team: say whose it is"]
    assert found["profiles"] == {"applied": ["spark"], "spared": ["never"]}


def test_devices_are_told_by_the_rules_that_take_requests_apart(folder: Path) -> None:
    whole = {"koordinator.sh/gpu": "100"}
    found = asked(folder, pod({"team": "x"}, {"requests": whole, "limits": whole}))
    assert [one["decision"] for one in found["changes"]] == [
        "DeviceSharing/gpu.requests.derive[koordinator.sh/gpu.shared]",
        "DeviceSharing/gpu.requests.expand[koordinator.sh/gpu]",
    ]


def test_a_refusal_is_shown_with_its_rule(folder: Path) -> None:
    code, out, _ = ask(folder, pod({"koordinator.sh/qosClass": "BE", "team": "x"}))
    assert code == 0
    assert out.startswith("shop/p would not be changed, and refused\n")
    assert "Refused: be-priority-forbidden" in out
    assert "AdmissionRule/permitted-bands" in out


def test_objects_beside_the_pod_count(folder: Path) -> None:
    """The cluster's own PriorityClasses, its profiles and its namespaces stand in the same manifests."""
    profile = {
        "apiVersion": "config.koordinator.sh/v1alpha1",
        "kind": "ClusterColocationProfile",
        "metadata": {"name": "theirs"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"team": "data"}},
            "labels": {"by": "object"},
            "schedulerName": "koord-scheduler",
        },
    }
    namespace = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "shop", "labels": {"team": "data"}},
    }
    classes = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "other"},
        "value": 7,
    }
    found = asked(folder, pod({"team": "x"}), profile, namespace, classes)
    assert [one["decision"] for one in found["changes"]] == [
        "ClusterColocationProfile/theirs.labels[by]",
        "ClusterColocationProfile/theirs.schedulerName",
    ]
    assert found["changes"][0]["places"] == []
    refused = asked(folder, pod({"app": "spark"}), classes)
    assert refused["allowed"] is False
    assert "there is no PriorityClass `koord-batch`" in refused["message"]


def test_manifests_without_pods_say_so(folder: Path) -> None:
    code, _, err = ask(folder, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}})
    assert code == 2
    assert "the manifests have no pod" in err
