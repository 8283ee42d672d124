"""Reservations in the scheduler: scheduled as pods are, counted once, taken by their owners and by nobody else."""

import asyncio
import copy
import json
import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from koordpolicy.algorithms.reservation_match import owns
from koordpolicy.cluster.event_handlers import EVENT_HANDLERS, handle
from koordpolicy.cluster.owner_index import OwnerIndex
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import PODS, RESERVATIONS
from koordpolicy.model.pod import read_pod
from koordpolicy.model.pod_devices import shares_text
from koordpolicy.model.protocol import DEVICE_ALLOCATED, RESERVATION_ALLOCATED
from koordpolicy.model.reservation import read_reservation
from koordpolicy.scheduler.binder import Binding, Prebind
from koordpolicy.scheduler.decision import PodDecision
from koordpolicy.scheduler.driver import Driver
from koordpolicy.scheduler.plugins.reservation.room import NO_MATCH
from koordpolicy.scheduler.plugins.reservation.telling import told
from koordpolicy.scheduler.reservation_status import make_available, say_unschedulable
from tests.unit.scheduler.test_many_terms import calls
from tests.unit.scheduler.world import PROFILE, World
from tests.vectors.policies import document, graph

_AFFINITY: Final = "scheduling.koordinator.sh/reservation-affinity"
_HANDLERS: Final = {handler.resource: handler for handler in EVENT_HANDLERS}
_TEN: Final = {"allocatable": {"cpu": "10", "memory": "10Gi"}}


def reservation(name: str, cpu: str = "4", **said: Any) -> dict[str, Any]:
    """A Reservation for pods of the label `app: NAME`, unless `spec` says otherwise."""
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}}
    template = {"spec": {"schedulerName": PROFILE, "containers": [{"name": "c", "resources": resources}]}}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "labels": said.get("labels", {})},
        "spec": {
            "template": template,
            "owners": [{"labelSelector": {"matchLabels": {"app": said.get("app", name)}}}],
            "ttl": "1h",
            **said.get("spec", {}),
        },
        "status": {},
    }


