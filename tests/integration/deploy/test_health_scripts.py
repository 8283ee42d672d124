"""Argo CD's health script in a real Lua, on the cases beside it (the layout of Argo CD's own customizations)."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import REPOSITORY
from tests.parts import Missing, find

FOLDER = REPOSITORY / "deploy" / "argocd"
SCRIPT = FOLDER / "resource_customizations" / "koordpolicy.io" / "_" / "health.lua"
CASES: list[dict[str, Any]] = YAML(typ="safe").load(SCRIPT.with_name("health_test.yaml"))["tests"]


@pytest.fixture(scope="module")
def lua() -> Path:
    """A real Lua; skips by name where none can be had."""
    try:
        return find("lua").path
    except Missing as missing:
        pytest.skip(str(missing))


def literal(value: Any) -> str:
    """Plain data as a Lua expression."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"[{literal(key)}] = {literal(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "{" + ", ".join(map(literal, value)) + "}"
    return "nil" if value is None else json.dumps(value)


def health(lua: Path, obj: Any) -> tuple[str, str]:
    """What the script says of an object."""
    program = (
        f"obj = {literal(obj)}\nlocal said = dofile([[{SCRIPT}]])\nprint(said.status)\nprint(said.message)"
    )
    ran = subprocess.run([lua, "-"], input=program, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    status, _, message = ran.stdout.partition("\n")
    return status, message.rstrip("\n")


@pytest.mark.parametrize("case", CASES, ids=[Path(case["inputPath"]).stem for case in CASES])
def test_health(case: dict[str, Any], lua: Path) -> None:
    obj = YAML(typ="safe", pure=True).load(SCRIPT.parent / case["inputPath"])
    expected = case["healthStatus"]
    assert health(lua, obj) == (expected["status"], expected["message"])


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
