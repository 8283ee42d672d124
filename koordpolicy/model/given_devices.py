"""Which devices of its node a pod was given, as those read it that start it; what else was said of them stands in `pod_devices.py`."""

from collections.abc import Mapping

from koordpolicy.model.protocol import DEVICE_ALLOCATED
from koordpolicy.model.reading import ObjectError, embedded_object, integer, objects, text


def given_devices(annotations: Mapping[str, str]) -> tuple[dict[str, list[int]], dict[str, list[str]]]:
    """Numbers and IDs of devices by type, in the order of the annotation; an ID that is not said is empty.

    An annotation that cannot be read gives none.
    """
    source = annotations.get(DEVICE_ALLOCATED)
    if not source:
        return {}, {}
    numbers: dict[str, list[int]] = {}
    ids: dict[str, list[str]] = {}
    try:
        table = embedded_object(source, DEVICE_ALLOCATED)
        for type in table:
            for at, one in enumerate(objects(table, type, DEVICE_ALLOCATED)):
                where = f"{DEVICE_ALLOCATED}.{type}[{at}]"
                numbers.setdefault(type, []).append(integer(one, "minor", where) or 0)
                ids.setdefault(type, []).append(text(one, "id", where))
    except ObjectError:
        return {}, {}
    return numbers, ids
