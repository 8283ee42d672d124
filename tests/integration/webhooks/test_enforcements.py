"""What people see of rules that are enforced, warned of or only audited, one by one: kubectl, the audit log, Events, metrics."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.integration.webhooks.site import WebhookSite, make_webhook_site, pod, policy
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

AUDITED = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {"level": "Metadata", "verbs": ["create"], "resources": [{"group": "", "resources": ["pods"]}]},
        {"level": "None"},
    ],
}


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver", "kubectl")
    folder = tmp_path_factory.mktemp("enforcements")
    rules = folder / "audit.json"
    rules.write_text(json.dumps(AUDITED), "utf-8")
    log = folder / "audit.log"
    flags = (f"--audit-policy-file={rules}", f"--audit-log-path={log}")
    with DeployedServer(folder, arguments=flags) as server:
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> WebhookSite:
    return make_webhook_site(server.access, tmp_path)


def rule(name: str, enforcement: str) -> str:
    """A rule on pods with the label `is: NAME`."""
    spec = {
        "match": {"pods": {"matchLabels": {"is": name}}},
        "require": {"cel": "'team' in pod.labels"},
        "reason": f"{name}-rule",
        "message": "say whose it is",
        "enforcement": enforcement,
    }
    return policy("AdmissionRule", name, spec)


def audited(server: ApiServer, name: str) -> list[dict[str, str]]:
    """The annotations of the pod's creation in the audit log."""
    lines = (server.folder / "audit.log").read_text("utf-8").splitlines()
    entries = [json.loads(line) for line in lines]
    return [one.get("annotations", {}) for one in entries if one["objectRef"].get("name") == name]


def events(site: WebhookSite, name: str) -> list[str]:
    """The messages of Events about the pod."""
    _, found = site.access.request("GET", "/api/v1/namespaces/default/events")
    return [
        one["message"]
        for one in found["items"]
        if (one["involvedObject"].get("name"), one["reason"]) == (name, "AdmissionRuleViolated")
    ]


SEEN: dict[str, Any] = {
    "enforce": {"made": False, "told": "denied the request: enforce-rule: say whose it is", "event": False},
    "warn": {"made": True, "told": "Warning: warn-rule: say whose it is", "event": True},
    "audit": {"made": True, "told": "", "event": True},
}


def test_each_enforcement_is_seen_where_it_belongs_and_nowhere_else(
    site: WebhookSite, server: ApiServer
) -> None:
    for enforcement in SEEN:
        site.write(f"{enforcement}.yaml", rule(enforcement, enforcement))
    with site.serving("m1") as manager:
        for enforcement, seen in SEEN.items():
            name = f"pod-{enforcement}"
            code, _, err = site.kubectl("apply", "-f", "-", given=json.dumps(pod(name, {"is": enforcement})))
            assert (code == 0) == seen["made"], err
            assert seen["told"] in err
            assert ("Warning" in err) == (enforcement == "warn"), err
            counted = (
                f'koordpolicy_admission_violations_total{{enforcement="{enforcement}",rule="{enforcement}"}}'
            )
            assert manager.metric(counted) == 1
            site.eventually(partial(audited, server, name), "the audit log has the creation")
            (annotations,) = audited(server, name)
            said = {key.rpartition("/")[2]: value for key, value in annotations.items()}
            revision = manager.status["policies"]["active"]["revision"]
            assert said["revision"] == revision, "which revision decided"
            assert ("violations" in said) == (enforcement == "audit")
            if enforcement == "audit":
                assert said["violations"] == "audit-rule: say whose it is"
            if seen["event"]:
                site.eventually(partial(events, site, name), f"an Event of {enforcement}")
        assert events(site, "pod-enforce") == [], "who asked was told already"
        code, _, err = site.kubectl(
            "apply", "-f", "-", given=json.dumps(pod("fine", {"is": "enforce", "team": "a"}))
        )
        assert (code, err) == (0, "")


def test_a_formula_that_fails_for_a_pod_fails_for_that_pod_alone(site: WebhookSite) -> None:
    site.write(
        "label.yaml",
        policy(
            "ColocationProfile",
            "label",
            {
                "match": {"pods": {"matchLabels": {"app": "spark"}}},
                "labels": {"rank": {"cel": "string(int(pod.labels['number']) + 1)"}},
            },
        ),
    )
    with site.serving("m1") as manager:
        for name, number, rank in (("one", "1", "2"), ("odd", "x", ""), ("two", "2", "3")):
            code, out, err = site.kubectl(
                "apply",
                "-o",
                "json",
                "-f",
                "-",
                given=json.dumps(pod(name, {"app": "spark", "number": number})),
            )
            if rank:
                assert code == 0, err
                assert json.loads(out)["metadata"]["labels"]["rank"] == rank
            else:
                assert code == 1
                assert "profile `label`" in err
        (trouble,) = manager.status["troubles"]
        assert trouble["example"] == "pod default/odd"
