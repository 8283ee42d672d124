"""Trials: whatever a revision does where it is tried, the process that asks only hears how it ended."""

import os
import signal
import sys
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from koordpolicy.graph import Compiler, Layer, RuleGraph
from koordpolicy.runtime.policies.packs import BARE, OWN, find_pack
from koordpolicy.runtime.policies.revisions import Reason, Unfit
from koordpolicy.runtime.trial.attempt import attempt
from koordpolicy.runtime.trial.client import Trials, start_trials
from koordpolicy.runtime.trial.limits import MIB, TrialLimits
from koordpolicy.runtime.trial.verdict import Rehearse, TrialRequest, TrialsLost
from koordpolicy.runtime.trial.wire import unpacked
from tests.unit.runtime.scenes import broken, tree

SMALL = TrialLimits(cpu=2, memory=200 * MIB)
FAILING = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyTest
metadata: {name: target}
spec:
  cases:
    - name: it is two
      expect: {CPUSuppress.target: 2}
"""


SECOND = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {name: pool}
spec:
  match: {nodes: {matchLabels: {pool: a}}}
  target: {cel: "%s"}
"""


@contextmanager
def trials(rehearse: Rehearse | None = None, limits: TrialLimits = SMALL) -> Iterator[Trials]:
    started = start_trials(limits, rehearse, packs=lambda name: None)
    assert started is not None
    with started:
        yield started


def reasons(one: Trials, *requests: TrialRequest) -> list[Reason | None]:
    return [one.attempt(request).reason for request in requests]


def test_good_and_bad_revisions_are_told_apart_one_after_another() -> None:
    with trials() as one:
        assert reasons(
            one, TrialRequest(tree(1)), TrialRequest(tree(2)), TrialRequest(broken()), TrialRequest(tree(3))
        ) == [
            None,
            None,
            Reason.COMPILE_FAILED,
            None,
        ]
        refused = one.attempt(TrialRequest(broken()))
    assert refused.message.startswith("all.yaml:5:")
    assert [found.code for found in refused.found] == ["KP203"]
    assert refused.bundle == "fleet"


def test_tests_count_where_they_are_wanted() -> None:
    files = tree(1, **{"target.test.yaml": FAILING})
    with trials() as one:
        assert reasons(one, TrialRequest(files), TrialRequest(files, tests=False)) == [
            Reason.TESTS_FAILED,
            None,
        ]


def test_decisions_that_were_asked_before_and_are_gone_do_not_matter() -> None:
    with trials() as one:
        assert reasons(
            one, TrialRequest(tree(1), asked=("CPUSuppress.target", "AdmissionRule/gone.require"))
        ) == [None]


def spin(_: RuleGraph) -> None:
    while True:
        pass


def devour(_: RuleGraph) -> None:
    kept = []
    while True:
        kept.append(bytearray(10 * MIB))


def crash(_: RuleGraph) -> None:
    os.kill(os.getpid(), signal.SIGSYS)


def be_killed(_: RuleGraph) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def leave(_: RuleGraph) -> None:
    os._exit(3)


def be_wrong(_: RuleGraph) -> None:
    raise ZeroDivisionError("a mistake of ours")


def not_fit(_: RuleGraph) -> None:
    raise Unfit("the policies have no scheduling profile `mine`")


def interrupt(_: RuleGraph) -> None:
    sys.exit(0)


DOING = "while the component tried it on an example"


@pytest.mark.parametrize(
    ("rehearse", "reason", "said"),
    [
        (spin, Reason.LIMIT_EXCEEDED, f"it takes more than 2 s of CPU time, {DOING} (--policy-trial-cpu)"),
        (devour, Reason.LIMIT_EXCEEDED, f"MiB of memory, {DOING} (--policy-trial-memory)"),
        (crash, Reason.INTERNAL_ERROR, f"its trial ended with SIGSYS, {DOING}; please report this"),
        (
            be_killed,
            Reason.LIMIT_EXCEEDED,
            "its trial was killed, as the kernel does where memory runs short",
        ),
        (leave, Reason.INTERNAL_ERROR, f"its trial ended with code 3, {DOING}"),
        (be_wrong, Reason.INTERNAL_ERROR, "the compiler failed (ZeroDivisionError: a mistake of ours)"),
        (interrupt, Reason.INTERNAL_ERROR, f"its trial ended with code 1, {DOING}"),
        (not_fit, Reason.UNFIT, "the policies have no scheduling profile `mine`"),
    ],
)
def test_whatever_happens_in_a_trial_is_a_verdict_and_the_next_trial_goes_on(
    rehearse: Callable[[RuleGraph], None], reason: Reason, said: str
) -> None:
    def only_for_one(graph: RuleGraph) -> None:
        if graph.value("CPUSuppress.target", node={}) == 666:
            rehearse(graph)

    with trials(only_for_one) as one:
        assert one.attempt(TrialRequest(tree(1))).reason is None
        verdict = one.attempt(TrialRequest(tree(666)))
        assert verdict.reason is reason
        assert said in verdict.message
        assert one.attempt(TrialRequest(tree(2))).reason is None


