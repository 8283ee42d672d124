"""Reloading: newer revisions take over as a whole, bad ones never do."""

import asyncio
import json
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from koordpolicy.diagnostics import Diagnostics, Span
from koordpolicy.graph import RuleGraph
from koordpolicy.runtime.metrics import Metrics
from koordpolicy.runtime.policies.compiling import Scrutiny
from koordpolicy.runtime.policies.fixed import FixedSource
from koordpolicy.runtime.policies.lastgood import FILE, LastGood
from koordpolicy.runtime.policies.live import LivePolicies, NoPolicies
from koordpolicy.runtime.policies.revisions import ActiveRevision, Reason, RejectedRevision, Unfit
from koordpolicy.source.revision import Revision, SourceTrouble, digest_of
from tests.unit.runtime.scenes import broken, live_of, running, target, tree, until


def test_the_first_revision_and_then_a_newer_one_decide() -> None:
    async def scene() -> None:
        source, metrics = FixedSource("memory"), Metrics("test")
        live = live_of(source, metrics)
        heard: list[str] = []
        live.subscribe(lambda active: heard.append(active.revision.commit))
        async with running(live.run()):
            source.give(tree(1000), "a" * 40)
            await until(live.ready.is_set)
            assert target(live) == 1000
            source.give(tree(2000), "b" * 40)
            await until(lambda: target(live) == 2000)
        assert heard == ["a" * 40, "b" * 40]
        assert live.active is not None
        assert live.active.bundle == "fleet"
        assert live.active.revision.name == "b" * 40
        labels = {"revision": "b" * 40, "digest": live.active.revision.digest}
        assert metrics.value("koordpolicy_active_revision_info", **labels) == 1
        assert metrics.value("koordpolicy_active_revision_info", revision="a" * 40, digest="") is None
        assert metrics.value("koordpolicy_reload_total", result="activated", reason="Succeeded") == 2
        assert metrics.value("koordpolicy_reload_detected_total", source="memory") == 2

    asyncio.run(scene())


def test_nothing_can_be_asked_before_a_revision_is_active() -> None:
    async def scene() -> None:
        live = live_of(FixedSource("memory"))
        with pytest.raises(NoPolicies):
            _ = live.graph
        with pytest.raises(AttributeError):
            _ = live.grpah

    asyncio.run(scene())


def test_a_late_subscriber_hears_of_the_active_revision_and_no_more_after_leaving() -> None:
    async def scene() -> None:
        source = FixedSource("memory", tree(1))
        live = live_of(source)
        heard: list[ActiveRevision] = []
        async with running(live.run()):
            await until(live.ready.is_set)
            leave = live.subscribe(heard.append)
            assert [active.graph for active in heard] == [live.graph]
            leave()
            source.give(tree(2))
            await until(lambda: target(live) == 2)
        assert len(heard) == 1

    asyncio.run(scene())


