"""The definitions in `deploy/crds` on a real API server: accepted, and true to what is written."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.diagnostics import Diagnostics
from koordpolicy.language.crds.definitions import plural_of
from koordpolicy.language.documents import read_documents
from koordpolicy.language.kinds import KINDS
from koordpolicy.model.policy_revision import (
    Instance,
    InstanceState,
    PolicyRevision,
    RevisionStatus,
    RolloutState,
    ShownDiagnostic,
    StatusCondition,
    from_json,
    to_json,
)
from tests.conftest import REPOSITORY
from tests.parts.apiserver import Access
from tests.parts.deployed import manifests

API = "/apis/koordpolicy.io/v1alpha1"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
FILES = [
    str(file.relative_to(REPOSITORY))
    for folder in ("policies", "examples", "deploy")
    for file in sorted((REPOSITORY / folder).rglob("*.yaml"))
]


@pytest.fixture(scope="module")
def names() -> list[str]:
    """The names of all definitions in the folder."""
    return [str(one["metadata"]["name"]) for one in manifests(REPOSITORY / "deploy" / "crds")]


def test_established(names: list[str], deployed: Access) -> None:
    for name in names:
        _is_established(name, deployed)


def _is_established(name: str, deployed: Access) -> None:
    status, definition = deployed.request("GET", f"{DEFINITIONS}/{name}")
    assert status == 200
    conditions = {one["type"]: one["status"] for one in definition["status"]["conditions"]}
    assert conditions.pop("KubernetesAPIApprovalPolicyConformant", "True") == "True"
    assert conditions == {"NamesAccepted": "True", "Established": "True"}  # and not NonStructuralSchema


def documents(file: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every policy document of a file that is shipped, with where it stands."""
    text = (REPOSITORY / file).read_text(encoding="utf-8")
    for document in read_documents(file, text, Diagnostics()):
        data = document.data
        if data.get("kind") in KINDS and "spec" in data and "status" not in data:
            yield f"{file}:{document.span.start.line}", json.loads(json.dumps(data))


@pytest.mark.parametrize("file", FILES)
def test_documents_are_kept_to_the_letter(file: str, deployed: Access) -> None:
    """Strict validation takes them; nothing is pruned, and nothing filled in."""
    for place, document in documents(file):
        plural, name = plural_of(document["kind"]), document["metadata"]["name"]
        made = f"{API}/{plural}?fieldValidation=Strict"
        status, answer = deployed.request("POST", made, document)
        assert status == 201, (place, answer)
        try:
            status, kept = deployed.request("GET", f"{API}/{plural}/{name}")
            assert status == 200, place
            assert kept["spec"] == document["spec"], place
        finally:
            deployed.request("DELETE", f"{API}/{plural}/{name}")


def test_no_kind_is_left_out(deployed: Access) -> None:
    status, served = deployed.request("GET", API)
    assert status == 200
    assert {*KINDS, "PolicyRevision"} <= {one["kind"] for one in served["resources"]}
    assert not any(one["namespaced"] for one in served["resources"])


WRONG = [
    ({"targt": 1}, "unknown field"),
    ({"target": "many"}, "should match"),
    ({"target": {"cel": "cpu('1')", "and": 1}}, "at most 1"),
    ({"target": {"sel": "cpu('1')"}}, "spec.target.cel"),
    ({"mechanism": "cpusets"}, "should match"),
    ({"minimumCPUs": -1}, "greater than or equal to 0"),
    ({"precedence": "high"}, "integer"),
    ({"variables": [{"name": "a", "expression": "1"}] * 2}, "Duplicate"),
    ({"match": {"condition": " "}}, "should match"),
]


@pytest.mark.parametrize(("spec", "words"), WRONG, ids=[words for _, words in WRONG])
def test_what_the_server_can_tell_is_refused_at_once(
    spec: dict[str, Any], words: str, deployed: Access
) -> None:
    document = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "CPUSuppress",
        "metadata": {"name": "wrong"},
        "spec": spec,
    }
    status, answer = deployed.request(
        "POST", f"{API}/cpusuppresses?dryRun=All&fieldValidation=Strict", document
    )
    assert status in (400, 422), answer
    assert words in answer["message"]


JOBS: list[tuple[dict[str, Any], str]] = [
    ({"podRef": {"namespace": "shop", "name": "p"}, "mode": "EvictDirectly", "ttl": "5m"}, ""),
    ({"mode": "EvictDirectly"}, "spec.podRef"),
    ({"podRef": {"name": "p"}, "mode": "EvictionDirectly"}, "spec.mode"),
    ({"podRef": {"name": "p"}, "paused": "yes"}, "spec.paused"),
    ({"podRef": {"name": "p"}, "ttl": 300}, "spec.ttl"),
    ({"podRef": "p"}, "spec.podRef"),
]


