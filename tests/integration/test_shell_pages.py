"""What shells and `man` are given, read by the real ones where they are installed."""

import argparse
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from koordpolicy.cli.main import COMMANDS, main, parser
from koordpolicy.cli.terminal import Terminal
from koordpolicy.language.command_line.arguments import arguments_of, subparsers


def printed(*words: str) -> str:
    out, err = io.StringIO(), io.StringIO()
    assert main(words, Terminal(out, err)) == 0, err.getvalue()
    return out.getvalue()


def options(whole: argparse.ArgumentParser) -> set[str]:
    found = {option for action in arguments_of(whole) for option in action.option_strings}
    return found.union(*(options(one) for one in subparsers(whole).values()))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_can_read_it(shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "completion"
    script.write_text(printed("completion", shell))
    done = subprocess.run([program, "-n", script], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


COMPLETE = """
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
_koordpolicy_complete() { :; }
entry=$(complete -p koordpolicy) && entry=${entry#*-F } && entry=${entry%% *}
cur=${COMP_WORDS[COMP_CWORD]}
$entry koordpolicy "$cur" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("che", {"check"}),
        ("check --unsafe", {"--unsafe-fixes"}),
        ("check -o js", {"json"}),
        ("completion ", {"bash", "zsh", "fish"}),
        ("check pol", {"policies"}),
        ("rollout pa", {"pause"}),
    ],
)
def test_bash_completes(typed: str, offered: set[str], tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    script = tmp_path / "completion"
    script.write_text(printed("completion", "bash"))
    words = ["koordpolicy", *typed.split(" ")]
    done = subprocess.run(
        ["bash", "-c", COMPLETE, "bash", script, *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=60,
    )
    assert {line.strip() for line in done.stdout.splitlines()} == offered, done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_all_commands_are_offered(shell: str) -> None:
    text = printed("completion", shell)
    assert [name for name in COMMANDS if name not in text] == []


def test_the_manual_page_has_everything() -> None:
    page = printed("man").replace("\\-", "-")
    assert [name for name in COMMANDS if f'.SS "{name}"' not in page] == []
    assert [option for option in options(parser()) if f"\\fB{option}\\fR" not in page] == []


def test_man_shows_it_without_complaint(tmp_path: Path) -> None:
    groff = shutil.which("groff")
    if groff is None:
        pytest.skip("groff is not installed")
    done = subprocess.run(
        [groff, "-man", "-Tutf8", "-ww", "-rLL=80n", "-P-c"],
        input=printed("man"),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert max(map(len, done.stdout.replace("\b", "").splitlines())) < 400
