"""The Dockerfile, built by buildah in a base of one's own choice, and the command of the image.

KOORDPOLICY_BASE=debian:bookworm-slim make test ARGS=tests/integration/deploy/test_dockerfile.py
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordpolicy import __version__
from tests.conftest import REPOSITORY

BASE = os.environ.get("KOORDPOLICY_BASE", "")
_MINUTES = 20

pytestmark = [
    pytest.mark.skipif(not BASE, reason="minutes and a network: KOORDPOLICY_BASE=debian:bookworm-slim"),
    pytest.mark.skipif(shutil.which("buildah") is None, reason="there is no buildah"),
]


def buildah(*words: str) -> str:
    ran = subprocess.run(
        ["buildah", *words],
        capture_output=True,
        text=True,
        timeout=_MINUTES * 60,
        check=False,
        cwd=REPOSITORY,
    )
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[-4000:]
    return ran.stdout.strip()


@pytest.fixture(scope="module")
def container() -> Iterator[str]:
    tag = "localhost/koordpolicy-test"
    buildah("bud", "--build-arg", f"BASE={BASE}", "--file", "deploy/image/Dockerfile", "--tag", tag, ".")
    name = buildah("from", tag)
    try:
        yield name
    finally:
        buildah("rm", name)
        buildah("rmi", tag)


def test_the_command_runs_as_nobody_in_particular(container: str) -> None:
    assert (
        buildah("run", container, "--", "/usr/local/bin/koordpolicy", "--version")
        == f"koordpolicy {__version__}"
    )
    assert buildah("inspect", "--format", "{{.OCIv1.Config.User}}", container) == "65532:65532"


def test_nothing_of_the_base_is_in_it(container: str) -> None:
    root = Path(buildah("mount", container))
    assert (root / "usr/share/koordpolicy/sbom.cdx.json").is_file()
    assert not any(
        (root / one).exists() for one in ("usr/bin/apt-get", "usr/bin/pip3", "usr/bin/perl", "checkout")
    )
