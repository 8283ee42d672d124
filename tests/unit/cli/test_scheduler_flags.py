"""The flags of `koordpolicy scheduler`."""

import argparse
from typing import Any

import pytest

from koordpolicy.cli.command import CannotRunError
from koordpolicy.cli.flags.scheduler import USAGE
from koordpolicy.cli.scheduler import choice_of
from koordpolicy.runtime.http.authentication import Authentication
from koordpolicy.runtime.http.serving import Endpoint
from koordpolicy.scheduler.process import Choice


def given(*arguments: str) -> Choice:
    parser = argparse.ArgumentParser()
    USAGE.add(parser)
    return choice_of(parser.parse_args(arguments))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {}),
        (["--profile", "own", "--in-flight", "3"], {"profile": "own", "in_flight": 3}),
        (["--extender", ":10261"], {"extender": Endpoint("--extender", "", 10261), "steps": "own"}),
        (
            ["--extender", "[::1]:0", "--extender-steps", "A,B"],
            {"extender": Endpoint("--extender", "::1", 0), "steps": "A,B"},
        ),
        (
            ["--extender", "localhost:1", "--extender-anonymous-auth", "--extender-memory", "64Mi"],
            {
                "extender": Endpoint(
                    "--extender", "localhost", 1, None, Authentication(anonymous_writes=True)
                ),
                "extender_memory": 64 * 2**20,
            },
        ),
        (["--shard", "0/1"], {"shard": (0, 1)}),
        (["--shard", "255/256"], {"shard": (255, 256)}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_flags_become_a_choice(arguments: list[str], expected: dict[str, Any]) -> None:
    assert given(*arguments) == Choice(**expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--in-flight", "0"], "from 1"),
        (["--extender", "10261"], "--extender takes [HOST]:PORT, not `10261`"),
        (["--extender", "off"], "--extender takes"),
        (["--extender-steps", "all"], "needs --extender"),
        (["--extender-memory", "1"], "from 1Mi"),
        (["--extender-memory", "much"], "from 1Mi"),
        (["--extender", ":1", "--shard", "0/2"], "do not go together"),
        (["--shard", "2/2"], "takes I/N"),
        (["--shard", "1"], "takes I/N"),
        (["--shard=-1/2"], "takes I/N"),
        (["--shard", "0/257"], "takes I/N"),
        (["--shard", "²/3"], "takes I/N"),
        (["--shard", "0/" + "9" * 5000], "takes I/N"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)
def test_what_makes_no_sense_is_refused(arguments: list[str], message: str) -> None:
    with pytest.raises(CannotRunError) as refusal:
        given(*arguments)
    assert message in str(refusal.value)
