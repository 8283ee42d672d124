"""Admission hooks: who is asked when, and what their answers do."""

import asyncio
from typing import Any

import pytest

from koordpolicy.kube import (
    Conflict,
    Forbidden,
    Invalid,
    KubeError,
    MergePatch,
    NotFound,
    Object,
    Rejected,
    thaw,
)
from koordpolicy.kube.admission import AdmissionAnswer, AdmissionChain, AdmissionRequest, Hook, Operation
from koordpolicy.kube.memory import MemoryCluster, Store
from koordpolicy.kube.resources import CONFIG_MAPS, NAMESPACES, NODES, PODS, PRIORITY_CLASSES
from tests.unit.kube.builders import config, pod, store

EVERY = tuple(Operation)


def labelling(key: str, value: str) -> Any:
    """A mutating handler that sets a label."""

    def handle(request: AdmissionRequest) -> AdmissionAnswer:
        assert request.object is not None
        obj = thaw(request.object)
        obj["metadata"].setdefault("labels", {})[key] = value
        return AdmissionAnswer(object=obj)

    return handle


class Noted:
    """A handler that remembers what it was asked, and answers as told."""

    def __init__(self, answer: AdmissionAnswer | None = None) -> None:
        self.requests: list[AdmissionRequest] = []
        self._answer = answer

    def __call__(self, request: AdmissionRequest) -> AdmissionAnswer | None:
        self.requests.append(request)
        return self._answer

    def said(self) -> list[str]:
        return [
            f"{r.operation} {r.resource}{'/' + r.subresource if r.subresource else ''} {r.name}".rstrip()
            for r in self.requests
        ]


def with_hooks(*, mutating: tuple[Hook, ...] = (), validating: tuple[Hook, ...] = ()) -> Store:
    return store(admission=AdmissionChain(mutating, validating))


def test_mutating_hooks_follow_each_other_and_validating_ones_see_the_result() -> None:
    seen = Noted()
    cluster = with_hooks(
        mutating=(
            Hook("one", labelling("order", "first"), (PODS,)),
            Hook("two", labelling("order", "second"), (PODS,)),
        ),
        validating=(Hook("see", seen, (PODS,)),),
    )
    made = cluster.create(PODS, pod("a"), user="someone")
    assert made["metadata"]["labels"] == {"order": "second"}
    [request] = seen.requests
    assert request.object is not None
    assert request.object["metadata"]["labels"] == {"order": "second"}
    assert request.object["metadata"]["uid"] == made["metadata"]["uid"]
    assert (request.namespace, request.name, request.user, request.dry_run) == (
        "default",
        "a",
        "someone",
        False,
    )
    assert request.old_object is None


def test_hooks_are_asked_only_about_what_concerns_them() -> None:
    everything = Noted()
    some = Noted()
    cluster = with_hooks(
        mutating=(Hook("some", some, (CONFIG_MAPS,), (Operation.UPDATE,)),),
        validating=(
            Hook("all", everything, (PODS, CONFIG_MAPS), EVERY, ("", "status", "binding", "eviction")),
        ),
    )
    cluster.create(CONFIG_MAPS, config("c", {"a": "1"}))
    cluster.patch(CONFIG_MAPS, "c", MergePatch({"data": {"a": "2"}}))
    cluster.create(PODS, {**pod(""), "metadata": {"generateName": "p-"}})
    [name] = [request.name for request in everything.requests if request.resource == PODS]
    cluster.bind("default", name, "node-1")
    cluster.patch(PODS, name, MergePatch({"status": {"phase": "Running"}}), subresource="status")
    cluster.evict("default", name)
    cluster.delete(PODS, name, grace_seconds=0)
    cluster.create(NODES, {"metadata": {"name": "n"}})
    assert some.said() == ["UPDATE configmaps c"]
    assert everything.said() == [
        "CREATE configmaps c",
        "UPDATE configmaps c",
        f"CREATE pods {name}",
        f"CREATE pods/binding {name}",
        f"UPDATE pods/status {name}",
        f"CREATE pods/eviction {name}",
        f"DELETE pods {name}",
    ]
    binding, deletion = everything.requests[3], everything.requests[6]
    assert binding.object is not None
    assert binding.object["target"]["name"] == "node-1"
    assert deletion.object is None
    assert deletion.old_object is not None
    update = everything.requests[1]
    assert update.old_object is not None
    assert update.old_object["data"] == {"a": "1"}


def test_a_mutating_hook_of_a_new_pod_sees_defaults_but_neither_name_nor_uid_made_up() -> None:
    seen = Noted()
    cluster = with_hooks(mutating=(Hook("see", seen, (PODS,)),))
    cluster.create(PODS, {**pod(""), "metadata": {"generateName": "p-"}})
    [request] = seen.requests
    assert request.object is not None
    assert request.name == ""
    assert "uid" not in request.object["metadata"]
    assert request.object["spec"]["schedulerName"] == "default-scheduler"


