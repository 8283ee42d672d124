"""What a caller sent, on its way to the next version of an object: private copies, preconditions, patches."""

from collections.abc import Mapping
from typing import Any, Final

from koordpolicy.kube import resources
from koordpolicy.kube.apply import applied
from koordpolicy.kube.errors import Conflict, NotFound, Rejected
from koordpolicy.kube.frozen import FrozenDict, freeze, thaw
from koordpolicy.kube.memory.collection import Key
from koordpolicy.kube.memory.kinds import rules_of
from koordpolicy.kube.memory.metadata import identify
from koordpolicy.kube.memory.state import MemoryState
from koordpolicy.kube.patch import patched
from koordpolicy.kube.port import ApplyPatch, Object, Patch
from koordpolicy.kube.resources import Resource
from koordpolicy.kube.shapes import shape_of

KEPT_BY_SERVER: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
    "managedFields",
    "selfLink",
)
"""What of an object's metadata only the server writes."""


def private_copy(obj: Object) -> dict[str, Any]:
    """A private copy of what a caller gave, known to be JSON."""
    return thaw(freeze(obj))


def key_in(draft: Mapping[str, Any]) -> Key:
    """The key an object names itself by; Rejected when it has no name."""
    name = draft["metadata"].get("name")
    if not isinstance(name, str) or not name:
        raise Rejected("the object has no `metadata.name`")
    return (draft["metadata"].get("namespace") or "", name)


def text_of(draft: Mapping[str, Any], field: str) -> str:
    """A text of the metadata, "" when missing."""
    return str(draft["metadata"].get(field) or "")


def content_of(obj: Mapping[str, Any], resource: Resource) -> dict[str, Any]:
    """What of an object its generation counts."""
    left_out = {"apiVersion", "kind", "metadata"} | ({"status"} if resource.has_status else set())
    return {field: value for field, value in obj.items() if field not in left_out}


def check_preconditions(obj: FrozenDict, uid: str, version: str) -> None:
    """Conflict when the object has another uid or resource version; "" leaves it open."""
    metadata = obj["metadata"]
    if uid and uid != metadata["uid"]:
        raise Conflict(
            f"`{metadata['name']}` is another object now: its uid is `{metadata['uid']}`, not `{uid}`"
        )
    if version and version != metadata["resourceVersion"]:
        raise Conflict(
            f"`{metadata['name']}` changed since it was read: its version is "
            f"`{metadata['resourceVersion']}`, not `{version}`; read it again and retry"
        )


def patched_draft(
    resource: Resource, key: Key, old: FrozenDict | None, patch: Patch, subresource: str, now: str
) -> tuple[dict[str, Any], str]:
    """The object as a patch makes it, and the manager when it was applied.

    Only an apply patch goes without an object (NotFound). Rejected when the patch speaks of another object.
    """
    if isinstance(patch, ApplyPatch):
        return _applied_draft(resource, key, old, patch, subresource, now), patch.manager
    if old is None:
        raise NotFound(f"{resource} `{key[1]}` not found")
    draft = patched(thaw(old), patch, resource)
    identify(draft, resource, key[0] or None)
    if key_in(draft) != key:
        raise Rejected(f"a patch cannot turn {resource} `{key[1]}` into `{key_in(draft)[1]}`")
    return draft, ""


def _applied_draft(
    resource: Resource, key: Key, old: FrozenDict | None, patch: ApplyPatch, subresource: str, now: str
) -> dict[str, Any]:
    if not patch.manager:
        raise Rejected("an apply patch needs the name of its field manager")
    wanted = private_copy(patch.object)
    if "apiVersion" not in wanted or "kind" not in wanted:
        raise Rejected("an apply patch states `apiVersion` and `kind`")
    identify(wanted, resource, key[0] or None)
    if key_in(wanted) != key:
        raise Rejected(f"the patch speaks of `{key_in(wanted)[1]}`, the request of `{key[1]}`")
    if wanted["metadata"].get("managedFields"):
        raise Rejected("an apply patch has no `metadata.managedFields`")
    if subresource:
        if old is None:
            raise NotFound(f"{resource} `{key[1]}` not found")
        named = ("name", "namespace", "resourceVersion", "uid")
        metadata = {field: value for field, value in wanted["metadata"].items() if field in named}
        parts = {field: wanted[field] for field in ("apiVersion", "kind", subresource) if field in wanted}
        wanted = {**parts, "metadata": metadata}
    elif resource.has_status:
        wanted.pop("status", None)
    return applied(
        old or {},
        wanted,
        shape_of(resource),
        manager=patch.manager,
        force=patch.force,
        subresource=subresource,
        now=now,
    )


def next_version(
    resource: Resource,
    old: FrozenDict,
    draft: dict[str, Any],
    subresource: str,
    state: MemoryState,
    *,
    keep_managers: bool,
) -> dict[str, Any]:
    """What of the draft counts, over what the server keeps of the old version."""
    metadata, before = draft["metadata"], old["metadata"]
    for field in KEPT_BY_SERVER:
        if field == "managedFields" and not keep_managers:
            continue
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)
    rules = rules_of(resource)
    if subresource == "status":
        if resource.custom:
            managers = metadata.get("managedFields")
            metadata = {**before, **({"managedFields": managers} if managers else {})}
        elif "ownerReferences" in before:
            metadata["ownerReferences"] = before["ownerReferences"]
        else:
            metadata.pop("ownerReferences", None)
        draft = {**old, "metadata": metadata, "status": draft.get("status") or {}}
        rules.complete_status(draft)
        if resource == resources.PODS and "qosClass" in old.get("status", {}):
            draft["status"].setdefault("qosClass", old["status"]["qosClass"])
        return draft
    if resource.has_status:
        draft.pop("status", None)
    rules.complete(draft, old, state)
    if resource.has_status and "status" in old:
        draft["status"] = old["status"]
    return draft
