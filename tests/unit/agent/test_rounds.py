"""Rounds on the model of a kernel: interference, predictions on disk, disks, caches."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.agent.apply import apply
from koordpolicy.agent.collectors.cpi import CPICounting, RunningCount
from koordpolicy.agent.collectors.kernel_signals import KernelSignals
from koordpolicy.agent.collectors.signal_pace import SignalPace, decide_signal_pace
from koordpolicy.agent.collectors.signals import SignalCollector
from koordpolicy.agent.elsewhere import made, makers
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.measurements.levels import CPI, CPU, MEMORY, NODE
from koordpolicy.agent.node_strategies import node_strategies
from koordpolicy.agent.peak_files import PeakFiles
from koordpolicy.agent.plan import Plan
from koordpolicy.agent.rounds.caches import CacheRounds
from koordpolicy.agent.rounds.disks import DiskRounds
from koordpolicy.agent.rounds.interference import InterferenceRounds, add_signals, signals_of
from koordpolicy.agent.rounds.prediction import PredictionRounds
from koordpolicy.agent.strategies.eviction_need import Needs
from koordpolicy.agent.strategies.interference import PodSignals
from koordpolicy.graph import RuleGraph
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.readings.perf import PerfCount, PerfEvent
from koordpolicy.linux.readings.resctrl import resctrl_groups
from koordpolicy.model.metric import NodeMetric
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import BLKIO_QOS, RESCTRL
from tests.unit.agent.frames import GIB, SECOND, FakeNode, pod
from tests.vectors.policies import document, graph

WEB, BATCH = pod("web", "LS"), pod("batch", "BE")
PACE = SignalPace(10 * SECOND, 60 * SECOND, 10 * SECOND)
STALL = "some avg10={:.2f} avg60=0.00 avg300=0.00 total=0\nfull avg10=1.00 avg60=0.00 avg300=0.00 total=0\n"


def interference(**spec: Any) -> RuleGraph:
    when = {"cel": "has(pod.pressure.cpu.some) && pod.pressure.cpu.some > percent(20)"}
    spec = {"when": when, "reaction": "SuppressBestEffort", "share": "10%", **spec}
    return graph(document("Interference", "waiting", spec))


def settings(node: FakeNode, one: Pod, **files: str) -> None:
    """Files of a pod's group and its container's beside those of the model."""
    for name, text in files.items():
        assert isinstance(node.root, FakeRoot)
        found = node.root.tree("cpu").find(node.group(one))
        assert found is not None
        found.extra[name.replace("_", ".")] = text


# --- what is measured ---------------------------------------------------------------------------------


class Counted:
    """Counters that stand at three cycles for two instructions."""

    opened = closed = 0

    def __init__(self) -> None:
        Counted.opened += 1

    def read(self) -> dict[PerfEvent, PerfCount]:
        return {PerfEvent.CYCLES: PerfCount(3000, 1.0), PerfEvent.INSTRUCTIONS: PerfCount(2000, 1.0)}

    def close(self) -> None:
        Counted.closed += 1


def test_signals_are_measured_at_their_pace_and_told_as_facts() -> None:
    node = FakeNode([WEB, BATCH], CgroupVersion.V2, {"/proc/7/schedstat": "5 0 1"})
    settings(node, WEB, cpu_pressure=STALL.format(30))
    tasks = node.root.tree("cpu").find(f"{node.group(WEB)}/main") if isinstance(node.root, FakeRoot) else None
    assert tasks is not None
    tasks.pids.add(7)
    reader = KernelSignals(node.root, node.hierarchy)
    Counted.opened = Counted.closed = 0
    collector = SignalCollector(reader, CPICounting(lambda _group: Counted(), lambda: 4))
    for _ in range(12):
        collector.collect(node.measurements, node.node_pods(), PACE, node.monotonic)
        node.elapsed += SECOND
        waited = node.elapsed // 4
        assert isinstance(node.root, FakeRoot)
        node.root.plain["/proc/7/schedstat"] = f"5 {waited} 1"
    assert (Counted.opened, Counted.closed) == (
        2,
        2,
    )  # for one window of each pod, and not again within a minute
    found = signals_of(node.measurements, node.node_pods(), node.monotonic, PACE)
    web = found[WEB.uid]
    assert web.pressure == {("cpu", "some"): 30.0, ("cpu", "full"): 1.0}
    assert (web.cpi, found[BATCH.uid].pressure) == (1.5, {})
    assert web.waiting == pytest.approx(25.0)
    frame = node.frame(interference())
    add_signals(frame.record, found)
    facts = next(one for one in frame.pod_records if one["uid"] == WEB.uid)
    assert (facts["pressure.cpu.some"], facts["cpi"]) == (30.0, 1.5)
    node.elapsed += 30 * SECOND
    old = signals_of(node.measurements, [WEB.uid], node.monotonic, PACE)
    assert old[WEB.uid].pressure == {}  # what is old is nothing that was measured


def test_nothing_is_measured_that_no_rule_asks_for() -> None:
    node = FakeNode([WEB])
    assert decide_signal_pace(graph(), node.frame(graph()).record, node.now) is None
    assert decide_signal_pace(interference(), node.frame(graph()).record, node.now) == PACE
    collector = SignalCollector(
        KernelSignals(node.root, node.hierarchy), CPICounting(lambda _group: Counted(), lambda: 4)
    )
    collector.collect(node.measurements, node.node_pods(), None, node.monotonic)
    assert (len(node.measurements.signals), len(node.measurements.cpi)) == (0, 0)


def test_a_kernel_without_counters_is_asked_once_a_time() -> None:
    node, asked = FakeNode([pod(str(number), "LS") for number in range(9)]), []

    def begin(group: str) -> RunningCount:
        asked.append(group)
        raise KernelFileError(group, "no counter of cycles")

    counting = CPICounting(begin, lambda: 4)
    for _ in range(3):
        counting.turn(node.measurements, node.node_pods(), PACE, node.monotonic)
        node.elapsed += 30 * SECOND
    assert len(asked) == 2
    assert "no counter of cycles" in counting.failures["cpi"]


def test_pods_take_turns_where_counters_are_too_many() -> None:
    node = FakeNode([pod(str(number), "LS") for number in range(9)])
    counting = CPICounting(lambda _group: Counted(), lambda: 128)  # four pods at a time
    for _ in range(4):
        counting.turn(node.measurements, node.node_pods(), PACE, node.monotonic)
        node.elapsed += 10 * SECOND
    assert len(node.measurements.cpi.latest(CPI, node.monotonic, 60 * SECOND)) == 9


# --- what is made of it -------------------------------------------------------------------------------


def test_who_suffers_is_told_once_and_best_effort_work_gets_less() -> None:
    node, compiled, rounds = FakeNode([WEB, BATCH]), interference(lasts="5s"), InterferenceRounds()
    suffering = {WEB.uid: PodSignals({("cpu", "some"): 30.0})}
    plans = []
    for signals in (suffering, suffering, {}, {}):
        plans.append(rounds.plan(node.frame(compiled, signals=signals)))
        node.elapsed += 3 * SECOND
    assert [len(plan.notices) for plan in plans] == [1, 0, 0, 0]
    assert plans[0].notices[0].uid == WEB.uid
    assert [len(plan.notes) for plan in plans] == [1, 1, 1, 0]


def shares_of_suppression(node: FakeNode, compiled: RuleGraph, signals: dict[str, PodSignals]) -> list[int]:
    """How many CPUs best-effort work keeps, as all strategies together plan it."""
    strategies = {one.kind: one for one in node_strategies(lambda: 0.5)}
    frame = node.frame(compiled, {"cpu": 3_000, "memory": GIB}, signals=signals)
    wanted = strategies["Interference"].plan, strategies["CPUSuppress"].plan
    plans = [plan(frame) for plan in wanted if plan is not None]
    return [len(one.value) for one in plans[1].writes if isinstance(one.value, frozenset)][-1:]


def test_suppression_follows_interference() -> None:
    on = document("CPUSuppress", "ours", {"enabled": True, "growth": {"step": "100%"}})
    when = {"cel": "has(pod.pressure.cpu.some) && pod.pressure.cpu.some > percent(20)"}
    compiled = graph(
        on,
        document("Interference", "waiting", {"when": when, "reaction": "SuppressBestEffort", "share": "25%"}),
    )
    node = FakeNode([WEB, BATCH])
    (usual,) = shares_of_suppression(node, compiled, {})
    (less,) = shares_of_suppression(node, compiled, {WEB.uid: PodSignals({("cpu", "some"): 30.0})})
    assert usual - less == 5


def test_where_nothing_is_suppressed_it_is_said_that_more_is_wanted() -> None:
    strategies = {one.kind: one.plan for one in node_strategies(lambda: 0.5)}
    node, compiled = FakeNode([WEB, BATCH]), interference()
    frame = node.frame(compiled, signals={WEB.uid: PodSignals({("cpu", "some"): 30.0})})
    suffer, suppress = strategies["Interference"], strategies["CPUSuppress"]
    assert suffer is not None and suppress is not None
    suffer(frame)
    off = graph(document("CPUSuppress", "ours", {"enabled": False}))
    (note,) = suppress(node.frame(off)).notes
    assert note == (
        "10% less by Interference/waiting is wanted, and nothing is suppressed: suppression is not enabled"
    )


def test_evictions_for_interference_come_after_others() -> None:
    rounds, node = InterferenceRounds(), FakeNode([WEB, BATCH])
    compiled = interference(reaction="EvictBestEffort")
    frame = node.frame(compiled, signals={WEB.uid: PodSignals({("cpu", "some"): 30.0})})
    next(one for one in frame.pod_records if one["uid"] == BATCH.uid)["usage.cpu"] = 500
    rounds.plan(frame)
    assert list(rounds.needs(frame, Needs()).by_reason) == ["Interference/waiting"]
    rounds.plan(node.frame(compiled))
    assert rounds.needs(frame, Needs()) == Needs()


# --- predictions --------------------------------------------------------------------------------------


def train(node: FakeNode, compiled: RuleGraph, rounds: PredictionRounds, minutes: int) -> NodeFrame:
    async def all_rounds() -> NodeFrame:
        for _ in range(minutes):
            for _ in range(6):
                node.elapsed += 10 * SECOND
                rows = {one.uid: (0.5, float(GIB), float(GIB)) for one in node.pods}
                node.measurements.pods.add(node.monotonic, rows)
                node.measurements.node.add(node.monotonic, {NODE: (1.5, 4.0 * GIB, 4.0 * GIB, 0.0)})
            await rounds.round(node.frame(compiled))
        return node.frame(compiled)

    return asyncio.run(all_rounds())


REPORT = NodeMetric("n", updated_at=1, node_usage={CPU: 1500, MEMORY: GIB})


def test_a_report_says_what_services_will_not_use() -> None:
    compiled, node = graph(document("Prediction", "ours", {"coldStart": "1h"})), FakeNode([WEB, BATCH])
    rounds = PredictionRounds(None)
    frame = train(node, compiled, rounds, 20)
    told = rounds.told(REPORT, frame, node.pods)
    assert told.prod_reclaimable is not None and told.prod_peak is not None
    # 2 cores and 4 GiB are requested; 0.5 cores and 1 GiB are used, and the system's; a bucket and a margin on top.
    assert 0 < told.prod_reclaimable["cpu"] < 2000 - 500
    assert 0 < told.prod_reclaimable["memory"] < 3 * GIB
    assert rounds.trouble == ""
    off = graph(document("Prediction", "ours", {"enabled": False}))
    asyncio.run(rounds.round(node.frame(off)))
    assert rounds.told(REPORT, node.frame(off), node.pods) == REPORT


def test_young_pods_give_nothing_back_and_unknown_ones_stop_all() -> None:
    compiled, rounds = graph(), PredictionRounds(None)
    node = FakeNode([pod("new", "LS", created_at=FakeNode([]).now)])
    frame = train(node, compiled, rounds, 2)
    told = rounds.told(REPORT, frame, node.pods)
    assert told.prod_reclaimable == {"cpu": 0, "memory": 0}
    empty = PredictionRounds(None)
    asyncio.run(empty.round(FakeNode([]).frame(compiled)))
    told = empty.told(REPORT, frame, node.pods)
    assert (told.prod_reclaimable, told.prod_peak) == ({}, None)
    assert "system" in empty.trouble


def test_peaks_survive_on_disk_and_broken_files_do_not(tmp_path: Path) -> None:
    compiled, node = graph(document("Prediction", "ours", {"coldStart": "1h"})), FakeNode([WEB])
    files = PeakFiles(tmp_path)
    rounds = PredictionRounds(files)
    frame = train(node, compiled, rounds, 20)
    before = rounds.told(REPORT, frame, node.pods).prod_reclaimable
    kept = sorted(path.name for path in files.directory.iterdir())
    assert f"{WEB.uid}.json" in kept and "system.json" in kept
    (files.directory / "broken.json").write_text("{")
    (files.directory / "strange.json").write_text(json.dumps({"key": "strange", "seen": 1}))
    (files.directory / "other.json").write_text((files.directory / "system.json").read_text())
    again = PredictionRounds(PeakFiles(tmp_path))
    frame = train(node, compiled, again, 1)
    after = again.told(REPORT, frame, node.pods).prod_reclaimable
    assert before is not None and after is not None
    assert after["cpu"] == pytest.approx(before["cpu"], rel=0.1)
    assert sorted(path.name for path in files.directory.iterdir()) == kept
    # A pod that has ended is forgotten on disk as well.
    node.pods.clear()
    node.elapsed += 40 * 60 * SECOND
    train(node, compiled, again, 1)
    assert not (files.directory / f"{WEB.uid}.json").exists()


def test_what_110_pods_take_is_bounded_whatever_comes_and_goes() -> None:
    compiled, rounds = graph(), PredictionRounds(None)
    node = FakeNode([])
    for turn in range(6):
        node.pods = [pod(f"{turn}-{number}", "LS") for number in range(110)]
        rows = {one.uid: (0.5, float(GIB), float(GIB)) for one in node.pods}
        node.elapsed += 60 * SECOND
        node.measurements.pods.add(node.monotonic, rows)
        node.measurements.node.add(node.monotonic, {NODE: (60.0, 2.0 * GIB, 2.0 * GIB, 0.0)})
        frame = node.frame(compiled, pods={}, record={**node.frame(graph()).record})
        asyncio.run(rounds.round(frame))
    assert len(rounds) <= 2 * 110 + 64


def test_other_buckets_begin_anew() -> None:
    node, rounds = FakeNode([WEB]), PredictionRounds(None)
    train(node, graph(document("Prediction", "ours", {"coldStart": "1h"})), rounds, 3)
    other = graph(document("Prediction", "ours", {"coldStart": "1h", "cpu": {"halfLife": "1h"}}))
    train(node, other, rounds, 1)
    assert len(rounds) > 0


# --- disks --------------------------------------------------------------------------------------------

DISKS = {
    "/sys/block/sda/dev": "8:0\n",
    "/sys/block/sda/sda1/dev": "8:1\n",
    "/sys/block/sda/sda1/partition": "1\n",
    "/sys/block/dm-0/dev": "253:0\n",
    "/sys/block/dm-0/dm/name": "fast--vg-logs\n",
    "/sys/block/dm-0/slaves/sda/dev": "8:0\n",
    "/proc/1/mountinfo": f"1 0 8:1 / /var/lib/kubelet/pods/{BATCH.uid}/volumes/kubernetes.io~csi/pv-1/mount rw - ext4 x rw\n",
}


def limited(blocks: list[dict[str, Any]], *, on: bool = True) -> RuleGraph:
    return graph(document("Isolation", "be", {"group": "BE", "disk": {"enabled": on}, "blocks": blocks}))


def written(plan: Plan) -> list[tuple[str, str, object]]:
    return [(one.file.removeprefix("blkio."), one.group.words, one.value) for one in plan.writes]


@pytest.mark.parametrize(
    "block",
    [
        {"name": "/dev/sda"},
        {"name": "sda1", "type": "device"},
        {"name": "fast-vg", "type": "volumegroup"},
    ],
)
def test_devices_are_told_by_name_part_and_volume_group(block: dict[str, str]) -> None:
    node = FakeNode([BATCH], extra=DISKS)
    found = written(DiskRounds().plan(node.frame(limited([{**block, "readIOPS": 100}]))))
    assert found[0] == ("throttle.read_iops_device", "qos BestEffort", "8:0 100")


def test_a_pod_says_itself_what_it_may_ask_and_is_reset_when_it_says_it_no_more() -> None:
    said = {"blocks": [{"name": "pv-1", "type": "podvolume", "ioCfg": {"writeBPS": 1000}}]}
    own = pod("batch", "BE", annotations={BLKIO_QOS: json.dumps(said)})
    node = FakeNode([own], CgroupVersion.V2, DISKS)
    rounds = DiskRounds()
    plan = rounds.plan(node.frame(graph()))
    assert ("throttle.write_bps_device", f"pod {own.uid}", "8:0 1000") in written(plan)
    assert not plan.notes
    node.pods = [BATCH]
    settings(node, BATCH, io_max="8:0 rbps=max wbps=1000 riops=max wiops=max\n")
    reset = written(rounds.plan(node.frame(graph())))
    assert reset == [("throttle.write_bps_device", f"pod {own.uid}", "8:0 0")]
    assert not rounds.plan(node.frame(graph())).writes


@pytest.mark.parametrize(
    ("said", "note"),
    [
        ("{", BLKIO_QOS),
        ('{"blocks": [3]}', "a mapping"),
        ('{"blocks": [{"name": "sda", "ioCfg": {"readIOPS": -1}}]}', "readIOPS"),
        ('{"blocks": [{"name": "sdz", "type": "device"}]}', "no device `sdz`"),
        ('{"blocks": [{"name": "pv-9", "type": "podvolume"}]}', "no podvolume `pv-9`"),
    ],
)
def test_an_annotation_that_makes_no_sense_changes_nothing(said: str, note: str) -> None:
    node = FakeNode([pod("batch", "BE", annotations={BLKIO_QOS: said})], extra=DISKS)
    plan = DiskRounds().plan(node.frame(graph()))
    assert not plan.writes
    assert note in plan.notes[0]


def test_devices_are_not_looked_for_in_vain() -> None:
    node = FakeNode([WEB, BATCH], extra={})
    assert DiskRounds().plan(node.frame(graph())) == Plan()
    assert "block devices" in DiskRounds().plan(node.frame(limited([{"name": "sda"}]))).notes[0]


# --- caches -------------------------------------------------------------------------------------------

CACHE = {
    "/sys/fs/resctrl/schemata": "L3:0=7ff\nMB:0=100\n",
    "/sys/fs/resctrl/tasks": "7\n8\n9\n",
    "/sys/fs/resctrl/info/L3/cbm_mask": "7ff\n",
    "/sys/devices/system/cpu/online": "0-3\n",
    "/proc/cpuinfo": "processor\t: 0\nvendor_id\t: GenuineIntel\n",
    **{f"/sys/devices/system/cpu/cpu{cpu}/cache/index3/id": "0\n" for cpu in range(4)},
    **{f"/sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list": "0-3\n" for cpu in range(4)},
}
QUARTER = graph(
    document("Isolation", "be", {"group": "BE", "cache": {"enabled": True, "end": "30%", "bandwidth": "50%"}})
)


def carry_out(node: FakeNode, plan: Plan) -> set[str]:
    """What became of a plan's writes."""
    pods = node.node_pods()
    others = made(
        plan.writes, makers(node.kernel, None, lambda: node.monotonic, plan_only=False), node.kernel, pods
    )
    applied = apply(plan, node.kernel.door, node.kernel.groups(pods))
    return {str(one.outcome) for one in (*others, *applied.results)}