def test_what_found_a_revision_good_tries_the_next_one_within_limits_of_its_own() -> None:
    """A trial's limits are its own: CPU time of good ones does not add up, and memory counts from where each began."""

    def at_work(graph: RuleGraph) -> None:
        began = time.process_time()
        kept = bytearray(120 * MIB)
        while time.process_time() - began < 0.7:
            kept[0] += 0
        if graph.value("CPUSuppress.target", node={}) == 666:
            raise Unfit("it is the last one")

    def oom_score() -> int:
        return int(Path(f"/proc/{one.pid}/oom_score_adj").read_text())

    with trials(at_work) as one:
        before, first = oom_score(), one.pid
        assert reasons(one, *(TrialRequest(tree(number)) for number in range(1, 5))) == [None] * 4
        assert one.pid != first
        deadline = time.monotonic() + 30
        while oom_score() != before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert oom_score() == before
        last = one.pid
        assert one.attempt(TrialRequest(tree(666))).reason is Reason.UNFIT
        assert one.pid == last
    assert not Path(f"/proc/{first}").exists()


def test_one_that_sleeps_is_given_up_by_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TrialLimits, "wall", 3.0)

    def sleep(_: RuleGraph) -> None:
        time.sleep(60)

    with trials(sleep) as one:
        verdict = one.attempt(TrialRequest(tree(1)))
    assert verdict.reason is Reason.LIMIT_EXCEEDED
    assert verdict.message.startswith(f"it took more than 3 s, {DOING}")


def test_an_evaluation_that_takes_long_refuses_the_revision() -> None:
    with trials(limits=TrialLimits(evaluation=-1.0)) as one:  # any time is too long
        verdict = one.attempt(TrialRequest(tree(1)))
    assert verdict.reason is Reason.LIMIT_EXCEEDED
    assert verdict.message == "`CPUSuppress.target` took 0.0 s on an example, more than -1 s"


def test_without_the_process_behind_it_nothing_is_tried_and_that_is_told() -> None:
    with trials() as one:
        assert one.attempt(TrialRequest(tree(1))).reason is None
        os.kill(one.pid, signal.SIGKILL)
        for _ in range(2):
            with pytest.raises(TrialsLost):
                one.attempt(TrialRequest(tree(2)))


def test_closing_ends_a_trial_under_way() -> None:
    pids = Path("/proc")

    def children_of(pid: int) -> list[str]:
        return (pids / str(pid) / "task" / str(pid) / "children").read_text().split()

    with trials(spin, TrialLimits(cpu=600)) as one:

        def asking() -> None:
            with pytest.raises(TrialsLost):
                one.attempt(TrialRequest(tree(1)))

        thread = Thread(target=asking)
        thread.start()
        deadline = time.monotonic() + 30
        while not (found := children_of(one.pid)) and time.monotonic() < deadline:
            time.sleep(0.01)
        one.close()
        thread.join(30)
        assert not thread.is_alive()
    assert found
    assert not any((pids / pid).exists() for pid in found)


def test_what_was_made_for_a_trial_need_not_be_made_again() -> None:
    files = tree(1500)
    with trials() as one:
        verdict = one.attempt(TrialRequest(files, asked=("CPUSuppress.target",)))
    graph = Compiler(lambda name: None).compile(Layer(OWN, files), checked=True).graph
    assert graph is not None
    assert graph.digest == verdict.digest
    graph.adopt(verdict.programs)
    assert graph.asked == ("CPUSuppress.target",)
    assert graph.value("CPUSuppress.target", node={}) == 1500


