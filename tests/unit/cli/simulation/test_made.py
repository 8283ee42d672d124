"""How a report was made: a command line that a shell takes as it was given, whatever stands in it, and that is no markup."""

import os
import re
import subprocess

import pytest

from koordpolicy import __version__
from koordpolicy.cli.simulation.made import Made
from koordpolicy.cli.simulation.words import Page

HOSTILE = (
    "", "a b", "it's", '"', "$(touch x)", "`id`", "a\nb", "\x1b[31m", "\\", "$'x'", "ü/ß", "ü's", "\u202ea",
    "\udcff", "-p=x;y", "~", "*", "!1", "@all", "</code><img src=x>", "a|b", "\u200b0", "\x7f1",
)  # fmt: skip


def test_a_shell_takes_the_command_as_it_was_given() -> None:
    command = Made(("simulate", *HOSTILE), (1,)).command
    assert command.isprintable()
    printed = subprocess.run(
        ["bash", "-c", command.replace("koordpolicy", "printf '%s\\0'", 1)],
        capture_output=True,
        timeout=30,
        check=True,
    ).stdout
    assert printed.split(b"\0")[:-1] == [os.fsencode(one) for one in ("simulate", *HOSTILE)]


@pytest.mark.parametrize("width", [60, 80])
def test_lines_on_a_terminal_are_the_command(width: int) -> None:
    made = Made(("simulate", *(f"--flag-{at}" for at in range(20)), "-p", "a b" * 40), (1,))
    by, *lines = made.lines(Page(width))
    assert by == f"  made by koordpolicy {__version__} with seed 1; again by"
    assert [one for one in lines if len(one) > width and "a b" not in one] == []
    assert len(lines) > 2
    assert re.sub(r" \\\n +", " ", "\n".join(lines)).strip() == made.command


@pytest.mark.parametrize(
    ("seeds", "said"), [((3,), "with seed 3"), ((1, 2, 3), "with seeds 1 to 3"), ((), f"{__version__}.")]
)
def test_seeds_are_told(seeds: tuple[int, ...], said: str) -> None:
    made = Made(("simulate",), seeds)
    assert said in made.markdown()
    assert made.data() == {
        "koordpolicy": __version__,
        "command": "koordpolicy simulate",
        "seeds": list(seeds),
    }


def test_words_are_no_markup() -> None:
    made = Made(HOSTILE, (1,))
    assert "<img" not in made.html()
    code = re.search(r"<code>(.*)</code>$", made.markdown())
    assert code is not None
    assert not re.search(r"[<>`@|*~!]", code[1])
