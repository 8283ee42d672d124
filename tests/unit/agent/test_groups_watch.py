"""Pods are noticed by their groups."""

from typing import Final

from koordpolicy.agent.groups_watch import GroupsWatch
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import DoorLimits, KernelDoor

LOOKS: Final = 10
"""After so many names are read in any case."""
_ROOT: Final = FakeRoot(CgroupVersion.V1)
KUBEPODS: Final = f"{discover_hierarchy(_ROOT).directory('cpu')}/kubepods"


def watch() -> tuple[FakeRoot, GroupsWatch, list[int]]:
    root, changes = FakeRoot(CgroupVersion.V1), list[int]()
    for group in ("", "/burstable", "/besteffort"):
        root.make_directory(f"{KUBEPODS}{group}")
    hierarchy = discover_hierarchy(root)
    door = KernelDoor(root, hierarchy, lambda: 0, DoorLimits(0, 1, 1, 1, 10), WriteLog(10))
    found = GroupsWatch(NodeKernel(root, hierarchy, door), lambda: 1, lambda: changes.append(1))
    found.look()
    return root, found, changes


def pod(number: int, group: str = "burstable") -> str:
    return f"{KUBEPODS}/{group}/pod00000000-0000-0000-0000-{number:012d}"


def test_each_pod_that_comes_or_goes_is_told_of_at_the_next_look() -> None:
    root, found, changes = watch()
    for number, group in enumerate(("burstable", "besteffort", ".")):
        path = pod(number, group).replace("/./", "/")
        root.make_directory(path)
        found.look()
        assert len(changes) == 2 * number + 1
        root.remove_directory(path)
        found.look()
        assert len(changes) == 2 * number + 2
        found.look()
        assert len(changes) == 2 * number + 2


def test_what_is_no_pod_is_not_told_of() -> None:
    root, found, changes = watch()
    root.make_directory(f"{KUBEPODS}/burstable/other")
    for _ in range(LOOKS):
        found.look()
    assert not changes


def test_a_pod_that_takes_the_place_of_another_is_found_after_some_looks() -> None:
    root, found, changes = watch()
    root.make_directory(pod(1))
    found.look()
    root.remove_directory(pod(1))
    root.make_directory(pod(2))
    for _ in range(LOOKS):
        found.look()
    assert len(changes) == 2


def test_a_class_whose_directory_comes_later_or_anew_is_found() -> None:
    root, found, changes = watch()
    root.remove_directory(f"{KUBEPODS}/besteffort")
    for _ in range(LOOKS):
        found.look()
    root.make_directory(f"{KUBEPODS}/besteffort")
    root.make_directory(pod(3, "besteffort"))
    for _ in range(LOOKS):
        found.look()
    assert len(changes) == 1