def test_only_what_is_new_is_evaluated_again() -> None:
    two = SECOND % "node.capacity.cpu"
    compiler = Compiler(lambda name: None)
    done: list[str] = []

    def tried(files: dict[str, str], before: RuleGraph | None) -> RuleGraph:
        done.clear()
        verdict, _ = attempt(compiler, TrialRequest(files), SMALL, None, done.append, before)
        assert verdict.reason is None, verdict.message
        graph = compiler.compile(Layer(OWN, files)).graph
        assert graph is not None
        return graph

    def evaluated() -> list[str]:
        return [said for said in done if said.endswith("was evaluated on an example")]

    first = tried(tree(1, **{"two.yaml": two}), None)
    assert len(evaluated()) == 1
    second = tried(tree(2, **{"two.yaml": two}), first)
    assert len(evaluated()) == 1
    tried(tree(2, **{"two.yaml": two}), second)
    assert evaluated() == []


def test_a_rule_that_is_new_and_takes_long_is_found_beside_old_ones() -> None:
    files = tree(1, **{"two.yaml": SECOND % "node.capacity.cpu"})
    compiler = Compiler(lambda name: None)
    before = compiler.compile(Layer(OWN, files)).graph
    changed = tree(1, **{"two.yaml": SECOND % "node.capacity.cpu - millicores(1)"})
    limits = TrialLimits(evaluation=-1.0)
    verdict, _ = attempt(compiler, TrialRequest(changed), limits, None, lambda _: None, before)
    assert verdict.reason is Reason.LIMIT_EXCEEDED
    assert verdict.message.startswith("`CPUSuppress.target` took 0.0 s on an example")


EXCEPTION = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyException
metadata: {name: for-a-while}
spec:
  owner: team a <a@example.com>
  reason: a test of what begins later
  from: "2999-01-01"
  expires: "2999-02-01"
  match: {nodes: {matchLabels: {pool: a}}}
  overrides:
    CPUSuppress.minimum: 1
"""


@pytest.fixture(scope="module")
def of_the_pack() -> Mapping[Hashable, object]:
    """What compiling the built-in pack makes, checks included."""
    compiler = Compiler(find_pack)
    compiler.compile(Layer(OWN, dict([BARE])))
    return compiler.kept()


EXAMPLES = sorted(path.parent for path in Path("examples").rglob("koordpolicy.yaml"))


@pytest.mark.parametrize(
    ("bundle", "kept"),
    [(EXAMPLES[0], False), *((example, True) for example in EXAMPLES)],
    ids=lambda value: value.as_posix() if isinstance(value, Path) else "kept" if value else "anew",
)
def test_what_a_trial_learned_of_a_revision_spares_the_live_process_the_work(
    bundle: Path, of_the_pack: Mapping[Hashable, object], *, kept: bool
) -> None:
    """With and without results of the pack that the trial has not made itself but taken from where commands keep them."""
    files = {str(path.relative_to(bundle)): path.read_text() for path in bundle.rglob("*.yaml")}
    trial = Compiler(find_pack)
    if kept:
        trial.learn(of_the_pack, hand_on=True)
    verdict, graph = attempt(trial, TrialRequest(files), TrialLimits(), None, lambda _: None)
    assert graph is not None, verdict.message
    compiler = Compiler(find_pack)
    for made in unpacked(verdict.learned):
        compiler.learn(made)
    compilation = compiler.compile(Layer(OWN, files), checked=True)
    assert compilation.graph is not None
    assert compilation.graph.digest == graph.digest
    assert not compiler.made
    for name in map(str, graph.decisions):
        assert compilation.graph.program(name).source == graph.program(name).source


def test_a_component_is_put_to_work_with_exceptions_that_begin_later() -> None:
    seen: list[int] = []

    def note(graph: RuleGraph) -> None:
        seen.append(len(graph.in_force))

    files = tree(1, **{"exception.yaml": EXCEPTION})
    verdict, _ = attempt(Compiler(lambda name: None), TrialRequest(files), SMALL, note, lambda _: None)
    assert verdict.reason is None, verdict.message
    assert seen == [0, 1, 0]
