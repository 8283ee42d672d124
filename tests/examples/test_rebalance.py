"""`examples/09-rebalance`: who leaves the full node and the cordoned one, who stays and why, as its README says."""

import io
import json
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.terminal import Terminal

EXAMPLE = Path(__file__).parents[2] / "examples" / "09-rebalance"
PICTURE = ["-f", "cluster.yaml", "-p", "policies"]


@pytest.fixture(autouse=True)
def inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLE)


def called(*arguments: str) -> str:
    out = io.StringIO()
    assert main([*arguments, *PICTURE], Terminal(out, out)) == 0, out.getvalue()
    return out.getvalue()


def test_one_round_is_as_the_readme_shows_it() -> None:
    _, _, block = EXAMPLE.joinpath("README.md").read_text("utf-8").partition("```text\n")
    assert block.partition("```")[0] == called("descheduler", "--once")
    moves = json.loads(called("descheduler", "--once", "--output", "json"))["moves"]
    assert [(one["pod"], one["from"], one["to"]) for one in moves] == [
        ("default/shop-2", "node-1", "node-3"),
        ("default/cache-2", "node-4", "node-3"),
    ]


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        ("search-1", "its disruption budget does not allow it"),
        ("cache-1", "its label asks for it"),
        ("shop-1", "others go before it"),
    ],
)
def test_who_stays_is_told_why(pod: str, why: str) -> None:
    assert why in called("explain", "move", pod)


def test_a_picture_stands_still() -> None:
    out = io.StringIO()
    assert main(["descheduler", *PICTURE], Terminal(out, out)) == 2
    assert "give `--once`" in out.getvalue()
    assert main(["descheduler", "--once", "--profile", "none", *PICTURE], Terminal(out, out)) == 2
    assert "no profile `none`" in out.getvalue()


def test_who_gets_no_migration_is_told_by_both(tmp_path: Path) -> None:
    """Room is kept by schedulers that know Reservations alone: a round says so as `explain move` does."""
    picture = tmp_path / "cluster.yaml"
    text = EXAMPLE.joinpath("cluster.yaml").read_text("utf-8")
    picture.write_text(text.replace("schedulerName: koord-scheduler", "schedulerName: own"), "utf-8")
    out = io.StringIO()
    assert main(["descheduler", "--once", "-f", str(picture), "-p", "policies"], Terminal(out, out)) == 0
    assert "no migration of 2 pods: its scheduler `own` places no Reservations" in out.getvalue()
    assert "2 pods to move, 2 of which stay: there is no migration of theirs" in out.getvalue()
    asked = io.StringIO()
    assert (
        main(["explain", "move", "shop-2", "-f", str(picture), "-p", "policies"], Terminal(asked, asked)) == 0
    )
    assert "its scheduler `own` places no Reservations" in asked.getvalue()
