"""`koordpolicy recommend`: the table, and patches that kustomize takes."""

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.parts.fixtures import need
from tests.parts.table import find


def deployment(name: str = "web", **containers: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {
                    "containers": [
                        {"name": each, "image": "i", "args": ["-v"], "resources": resources}
                        for each, resources in containers.items()
                    ]
                },
            },
        },
    }


def recommendation(
    name: str = "web", *, reliable: bool = True, **targets: tuple[str, str, str]
) -> dict[str, Any]:
    """CPU of each container: lower, target, upper; memory is 100Mi, 200000000, 1Gi."""
    bounds = {
        each: {"lower": {"cpu": cpu[0], "memory": "100Mi"}, "upper": {"cpu": cpu[2], "memory": "1Gi"}}
        for each, cpu in targets.items()
    }
    return {
        "apiVersion": "analysis.koordinator.sh/v1alpha1",
        "kind": "Recommendation",
        "metadata": {"name": name, "annotations": {"koordpolicy.io/recommended-bounds": json.dumps(bounds)}},
        "spec": {"target": {"type": "workload", "workload": {"kind": "Deployment", "name": name}}},
        "status": {
            "podStatus": {
                "containerStatuses": [
                    {"containerName": each, "resources": {"cpu": cpu[1], "memory": "200000000"}}
                    for each, cpu in targets.items()
                ]
            },
            "conditions": [
                {
                    "type": "LowConfidence",
                    "status": "False" if reliable else "True",
                    "message": "use is not known for long enough yet",
                }
            ],
        },
    }


USUAL = ("300m", "500m", "1")


def run(tmp_path: Path, objects: list[dict[str, Any]], *words: str) -> tuple[int, str, str]:
    file = tmp_path / "objects.json"
    file.write_text(json.dumps({"kind": "List", "items": objects}))
    out, err = io.StringIO(), io.StringIO()
    code = main(["recommend", "-f", str(file), *words], Terminal(out, err))
    return code, out.getvalue(), err.getvalue()


def test_the_table(tmp_path: Path) -> None:
    objects = [
        deployment(app={"requests": {"cpu": "2", "memory": "128Mi"}}, proxy={"limits": {"cpu": "50m"}}),
        recommendation(app=USUAL, proxy=USUAL),
        recommendation("other", reliable=False, app=USUAL),
        recommendation("new"),
    ]
    code, out, err = run(tmp_path, objects)
    assert code == 0
    assert out == (
        "NAMESPACE  WORKLOAD          CONTAINER  RESOURCE  REQUEST  LOWER  TARGET  UPPER  VERDICT\n"
        "default    Deployment/new    -          -         -        -      -       -      nothing yet\n"
        "default    Deployment/other  app        cpu       -        300m   500m    1      - *\n"
        "default    Deployment/other  app        memory    -        100Mi  191Mi   1Gi    - *\n"
        "default    Deployment/web    app        cpu       2        300m   500m    1      high\n"
        "default    Deployment/web    app        memory    128Mi    100Mi  191Mi   1Gi    ok\n"
        "default    Deployment/web    proxy      cpu       50m      300m   500m    1      low\n"
        "default    Deployment/web    proxy      memory    -        100Mi  191Mi   1Gi    -\n"
    )
    assert err == "* use is not known for long enough yet\n"


def test_programs_get_amounts_to_the_digit(tmp_path: Path) -> None:
    code, out, _ = run(tmp_path, [recommendation(app=USUAL)], "-o", "json")
    (found,) = json.loads(out)
    assert code == 0
    assert found["workload"] == {"kind": "Deployment", "name": "web"}
    assert found["containers"][1] == {
        "container": "app", "resource": "memory", "request": None, "lower": "100Mi", "target": "200000000", "upper": "1Gi",
        "verdict": None,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["other", "Deployment/other"])
def test_some_by_name(tmp_path: Path, name: str) -> None:
    objects = [recommendation(app=USUAL), recommendation("other", app=USUAL)]
    code, out, _ = run(tmp_path, objects, name)
    assert code == 0
    assert "Deployment/web" not in out
    assert "Deployment/other" in out
    code, _, err = run(tmp_path, objects, "nobody")
    assert code == 2
    assert "`nobody`" in err


