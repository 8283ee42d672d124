"""What is said along the way, on terminals and elsewhere: errors in lines that fit, signs of life."""

import io
import os
import re
import struct
import termios
from fcntl import ioctl
from itertools import pairwise
from typing import TextIO

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.simulation.runs import simulated
from koordpolicy.cli.terminal import Terminal
from koordpolicy.simulator.simulation import SimulationSettings
from tests.integration.simulations import graph_with, node, service, workload

SENTENCE = (
    "koordpolicy simulate: /data/traces/openb-node-list.csv:2: `a long one` in column `cpu_milli` is no number;"
    " see https://example.com/a-very/long/address/that/no/line/of/this/terminal/holds?and=more#than-that  or not"
)


class Screen:
    """A real terminal of so many columns."""

    def __init__(self, columns: int) -> None:
        self._shown, theirs = os.openpty()
        ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.stream: TextIO = os.fdopen(theirs, "w")

    def shown(self) -> str:
        """All that was written; it is closed then."""
        whole = b""
        self.stream.write("\x00")
        self.stream.close()
        while not whole.endswith(b"\x00"):
            whole += os.read(self._shown, 4096)
        os.close(self._shown)
        return whole[:-1].decode().replace("\r\n", "\n")


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("TERM", "xterm")


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_errors_are_broken_between_words(columns: int) -> None:
    screen = Screen(columns)
    Terminal(io.StringIO(), screen.stream).complain(SENTENCE)
    lines = screen.shown().splitlines()
    assert [line for line in lines if len(line) > columns] == [
        line for line in lines if line.strip().startswith("https:") and len(line) > columns
    ]
    assert " ".join(line.strip() for line in lines) == SENTENCE.replace("  ", " ")
    assert any("`a long one`" in line for line in lines)
    assert all(
        len(f"{line} {after.strip()}") > columns or " " in after.strip() for line, after in pairwise(lines)
    )


@pytest.mark.parametrize(("columns", "lines"), [("40", 6), ("wide", 4), ("1000", 1)])
def test_the_environment_may_say_how_wide_it_is(
    columns: str, lines: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    screen = Screen(60)
    Terminal(io.StringIO(), screen.stream).complain(SENTENCE)
    assert len(screen.shown().splitlines()) == lines


def test_lines_that_fit_are_left_as_they_are() -> None:
    screen = Screen(60)
    Terminal(io.StringIO(), screen.stream).complain("a  b\n    c   d\n- e")
    assert screen.shown() == "a  b\n    c   d\n- e\n"


def test_what_no_terminal_shows_is_escaped_before_it_is_broken() -> None:
    screen = Screen(60)
    Terminal(io.StringIO(), screen.stream).complain("no such file \x1b[2J\u2028" + "x" * 60)
    assert screen.shown() == "no such file\n  \\x1b[2J\\u2028" + "x" * 60 + "\n"


def test_elsewhere_an_error_is_one_line() -> None:
    err = io.StringIO()
    Terminal(io.StringIO(), err).complain(SENTENCE)
    assert err.getvalue() == f"{SENTENCE}\n"


@pytest.mark.parametrize(
    "words",
    [["check", "no/" + "such/" * 30], ["simulate", "--interval", "x " * 60]],
    ids=["command", "flags"],
)
def test_commands_complain_so(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    plain, screen = io.StringIO(), Screen(70)
    told = []
    for stream in (plain, screen.stream):
        monkeypatch.setattr("sys.stderr", stream)
        try:
            code = main(words, Terminal(io.StringIO(), stream))
        except SystemExit as ended:
            code = ended.code  # type: ignore[assignment]
        told.append(code)
    assert told == [2, 2]
    assert len(screen.shown().splitlines()) > len(plain.getvalue().splitlines())


class Clock:
    """Seconds that pass when somebody looks."""

    def __init__(self, step: float) -> None:
        self.seconds, self.step = 0.0, step

    def __call__(self) -> float:
        self.seconds += self.step
        return self.seconds


@pytest.mark.parametrize(("step", "told"), [(1.0, [29, 59, 89]), (29.0, [1, 3, 5]), (40.0, [0, 1, 2])])
def test_logs_have_a_sign_of_life_after_each_silence(step: float, told: list[int]) -> None:
    clock, err = Clock(0), io.StringIO()
    terminal = Terminal(io.StringIO(), err, now=clock)
    for at in range(90):
        clock.seconds += step
        terminal.progress(f"\x1b {at} ━━", f"at {at}")
    terminal.end_progress()
    assert err.getvalue().splitlines()[:3] == [f"at {one}" for one in told]
    assert "\r" not in err.getvalue()


def test_what_is_said_is_a_sign_of_life_too() -> None:
    clock, err = Clock(0), io.StringIO()
    terminal = Terminal(io.StringIO(), err, now=clock)
    clock.seconds = 29
    terminal.say("a word")
    clock.seconds = 58
    terminal.progress("bar")
    assert err.getvalue() == "a word\n"
    clock.seconds = 59
    terminal.progress("bar")
    assert err.getvalue() == "a word\nbar\n"


def test_a_simulation_tells_its_moment_share_and_pods_and_nothing_of_it_in_the_result() -> None:
    out, err = io.StringIO(), io.StringIO()
    given = workload([service("s", "2", 0.5)], [node("n0")], minutes=120)
    simulated(graph_with(), given, SimulationSettings(), 1, Terminal(out, err, now=Clock(15.0)))
    lines = err.getvalue().splitlines()
    assert out.getvalue() == ""
    told = [
        re.fullmatch(r"simulating: at (\d\d:\d\d), (\d+) % of 2 h, [01] of 1 pods(, .* left)?", one)
        for one in lines
    ]
    assert len(lines) == len([one for one in told if one]) > 10
    assert sorted(lines) == lines
