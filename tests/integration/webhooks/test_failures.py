"""Managers that die, stop, disagree or lose their certificate, while pods are created on a real API server."""

import base64
import http.client
import json
import signal
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.integration.runtime.managers import Manager
from tests.integration.webhooks.load import Load
from tests.integration.webhooks.site import WebhookSite, documents, make_webhook_site, pod, policy
from tests.parts.apiserver import ApiServer
from tests.parts.deployed import DeployedServer, apply
from tests.parts.fixtures import need
from tests.parts.processes import free_port, listens
from tests.parts.proxy import Proxy

CLIENTS = 4
LABELS = {"app": "spark"}
PROFILE = policy(
    "ColocationProfile", "spark", {"match": {"pods": {"matchLabels": LABELS}}, "labels": {"drawn": "in"}}
)
SECRET = "/api/v1/namespaces/koordpolicy-system/secrets/koordpolicy-webhook-cert"


@pytest.fixture(scope="module")
def server(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServer]:
    need(pytestconfig, "etcd", "kube-apiserver")
    with DeployedServer(tmp_path_factory.mktemp("failures")) as server:
        yield server


@pytest.fixture
def site(server: ApiServer, tmp_path: Path) -> WebhookSite:
    made = make_webhook_site(server.access, tmp_path)
    made.write("spark.yaml", PROFILE)
    return made


@contextmanager
def two(site: WebhookSite, *more: str) -> Iterator[tuple[Manager, Manager, Proxy, ExitStack]]:
    """Two managers behind one address, as behind a Service; what is on the stack is stopped at the end."""
    ports = free_port(), free_port()
    with Proxy(*ports) as proxy, ExitStack() as stack:
        site.port = proxy.port
        first, second = (
            stack.enter_context(site.serving(f"m{port}", "--webhook-drain", "3s", *more, port=port))
            for port in ports
        )
        site.eventually(lambda: drawn(site), "pods that policies change")
        yield first, second, proxy, stack


def drawn(site: WebhookSite) -> bool:
    """Whether a pod is changed now."""
    probe = Load(site.access, LABELS)
    probe.run(1, 1)
    return probe.admitted == 1 and not probe.unchanged


@contextmanager
def under_load(site: WebhookSite, labels: dict[str, str], count: int = 0) -> Iterator[Load]:
    """Creations by four clients meanwhile, and so many at least. What ended one of the clients is raised at the end."""
    load, enough = Load(site.access, labels), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(load.run, count, CLIENTS, until=enough)
        try:
            yield load
        finally:
            enough.set()
        running.result(300)


def test_one_of_two_is_killed(site: WebhookSite) -> None:
    """Nothing is wrongly admitted, and all that can fail is what the killed one was asked in that moment."""
    with two(site) as (first, _, _, _):
        with under_load(site, LABELS, 3000) as load:
            site.eventually(lambda: load.count > 300, "load")
            first.running.kill()
        assert load.count == 3000
        assert load.unchanged == 0
        assert len(load.failed) <= CLIENTS, load.failed
        assert all("failed calling webhook" in words for _, words in load.failed), load.failed


@contextmanager
def two_fronted(site: WebhookSite) -> Iterator[tuple[Manager, Manager]]:
    """Two managers as shipped: each behind a front, and both behind one address."""
    ports = free_port(), free_port()
    with Proxy(*ports) as proxy, ExitStack() as stack:
        site.port = proxy.port
        first = stack.enter_context(site.fronted("m1", ports[0], ports[1]))
        second = stack.enter_context(site.fronted("m2", ports[1], ports[0]))
        site.eventually(lambda: drawn(site), "pods that policies change")
        yield first, second


@pytest.mark.soak
def test_one_of_two_behind_fronts_is_killed(site: WebhookSite) -> None:
    """No creation fails, though its process dies with reviews that it has not answered."""
    with two_fronted(site) as (first, _):
        with under_load(site, LABELS, 3000) as load:
            site.eventually(lambda: load.count > 300, "load")
            first.running.kill()
        assert load.count == 3000
        assert (load.failed, load.unchanged) == ([], 0)
    told = site.fronts[0].tail(20)
    assert "others are asked" in told


