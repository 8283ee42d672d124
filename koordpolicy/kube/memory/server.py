"""What the API server does with a request: complete, admit, check, and store it.

Methods are coroutines only because admission may be; they wait for nothing else. Between reading an
object and storing its next version, admission can let other requests in, which is why every
write checks at its end that it still stands on the version it was made from.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from koordpolicy.kube import resources
from koordpolicy.kube.admission import AdmissionChain, AdmissionRequest, Operation
from koordpolicy.kube.apply import tracked
from koordpolicy.kube.errors import AlreadyExists, Cause, Conflict, Forbidden, Invalid, NotFound, Rejected
from koordpolicy.kube.frozen import FrozenDict, freeze, thaw
from koordpolicy.kube.memory import pods
from koordpolicy.kube.memory.budgets import DisruptionBudgets
from koordpolicy.kube.memory.collection import Key
from koordpolicy.kube.memory.deletion import deletion_of, ready_to_go
from koordpolicy.kube.memory.drafts import (
    KEPT_BY_SERVER,
    check_preconditions,
    content_of,
    key_in,
    next_version,
    patched_draft,
    private_copy,
    text_of,
)
from koordpolicy.kube.memory.garbage import Garbage, Terminating
from koordpolicy.kube.memory.kinds import rules_of
from koordpolicy.kube.memory.metadata import check_metadata, identify, invalid
from koordpolicy.kube.memory.names import GeneratedNames
from koordpolicy.kube.memory.state import MemoryState
from koordpolicy.kube.port import Object, Patch, Preconditions, Propagation
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.shapes import shape_of
from koordpolicy.model.time import NANOSECONDS, time_text

_ATTEMPTS: Final = 5
"""How often a patch without a precondition is tried anew when others write in between."""


@dataclass(frozen=True, slots=True)
class WriteOptions:
    """How a request wants to write: through which subresource, as whom, and whether at all."""

    subresource: str = ""
    manager: str = ""
    user: str = ""
    dry_run: bool = False


class Server:
    """The rules of the API over a `MemoryState`. `now` gives seconds since 1970."""

    def __init__(self, state: MemoryState, now: Callable[[], int], names: GeneratedNames) -> None:
        self.admission = AdmissionChain()
        self._state = state
        self._now = now
        self._names = names
        self._budgets = DisruptionBudgets(state, now)
        self._garbage = Garbage(state, self._collect)
        self._terminating = Terminating()
        state.observers = (self._garbage, self._budgets, self._terminating)

    async def create(
        self, resource: Resource, obj: Object, namespace: str | None, write: WriteOptions
    ) -> FrozenDict:
        """Store a new object."""
        if write.subresource:
            raise Rejected(f"`{write.subresource}` of {resource} is not created by this")
        draft = private_copy(obj)
        identify(draft, resource, namespace)
        return await self._create(resource, draft, write)

    async def update(self, resource: Resource, obj: Object, write: WriteOptions) -> FrozenDict:
        """Replace an object, or its status."""
        draft = private_copy(obj)
        identify(draft, resource, None)
        key = key_in(draft)
        stated = text_of(draft, "resourceVersion")
        if resource.strict_update and not stated:
            raise Invalid(f"an update of {resource} needs `metadata.resourceVersion`: update what was read")
        for _ in range(_ATTEMPTS):
            old = self._state.get(resource, key)
            check_preconditions(old, text_of(draft, "uid"), stated)
            try:
                return await self._store(resource, key, old, thaw(draft), write)
            except _OvertakenError:
                if stated:
                    raise
        raise _too_many_attempts(resource, key)

    async def patch(self, resource: Resource, key: Key, patch: Patch, write: WriteOptions) -> FrozenDict:
        """Change an object by a patch; with an apply patch, create it when there is none."""
        for _ in range(_ATTEMPTS):
            old = self._state.find(resource, key)
            draft, manager = patched_draft(resource, key, old, patch, write.subresource, self._time())
            if old is None:
                try:
                    return await self._create(resource, draft, write, applied_by=manager)
                except AlreadyExists:
                    continue
            check_preconditions(old, "", text_of(draft, "resourceVersion"))
            if text_of(draft, "uid") not in ("", old["metadata"]["uid"]):
                raise invalid(resource, key[1], [Cause("metadata.uid", "cannot change")])
            try:
                return await self._store(resource, key, old, draft, write, applied_by=manager)
            except _OvertakenError:
                continue
        raise _too_many_attempts(resource, key)

    async def delete(
        self,
        resource: Resource,
        key: Key,
        preconditions: Preconditions | None,
        grace: int | None,
        propagation: Propagation | None,
        write: WriteOptions,
    ) -> None:
        """Ask for an object to go."""
        old = self._state.get(resource, key)
        wanted = preconditions or Preconditions()
        check_preconditions(old, wanted.uid, wanted.resource_version)
        await self._admit(Operation.DELETE, resource, key, None, old, write)
        check_preconditions(
            self._state.get(resource, key), wanted.uid or old["metadata"]["uid"], wanted.resource_version
        )
        if not write.dry_run:
            self._begin_deletion(resource, key, grace, propagation)
            self._settle()

    async def bind(
        self, key: Key, node: str, uid: str, annotations: Mapping[str, str], write: WriteOptions
    ) -> None:
        """Place a pod on a node."""
        old = self._state.get(resources.PODS, key)
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": key[0], "name": key[1], "uid": uid, "annotations": annotations},
            "target": {"kind": "Node", "name": node},
        }
        if not node:
            raise Invalid(f"the binding of pod `{key[1]}` names no node")
        into = WriteOptions("binding", user=write.user, dry_run=write.dry_run)
        await self._admit(Operation.CREATE, resources.PODS, key, freeze(binding), None, into)
        old = self._state.get(resources.PODS, key)
        check_preconditions(old, uid, "")
        draft = pods.bound(old, node, annotations, self._time())
        check_metadata(draft, resources.PODS)
        self._commit(resources.PODS, key, old, draft, write)

    async def evict(
        self, key: Key, grace: int | None, preconditions: Preconditions | None, write: WriteOptions
    ) -> None:
        """Ask for a pod to go as far as its disruption budget allows."""
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"namespace": key[0], "name": key[1]},
            "deleteOptions": {} if grace is None else {"gracePeriodSeconds": grace},
        }
        self._state.get(resources.PODS, key)
        into = WriteOptions("eviction", user=write.user, dry_run=write.dry_run)
        await self._admit(Operation.CREATE, resources.PODS, key, freeze(eviction), None, into)
        pod = self._state.get(resources.PODS, key)
        wanted = preconditions or Preconditions()
        check_preconditions(pod, wanted.uid, wanted.resource_version)
        self._budgets.claim(pod, dry_run=write.dry_run)
        if not write.dry_run:
            marked = pods.evicting(pod, self._time())
            if marked["status"] != pod.get("status"):
                self._state.put(resources.PODS, key, marked)
            self._begin_deletion(resources.PODS, key, grace, None)
            self._settle()

    def refresh(self, resource: Resource) -> None:
        """Before somebody looks at a resource: bring up to date what is computed."""
        if resource == resources.POD_DISRUPTION_BUDGETS:
            self._budgets.settle()

    def reap(self) -> int:
        """Let pods go whose time to stop is over, as a kubelet would; returns how many."""
        due = self._terminating.due(self._now())
        for key in due:
            self._begin_deletion(resources.PODS, key, 0, None)
        self._settle()
        return sum(self._state.find(resources.PODS, key) is None for key in due)

    def sweep(self) -> int:
        """Collect objects whose owners never were; returns how many."""
        return self._garbage.sweep()

    async def _create(
        self, resource: Resource, draft: dict[str, Any], write: WriteOptions, *, applied_by: str = ""
    ) -> FrozenDict:
        metadata = draft["metadata"]
        if metadata.get("resourceVersion"):
            raise Rejected(
                "a new object has no `metadata.resourceVersion`; leave it out, or update the object"
            )
        namespace = metadata.get("namespace") or ""
        self._require_namespace(namespace)
        kept = metadata.get("managedFields") if applied_by else None
        for field in KEPT_BY_SERVER:
            metadata.pop(field, None)
        rules = rules_of(resource)
        rules.complete(draft, None, self._state)
        rules.complete_status(draft)
        key = (namespace, str(metadata.get("name") or ""))
        draft = await self._mutated(Operation.CREATE, resource, key, draft, None, write)

        metadata = draft["metadata"]
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = self._unused_name(resource, namespace, str(metadata["generateName"]))
        if resource.has_status:
            rules.prepare(draft, self._time())
        metadata["uid"] = self._names.uid()
        metadata["creationTimestamp"] = self._time()
        if resource.counts_generations:
            metadata["generation"] = 1
        if kept is not None:
            metadata["managedFields"] = kept
        check_metadata(draft, resource)
        _raise(resource, draft, rules.check(draft))
        key = (namespace, metadata["name"])
        if not applied_by:
            tracked({}, draft, shape_of(resource), manager=write.manager, now=self._time())
        await self._validate(Operation.CREATE, resource, key, draft, None, write)

        if self._state.find(resource, key) is not None:
            raise AlreadyExists(f"{resource} `{key[1]}` exists already")
        self._require_namespace(namespace)
        if write.dry_run:
            return freeze(draft)
        stored = self._state.put(resource, key, draft)
        self._settle()
        return stored

    async def _store(
        self,
        resource: Resource,
        key: Key,
        old: FrozenDict,
        draft: dict[str, Any],
        write: WriteOptions,
        *,
        applied_by: str = "",
    ) -> FrozenDict:
        """Store the next version of `old`, as far as this subresource may write it."""
        if write.subresource not in ("", "status") or write.subresource not in ("", *resource.subresources):
            raise NotFound(f"{resource} have no `{write.subresource}` that can be written")
        draft = next_version(
            resource, old, draft, write.subresource, self._state, keep_managers=not applied_by
        )
        mutated = await self._mutated(Operation.UPDATE, resource, key, draft, old, write)
        if mutated is not draft:
            draft = next_version(
                resource, old, mutated, write.subresource, self._state, keep_managers=not applied_by
            )
        check_metadata(draft, resource)
        if not write.subresource and content_of(draft, resource) != content_of(old, resource):
            rules = rules_of(resource)
            _raise(resource, draft, rules.check(draft) + rules.check_update(old, draft))
            if resource.counts_generations:
                draft["metadata"]["generation"] = old["metadata"].get("generation", 0) + 1
        await self._validate(Operation.UPDATE, resource, key, draft, old, write)
        return self._commit(resource, key, old, draft, write, applied_by=applied_by)

    def _commit(
        self,
        resource: Resource,
        key: Key,
        old: FrozenDict,
        draft: dict[str, Any],
        write: WriteOptions,
        *,
        applied_by: str = "",
    ) -> FrozenDict:
        if not applied_by:
            shape, now = shape_of(resource), self._time()
            tracked(old, draft, shape, manager=write.manager, subresource=write.subresource, now=now)
        if draft == old:
            return old
        if self._state.find(resource, key) is not old:
            raise _OvertakenError(f"{resource} `{key[1]}` changed in the meantime; read it again and retry")
        if write.dry_run:
            return freeze(draft)
        if ready_to_go(draft["metadata"], resource):
            stored = freeze(draft)
            self._state.drop(resource, key)
        else:
            stored = self._state.put(resource, key, draft)
        self._settle()
        return stored

    def _begin_deletion(
        self, resource: Resource, key: Key, grace: int | None, propagation: Propagation | None
    ) -> None:
        """Take an object out, or mark it as going when it needs time or has finalizers."""
        old = self._state.get(resource, key)
        going = deletion_of(old, resource, grace, propagation, self._now())
        if going.marked is not None:
            self._state.put(resource, key, going.marked)
        if going.at_once:
            self._state.drop(resource, key)

    def _collect(self, resource: Resource, key: Key) -> None:
        """How the garbage collector deletes."""
        self._begin_deletion(resource, key, None, None)

    def _settle(self) -> None:
        """What controllers would do about the last write."""
        self._garbage.settle()
        if self._state.collection(resources.POD_DISRUPTION_BUDGETS).watches:
            self._budgets.settle()

    def _require_namespace(self, namespace: str) -> None:
        if not namespace:
            return
        found = self._state.find(resources.NAMESPACES, ("", namespace))
        if found is None:
            raise NotFound(f"namespace `{namespace}` not found; create it first")
        if found["metadata"].get("deletionTimestamp"):
            raise Forbidden(f"namespace `{namespace}` is being deleted and takes no new objects")

    def _unused_name(self, resource: Resource, namespace: str, prefix: str) -> str:
        name = self._names.complete(prefix)
        while self._state.find(resource, (namespace, name)) is not None:
            name = self._names.complete(prefix)
        return name

    async def _mutated(
        self,
        operation: Operation,
        resource: Resource,
        key: Key,
        draft: dict[str, Any],
        old: FrozenDict | None,
        write: WriteOptions,
    ) -> dict[str, Any]:
        """The draft as mutating hooks leave it: itself when none changed it, else a completed private copy."""
        request = _request(operation, resource, key, None, old, write)
        if not any(hook.concerns(request) for hook in self.admission.mutating):
            return draft
        request = replace(request, object=freeze(draft))
        answer = await self.admission.mutate(request)
        if answer is None or answer is request.object:
            return draft
        changed = thaw(answer)
        identify(changed, resource, key[0] or None)
        if key[1] and key_in(changed) != key:
            raise Rejected(
                f"an admission hook renamed {resource} `{key[1]}`", code=500, reason="InternalError"
            )
        if operation is Operation.CREATE:
            rules_of(resource).complete(changed, None, self._state)
            rules_of(resource).complete_status(changed)
        return changed

    async def _validate(
        self,
        operation: Operation,
        resource: Resource,
        key: Key,
        draft: dict[str, Any],
        old: FrozenDict | None,
        write: WriteOptions,
    ) -> None:
        request = _request(operation, resource, key, None, old, write)
        if any(hook.concerns(request) for hook in self.admission.validating):
            await self.admission.validate(replace(request, object=freeze(draft)))

    async def _admit(
        self,
        operation: Operation,
        resource: Resource,
        key: Key,
        obj: FrozenDict | None,
        old: FrozenDict | None,
        write: WriteOptions,
    ) -> None:
        """Ask all hooks about a request whose object is not stored."""
        request = _request(operation, resource, key, obj, old, write)
        await self.admission.mutate(request)
        await self.admission.validate(request)

    def _time(self) -> str:
        return time_text(self._now() * NANOSECONDS)


class _OvertakenError(Conflict):
    """Another write came between reading and storing."""


def _too_many_attempts(resource: Resource, key: Key) -> Conflict:
    return Conflict(f"{resource} `{key[1]}` changed {_ATTEMPTS} times while it was being written; retry")


def _request(
    operation: Operation,
    resource: Resource,
    key: Key,
    obj: FrozenDict | None,
    old: FrozenDict | None,
    write: WriteOptions,
) -> AdmissionRequest:
    return AdmissionRequest(
        operation, resource, write.subresource, key[0], key[1], obj, old, write.user, write.dry_run
    )


def _raise(resource: Resource, draft: Mapping[str, Any], causes: list[Cause]) -> None:
    if causes:
        raise invalid(resource, draft["metadata"]["name"], causes)
