"""The README's five minutes, typed in order into a shell: what is printed is what stands there.

`pytest --update-goldens` writes what is printed. A line `...` ends what is shown of an output.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

README = REPOSITORY / "README.md"
_SECTION = re.compile(r"^## Five minutes$.*?(?=^## )", re.MULTILINE | re.DOTALL)
_BLOCK = re.compile(r"^```(?:sh)?\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_HERE = re.compile(r"<<'(?P<end>\w+)'")
_REVISION = re.compile(r"^(revision +)[0-9a-f]{12}$", re.MULTILINE)
_MARK = "==== next ===="
_ELSEWHERE = ("pip install", "openb_")
"""What a test cannot do: install, and have a trace of hundreds of megabytes."""
_LONG = 300


def _steps(body: str) -> Iterator[tuple[str, str]]:
    """Each command of a block with what is shown of its output; a block without prompts is one command."""
    if not body.startswith("$ "):
        yield body, ""
        return
    lines = iter(body.splitlines(keepends=True))
    command, shown = "", ""
    for line in lines:
        if not line.startswith("$ "):
            shown += line
            continue
        if command:
            yield command, shown
        command, shown = line, ""
        here = _HERE.search(line)
        while here is not None or command.endswith("\\\n"):
            more = next(lines)
            command += more
            if here is None or more.strip() == here["end"]:
                break
    yield command, shown


def _run(commands: list[str], directory: Path) -> list[str]:
    """The outputs of commands in one shell, one after the other."""
    script = "".join(f"{command.removeprefix('$ ')}\necho '{_MARK}'\n" for command in commands)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-s"],
        input=script,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        cwd=directory,
        env={**os.environ, "PATH": path, "NO_COLOR": "1"},
        timeout=_LONG,
        check=False,
    )
    outputs = done.stdout.split(f"{_MARK}\n")
    assert len(outputs) == len(commands) + 1, done.stdout
    return outputs[:-1]


def _as_shown(printed: str, shown: str) -> str:
    """What is printed, as far as it is shown."""
    lines = [line.rstrip() for line in _REVISION.sub(r"\1...", printed).rstrip().splitlines()]
    wanted = shown.rstrip("\n").split("\n")
    cut = [at for at, line in enumerate(wanted) if line.strip() == "..."]
    if cut:
        lines[cut[0] :] = [wanted[cut[0]]]
    return "".join(f"{line}\n" for line in lines)


def test_five_minutes_are_what_they_say(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    text = README.read_text(encoding="utf-8")
    section = _SECTION.search(text)
    assert section is not None
    blocks = [
        block
        for block in _BLOCK.finditer(section[0])
        if not any(word in block["body"] for word in _ELSEWHERE)
    ]
    steps = [(block["body"], command, shown) for block in blocks for command, shown in _steps(block["body"])]
    assert len(steps) > 8
    outputs = iter(_run([command for _, command, _ in steps], tmp_path))
    written: dict[str, str] = {}
    for body, command, shown in steps:
        written[body] = written.get(body, "") + command + _as_shown(next(outputs), shown)
    new = section[0]
    for body, whole in written.items():
        new = new.replace(body, whole)
    if request.config.getoption("--update-goldens"):
        README.write_text(text.replace(section[0], new), encoding="utf-8")
    else:
        assert new == section[0]
