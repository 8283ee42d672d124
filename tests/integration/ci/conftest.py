"""A repository of policies, and `koordpolicy` as a command."""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.parts.forges import Forge, serving

GOOD = {
    "policies/koordpolicy.yaml": (
        "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyBundle\nmetadata:\n  name: shop\n"
        "spec:\n  extends: [koordinator]\n"
    ),
    "policies/night.yaml": (
        "apiVersion: koordpolicy.io/v1alpha1\nkind: CPUSuppress\nmetadata:\n  name: night\nspec:\n  match:\n"
        "    nodes:\n      matchLabels: {pool: night}\n  parameters:\n    threshold: 80%\n"
    ),
    "policies/night.test.yaml": (
        "apiVersion: koordpolicy.io/v1alpha1\nkind: PolicyTest\nmetadata:\n  name: night\nspec:\n  cases:\n"
        "    - name: at night\n      given:\n        node: {labels: {pool: night}}\n"
        "      expect:\n        CPUSuppress.parameters.threshold: 80%\n"
    ),
}
_SELECTED = GOOD["policies/night.yaml"].replace(
    "nodes:\n      matchLabels: {pool: night}", "condition: \"node.labels[?'pool'].orValue(''){} == 'night'\""
)
UNTELLABLE = {
    which: {
        "policies/night.yaml": _SELECTED.replace("{}", ".lowerAscii()" * times, 1),
        "policies/night.test.yaml": GOOD["policies/night.test.yaml"],
    }
    for which, times in (("before", 1), ("after", 2))
}
"""Two revisions that decide alike, which `diff` cannot tell: it knows too little of `lowerAscii`."""

HOSTILE = "@all-`x`-<img-src=x>-#1-www.e.example-$(touch${IFS}hacked)"
"""A name that branches and files may have."""

SLIP = GOOD["policies/night.yaml"].replace("threshold", "treshold")


@dataclass
class Sample:
    """A repository of a user, with a commit; `environment` has `koordpolicy` on its path."""

    root: Path
    environment: Mapping[str, str]

    def write(self, **files: str) -> None:
        for name, text in {**GOOD, **files}.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")

    def run(self, *command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self.root,
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )

    def commit(self, **files: str) -> str:
        self.write(**files)
        for arguments in (("add", "--all"), ("commit", "--quiet", "--message", "change")):
            assert self.run("git", *arguments).returncode == 0
        return self.run("git", "rev-parse", "HEAD").stdout.strip()


def harmless(comment: str) -> bool:
    """Whether a comment has nothing outside of code that calls, links, or is markup of somebody else's."""
    inert = re.compile(r"^```.*?^```$|`[^`\n]*`|<code>[^<>`]*</code>|\\[<>`]", re.DOTALL | re.MULTILINE)
    left = inert.sub("", comment.partition("\n")[2])
    return not re.search(r"@|<(?!/?details|/?summary)|`|#\d|://|www\.|^\s*/[a-z]", left, re.MULTILINE)


@pytest.fixture(params=["github", "gitlab"])
def forge(request: pytest.FixtureRequest) -> Iterator[Forge]:
    """Both services in turn; a test of one asks for it by `parametrize(..., indirect=True)`."""
    with serving(request.param) as made:
        yield made


@pytest.fixture
def sample(tmp_path: Path, part: Callable[[str], Path]) -> Sample:
    git = part("git")
    programs = tmp_path / "programs"
    programs.mkdir()
    command = programs / "koordpolicy"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m koordpolicy.cli "$@"\n', encoding="utf-8")
    command.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join((str(programs), str(git.parent), os.environ["PATH"])),
        "PYTHONPATH": str(REPOSITORY),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        **{f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
    }
    made = Sample(tmp_path / "sample", environment)
    made.root.mkdir()
    assert made.run("git", "init", "--quiet", "--initial-branch=main").returncode == 0
    made.commit()
    return made
