"""Policy objects that would not compile, as kubectl says it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.webhooks.site import WebhookSite, make_webhook_site
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need

BUNDLE = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyBundle
metadata: {name: fleet}
spec: {extends: [koordinator]}
"""
RULE = """\
apiVersion: koordpolicy.io/v1alpha1
kind: AdmissionRule
metadata: {name: team}
spec:
  require: {cel: "%s"}
  message: say whose it is
"""
LIBRARY = """\
apiVersion: koordpolicy.io/v1alpha1
kind: Library
metadata: {name: ours}
spec:
  functions:
    - name: owned
      parameters: [{name: labels, type: "map(string, string)"}]
      expression: "'team' in labels"
"""


@pytest.fixture(scope="module")
def site(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[WebhookSite]:
    need(pytestconfig, "etcd", "kube-apiserver", "kubectl")
    with DeployedServer(tmp_path_factory.mktemp("policies")) as server:
        site = make_webhook_site(server.access, tmp_path_factory.mktemp("site"))
        assert site.kubectl("apply", "-f", "-", given=BUNDLE)[0] == 0
        with site.serving("m1", "--policies-from-cluster"):
            yield site


def test_one_that_does_not_compile_is_refused_with_place_and_caret(site: WebhookSite) -> None:
    code, _, err = site.kubectl("apply", "-f", "-", given=RULE % "pod.lables.team == ''")
    assert code == 1
    assert "error[KP203]" in err
    assert "AdmissionRule/team.yaml:8:" in err
    assert "^" in err
    assert site.kubectl("get", "admissionrules", "team")[0] == 1


def test_a_dry_run_tells_what_a_sync_would_say(site: WebhookSite, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(RULE % "owned(pod.labels)", "utf-8")
    (tmp_path / "b.yaml").write_text(LIBRARY, "utf-8")
    again = ("apply", "--dry-run=server", "-f", str(tmp_path))
    code, _, err = site.kubectl(*again)
    assert (code, "error[KP207]" in err) == (1, True)  # the function had not been proposed yet
    code, _, err = site.kubectl(*again)
    assert (code, "Library/ours.yaml" in err) == (0, True), err
    assert site.kubectl("get", "libraries", "ours")[0] == 1


def test_objects_that_belong_together_come_one_by_one(site: WebhookSite, tmp_path: Path) -> None:
    assert site.kubectl("apply", "-f", "-", given=LIBRARY)[0] == 0
    code, _, err = site.kubectl("apply", "-f", "-", given=RULE % "owned(pod.labels)")
    assert code == 0, err
    site.eventually(lambda: site.create({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})[0] == 403, "the rule decides")  # fmt: skip
    code, _, err = site.kubectl("apply", "-f", "-", given=LIBRARY.replace("name: owned", "name: mine"))
    assert (code, "AdmissionRule/team.yaml" in err) == (0, True), err
