"""No way out of the trees that a root is given: on a tree of the test's own, with openat2 and by walking."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from koordpolicy.linux.errors import KernelFileError, NoSuchFile, OutsideRoot
from koordpolicy.linux.host_root import HostRoot
from koordpolicy.linux.root import CGROUPS, PROC

SECRET = "as it was"


@pytest.fixture(params=["openat2", "walk"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HostRoot]:
    """A tree with a group in it, and around it files that must stay as they are."""
    tree = tmp_path / "tree"
    (tree / "pod").mkdir(parents=True)
    (tree / "pod" / "cpu.shares").write_text("1024\n")
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "cpu.shares").write_text(SECRET)
    (tree / "out").symlink_to(tmp_path / "outside")
    (tree / "relative").symlink_to("../outside")
    (tree / "inner").symlink_to("pod")
    (tree / "pod" / "file").symlink_to(tmp_path / "outside" / "cpu.shares")
    (tree / "pod" / "beside").symlink_to("cpu.shares")
    found = HostRoot({CGROUPS: tree, PROC: Path(PROC)}, walk=request.param == "walk")
    yield found
    found.close()
    assert (tmp_path / "outside" / "cpu.shares").read_text() == SECRET
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["cpu.shares"]


def at(path: str) -> str:
    return f"{CGROUPS}/{path}"


def test_files_are_read_and_written(root: HostRoot) -> None:
    assert root.read(at("pod/cpu.shares")) == "1024\n"
    root.write(at("pod/cpu.shares"), "2")
    assert root.read(at("pod/cpu.shares")) == "2"
    assert root.names(at("pod")) == ["beside", "cpu.shares", "file"]
    assert root.exists(at("pod")) and not root.exists(at("pod/cpu.weight"))


def test_groups_are_made_and_removed_once(root: HostRoot) -> None:
    for _ in range(2):
        root.make_directory(at("pod/container"))
    assert root.exists(at("pod/container"))
    for _ in range(2):
        root.remove_directory(at("pod/container"))
    assert not root.exists(at("pod/container"))


def test_a_held_directory_tells_of_groups_that_come_and_go(root: HostRoot) -> None:
    held = root.hold_directory(at("pod"))
    before = held.links()
    root.make_directory(at("pod/new"))
    assert held.links() == before + 1
    root.remove_directory(at("pod/new"))
    assert held.links() == before
    held.close()
    held.close()


@pytest.mark.parametrize(
    "path",
    [
        "../outside/cpu.shares",
        "pod/../../outside/cpu.shares",
        "pod/./cpu.shares",
        "pod//cpu.shares",
        "out/cpu.shares",
        "relative/cpu.shares",
        "pod/file",
        "inner/../../outside/cpu.shares",
        "pod\0/cpu.shares",
    ],
)
def test_nothing_outside_is_read_or_written(root: HostRoot, path: str) -> None:
    for act in (root.read, lambda one: root.write(one, "9")):
        with pytest.raises(OutsideRoot) as error:
            act(at(path))
        assert error.value.path == at(path)
    assert not root.exists(at(path))


@pytest.mark.parametrize("path", ["inner/cpu.shares", "pod/beside"])
def test_links_within_are_read_and_never_written(root: HostRoot, path: str) -> None:
    assert root.read(at(path)) == "1024\n"
    with pytest.raises(OutsideRoot):
        root.write(at(path), "9")
    assert root.read(at("pod/cpu.shares")) == "1024\n"


@pytest.mark.parametrize("path", ["out/new", "relative/new", "../outside/new"])
def test_no_group_is_made_or_removed_outside(root: HostRoot, path: str) -> None:
    acts: tuple[Callable[[str], None], ...] = (root.make_directory, root.remove_directory)
    for act in acts:
        with pytest.raises(OutsideRoot):
            act(at(path))


def test_files_are_never_made(root: HostRoot) -> None:
    for path in ("pod/new", "gone/cpu.shares"):
        with pytest.raises(NoSuchFile) as error:
            root.write(at(path), "9")
        assert error.value.path == at(path)


@pytest.mark.parametrize("path", ["/etc/passwd", "/sys/fs/cgroup2/x", "relative", "", "/"])
def test_other_trees_are_not_touched(root: HostRoot, path: str) -> None:
    with pytest.raises(OutsideRoot):
        root.read(path)


def test_links_of_processes_lead_nowhere(root: HostRoot) -> None:
    pid = os.getpid()
    assert str(pid) in root.read(f"{PROC}/{pid}/stat")
    with pytest.raises(KernelFileError):
        root.read(f"{PROC}/{pid}/root/etc/passwd")
    with pytest.raises(KernelFileError):
        root.write(f"{PROC}/{pid}/cwd/new", "9")


def test_a_tree_that_is_not_mounted_has_no_files(tmp_path: Path) -> None:
    root = HostRoot({CGROUPS: tmp_path / "nowhere"})
    with pytest.raises(NoSuchFile):
        root.read(at("cpu.stat"))
    assert not root.exists(at("cpu.stat"))
