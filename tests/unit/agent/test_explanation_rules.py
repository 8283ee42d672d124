"""The rules behind a kernel file's value, by what is written: each decision with the document and line that says it."""

import json

import pytest

from koordpolicy.agent.explanation_rules import rules_behind
from koordpolicy.agent.frame import NodeFrame
from koordpolicy.linux.files.forms import FileValue
from koordpolicy.linux.files.kernel_file import FileWriter
from koordpolicy.linux.writes.write import FileWrite
from koordpolicy.model.protocol import MEMORY_QOS
from tests.unit.agent.frames import FakeNode, pod
from tests.vectors.policies import document, graph

SHARES = {"enabled": True, "egress": {"request": "20%", "limit": "50%"}}
POLICIES = (
    document("SystemTuning", "ours", {"networkMechanism": "tc", "networkBandwidth": "1G"}),
    document(
        "Isolation", "ls", {"group": "LS", "network": SHARES, "memory": {"enabled": True, "minimum": "50%"}}
    ),
    document(
        "Isolation",
        "be",
        {
            "group": "BE",
            "network": SHARES,
            "cpu": {"enabled": True, "identity": -1},
            "cache": {"enabled": True, "end": "30%", "bandwidth": "50%"},
            "disk": {"enabled": True},
            "blocks": [{"name": "sda", "type": "device", "readIOPS": 100}],
        },
    ),
)
WEB = "kubepods/burstable/poduid-web"
OWN = "kubepods/burstable/poduid-own"
BEST_EFFORT = "kubepods/besteffort"
TUNING = "SystemTuning"
LS = "Isolation/LS"
BE = "Isolation/BE"


@pytest.fixture(scope="module")
def frame() -> NodeFrame:
    said = {MEMORY_QOS: json.dumps({"policy": "auto", "minLimitPercent": 10})}
    return FakeNode((pod("web", "LS"), pod("own", "LS", annotations=said))).frame(graph(*POLICIES))


@pytest.mark.parametrize(
    ("writer", "file", "target", "value", "decisions"),
    [
        ("resctrl", "schemata", "BE", "L3:0=f;", [f"{BE}.cache.enabled", f"{BE}.cache.end"]),
        ("resctrl", "schemata", "BE", "MB:0=50;", [f"{BE}.cache.bandwidth", f"{BE}.cache.enabled"]),
        ("resctrl", "resctrl.tasks", "BE", "7", [f"{BE}.cache.enabled"]),
        ("resctrl", "schemata", "koordlet-uid-web", "L3:0=f;", []),
        (
            "block-io",
            "blkio.throttle.read_iops_device",
            BEST_EFFORT,
            "8:0 100",
            [f"{BE}.blocks", f"{BE}.disk.enabled"],
        ),
        ("block-io", "blkio.throttle.read_iops_device", WEB, "8:0 100", []),
        ("block-io", "blkio.cost.qos", "", "8:0 enable=1", []),
        ("network", "traffic", "", "class 1:1 parent 1: rate 8bit", [f"{TUNING}.networkBandwidth"]),
        (
            "network",
            "traffic",
            "",
            "class 1:2 parent 1:1 rate 8bit",
            [
                f"{BE}.network.egress.request",
                f"{LS}.network.egress.request",
                f"{TUNING}.networkBandwidth",
            ],
        ),
        (
            "network",
            "traffic",
            "",
            "class 1:3 parent 1:1 rate 8bit",
            [f"{LS}.network.egress.limit", f"{LS}.network.egress.request", f"{LS}.network.enabled"],
        ),
        ("network", "traffic", "", "class 1:10 parent 1:1 rate 8bit", []),
        ("network", "traffic", "", "from 10.0.0.3 to 1:4", [f"{BE}.network.enabled"]),
        ("network", "traffic", "", "from 10.0.0.3 to 1:10", []),
        ("network", "traffic", "", "none", []),
        ("network", "net_cls.classid", WEB, 0x10003, [f"{LS}.network.enabled"]),
        ("network", "terway pods", "", "{}", [f"{TUNING}.networkMechanism"]),
        ("memory-qos", "memory.min", f"{WEB}/main", 5, [f"{LS}.memory.enabled", f"{LS}.memory.minimum"]),
        ("memory-qos", "memory.min", OWN, 5, []),
        ("memory-qos", "memory.min", "kubepods", 5, []),
        (
            "group-identity",
            "cpu.bvt_warp_ns",
            BEST_EFFORT,
            -1,
            [f"{BE}.cpu.enabled", f"{BE}.cpu.identity"],
        ),
    ],
)
def test_the_rules_behind_a_value(
    frame: NodeFrame, writer: str, file: str, target: str, value: FileValue, decisions: list[str]
) -> None:
    rules = rules_behind(frame, writer, FileWrite(file, value, FileWriter(writer), target))
    assert sorted(one["decision"] for one in rules) == decisions
    for one in rules:
        number = int(one["file"].removeprefix("overlay/").removesuffix(".yaml"))
        kind, _, name = one["rule"].partition("/")
        assert (POLICIES[number]["kind"], POLICIES[number]["metadata"]["name"]) == (kind, name)
        text = json.dumps(POLICIES[number])
        field = one["decision"].rpartition(".")[2]
        # The place is that of the field, or of what it says.
        assert field in text[: one["column"] + len(field)], one
        assert one["line"] == 1
