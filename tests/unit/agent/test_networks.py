"""Classes of the network: what is shaped and told, and a device of a network of its own that is brought there."""

import json
import shutil
import subprocess
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from koordpolicy.agent.doctor import abilities, doctor_text
from koordpolicy.agent.elsewhere import made, makers, undone
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.agent.plan import Plan
from koordpolicy.agent.rounds.networks import NetworkRounds
from koordpolicy.graph import RuleGraph
from koordpolicy.linux.errors import KernelFileError
from koordpolicy.linux.files.kernel_file import FileWriter
from koordpolicy.linux.writes.traffic_shaping import NONE, TrafficShaping
from koordpolicy.linux.writes.write import FileWrite
from koordpolicy.model.pod import Pod
from koordpolicy.model.protocol import NETWORK_QOS
from tests.conftest import REPOSITORY
from tests.unit.agent.frames import FakeNode, pod
from tests.vectors.policies import document, graph

ADDRESSES = {"web": ("10.0.0.3", "fd00::3"), "batch": ("10.0.0.4",)}
HOST = "agentd"


def policies(mechanism: str = "tc", bandwidth: str = "1G", **shares: Any) -> RuleGraph:
    said = {"request": "30%", "limit": "80%", **shares}
    return graph(
        document("SystemTuning", "ours", {"networkMechanism": mechanism, "networkBandwidth": bandwidth}),
        document("Isolation", "ls", {"group": "LS", "network": {"enabled": True, "egress": said}}),
        document(
            "Isolation",
            "be",
            {"group": "BE", "network": {"enabled": True, "egress": {"request": "100M", "limit": "20%"}}},
        ),
    )


def frame(node: FakeNode, compiled: RuleGraph) -> NodeFrame:
    pods = {
        uid: replace(one, addresses=ADDRESSES.get(one.pod.name, ()), on_host=one.pod.name == HOST)
        for uid, one in node.node_pods().items()
    }
    return node.frame(compiled, pods=pods)


def values(plan: Plan, file: str = "traffic") -> list[object]:
    return [one.value for one in plan.writes if one.file == file]


def site(*pods: Pod) -> FakeNode:
    return FakeNode(pods or (pod("web", "LS"), pod("batch", "BE"), pod(HOST, "BE")))


def test_classes_share_the_network_and_pods_are_in_them() -> None:
    plan = NetworkRounds().plan(frame(site(), policies()))
    assert values(plan) == [
        "class 1:1 parent 1: rate 1000000000bit ceil 1000000000bit prio 0",
        "class 1:2 parent 1:1 rate 600000000bit ceil 1000000000bit prio 1",
        "class 1:3 parent 1:1 rate 300000000bit ceil 800000000bit prio 2",
        "class 1:4 parent 1:1 rate 100000000bit ceil 200000000bit prio 3",
        "from 10.0.0.4 to 1:4",
        "from 10.0.0.3 to 1:3",
        "from fd00::3 to 1:3",
    ]
    assert set(values(plan, "net_cls.classid")) == {0x10004}
    assert values(plan, "terway node") == [""]


def test_a_pod_with_a_limit_of_its_own_has_a_class_of_its_own() -> None:
    node = site(pod("web", "LS", annotations={NETWORK_QOS: json.dumps({"egressLimit": "80M"})}))
    rounds = NetworkRounds()
    plan = rounds.plan(frame(node, policies()))
    assert "class 1:10 parent 1:1 rate 80000000bit ceil 80000000bit prio 2" in values(plan)
    assert "from 10.0.0.3 to 1:10" in values(plan)
    assert values(rounds.plan(frame(node, policies()))) == values(plan)


@pytest.mark.parametrize(
    ("compiled", "note"),
    [
        (policies(request="95%"), "more of the network is promised"),
        (policies(request="3G"), "more than the network carries"),
    ],
)
def test_shares_that_do_not_go_together_change_nothing(compiled: RuleGraph, note: str) -> None:
    plan = NetworkRounds().plan(frame(site(), compiled))
    assert not plan.writes
    assert note in plan.notes[0]


@pytest.mark.parametrize("said", ["{", '{"egressLimit": "much"}', '{"egressLimit": 0}'])
def test_an_annotation_that_makes_no_sense_is_noted(said: str) -> None:
    plan = NetworkRounds().plan(frame(site(pod("web", "LS", annotations={NETWORK_QOS: said})), policies()))
    assert NETWORK_QOS in plan.notes[0]
    assert "from 10.0.0.3 to 1:3" in values(plan)


def test_what_was_at_work_before_is_cleaned_up_once() -> None:
    node, rounds = site(), NetworkRounds()
    off = graph()
    assert values(rounds.plan(frame(node, off))) == [NONE]
    assert rounds.plan(frame(node, off)) == Plan()
    rounds.plan(frame(node, policies()))
    assert values(rounds.plan(frame(node, policies("terway-qos")))) == [NONE]
    plan = rounds.plan(frame(node, policies(bandwidth="0")))
    assert (values(plan), values(plan, "terway pods")) == ([], [""])