def cache_node(*pods: Pod) -> tuple[FakeNode, FakeRoot]:
    root = FakeRoot(CgroupVersion.V1, extra=CACHE)
    node = FakeNode(pods, root=root)
    for number, one in enumerate(pods):
        group = root.tree("cpu").find(f"{node.group(one)}/main")
        assert group is not None
        group.pids.add(7 + number)
    return node, root


def test_classes_have_their_part_of_the_cache_and_their_tasks_in_it() -> None:
    node, root = cache_node(BATCH, WEB)
    rounds = CacheRounds()
    assert carry_out(node, rounds.plan(node.frame(QUARTER))) == {"written"}
    assert root.read("/sys/fs/resctrl/BE/schemata") == "L3:0=f;\nMB:0=50;\n"
    assert root.read("/sys/fs/resctrl/BE/tasks") == "7\n"
    assert root.read("/sys/fs/resctrl/tasks") == "8\n9\n"
    assert carry_out(node, rounds.plan(node.frame(QUARTER))) == {"equal", "remembered"}
    assert list(resctrl_groups(root)) == ["BE"]


def test_a_pod_has_a_group_of_its_own_until_it_is_gone_for_a_while() -> None:
    said = {
        "llc": {"schemata": {"range": [0, 50]}},
        "mb": {"schemataPerCache": [{"cacheID": 0, "percent": 25}]},
    }
    own = pod("web", "LS", annotations={RESCTRL: json.dumps(said)})
    node, root = cache_node(own)
    rounds, name = CacheRounds(), f"koordlet-{own.uid}"
    assert carry_out(node, rounds.plan(node.frame(QUARTER))) == {"written"}
    assert root.read(f"/sys/fs/resctrl/{name}/schemata") == "L3:0=3f;\nMB:0=30;\n"
    assert root.read(f"/sys/fs/resctrl/{name}/tasks") == "7\n"
    node.pods = []
    for second in range(12):
        node.trusted = second > 2
        carry_out(node, rounds.plan(node.frame(QUARTER)))
        assert root.exists(f"/sys/fs/resctrl/{name}") == (second < 10)
        node.elapsed += SECOND
    assert "7" in root.read("/sys/fs/resctrl/tasks").split()


