"""PolicyRevision objects: who runs what, what is wrong, and nothing left over."""

import asyncio
from collections.abc import AsyncGenerator

from koordpolicy.kube.resources import EVENTS
from koordpolicy.model.policy_revision import InstanceState, revision_name
from koordpolicy.runtime.policies.gating import Admission, RolloutStage
from koordpolicy.runtime.policies.revisions import ActiveRevision, CandidateRevision
from koordpolicy.runtime.reports.presence import Member
from koordpolicy.runtime.reports.revision_objects import RevisionObjects, Who
from koordpolicy.runtime.reports.speaker import KEPT
from tests.unit.runtime.replicas import Replica, World
from tests.unit.runtime.scenes import Ticks, broken, tree, until

ONE, TWO, BAD = "1" * 40, "2" * 40, "b" * 40


def test_two_replicas_each_write_their_own_entry() -> None:
    async def scene() -> None:
        world = World()
        async with Replica(world, "m1").played() as first, Replica(world, "m2").played() as second:
            for replica in (first, second):
                replica.source.give(tree(1), ONE)
            one = revision_name("fleet", ONE)
            await until(lambda: world.instances(one) == {"m1": "Active", "m2": "Active"})
            obj = world.revisions()[one]
            assert obj["spec"]["bundle"] == "fleet"
            assert (obj["spec"]["commit"], obj["spec"]["revision"], obj["spec"]["origin"]) == (
                ONE,
                ONE,
                "memory",
            )
            assert world.conditions(one) == {"Ready": ("Unknown", "Reported")}  # nobody speaks for all
            first.source.give(tree(2), TWO)
            two = revision_name("fleet", TWO)
            await until(lambda: world.instances(two) == {"m1": "Active"})
            await until(lambda: world.instances(one) == {"m2": "Active"})
            await first.reporter.withdraw()
            assert world.instances(two) == {}
            assert world.instances(one) == {"m2": "Active"}

    asyncio.run(scene())


def test_the_leader_says_what_is_wrong_and_tells_the_audit_trail() -> None:
    async def scene() -> None:
        world = World()
        async with Replica(world, "m1", leads=True).played() as replica:
            one, two, bad = (revision_name("fleet", commit) for commit in (ONE, TWO, BAD))
            replica.source.give(tree(1), ONE)
            await until(lambda: world.conditions(one) == {"Ready": ("True", "Succeeded")})
            assert world.revisions()[one]["status"]["rules"] == {"total": 1}
            replica.source.give(broken(), BAD)
            stalled = {"Ready": ("False", "CompileFailed"), "Stalled": ("True", "CompileFailed")}
            await until(lambda: world.conditions(bad) == stalled)
            assert world.instances(bad) == {"m1": "Rejected"}
            assert world.conditions(one) == {"Ready": ("True", "Succeeded")}
            status = world.revisions()[bad]["status"]
            assert all(one["message"].endswith("mends it, or revert") for one in status["conditions"])
            assert status["observedGeneration"] == 1
            (finding,) = status["diagnostics"]
            assert (finding["code"], finding["path"], finding["line"]) == ("KP203", "all.yaml", 5)
            assert status["diagnosticsTotal"] == 1
            replica.source.give(tree(2), TWO)
            await until(lambda: world.conditions(two) == {"Ready": ("True", "Succeeded")})
            await until(lambda: world.conditions(one) == {"Ready": ("False", "Superseded")})
            assert world.conditions(bad) == stalled
            await until(lambda: world.instances(bad) == {})
            await replica.recorder.flush()
            told = [
                (event["involvedObject"]["name"], event["type"], event["reason"])
                for event in world.store.list(EVENTS).items
            ]
            assert sorted(told) == [
                (one, "Normal", "PolicyRevisionActivated"),
                (two, "Normal", "PolicyRevisionActivated"),
                (bad, "Warning", "PolicyRevisionRejected"),
            ]

    asyncio.run(scene())