@pytest.mark.parametrize(
    ("code", "error"),
    [(403, Forbidden), (422, Invalid), (400, Rejected)],
    ids=["forbidden", "invalid", "other"],
)
@pytest.mark.parametrize("part", ["mutating", "validating"])
def test_a_no_stores_nothing_and_says_who_and_why(part: str, code: int, error: type[Rejected]) -> None:
    no = Noted(AdmissionAnswer(allowed=False, message="not on a Sunday", code=code))
    cluster = with_hooks(**{part: (Hook("calendar", no, (CONFIG_MAPS,), EVERY),)})
    with pytest.raises(error, match=r"`calendar`.*not on a Sunday") as refusal:
        cluster.create(CONFIG_MAPS, config("c"))
    assert refusal.value.code == code
    assert cluster.find(CONFIG_MAPS, "c") is None


def test_a_no_keeps_pods_where_they_are() -> None:
    no = Noted(AdmissionAnswer(allowed=False, message="no"))
    cluster = store()
    cluster.create(PODS, pod("a"))
    before = cluster.get(PODS, "a")
    cluster.use_admission(
        AdmissionChain(validating=(Hook("no", no, (PODS,), EVERY, ("", "status", "binding", "eviction")),))
    )
    for request in (
        lambda: cluster.bind("default", "a", "node-1"),
        lambda: cluster.evict("default", "a"),
        lambda: cluster.delete(PODS, "a"),
        lambda: cluster.patch(PODS, "a", MergePatch({"metadata": {"labels": {"a": "b"}}})),
        lambda: cluster.patch(PODS, "a", MergePatch({"status": {"phase": "Running"}}), subresource="status"),
    ):
        with pytest.raises(Forbidden):
            request()
    assert cluster.get(PODS, "a") is before


def broken(_request: AdmissionRequest) -> AdmissionAnswer:
    raise ZeroDivisionError("oops")


def test_a_hook_that_fails_fails_the_request_unless_it_fails_open() -> None:
    with pytest.raises(KubeError, match=r"`shaky` failed: oops") as failure:
        with_hooks(validating=(Hook("shaky", broken, (CONFIG_MAPS,)),)).create(CONFIG_MAPS, config("c"))
    assert failure.value.code == 500
    assert isinstance(failure.value.__cause__, ZeroDivisionError)
    open_hook = Hook("shaky", broken, (CONFIG_MAPS,), fail_open=True)
    assert with_hooks(mutating=(open_hook,), validating=(open_hook,)).create(CONFIG_MAPS, config("c"))


def changing(**metadata: Any) -> Any:
    def handle(request: AdmissionRequest) -> AdmissionAnswer:
        assert request.object is not None
        obj = thaw(request.object)
        obj["metadata"].update(metadata)
        return AdmissionAnswer(object=obj)

    return handle


def test_a_hook_can_break_no_rule() -> None:
    for handler, error in (
        (changing(name="other"), Rejected),
        (changing(namespace="kube-system"), Rejected),
        (changing(labels={"a": "not a value"}), Invalid),
        (lambda _: AdmissionAnswer(object={"kind": "Secret"}), Rejected),
        (lambda _: AdmissionAnswer(object={"metadata": {"name": "c"}, "data": {"a": object()}}), Rejected),
    ):
        cluster = with_hooks(mutating=(Hook("rogue", handler, (CONFIG_MAPS,), EVERY),))
        with pytest.raises((error, KubeError)):
            cluster.create(CONFIG_MAPS, config("c"))
        assert cluster.find(CONFIG_MAPS, "c") is None


