"""Log lines, for people and for collectors."""

import io
import json
import logging
import re
from collections.abc import Iterator

import pytest

from koordpolicy.runtime.logs import LogFormat, LoggedOnce, set_up_logging


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """The root logger as it was."""
    root, ours = logging.getLogger(), logging.getLogger("koordpolicy")
    before = list(root.handlers), root.level, ours.level
    yield
    root.handlers[:], level, own = before
    root.setLevel(level)
    ours.setLevel(own)


def logged(format: LogFormat, *, verbose: bool = False) -> str:
    out = io.StringIO()
    set_up_logging(format, verbose=verbose, out=out)
    logger = logging.getLogger("koordpolicy.runtime.policies.live")
    logger.debug("a detail")
    logger.info("revision %s is active", "abc", extra={"revision": "abc"})
    try:
        int("no")
    except ValueError:
        logger.exception("failed")
    logging.getLogger("aiohttp.access").info("not ours")
    return out.getvalue()


def test_lines_for_people() -> None:
    lines = logged(LogFormat.TEXT).splitlines()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO runtime\.policies\.live: revision abc is active",
        lines[0],
    )
    assert "ERROR runtime.policies.live: failed" in lines[1]
    assert lines[-1].startswith("ValueError: invalid literal")


def test_objects_for_collectors() -> None:
    first, second = [json.loads(line) for line in logged(LogFormat.JSON).splitlines()]
    del first["time"]
    assert first == {
        "level": "info",
        "logger": "runtime.policies.live",
        "message": "revision abc is active",
        "revision": "abc",
    }
    assert second["exception"].endswith("'no'")


def test_a_reason_is_never_empty() -> None:
    out = io.StringIO()
    for format in LogFormat:
        set_up_logging(format, out=out)
        logging.getLogger("koordpolicy.runtime.leader").warning("lease %s: %s", "l", TimeoutError())
    text, line = out.getvalue().splitlines()
    assert text.endswith("lease l: TimeoutError")
    assert json.loads(line)["message"] == "lease l: TimeoutError"


def test_more_when_asked() -> None:
    assert "a detail" not in logged(LogFormat.TEXT)
    assert "a detail" in logged(LogFormat.TEXT, verbose=True)


@pytest.mark.parametrize("format", LogFormat)
def test_nothing_that_is_logged_moves_a_cursor_or_forges_a_line(format: LogFormat) -> None:
    out = io.StringIO()
    set_up_logging(format, out=out)
    hostile = "pol\x1b[2J\udcff\u202e\n2026-01-31T12:00:00.000Z INFO forged: line"
    logging.getLogger("koordpolicy").warning("%s is refused", hostile, extra={"file": hostile})
    text = out.getvalue()
    text.encode("utf-8")
    lines = text.splitlines()
    assert not any(character for character in text if character != "\n" and not character.isprintable())
    assert all(line.startswith(("{", "  ")) or "koordpolicy: pol" in line for line in lines)
    if format is LogFormat.JSON:
        assert json.loads(text)["message"].count("\n") == 1


def test_a_trouble_that_lasts_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    trouble = LoggedOnce(logging.getLogger("koordpolicy.test"))
    for met in ("full", "full", "gone", "", "gone", "gone"):
        if met:
            trouble.met(met, "the disk is %s", met)
        else:
            trouble.over()
    trouble.met("100 % full")
    assert caplog.messages == ["the disk is full", "the disk is gone", "the disk is gone", "100 % full"]


def test_a_trouble_that_lasts_is_told_again_when_it_is_time(caplog: pytest.LogCaptureFixture) -> None:
    now = 5.0
    trouble = LoggedOnce(logging.getLogger("koordpolicy.test"), remind=60.0, clock=lambda: now)
    for now in (5.0, 17.0, 64.9, 65.0, 77.0, 124.9, 125.0):
        trouble.met("full", "the disk is full at %s", now)
    trouble.over()
    now = 126.0
    trouble.met("full", "the disk is full at %s", now)
    assert caplog.messages == [f"the disk is full at {at}" for at in (5.0, 65.0, 125.0, 126.0)]
