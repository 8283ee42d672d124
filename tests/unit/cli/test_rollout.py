"""`koordpolicy rollout` in a state directory, and what it shows."""

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest

from koordpolicy.cli.main import main
from koordpolicy.cli.rollouts.found import FoundRollout, chosen
from koordpolicy.cli.rollouts.text import as_data, details, span, table
from koordpolicy.cli.terminal import Terminal
from koordpolicy.model.policy_revision import LaggingAgent, LaggingState, RevisionAgents
from koordpolicy.runtime.clock import now_ns
from koordpolicy.runtime.rollout.counts import ComparisonCounts, ComparisonTally
from koordpolicy.runtime.rollout.judging import Gathered
from koordpolicy.runtime.rollout.machine import Judged, Seen, advance, begin
from koordpolicy.runtime.rollout.plan import RolloutGuard, RolloutPlan, RolloutStep
from koordpolicy.runtime.rollout.state import (
    Phase,
    RolloutAction,
    RolloutCommand,
    RolloutProgress,
    Subject,
    subject_to_json,
    to_json,
)

SECOND = 10**9
MINUTE = 60 * SECOND
PLAN = RolloutPlan(
    (RolloutStep("shadow", 10 * MINUTE), RolloutStep("few", 10 * MINUTE, share=5.0)),
    (RolloutGuard("alike", 5 * MINUTE),),
)


def subject(letter: str, previous: str = "0" * 40) -> Subject:
    return Subject(f"fleet-{letter * 12}", "fleet", letter * 40, "d" * 64, previous, letter * 40)


def keep(directory: Path, state: RolloutProgress) -> None:
    content = {"format": 1, "subject": subject_to_json(state.subject), "rollout": to_json(state)}
    (directory / "rollout.json").write_text(json.dumps(content), "utf-8")


def run(*arguments: str) -> tuple[int, str]:
    out = io.StringIO()
    return main(["rollout", *arguments], Terminal(out, out)), out.getvalue()


@pytest.fixture
def going(tmp_path: Path) -> RolloutProgress:
    """A rollout that began two minutes ago."""
    state = begin(subject("b"), PLAN, now_ns() - 2 * MINUTE)
    keep(tmp_path, state)
    return state


def test_there_may_be_none(tmp_path: Path) -> None:
    assert run("status", "--state-dir", str(tmp_path)) == (0, "no rollouts\n")
    assert run("status", "--state-dir", str(tmp_path), "-o", "json") == (0, "[]\n")
    code, text = run("pause", "--state-dir", str(tmp_path))
    assert (code, text) == (2, "koordpolicy rollout: no rollout goes on\n")


@pytest.mark.usefixtures("going")
def test_status_in_a_line_in_detail_and_as_data(tmp_path: Path) -> None:
    place = ("--state-dir", str(tmp_path))
    line = run("status", *place)[1].splitlines()[1].split()
    assert line[:4] == ["bbbbbbbbbbbb", "Progressing", "shadow", "2m"] or line[3].startswith("2m")
    code, text = run("status", "bbb", *place)
    assert code == 0
    assert "begins with the step `shadow`" in text
    data = json.loads(run("status", "bbb", *place, "-o", "json")[1])
    assert (data["name"], data["phase"], data["stepName"]) == ("fleet-bbbbbbbbbbbb", "Progressing", "shadow")


@pytest.mark.usefixtures("going")
@pytest.mark.parametrize("action", ["pause", "abort"])
def test_a_command_is_left_for_the_process(action: str, tmp_path: Path) -> None:
    code, text = run(action, "--state-dir", str(tmp_path), "--by", "ada")
    assert (code, text.startswith(f"bbbbbbbbbbbb: asked to {action}")) == (0, True)
    left = json.loads((tmp_path / "rollout-command.json").read_text())
    assert (left["command"], left["by"], left["revision"]) == (action, "ada", "fleet-bbbbbbbbbbbb")
    assert left["id"]


def test_what_makes_no_sense_is_refused(tmp_path: Path, going: RolloutProgress) -> None:
    place = ("--state-dir", str(tmp_path))
    assert run("resume", *place)[1] == "koordpolicy rollout: the rollout of bbbbbbbbbbbb is not paused\n"
    assert "there is no rollout of `ccc`" in run("pause", "ccc", *place)[1]
    paused = advance(going, PLAN, now_ns(), Seen(command=RolloutCommand(RolloutAction.PAUSE, "bob")))
    keep(tmp_path, paused)
    assert run("pause", *place) == (0, "bbbbbbbbbbbb is paused already: paused by bob\n")
    ended = advance(going, PLAN, now_ns(), Seen(command=RolloutCommand(RolloutAction.ABORT, "bob")))
    keep(tmp_path, ended)
    assert run("abort", "bbb", *place)[1].endswith("is over (aborted)\n")
    assert run("status", "bbb", *place)[0] == 1, "an aborted revision fails a pipeline that asks for it"


