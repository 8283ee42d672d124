"""GPUs and RDMA cards: how they are found, what the Device object and NodeMetric say of them, and what is said without them."""

import asyncio
import ctypes
import json
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from koordpolicy.agent.collectors.device_infos import read_device_infos
from koordpolicy.agent.collectors.device_pace import DevicePace
from koordpolicy.agent.collectors.devices import DeviceCollector, DeviceFindings, DeviceSources
from koordpolicy.agent.device_abilities import device_abilities
from koordpolicy.agent.doctor import doctor_text
from koordpolicy.agent.node_kernel import NodeKernel
from koordpolicy.agent.reports.devices import device_object, says_devices
from koordpolicy.agent.rounds import devices as rounds
from koordpolicy.kube.errors import NotFound
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import DEVICES, NODE_METRICS
from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.devices.found import GPU, DevicePlace, DeviceState, FoundDevice, FoundGPUs
from koordpolicy.linux.devices.nvml import NvidiaLibrary
from koordpolicy.linux.devices.pci import PciBuses
from koordpolicy.linux.devices.rdma import read_rdma_cards
from koordpolicy.linux.devices.vendors import read_vendor_devices
from koordpolicy.linux.errors import KernelFileError, NoSuchFile
from koordpolicy.linux.fake.machine import FakeMachine, MachineSettings
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion
from koordpolicy.linux.host_root import HostRoot
from koordpolicy.linux.root import SYS
from koordpolicy.linux.writes.audit import WriteLog
from koordpolicy.linux.writes.door import KernelDoor
from koordpolicy.model.devices import Device, FunctionGroup, VirtualFunction, read_devices
from koordpolicy.model.reading import ObjectError
from tests.conftest import REPOSITORY
from tests.unit.agent.frames import LIMITS, SECOND
from tests.unit.agent.nodes import NOW
from tests.unit.agent.test_whole_agent import GIB, GROUPS, PLAIN, PODS_OF, appear
from tests.unit.agent.whole import NODE, whole_agent
from tests.vectors.policies import document, graph

