"""Containers of a real containerd and runc, whoever sees to them: proxy or NRI as they start, or the agent alone afterwards.

In all ways the kernel's files say the same. Needs root and cgroup v1, as the tests of the agent.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import pytest

from koordpolicy.cri.calls import CallFailed
from tests.conftest import REPOSITORY
from tests.integration.agent.node import Node, until
from tests.integration.container_runtime.cri import Kubelet, containerd, environment_of
from tests.integration.container_runtime.site import (
    STRICT,
    WANTED,
    WANTED_OF_OWNER,
    Site,
    differs,
    kubelet_at,
)
from tests.integration.container_runtime.storm import AT_ONCE, Storm
from tests.parts.deployed import DeployedServer
from tests.parts.fixtures import need
from tests.parts.kubelet import has_writable_groups
from tests.parts.processes import Running

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="containers need root"),
    pytest.mark.skipif(
        not has_writable_groups(), reason="this machine's control groups (version 1) cannot be written"
    ),
]
STORM, WAVE = (500, 25) if os.environ.get("KOORDPOLICY_RUNTIME_STORM") == "full" else (12, 12)
SWAP = "memory/memory.memsw.limit_in_bytes"
"""Which runtimes make of a memory limit by themselves as they create a container; no agent writes it, koordlet neither."""
SMALLER = {
    "apiVersion": "koordpolicy.io/v1alpha1",
    "kind": "ContainerHook",
    "metadata": {"name": "smaller"},
    "spec": {"container": {"cpuLimit": "250m"}},
}


@pytest.fixture(scope="module")
def node(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    need(pytestconfig, "containerd", "busybox", "etcd", "kube-apiserver")
    folder = tmp_path_factory.mktemp("runtime")
    with DeployedServer(folder / "cluster") as server:
        node = Node(server, folder)
        node.prepare()
        yield node
        node.clean()


@contextmanager
def with_runtime(node: Node, name: str, *, nri: bool) -> Iterator[Site]:
    folder = node.folder / name
    (folder / "containerd").mkdir(parents=True)
    shutil.copytree(REPOSITORY / "examples" / "10-own-hook", folder / "policies")
    with containerd(folder / "containerd", nri=nri) as runtime:
        yield Site(node, runtime, folder, folder / "policies")


@pytest.fixture(scope="module")
def site(node: Node) -> Iterator[Site]:
    with with_runtime(node, "proxied", nri=False) as found:
        yield found


@pytest.fixture(scope="module")
def nri_site(node: Node, pytestconfig: pytest.Config) -> Iterator[Site]:
    need(pytestconfig, "containerd-2", "containerd-shim-runc-v2")
    with with_runtime(node, "nri", nri=True) as found:
        yield found


def test_kernel_files_are_the_same_whoever_sees_to_them(site: Site) -> None:
    with site.agent() as agent, ExitStack() as stack:
        proxy = site.start_proxy()
        stack.callback(proxy.stop)
        with kubelet_at(site.proxy_socket) as kubelet, kubelet_at(site.runtime.socket) as bare:
            proxied = site.pod("proxied")
            sandbox, container = site.start(kubelet, proxied)
            # Nobody has told the agent of this container: whatever stands there came with the call that made it.
            by_proxy = site.files(proxied, container)
            assert differs(by_proxy) == {}, proxy.tail() + agent.tail()
            until(partial(knows, site.pid(proxied, container), "OMP_NUM_THREADS=1"), proxy)

            alone = site.pod("alone")
            other, its_own = site.start(bare, alone)
            assert differs(site.files(alone, its_own))  # the runtime does what the kubelet says
            site.tell(alone, its_own)
            until(lambda: not differs(site.files(alone, its_own)), agent)
            assert site.files(alone, its_own) == by_proxy

            # A commit changes what runs, in both ways.
            site.tell(proxied, container)
            site.policy("smaller", SMALLER)
            for pod, identity in ((proxied, container), (alone, its_own)):
                until(partial(site.has_quota, pod, identity, "25000"), agent)
            # And what a runtime is asked to change keeps to it.
            kubelet.update(container, cpu_shares=2)
            assert site.files(proxied, container)["cpu.cfs_quota_us"] == "25000"
            assert site.files(proxied, container)["cpu.shares"] == "1536"
            site.policy("smaller", None)
            for one in (sandbox, other):
                kubelet.remove(one)


def test_without_an_agent_pods_start_as_the_failure_policy_says(site: Site) -> None:
    with ExitStack() as stack:
        with site.agent() as agent:
            until(lambda: site.announced().get("failure-policy") == "Ignore", agent)
        proxy = site.start_proxy()
        stack.callback(proxy.stop)
        with kubelet_at(site.proxy_socket) as kubelet:
            pod = site.pod("ignored")
            sandbox, container = site.start(kubelet, pod)
            assert differs(site.files(pod, container))
            with site.agent() as agent:
                site.tell(pod, container)
                until(lambda: not differs(site.files(pod, container)), agent)  # put right afterwards
                site.policy("strict", STRICT)
                until(lambda: site.announced().get("failure-policy") == "Fail", agent)
                agent.kill()
            pod = site.pod("failed")
            with pytest.raises(CallFailed, match="hook server err"):
                site.start(kubelet, pod)
            kubelet.remove(sandbox)  # what runs may end
            with site.agent():
                sandbox, container = _insist(partial(site.start, kubelet, pod), proxy)
                assert differs(site.files(pod, container)) == {}
                kubelet.remove(sandbox)
            site.policy("strict", None)


def test_a_proxy_and_a_runtime_that_are_killed_lose_no_pod(site: Site) -> None:
    """Amid many starts at once: in the end each pod runs, none without its limits. A kubelet tries again what failed."""
    with site.agent() as agent, ExitStack() as stack:
        site.policy("strict", STRICT)
        stack.callback(site.policy, "strict", None)
        until(lambda: site.announced().get("failure-policy") == "Fail", agent)
        proxies = [site.start_proxy()]
        stack.callback(lambda: [one.stop() for one in proxies])
        storm = Storm(site, site.proxy_socket)
        workers = stack.enter_context(ThreadPoolExecutor(AT_ONCE))
        for wave in range(0, STORM, WAVE):
            pods = [site.pod(f"storm-{number}") for number in range(wave, min(wave + WAVE, STORM))]
            awaited = storm.start(pods, workers)
            until(lambda: len(storm.running) >= WAVE // 4, proxies[-1])  # asked at once
            proxies[-1].signal(signal.SIGKILL)
            proxies.append(site.start_proxy())
            until(lambda: len(storm.running) >= WAVE // 2, proxies[-1])
            site.runtime.kill()
            site.runtime.start()
            for one in awaited:
                one.result()
            with kubelet_at(site.proxy_socket) as kubelet:
                alive = storm.containers(kubelet)
                for pod in pods:
                    _, container = storm.running[pod["metadata"]["name"]]
                    assert container in alive, proxies[-1].tail()
                    assert differs(site.files(pod, container)) == {}, agent.tail()
                    kubelet.update(container, cpu_shares=2)  # as one that was told of it by another proxy
                    assert differs(site.files(pod, container)) == {}, agent.tail()
                storm.end(kubelet, pods)
        assert storm.tries > 0


def knows(pid: int, variable: str) -> bool:
    """Whether a process began with a variable; at first it is still runc's."""
    return variable in environment_of(pid)