def test_the_revision_is_found_by_its_beginning() -> None:
    one, other = (FoundRollout(begin(subject(letter), PLAN, 0)) for letter in "ab")
    again = FoundRollout(begin(Subject("fleet2-aaaaaaaaaaaa", "fleet2", "a" * 40, "e" * 64, ""), PLAN, 0))
    assert chosen((one, other), "bb", None) is other
    assert chosen((one, again), "fleet-aaaaaaaaaaaa", None) is one
    assert chosen((one, again), "sha256:eee", None) is again
    with pytest.raises(Exception, match="may be `fleet-aaaaaaaaaaaa`, `fleet2-aaaaaaaaaaaa`"):
        chosen((one, again), "aaaa", None)
    with pytest.raises(Exception, match="several rollouts go on"):
        chosen((one, other), None, RolloutAction.PAUSE)


def full() -> tuple[FoundRollout, int]:
    now = 1_800_000_000 * SECOND
    state = begin(subject("b", "sha256:" + "0" * 64), PLAN, now)
    seen = Seen(
        {"alike": Judged(False, "3% of the answers differ, which is more than anybody would have thought")}
    )
    state = advance(
        state,
        PLAN,
        now + MINUTE,
        Seen({"alike": Judged(True)}, RolloutCommand(RolloutAction.PAUSE, "ada@example", "1")),
    )
    state = advance(state, PLAN, now + 2 * MINUTE, seen)
    counts = ComparisonCounts(
        {"CPUSuppress": ComparisonTally(12_345, 123, 7), "Overcommit": ComparisonTally(50, 0, 0)}
    )
    return FoundRollout(state, Gathered(counts, 12, 1, 3), "resume"), now + 90 * MINUTE


def test_everything_fits_into_eighty_columns() -> None:
    found, now = full()
    text = [*table([found], now, 80), "", *details(found, now, 80)]
    assert max(map(len, text)) <= 80
    assert text[1].split() == ["bbbbbbbbbbbb", "Paused", "shadow", "1h30m", "12,395", "1.0%"]
    whole = "\n".join(text)
    for part in (
        "paused by ada@example",
        "to resume, not obeyed yet",
        "12 processes, 1 of them cannot take it",
        "CPUSuppress: 123 of 12,345 differ, 7 fail",
        "`alike` for 1h28m",
        "2027-01-15T08:01:00Z paused by ada@example",
    ):
        assert part in whole, part


def test_agents_are_added_up_and_those_that_lag_are_named() -> None:
    lagging = (
        LaggingAgent(
            "n7", LaggingState.REJECTED, "0" * 40, "CompileFailed", "all.yaml:5:3: KP203 no such fact"
        ),
        LaggingAgent("n8", LaggingState.SILENT),
    )
    agents = RevisionAgents(117, rejected=1, behind=1, silent=1, total=120, lagging=lagging)
    found, now = full()
    found = replace(found, gathered=Gathered(instances=130, rejected=1, agents=agents))
    text = list(details(found, now, 80))
    assert max(map(len, text)) <= 80
    whole = " ".join(" ".join(text).split())
    for part in (
        "130 processes, 118 of them agents, 1 of them cannot take it",
        "117/120 run it, 1 cannot take it, 1 behind, 1 silent",
        "n7 rejected, runs 0000000000000000000000000000000000000000; CompileFailed: all.yaml:5:3: KP203",
        "n8 silent, runs nothing",
    ):
        assert part in whole, part
    assert as_data(found)["agents"]["summary"] == "117/120"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59, "59s"), (60, "1m"), (3_661, "1h1m"), (7_200, "2h"), (90_061, "1d1h"), (86_400, "1d")],
)
def test_spans(seconds: int, text: str) -> None:
    assert span(seconds * SECOND) == text


def test_a_plan_in_words() -> None:
    example = Path(__file__).parents[3] / "examples" / "04-careful-rollout"
    code, text = run("plan", str(example))
    assert code == 0
    assert "3. few: decides on 5% of nodes, for 30m" in text
    assert "- taken: rollout.instances.rejected == 0; failing for 5m pauses" in text
    assert run("plan", str(example.parent / "03-own-filter"))[1].startswith("no Rollout")
    assert max(map(len, text.splitlines())) <= 80


def test_an_end_is_shown_without_a_step() -> None:
    state = begin(subject("b"), PLAN, 0)
    for minute in (10, 20):
        state = advance(state, PLAN, minute * MINUTE, Seen({"alike": Judged(True)}))
    assert state.phase is Phase.COMPLETE
    assert list(table([FoundRollout(state)], 30 * MINUTE, 80))[1].split() == ["bbbbbbbbbbbb", "Complete"]
