"""Checks of meaning stay silent where nothing is wrong."""

import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from koordpolicy.graph import Compiler, Layer
from koordpolicy.runtime.policies.pack_cache import pack_remembering

CASES: list[dict[str, Any]] = YAML(typ="safe").load(Path(__file__).with_name("sound.yaml"))


@pytest.fixture(scope="module")
def compiler() -> Compiler:
    return pack_remembering()


def flow(data: Any) -> str:
    """Data as JSON, which is YAML."""

    return json.dumps(data, ensure_ascii=False)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_sound_policies_are_not_blamed(case: dict[str, Any], compiler: Compiler) -> None:
    document = {
        "apiVersion": "koordpolicy.io/v1alpha1",
        "kind": case["kind"],
        "metadata": {"name": case.get("document", "own")},
        "spec": case["spec"],
    }
    done = compiler.compile(Layer("own", {"own.yaml": flow(document)}))
    assert [(found.code, found.message) for found in done.found] == []
