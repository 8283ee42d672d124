"""Argo CD's engine, as its own agent runs it: applies a folder of a local clone, prunes, and undoes drift."""

import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.integration.gitops.site import Site

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
MARK = "gitops-agent.argoproj.io/gc-mark"
"""The annotation by which the agent knows what it applied."""


class Clone:
    """A Git working tree that the agent applies from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._git("init", "--quiet", "--initial-branch=main")
        self.commit({})

    def commit(self, files: Mapping[str, str]) -> str:
        """Make these the files of `policies/`, and no others; gives the commit."""
        policies = self.folder / "policies"
        shutil.rmtree(policies, ignore_errors=True)
        policies.mkdir()
        (policies / "README").write_text("Policies.\n")
        for name, text in files.items():
            (policies / name).write_text(text)
        self._git("add", "--all")
        self._git("commit", "--quiet", "--allow-empty", "--message=Change policies")
        return self._git("rev-parse", "HEAD").strip()

    def _git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false")
        ran = subprocess.run(
            ["git", *identity, *arguments],
            cwd=self.folder,
            check=True,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return ran.stdout


@contextmanager
def argo(site: Site, program: Path) -> Iterator[Clone]:
    """Start the agent on a site, over an empty clone; it looks at both each second."""
    clone = Clone(site.folder / "clone")
    command: list[str | Path] = [
        program,
        clone.folder,
        "--path=policies",
        "--resync-seconds=1",
        "--port=0",  # its own trigger, which the tests have no need of
        f"--kubeconfig={site.access.kubeconfig('admin')}",
        "--default-namespace=default",
    ]
    with site.run(command, "gitops-agent") as running:
        yield clone
    site.programs.remove(running)
