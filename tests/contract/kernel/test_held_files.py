"""Files that are held open between rounds, on the model and on this machine's kernel."""

import pytest

from koordpolicy.linux.errors import NoSuchFile
from koordpolicy.linux.readings.held import HeldFiles
from tests.contract.kernel.kernels import Kernel


def shares(files: HeldFiles, group: str) -> int:
    return files.number("cpu.shares", group)


def test_what_is_held_is_read_anew_and_its_group_may_end_and_begin_again(kernel: Kernel) -> None:
    files = HeldFiles(kernel.root, kernel.hierarchy, 8)
    group = kernel.make("pod")
    path = kernel.hierarchy.located("cpu.shares", group)[0].path
    assert shares(files, group) == shares(files, group)
    for value in ("100", "200"):
        kernel.root.write(path, value)
        assert files.located("cpu.shares", group)[1].decode().strip() == value
    assert len(files) == 1
    kernel.root.remove_directory(kernel.hierarchy.directory("cpu", group))
    with pytest.raises(NoSuchFile):
        shares(files, group)
    assert len(files) == 0
    kernel.root.make_directory(kernel.hierarchy.directory("cpu", group))
    assert files.located("cpu.shares", group)[1].decode().strip() in {"1024", "100"}  # the kernel's own begin
    files.close()


def test_no_more_are_held_than_may_be_and_none_that_nobody_reads(kernel: Kernel) -> None:
    files = HeldFiles(kernel.root, kernel.hierarchy, 2)
    groups = [kernel.make(f"pod{index}") for index in range(3)]
    for _ in range(3):
        for group in groups:
            assert shares(files, group) >= 1
        assert len(files) == 2
    for _ in range(6):
        files.next_round()
        shares(files, groups[0])
    assert len(files) == 1
    files.close()
    assert len(files) == 0