@pytest.mark.parametrize(
    ("said", "lines"),
    [
        ({"llc": {"schemata": {"range": [50, 20]}}}, ""),
        (
            {"llc": {"schemata": {"range": [0, 50]}, "schemataPerCache": [{"cacheID": 9, "range": [0, 9]}]}},
            "",
        ),
        ({"llc": {"schemataPerCache": [{"cacheID": 0, "range": [0, 10]}]}}, "L3:0=3;"),
        ({"mb": {"schemata": {"percent": 0}}}, ""),
        ({"mb": {"schemata": "much"}}, ""),
        ({"llc": {"schemata": {"range": "all"}}}, ""),
        ({"llc": {}}, ""),
    ],
)
def test_a_line_is_for_all_caches_or_not_there(said: dict[str, Any], lines: str) -> None:
    node, _root = cache_node(pod("web", "LS", annotations={RESCTRL: json.dumps(said)}))
    plan = CacheRounds().plan(node.frame(graph()))
    assert [one.value for one in plan.writes if one.file == "schemata"] == ([lines] if lines else [])
    assert len(plan.notes) == (not lines)


def test_without_resctrl_it_is_said_and_nothing_wanted() -> None:
    node = FakeNode([BATCH])
    assert CacheRounds().plan(node.frame(graph())) == Plan()
    plan = CacheRounds().plan(node.frame(QUARTER))
    assert not plan.writes
    assert "cbm_mask" in plan.notes[0]