def _insist(work: Callable[[], Any], process: Running) -> Any:
    end = time.monotonic() + 60
    while True:
        try:
            return work()
        except CallFailed:
            assert time.monotonic() < end, process.tail()
            time.sleep(0.2)


def test_with_nri_kernel_files_are_the_same(nri_site: Site) -> None:
    with kubelet_at(nri_site.runtime.socket) as kubelet:
        with nri_site.agent() as agent:
            pod = nri_site.pod("nri")
            sandbox, container = nri_site.start(kubelet, pod)
            by_nri = nri_site.files(pod, container)
            assert differs(by_nri) == {}, agent.tail()
            until(partial(knows, nri_site.pid(pod, container), "OMP_NUM_THREADS=1"), agent)
            kubelet.update(container, cpu_shares=2, cpu_quota=20_000, cpu_period=100_000)
            assert nri_site.files(pod, container) == by_nri
            nri_site.tell(pod, container)
            nri_site.policy("smaller", SMALLER)
            until(partial(nri_site.has_quota, pod, container, "25000"), agent)
            nri_site.policy("smaller", None)
            kubelet.remove(sandbox)

            # The agent registers again with a runtime that comes back.
            nri_site.runtime.kill()
            nri_site.runtime.start()
            until(lambda: agent.log.read_text().count("registered with NRI") == 2, agent)
            pod = nri_site.pod("after")
            sandbox, container = _insist(partial(nri_site.start, kubelet, pod), agent)
            assert differs(nri_site.files(pod, container)) == {}, agent.tail()
            kubelet.remove(sandbox)
        pod = nri_site.pod("without")  # nobody is there: the runtime does what the kubelet says
        sandbox, container = nri_site.start(kubelet, pod)
        assert differs(nri_site.files(pod, container))
        kubelet.remove(sandbox)


def test_proxy_nri_and_the_agent_alone_bring_about_the_same_file_by_file(nri_site: Site) -> None:
    """On one runtime. By proxy and NRI as containers start: nobody tells the agent's rounds of them before they are looked at."""
    found: dict[tuple[str, str], dict[str, str]] = {}

    def look(way: str, agent: Running, kubelet: Kubelet, *, told: bool = False) -> None:
        for name, make, wanted in (
            ("best-effort", nri_site.pod, WANTED),
            ("owner", nri_site.owning_pod, WANTED_OF_OWNER),
        ):
            pod = make(f"{way}-{name}")
            sandbox, container = nri_site.start(kubelet, pod)
            if told:
                assert differs(nri_site.files(pod, container), wanted)
                nri_site.tell(pod, container)
                until(lambda: not differs(nri_site.files(pod, container), wanted), agent)  # noqa: B023  # asked at once
            assert differs(nri_site.files(pod, container), wanted) == {}, agent.tail()
            if name == "owner" and not told:
                until(partial(knows, nri_site.pid(pod, container), "NVIDIA_VISIBLE_DEVICES=0,2"), agent)
            found[name, way] = nri_site.settings(pod, container)
            kubelet.remove(sandbox)

    with kubelet_at(nri_site.runtime.socket) as bare, ExitStack() as stack:
        with nri_site.agent() as agent:
            look("nri", agent, bare)
        agent = stack.enter_context(nri_site.agent(as_plugin=False))
        look("rounds", agent, bare, told=True)
        stack.callback(nri_site.start_proxy().stop)
        look("proxy", agent, stack.enter_context(kubelet_at(nri_site.proxy_socket)))
    for name in ("best-effort", "owner"):
        by_nri, by_rounds, by_proxy = (found[name, way] for way in ("nri", "rounds", "proxy"))
        assert len(by_nri) > 20
        assert by_proxy == by_nri
        assert {**by_rounds, SWAP: by_nri[SWAP]} == by_nri
