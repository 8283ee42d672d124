"""What stands around messages, as a client gets it wrong: the server goes on, or ends and says why."""

import io
import json
import subprocess
import sys

import pytest

from koordpolicy.language_server.frames import MOST_BYTES, Frames

TIMEOUT = 60


def message(method: str, **params: object) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


HELLO = message("initialize", processId=None, rootUri=None, capabilities={})
BEFORE_ALL = message(
    "textDocument/completion",
    textDocument={"uri": "file:///tmp/a.yaml"},
    position={"line": -1, "character": 0},
)
LONG = message("a/b", text="x" * (60 << 20))

ENDS = {
    "more than there is": b"Content-Length: 99999999999999\r\n\r\n" + b"x" * 1_000,
    "more digits than any number": b"Content-Length: " + b"9" * 4_000 + b"\r\n\r\n",
    "below zero": b"Content-Length: -5\r\n\r\n{}",
    "zero": b"Content-Length: 0\r\n\r\n",
    "underscores": b"Content-Length: 3_0\r\n\r\n" + b" " * 30,
    "other digits": "Content-Length: ٣\r\n\r\n{} ".encode(),
    "none": b"Content-Type: x\r\n\r\n{}",
    "a line without end": b"X: " + b"a" * 5_000_000 + b"\r\n",
    "lines without end": b"X: a\r\n" * 100_000,
}


@pytest.mark.parametrize("case", ENDS)
def test_ends_where_no_end_of_a_message_can_be_told(case: str) -> None:
    frames = Frames(io.BytesIO(ENDS[case] + HELLO))
    assert frames.readline() == b""
    assert frames.readline() == b""
    assert frames.failed


def test_passes_over_what_is_too_long() -> None:
    """What follows is read as ever."""
    assert len(LONG) > MOST_BYTES
    frames = Frames(io.BytesIO(LONG + HELLO + HELLO[:-1]))
    size = len(HELLO.partition(b"\r\n\r\n")[2])
    assert frames.readline() == b"Content-Length: %d\r\n" % size
    assert frames.readline() == b"\r\n"
    assert json.loads(frames.read(size))["method"] == "initialize"
    assert frames.readline() == b"Content-Length: %d\r\n" % size
    assert frames.readline() == b"\r\n"
    assert frames.read(size) == b"", "cut off"
    assert not frames.failed


@pytest.mark.parametrize(
    ("said", "code", "answers", "log"),
    [
        (ENDS["more than there is"], 2, 1, "`Content-Length: 99999999999999` is no length of a message"),
        (ENDS["below zero"], 2, 1, "`Content-Length: -5` is no length of a message"),
        (LONG, 0, 2, "is passed over"),
        (BEFORE_ALL, 0, 2, "Unable to deserialize message (`--log-file` keeps all of it)"),
    ],
    ids=["huge", "negative", "long", "a line below zero"],
)
def test_the_server_answers_and_ends(said: bytes, code: int, answers: int, log: str) -> None:
    """A real process; what went before is answered, and what follows a message that is only too long."""
    done = subprocess.run(
        [sys.executable, "-m", "koordpolicy.cli", "lsp"],
        input=HELLO + said + message("shutdown"),
        capture_output=True,
        timeout=TIMEOUT,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert log in done.stderr.decode()
    assert b"Traceback" not in done.stderr
    assert done.stdout.count(b"Content-Length:") == answers
