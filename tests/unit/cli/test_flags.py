"""All flags of all commands: what each letter means, everywhere, and who speaks JSON."""

import argparse
import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from koordpolicy.cli.flags.agent import add_node_flags
from koordpolicy.cli.main import main, parser
from koordpolicy.cli.terminal import Terminal

LETTERS = {
    "-c": "--cluster",  # objects of a cluster, in a file
    "-f": "--filename",  # manifests, as kubectl has it
    "-g": "--given",
    "-h": "--help",
    "-k": "--filter",  # tests by name, as pytest has it
    "-n": "--namespace",  # as kubectl has it
    "-o": "--output",  # a format, never a file
    "-p": "--policies",
    "-s": "--snapshot",
    "-v": "--verbose",
    "-w": "--write",  # a file or directory
}
"""One letter, one meaning."""

SILENT = {
    "comment": "writes a comment, and says where it is read",
    "completion": "prints a script",
    "console": "serves a page, and JSON below /api",
    "front": "logs, as JSON with --log-format",
    "init": "writes files",
    "lsp": "speaks JSON-RPC",
    "man": "prints a page for `man`",
    "manager": "logs, as JSON with --log-format",
    "runtime-proxy": "logs, as JSON with --log-format",
    "scheduler": "logs, as JSON with --log-format",
    "sync": "logs, as JSON with --log-format",
    "yarn-operator": "logs, as JSON with --log-format",
}
"""Commands without a result that a program would read."""

EXAMPLE = str(Path(__file__).parents[3] / "examples/04-careful-rollout")
SPEAKING = (
    ("check", EXAMPLE),
    ("test", EXAMPLE),
    ("fmt", "--check", EXAMPLE),
    ("explain", "KP204"),
    ("explain", "CPUSuppress"),
    ("explain", "node.usage"),
    ("explain", "CPUSuppress.target"),
    ("explain", "CPUSuppress.target", "-p", EXAMPLE),
    ("explain", "SchedulingProfile/koord-scheduler"),
    ("graph", EXAMPLE),
    ("rollout", "plan", EXAMPLE),
    ("schema",),
    ("schema", "CPUSuppress"),
)
"""What needs no cluster."""


def commands(whole: argparse.ArgumentParser, name: str = "") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    inner = [action for action in whole._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner and name:
        yield name, whole
    for action in inner:
        for word, one in action.choices.items():
            yield from commands(one, f"{name} {word}".strip())


COMMANDS = dict(commands(parser()))


def test_a_letter_means_one_thing() -> None:
    meanings = {
        (flag, action.option_strings[-1])
        for one in COMMANDS.values()
        for action in one._actions
        for flag in action.option_strings
        if not flag.startswith("--")
    }
    assert meanings == set(LETTERS.items())


@pytest.mark.parametrize("name", COMMANDS)
def test_output_is_a_format_and_takes_no_words_after_it(name: str) -> None:
    for action in COMMANDS[name]._actions:
        assert not (action.option_strings and action.nargs in ("+", "*")), "it would take the words after it"
        if "--output" in action.option_strings:
            assert action.choices is not None
            assert "json" in action.choices


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.partition(" ")[0] not in SILENT])
def test_who_has_a_result_speaks_json(name: str) -> None:
    assert any("--output" in action.option_strings for action in COMMANDS[name]._actions)


@pytest.mark.parametrize("words", SPEAKING, ids=" ".join)
def test_json_is_json(words: tuple[str, ...]) -> None:
    terminal = Terminal(out := io.StringIO(), io.StringIO())
    assert main((*words, "-o", "json"), terminal) == 0
    assert json.loads(out.getvalue())


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("-w", "x.png"), "`.png` is no format of ours"),
        (("-w", "x.svg"), "wrote x.svg"),
        (("-w", "x.JSON"), "wrote x.JSON"),
    ],
)
def test_a_picture_is_what_its_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, str], expected: str
) -> None:
    monkeypatch.chdir(tmp_path)
    terminal = Terminal(io.StringIO(), err := io.StringIO())
    main(("graph", EXAMPLE, *words, "--decision", "CPUSuppress.target"), terminal)
    assert expected in err.getvalue()
    file = Path(words[1])
    begin = {".svg": "<svg", ".JSON": "[", ".png": ""}[file.suffix]
    assert file.exists() == bool(begin)
    assert not begin or file.read_text(encoding="utf-8").lstrip().startswith(begin)


def test_reports_tell_of_the_files_that_were_looked_at() -> None:
    for format in ("json", "junit"):
        terminal = Terminal(out := io.StringIO(), io.StringIO())
        assert main(("check", EXAMPLE, "-o", format), terminal) == 0
        assert "koordinator/" not in out.getvalue(), "files of the pack are not the user's"
    files = len(list(Path(EXAMPLE).rglob("*.yaml")))
    terminal = Terminal(out := io.StringIO(), io.StringIO())
    main(("check", EXAMPLE, "-o", "json"), terminal)
    assert json.loads(out.getvalue())["files"] == files


@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1"}, False)]
)
def test_a_terminal_that_obeys_nothing_is_told_nothing(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    for name in ("TERM", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal(out := Tty(), err := Tty())
    assert main(("check", "-"), terminal) in (0, 1, 2)
    assert terminal.colour() is coloured
    terminal.progress("half")
    terminal.end_progress()
    assert ("\x1b" in err.getvalue()) is (coloured or environment == {"NO_COLOR": "1"})
    assert coloured or "\x1b" not in out.getvalue()


@pytest.mark.parametrize(
    ("said", "group"), [("", ""), ("/", ""), ("/custom/root/", "custom/root"), ("custom", "custom")]
)
def test_the_kubelets_root_is_a_group_below_the_hierarchys(said: str, group: str) -> None:
    parser = argparse.ArgumentParser()
    add_node_flags(parser)
    assert parser.parse_args(["--kubelet-cgroup-root", said]).kubelet_cgroup_root == group


@pytest.mark.parametrize("said", ["../../etc", "a//b", "a/./b", ".."])
def test_no_group_is_outside_the_hierarchy(said: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    add_node_flags(parser)
    with pytest.raises(SystemExit):
        parser.parse_args(["--kubelet-cgroup-root", said])
    assert "is no group below /sys/fs/cgroup" in capsys.readouterr().err
