import pytest

from koordpolicy.linux.cgroups.hierarchy import discover_hierarchy
from koordpolicy.linux.cgroups.kubepods import (
    CgroupDriver,
    ContainerGroup,
    Kubepods,
    containers,
    discover_kubepods,
)
from koordpolicy.linux.errors import KernelFileError, NoSuchFile, OutsideRoot
from koordpolicy.linux.fake.root import FakeRoot
from koordpolicy.linux.files.kernel_file import CgroupVersion

UID = "6d0c1b1e-0000-4000-8000-00000000000a"
UNDER = UID.replace("-", "_")
ID = "0123456789abcdef" * 4


@pytest.mark.parametrize(
    ("driver", "kubernetes_class", "pod"),
    [
        (CgroupDriver.CGROUPFS, "Guaranteed", f"kubepods/pod{UID}"),
        (CgroupDriver.CGROUPFS, "Burstable", f"kubepods/burstable/pod{UID}"),
        (CgroupDriver.CGROUPFS, "BestEffort", f"kubepods/besteffort/pod{UID}"),
        (CgroupDriver.SYSTEMD, "Guaranteed", f"kubepods.slice/kubepods-pod{UNDER}.slice"),
        (
            CgroupDriver.SYSTEMD,
            "Burstable",
            f"kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{UNDER}.slice",
        ),
        (
            CgroupDriver.SYSTEMD,
            "BestEffort",
            f"kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{UNDER}.slice",
        ),
    ],
)
def test_pods_stand_where_the_kubelet_puts_them(
    driver: CgroupDriver, kubernetes_class: str, pod: str
) -> None:
    assert Kubepods(driver).of_pod(UID, kubernetes_class) == pod
    assert Kubepods(driver, "mine").of_pod(UID, kubernetes_class) == f"mine/{pod}"


@pytest.mark.parametrize(
    ("driver", "identity", "name"),
    [
        (CgroupDriver.CGROUPFS, f"containerd://{ID}", ID),
        (CgroupDriver.SYSTEMD, f"containerd://{ID}", f"cri-containerd-{ID}.scope"),
        (CgroupDriver.SYSTEMD, f"docker://{ID}", f"docker-{ID}.scope"),
        (CgroupDriver.SYSTEMD, f"cri-o://{ID}", f"crio-{ID}.scope"),
        (CgroupDriver.SYSTEMD, f"pouch://{ID}", f"pouch-{ID}.scope"),
    ],
)
def test_containers_are_named_by_their_runtime(driver: CgroupDriver, identity: str, name: str) -> None:
    assert Kubepods(driver).of_container("kubepods/pod1", identity) == f"kubepods/pod1/{name}"


@pytest.mark.parametrize("name", ["..", "a/b", "", "\0"])
def test_names_that_are_paths_are_refused(name: str) -> None:
    with pytest.raises(OutsideRoot):
        Kubepods(CgroupDriver.CGROUPFS).of_container("kubepods/pod1", f"containerd://{name}")


@pytest.mark.parametrize("version", CgroupVersion)
@pytest.mark.parametrize("driver", CgroupDriver)
def test_groups_are_found_by_what_is_there(version: CgroupVersion, driver: CgroupDriver) -> None:
    root = FakeRoot(version)
    hierarchy = discover_hierarchy(root)
    assert hierarchy.version is version
    assert hierarchy.v1.get("cpuacct") == ("cpu,cpuacct" if version is CgroupVersion.V1 else None)
    at = hierarchy.directory("cpu")
    assert discover_kubepods(root, at) is None
    kubepods = Kubepods(driver)
    pod = kubepods.of_pod(UID, "Burstable")
    for name in (f"cri-containerd-{ID}.scope", f"crio-{ID}", ID[:20], "init.scope"):
        parts = f"{pod}/{name}".split("/")
        for depth in range(1, len(parts) + 1):
            root.make_directory(f"{at}/{'/'.join(parts[:depth])}")
    assert discover_kubepods(root, at) == kubepods
    assert containers(root, f"{at}/{pod}", pod) == (
        ContainerGroup(f"{pod}/{ID[:20]}", ID[:20]),
        ContainerGroup(f"{pod}/cri-containerd-{ID}.scope", ID),
        ContainerGroup(f"{pod}/crio-{ID}", ID),
    )
    with pytest.raises(NoSuchFile):
        containers(root, f"{at}/{pod}/gone", pod)


def test_a_hybrid_machine_has_controllers_of_version_1_and_pressure_of_version_2() -> None:
    at = "/sys/fs/cgroup"
    root = FakeRoot(CgroupVersion.V1, extra={f"{at}/unified/cgroup.controllers": ""})
    hierarchy = discover_hierarchy(root)
    assert (hierarchy.version, hierarchy.v2) == (CgroupVersion.V1, "unified")
    paths = {
        name: [one.path for one in hierarchy.located(name, "g")] for name in ("cpu.shares", "cpu.pressure")
    }
    assert paths == {
        "cpu.shares": [f"{at}/cpu,cpuacct/g/cpu.shares"],
        "cpu.pressure": [f"{at}/cpu,cpuacct/g/cpu.pressure", f"{at}/unified/g/cpu.pressure"],
    }


def test_a_machine_without_cgroups_says_so() -> None:
    root = FakeRoot(extra={"/sys/fs/cgroup/nothing/here": ""})
    root.trees.clear()
    with pytest.raises(KernelFileError, match="no cgroup hierarchy is mounted here"):
        discover_hierarchy(root)
