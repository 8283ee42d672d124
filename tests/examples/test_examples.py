"""Every example is right, passes its tests, and is told of in the README."""

import io
from pathlib import Path

import numpy as np
import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from koordpolicy.simulator.traces import read_described

EXAMPLES = Path(__file__).parents[2] / "examples"
FOLDERS = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
BUNDLES = sorted(path.parent for path in EXAMPLES.rglob("koordpolicy.yaml"))


def call(*arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    return main(arguments, Terminal(out, out)), out.getvalue()


def name(path: Path) -> str:
    return str(path.relative_to(EXAMPLES))


def test_there_are_examples_and_each_has_a_bundle() -> None:
    assert len(FOLDERS) >= 3
    assert all(any(folder in (bundle, *bundle.parents) for bundle in BUNDLES) for folder in FOLDERS)


@pytest.mark.parametrize("bundle", BUNDLES, ids=name)
def test_an_example_is_right(bundle: Path) -> None:
    code, text = call("check", "--strict", str(bundle))
    assert code == 0, text


@pytest.mark.parametrize("bundle", BUNDLES, ids=name)
def test_an_example_passes_its_tests(bundle: Path) -> None:
    code, text = call("test", str(bundle))
    assert code == 0, text


@pytest.mark.parametrize("file", sorted(EXAMPLES.rglob("workload.yaml")), ids=name)
def test_a_workload_can_be_read(file: Path) -> None:
    workload = read_described(file, np.random.default_rng(1))
    assert len(workload.nodes) == 100
    assert workload.arrivals


def test_the_readme_tells_of_every_example() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [folder.name for folder in FOLDERS if f"`{folder.name}/`" not in text] == []