def test_terway_is_told_of_the_node_and_of_pods(tmp_path: Path) -> None:
    said = {"ingressLimit": "8M", "egressLimit": "16M"}
    node, rounds = site(pod("web", "LS", annotations={NETWORK_QOS: json.dumps(said)})), NetworkRounds()
    by = makers(node.kernel, tmp_path, lambda: node.monotonic, plan_only=False)

    def carry_out(compiled: RuleGraph) -> set[str]:
        plan = rounds.plan(frame(node, compiled))
        terway = [one for one in plan.writes if one.file.startswith("terway")]
        return {str(one.outcome) for one in made(terway, by, node.kernel, node.node_pods())}

    assert carry_out(policies("terway-qos")) == {"written"}
    (told,) = json.loads((tmp_path / "pod.json").read_text()).values()
    assert (told["podName"], told["prio"]) == ("web", 1)
    assert told["qosConfig"] == {"ingressBandwidth": 1_000_000, "egressBandwidth": 2_000_000}
    config = dict(line.split() for line in (tmp_path / "global_bps_config").read_text().splitlines())
    assert config["hw_tx_bps_max"] == "125000000"
    assert (config["offline_l1_tx_bps_min"], config["offline_l2_tx_bps_max"]) == ("37500000", "25000000")
    assert carry_out(policies("terway-qos")) == {"equal"}
    assert carry_out(graph()) == {"written"}
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_tells_whether_terway_is_there(tmp_path: Path) -> None:
    kernel = site().kernel

    def told(directory: Path) -> tuple[bool, str]:
        (found,) = [one for one in abilities(kernel, directory) if one.name == "Terway"]
        return found.there, found.why

    assert told(tmp_path) == (True, str(tmp_path))
    assert told(tmp_path / "none") == (False, f"there is no {tmp_path / 'none'}")
    assert "terway-qos" in doctor_text(kernel, tmp_path / "none")


