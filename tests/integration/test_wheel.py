"""What is installed from a wheel finds its policies, schemas and examples, as a checkout does."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from koordpolicy import resources

PROGRAM = """
from koordpolicy import resources
print(resources.__file__)
print(resources.policies())
print((resources.policies() / "koordpolicy.yaml").read_text() != "")
"""


@pytest.fixture(scope="module")
def unpacked(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the checkout, unpacked where an installer would put it."""
    pytest.importorskip("hatchling", reason="the build backend is not in this environment")
    directory = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)],
        cwd=repository,
        check=True,
        capture_output=True,
    )
    (wheel,) = directory.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory / "site")
    return directory / "site"


def test_a_wheel_carries_the_built_in_policies(unpacked: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=unpacked.parent,
        env={"PYTHONPATH": str(unpacked)},
        check=True,
        capture_output=True,
        text=True,
    )
    module, policies, readable = done.stdout.split("\n")[:3]
    assert Path(module).is_relative_to(unpacked)
    assert Path(policies) == unpacked / "koordpolicy" / "_data" / "policies"
    assert readable == "True"


def test_a_wheel_holds_every_file_of_the_package_and_no_test(unpacked: Path, repository: Path) -> None:
    there = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    package = {path.relative_to(repository).as_posix() for path in (repository / "koordpolicy").rglob("*.py")}
    assert package | {"koordpolicy/py.typed"} <= there
    assert not {name for name in there if name.startswith("tests/")}
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in there)


def test_a_checkout_uses_its_own(repository: Path) -> None:
    assert resources.policies() == repository / "policies"


def test_an_incomplete_installation_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(resources, "_PLACES", (tmp_path,))
    with pytest.raises(
        resources.MissingResourceError, match="this installation of koordpolicy is not complete"
    ):
        resources.policies()