def test_a_listener_that_fails_stops_neither_the_others_nor_the_reload(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scene() -> None:
        source = FixedSource("memory", tree(1))
        live = live_of(source)
        heard: list[ActiveRevision] = []

        def fail(_: ActiveRevision) -> None:
            raise RuntimeError("no")

        live.subscribe(fail)
        live.subscribe(heard.append)
        async with running(live.run()):
            await until(lambda: heard)

    asyncio.run(scene())
    assert "a listener failed" in caplog.text


def unreadable() -> Revision:
    files, found = tree(3), Diagnostics()
    found.add("KP001", Span.at("other.yaml"), "the file is not UTF-8")
    return Revision(files, digest_of(files), found=found)


def revision(files: dict[str, str]) -> Revision:
    return Revision(files, digest_of(files))


FAILING_TEST = """\
apiVersion: koordpolicy.io/v1alpha1
kind: PolicyTest
metadata: {name: target}
spec:
  cases:
    - name: wrong
      expect: {CPUSuppress.target: 7}
"""


@pytest.mark.parametrize(
    ("bad", "reason", "code"),
    [
        (revision(broken()), Reason.COMPILE_FAILED, "KP203"),
        (unreadable(), Reason.READ_FAILED, "KP001"),
        (revision({}), Reason.NO_POLICIES, ""),
        (revision({"a.yaml": "spec: [", **tree(1)}), Reason.COMPILE_FAILED, "KP002"),
        (revision(tree(3, **{"t.test.yaml": FAILING_TEST})), Reason.TESTS_FAILED, "KP501"),
    ],
    ids=["wrong", "unreadable", "empty", "no YAML", "test fails"],
)
def test_a_bad_revision_is_rejected_as_a_whole_and_the_fix_heals_it(
    bad: Revision, reason: Reason, code: str
) -> None:
    async def scene() -> None:
        source, metrics = FixedSource("memory", tree(1)), Metrics("test")
        live = live_of(source, metrics)
        refused: list[RejectedRevision] = []
        live.subscribe_rejected(refused.append)
        async with running(live.run()):
            await until(live.ready.is_set)
            good = live.graph
            source.say(bad)
            await until(lambda: live.rejected)
            assert live.graph is good
            rejected = live.rejected
            assert rejected is not None
            assert rejected.reason is reason
            assert rejected.message
            assert {one.code for one in rejected.errors} == ({code} if code else set())
            assert refused == [rejected]
            labels = {"revision": bad.name, "digest": bad.digest, "reason": reason.value}
            assert metrics.value("koordpolicy_rejected_revision_info", **labels) == 1
            source.give(tree(2))
            await until(lambda: target(live) == 2)
            assert live.rejected is None
            assert metrics.value("koordpolicy_rejected_revision_info", **labels) is None
        assert [past.activated for past in live.history] == [True, False, True]

    asyncio.run(scene())


def test_policy_tests_may_be_left_out() -> None:
    async def scene() -> None:
        live = live_of(
            FixedSource("memory", tree(3, **{"t.test.yaml": FAILING_TEST})), scrutiny=Scrutiny.CHECKS
        )
        async with running(live.run()):
            await until(live.ready.is_set)
            assert target(live) == 3

    asyncio.run(scene())


def test_a_graph_that_the_component_cannot_work_with_is_rejected() -> None:
    def prepare(graph: RuleGraph) -> None:
        if graph.value("CPUSuppress.target", node={}) == 13:
            raise Unfit("thirteen is no good here")

    async def scene() -> None:
        source = FixedSource("memory", tree(1))
        live = live_of(source, prepare=prepare)
        async with running(live.run()):
            await until(live.ready.is_set)
            source.give(tree(13))
            await until(lambda: live.rejected)
            assert live.rejected is not None
            assert (live.rejected.reason, live.rejected.message) == (
                Reason.UNFIT,
                "thirteen is no good here",
            )
            assert target(live) == 1

    asyncio.run(scene())


def test_a_compiler_that_fails_rejects_the_revision_and_compiles_the_next(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A mistake of ours must not stop what runs."""

    def prepare(graph: RuleGraph) -> None:
        if graph.value("CPUSuppress.target", node={}) == 13:
            raise ZeroDivisionError("unlucky")

    async def scene() -> None:
        source = FixedSource("memory", tree(1))
        live = live_of(source, prepare=prepare)
        async with running(live.run()):
            await until(live.ready.is_set)
            source.give(tree(13))
            await until(lambda: live.rejected)
            assert live.rejected is not None
            assert live.rejected.reason is Reason.INTERNAL_ERROR
            assert "ZeroDivisionError: unlucky" in live.rejected.message
            source.give(tree(2))
            await until(lambda: target(live) == 2)

    asyncio.run(scene())
    assert "the compiler failed" in caplog.text


def test_only_the_newest_of_many_is_compiled() -> None:
    async def scene() -> None:
        held, entered = threading.Event(), threading.Event()

        def prepare(graph: RuleGraph) -> None:
            if graph.value("CPUSuppress.target", node={}) == 1:
                entered.set()
                assert held.wait(30)

        source, metrics = FixedSource("memory", tree(1)), Metrics("test")
        live = live_of(source, metrics, prepare=prepare)
        async with running(live.run()):
            await until(entered.is_set)
            for number in range(2, 12):
                source.give(tree(number))
            await until(lambda: live.skipped == 9)
            held.set()
            await until(lambda: live.active and target(live) == 11)
        assert [past.activated for past in live.history] == [True, True]
        assert metrics.value("koordpolicy_reload_skipped_total") == 9

    asyncio.run(scene())


def test_programs_that_were_asked_for_are_ready_in_the_next_revision() -> None:
    async def scene() -> None:
        source = FixedSource("memory", tree(1))
        live = live_of(source)
        async with running(live.run()):
            await until(live.ready.is_set)
            assert not live.graph.asked
            assert target(live) == 1
            source.give(tree(2))
            await until(lambda: live.active and live.active.revision.digest == digest_of(tree(2)))
            assert live.graph.asked == ("CPUSuppress.target",)

    asyncio.run(scene())


def test_trouble_is_told_and_over_when_policies_come_again(caplog: pytest.LogCaptureFixture) -> None:
    async def scene() -> None:
        source, metrics = FixedSource("memory"), Metrics("test")
        live = live_of(source, metrics)
        source.say(SourceTrouble("Missing", "nothing is there yet"))
        async with running(live.run()):
            await until(lambda: live.trouble)
            source.give(tree(1))
            await until(live.ready.is_set)
            assert "memory gives policies" in caplog.text
            assert "again" not in caplog.text, "it is the first time"
            source.say(SourceTrouble("Missing", "the link is gone"))
            await until(lambda: live.trouble)
            assert target(live) == 1
            assert metrics.value("koordpolicy_source_trouble", reason="Missing") == 1
            source.give(tree(2))
            await until(lambda: target(live) == 2)
            assert live.trouble is None
            assert metrics.value("koordpolicy_source_trouble", reason="Missing") is None

    with caplog.at_level("INFO"):
        asyncio.run(scene())
    assert "the link is gone; the last good revision stays" in caplog.text
    assert "memory gives policies again" in caplog.text


# --- restarts


def reason_of(live: LivePolicies) -> Reason | None:
    return live.active.reason if live.active is not None else None


async def keep(store: LastGood, number: int) -> None:
    """Run once with a good revision, until it is kept."""
    live = live_of(
        FixedSource(
            "memory",
            tree(number),
        ),
        store=store,
    )
    async with running(live.run()):
        await until(lambda: (kept := store.load()) is not None and kept.files == tree(number))


def test_what_is_kept_and_given_again_is_compiled_once(tmp_path: Path) -> None:
    async def scene() -> None:
        store = LastGood(tmp_path / "state")
        await keep(store, 5)
        prepared: list[RuleGraph] = []
        source = FixedSource("memory")
        live = live_of(source, store=store, prepare=prepared.append)
        async with running(live.run()):
            await until(lambda: reason_of(live) is Reason.STARTED_FROM_CACHE)
            graph = live.graph
            assert target(live) == 5
            source.give(tree(5), commit="c" * 40)
            await until(lambda: reason_of(live) is Reason.SUCCEEDED)
            assert live.graph is graph
            assert live.active is not None
            assert live.active.revision.commit == "c" * 40
            source.give(tree(6))
            await until(lambda: target(live) == 6)
        assert prepared == [graph, live.graph]

    asyncio.run(scene())


@pytest.mark.parametrize("item", [revision(broken()), SourceTrouble("Missing", "nothing there"), None])
def test_a_restart_takes_the_kept_tree_where_the_source_is_bad_or_absent(
    item: Revision | SourceTrouble | None, tmp_path: Path
) -> None:
    async def scene() -> None:
        store = LastGood(tmp_path / "state")
        await keep(store, 5)
        source = FixedSource("memory")
        if item is not None:
            source.say(item)
        live = live_of(source, store=store)
        async with running(live.run()):
            await until(live.ready.is_set)
            assert target(live) == 5
            assert reason_of(live) is Reason.STARTED_FROM_CACHE
            assert (live.rejected is None) == (not isinstance(item, Revision))
            source.give(tree(6))
            await until(lambda: target(live) == 6)
            assert reason_of(live) is Reason.SUCCEEDED
            await until(lambda: (kept := store.load()) is not None and kept.files == tree(6))

    asyncio.run(scene())


def test_bad_good_bad_over_a_restart(tmp_path: Path) -> None:
    async def scene() -> None:
        store = LastGood(tmp_path)
        source = FixedSource("memory", broken())
        live = live_of(source, store=store)
        async with running(live.run()):
            await until(lambda: live.rejected)
            assert live.active is None
            source.give(tree(1), "c" * 40)
            await until(live.ready.is_set)
            source.give(broken(**{"more.yaml": "a: 1"}))
            await until(lambda: live.rejected)
            assert target(live) == 1
        again = live_of(FixedSource("memory", broken()), store=store)
        async with running(again.run()):
            await until(again.ready.is_set)
            assert target(again) == 1
            assert again.active is not None
            assert again.active.revision.commit == "c" * 40
            assert again.rejected is not None

    asyncio.run(scene())


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-10],
        lambda text: text.replace("millicores(5)", "millicores(6)"),
        lambda text: "[]",
        lambda text: json.dumps({**json.loads(text), "format": 99}),
        lambda text: json.dumps({**json.loads(text), "files": {"a.yaml": 1}}),
        lambda text: json.dumps({key: value for key, value in json.loads(text).items() if key != "commit"}),
        lambda text: "[" * 100_000,
    ],
)
def test_a_damaged_kept_tree_is_not_used(
    damage: object, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        store = LastGood(tmp_path)
        await keep(store, 5)
        file = tmp_path / FILE
        assert callable(damage)
        file.write_text(damage(file.read_text("utf-8")), "utf-8")
        source = FixedSource("memory", broken())
        live = live_of(source, store=store)
        async with running(live.run()):
            await until(lambda: "of no use" in caplog.text)
            assert live.active is None
            source.give(tree(6))
            await until(live.ready.is_set)

    asyncio.run(scene())


def test_a_state_directory_that_cannot_be_written_is_told_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene() -> None:
        (tmp_path / "file").write_text("")
        source = FixedSource("memory", tree(1))
        live = live_of(source, store=LastGood(tmp_path / "file"))
        async with running(live.run()):
            await until(lambda: "cannot be kept" in caplog.text)
            source.give(tree(2))
            await until(lambda: live.active and target(live) == 2)

    asyncio.run(scene())


def test_keeping_leaves_nothing_else_behind(tmp_path: Path) -> None:
    store = LastGood(tmp_path)
    for number in range(3):
        store.save(revision(tree(number)))
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    kept = store.load()
    assert kept is not None
    assert kept.files == tree(2)


# --- atomicity

PAIR = """\
apiVersion: koordpolicy.io/v1alpha1
kind: CPUSuppress
metadata: {{name: all}}
spec:
  target: {{cel: "millicores({number})"}}
  minimum: {{cel: "millicores({number})"}}
"""


def pair(number: int) -> dict[str, str]:
    """Two decisions of one number, in one file each, with a parameterless bundle."""
    return {**tree(number), "all.yaml": PAIR.format(number=number)}


@settings(max_examples=8)
@given(st.lists(st.one_of(st.integers(1, 5), st.just(0)), min_size=2, max_size=12))
def test_reload_under_concurrent_evaluation_is_atomic(numbers: list[int]) -> None:
    """Whoever reads the graph once gets all answers from one revision, and always from one that was good."""

    async def scene() -> list[tuple[int, int, str]]:
        source = FixedSource("memory", pair(9))
        live = live_of(source)
        seen: list[tuple[int, int, str]] = []
        stop = threading.Event()

        def ask(live: LivePolicies) -> None:
            while not stop.is_set():
                graph = live.graph
                first = graph.value("CPUSuppress.target", node={})
                answer = graph.ask("CPUSuppress.minimum", node={})
                seen.append((first, answer.value, answer.provenance.digest))  # type: ignore[arg-type]

        async with running(live.run()):
            await until(live.ready.is_set)
            threads = [threading.Thread(target=ask, args=(live,)) for _ in range(2)]
            for thread in threads:
                thread.start()
            for number in numbers:
                before = len(live.history)
                source.give(pair(number) if number else broken())
                await until(lambda before=before: len(live.history) > before)  # type: ignore[misc]
            stop.set()
            for thread in threads:
                thread.join()
        return seen

    seen = asyncio.run(scene())
    assert seen
    assert {(first, second) for first, second, _ in seen} <= {(n, n) for n in {9, *numbers} if n}
    of_number: dict[int, set[str]] = {}
    for number, _, digest in seen:
        of_number.setdefault(number, set()).add(digest)
    assert all(len(digests) == 1 for digests in of_number.values())
