"""Rules that API servers decide by themselves, kept by a manager: they hold when it is gone, and the webhook is asked about the rest."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runtime.managers import Manager
from tests.integration.webhooks.site import (
    CONFIGURATIONS,
    WebhookSite,
    make_webhook_site,
    pod,
    policy,
)
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

KINDS = ("validatingadmissionpolicies", "validatingadmissionpolicybindings")
MUTATIONS = "mutatingadmissionpolicies"
FLAG = "--native-admission"


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver", "kubectl")
    with DeployedServer(tmp_path_factory.mktemp("native")) as server:
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> WebhookSite:
    site = make_webhook_site(server.access, tmp_path)
    # The one rule of the pack about pods that looks at other objects.
    site.write("quota.yaml", policy("AdmissionRule", "pod-quota-is-leaf", {"enabled": False}))
    return site


def team(**spec: Any) -> str:
    return policy(
        "AdmissionRule",
        "team",
        {"require": {"cel": "'team' in pod.labels"}, "message": "say whose it is", **spec},
    )


def objects(site: WebhookSite, kind: str) -> dict[str, dict[str, Any]]:
    found = site.access.request("GET", f"{CONFIGURATIONS}/{kind}")[1]["items"]
    return {one["metadata"]["name"]: one for one in found}


def names(site: WebhookSite) -> list[str]:
    return [one["name"] for one in site.entries("validating")]


@pytest.mark.soak
def test_a_rule_moves_to_the_api_server_holds_without_us_and_comes_back(site: WebhookSite) -> None:
    site.write("team.yaml", team())
    with site.serving("m1", FLAG):
        site.eventually(lambda: "team.koordpolicy.io" in objects(site, KINDS[1]), "a binding")
        site.eventually(
            lambda: "validate-pod.koordpolicy.io" not in names(site), "a webhook for the rest alone"
        )
        versions = {
            name: one["metadata"]["resourceVersion"]
            for kind in KINDS
            for name, one in objects(site, kind).items()
        }
        status, body = site.create(pod("a"))
        assert status == 403
        assert "'team.koordpolicy.io' denied request: team: say whose it is" in body["message"]
    status, body = site.create(pod("b"))  # nobody serves the webhook now
    assert (status, "team: say whose it is" in body["message"]) == (403, True)
    assert site.create(pod("c", {"team": "x"}))[0] == 201

    with site.serving("m2", FLAG):
        # What is there as it should be is not written again.
        site.eventually(
            lambda: "validate-pod.koordpolicy.io" in names(site), "the webhook until all is settled"
        )
        site.eventually(
            lambda: "validate-pod.koordpolicy.io" not in names(site), "a webhook for the rest alone"
        )
        assert versions == {
            name: one["metadata"]["resourceVersion"]
            for kind in KINDS
            for name, one in objects(site, kind).items()
        }
        # A rule that an API server cannot decide comes back, and its policy goes.
        site.write("team.yaml", team(enforcement={"cel": "pod.band == 'free' ? 'warn' : 'enforce'"}))
        site.eventually(lambda: "validate-pod.koordpolicy.io" in names(site), "the webhook again")
        site.eventually(lambda: "team.koordpolicy.io" not in objects(site, KINDS[0]), "no policy")
        # An API server lets go of a policy in its own time; until then it refuses as well.
        site.eventually(
            lambda: "admission webhook" in site.create(pod("d"))[1]["message"], "the webhook's refusal"
        )
        # One that somebody has changed is mended.
        path = f"{CONFIGURATIONS}/{KINDS[1]}/whole-cpus.koordpolicy.io"
        changed = objects(site, KINDS[1])["whole-cpus.koordpolicy.io"]
        changed["spec"]["validationActions"] = ["Audit"]
        assert site.access.request("PUT", path, changed)[0] == 200
        site.eventually(
            lambda: site.access.request("GET", path)[1]["spec"]["validationActions"] == ["Deny"], "it mended"
        )


def test_policies_of_others_stay_and_ours_go_with_the_flag(site: WebhookSite) -> None:
    site.write("team.yaml", team())
    spec = {"policyName": "theirs"}
    theirs = {"metadata": {"name": "team.koordpolicy.io"}, "spec": {**spec, "validationActions": ["Audit"]}}
    assert site.access.request("POST", f"{CONFIGURATIONS}/{KINDS[1]}", theirs)[0] == 201
    with site.serving("m3", FLAG) as manager:
        site.eventually(lambda: "whole-cpus.koordpolicy.io" in objects(site, KINDS[1]), "bindings")
        site.eventually(
            lambda: "team.koordpolicy.io" in manager.status["webhooks"].get("admissionPolicyTroubles", {}),
            "trouble",
        )
        assert objects(site, KINDS[1])["team.koordpolicy.io"]["spec"]["policyName"] == "theirs"
        status, body = site.create(pod("e"))
        assert (status, "team: say whose it is" in body["message"]) == (403, True)
    with site.serving("m4"):
        site.eventually(lambda: not objects(site, KINDS[0]), "no policies")
        assert list(objects(site, KINDS[1])) == ["team.koordpolicy.io"]
    path = f"{CONFIGURATIONS}/{KINDS[1]}/team.koordpolicy.io"
    assert site.access.request("DELETE", path)[0] == 200


def test_a_warning_of_the_api_server_is_not_given_twice(site: WebhookSite) -> None:
    """Of a pod that the webhook is asked about for another rule."""
    site.write("team.yaml", team(enforcement="warn"))
    staying = {
        "require": {"cel": "pod.name != 'w'"},
        "enforcement": {"cel": "pod.band == 'free' ? 'audit' : 'warn'"},
    }
    site.write("staying.yaml", policy("AdmissionRule", "staying", staying))
    with site.serving("m7", FLAG) as manager:

        def told() -> str:
            given = json.dumps(pod("w"))
            code, _, errors = site.kubectl("create", "--dry-run=server", "-f", "-", given=given)
            assert code == 0, errors
            return errors

        site.eventually(lambda: "ValidatingAdmissionPolicy 'team.koordpolicy.io'" in told(), "its warning")
        site.eventually(lambda: told().count("say whose it is") == 1, "one warning")
        # All are counted whom the webhook is asked about, and of the rule that stays it goes on to tell.
        line = 'koordpolicy_admission_violations_total{enforcement="warn",rule="team"}'
        before = counted(manager, line)
        assert "staying: the rule `staying` does not hold" in told()
        assert counted(manager, line) == before + 1
        assert before > 0


def counted(manager: Manager, line: str) -> float:
    page = manager.read("/metrics")[1]
    return float(next(one for one in page.splitlines() if one.startswith(line)).rpartition(" ")[2])


def profile(name: str, **spec: Any) -> str:
    return policy("ColocationProfile", name, {"resourceTranslation": "Never", **spec})


def test_profiles_move_to_the_api_server_and_the_webhook_comes_after_them(site: WebhookSite) -> None:
    batch = {"metadata": {"name": "koord-batch"}, "value": 5000}
    made_here = site.access.request("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", batch)[0]
    assert made_here in (201, 409)  # managers make it, too
    moving = {"match": {"pods": {"matchLabels": {"app": "spark"}}}, "resourceTranslation": "Matched"}
    # `m` is in the middle: both change the label `by`, the one before it and the one after it.
    site.write("m.yaml", profile("m", qosClass="BE", band="batch", labels={"by": "m"}, **moving))
    site.write(
        "a.yaml",
        profile("a", match=pods(site="a"), resourceTranslation="Matched", **SHARE, labels={"by": "a"}),
    )
    site.write(
        "z.yaml",
        profile("z", match=pods(site="z"), resourceTranslation="Matched", **SHARE, labels={"by": "z"}),
    )
    with site.serving("m5", FLAG):
        site.eventually(lambda: "m.koordpolicy.io" in objects(site, MUTATIONS), "a policy")
        site.eventually(lambda: "spark" not in str(site.entries("mutating")), "a webhook for the rest alone")
        assert {"a.koordpolicy.io", "z.koordpolicy.io"}.isdisjoint(objects(site, MUTATIONS))
        by = {}
        for name, labels in (("n", {}), ("a", {"site": "a"}), ("z", {"site": "z"})):
            status, made = site.create(pod(f"spark-{name}", {"team": "x", "app": "spark", **labels}))
            assert status == 201, made
            by[name] = made["metadata"]["labels"]["by"]
            assert made["spec"]["priority"] == 5000
            assert made["spec"]["containers"][0]["resources"]["requests"] == {
                "kubernetes.io/batch-cpu": "1k",
                "kubernetes.io/batch-memory": "1Gi",
            }
            assert (
                "batch-cpu" in made["metadata"]["annotations"]["node.koordinator.sh/extended-resource-spec"]
            )
        assert by == {"n": "m", "a": "m", "z": "z"}  # in order of name, as without such policies
    status, made = site.create(pod("spark-alone", {"team": "x", "app": "spark"}))
    assert (status, made["metadata"]["labels"]["koordinator.sh/qosClass"]) == (
        201,
        "BE",
    )  # nobody serves the webhook now
    with site.serving("m6"):
        site.eventually(lambda: not objects(site, MUTATIONS), "no policies")


SHARE = {"probability": {"cel": "pod.name == 'never' ? percent(50) : percent(100)"}}
"""What keeps a profile with the webhook, and yet applies it to all pods."""


def pods(**labels: str) -> dict[str, Any]:
    return {"pods": {"matchLabels": labels}}
