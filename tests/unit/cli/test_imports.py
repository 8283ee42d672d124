"""What a command does not need it does not import: that is most of the time a short one takes."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from koordpolicy.cli.main import COMMANDS

ASK = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))
from koordpolicy.cli.start import process
sys.exit(process())
"""
HEAVY = (
    "aiohttp",
    "asyncio",
    "kubernetes",
    "numpy",
    "pygls",
    "shtab",
    "watchfiles",
    "koordpolicy.kube",
    "koordpolicy.scheduler",
)
"""What no look at policies needs: third parties, and what is above policies."""

LANGUAGE = (
    "pydantic",
    "re2",
    "ruamel",
    "koordpolicy.graph",
    "koordpolicy.language.kinds",
    "koordpolicy.cli.check",
)
"""What it takes to read policies."""

BUNDLE = str(Path(__file__).parents[3] / "examples/02-tune-one-pool")

NEVER: Mapping[tuple[str, ...], tuple[str, ...]] = {
    ("--help",): (*HEAVY, *LANGUAGE),
    ("--version",): (*HEAVY, *LANGUAGE),
    **{(name, "--help"): (*HEAVY, *LANGUAGE) for name in COMMANDS},
    ("rollout", "abort", "--help"): (*HEAVY, *LANGUAGE),
    ("completion", "bash"): tuple({*HEAVY, *LANGUAGE} - {"shtab"}),
    ("man",): (*HEAVY, *LANGUAGE),
    ("check", BUNDLE): (*HEAVY, "ruamel", "z3"),
    ("fmt", "--check", BUNDLE): HEAVY,
    ("test", BUNDLE): HEAVY,
    ("explain", "KP204"): HEAVY,
    ("explain", "CPUSuppress.target"): HEAVY,
}


def imported(*words: str) -> set[str]:
    """All modules that are there after a command."""
    done = subprocess.run(
        [sys.executable, "-c", ASK, *words], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stderr.splitlines()[-1])
    return set(found)


@pytest.mark.parametrize("words", NEVER, ids=lambda words: " ".join(words[:2]))
def test_what_is_not_needed_is_not_imported(words: tuple[str, ...]) -> None:
    if words[0] == "check":
        imported(*words)  # whoever is first after the pack has changed compiles it, and proves what it says
    assert imported(*words) & set(NEVER[words]) == set()


AGENT = """
import json, sys
import koordpolicy.cli.agent
from koordpolicy.kube.api import Connection
from koordpolicy.language.facts.table import Component
from koordpolicy.runtime.policies.compiling import BackgroundCompiler, Scrutiny
from koordpolicy.runtime.policies.packs import BARE
from koordpolicy.runtime.policies.parts import kinds_for, pack_part
from koordpolicy.source.revision import Revision
import asyncio
compiler = BackgroundCompiler(pack_part(kinds_for(Component.AGENT)), lambda: 0, scrutiny=Scrutiny.NONE)
made = asyncio.run(compiler.compile(Revision(dict([BARE]), "digest", "commit")))
assert "CPUSuppress.target" in made.graph
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""
"""What an agent does that follows what a manager publishes, but for the cluster and the kernel."""

NOT_ON_NODES = (
    "anyio",
    "celpy",
    "cryptography",
    "grpc",
    "jsonschema",
    "kubernetes",
    "numpy",
    "pygls",
    "ruamel",
    "shtab",
    "watchfiles",
    "z3",
    "koordpolicy.algorithms.columns",
    "koordpolicy.cluster.state",
    "koordpolicy.graph.exchange",
    "koordpolicy.graph.foresight",
    "koordpolicy.graph.meaning",
    "koordpolicy.graph.proof",
    "koordpolicy.graph.testing",
    "koordpolicy.language.cel.lower.columns",
    "koordpolicy.manager",
    "koordpolicy.model.table",
    "koordpolicy.runtime.trial.client",
    "koordpolicy.scheduler",
    "koordpolicy.simulator",
    "koordpolicy.source.git",
)
"""There is one on each of thousands of nodes, in 100 MiB: what it imports stays in its memory."""


def test_an_agent_holds_nothing_that_a_node_does_not_need() -> None:
    done = subprocess.run(
        [sys.executable, "-c", AGENT], check=False, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert set(json.loads(done.stderr.splitlines()[-1])) & set(NOT_ON_NODES) == set()


def test_a_simulation_serves_nobody_and_tries_no_revisions(tmp_path: Path) -> None:
    node = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "4", "pods": "9"}}}
    pod = {"kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}
    files = []
    for name, thing in (("nodes", node), ("pods", pod)):
        (tmp_path / f"{name}.json").write_text(json.dumps({"kind": "List", "items": [thing]}))
        files += [f"--{name}", str(tmp_path / f"{name}.json")]
    found = imported("simulate", *files, "--until", "1h")
    assert (
        found & {"prometheus_client", "koordpolicy.runtime.trial", "koordpolicy.graph.testing", "z3"} == set()
    )
