"""Argo CD's health script of `deploy/`, run by a real Lua on any object."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.conftest import REPOSITORY

FOLDER = REPOSITORY / "deploy" / "argocd"
SCRIPT = FOLDER / "resource_customizations" / "koordpolicy.io" / "_" / "health.lua"


def literal(value: Any) -> str:
    """Plain data as a Lua expression."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"[{literal(key)}] = {literal(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "{" + ", ".join(map(literal, value)) + "}"
    return "nil" if value is None else json.dumps(value, ensure_ascii=False)


def health(lua: Path, obj: Any) -> tuple[str, str]:
    """What the script says of an object: status and message."""
    program = (
        f"obj = {literal(obj)}\nlocal said = dofile([[{SCRIPT}]])\nprint(said.status)\nprint(said.message)"
    )
    ran = subprocess.run([lua, "-"], input=program, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    status, _, message = ran.stdout.partition("\n")
    return status, message.rstrip("\n")