SOCKETS = {0: 0, 1: 1}
PACE = DevicePace(SECOND, gpus=True, rdma=True, harmless=frozenset({13}))
OBJECT = {"metadata": {"name": "n", "uid": "node-uid"}}
NOWHERE = DeviceSources(Path("/nonexistent"), "libkoordpolicy-none.so")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that answers as NVIDIA's does, compiled from nvml.c."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc) to build a stand-in for NVIDIA's library with")
    library = tmp_path_factory.mktemp("nvml") / "libfake-nvml.so"
    source = Path(__file__).with_name("nvml.c")
    command = [compiler, "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-o", str(library), str(source)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return library


@pytest.fixture
def nvidia(built: Path) -> Iterator[ctypes.CDLL]:
    """The same library by its own hands: what a test makes of its GPUs."""
    library = ctypes.CDLL(str(built))
    library.fake_reset()
    yield library
    assert library.fake_begun() == 0, "whoever begins with the library has to be done with it"


def put(root: Path, path: str, text: str) -> None:
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(text)


def link(root: Path, path: str, target: str) -> None:
    """A link as sysfs has them: relative, by both paths below the tree."""
    place = root / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(Path(*[".."] * (len(Path(path).parts) - 1), target))


def card(root: Path, address: str, name: str, state: str, **more: str) -> None:
    """An RDMA card on the bus behind root complex pci0000:17."""
    pci = f"devices/pci0000:17/0000:17:01.0/{address}"
    for file, text in {"class": "0x020000\n", "numa_node": "1\n", **more}.items():
        put(root, f"{pci}/{file}", text)
    put(root, f"{pci}/uevent", f"DRIVER=mlx5_core\nPCI_SLOT_NAME={address}\n")
    put(root, f"{pci}/infiniband/{name}/ports/1/state", state)
    link(root, f"{pci}/infiniband/{name}/device", pci)
    link(root, f"class/infiniband/{name}", f"{pci}/infiniband/{name}")


def sysfs(tmp_path: Path) -> HostRoot:
    """A machine with cards in /sys, links and all."""
    root = tmp_path / "sys"
    card(root, "0000:18:00.0", "mlx5_0", "4: ACTIVE\n")
    card(root, "0000:18:00.1", "mlx5_2", "4: ACTIVE\n")  # a virtual function of the first one
    card(root, "0000:19:00.0", "mlx5_1", "1: DOWN\n")
    card(root, "0000:1a:00.0", "bnxt_re1", "4: ACTIVE\n", numa_node="-1\n")
    card(root, "0000:1b:00.0", "odd_7", "4: ACTIVE\n", **{"class": "0x030200\n"})
    first = "devices/pci0000:17/0000:17:01.0"
    link(root, f"{first}/0000:18:00.0/virtfn0", f"{first}/0000:18:00.1")
    link(root, f"{first}/0000:18:00.1/physfn", f"{first}/0000:18:00.0")
    put(root, "class/infiniband/rxe0/ports/1/state", "4: ACTIVE\n")
    for number, maker in enumerate(("0x1002\n", "0x1002\n", "0x1a03\n")):
        pci = f"devices/pci0000:c0/0000:c{number}:00.0"
        put(root, f"{pci}/uevent", f"PCI_SLOT_NAME=0000:c{number}:00.0\n")
        put(root, f"{pci}/vendor", maker)
        put(root, f"{pci}/numa_node", "0\n")
        for file, text in {
            "mem_info_vram_total": f"{64 << 30}\n",
            "mem_info_vram_used": f"{16 << 30}\n",
            "gpu_busy_percent": "75\n",
            "unique_id": f"id-{number}\n",
            "product_name": "Instinct MI210\n",
        }.items():
            put(root, f"{pci}/{file}", text)
        put(root, f"{pci}/drm/card{number}/size", "0\n")
        link(root, f"{pci}/drm/card{number}/device", pci)
        link(root, f"class/drm/card{number}", f"{pci}/drm/card{number}")
    put(root, "class/drm/version", "drm 1.1.0\n")
    put(root, "module/amdgpu/version", "6.3.6\n")
    return HostRoot({SYS: root})


# --- how they are found ---------------------------------------------------------------------------------


def test_rdma_cards_are_told_with_their_virtual_functions(tmp_path: Path) -> None:
    root = sysfs(tmp_path)
    found = read_rdma_cards(root, PciBuses(root, SOCKETS))
    assert [(one.id, one.minor, one.healthy, one.functions) for one in found] == [
        ("0000:18:00.0", 0, True, ("0000:18:00.1",)),
        ("0000:19:00.0", 1, False, ()),
        ("0000:1a:00.0", 2, True, ()),  # 1 is taken
    ]
    assert found[0].place == DevicePlace(1, 1, "pci0000:17", "0000:18:00.0")
    assert found[2].place == DevicePlace(-1, -1, "pci0000:17", "0000:1a:00.0")
    assert found[1].state == DeviceState(False, "PortNotActive", "port 1 of mlx5_1 is not active")
    assert read_rdma_cards(FakeRoot(), PciBuses(FakeRoot(), {})) == ()


def test_a_machine_with_one_zone_has_all_devices_in_it(tmp_path: Path) -> None:
    place = PciBuses(sysfs(tmp_path), {0: 0}).place("0000:1A:00.0")
    assert place == DevicePlace(0, 0, "pci0000:17", "0000:1a:00.0")


def test_the_table_of_drivers_tells_where_figures_stand(tmp_path: Path) -> None:
    root = sysfs(tmp_path)
    found = read_vendor_devices(root, PciBuses(root, SOCKETS))
    assert found is not None
    assert (found.vendor, found.model, found.driver) == ("amd", "Instinct-MI210", "6.3.6")
    assert [(one.id, one.minor, one.resources["koordinator.sh/gpu-memory"]) for one in found.devices] == [
        ("id-0", 0, str(64 << 30)),
        ("id-1", 1, str(64 << 30)),
    ]
    assert (found.use["id-1"].cores, found.use["id-1"].memory) == (75.0, float(16 << 30))
    assert read_vendor_devices(FakeRoot(), PciBuses(FakeRoot(), {})) is None


def test_nvidias_library_is_asked_by_its_own_structures(built: Path, nvidia: ctypes.CDLL) -> None:
    library = NvidiaLibrary(str(built))
    try:
        first, second = library.figures(0), library.figures(1)
        assert (first.uuid, first.minor, first.model, first.address) == (
            *("GPU-a", 1, "NVIDIA A100 SXM4 80GB", "0000:3b:00.0"),
        )
        assert (first.memory, first.used, first.busy) == (80 << 30, 20 << 30, 40)
        # The later of two samples counts; memory that the library does not know is none; idle ones have used nothing.
        assert (first.processes, second.processes) == ({7: (20, 5 << 30), 4242: (0, 0)}, {})
        assert library.figures(0).processes[7] == (0, 5 << 30)  # nothing new was sampled since
        nvidia.fake_silent(1)
        assert library.errors() == []
        assert library.silent == {"GPU-b"}
        nvidia.fake_xid(1, 79)
        nvidia.fake_xid(-1, 62)
        assert sorted(library.errors()) == [("", 62), ("GPU-b", 79)]
        nvidia.fake_lost(1)
        with pytest.raises(KernelFileError, match="nvmlDeviceGetHandleByIndex_v2: GPU is lost"):
            library.figures(1)
    finally:
        library.close()
    with pytest.raises(NoSuchFile, match="no such library"):
        NvidiaLibrary("libkoordpolicy-none.so")
    with pytest.raises(KernelFileError, match="ELF"):
        NvidiaLibrary(__file__)


def test_a_gpu_with_an_error_is_ill_and_stays_known(built: Path, nvidia: ctypes.CDLL, tmp_path: Path) -> None:
    collector = DeviceCollector(FakeRoot(), DeviceSources(tmp_path, str(built)))

    def health() -> dict[str, str]:
        found = collector.look(PACE, SOCKETS)
        assert not found.problems
        assert found.gpus is not None
        return {one.id: "" if one.state is None else one.state.code for one in found.gpus.devices}

    assert health() == {"GPU-a": "", "GPU-b": ""}
    nvidia.fake_xid(0, 13)  # a program's own
    assert health() == {"GPU-a": "", "GPU-b": ""}
    nvidia.fake_xid(0, 79)
    nvidia.fake_lost(1)
    assert health() == {"GPU-a": "Xid79", "GPU-b": "DeviceLost"}
    nvidia.fake_lost(-1)
    assert health() == {"GPU-a": "Xid79", "GPU-b": "DeviceLost"}
    collector.close()


def test_what_cannot_be_told_is_none_and_named(built: Path, nvidia: ctypes.CDLL, tmp_path: Path) -> None:
    nothing = DeviceCollector(FakeRoot(), NOWHERE).look(PACE, {})
    assert (nothing.gpus, nothing.cards, nothing.problems) == (None, (), {})
    assert "no such library" in nothing.absent[0]
    nvidia.fake_down(1)
    broken = DeviceCollector(FakeRoot(), DeviceSources(tmp_path, str(built))).look(PACE, {})
    assert broken.gpus is None
    assert broken.problems["nvml"].endswith("nvmlInit_v2: Driver Not Loaded")
    nvidia.fake_down(0)
    nvidia.fake_count(0)
    collector = DeviceCollector(FakeRoot(), DeviceSources(tmp_path, str(built)))
    assert collector.look(PACE, {}).gpus == FoundGPUs()  # a driver without GPUs
    collector.close()


ASCEND: dict[str, Any] = {
    "vendor": "huawei",
    "model": "Ascend-910B",
    "uuid": "185011D4-21104518",
    "minor": "1",
    "resources": {"huawei.com/npu-core": "32", "gpu-memory": "32Gi"},
    "topology": {
        "p2pLinks": [{"peerMinor": "0", "type": "HCCS"}, {"peerMinor": "", "type": "HCCS"}],
        "mustHonorPartition": True,
        "socketID": "0",
        "nodeID": "1",
        "pcieID": "pci0000:08",
        "busID": "0000:08:00.0",
    },
    "status": {"healthy": False, "errCode": "80E18005", "errMessage": "HBM"},
}


def test_files_of_other_vendors_are_read_as_koordlet_reads_them(tmp_path: Path) -> None:
    second = {**ASCEND, "uuid": "x", "minor": "0", "status": None}
    (tmp_path / "b.json").write_text(json.dumps([ASCEND]))
    (tmp_path / "a.json").write_text(json.dumps([second]))
    (tmp_path / "empty").write_text("")
    (tmp_path / "directory").mkdir()
    found = read_device_infos(tmp_path)
    assert found is not None
    assert (found.vendor, found.model, found.honoured) == ("huawei", "Ascend-910B", True)
    assert found.partitions == (((0,), "HCCS"), ((0, 1), "HCCS"))
    assert found.devices[1] == FoundDevice(
        GPU,
        "185011D4-21104518",
        1,
        {
            "koordinator.sh/gpu-memory-ratio": "100",
            "huawei.com/npu-core": "32",
            "koordinator.sh/gpu-memory": "32Gi",
        },
        DevicePlace(0, 1, "pci0000:08", "0000:08:00.0"),
        DeviceState(False, "80E18005", "HBM"),
    )
    assert read_device_infos(tmp_path / "none") is None


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "a.json: "),
        ("[3]", "not a list of devices"),
        (json.dumps([{**ASCEND, "minor": "x"}]), r"\[0\].minor: `x` is no number"),
        (json.dumps([{**ASCEND, "minor": "-1"}]), r"\[0\].minor: devices are numbered from 0, not -1"),
        (json.dumps([{**ASCEND, "resources": {"a": "much"}}]), r"resources.a"),
        (json.dumps([{**ASCEND, "topology": {"nodeID": 3}}]), r"nodeID"),
        ("[" * 100_000, "a.json: "),
    ],
)
def test_a_file_that_is_none_is_told_with_its_place(text: str, problem: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ObjectError, match=problem):
        read_device_infos(tmp_path)


