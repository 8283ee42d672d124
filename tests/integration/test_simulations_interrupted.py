"""What is left of two simulations that somebody interrupts: what is known, how far it came, and the exit code of an interrupt."""

import io
import json
import re
from typing import Any

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.simulation import runs
from koordpolicy.cli.start import INTERRUPTED
from koordpolicy.cli.terminal import Terminal
from tests.conftest import REPOSITORY

OLD = str(REPOSITORY / "examples" / "01-colocated-day" / "policies")
NEW = str(REPOSITORY / "examples" / "12-what-if" / "policies")
DAY = ("--generate", "2:12", "--until", "1h", "--interval", "10m", "--seeds", "2")
COMMANDS = {"simulate": ("simulate", "-p", NEW, "--against", OLD), "diff": ("diff", OLD, NEW, "--simulate")}


class Pressed(Terminal):
    """One at which somebody presses Ctrl-C when progress of some simulation has come so far."""

    when: tuple[str, int] = ("", 0)

    def progress(self, text: str, line: str = "") -> None:
        what, percent = self.when
        found = re.search(r"(\d+) %", text)
        if text.startswith(what) and found is not None and int(found[1]) >= percent:
            raise KeyboardInterrupt


def interrupted(
    monkeypatch: pytest.MonkeyPatch, command: str, when: tuple[str, int], *flags: str
) -> tuple[int, str, str]:
    monkeypatch.setattr(runs, "_UPDATES_A_SECOND", 10**9)  # whatever the speed, each report is a moment
    out, err = io.StringIO(), io.StringIO()
    terminal = Pressed(out, err)
    terminal.when = when
    return main((*COMMANDS[command], *DAY, *flags), terminal), out.getvalue(), err.getvalue()


HALF = (f"seed 1, {NEW}", 50)
TOLD_OF_HALF = "what is told is of one seed up to 00:20, which both had reached"


@pytest.mark.parametrize(
    ("command", "when", "through", "seeds", "until", "said"),
    [
        ("simulate", (f"seed 1, {OLD}", 80), 0, [], None, "nothing is compared"),
        ("simulate", HALF, 0, [1], 1200.0, TOLD_OF_HALF),
        ("simulate", (f"seed 2, {NEW}", 90), 1, [1], None, "what is told is of 1 of 2 seeds"),
        ("diff", HALF, 0, [1], 1200.0, TOLD_OF_HALF),
    ],
    ids=["nothing", "a part of a seed", "a seed", "of two revisions"],
)
def test_what_is_known_is_told_and_that_it_is_partial(
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    when: tuple[str, int],
    through: int,
    seeds: list[int],
    until: float | None,
    said: str,
) -> None:
    code, out, err = interrupted(monkeypatch, command, when, "-o", "json")
    assert code == INTERRUPTED
    assert said in err
    told: Any = json.loads(out)
    if command == "diff":
        assert told["decisions"]  # which differ, whatever was simulated
        told = told["simulation"]
    where = told["interrupted"]
    assert when[0] == f"seed {where['seed']}, {where['policies']}"
    assert (where["seedsThrough"], where["seedsAsked"]) == (through, 2)
    assert where["comparedUntilSeconds"] == until
    assert (told["seeds"], told["made"]["seeds"]) == (len(seeds), seeds)
    offered = [one for one in told["measures"] if one["name"] == "batch-cpu offered"]
    assert [one["difference"] > 0 for one in offered] == [True] * bool(seeds)


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_people_are_told_so_as_well(monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    code, out, _ = interrupted(monkeypatch, "simulate", HALF, "-o", form)
    assert code == INTERRUPTED
    assert TOLD_OF_HALF in " ".join(out.split())
    assert "batch-cpu offered" in out


def test_a_part_is_what_a_shorter_simulation_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    _, out, _ = interrupted(monkeypatch, "simulate", HALF, "-o", "json")
    shorter = io.StringIO()
    asked = (*COMMANDS["simulate"], *DAY, "--until", "20m", "--seeds", "1", "-o", "json")
    assert main(asked, Terminal(shorter, io.StringIO())) == 0
    parts, wholes = (
        {one["name"]: one for one in json.loads(text)["measures"]} for text in (out, shorter.getvalue())
    )
    assert parts.keys() == wholes.keys()
    for name in ("CPU in use", "batch-cpu offered", "pods scheduled", "best-effort work"):
        assert parts[name]["before"] == pytest.approx(wholes[name]["before"]), name
        assert parts[name]["after"] == pytest.approx(wholes[name]["after"]), name


@pytest.mark.parametrize("command", COMMANDS)
def test_help_tells_of_the_exit_code(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main((command, "--help"))
    assert "130 interrupted" in " ".join(capsys.readouterr().out.split())