def test_a_report_waits_for_the_cluster_and_decisions_do_not() -> None:
    async def scene() -> None:
        world = World()
        world.away = True
        async with Replica(world, "m1", leads=True).played() as replica:
            replica.source.give(tree(1), ONE)
            await until(replica.live.ready.is_set)
            failed = ("koordpolicy_policy_status_writes_total", "PolicyRevision", "failed")
            await until(lambda: replica.metrics.value(failed[0], kind=failed[1], result=failed[2]))
            world.away = False
            await until(lambda: world.instances(revision_name("fleet", ONE)) == {"m1": "Active"})

    asyncio.run(scene())


def test_a_restart_under_the_same_name_takes_back_what_it_said_before() -> None:
    async def scene() -> None:
        world = World()
        one, two = revision_name("fleet", ONE), revision_name("fleet", TWO)
        async with Replica(world, "m1").played() as replica:
            replica.source.give(tree(1), ONE)
            await until(lambda: world.instances(one) == {"m1": "Active"})
        async with Replica(world, "m1").played() as replica:
            replica.source.give(tree(2), TWO)
            await until(lambda: world.instances(two) == {"m1": "Active"})
            await until(lambda: world.instances(one) == {})

    asyncio.run(scene())


def test_old_revisions_are_removed_but_not_those_that_run() -> None:
    async def scene() -> None:
        world = World()
        async with (
            Replica(world, "old").played() as old,
            Replica(world, "m1", leads=True).played() as replica,
        ):
            old.source.give(tree(1), "e" * 40)
            await until(lambda: world.instances(revision_name("fleet", "e" * 40)))
            for number in range(KEPT + 5):
                world.now += 60
                commit = f"{number:06d}{'0' * 34}"
                replica.source.give(tree(number + 1), commit)
                name = revision_name("fleet", commit)
                await until(lambda name=name: world.conditions(name).get("Ready") == ("True", "Succeeded"))  # type: ignore[misc]
            running_one = revision_name("fleet", "e" * 40)
            newest = {f"fleet-{number:06d}000000" for number in range(6, KEPT + 5)}
            await until(lambda: set(world.revisions()) == {running_one, *newest})
            assert len(newest) == KEPT - 1

    asyncio.run(scene())


class Ajar:
    """A gate that never decides. `stages` are those it tells of."""

    def __init__(self) -> None:
        self.stages: asyncio.Queue[RolloutStage] = asyncio.Queue()

    async def admit(
        self, candidate: CandidateRevision, active: ActiveRevision
    ) -> AsyncGenerator[RolloutStage | Admission, None]:
        while True:
            yield await self.stages.get()

    async def reverted(self) -> None:
        pass


def test_a_candidate_is_shown_as_it_is_held() -> None:
    async def scene() -> None:
        world = World()
        ajar = Ajar()
        async with Replica(world, "m1", leads=True, gate=ajar).played() as replica:
            one, two = revision_name("fleet", ONE), revision_name("fleet", TWO)
            replica.source.give(tree(1), ONE)
            await until(lambda: world.instances(one) == {"m1": "Active"})
            replica.source.give(tree(2), TWO)
            await until(lambda: replica.live.candidate)
            ajar.stages.put_nowait(RolloutStage(state=InstanceState.CANARY, message="10 % of the nodes"))
            await until(lambda: world.instances(two) == {"m1": "Canary"})
            await until(lambda: world.conditions(two).get("Reconciling") == ("True", "Progressing"))
            ready = next(
                one for one in world.revisions()[two]["status"]["conditions"] if one["type"] == "Reconciling"
            )
            assert ready["message"] == "10 % of the nodes"
            assert "rollout" not in world.revisions()[two]["status"], "that is for the rollout to write"

    asyncio.run(scene())


def test_who_is_killed_is_taken_back_by_who_speaks_for_all() -> None:
    async def scene() -> None:
        world = World()
        one = revision_name("fleet", ONE)
        async with Replica(world, "m1", leads=True).played() as leader:
            leader.source.give(tree(1), ONE)
            async with Replica(world, "s1", component="scheduler").played() as killed:
                killed.source.give(tree(1), ONE)
                await until(lambda: world.instances(one) == {"m1": "Active", "s1": "Active"})
                assert world.leases() == {
                    "koordpolicy-instance-manager-m1",
                    "koordpolicy-instance-scheduler-s1",
                }
            await until(lambda: world.instances(one) == {"m1": "Active"})
            await until(lambda: world.leases() == {"koordpolicy-instance-manager-m1"})
            assert world.conditions(one) == {"Ready": ("True", "Succeeded")}
            assert world.instances(one) == {"m1": "Active"}, "who renews stays"

    asyncio.run(scene())