def test_the_doctor_names_each_source(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps([ASCEND]))
    there = {one.name: one for one in device_abilities(sysfs(tmp_path), DeviceSources(tmp_path, "none.so"))}
    assert {name: one.why for name, one in there.items() if one.there} == {
        "files about accelerators": "1 of huawei",
        "accelerators by their drivers": "2 of amd",
        "RDMA cards": "3 of them",
    }
    assert (there["GPUs of NVIDIA"].why, there["GPUs of NVIDIA"].means) == (
        "none.so: there is no such library",
        "MetricCollection.devices.gpus tells of none of NVIDIA's",
    )
    text = doctor_text(kernel()[0])
    missing = text.partition("it does not have")[2]
    for name in (*there, "memory.idle_page_stats"):
        if name != "block devices":
            assert f"  {name}" in missing
    assert max(map(len, text.splitlines())) <= 80


# --- what is said of them -------------------------------------------------------------------------------


def crd() -> Mapping[str, Any]:
    """What the API server takes."""
    file = REPOSITORY / "deploy/crds/scheduling.koordinator.sh_devices.yaml"
    (version,) = YAML(typ="safe").load(file)["spec"]["versions"]
    schema: Mapping[str, Any] = version["schema"]["openAPIV3Schema"]
    return schema


def found(tmp_path: Path) -> DeviceFindings:
    (tmp_path / "a.json").write_text(json.dumps([ASCEND]))
    root = sysfs(tmp_path)
    return DeviceFindings(read_device_infos(tmp_path), read_rdma_cards(root, PciBuses(root, SOCKETS)))


