"""`examples/06-node`: what it says of the doctor holds of a node whose files are known."""

from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from tests.conftest import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "06-node"
FILES = {
    "proc/stat": "cpu  10 0 10 100 0 0 0 0 0 0\ncpu0 10 0 10 100 0 0 0 0 0 0\n",
    "proc/meminfo": "MemTotal: 1000 kB\nMemFree: 200 kB\nMemAvailable: 400 kB\n",
    "proc/sys/vm/min_free_kbytes": "67584\n",
    "sys/devices/system/cpu/online": "0\n",
    "sys/fs/cgroup/cpu/cgroup.procs": "",
    "sys/fs/cgroup/cpuset/cgroup.procs": "",
    "sys/fs/cgroup/cpu/kubepods/cpu.shares": "1024\n",
    "sys/fs/cgroup/cpu/kubepods/cpu.cfs_quota_us": "-1\n",
    "sys/fs/cgroup/cpuset/kubepods/cpuset.cpus": "0\n",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_the_doctor_tells_what_is_there_and_what_is_not_done(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["agent", "--doctor", "--root", str(tree)]) == 0
    there, _, missing = capsys.readouterr().out.partition("it does not have")
    for name in ("cpu.shares", "cpuset.cpus", "vm.min_free_kbytes", "cgroupfs at kubepods"):
        assert name in there
    for name in ("cpu.bvt_warp_ns", "memory.stat", "cpu.cfs_burst_us"):
        assert name in missing
        assert name not in there
    said = (EXAMPLE / "README.md").read_text("utf-8")
    line = next(line for line in missing.splitlines() if line.split()[0] == "cpu.bvt_warp_ns")
    assert " ".join(line.split()) in " ".join(said.replace("`", " ").split())


def test_a_tree_that_is_none_is_told_of(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agent", "--doctor", "--cgroup-root", str(tmp_path / "none")]) == 2
    assert "is no directory" in capsys.readouterr().err
    assert main(["agent", "--http=off"]) == 2
    assert "NODE_NAME" in capsys.readouterr().err
