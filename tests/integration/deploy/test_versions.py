"""What is installed, what processes read and what they make, against the schemas of each supported version of Kubernetes."""

import re
from collections.abc import Iterator, Sequence

import msgspec.yaml
import pytest
from kubernetes_validate import utils as schemas

from koordpolicy.kube.resources import (
    MUTATING_POLICIES,
    MUTATING_POLICY_BINDINGS,
    RESOURCES,
    VALIDATING_POLICIES,
    VALIDATING_POLICY_BINDINGS,
    Resource,
)
from tests.conftest import REPOSITORY
from tests.integration.deploy.chart import CHART, VALUES, Object, rendered
from tests.parts.deployed import manifests
from tests.parts.fixtures import need

VERSIONS = ("1.29", "1.30", "1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
ENDS = (VERSIONS[0], VERSIONS[-1])
FOLDERS = ("rbac", "agent", "manager", "scheduler", "descheduler", "yarn-operator", "network-policies")
SETS = ("git-sync", "cert-manager", "repository")
READ = [one for one in RESOURCES if not one.custom and not one.gated]
SINCE = {
    # What is written where API servers have it, and since which version: `--native-admission`.
    VALIDATING_POLICIES: "1.30",
    VALIDATING_POLICY_BINDINGS: "1.30",
    MUTATING_POLICIES: "1.36",
    MUTATING_POLICY_BINDINGS: "1.36",
}


def problems(version: str, objects: Sequence[Object]) -> Iterator[str]:
    """What a version's schemas refuse, fields that it does not have included; definitions of others are left out."""
    for one in objects:
        group = one["apiVersion"].rpartition("/")[0]
        if group.endswith(("monitoring.coreos.com", "cert-manager.io")):
            continue
        try:
            schemas.validate(one, version, strict=True)
        except schemas.SchemaNotFoundError:
            yield f"{one['apiVersion']} {one['kind']}: there is none"
        except schemas.ValidationError as error:
            yield f"{one['kind']} {one['metadata']['name']}: {error.message}"


def has(version: str, resource: Resource) -> bool:
    """Whether a version has a resource in the version of the API that we speak."""
    body = {"apiVersion": resource.api_version, "kind": resource.kind}
    try:
        schemas.validate(body, version)
    except schemas.SchemaNotFoundError:
        return False
    except schemas.ValidationError:
        return True  # it is known, and wants more than that
    return True


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_takes_what_the_folders_have(version: str) -> None:
    objects = [dict(one) for folder in FOLDERS for one in manifests(REPOSITORY / "deploy" / folder)]
    assert len(objects) > 20
    assert list(problems(version, objects)) == []


@pytest.mark.parametrize("version", ENDS)
def test_each_version_takes_the_definitions(version: str) -> None:
    assert list(problems(version, [dict(one) for one in manifests(REPOSITORY / "deploy" / "crds")])) == []


@pytest.mark.parametrize("version", ENDS)
def test_each_version_takes_what_the_chart_makes(version: str, pytestconfig: pytest.Config) -> None:
    need(pytestconfig, "helm")
    for name in SETS:
        objects = rendered(
            f"--values={VALUES[name]}", "--set=crds.managed=false", f"--kube-version={version}.0"
        )
        assert list(problems(version, objects)) == [], name


@pytest.mark.parametrize("version", VERSIONS)
def test_each_version_has_what_processes_read(version: str) -> None:
    assert [str(one) for one in READ if not has(version, one)] == []


@pytest.mark.parametrize("resource", SINCE, ids=str)
def test_what_api_servers_decide_by_themselves_needs_newer_ones(resource: Resource) -> None:
    assert next(version for version in VERSIONS if has(version, resource)) == SINCE[resource]


def test_an_older_one_is_refused() -> None:
    older = f"1.{int(VERSIONS[0].removeprefix('1.')) - 2}"  # 1.28 has sidecars where a feature gate is set
    sidecars = [
        dict(one) for one in rendered(f"--values={VALUES['git-sync']}", "--show-only=templates/manager.yaml")
    ]
    assert list(problems(older, sidecars))


def test_the_manual_and_the_chart_name_these_versions() -> None:
    chart = msgspec.yaml.decode((CHART / "Chart.yaml").read_bytes())
    assert chart["kubeVersion"] == f">={VERSIONS[0]}.0-0"
    said = re.search(
        r"^Kubernetes (\S+) to (\S+)\b",
        (REPOSITORY / "deploy" / "README.md").read_text("utf-8"),
        re.MULTILINE,
    )
    assert said is not None
    assert said.groups() == ENDS
