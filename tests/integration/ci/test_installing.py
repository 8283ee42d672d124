"""What snippets install: koordpolicy as the user says, since it is in no public index, by a pip that the branch cannot replace."""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.conftest import REPOSITORY

SNIPPETS = (
    "deploy/github/action.yml",
    "deploy/gitlab/koordpolicy.gitlab-ci.yml",
    "examples/11-gitops-repository/repository/.github/workflows/policies.yml",
    "examples/12-what-if/github-workflow.yml",
    "examples/12-what-if/gitlab-ci.yml",
    "koordpolicy/cli/starter/gitlab-ci.yml",
    "koordpolicy/cli/starter/workflow.yml",
)
OF_ITSELF = "deploy/github/action.yml"
"""The action is installed from the checkout that it lies in."""


def texts(value: Any) -> Iterator[str]:
    """All texts below a value of YAML."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from texts(one)
    if isinstance(value, str):
        yield value


def read(file: str) -> Any:
    return YAML(typ="safe").load(REPOSITORY / file)


def install_of(file: str) -> str:
    [found] = {text for text in texts(read(file)) if " pip install " in text}
    return found


def test_all_snippets_are_here() -> None:
    said = subprocess.run(
        ["git", "grep", "-l", "pip install", "--", "*.yml", "*.yaml"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if said.returncode:
        pytest.skip("this is no checkout of Git")
    assert sorted(said.stdout.split()) == sorted(SNIPPETS)


@pytest.mark.parametrize("file", sorted({*SNIPPETS} - {OF_ITSELF}))
def test_the_user_says_what_is_installed(file: str, tmp_path: Path) -> None:
    install = install_of(file)
    assert not re.search(r"KOORDPOLICY_PACKAGE: koordpolicy\b", (REPOSITORY / file).read_text("utf-8"))
    (tmp_path / "python").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    (tmp_path / "python").chmod(0o755)
    ran = {}
    for given in ("", "git+https://git.example.org/o/koordpolicy@0123abc"):
        ran[given] = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", install],
            env={"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}", "KOORDPOLICY_PACKAGE": given},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    unset, said = ran.values()
    assert unset.returncode != 0
    assert "say git+https://HOST/OWNER/koordpolicy@REVISION" in unset.stderr
    assert (said.returncode, said.stdout.split()[-1]) == (0, list(ran)[1])


@pytest.mark.parametrize("file", SNIPPETS)
def test_a_module_of_the_branch_does_not_stand_for_pip(file: str, tmp_path: Path) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('the branch runs')\n", encoding="utf-8")
    install = install_of(file).replace("python", shlex.quote(sys.executable), 1).partition(" install ")[0]
    done = subprocess.run(
        ["bash", "-c", f"{install} --version"],
        cwd=tmp_path,
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "the branch runs" not in done.stderr


@pytest.mark.parametrize("file", [one for one in SNIPPETS if "gitlab" in one])
def test_images_have_git(file: str) -> None:
    """Slim ones have none: pip takes repositories by it, and `diff` reads revisions."""
    images = {job["image"] for job in read(file).values() if isinstance(job, dict) and "image" in job}
    assert images == {"python:3.12"}