def test_an_entry_that_was_struck_of_one_who_is_there_comes_back() -> None:
    async def scene() -> None:
        world = World()
        one = revision_name("fleet", ONE)
        async with Replica(world, "m1", leads=True).played() as leader:
            leader.source.give(tree(1), ONE)
            async with Replica(world, "s1", component="scheduler").played() as other:
                other.source.give(tree(1), ONE)
                await until(lambda: world.instances(one) == {"m1": "Active", "s1": "Active"})
                objects = RevisionObjects(world.cluster, other.metrics, Ticks())
                await objects.release(one, Member("scheduler", "s1"))
                await until(lambda: world.instances(one) == {"m1": "Active", "s1": "Active"})

    asyncio.run(scene())


def test_who_ends_in_good_order_leaves_nothing_and_no_status_without_conditions() -> None:
    async def scene() -> None:
        world = World()
        one = revision_name("fleet", ONE)
        async with Replica(world, "s1", component="scheduler").played() as only:
            only.source.give(tree(1), ONE)
            await until(lambda: world.instances(one) == {"s1": "Active"})
        await only.reporter.withdraw()
        await only.presence.withdraw()
        assert world.instances(one) == {}
        assert world.leases() == set()
        assert world.conditions(one), "a status without anything in it is none that the API server takes"

    asyncio.run(scene())


def test_without_a_manager_the_first_of_the_others_speaks() -> None:
    async def scene() -> None:
        world = World()
        one, bad = revision_name("fleet", ONE), revision_name("fleet", BAD)
        async with Replica(world, "s2", component="scheduler").played() as second:
            async with Replica(world, "s1", component="scheduler").played() as first:
                for replica in (first, second):
                    replica.source.give(tree(1), ONE)
                await until(lambda: world.instances(one) == {"s1": "Active", "s2": "Active"})
                await until(lambda: world.conditions(one) == {"Ready": ("True", "Succeeded")})
            second.source.give(broken(), BAD)
            await until(lambda: world.instances(one) == {"s2": "Active"})
            await until(lambda: world.conditions(bad).get("Stalled") == ("True", "CompileFailed"))
            async with Replica(world, "m1", leads=True).played() as manager:
                manager.source.give(tree(1), ONE)
                await until(lambda: manager.reporter.speaking and not second.reporter.speaking)
                assert world.conditions(one) == {"Ready": ("True", "Succeeded")}

    asyncio.run(scene())


def test_processes_of_two_components_may_have_one_name() -> None:
    async def scene() -> None:
        world = World()
        one = revision_name("fleet", ONE)
        async with (
            Replica(world, "host", leads=True).played() as manager,
            Replica(world, "host", component="scheduler").played() as scheduler,
        ):
            for replica in (manager, scheduler):
                replica.source.give(tree(1), ONE)
            await until(lambda: len(world.entries(one)) == 2)
            assert {entry["component"] for entry in world.entries(one)} == {"manager", "scheduler"}
            await scheduler.reporter.withdraw()
            assert [entry["component"] for entry in world.entries(one)] == ["manager"]

    asyncio.run(scene())


def test_a_burst_of_revisions_leaves_none_without_conditions_and_one_that_is_run() -> None:
    async def scene() -> None:
        world = World()
        async with (
            Replica(world, "m1", leads=True).played() as manager,
            Replica(world, "s1", component="scheduler").played() as scheduler,
        ):
            commits = [f"{number:06d}{'0' * 34}" for number in range(40)]
            for number, commit in enumerate(commits):
                manager.source.give(tree(number + 1), commit)
                scheduler.source.give(tree(number + 1), commit)
                await asyncio.sleep(0.02 * (number % 3))
            last = revision_name("fleet", commits[-1])
            await until(lambda: world.instances(last) == {"m1": "Active", "s1": "Active"})
            await until(lambda: all(not world.instances(name) for name in world.revisions() if name != last))

            def judged() -> bool:
                ready = {name: world.conditions(name)["Ready"] for name in world.revisions()}
                others = {value for name, value in ready.items() if name != last}
                over = {("False", "Superseded"), ("False", "NotRun")}
                return ready[last] == ("True", "Succeeded") and others <= over

            await until(judged)
            assert 1 < len(world.revisions()) <= KEPT
            assert not manager.failures and not scheduler.failures, "no report failed on the way"
            for obj in world.revisions().values():
                assert obj["status"]["conditions"]

    asyncio.run(scene())