class Reserved(World):
    """A world whose decisions come to pass at once, as a cluster would show them."""

    def __init__(self, policy: str = "", /, **nodes: Mapping[str, Any]) -> None:
        """`policy` is the spec of a ReservationPolicy above the pack's, the rest nodes by name."""
        above = [document("ReservationPolicy", "own", YAML(typ="safe").load(policy))] if policy else []
        super().__init__(graph(*above))
        self.build({"nodes": nodes})
        self.objects: dict[str, dict[str, Any]] = {}
        self.pods: dict[str, dict[str, Any]] = {}

    def reserve(self, obj: dict[str, Any]) -> None:
        """A Reservation comes or changes."""
        self.objects[obj["metadata"]["name"]] = obj
        assert handle(_HANDLERS[RESERVATIONS], self.scheduler, obj) is None

    def ask(self, name: str, cpu: str = "1", **said: Any) -> None:
        """A pod comes, of its `app`."""
        app = said.pop("app", "")
        self.pods[name] = {
            "metadata": {
                "name": name,
                "namespace": "default",
                "uid": f"uid-{name}",
                "labels": {"app": app} if app else {},
                "annotations": said.pop("annotations", {}),
            },
            "spec": {
                "schedulerName": PROFILE,
                "priority": 9000,
                "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": "1Mi"}}}],
            },
            "status": {"phase": "Pending"},
        }
        self.show(name)

    def show(self, name: str) -> None:
        """The cluster shows a pod as it is."""
        assert handle(_HANDLERS[PODS], self.scheduler, self.pods[name]) is None

    def end(self, name: str) -> None:
        """A pod is gone."""
        del self.pods[name]
        self.scheduler.remove_pod(("default", name))

    def run(self, *, writes: bool = True) -> dict[str, PodDecision]:
        """Decide on all that are due, and show what was written; the last decision on each."""
        found: dict[str, PodDecision] = {}
        for action in Driver(self.scheduler).actions(self.now):
            decision, plan = action.decision, action.plan
            name = decision.pod[1]
            found[name.removeprefix("reservation uid-")] = decision
            if not decision.placed or not writes:
                continue
            devices = {}
            if isinstance(plan, Prebind):
                claim = self.scheduler.cache.state.cards.claim_of(decision.pod)
                if claim is not None and not claim.reserve:
                    devices = {DEVICE_ALLOCATED: shares_text(claim.shares)}
                plan = plan.then
                self.scheduler.written(decision)
                reserved: Any = decision.claims.get("Reservation")
                for (_, owner), _uid in reserved.owners if reserved is not None else ():
                    said = json.dumps({"name": reserved.name, "uid": reserved.uid})
                    self.pods[owner]["metadata"]["annotations"][RESERVATION_ALLOCATED] = said
                    self.show(owner)
            assert isinstance(plan, Binding)
            if plan.reservation:
                obj = copy.deepcopy(self.objects[plan.reservation])
                obj["metadata"].setdefault("annotations", {}).update(plan.annotations)
                template = obj["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]
                obj["status"] = {"phase": "Available", "nodeName": decision.node, "allocatable": template}
                self.reserve(obj)
            else:
                pod = copy.deepcopy(self.pods[name])
                pod["spec"]["nodeName"] = decision.node
                pod["status"]["phase"] = "Running"
                pod["metadata"]["annotations"].update({**devices, **plan.annotations})
                self.pods[name] = pod
                self.show(name)
        return found

    def requested(self, node: str = "n1") -> int:
        """The millicores that the pods on a node hold."""
        table = self.scheduler.cache.table
        requested: Any = table.row(table.index(node))["resources.requested"]
        return int(requested.get("cpu", 0))

    def load(self, node: str = "n1") -> int:
        """The millicores that a node's pods are taken to use."""
        table = self.scheduler.cache.table
        load: Any = table.row(table.index(node))["resources.filterLoad"]
        return int(load.get("cpu", 0))

    def restarted(self, **nodes: Mapping[str, Any]) -> "Reserved":
        """Another one that hears of the same cluster, in any order."""
        other = Reserved(**nodes)
        hear: list[Callable[[], None]] = [partial(other.reserve, obj) for obj in self.objects.values()]
        hear += [partial(other.show, name) for name in self.pods]
        other.pods = copy.deepcopy(self.pods)
        random.Random(7).shuffle(hear)
        for one in hear:
            one()
        return other

    def taken(self) -> dict[str, tuple[str, ...]]:
        """The owners of each reservation."""
        book = self.scheduler.cache.state.reservations
        return {one.name: tuple(sorted(view.pod.name for view in book.owners(one).views)) for one in book.all}


def test_a_reservation_is_scheduled_and_keeps_its_room() -> None:
    world = Reserved(n1=_TEN)
    world.reserve(reservation("r", cpu="8"))
    assert world.run()["r"].node == "n1"
    assert world.requested() == 8000
    world.ask("stranger", cpu="3")
    assert not world.run()["stranger"].placed


def test_an_owner_takes_what_is_kept_and_counts_once() -> None:
    world = Reserved(n1=_TEN)
    world.reserve(reservation("r", cpu="8", spec={"allocateOnce": False}))
    world.run()
    world.ask("web", cpu="3", app="r")
    assert world.run()["web"].node == "n1"
    assert '"uid": "uid-r"' in world.pods["web"]["metadata"]["annotations"][RESERVATION_ALLOCATED]
    assert world.requested() == 8000
    assert world.taken() == {"r": ("web",)}
    world.end("web")
    assert world.requested() == 8000
    assert world.taken() == {"r": ()}


def test_load_counts_owners_and_not_what_is_kept_for_them() -> None:
    world, plain = (Reserved(n1={**_TEN, "metric": {"usage": {"cpu": "0"}}}) for _ in range(2))
    world.reserve(reservation("r", cpu="4", spec={"allocateOnce": False}))
    assert world.run()["r"].node == "n1"
    assert world.load() == 0
    for one in (world, plain):
        one.ask("web", cpu="3", app="r")
        assert one.run()["web"].node == "n1"
    assert world.load() == plain.load() > 0


def test_an_owner_takes_what_is_lacking_from_the_node() -> None:
    world = Reserved(n1=_TEN)
    world.reserve(reservation("r", cpu="4", spec={"allocatePolicy": "Aligned"}))
    world.run()
    world.ask("other", cpu="2")
    world.ask("large", cpu="9", app="r")
    found = world.run()
    assert found["other"].placed
    assert not found["large"].placed
    world.ask("fits", cpu="8", app="r")
    assert world.run()["fits"].placed
    assert world.requested() == 10_000


def test_a_restricted_one_gives_no_more_than_it_has() -> None:
    world = Reserved(n1=_TEN)
    world.reserve(reservation("r", cpu="4", spec={"allocatePolicy": "Restricted"}))
    world.run()
    world.ask("wants", cpu="5", app="r", annotations={_AFFINITY: "{}"})
    refusals = world.run()["wants"].refusals
    assert [one.reason for one in refusals] == ["Reservation(s) Insufficient cpu"]
    world.ask("fits", cpu="4", app="r", annotations={_AFFINITY: "{}"})
    assert world.run()["fits"].placed


def test_what_is_for_one_pod_is_taken_once() -> None:
    world = Reserved(n1=_TEN, n2=_TEN)
    world.reserve(reservation("r", cpu="4"))
    world.run()
    world.ask("first", app="r", annotations={_AFFINITY: "{}"})
    world.ask("second", app="r", annotations={_AFFINITY: "{}"})
    found = world.run()
    assert found["first"].placed
    assert [(one.reason, one.nodes) for one in found["second"].refusals] == [(NO_MATCH, 2)]


def test_a_pod_that_has_to_take_from_one_goes_where_that_is() -> None:
    world = Reserved(n1=_TEN, n2=_TEN, n3=_TEN)
    obj = reservation("r")
    obj["spec"]["template"]["spec"]["nodeName"] = "n2"
    world.reserve(obj)
    assert world.run()["r"].node == "n2"
    world.ask("web", app="r", annotations={_AFFINITY: '{"name": "r"}'})
    world.ask("lost", app="r", annotations={_AFFINITY: '{"name": "another"}'})
    found = world.run()
    assert found["web"].node == "n2"
    assert not found["lost"].placed


def test_the_smallest_order_comes_first() -> None:
    world = Reserved(n1=_TEN, n2=_TEN)
    order = "scheduling.koordinator.sh/reservation-order"
    for name, node, number in (("late", "n1", "5"), ("early", "n2", "2")):
        obj = reservation(name, app="web", labels={order: number})
        obj["spec"]["template"]["spec"]["nodeName"] = node
        world.reserve(obj)
    world.run()
    world.ask("web", app="web")
    assert world.run()["web"].node == "n2"
    assert world.taken()["early"] == ("web",)


@pytest.mark.parametrize(
    ("policy", "taken"),
    [
        ("", "early"),
        ("choice: {order: [{cel: reservation.name}]}", "awaited"),
        ("choice: {order: [{cel: reservation.order == 0}, {cel: -reservation.order}]}", "late"),
        ("choice: {order: [{cel: reservation.score}], weights: {memory: 0}}", "awaited"),
        (
            "choice: {order: [{cel: -reservation.score}], strategy: LeastAllocated, weights: {memory: 0}}",
            "awaited",
        ),
        ("matching: {allows: {cel: \"reservation.name == 'late' && pod.name == 'web'\"}}", "late"),
    ],
)
def test_policy_says_which_one_a_pod_takes_from(policy: str, taken: str) -> None:
    world = Reserved(policy, n1=_TEN)
    order = "scheduling.koordinator.sh/reservation-order"
    for name, cpu, number in (("late", "2", "5"), ("early", "2", "2"), ("awaited", "4", "0")):
        world.reserve(reservation(name, cpu, app="web", labels={order: number}))
    world.run()
    world.ask("web", app="web")
    world.run()
    assert [name for name, pods in world.taken().items() if pods] == [taken]


def test_a_reserve_pod_is_what_policy_makes_of_it_where_its_template_says_nothing() -> None:
    policy = f"pods: {{priority: 7000, schedulerName: {PROFILE}, preemptionPolicy: PreemptLowerPriority}}"
    obj = reservation("r")
    del obj["spec"]["template"]["spec"]["schedulerName"]
    koordinators, own = Reserved(n1=_TEN), Reserved(policy, n1=_TEN)
    for world in (koordinators, own):
        world.reserve(copy.deepcopy(obj))
    assert not koordinators.run(), "it is the default scheduler's"
    assert own.run()["r"].node == "n1"
    view = own.scheduler.cache.view(("default", "reservation uid-r"))
    assert view is not None
    assert (view.priority, view.pod.preemption_policy) == (7000, "PreemptLowerPriority")


def test_another_revision_makes_another_pod_of_what_waits() -> None:
    world = Reserved(n1=_TEN)
    obj = reservation("r")
    del obj["spec"]["template"]["spec"]["schedulerName"]
    world.reserve(obj)
    assert not world.run()
    spec = YAML(typ="safe").load(f"pods: {{schedulerName: {PROFILE}}}")
    world.scheduler.replace_graph(graph(document("ReservationPolicy", "own", spec)))
    assert world.run()["r"].node == "n1"


def test_one_with_more_owner_terms_than_policy_allows_is_nobodys() -> None:
    world = Reserved("matching: {mostOwners: 1}", n1=_TEN)
    owners = [{"labelSelector": {"matchLabels": {"app": app}}} for app in ("r", "web")]
    world.reserve(reservation("r", spec={"owners": owners}))
    world.run()
    world.ask("web", app="web")
    world.run()
    assert world.taken() == {"r": ()}


_TERMS: Final = st.one_of(
    st.builds(lambda v: {"labelSelector": {"matchLabels": {"a": v}}}, st.sampled_from("xy")),
    st.builds(
        lambda op, v: {"labelSelector": {"matchExpressions": [{"key": "a", "operator": op, "values": v}]}},
        st.sampled_from(["In", "NotIn"]),
        st.lists(st.sampled_from("xy"), min_size=1, max_size=2),
    ),
    st.builds(
        lambda op: {"labelSelector": {"matchExpressions": [{"key": "a", "operator": op}]}},
        st.sampled_from(["Exists", "DoesNotExist"]),
    ),
    st.builds(
        lambda key, v: {"object": {key: v}},
        st.sampled_from(["name", "uid", "namespace"]),
        st.sampled_from("pq"),
    ),
    st.builds(
        lambda key, v: {"controller": {key: v}},
        st.sampled_from(["name", "uid", "kind"]),
        st.sampled_from("pq"),
    ),
    st.just({}),
)


@given(
    st.lists(st.lists(_TERMS, max_size=2), max_size=5),
    st.tuples(
        st.sampled_from("pqr"), st.sampled_from("pqr"), st.sampled_from("pqr"), st.sampled_from("xyz-")
    ),
)
def test_the_index_finds_all_that_a_pod_owns(
    every: list[list[dict[str, Any]]], said: tuple[str, ...]
) -> None:
    index, read = OwnerIndex(), []
    for number, owners in enumerate(every):
        read.append(read_reservation(reservation(f"r{number}", spec={"owners": owners})))
        index.add(read[-1])
    name, uid, controller, label = said
    labels = {} if label == "-" else {"a": label}
    owner = {
        "apiVersion": "v1",
        "kind": controller,
        "name": controller,
        "uid": controller,
        "controller": True,
    }
    metadata = {"name": name, "uid": uid, "namespace": name, "labels": labels, "ownerReferences": [owner]}
    pod = read_pod({"metadata": metadata, "spec": {}})
    owned = [one.uid for one in read if owns(pod, one.owners)]
    assert index.find(pod) == owned
    for one in read:
        index.remove(one.uid)
    assert index.find(pod) == []


def test_many_owner_terms_are_asked_once_for_each_pod() -> None:
    def attempt(count: int) -> int:
        world = Reserved(n1=_TEN)
        for at in range(count):
            every = [
                {"labelSelector": {"matchExpressions": [
                    {"key": "app", "operator": "NotIn", "values": [f"v{at}-{term}"]},
                    {"key": f"k{term}", "operator": "Exists"}]}}
                for term in range(50)
            ]  # fmt: skip
            world.reserve(reservation(f"r{at}", cpu="10m", app="", spec={"owners": every}))
        world.run()
        world.ask("pod", app="web")
        return calls(world.scheduler.schedule_one)

    few, many = attempt(2), attempt(12)
    assert (many - few) / 500 < 1, "terms about a label that the pod has not are no matter of its own"


def test_others_go_for_a_reservation_where_policy_lets_them() -> None:
    for policy, victims in (("", []), ("parameters: {enablePreemption: {value: true}}", ["low"])):
        world = Reserved(policy, n1=_TEN)
        world.ask("low", "8")
        world.pods["low"]["spec"]["priority"] = 5000
        world.show("low")
        world.run()
        world.reserve(reservation("r", cpu="4"))
        made = world.run()["r"].preemption
        assert [one.pod[1] for one in made.victims] if made else victims == []
        if victims:
            world.end("low")
            assert world.run()["r"].node == "n1"


def test_an_owner_goes_for_a_more_important_one_inside_its_reservation() -> None:
    world = Reserved(n1=_TEN)
    spec = {"allocateOnce": False, "allocatePolicy": "Restricted"}
    world.reserve(reservation("r", cpu="6", app="web", spec=spec))
    world.ask("other", "4")
    world.ask("low", "5", app="web")
    world.pods["low"]["spec"]["priority"] = 5000
    world.show("low")
    assert all(one.placed for one in world.run().values())
    world.ask("high", "6", app="web", annotations={_AFFINITY: "{}"})
    made = world.run()["high"].preemption
    assert made is not None
    assert [one.pod[1] for one in made.victims] == ["low"]
    assert world.requested() == 10_000, "nothing has changed yet"
    world.end("low")
    assert world.run()["high"].node == "n1"
    assert world.taken() == {"r": ("high",)}


def test_policies_that_give_out_in_another_way_do_not_share_a_node() -> None:
    world = Reserved(n1=_TEN)
    world.reserve(reservation("shared"))
    world.run()
    world.reserve(reservation("strict", cpu="1", spec={"allocatePolicy": "Restricted"}))
    assert not world.run()["strict"].placed


def test_a_reservation_that_is_over_frees_what_it_kept() -> None:
    world = Reserved(n1=_TEN)
    world.reserve(reservation("r", cpu="8"))
    world.run()
    world.ask("waits", cpu="5")
    assert not world.run()["waits"].placed
    over = copy.deepcopy(world.objects["r"])
    over["status"]["phase"] = "Failed"
    world.reserve(over)
    world.pass_time(20)
    assert world.run()["waits"].placed


def test_a_binding_that_fails_gives_back() -> None:
    world = Reserved(n1=_TEN)
    world.reserve(reservation("r", cpu="8"))
    world.run()
    world.ask("web", cpu="3", app="r")
    assert world.run(writes=False)["web"].placed
    assert world.taken() == {"r": ("web",)}
    world.scheduler.forget(read_pod(world.pods["web"]))
    assert world.taken() == {"r": ()}
    assert world.requested() == 8000


def test_a_pod_in_a_cluster_without_reservations_is_asked_nothing() -> None:
    world = Reserved(n1=_TEN)
    world.ask("plain")
    assert world.run()["plain"].claims == {}


def test_it_is_told_which_one_a_pod_has_and_what_keeps_it_from_others() -> None:
    world = Reserved(n1=_TEN)
    for name in ("first", "second"):
        world.reserve(reservation(name, cpu="2", app="web", spec={"allocateOnce": name == "first"}))
    world.run()
    for pod in ("one", "two"):
        world.ask(pod, app="web", annotations={_AFFINITY: json.dumps({"name": "first"})})
    world.run()
    book, view = world.scheduler.cache.state.reservations, world.scheduler.framework.view
    has = told(view(read_pod(world.pods["one"])), book, checks_taints=False)
    assert [(one.name, one.taken) for one in has] == [("first", True), ("second", False)]
    lacks = told(view(read_pod(world.pods["two"])), book, checks_taints=False)
    assert [one.why for one in lacks] == [
        "another pod has it already, or it cannot be read",
        "the pod names another one",
    ]


def test_a_pod_on_its_node_may_say_anything_of_reservations() -> None:
    world = Reserved(n1=_TEN)
    world.ask("odd", annotations={_AFFINITY: "{", RESERVATION_ALLOCATED: "["})
    assert world.run()["odd"].problem
    world.pods["odd"]["spec"]["nodeName"] = "n1"
    world.show("odd")
    assert world.requested() == 1000


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["reserve", "pre", "ask", "end", "over", "fail"]),
            st.integers(1, 6),
            st.integers(0, 2),
        ),
        max_size=25,
    )
)
def test_nothing_is_promised_twice_and_a_restart_knows_the_same(steps: list[tuple[str, int, int]]) -> None:
    nodes = {"n1": _TEN, "n2": _TEN}
    world = Reserved(**nodes)
    for number, (what, cpu, which) in enumerate(steps):
        app = f"app-{which}"
        if what == "reserve":
            once, policy = number % 2 == 0, ("Aligned", "Restricted")[cpu % 2]
            spec = {"allocateOnce": once, "allocatePolicy": policy}
            world.reserve(reservation(f"r{number}", str(cpu), app=app, spec=spec))
        elif what == "pre":
            spec = {"preAllocation": True, "preAllocationPolicy": {"enableMultiple": cpu > 3}}
            world.reserve(
                reservation(f"r{number}", str(cpu), app=app, spec={**spec, "allocateOnce": cpu == 2})
            )
        elif what == "ask":
            world.ask(f"p{number}", str(cpu), app=app)
        elif what == "end" and world.pods:
            world.end(sorted(world.pods)[cpu % len(world.pods)])
        elif what == "over" and world.objects:
            obj = copy.deepcopy(world.objects[sorted(world.objects)[cpu % len(world.objects)]])
            obj["status"]["phase"] = "Failed"
            world.reserve(obj)
        elif what == "fail":
            found = world.run(writes=False)
            for name in found:
                account = world.scheduler.ledger.assumed(("default", name))
                if account is not None:
                    world.scheduler.forget(account.view.pod)
                account = world.scheduler.ledger.assumed(("default", f"reservation uid-{name}"))
                if account is not None:
                    world.scheduler.forget(account.view.pod)
        world.pass_time(30)
        world.run()
        _check(world)
    other = world.restarted(**nodes)
    assert other.taken() == world.taken()
    assert [other.requested(name) for name in nodes] == [world.requested(name) for name in nodes]


