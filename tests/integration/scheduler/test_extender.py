"""The stock kube-scheduler with our extender, by the configuration that is shipped."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.integration.scheduler.sites import PATIENCE, Scheduler, Site, profile
from tests.parts.deployed import DEPLOY
from tests.parts.processes import Running, free_port
from tests.unit.runtime.http.certificates import certificate

SHIPPED = DEPLOY / "extender" / "kube-scheduler.yaml"
KUBE = "default-scheduler"

Part = Callable[[str], Path]


@contextmanager
def kube_scheduler(site: Site, program: Path, port: int, changes: dict[str, Any]) -> Iterator[Running]:
    """kube-scheduler as shipped, but for where the extender is and by what it is trusted, and alone."""
    config = YAML(typ="safe").load(SHIPPED)
    config["leaderElection"] = {"leaderElect": False}
    config["clientConnection"] = {"kubeconfig": str(site.access.kubeconfig("kube-scheduler"))}
    extender = config["extenders"][0]
    extender |= {"urlPrefix": f"https://127.0.0.1:{port}", "httpTimeout": "60s", **changes}
    extender["tlsConfig"] = {
        key: str(site.folder / Path(file).name) for key, file in extender["tlsConfig"].items()
    }
    file = site.folder / "kube-scheduler.json"
    file.write_text(json.dumps(config), "utf-8")
    command = [str(program), f"--config={file}", "--secure-port=0", "--v=4"]
    with Running(command, site.folder / "kube-scheduler.log") as running:
        yield running


@contextmanager
def both(site: Site, part: Part, *flags: str, **changes: Any) -> Iterator[Scheduler]:
    """The extender, ready, and kube-scheduler beside it, each with a certificate."""
    program, port = part("kube-scheduler"), free_port()
    with (
        site.scheduler(
            "extender", "--extender", f"127.0.0.1:{port}", *certificates(site), *flags
        ) as extender,
        kube_scheduler(site, program, port, changes) as peer,
    ):
        site.eventually(lambda: extender.status.get("answering"), "it answers")
        yield extender
        assert peer.running, peer.tail()


def certificates(site: Site) -> tuple[str, ...]:
    """Certificates for both, under the names that the shipped configuration gives; the flags of the extender."""
    own, client = certificate(1), certificate(2, "/CN=kube-scheduler")
    for name, data in (
        ("ca.crt", own.pem),
        ("tls.key", own.key),
        ("client.crt", client.pem),
        ("client.key", client.key),
    ):
        (site.folder / name).write_bytes(data)
    files = {
        "--tls-cert-file": "ca.crt",
        "--tls-private-key-file": "tls.key",
        "--tls-client-ca-file": "client.crt",
    }
    return tuple(part for flag, name in files.items() for part in (flag, str(site.folder / name)))


def fleet(site: Site) -> None:
    """A node that idles, one that is half busy, and one above the limit of load; for requests all are equal."""
    for name, load in (("idle", "200m"), ("half", "2"), ("overloaded", "3900m")):
        site.node(name)
        site.measured(name, load)


@pytest.mark.parametrize("names", [True, False], ids=["names", "nodes"])
def test_pods_go_where_policy_prefers_and_follow_its_changes(site: Site, part: Part, names: bool) -> None:
    fleet(site)
    # Load decides alone when it weighs as much as all that kube-scheduler weighs.
    with both(site, part, nodeCacheCapable=names, weight=20) as extender:
        assert extender.status["filters"] == [
            "ElasticQuota", "AmplifiedCPU", "Reservation", "NodeNUMAResource", "DeviceShare", "Coscheduling",
            "LoadAwareScheduling", "NetworkTopology",
        ]  # fmt: skip
        site.eventually(lambda: extender.status["nodes"] == 3, "the nodes are known")
        for number in range(3):
            site.pod(f"calm-{number}", "10m", scheduler=KUBE)
        site.eventually(lambda: not site.waiting(), "they are placed")
        assert set(site.where().values()) == {"idle"}

        site.pod("large", "3900m", scheduler=KUBE)  # by requests it fits everywhere
        site.eventually(lambda: "large" in site.where() or site.refusal("large")[1], "it is decided on")
        reason, message = site.refusal("large")
        assert reason == "Unschedulable"
        assert "node(s) cpu usage exceed threshold" in message
        site.gone("large")

        # Another revision: nodes may be full, and the busier one is preferred.
        site.write(
            "profile.yaml",
            profile(
                {
                    "parameters": {"usageThresholds": {"value": {"cpu": "0%"}}},
                    "scores": [{"name": "LoadAwareScheduling", "weight": 0}, {"name": "busy", "weight": 1,
                                "value": {"cel": "node.name == 'overloaded' ? 100 : 0"}}],
                }
            ),
        )  # fmt: skip
        before = extender.status["policies"]["active"]["revision"]
        site.eventually(lambda: extender.status["policies"]["active"]["revision"] != before, "it reloads")
        site.pod("after", "10m", scheduler=KUBE)
        site.eventually(lambda: not site.waiting(), "it is placed")
        assert site.where()["after"] == "overloaded"
        for verb in ("filter", "prioritize", "bind"):
            assert extender.metric(f'koordpolicy_extender_calls_total{{result="ok",verb="{verb}"}}') >= 4
            assert extender.metric(f'koordpolicy_extender_calls_total{{result="error",verb="{verb}"}}') == 0
        assert extender.status["pods"] == 4
        site.check_capacity()


def test_a_sidecar_may_do_without_credentials_where_that_is_said(site: Site, part: Part) -> None:
    fleet(site)
    port = free_port()
    flags = ("--extender", f"127.0.0.1:{port}")
    with site.scheduler("refused", *flags, ready=False) as refused:
        site.eventually(lambda: not refused.running.running, "it does not start")
        assert "--extender-anonymous-auth if all of them may" in refused.running.tail()
    plain = {"urlPrefix": f"http://127.0.0.1:{port}", "enableHTTPS": False, "tlsConfig": {}}
    with (
        site.scheduler("sidecar", *flags, "--extender-anonymous-auth") as extender,
        kube_scheduler(site, part("kube-scheduler"), port, plain),
    ):
        site.eventually(lambda: extender.status.get("answering"), "it answers")
        site.pod("p", "10m", scheduler=KUBE)
        site.eventually(lambda: not site.waiting(), "it is placed")
        assert site.where() == {"p": "idle"}


def test_a_node_is_found_whatever_the_first_hundred_are_like(site: Site, part: Part) -> None:
    # kube-scheduler would stop at a hundred of them, and leave it to us to say that none of those will do.
    for number in range(110):
        site.node(f"busy-{number}")
        site.measured(f"busy-{number}", "3900m")
    for number in range(4):
        site.node(f"idle-{number}")
        site.measured(f"idle-{number}", "100m")
    with both(site, part) as extender:
        site.eventually(lambda: extender.status["nodes"] == 114, "the nodes are known")
        for number in range(8):
            site.pod(f"p-{number}", "10m", scheduler=KUBE)
        site.eventually(lambda: not site.waiting(), "they are placed")
        assert {where.partition("-")[0] for where in site.where().values()} == {"idle"}
        assert [message for _, reason, message, _ in site.events() if reason == "FailedScheduling"] == []


def test_a_burst_counts_each_pod_for_the_next(site: Site, part: Part) -> None:
    for name in ("a", "b", "c"):
        site.node(name)
        site.measured(name, "100m")
    # An estimate of 85 % of 1 CPU: two of them and what is measured are under 65 % of 4 CPUs, three are not.
    with both(site, part, weight=5) as extender:
        for number in range(8):
            site.pod(f"p-{number}", "1", scheduler=KUBE)
        site.eventually(lambda: len(site.where()) == 6, "those that fit are placed")
        site.eventually(lambda: all(site.refusal(name)[1] for name in site.waiting()), "the others are told")
        where = list(site.where().values())
        assert {name: where.count(name) for name in ("a", "b", "c")} == {"a": 2, "b": 2, "c": 2}
        assert extender.status["pods"] == 6


def test_room_is_made_only_where_load_permits(site: Site, part: Part) -> None:
    for name, load in (("calm", "100m"), ("overloaded", "3900m")):
        site.node(name, {"cpu": "4", "memory": "8Gi", "pods": "2"})
        site.measured(name, load)
        for number in range(2):
            site.pod(f"{name}-{number}", "10m", nodeName=name)
    with both(site, part) as extender:
        site.eventually(lambda: extender.status["pods"] == 4, "the pods are known")
        site.pod("urgent", "10m", scheduler=KUBE, priorityClassName="important")
        site.eventually(
            lambda: extender.metric('koordpolicy_extender_calls_total{result="ok",verb="preempt"}'),
            "room is asked for",
        )

        def leaving() -> set[str]:
            return {
                name
                for name, one in site.pods().items()
                if one["metadata"].get("deletionTimestamp")
                or any(c["type"] == "DisruptionTarget" for c in one["status"].get("conditions", ()))
            } | ({"calm-0", "calm-1", "overloaded-0", "overloaded-1"} - set(site.pods()))

        site.eventually(leaving, "one is sent away")
        (gone,) = leaving()
        assert gone.startswith("calm-")
        site.gone(gone)
        site.eventually(lambda: site.where().get("urgent") == "calm", "it gets the room", PATIENCE)


def test_without_the_extender_pods_wait_and_go_on_afterwards(site: Site, part: Part) -> None:
    fleet(site)
    port = free_port()
    flags = certificates(site)
    with kube_scheduler(site, part("kube-scheduler"), port, {"httpTimeout": "2s"}):
        site.pod("p", "10m", scheduler=KUBE)
        site.eventually(lambda: "connection refused" in site.refusal("p")[1], "it waits")
        with site.scheduler("extender", "--extender", f"127.0.0.1:{port}", *flags):
            # kube-scheduler tries again within its back-off of ten seconds once something happens.
            site.node("another")
            site.eventually(lambda: "p" in site.where(), "it is placed")