def test_policies_of_the_same_kind_are_not_meant(tmp_path: Path) -> None:
    policy = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": "Recommendation",
        "metadata": {"name": "a"},
        "spec": {},
    }
    code, _, err = run(tmp_path, [policy])
    assert code == 2
    assert "there are no Recommendations" in err


def test_what_cannot_be_read_is_told_and_stops_nothing(tmp_path: Path) -> None:
    bad = recommendation("bad", app=USUAL)
    bad["status"]["podStatus"]["containerStatuses"][0]["resources"]["cpu"] = "much"
    code, out, err = run(tmp_path, [bad, recommendation(app=USUAL)])
    assert code == 0
    assert "Deployment/web" in out
    assert "unreadable: Recommendation default/bad: " in err


def test_kustomize_takes_the_patches(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    need(pytestconfig, "kubectl")
    base = tmp_path / "base"
    base.mkdir()
    manifests = [
        deployment(app={"requests": {"cpu": "2", "memory": "128Mi"}}, proxy={"limits": {"cpu": "400m"}}),
        deployment("web.two", app={}),
    ]
    for at, manifest in enumerate(manifests):
        (base / f"{at}.yaml").write_text(json.dumps(manifest))
    objects = [*manifests, recommendation(app=USUAL, proxy=USUAL), recommendation("web.two", app=USUAL)]
    code, _, err = run(tmp_path, objects, "--patch", str(tmp_path / "requests"))
    assert code == 0
    assert "above its limit 400m, which is requested instead" in err
    (tmp_path / "kustomization.yaml").write_text(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nnamespace: front\n"
        "resources: [base/0.yaml, base/1.yaml]\ncomponents: [requests/default]\n"
    )
    kubectl = find("kubectl")
    built = subprocess.run(
        [str(kubectl.path), "kustomize", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    found = {one["metadata"]["name"]: one for one in YAML(typ="safe", pure=True).load_all(built.stdout)}
    assert set(found) == {"web", "web.two"}
    app, proxy = found["web"]["spec"]["template"]["spec"]["containers"]
    assert app == {
        "name": "app", "image": "i", "args": ["-v"], "resources": {"requests": {"cpu": "500m", "memory": "191Mi"}},
    }  # fmt: skip
    assert proxy["resources"] == {"requests": {"cpu": "400m", "memory": "191Mi"}, "limits": {"cpu": "400m"}}
    (only,) = found["web.two"]["spec"]["template"]["spec"]["containers"]
    assert only["resources"]["requests"] == {"cpu": "500m", "memory": "191Mi"}


LEFT_OUT = {
    "its object is not there": ([recommendation(app=USUAL)], "is not there"),
    "not to be relied on": (
        [deployment(app={}), recommendation(reliable=False, app=USUAL)],
        "`--low-confidence` writes it all the same",
    ),
    "nothing yet": ([deployment(app={}), recommendation()], "nothing is recommended yet"),
    "a container that something adds": (
        [deployment(other={}), recommendation(app=USUAL)],
        "something adds it",
    ),
    "a name that leads elsewhere": (
        [deployment("../../x", app={}), recommendation("../../x", app=USUAL)],
        "can be called so",
    ),
}


@pytest.mark.parametrize("case", LEFT_OUT)
def test_what_no_patch_is_written_for(tmp_path: Path, case: str) -> None:
    objects, words = LEFT_OUT[case]
    target = tmp_path / "inner" / "requests"
    code, _, err = run(tmp_path, objects, "--patch", str(target))
    assert code == 1
    assert words in err
    assert not target.exists()


def test_it_is_written_if_that_is_wanted(tmp_path: Path) -> None:
    target = tmp_path / "requests"
    objects = [deployment(app={}), recommendation(reliable=False, app=USUAL)]
    code, _, _ = run(tmp_path, objects, "--patch", str(target), "--low-confidence")
    assert code == 0
    assert {path.name for path in (target / "default").iterdir()} == {
        "kustomization.yaml",
        "deployment-web.yaml",
    }