def _check(world: Reserved) -> None:
    """No node gives out more than it has, each owner has one reservation, and none that is for one has two."""
    for name in ("n1", "n2"):
        assert 0 <= world.requested(name) <= 10_000
    owners = world.taken()
    every = [pod for pods in owners.values() for pod in pods]
    assert len(every) == len(set(every))
    for one in world.scheduler.cache.state.reservations.all:
        taken = owners[one.name]
        assert not (one.allocate_once and len(taken) > 1)
        if one.available and one.allocate_policy == "Restricted":
            held = world.scheduler.cache.state.reservations.owners(one).allocated
            assert held.get("cpu", 0) <= one.allocatable["cpu"]


@pytest.mark.parametrize("phase", ["", "Available"])
def test_status_is_written_once(phase: str) -> None:
    async def run() -> dict[str, Any]:
        cluster = MemoryCluster(Store(lambda: 0))
        obj = {**reservation("r"), "apiVersion": RESERVATIONS.api_version, "kind": RESERVATIONS.kind}
        stored = await cluster.create(RESERVATIONS, obj)
        uid = stored["metadata"]["uid"]
        await say_unschedulable(cluster, "r", uid, "no room", 0)
        if phase:
            await make_available(cluster, "r", uid, "n1", 0)
            await make_available(cluster, "r", uid, "n1", 0)
        return dict((await cluster.get(RESERVATIONS, "r"))["status"])

    status = asyncio.run(run())
    assert status.get("phase", "") == phase
    conditions = {one["type"]: (one["status"], one["reason"]) for one in status["conditions"]}
    assert conditions["Scheduled"] == (("True", "Scheduled") if phase else ("False", "Unschedulable"))
