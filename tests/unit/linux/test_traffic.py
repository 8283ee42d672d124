import json
import shutil
from collections.abc import Sequence

import pytest

from koordpolicy.linux.errors import KernelFileError, Malformed
from koordpolicy.linux.readings.traffic import TrafficQueue, read_classes, read_disciplines

CLASS = {
    "class": "htb",
    "handle": "1:3",
    "parent": "1:1",
    "prio": 2,
    "rate": 125000,
    "ceil": 250000,
    "stats": {"bytes": 7, "packets": 1, "drops": 2, "overlimits": 3},
}


def test_classes_are_read_as_tc_prints_them() -> None:
    asked: list[Sequence[str]] = []

    def run(arguments: Sequence[str]) -> str:
        asked.append(arguments)
        return json.dumps([CLASS])

    assert read_classes("eth0", run) == (TrafficQueue("htb", "1:3", "1:1", 125000, 250000, 2, 7, 2, 3),)
    assert asked == [["-s", "-j", "class", "show", "dev", "eth0"]]
    assert read_classes("eth0", lambda _: "") == ()


def test_classes_are_read_as_some_versions_of_tc_print_them_for_people() -> None:
    printed = (
        "class htb 1:1 root rate 1Gbit ceil 2Gbit burst 1375b cburst 1250b \n"
        " Sent 9 bytes 1 pkt (dropped 2, overlimits 3 requeues 0) \n backlog 0b 0p requeues 0\n\n"
        "class htb 1:3 parent 1:1 prio 2 rate 8Kbit ceil 80Mbit burst 1600b cburst 1600b \n"
        " Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0) \n"
    )
    assert read_classes("eth0", lambda _: printed) == (
        TrafficQueue("htb", "1:1", "root", 125_000_000, 250_000_000, None, 9, 2, 3),
        TrafficQueue("htb", "1:3", "1:1", 1000, 10_000_000, 2, 0, 0, 0),
    )


@pytest.mark.parametrize(
    "printed",
    [
        "class ",
        "class htb 1:1 root rate muchbit\n Sent 0 bytes 0 pkt (dropped 0, overlimits 0",
        "{",
        "[1]",
        "[{}]",
        "7",
        '[{"class": "htb", "handle": "1:", "rate": "x"}]',
    ],
)
def test_what_tc_never_prints_is_an_error(printed: str) -> None:
    with pytest.raises(Malformed, match="tc class show dev eth0"):
        read_classes("eth0", lambda _: printed)


@pytest.mark.parametrize("device", ["", "-batch", "a/b", "x" * 16])
def test_only_names_of_devices_are_asked_for(device: str) -> None:
    with pytest.raises(KernelFileError, match="not the name of a network device"):
        read_classes(device, lambda _: "[]")


def test_this_machine() -> None:
    if shutil.which("tc") is None:
        pytest.skip("there is no tc program here")
    assert [one.parent for one in read_disciplines("lo")] == ["root"]
    with pytest.raises(KernelFileError, match="tc "):
        read_disciplines("nothing")


def test_what_tc_prints_may_be_nested_without_end() -> None:
    with pytest.raises(Malformed):
        read_classes("eth0", lambda _arguments: "[" * 200_000)
