"""`examples/12-what-if`: the command that its page shows for `tune` mends the pack that is bad on purpose, within the budget stated there."""

import re
import resource
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "12-what-if"
PAGE = (EXAMPLE / "README.md").read_text(encoding="utf-8")


def shown() -> list[list[str]]:
    """The commands that the page shows in blocks, of `koordpolicy tune`, by their words."""
    blocks = re.findall(r"^    (koordpolicy tune (?:.*\\\n)*.*)\n", PAGE, re.MULTILINE)
    return [shlex.split(block.replace("\\\n", "")) for block in blocks]


def budget() -> tuple[int, int]:
    """Trials, and seconds of CPU."""
    found = re.search(r"Within (\d+) trials and (\d+) s of CPU", PAGE)
    assert found is not None
    return int(found[1]), int(found[2])


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A directory that holds the examples, as a clone does."""
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "12-what-if")
    return tmp_path


def run(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "koordpolicy.cli", *words]
    return subprocess.run(
        command,
        cwd=checkout,
        env={"PYTHONPATH": str(REPOSITORY), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def spent() -> float:
    """Seconds of CPU of the processes that ended, and of theirs."""
    of = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of.ru_utime + of.ru_stime


@pytest.mark.soak
def test_the_bad_pack_is_mended_within_the_budget(checkout: Path) -> None:
    (command,) = shown()
    trials, seconds = budget()
    before = spent()
    done = run(checkout, *command[1:])
    used = spent() - before
    assert done.returncode == 0, done.stdout + done.stderr
    assert command[command.index("--trials") + 1] == str(trials)
    assert used < seconds, "the budget that the page states"
    assert re.search(
        r"^\| `Overcommit/careful:parameters.cpuReclaim` \| 10% \|",
        read(checkout, "careful.md"),
        re.MULTILINE,
    )
    gained = re.search(
        r"did not use: ([\d.]+) core hours → ([\d.]+) core hours \(.* core hours, sure\)",
        read(checkout, "careful.md"),
    )
    assert gained is not None, read(checkout, "careful.md")
    assert float(gained[2]) > 50 * float(gained[1])
    file = "examples/12-what-if/too-careful/careful.yaml"
    old = read(checkout, file)
    subprocess.run(["git", "apply", "careful.patch"], cwd=checkout, check=True, timeout=30)
    new = read(checkout, file)
    assert [one for one in new.splitlines() if one not in old.splitlines()] == [
        line for line in new.splitlines() if line.strip().startswith("cpuReclaim: ")
    ]
    assert "# somebody was careful" in new, "comments are kept"
    checked = run(
        checkout, "check", "examples/12-what-if/too-careful"
    )  # with the rollout that was written there
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # The same command again is refused, rather than that it begins anew over what was kept.
    again = run(checkout, *command[1:])
    assert (again.returncode, "leave --rollout out" in again.stderr) == (2, True), again.stderr
    assert (checkout / "careful.journal").stat().st_size > 0


def read(checkout: Path, name: str) -> str:
    return (checkout / name).read_text(encoding="utf-8")