def test_a_front_waits_for_its_manager_where_nobody_else_is_left(site: WebhookSite) -> None:
    port = free_port()
    site.port = port
    with site.fronted("m1", port, free_port()) as manager:
        site.eventually(lambda: drawn(site), "pods that policies change")
        with ExitStack() as stack:
            load = stack.enter_context(under_load(site, LABELS))
            site.eventually(lambda: load.count > 50, "load")
            manager.running.kill()
            path = site.folder / f"front-{port}" / "webhook.sock"
            more = "--webhook", f"unix:{path}", "--webhook-url", f"https://localhost:{port}"
            with site.manager("m2", *more):
                count = load.count + 50
                site.eventually(lambda: load.count > count, "load")
                stack.close()
        assert load.unchanged == 0
        # What the API server's own patience does not last for is told as what it is.
        assert all("failed calling webhook" in words for _, words in load.failed), load.failed


@pytest.mark.soak
def test_one_of_two_is_stopped(site: WebhookSite) -> None:
    """It answers what it was asked, and whoever still comes; then nobody is led to it any more."""
    with two(site) as (first, second, proxy, _):
        with under_load(site, LABELS) as load:
            site.eventually(lambda: load.count > 100, "load")
            first.running.signal(signal.SIGTERM)
            # As endpoints of a Service: one that is told to stop gets no new connections a little later.
            proxy.targets = [int(second.name.removeprefix("m"))]
            site.eventually(lambda: not first.running.running, "an end")
            more = load.count + 100
            site.eventually(lambda: load.count > more, "load")
        assert (load.failed, load.unchanged) == ([], 0)


def test_one_that_is_not_ready_fails_nothing(site: WebhookSite) -> None:
    """API servers ask again, and over a new connection, which another replica may take."""
    ports = free_port(), free_port()
    (empty := site.folder / "empty").mkdir()
    with Proxy(*ports) as proxy, ExitStack() as stack:
        site.port = proxy.port
        stack.enter_context(site.serving("m1", port=ports[0]))
        served = "--webhook", f"127.0.0.1:{ports[1]}", "--webhook-url", f"https://localhost:{site.port}"
        late = stack.enter_context(site.manager("m2", *served, "--policies", str(empty), ready=False))
        site.eventually(lambda: late.read("/healthz")[0] == 200, "a manager without policies")
        # It lives before it listens for reviews: a connection refused would go to the first, and be kept.
        site.eventually(lambda: listens(ports[1]), "a manager that listens for reviews")
        # What was asked until now went to the first, over connections that API servers would keep for long.
        proxy.turn_to(ports[1])
        proxy.cut()
        # Whoever writes on a connection in the moment in which it is cut fails, whoever answers.
        Load(site.access, LABELS).run(CLIENTS, CLIENTS)
        with under_load(site, LABELS) as load:
            site.eventually(lambda: turned_away(late), "requests that it cannot answer")
            more = load.count + 100
            site.eventually(lambda: load.count > more, "load")
        assert (load.failed, load.unchanged) == ([], 0)


def turned_away(manager: Manager) -> bool:
    """Whether it was asked for any review before it was ready."""
    told = manager.read("/metrics")[1].splitlines()
    return any(one.startswith('koordpolicy_webhook_requests_total{result="not_ready"') for one in told)


def test_with_none_left_the_failure_policy_holds(site: WebhookSite) -> None:
    with site.serving("m1") as manager:
        site.eventually(lambda: drawn(site), "pods that policies change")
        manager.running.kill()
        status, told = site.create(pod("held-up", LABELS))
        assert status == 500, told
        assert "failed calling webhook" in told["message"]
        # What no policy speaks of, and what brings us back, does not wait for us.
        ours = pod("manager", LABELS)
        assert (
            site.access.request("POST", "/api/v1/namespaces/koordpolicy-system/pods?dryRun=All", ours)[0]
            == 201
        )
    spec = {**json.loads(PROFILE)["spec"], "failurePolicy": "Ignore"}
    site.write("spark.yaml", policy("ColocationProfile", "spark", spec))
    # All profiles have to say so, the pack's own as well.
    site.write(
        "pack.yaml", policy("ColocationProfile", "colocation-profile-example", {"failurePolicy": "Ignore"})
    )
    with site.serving("m2") as manager:
        site.eventually(
            lambda: (
                [one["failurePolicy"] for one in site.entries("mutating") if "pod" in one["name"]]
                == ["Ignore"]
            ),
            "a policy that passes over",
        )
        manager.running.kill()
        load = Load(site.access, LABELS)
        load.run(3, 1)
        refused = [words for _, words in load.failed if "mutate-pod" in words]
        assert refused == []


