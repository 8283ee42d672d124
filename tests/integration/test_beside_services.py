"""A day with services alone against the same day with batch work beside them: a table, a drawing, data."""

import io
import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.start import INTERRUPTED
from koordpolicy.cli.terminal import Terminal
from koordpolicy.simulator.clock import SECOND
from koordpolicy.simulator.contention import DEFAULT
from koordpolicy.simulator.traces.published import DAY, NODE_CPUS, published_workload

DAY_OF_TWO = ("simulate", "--generate", "2:20", "--batch", "40%", "--until", "3h", "--interval", "10m")


def call(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return main(arguments, Terminal(out, err)), out.getvalue(), err.getvalue()


def test_batch_work_requests_the_share_that_is_asked_for_in_the_first_hour_as_in_the_last() -> None:
    workload = published_workload(50, 0, np.random.default_rng(3), batch=0.4)

    def requested(begin: int, end: int) -> float:
        inside = 0
        for one in workload.arrivals:
            assert one.duration is not None
            cpus = int(one.pod["spec"]["containers"][0]["resources"]["requests"]["cpu"])
            inside += cpus * max(min(one.time + one.duration, end) - max(one.time, begin), 0)
        return inside / (50 * NODE_CPUS * (end - begin))

    assert requested(0, DAY) == pytest.approx(0.4, rel=0.02)
    assert requested(0, 3600 * SECOND) == pytest.approx(0.4, rel=0.15)
    assert requested(DAY - 3600 * SECOND, DAY) == pytest.approx(0.4, rel=0.15)


def test_both_days_stand_side_by_side_and_are_drawn(tmp_path: Path) -> None:
    drawn, shared = tmp_path / "day.svg", tmp_path / "shared.yaml"
    shipped = DEFAULT.read_text("utf-8")
    assert "value: 0%" in shipped
    shared.write_text(
        shipped.replace("value: 0%", "value: 5%"), "utf-8"
    )  # so that batch work costs services some time
    code, text, _ = call(
        *DAY_OF_TWO, "--beside-services", "--contention", str(shared), "--report", str(drawn), "-o", "json"
    )
    assert code == 0
    told: dict[str, Any] = json.loads(text)
    alone, together = told["alone"], told["together"]
    assert together["utilisation"]["cpuUsed"]["mean"] > 1.5 * alone["utilisation"]["cpuUsed"]["mean"]
    assert alone["batch"]["coreHours"] == 0 < together["batch"]["coreHours"]
    assert together["services"]["minutes"] == pytest.approx(alone["services"]["minutes"], rel=0.1)
    assert alone["services"]["tailSeconds"] < together["services"]["tailSeconds"]
    assert told["made"]["seeds"] == [1]
    picture = ET.parse(drawn).getroot()
    assert told["made"]["command"] in (picture.findtext("{http://www.w3.org/2000/svg}desc") or "")
    assert picture.tag.endswith("svg")
    assert {"services alone", "by batch work"} <= {one.text for one in picture.iter() if one.text}


def test_the_table_is_no_wider_than_80_columns() -> None:
    code, text, _ = call("simulate", "--generate", "1:10", "--until", "20m", "--beside-services")
    assert code == 0
    assert max(map(len, text.splitlines())) <= 80
    assert "service time slower than it may be" in text


class Interrupted(Terminal):
    """One at which somebody presses Ctrl-C once the second day is on its way."""

    def progress(self, text: str, line: str = "") -> None:
        if text.startswith("with everything") and " 0 %" not in text:
            raise KeyboardInterrupt


@pytest.mark.parametrize("form", ["text", "json"])
def test_of_a_day_that_is_interrupted_is_told_what_was_before(form: str, tmp_path: Path) -> None:
    out, err, drawn = io.StringIO(), io.StringIO(), tmp_path / "day.svg"
    command = (
        "simulate",
        "--generate",
        "20:100",
        "--batch",
        "40%",
        "--beside-services",
        "--report",
        str(drawn),
    )
    assert main((*command, "-o", form), Interrupted(out, err)) == INTERRUPTED
    assert (
        f"interrupted with everything, so that nothing is compared, and {drawn} is not written"
        in err.getvalue()
    )
    assert not drawn.exists()
    if form == "json":
        told: dict[str, Any] = json.loads(out.getvalue())
        assert told["alone"]["interruptedAtSeconds"] is None
        assert 0 < told["together"]["interruptedAtSeconds"] < 86_400
    else:
        assert "all that follows is of the time before" in " ".join(out.getvalue().split())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--beside-services", "-o", "markdown"), "excludes --explain"),
        (("--beside-services", "--against", "."), "exclude each other"),
        (("--contention", "nowhere.yaml"), "nowhere.yaml: "),
        (("--report", "nowhere/day.html"), "--report nowhere/day.html: there is no folder nowhere"),
    ],
)
def test_what_does_not_go_together_is_told(arguments: tuple[str, ...], told: str) -> None:
    code, _, error = call("simulate", "--generate", "1", *arguments)
    assert code == 2
    assert told in error


@pytest.mark.parametrize(
    ("said", "meant"),
    [("40", "write `40%`"), ("150", ""), ("101%", ""), ("-1%", ""), ("x%", ""), ("4%0", "")],
)
def test_only_a_percentage_is_one(said: str, meant: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        call("simulate", "--generate", "1", "--batch", said)
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert ("write `" in told) == bool(meant)
    assert meant in told


@pytest.mark.parametrize(("flags", "name"), [(("--beside-services",), "day.html"), ((), "day.pdf")])
def test_a_name_says_what_is_written(flags: tuple[str, ...], name: str, tmp_path: Path) -> None:
    code, _, err = call(*DAY_OF_TWO, *flags, "--report", str(tmp_path / name))
    assert code == 2
    assert f"not `{tmp_path / name}`" in err
