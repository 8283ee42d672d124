"""What API servers of a run of tests were asked for by accounts of ours, and by which test."""

import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.roles.permissions import Permission, resource_of

_ROLE = re.compile(r' of (ClusterRole|Role) "([^"/]+)')
_FORBIDDEN = 403
_MOST = 3
"""Files that a line of the table names."""


def asked_for(folder: Path, granted: Iterable[Permission]) -> dict[Permission, tuple[str, ...]]:
    """Each permission that was made use of, with files of tests that did: those with a server of their own first, and of these
    the ones with fewest requests. A rule of all resources of a group counts as one.
    """
    windows = _windows(folder)
    everywhere = {one for one in granted if one.resource.startswith("*")}
    certain: dict[Permission, set[str]] = defaultdict(set)
    likely: dict[Permission, set[str]] = defaultdict(set)
    weight: dict[str, int] = defaultdict(int)
    for log in sorted(folder.glob("*.log")):
        file = log.with_suffix(".test").read_text("utf-8").partition("::")[0]
        for event in _events(log):
            permission = _permission(event, everywhere)
            if permission is None:
                continue
            if file:
                certain[permission].add(file)
                weight[file] += 1
            else:
                likely[permission].update(_running(windows, event))
    return {
        one: tuple(
            [
                *sorted(certain[one], key=lambda file: (weight[file], file)),
                *sorted(likely[one] - certain[one]),
            ][:_MOST]
        )
        for one in {*certain, *likely}
    }


def refused(folder: Path) -> set[tuple[str, str]]:
    """Verbs and resources of requests that roles did not permit."""
    return {
        (event["verb"], resource)
        for log in folder.glob("*.log")
        for event in _events(log)
        if event.get("responseStatus", {}).get("code") == _FORBIDDEN and "objectRef" in event
        for resource in _resources(event["objectRef"])
    }


def _resources(asked: Mapping[str, Any]) -> tuple[str, str]:
    """The resource of a request, and all of its group."""
    subresource = f"/{asked['subresource']}" if "subresource" in asked else ""
    group = asked.get("apiGroup", "")
    return resource_of(group, asked["resource"] + subresource), resource_of(group, "*" + subresource)


def _events(log: Path) -> Iterator[Mapping[str, Any]]:
    with log.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except ValueError:
                continue  # the server was killed while it wrote


def _permission(event: Mapping[str, Any], everywhere: set[Permission]) -> Permission | None:
    """What a request made use of; None where it was refused, or is no matter of a role of ours."""
    found = _ROLE.search(event.get("annotations", {}).get("authorization.k8s.io/reason", ""))
    asked = event.get("objectRef")
    if found is None or asked is None:
        return None
    one, wide = (Permission("/".join(found.groups()), event["verb"], name) for name in _resources(asked))
    return wide if wide in everywhere else one


def _windows(folder: Path) -> dict[str, tuple[list[float], list[str]]]:
    """By worker: when it began with which file."""
    found = {}
    for log in folder.glob("*.begun"):
        rows = [line.split(" ", 1) for line in log.read_text("utf-8").splitlines()]
        found[log.stem] = ([float(row[0]) for row in rows], [row[1] for row in rows])
    return found


def _running(windows: Mapping[str, tuple[list[float], list[str]]], event: Mapping[str, Any]) -> Iterator[str]:
    """Files that were run when a request came."""
    when = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
    for times, files in windows.values():
        place = bisect_right(times, when)
        if place:
            yield files[place - 1]