def test_what_a_hook_changes_is_completed_again() -> None:
    def translate(request: AdmissionRequest) -> AdmissionAnswer:
        assert request.object is not None
        obj = thaw(request.object)
        batch = {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "1Gi"}
        obj["spec"]["containers"][0]["resources"] = {"limits": batch}
        obj["spec"].update(priorityClassName="koord-batch", priority=5000)
        return AdmissionAnswer(object=obj)

    cluster = with_hooks(mutating=(Hook("translate", translate, (PODS,)),))
    container = {"name": "main", "image": "pause", "resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}
    with pytest.raises(Forbidden, match="PriorityClass `koord-batch`"):
        cluster.create(PODS, pod("a", containers=[container]))
    cluster.create(PRIORITY_CLASSES, {"metadata": {"name": "koord-batch"}, "value": 5000})
    made = cluster.create(PODS, pod("a", containers=[container]))
    expected = {"kubernetes.io/batch-cpu": "1500", "kubernetes.io/batch-memory": "1Gi"}
    assert made["spec"]["containers"][0]["resources"] == {"limits": expected, "requests": expected}
    assert made["spec"]["priority"] == 5000
    assert made["status"]["qosClass"] == "BestEffort"


class Slow:
    """An asynchronous handler that lets others write before it answers."""

    def __init__(self, meanwhile: Any) -> None:
        self._meanwhile = meanwhile
        self.asked = 0

    async def __call__(self, request: AdmissionRequest) -> AdmissionAnswer:
        self.asked += 1
        await asyncio.sleep(0)
        if self.asked == 1:
            self._meanwhile()
        return AdmissionAnswer()


def run(question: Any) -> Any:
    return asyncio.run(question)


def overtaken(operation: Operation, meanwhile: Any) -> tuple[Store, MemoryCluster, Slow]:
    cluster = store()
    cluster.create(CONFIG_MAPS, config("c", {"a": "1"}))
    slow = Slow(lambda: meanwhile(cluster))
    cluster.use_admission(AdmissionChain(validating=(Hook("slow", slow, (CONFIG_MAPS,), (operation,)),)))
    return cluster, MemoryCluster(cluster), slow


def other_write(cluster: Store) -> Object:
    cluster.use_admission(AdmissionChain())
    return cluster.patch(CONFIG_MAPS, "c", MergePatch({"data": {"b": "2"}}))


def test_an_update_that_was_overtaken_while_hooks_were_asked_is_a_conflict() -> None:
    cluster, client, _ = overtaken(Operation.UPDATE, other_write)
    draft = {**thaw(cluster.get(CONFIG_MAPS, "c")), "data": {"a": "3"}}
    with pytest.raises(Conflict):
        run(client.update(CONFIG_MAPS, draft))
    assert cluster.get(CONFIG_MAPS, "c")["data"] == {"a": "1", "b": "2"}


def test_a_patch_that_was_overtaken_is_made_anew() -> None:
    cluster, client, _ = overtaken(Operation.UPDATE, other_write)
    stored = run(client.patch(CONFIG_MAPS, "c", MergePatch({"data": {"a": "3"}})))
    assert stored["data"] == {"a": "3", "b": "2"}
    assert cluster.get(CONFIG_MAPS, "c") == stored


def test_an_update_without_version_that_was_overtaken_overwrites() -> None:
    cluster, client, _ = overtaken(Operation.UPDATE, other_write)
    run(client.update(CONFIG_MAPS, config("c", {"a": "3"})))
    assert cluster.get(CONFIG_MAPS, "c")["data"] == {"a": "3"}


def test_a_patch_gives_up_after_some_attempts() -> None:
    cluster = store()
    cluster.create(CONFIG_MAPS, config("c"))
    count = 0

    async def always(request: AdmissionRequest) -> None:
        nonlocal count
        await asyncio.sleep(0)
        if request.user != "other":
            count += 1
            await other.patch(CONFIG_MAPS, "c", MergePatch({"data": {"n": str(count)}}))

    other = MemoryCluster(cluster, user="other")
    cluster.use_admission(AdmissionChain(validating=(Hook("always", always, (CONFIG_MAPS,), EVERY),)))
    with pytest.raises(Conflict, match="5 times"):
        run(MemoryCluster(cluster).patch(CONFIG_MAPS, "c", MergePatch({"data": {"a": "1"}})))
    assert cluster.get(CONFIG_MAPS, "c")["data"] == {"n": "5"}


def test_a_name_taken_while_hooks_were_asked_is_taken() -> None:
    def take(cluster: Store) -> None:
        cluster.use_admission(AdmissionChain())
        cluster.create(CONFIG_MAPS, config("new", {"by": "other"}))

    cluster, client, _ = overtaken(Operation.CREATE, take)
    with pytest.raises(KubeError, match="exists already"):
        run(client.create(CONFIG_MAPS, config("new")))
    assert cluster.get(CONFIG_MAPS, "new")["data"] == {"by": "other"}


def test_a_namespace_that_went_while_hooks_were_asked_takes_nothing() -> None:
    def go(cluster: Store) -> None:
        cluster.use_admission(AdmissionChain())
        cluster.delete(NAMESPACES, "doomed")

    cluster, client, _ = overtaken(Operation.CREATE, go)
    cluster.create(NAMESPACES, {"metadata": {"name": "doomed"}})
    with pytest.raises(NotFound, match="doomed"):
        run(client.create(CONFIG_MAPS, config("late"), namespace="doomed"))
    assert cluster.list(CONFIG_MAPS, namespace="doomed").items == []


def test_the_synchronous_face_takes_no_hook_that_waits() -> None:
    cluster, _, slow = overtaken(Operation.UPDATE, lambda _: None)
    with pytest.raises(RuntimeError, match="MemoryCluster"):
        cluster.patch(CONFIG_MAPS, "c", MergePatch({"data": {"a": "3"}}))
    assert slow.asked == 1
    assert cluster.get(CONFIG_MAPS, "c")["data"] == {"a": "1"}


def test_an_asynchronous_hook_that_does_not_wait_serves_both_faces() -> None:
    async def no(_request: AdmissionRequest) -> AdmissionAnswer:
        return AdmissionAnswer(allowed=False, message="no")

    cluster = with_hooks(validating=(Hook("no", no, (CONFIG_MAPS,)),))
    with pytest.raises(Forbidden):
        cluster.create(CONFIG_MAPS, config("c"))
    with pytest.raises(Forbidden):
        run(MemoryCluster(cluster).create(CONFIG_MAPS, config("c")))