STALLED = {"Ready": ("False", "CompileFailed"), "Stalled": ("True", "CompileFailed")}


def codes(world: World, name: str) -> list[str]:
    """The codes of the findings that a revision shows."""
    return [one["code"] for one in world.revisions()[name]["status"].get("diagnostics", ())]


def test_each_of_a_quick_run_of_bad_revisions_keeps_its_reason() -> None:
    async def scene() -> None:
        world = World()
        async with Replica(world, "m1", leads=True).played() as leader:
            leader.source.give(tree(1), ONE)
            await until(lambda: world.conditions(revision_name("fleet", ONE)))
            world.away = True  # no report is written while they come
            bad = [f"{number:x}bad{'0' * 36}" for number in range(3)]
            for commit in bad:
                leader.source.give(broken(), commit)
                await until(
                    lambda commit=commit: (
                        leader.live.rejected and leader.live.rejected.revision.name == commit
                    )  # type: ignore[misc]
                )
            leader.source.give(tree(2), TWO)
            await until(lambda: leader.live.active and leader.live.active.revision.name == TWO)
            leader.source.give(broken(), BAD)
            await until(lambda: leader.live.rejected and leader.live.rejected.revision.name == BAD)
            world.away = False
            await until(lambda: world.conditions(revision_name("fleet", BAD)) == STALLED)
            await until(
                lambda: world.conditions(revision_name("fleet", ONE)) == {"Ready": ("False", "Superseded")}
            )
            for name in (revision_name("fleet", commit) for commit in (*bad, BAD)):
                assert world.conditions(name) == STALLED
                assert codes(world, name) == ["KP203"]

    asyncio.run(scene())


async def rejections(world: World, *replicas: Replica) -> list[tuple[str, str]]:
    """Whom the Events of rejected revisions are about, and who wrote them."""
    for replica in replicas:
        await replica.recorder.flush()
    return [
        (event["involvedObject"]["name"], event["reportingInstance"])
        for event in world.store.list(EVENTS).items
        if event["reason"] == "PolicyRevisionRejected"
    ]


def test_who_judges_first_tells_and_nobody_tells_again() -> None:
    async def scene() -> None:
        world = World()
        async with (
            Replica(world, "m1", leads=True).played() as leader,
            Replica(world, "s1", component="scheduler").played() as first,
            Replica(world, "s2", component="scheduler").played() as second,
        ):
            everyone = (leader, first, second)
            for replica in everyone:
                replica.source.give(tree(1), ONE)
            good = revision_name("fleet", ONE)
            await until(lambda: set(world.instances(good)) == {"m1", "s1", "s2"})
            bad = revision_name("fleet", BAD)
            first.source.give(broken(), BAD)
            await until(lambda: world.instances(bad) == {"s1": "Rejected"})
            assert await rejections(world, *everyone) == [(bad, "s1")]
            for replica in (second, leader):
                replica.source.give(broken(), BAD)
            await until(lambda: set(world.instances(bad)) == {"m1", "s1", "s2"})
            assert await rejections(world, *everyone) == [(bad, "s1")]

    asyncio.run(scene())


def test_who_judge_at_once_tell_once() -> None:
    async def scene() -> None:
        world = World()
        async with (
            Replica(world, "m1", leads=True).played() as leader,
            Replica(world, "s1", component="scheduler").played() as first,
            Replica(world, "s2", component="scheduler").played() as second,
        ):
            everyone = (leader, first, second)
            for number in range(5):
                commit = f"{number:x}bad{'0' * 36}"
                bad = revision_name("fleet", commit)
                for replica in everyone:
                    replica.source.give(broken(), commit)
                await until(lambda bad=bad: set(world.instances(bad)) == {"m1", "s1", "s2"})  # type: ignore[misc]
                told = await rejections(world, *everyone)
                assert [about for about, _ in told].count(bad) == 1

    asyncio.run(scene())