@pytest.mark.parametrize(("spec", "words"), JOBS, ids=[words or "whole" for _, words in JOBS])
def test_a_migration_job_is_held_to_its_definition(
    spec: dict[str, Any], words: str, deployed: Access
) -> None:
    job = {
        "apiVersion": "scheduling.koordinator.sh/v1alpha1",
        "kind": "PodMigrationJob",
        "metadata": {"name": "job"},
        "spec": spec,
    }
    path = "/apis/scheduling.koordinator.sh/v1alpha1/podmigrationjobs?dryRun=All&fieldValidation=Strict"
    status, answer = deployed.request("POST", path, job)
    assert status == (422 if words else 201), answer
    assert words in answer.get("message", "")


def test_a_revision_and_its_status_are_kept(deployed: Access) -> None:
    whole = PolicyRevision(
        "shop",
        "0123456789abcdef0123456789abcdef01234567",
        "d" * 64,
        "0123456789abcdef0123456789abcdef01234567",
        "https://git.example/shop",
        RevisionStatus(
            1,
            (StatusCondition("Ready", "True", "Succeeded", "", "2026-01-01T00:00:00Z", 1),),
            (ShownDiagnostic("warning", "KP308", "unused", "a.yaml", 3, 9),),
            1,
            120,
            (
                Instance(
                    "agent-1",
                    "agent",
                    InstanceState.ACTIVE,
                    "node-1",
                    "2026-01-01T00:00:00Z",
                    ("patch nodes",),
                ),
                Instance("manager-1", "manager", InstanceState.REJECTED),
            ),
            RolloutState("Canary", 1, "10 % of the nodes"),
        ),
    )
    written = to_json(whole)
    path = f"{API}/policyrevisions/{whole.name}"
    manager = "koordpolicy-agent"
    spec = {key: value for key, value in written.items() if key != "status"}
    assert deployed.request("PATCH", f"{path}?fieldManager={manager}", spec)[0] == 201
    patched = f"{path}/status?fieldManager={manager}&fieldValidation=Strict"
    status, answer = deployed.request("PATCH", patched, written)
    assert status == 200, answer
    assert from_json(deployed.request("GET", path)[1]) == whole


def test_two_processes_write_their_own_entries(deployed: Access) -> None:
    """`instances` is a map by name: who applies one leaves the others alone."""
    path = f"{API}/policyrevisions/two-0123456789ab"
    base = {"apiVersion": "koordpolicy.io/v1alpha1", "kind": "PolicyRevision"}
    spec = {"bundle": "two", "revision": "r", "digest": "d"}
    whole = {**base, "metadata": {"name": "two-0123456789ab"}, "spec": spec}
    assert deployed.request("PATCH", f"{path}?fieldManager=a", whole)[0] == 201
    for name in ("one", "two"):
        entry = {"name": name, "component": "agent", "state": "Active"}
        status, answer = deployed.request(
            "PATCH", f"{path}/status?fieldManager={name}", {**base, "status": {"instances": [entry]}}
        )
        assert status == 200, answer
    kept = deployed.request("GET", path)[1]["status"]["instances"]
    assert [one["name"] for one in kept] == ["one", "two"]


def test_columns_for_people(deployed: Access, part: Any, tmp_path: Path) -> None:
    """`kubectl get koordpolicy` shows all kinds with Ready, Reason and Revision."""
    kubectl = part("kubectl")
    document = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "CPUSuppress",
        "metadata": {"name": "shown"},
        "spec": {},
    }
    assert deployed.request("POST", f"{API}/cpusuppresses", document)[0] == 201
    condition = {
        "type": "Ready",
        "status": "False",
        "reason": "CompileFailed",
        "message": "units",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    status = {"conditions": [condition], "revision": "0123456"}
    path = f"{API}/cpusuppresses/shown/status?fieldManager=a"
    body = {"apiVersion": document["apiVersion"], "kind": "CPUSuppress", "status": status}
    assert deployed.request("PATCH", path, body)[0] == 200
    command = [kubectl, f"--kubeconfig={deployed.kubeconfig()}", f"--cache-dir={tmp_path}"]
    shown = subprocess.run(
        [*command, "get", "cpusuppresses"], capture_output=True, text=True, timeout=60, check=True
    ).stdout.splitlines()
    deployed.request("DELETE", f"{API}/cpusuppresses/shown")
    assert shown[0].split() == ["NAME", "READY", "REASON", "REVISION", "AGE"]
    assert shown[1].split()[:4] == ["shown", "False", "CompileFailed", "0123456"]
