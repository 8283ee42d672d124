"""The table of kernel files, and their forms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from koordpolicy.linux.files import forms
from koordpolicy.linux.files.forms import FileValue, Form
from koordpolicy.linux.files.kernel_file import CgroupVersion, FilePlace
from koordpolicy.linux.files.table import KERNEL_FILES
from koordpolicy.model.cpuset import cpuset_text, parse_cpuset


def test_every_row_can_be_found_and_bounded() -> None:
    for name, row in KERNEL_FILES.items():
        entries = [row.of(version) for version in CgroupVersion]
        assert name == row.name and any(entries), name
        assert (row.entry is None) == (row.place is FilePlace.CGROUP), name
        assert bool(row.controller) == (row.place is FilePlace.CGROUP), name
        if row.place is FilePlace.PROCESS:
            assert row.entry is not None and "{}" in row.entry.name


@given(
    st.integers(-(1 << 64), 1 << 64), st.sampled_from(sorted(KERNEL_FILES)), st.sampled_from(CgroupVersion)
)
def test_what_a_row_takes_is_what_it_reads_again(value: int, name: str, version: CgroupVersion) -> None:
    entry = KERNEL_FILES[name].of(version)
    if not KERNEL_FILES[name].writers or entry is None or entry.refusal(value) is not None:
        return
    text = entry.form.render(value)
    assert entry.form.same(value, text)
    if entry.form is not forms.SHARES_AS_WEIGHT:
        assert entry.form.render(entry.form.parse(text)) == text


@given(st.frozensets(st.integers(0, 300)))
def test_cpu_lists_are_their_own_inverse(cpus: frozenset[int]) -> None:
    assert parse_cpuset(cpuset_text(cpus)) == cpus


def test_cpu_lists_are_written_as_the_kernel_writes_them() -> None:
    assert cpuset_text({11, 0, 1, 2, 10, 8}) == "0-2,8,10-11"


@pytest.mark.parametrize(
    ("form", "value", "content", "same"),
    [
        (forms.UNLIMITED_AS_MAX, -1, "max\n", True),
        (forms.UNLIMITED_AS_MAX, (1 << 63) - 1, "max\n", True),
        (forms.UNLIMITED_AS_HUGE, -1, "9223372036854771712\n", True),
        (forms.UNLIMITED_AS_MINUS_ONE, -1, "9223372036854771712\n", True),
        (forms.QUOTA_OF_MAX, 50_000, "50000 100000\n", True),
        (forms.QUOTA_OF_MAX, -1, "max 100000\n", True),
        (forms.QUOTA_OF_MAX, 50_000, "max 100000\n", False),
        (forms.SHARES_AS_WEIGHT, 1024, "39\n", True),
        (forms.CPUS, frozenset({0, 1, 2}), "2,0-1\n", True),
        (forms.CPUS, frozenset(), "\n", True),
        (forms.INTEGER, 0, "", False),
        (forms.DEVICE_LINE, "8:0 1048576", "8:16 5\n8:0 1048576\n", True),
        (forms.DEVICE_LINE, "8:0 0", "8:16 5\n", True),
        (forms.DEVICE_LINE, "8:0 0", "8:0 5\n", False),
        (forms.DEVICE_LINE, "8:0 enable=1 rpct=95", "8:0 enable=1 ctrl=user rpct=95.00 rlat=5\n", True),
        (forms.throttle_v2("rbps"), "8:0 7", "8:0 rbps=7 wbps=max riops=max wiops=max\n", True),
        (forms.throttle_v2("rbps"), "8:0 0", "8:0 rbps=7 wbps=max riops=max wiops=max\n", False),
        (forms.throttle_v2("rbps"), "8:0 0", "", True),
        (forms.SCHEMATA, "L3:0=0f;1=F", "    MB:0=100\n    L3:0=f;1=f;2=1\n", True),
        (forms.SCHEMATA, "L3:0=e", "L3:0=f\n", False),
        (forms.FEATURE, "NO_CORE_SCHED", "START_DEBIT NO_CORE_SCHED\n", True),
        (forms.FEATURE, "CORE_SCHED", "START_DEBIT NO_CORE_SCHED\n", False),
        (forms.MEMBER, "12", "1\n12\n", True),
    ],
)
def test_what_a_file_says_already_is_known(form: Form, value: FileValue, content: str, same: bool) -> None:
    assert form.same(value, content) is same


@pytest.mark.parametrize(
    ("form", "value", "content", "before"),
    [
        (forms.QUOTA_OF_MAX, 5_000, "max 100000\n", "max"),
        (forms.SHARES_AS_WEIGHT, 2, "39\n", "39"),
        (forms.DEVICE_LINE, "8:0 5", "8:16 7\n", "8:0 0"),
        (forms.DEVICE_LINE, "8:0 5", "8:0 7\n", "8:0 7"),
        (forms.DEVICE_LINE, "8:0 enable=1 rpct=95", "", "8:0 enable=0"),
        (forms.DEVICE_WEIGHT, "8:0 5", "default 100\n", "8:0 default"),
        (forms.throttle_v2("wiops"), "8:0 5", "8:0 rbps=max wbps=max riops=max wiops=9\n", "8:0 wiops=9"),
        (forms.throttle_v2("wiops"), "8:0 5", "", "8:0 wiops=max"),
        (forms.SCHEMATA, "L3:0=1", "L3:0=f;1=f\nMB:0=100\n", "L3:0=f;1=f\n"),
        (forms.FEATURE, "CORE_SCHED", "NO_CORE_SCHED X\n", "NO_CORE_SCHED"),
        (forms.MEMBER, "12", "1\n", None),
        (forms.INTEGER, 1, "what?\n", None),
    ],
)
def test_what_a_file_said_can_be_brought_back(
    form: Form, value: FileValue, content: str, before: str | None
) -> None:
    assert form.before(value, content) == before