@pytest.mark.soak
def test_certificates_are_rotated_under_load(site: WebhookSite) -> None:
    with two(site, "--webhook-cert-lifetime", "12s"):
        seen = {serving(site)}

        def rotated() -> bool:
            seen.add(serving(site))
            return len(seen) > 3

        with under_load(site, LABELS) as load:
            site.eventually(rotated, "three new certificates")
        assert load.count > 20
        assert (load.failed, load.unchanged) == ([], 0)


def serving(site: WebhookSite) -> bytes:
    """The certificate that all replicas share now."""
    data = site.access.request("GET", SECRET)[1].get("data", {})
    return base64.b64decode(data.get("tls.crt", ""))


def test_a_certificate_that_expires_while_the_leader_is_gone_is_renewed_by_the_next(
    site: WebhookSite,
) -> None:
    with two(site, "--webhook-cert-lifetime", "12s") as (first, second, _, _):
        site.eventually(lambda: first.leads or second.leads, "a leader")
        leader = first if first.leads else second
        leader.running.kill()
        before = serving(site)
        site.eventually(lambda: serving(site) not in (before, b""), "a certificate of the next leader")
        site.eventually(lambda: drawn(site), "pods that policies change")


def test_without_its_secret_a_manager_says_how_to_get_one(site: WebhookSite) -> None:
    """It may not make one, and goes on once it is there."""
    assert site.access.request("DELETE", SECRET)[0] == 200
    listening = ("--webhook", f"127.0.0.1:{site.port}", "--webhook-url", f"https://localhost:{site.port}")
    with site.manager("m", *listening, "--webhook-drain", "1s", ready=False) as manager:
        site.eventually(lambda: "apply deploy/manager/secret.yaml" in manager.running.tail(), "advice")
        apply(site.access, documents("deploy/manager/secret.yaml"))
        site.eventually(lambda: drawn(site), "pods that policies change")


def test_replicas_say_by_which_revision_they_answer(site: WebhookSite, tmp_path: Path) -> None:
    """Each has policies of its own here, as while a sync reaches one before the other."""
    other = tmp_path / "other"
    other.mkdir()
    for file in site.policies.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    changed = json.loads(PROFILE)
    changed["spec"]["labels"] = {"drawn": "otherwise"}
    (other / "spark.yaml").write_text(json.dumps(changed), "utf-8")
    with ExitStack() as stack:
        ports = [free_port(), free_port()]
        site.port = ports[0]
        stack.enter_context(site.serving("m1", port=ports[0]))
        stack.enter_context(site.serving("m2", "--policies", str(other), port=ports[1]))
        told = [reviewed(port) for port in ports]
    patches = [json.loads(base64.b64decode(one["patch"]))[0]["value"] for one in told]
    assert [str(one) for one in patches] == ["in", "otherwise"]
    revisions = [one["auditAnnotations"]["revision"] for one in told]
    assert all(revisions)
    assert revisions[0] != revisions[1]


def reviewed(port: int) -> Any:
    """What a manager itself says of a pod."""
    review = {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u",
            "operation": "CREATE",
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "default",
            "userInfo": {"username": "jane"},
            "object": pod("p", LABELS),
        },
    }
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=30, context=context)
    connection.request("POST", "/mutate-pod", json.dumps(review), {"Content-Type": "application/json"})
    try:
        return json.loads(connection.getresponse().read())["response"]
    finally:
        connection.close()
