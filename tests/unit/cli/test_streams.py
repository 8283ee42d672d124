"""What a command does when its output cannot be written, when it is interrupted, and with what must not be shown."""

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal
from tests.conftest import REPOSITORY

HOSTILE = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyTest
metadata: {name: hostile}
spec:
  cases:
    - name: "clear\\e[2J\\x9b1m\\u202e\\uFFFE"
      given: {node: {labels: {pool: "\\e]0;title\\a\\x7f"}}}
      expect: {"no\\e[1msuch": "\\e[3m"}
    - name: "clear\\e[2J\\x9b1m\\u202e\\uFFFE again"
      given: {node: {labels: {pool: "\\e]0;title\\a\\x7f"}}}
      expect: {SchedulingProfile/koord-scheduler.queue.retryAfter: 7m}
"""


def run(*words: str, redirect: str = "", encoding: str = "utf-8") -> tuple[int, bytes, bytes]:
    """Exit code, output and errors of the command as a shell runs it."""
    command = f'exec "$0" -m koordpolicy.cli "$@" {redirect}'
    done = subprocess.run(
        ["bash", "-c", command, sys.executable, *words],
        cwd=REPOSITORY,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        timeout=300,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


FULL = b"the output cannot be written: No space left on device\n"
CLOSED = b"the output cannot be written: Bad file descriptor\n"


@pytest.mark.parametrize(
    ("words", "redirect", "said"),
    [
        (["explain", "KP001"], ">/dev/full", b"koordpolicy explain: " + FULL),
        (["explain", "KP001"], ">&-", b"koordpolicy explain: " + CLOSED),
        (["--help"], ">/dev/full", b"koordpolicy: " + FULL),
        (["schema", "--help"], ">&-", b"koordpolicy: " + CLOSED),
        (["--version"], ">/dev/full", b"koordpolicy: " + FULL),
        (["explain", "KP001"], ">/dev/full 2>/dev/full", b""),
        (["explain", "KP001"], "<&- >&- 2>&-", b""),
        (["check", "no-such-thing"], "2>&-", b""),
        (["check", "no-such-thing"], "2>/dev/full", b""),
    ],
)
def test_what_cannot_be_written_is_no_success(words: list[str], redirect: str, said: bytes) -> None:
    assert run(*words, redirect=redirect) == (2, b"", said)


def test_a_reader_who_has_seen_enough_hears_no_complaint() -> None:
    code, out, err = run("schema", redirect="| head -c 100")
    assert (code, len(out), err) == (0, 100, b"")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "ascii:strict"])
def test_an_encoding_that_lacks_characters(encoding: str) -> None:
    code, out, err = run("explain", "KP001", encoding=encoding)
    assert (code, err) == (0, b"")
    assert (b"gilt f\\u00fcr alle" in out) == encoding.startswith("ascii")
    code, out, err = run("schema", "CPUSuppress", encoding=encoding)
    assert (code, err) == (0, b"")
    json.loads(out.decode(encoding.partition(":")[0]))


def test_json_in_any_encoding_is_json(tmp_path: Path) -> None:
    (tmp_path / "facts.yaml").write_text("node: {labels: {pool: für 😀}}\n", encoding="utf-8")
    words = ("explain", "CPUSuppress.target", "--given", str(tmp_path / "facts.yaml"), "-o", "json")
    _, plain, _ = run(*words)
    _, escaped, _ = run(*words, encoding="ascii")
    assert json.loads(plain) == json.loads(escaped.decode("ascii"))


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.1, 0.2, 0.4, 0.8])
def test_an_interrupt_at_any_time_is_no_traceback(seconds: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "koordpolicy.cli", "check", "policies"],
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        bufsize=0,  # else what follows the lines that are read may stay in a buffer that `communicate` does not look into
        # Whoever runs the tests in the background may have us ignore interrupts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    # What happens while the interpreter itself starts is not ours: ours begins with the first import after it.
    said = process.stderr
    assert said is not None
    while b"koordpolicy.cli.start" not in (line := said.readline()):
        assert line
    assert said.readline()
    time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=120)
    ours = [line for line in rest.splitlines() if not line.startswith(b"import time:")]
    assert ours in ([b""], [])
    assert process.returncode in {130, -signal.SIGINT}  # to a shell both are 130


def test_a_simulation_in_the_background_that_is_told_to_end_reports_the_time_before() -> None:
    progress, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "koordpolicy.cli", "simulate", "--generate", "1000:1000", "-o", "json"],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=theirs,
        # As a shell starts it with `&`.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),  # noqa: PLW1509
    )
    os.close(theirs)
    shown = b""
    while re.search(rb"[1-9] ?%", shown) is None:
        more = os.read(progress, 4096)
        assert more, shown
        shown += more
    process.send_signal(signal.SIGTERM)
    told, _ = process.communicate(timeout=120)
    os.close(progress)
    assert process.returncode == 130
    assert 0 < json.loads(told)["interruptedAtSeconds"] < 86_400


def test_a_file_that_cannot_be_written_is_named() -> None:
    code, out, err = run("schema", "--write", "/proc/none")
    assert (code, out) == (2, b"")
    assert err.startswith(b"koordpolicy schema: ")
    assert err.count(b"\n") == 1
    assert b"/proc/none" in err


class TestWhatMustNotBeShown:
    """A policy cannot make a terminal do anything, whatever the format."""

    @pytest.fixture
    def tree(self, tmp_path: Path) -> Path:
        (tmp_path / "hostile.yaml").write_text(HOSTILE, encoding="utf-8")
        return tmp_path

    def shown(self, *words: str) -> str:
        out, err = io.StringIO(), io.StringIO()
        assert main(words, Terminal(out, err)) in {0, 1, 2, 3}
        whole = out.getvalue() + err.getvalue()
        assert not [one for one in whole if one != "\n" and not one.isprintable()]
        return out.getvalue()

    @pytest.mark.parametrize("format", ["text", "json", "sarif", "github", "gitlab", "junit"])
    def test_of_check(self, tree: Path, format: str) -> None:
        assert "KP" in self.shown("check", str(tree), "-o", format)

    @pytest.mark.parametrize("format", ["text", "json", "junit"])
    def test_of_test(self, tree: Path, format: str) -> None:
        shown = self.shown("test", str(tree), "-o", format, "-v")
        assert "clear" in shown
        if format == "junit":
            ET.fromstring(shown)
        if format == "json":
            json.loads(shown)

    def test_of_what_is_told_along_the_way(self) -> None:
        self.shown("check", "no\x1b[2Jsuch")
        self.shown("simulate", "--nodes", "no\x1b[2Jsuch", "--pods", "neither\udcff")
        self.shown("explain", "\x1b]0;x\x07")

    def test_colour_is_all_that_a_terminal_is_told(self) -> None:
        class Screen(io.StringIO):
            def isatty(self) -> bool:
                return True

        screen = Screen()
        terminal = Terminal(screen, screen)
        terminal.print("\x1b[1;31mred\x1b[0m \x1b[2J\x1b]0;x\x07")
        terminal.say("\x1b[1mbold\x1b[0m \x9b2J")
        assert screen.getvalue() == (
            "\x1b[1;31mred\x1b[0m \\x1b[2J\\x1b]0;x\\x07\n\x1b[1mbold\x1b[0m \\x9b2J\n"
        )
