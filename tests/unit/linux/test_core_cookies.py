"""Cookies of core scheduling by name, on a model of what the kernel does with them."""

from collections.abc import Sequence

import pytest

from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.core_scheduling import HostCoreScheduling
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion, FileWriter
from koordpolicy.linux.writes.core_cookies import CoreCookies
from koordpolicy.linux.writes.write import FileWrite
from tests.contract.kernel.kernels import make_group

GROUPS = {"web": {7, 8}, "api": {9}, "batch": {11}}


class Cores:
    """A kernel with core scheduling: a process that has ended has no cookie to tell."""

    def __init__(self) -> None:
        self.cookies = {pid: 0 for pids in GROUPS.values() for pid in pids}
        self.made = 0

    def cookie(self, pid: int) -> int:
        if pid not in self.cookies:
            raise NoSuchFile(f"process {pid}", "it has ended")
        return self.cookies[pid]

    def create(self, pid: int) -> None:
        self.made += 1
        self.cookies[pid] = self.made

    def share(self, source: int, targets: Sequence[int]) -> None:
        for pid in targets:
            self.cookies[pid] = self.cookies[source]

    def clear(self, targets: Sequence[int]) -> None:
        for pid in targets:
            self.cookies[pid] = 0


class Site:
    def __init__(self) -> None:
        self.root, self.kernel = FakeRoot(CgroupVersion.V2), Cores()
        self.hierarchy = discover_hierarchy(self.root)
        for name, pids in GROUPS.items():
            make_group(self.root, self.hierarchy, name)
            group = self.root.tree("cpu").find(name)
            assert group is not None
            group.pids |= pids
        self.begin()

    def begin(self, *, plan_only: bool = False) -> None:
        self.cookies = CoreCookies(self.root, self.hierarchy, self.kernel, plan_only=plan_only)

    def give(self, group: str, name: str) -> str:
        write = FileWrite("cookie", name, FileWriter.CORE_SCHEDULING, group)
        return str(self.cookies.write(write).outcome)


def test_those_of_a_name_share_a_cookie_and_others_do_not() -> None:
    site = Site()
    assert [site.give("web", "a"), site.give("api", "a"), site.give("batch", "b")] == ["written"] * 3
    found = site.kernel.cookies
    assert found[7] == found[8] == found[9] != found[11]
    assert 0 not in found.values()
    assert [site.give("web", "a"), site.give("api", "a"), site.give("batch", "b")] == ["equal"] * 3
    assert site.kernel.made == 2


def test_a_process_that_begins_later_gets_the_cookie_of_the_others() -> None:
    site = Site()
    site.give("web", "a")
    group = site.root.tree("cpu").find("web")
    assert group is not None
    group.pids |= {12}
    group.pids -= {7}
    site.kernel.cookies[12] = 0
    del site.kernel.cookies[7]
    assert site.give("web", "a") == "written"
    assert site.kernel.cookies[12] == site.kernel.cookies[8] == 1


def test_the_next_agent_takes_cookies_over() -> None:
    site = Site()
    site.give("web", "a")
    site.give("batch", "b")
    site.begin()
    assert [site.give("web", "a"), site.give("batch", "b"), site.give("api", "a")] == [
        *("equal", "equal"),
        "written",
    ]
    assert site.kernel.cookies[9] == site.kernel.cookies[7]
    assert site.kernel.made == 2


def test_two_names_never_share_one_cookie() -> None:
    site = Site()
    site.give("web", "a")
    site.kernel.cookies[11] = site.kernel.cookies[7]
    assert site.give("batch", "b") == "written"
    assert site.kernel.cookies[11] != site.kernel.cookies[7]


def test_who_has_no_name_has_no_cookie() -> None:
    site = Site()
    site.give("web", "a")
    assert [site.give("web", ""), site.give("web", "")] == ["written", "equal"]
    assert site.kernel.cookies[7] == 0


def test_planning_changes_nothing_and_what_has_ended_is_said() -> None:
    site = Site()
    site.begin(plan_only=True)
    assert site.give("web", "a") == "planned"
    assert set(site.kernel.cookies.values()) == {0}
    assert site.give("gone", "a") == "unsupported"
    site.kernel.cookies.clear()
    assert site.give("web", "a") == "unsupported"


def test_this_kernel_has_cookies_or_says_why_not() -> None:
    known = {"this kernel has no core scheduling", "the cores of this machine have no siblings", ""}
    problem = ""
    try:
        HostCoreScheduling().cookie(0)
    except KernelFileError as error:
        problem = error.problem
        with pytest.raises(KernelFileError, match=problem):
            HostCoreScheduling().clear([1])
    assert problem in known