def test_the_object_is_what_others_read_and_what_is_others_stays(tmp_path: Path) -> None:
    told = found(tmp_path)
    said = device_object(OBJECT, told, None, NOW)
    jsonschema.validate(said, crd())
    assert [one.type for one in read_devices(said).devices] == ["gpu", "rdma", "rdma", "rdma"]
    assert read_devices(said).devices[1] == Device(
        "rdma",
        True,
        {"koordinator.sh/rdma": 100},
        id="0000:18:00.0",
        numa=1,
        pcie="pci0000:17",
        functions=(FunctionGroup({}, (VirtualFunction(-1, "0000:18:00.1"),)),),
    )
    labels = said["metadata"]["labels"]
    assert labels == {
        "node.koordinator.sh/gpu-vendor": "huawei",
        "node.koordinator.sh/gpu-model": "Ascend-910B",
        "node.koordinator.sh/gpu-partition-policy": "Honor",
    }
    partitions = json.loads(said["metadata"]["annotations"]["scheduling.koordinator.sh/gpu-partitions"])
    assert partitions["2"] == [{"minors": [0, 1], "gpuLinkType": "HCCS", "allocationScore": 1}]
    assert said["metadata"]["ownerReferences"][0]["controller"] is True
    assert said["spec"]["devices"][1]["vfGroups"] == [{"vfs": [{"minor": -1, "busID": "0000:18:00.1"}]}]
    (condition,) = said["spec"]["devices"][0]["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "80E18005", "HBM")
    # Another's devices, labels and states stay; a condition keeps its time while it says the same.
    fpga = {"type": "fpga", "id": "f", "minor": 0, "health": True}
    standing = {
        **said,
        "metadata": {**said["metadata"], "labels": {**labels, "mine": "yes"}, "resourceVersion": "7"},
        "spec": {"devices": [*said["spec"]["devices"], fpga]},
        "status": {"allocations": []},
    }
    again = device_object(OBJECT, told, standing, NOW + 60 * SECOND)
    assert (again["metadata"]["labels"]["mine"], again["status"]) == ("yes", {"allocations": []})
    assert {one["type"] for one in again["spec"]["devices"]} == {"gpu", "rdma", "fpga"}
    assert again["spec"]["devices"][1]["conditions"] == [condition]
    assert says_devices(again, device_object(OBJECT, told, again, NOW + 90 * SECOND))
    # What could not be told stays; what was looked for and is not there goes.
    kept = device_object(OBJECT, DeviceFindings(None, ()), again, NOW)
    assert [one["type"] for one in kept["spec"]["devices"]] == ["fpga", "gpu"]
    with pytest.raises(ObjectError):
        device_object(OBJECT, DeviceFindings(), {"spec": {"devices": [3]}}, NOW)


# --- the agent ------------------------------------------------------------------------------------------

BUS = {
    "/sys/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/numa_node": "0\n",
    "/sys/devices/pci0000:3a/0000:3a:01.0/0000:3d:00.0/numa_node": "-1\n",
}
WANTED = document("MetricCollection", "ours", {"devices": {"gpus": True, "rdma": True}})


def kernel(sources: DeviceSources = NOWHERE) -> tuple[NodeKernel, FakeMachine]:
    root = FakeRoot(CgroupVersion.V1, extra={**PLAIN, **BUS})
    machine = FakeMachine(root, MachineSettings(memory=8 * GIB, reserve=1 << 20, step=100_000_000))
    for pid, name in enumerate(GROUPS, 7):
        appear(root, machine, name, pid)
    hierarchy = discover_hierarchy(root)
    door = KernelDoor(root, hierarchy, lambda: 0, LIMITS, WriteLog(10))
    return NodeKernel(root, hierarchy, door, sources=sources), machine


def test_an_agent_tells_of_gpus_and_who_uses_them(built: Path, nvidia: ctypes.CDLL, tmp_path: Path) -> None:
    node, machine = kernel(DeviceSources(tmp_path, str(built)))
    cluster = MemoryCluster(Store(lambda: NOW / SECOND))

    async def story() -> None:
        async with whole_agent(
            graph(WANTED),
            node,
            cluster,
            list(PODS_OF.values()),
            capacity={"cpu": "4", "memory": "8Gi", "pods": "110"},
        ) as agent:
            for _ in range(2):  # a rate takes two counts
                agent.collect()
                machine.advance(SECOND // 5)
            assert await agent.look_at_devices()
            said = await cluster.get(DEVICES, NODE)
            assert said["metadata"]["labels"] == {
                "node.koordinator.sh/gpu-vendor": "nvidia",
                "node.koordinator.sh/gpu-model": "A100-SXM4-80GB",
                "node.koordinator.sh/gpu-driver-version": "535.104.05",
            }
            assert said["spec"]["devices"] == [
                {
                    "type": "gpu",
                    "id": name,
                    "minor": minor,
                    "health": True,
                    "resources": {
                        "koordinator.sh/gpu-core": "100",
                        "koordinator.sh/gpu-memory": str(80 << 30),
                        "koordinator.sh/gpu-memory-ratio": "100",
                    },
                    "topology": {"socketID": 0, "nodeID": 0, "pcieID": "pci0000:3a", "busID": address},
                }
                for minor, (name, address) in enumerate(
                    (("GPU-b", "0000:3d:00.0"), ("GPU-a", "0000:3b:00.0"))
                )
            ]
            await heard(agent)
            assert not await agent.look_at_devices()  # it says so already
            assert await agent.report()
            status = (await cluster.get(NODE_METRICS, NODE))["status"]
            assert status["nodeMetric"]["nodeUsage"]["devices"][1] == {
                "type": "gpu",
                "id": "GPU-a",
                "minor": 1,
                "resources": {
                    "koordinator.sh/gpu-core": "40",
                    "koordinator.sh/gpu-memory": str(20 << 30),
                    "koordinator.sh/gpu-memory-ratio": "25",
                },
            }
            used = {one["name"]: one["podUsage"].get("devices") for one in status["podsMetric"]}
            assert used["batch"] is None
            (of_web,) = used["web"]
            assert (of_web["id"], of_web["resources"]["koordinator.sh/gpu-memory"]) == ("GPU-a", str(5 << 30))
            nvidia.fake_xid(1, 79)
            assert await agent.look_at_devices()
            ill = (await cluster.get(DEVICES, NODE))["spec"]["devices"][0]
            assert (ill["health"], ill["conditions"][0]["reason"]) == (False, "Xid79")
            jsonschema.validate({"spec": {"devices": [ill]}}, crd())
            text = agent.component.process.metrics.text().decode()
            assert 'koordpolicy_device_healthy{id="GPU-b",minor="0",node="n",type="gpu"} 0.0' in text
            assert 'koordpolicy_device_busy_percent{id="GPU-a",minor="1",node="n",type="gpu"} 40.0' in text
            await agent.stop()

    asyncio.run(story())


async def heard(agent: Any) -> None:
    """Until the watch has told of the object."""
    async with asyncio.timeout(30):
        while agent.watch.own(DEVICES) is None:  # noqa: ASYNC110 - a mirror has no event to wait for
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("wanted", [True, False])
def test_a_node_without_devices_gets_no_object(wanted: bool) -> None:
    node, _machine = kernel()
    cluster = MemoryCluster(Store(lambda: NOW / SECOND))

    async def story() -> str:
        async with whole_agent(
            graph(*([WANTED] if wanted else [])),
            node,
            cluster,
            [],
            capacity={"cpu": "4"},
        ) as agent:
            assert not await agent.look_at_devices()
            await agent.stop()
            with pytest.raises(NotFound):
                await cluster.get(DEVICES, NODE)
            return str(agent.status()["devices"])

    assert asyncio.run(story()) == ("good, 0 of them" if wanted else "not wanted")


def test_a_driver_that_does_not_answer_holds_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rounds, "_PATIENCE", 0.02)
    go, looks = threading.Event(), []

    class Slow(DeviceCollector):
        def look(self, pace: DevicePace, sockets: Mapping[int, int]) -> DeviceFindings:
            looks.append(pace)
            go.wait(30)
            return DeviceFindings(cards=())

    async def story() -> None:
        reporter: Any = None
        waiting = rounds.DeviceRounds(Slow(FakeRoot(), NOWHERE), reporter)
        waiting.pace = PACE
        assert not await waiting.look(())
        assert not await waiting.look(())  # the same look: no second thread waits
        assert (waiting.trouble, len(looks)) == ("the drivers of devices do not answer", 1)
        go.set()
        monkeypatch.setattr(rounds, "_PATIENCE", 30.0)
        assert await waiting.look(())
        assert (waiting.trouble, waiting.found.cards) == ("", ())

    asyncio.run(story())
