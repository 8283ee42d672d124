"""How a container comes to ask for devices in other words. Containers are the API's JSON; new ones share what stays."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final

from koordpolicy.model.quantity import amount_text
from koordpolicy.model.reading import Amounts, Json, ObjectError, mapping

_LISTS: Final = ("requests", "limits")


def asks_for(container: Json, resources: Collection[str], at: str) -> bool:
    """Whether a container requests or limits any of these resources. Raises ObjectError."""
    declared = mapping(container, "resources", at)
    return any(name in resources for key in _LISTS for name in mapping(declared, key, f"{at}.resources"))


def is_requested(container: Json, resource: str, at: str) -> bool:
    """Whether a container requests a resource. Raises ObjectError."""
    return resource in mapping(mapping(container, "resources", at), "requests", f"{at}.resources")


def expand(container: Json, names: Mapping[str, Sequence[str]], at: str) -> Json:
    """The container with some of the resources that it requests replaced by others of the same amount.

    What stands under the new names is overwritten, in requests and limits alike. Raises ObjectError, for a container
    too that has but one of the two lists.
    """
    requests = mapping(mapping(container, "resources", at), "requests", f"{at}.resources")
    replaced = {name: requests[name] for name in names if name in requests}
    if not replaced:
        return container
    new = {target: quantity for name, quantity in replaced.items() for target in names[name]}
    return _with(container, new, replaced.keys(), at)


def with_amounts(container: Json, amounts: Amounts, at: str) -> Json:
    """The container that requests these amounts, too, and is limited to them. Raises ObjectError as `expand` does."""
    return _with(container, {name: amount_text(name, number) for name, number in amounts.items()}, (), at)


def _with(container: Json, new: Json, without: Collection[str], at: str) -> Json:
    if not new and not without:
        return container
    resources = dict(mapping(container, "resources", at))
    for key in _LISTS:
        if not resources.get(key):
            raise ObjectError(f"{at}.resources: devices need requests and limits, there are no {key}")
        before = mapping(resources, key, f"{at}.resources")
        resources[key] = {
            **{name: quantity for name, quantity in before.items() if name not in without},
            **new,
        }
    return {**container, "resources": resources}
