"""Exceptions in words."""

import asyncio

import pytest

from koordpolicy.diagnostics.wording import worded

CASES = (
    (ValueError("no number"), "no number"),
    (TimeoutError(), "TimeoutError"),
    (ValueError("  "), "ValueError"),
    (asyncio.CancelledError(), "CancelledError"),
    (KeyError("cpu"), "KeyError: 'cpu'"),
    (IndexError(), "IndexError"),
    (
        FileNotFoundError(2, "No such file or directory", "a.crt"),
        "[Errno 2] No such file or directory: 'a.crt'",
    ),
    (ExceptionGroup("several", [ValueError("first"), TimeoutError()]), "first; TimeoutError"),
    (
        ExceptionGroup("many", [ValueError(str(number)) for number in range(5)]),
        "0; 1; 2 (and 2 more)",
    ),
)


@pytest.mark.parametrize(("error", "said"), CASES, ids=[type(error).__name__ + said for error, said in CASES])
def test_nothing_is_said_with_nothing(error: BaseException, said: str) -> None:
    assert worded(error) == said