class Tc:
    """What a device has, and what was asked of it."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.shaped = False
        self.fails = ""
        self.classes = [("1:1", 0), ("1:2", 1), ("1:9", 3)]

    def run(self, arguments: Any) -> str:
        if self.fails:
            raise KernelFileError("tc", self.fails)
        if "qdisc" in arguments:
            root = {"kind": "htb", "handle": "1:"} if self.shaped else {"kind": "noqueue", "handle": "0:"}
            return json.dumps([{**root, "root": True}])
        return json.dumps(
            [{"class": "htb", "handle": one, "parent": "1:1", "prio": prio} for one, prio in self.classes]
        )

    def batch(self, commands: Any) -> None:
        if any("cgroup" in one for one in commands):
            raise KernelFileError("tc", "there is no such classifier")
        self.asked.append(list(commands))
        self.shaped = not commands[0].startswith("qdisc del")


def writes(*said: str) -> list[FileWrite]:
    return [FileWrite("traffic", one, FileWriter.NETWORK) for one in said]


def shaping(tc: Tc, *, plan_only: bool = False) -> TrafficShaping:
    return TrafficShaping(lambda: "eth0", lambda: 0, 60, plan_only, tc.run, tc.batch)


WHOLE = "class 1:1 parent 1: rate 8bit ceil 8bit prio 0"


def test_a_device_is_brought_there_once_and_given_back() -> None:
    tc = Tc()
    made_ = shaping(tc)
    outcomes = [made_.write_all(writes(WHOLE, "from 10.0.0.3 to 1:1"))[0].outcome for _ in range(2)]
    outcomes.append(made_.write_all(writes(WHOLE))[0].outcome)
    assert [str(one) for one in outcomes] == ["written", "remembered", "written"]
    assert tc.asked[0][0] == "qdisc replace dev eth0 root handle 1: htb default 2"
    assert tc.asked[0][-1].endswith("u32 match ip src 10.0.0.3/32 flowid 1:1")
    assert tc.asked[1][-2:] == ["class del dev eth0 classid 1:9", "class del dev eth0 classid 1:2"]
    assert [str(one.outcome) for one in made_.write_all(writes(NONE))] == ["written"]
    assert tc.asked[-1] == ["qdisc del dev eth0 root"]
    assert [str(one.outcome) for one in made_.write_all(writes(NONE))] == ["equal"]


def test_at_the_stop_nothing_stays_shaped_that_is_ours() -> None:
    tc = Tc()
    by = {"traffic": shaping(tc).write_all}
    assert [str(one.outcome) for one in undone(by, "x")] == ["equal"]
    by["traffic"](writes(WHOLE))
    assert [str(one.outcome) for one in undone(by, "x")] == ["written"]
    assert tc.asked[-1] == ["qdisc del dev eth0 root"]
    tc.fails = "Operation not permitted"
    assert [str(one.outcome) for one in undone(by, "x")] == ["failed"]
    assert undone({}, "x") == []


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([("1:1", 0), ("1:2", 1), ("1:3", 2), ("1:4", 3), ("1:10", 2)], "written"),
        ([("1:1", 0), ("1:2", 1), ("1:3", 1), ("1:4", 3)], "equal"),
        ([("1:1", 0), ("1:30", 1)], "equal"),
        ([], "equal"),
    ],
)
def test_what_others_have_shaped_is_theirs(classes: list[tuple[str, int]], expected: str) -> None:
    tc = Tc()
    tc.shaped, tc.classes = True, classes
    assert str(shaping(tc).write_all(writes(NONE))[0].outcome) == expected
    assert tc.asked == ([["qdisc del dev eth0 root"]] if expected == "written" else [])


def test_planning_and_a_machine_without_tc_change_nothing() -> None:
    tc = Tc()
    assert str(shaping(tc, plan_only=True).write_all(writes(WHOLE))[0].outcome) == "planned"
    tc.fails = "cannot be run: no such file"
    assert str(shaping(tc).write_all(writes(WHOLE))[0].outcome) == "unsupported"
    tc.fails = "Operation not permitted"
    assert str(shaping(tc).write_all(writes(WHOLE))[0].outcome) == "failed"
    assert tc.asked == []


IN_A_NETWORK_OF_ITS_OWN = """
    import subprocess
    from koordpolicy.agent.audit.log import AuditLog
    from koordpolicy.agent.carrying_out import CarryingOut
    from koordpolicy.linux.files.kernel_file import FileWriter
    from koordpolicy.linux.host_root import HostRoot
    from koordpolicy.linux.readings.routes import read_default_device
    from koordpolicy.linux.readings.traffic import read_classes, read_disciplines
    from koordpolicy.linux.writes.traffic_shaping import TrafficShaping
    from koordpolicy.linux.writes.write import FileWrite
    from koordpolicy.runtime.metrics import Metrics

    def ip(said):
        subprocess.run(["ip", *said.split()], check=True)

    for said in ("link add d0 type veth peer name d1", "link set d0 up", "link set d1 up", "addr add 10.9.0.1/24 dev d0",
                 "route add default via 10.9.0.2"):
        ip(said)
    root = HostRoot()
    shaping = TrafficShaping(lambda: read_default_device(root), lambda: 0, 1)

    def shape(*said):
        return [str(one.outcome) + one.problem for one in
                shaping.write_all([FileWrite("traffic", one, FileWriter.NETWORK) for one in said])]

    whole = "class 1:1 parent 1: rate 80000000bit ceil 80000000bit prio 0"
    system = "class 1:2 parent 1:1 rate 8000000bit ceil 80000000bit prio 1"
    batch = "class 1:4 parent 1:1 rate 8000000bit ceil 16000000bit prio 3"
    assert shape(whole, system, batch, "from 10.0.0.4 to 1:4", "from fd00::4 to 1:4") == ["written"] * 5
    found = {one.handle: one for one in read_classes("d0")}
    assert set(found) == {"1:1", "1:2", "1:4"}, found
    assert (found["1:4"].rate, found["1:4"].ceiling, found["1:4"].priority) == (1000000, 2000000, 3), found
    filters = subprocess.run(["tc", "filter", "show", "dev", "d0"], capture_output=True, text=True).stdout
    assert "0a000004" in filters and "fd000000" in filters, filters
    # The process before has left it: what is not wanted any more goes, filters first.
    shaping = TrafficShaping(lambda: read_default_device(root), lambda: 0, 1)
    assert shape(whole, system, "from 10.0.0.5 to 1:2") == ["written"] * 3
    assert {one.handle for one in read_classes("d0")} == {"1:1", "1:2"}
    filters = subprocess.run(["tc", "filter", "show", "dev", "d0"], capture_output=True, text=True).stdout
    assert "0a000005" in filters and "0a000004" not in filters, filters
    assert shape("none") == ["written"]
    assert all(one.kind != "htb" for one in read_disciplines("d0"))
    assert shape("none") == ["equal"]
    # An agent that stops leaves the device as it was.
    assert shape(whole, system, batch) == ["written"] * 3
    doing = CarryingOut(None, None, AuditLog(1 << 16, lambda: 0, lambda: "t"), Metrics("agent"), 0)
    doing.makers = {"traffic": shaping.write_all}
    assert (doing.undo(0), doing.undo(0)) == (1, 0)
    assert all(one.kind != "htb" for one in read_disciplines("d0"))
    print("shaped")
"""


def test_a_device_of_this_kernel_is_shaped_in_a_network_of_its_own() -> None:
    if any(shutil.which(one) is None for one in ("unshare", "tc", "ip")):
        pytest.skip("there is no unshare, tc or ip program here")
    tried = subprocess.run(
        ["unshare", "-n", "ip", "link", "add", "d0", "type", "veth", "peer", "name", "d1"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if tried.returncode != 0:
        pytest.skip(f"no network of its own can be made: {tried.stderr.strip()}")
    code = textwrap.dedent(IN_A_NETWORK_OF_ITS_OWN)
    done = subprocess.run(
        ["unshare", "-n", sys.executable, "-c", code],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.stdout, done.returncode) == ("shaped\n", 0), done.stderr
