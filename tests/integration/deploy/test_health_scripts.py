"""Argo CD's health script in a real Lua, on the cases beside it (the layout of Argo CD's own customizations)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.integration.deploy.lua import FOLDER, SCRIPT, health

CASES: list[dict[str, Any]] = YAML(typ="safe").load(SCRIPT.with_name("health_test.yaml"))["tests"]


@pytest.mark.parametrize("case", CASES, ids=[Path(case["inputPath"]).stem for case in CASES])
def test_health(case: dict[str, Any], part: Callable[[str], Path]) -> None:
    obj = YAML(typ="safe", pure=True).load(SCRIPT.parent / case["inputPath"])
    expected = case["healthStatus"]
    assert health(part("lua"), obj) == (expected["status"], expected["message"])


def test_every_input_has_a_case() -> None:
    inputs = {f"testdata/{path.name}" for path in SCRIPT.with_name("testdata").iterdir()}
    assert {case["inputPath"] for case in CASES} == inputs


CONFIGURATION = """\
# Health of all kinds of koordpolicy.io for Argo CD: merge this into your own argocd-cm.
apiVersion: v1
kind: ConfigMap
metadata:
  name: argocd-cm
  namespace: argocd
  labels:
    app.kubernetes.io/part-of: argocd
data:
  resource.customizations: |
    koordpolicy.io/*:
      health.lua: |
"""


def test_the_configuration_has_the_script(golden: Callable[[Path, str], None]) -> None:
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    indented = "".join(f"        {line}\n" if line else "\n" for line in lines)
    golden(FOLDER / "argocd-cm.yaml", CONFIGURATION + indented)
    read = YAML(typ="safe").load(FOLDER / "argocd-cm.yaml")["data"]["resource.customizations"]
    script = YAML(typ="safe").load(read)["koordpolicy.io/*"]["health.lua"]
    assert script.rstrip() == SCRIPT.read_text(encoding="utf-8").rstrip()
