"""`koordpolicy doctor` on a real API server by its role: it finds all out, and less without any of the permissions."""

import io
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.conftest import REPOSITORY
from tests.parts.apiserver import Access
from tests.parts.deployed import DeployedServer, manifests

RBAC = "rbac.authorization.k8s.io"
ROLES = f"/apis/{RBAC}/v1/clusterroles"
COPY = "doctor-of-nobody"
PATIENCE = 200
"""Tenths of a second until the server goes by another role."""

Rule = dict[str, Any]


def shipped() -> list[Rule]:
    """The role's rules, one a permission."""
    (role,) = (
        one
        for one in manifests(REPOSITORY / "deploy" / "rbac")
        if one["metadata"]["name"] == "koordpolicy-doctor"
    )
    return [
        {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    ]


def named(rule: Rule) -> str:
    return f"{rule['verbs'][0]} {rule['resources'][0]}"


PERMISSIONS = shipped()


def permits(access: Access, rule: Rule) -> bool:
    """Whether the server lets `nobody` do that now."""
    spec = {
        "user": "nobody",
        "resourceAttributes": {
            "verb": rule["verbs"][0],
            "group": rule["apiGroups"][0],
            "resource": rule["resources"][0],
        },
    }
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    status, answer = access.request("POST", path, {"spec": spec})
    assert status == 201, answer
    return bool(answer["status"]["allowed"])


def grant(access: Access, rules: list[Rule]) -> None:
    """The role of `nobody` has these rules from now on."""
    role = {"metadata": {"name": COPY}, "rules": rules}
    assert access.request("PUT", f"{ROLES}/{COPY}", role)[0] == 200
    for _ in range(PATIENCE):
        if all(permits(access, rule) == (rule in rules) for rule in PERMISSIONS):
            return
        time.sleep(0.1)
    raise AssertionError("the server does not go by the role")


@pytest.fixture(scope="module")
def access(tmp_path_factory: pytest.TempPathFactory, part: Callable[[str], object]) -> Iterator[Access]:
    part("etcd"), part("kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("doctor")) as server:
        created = server.access.request("POST", ROLES, {"metadata": {"name": COPY}, "rules": []})
        assert created[0] == 201
        binding = {
            "metadata": {"name": COPY},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": COPY},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "nobody"}],
        }
        path = f"/apis/{RBAC}/v1/clusterrolebindings"
        assert server.access.request("POST", path, binding)[0] == 201
        yield server.access


def unknown(access: Access) -> list[str]:
    """What a doctor with the rights of `nobody` cannot find out."""
    out, err = io.StringIO(), io.StringIO()
    main(("doctor", "-o", "json", "--kubeconfig", str(access.kubeconfig("nobody"))), Terminal(out, err))
    found = json.loads(out.getvalue())
    assert len(found) > 5, err.getvalue()
    return [one["message"] for one in found if one["outcome"] == "unknown"]


def test_by_its_role_the_doctor_finds_out_all(access: Access) -> None:
    grant(access, PERMISSIONS)
    assert unknown(access) == []


@pytest.mark.parametrize("without", PERMISSIONS, ids=named)
def test_without_one_permission_it_does_not(access: Access, without: Rule) -> None:
    grant(access, [rule for rule in PERMISSIONS if rule is not without])
    told = unknown(access)
    assert any(without["resources"][0] in message for message in told), told