def test_what_another_process_rejects_is_not_superseded_and_says_why() -> None:
    async def scene() -> None:
        world = World()
        async with (
            Replica(world, "m1", leads=True).played() as leader,
            Replica(world, "s1", component="scheduler").played() as other,
        ):
            for replica in (leader, other):
                replica.source.give(tree(1), ONE)
            await until(
                lambda: world.instances(revision_name("fleet", ONE)) == {"m1": "Active", "s1": "Active"}
            )
            bad, two = revision_name("fleet", BAD), revision_name("fleet", TWO)
            other.source.give(broken(), BAD)  # the leader never sees it
            await until(lambda: world.instances(bad) == {"s1": "Rejected"})
            assert world.conditions(bad) == STALLED
            other.source.give(tree(2), TWO)
            leader.source.give(tree(2), TWO)
            await until(lambda: world.instances(two) == {"m1": "Active", "s1": "Active"})
            await until(lambda: world.instances(bad) == {})
            await leader.reporter.report()
            assert world.conditions(bad) == STALLED
            assert codes(world, bad) == ["KP203"]

    asyncio.run(scene())


def test_where_processes_run_different_revisions_each_says_so() -> None:
    async def scene() -> None:
        world = World()
        one, two = revision_name("fleet", ONE), revision_name("fleet", TWO)
        async with (
            Replica(world, "m1", leads=True).played() as leader,
            Replica(world, "s1", component="scheduler").played() as other,
        ):
            leader.source.give(tree(1), ONE)
            other.source.give(tree(2), TWO)
            await until(lambda: world.message(one).endswith(f"in 1 of 2 processes; others run {two}"))
            await until(lambda: world.message(two).endswith(f"in 1 of 2 processes; others run {one}"))
            assert world.conditions(one) == world.conditions(two) == {"Ready": ("True", "Succeeded")}
            other.source.give(tree(1), ONE)
            await until(lambda: world.conditions(two) == {"Ready": ("False", "Superseded")})
            await until(lambda: world.message(one) == "the revision decides")
            await leader.recorder.flush()
            told = [event["reason"] for event in world.store.list(EVENTS).items]
            assert told == ["PolicyRevisionActivated"], "how many run it is no outcome"

    asyncio.run(scene())


def test_a_revision_that_nobody_runs_any_more_does_not_stay_unknown() -> None:
    async def scene() -> None:
        world = World()
        two = revision_name("fleet", TWO)
        async with (
            Replica(world, "m1").played() as first,
            Replica(world, "m2").played() as second,
        ):
            first.source.give(tree(2), TWO)
            await until(lambda: world.conditions(two) == {"Ready": ("Unknown", "Reported")})
            first.source.give(tree(1), ONE)
            await until(lambda: world.instances(two) == {})
            second.leads = True  # it has no revision of its own yet
            second.reporter.again()
            await until(lambda: world.conditions(two) == {"Ready": ("False", "NotRun")})
            assert world.message(two) == "no process runs it"

    asyncio.run(scene())


def test_a_long_name_still_makes_a_manager_of_its_own() -> None:
    long = "pod-" + "x" * 250
    first, second = Who("agent", long + "1").manager, Who("agent", long + "2").manager
    assert first != second
    assert max(len(first), len(second)) <= 128
    assert Who("agent", "n1").manager == "koordpolicy-agent-n1"


def test_nothing_is_written_twice() -> None:
    async def scene() -> None:
        world = World()
        async with Replica(world, "m1", leads=True).played() as replica:
            replica.source.give(tree(1), ONE)
            one = revision_name("fleet", ONE)
            await until(lambda: world.conditions(one).get("Ready") == ("True", "Succeeded"))
            version = world.revisions()[one]["metadata"]["resourceVersion"]
            await replica.reporter.report()
            assert world.revisions()[one]["metadata"]["resourceVersion"] == version

    asyncio.run(scene())
