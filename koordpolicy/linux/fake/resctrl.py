"""Groups of resctrl in the model: plain files that a new group begins with, and tasks that are in one group each."""

from collections.abc import MutableMapping
from typing import Final

from koordpolicy.linux.root import RESCTRL

_SCHEMATA: Final = "schemata"
_TASKS: Final = "tasks"


def holds(path: str) -> bool:
    """Whether a path is within resctrl."""
    return path.startswith(f"{RESCTRL}/")


def make(plain: MutableMapping[str, str], path: str) -> bool:
    """Make a group with what the default group has; False where resctrl is not mounted, or groups do not go so deep."""
    whole = plain.get(f"{RESCTRL}/{_SCHEMATA}")
    if whole is None or "/" in path.removeprefix(f"{RESCTRL}/"):
        return False
    plain.setdefault(f"{path}/{_SCHEMATA}", whole)
    plain.setdefault(f"{path}/{_TASKS}", "")
    return True


def remove(plain: MutableMapping[str, str], path: str) -> None:
    """Remove a group; its tasks are the default group's again."""
    moved = plain.get(f"{path}/{_TASKS}", "")
    for name in [one for one in plain if one.startswith(f"{path}/")]:
        del plain[name]
    if moved:
        plain[f"{RESCTRL}/{_TASKS}"] = plain.get(f"{RESCTRL}/{_TASKS}", "") + moved


def write(plain: MutableMapping[str, str], path: str, content: str) -> None:
    """Write a file: a task moves from the group that it was in, a line of a resource replaces the one before it."""
    if path.endswith(f"/{_TASKS}"):
        for other in [one for one in plain if holds(one) and one.endswith(f"/{_TASKS}")]:
            kept = [task for task in plain[other].split() if task != content.strip()]
            plain[other] = "".join(f"{task}\n" for task in kept)
        plain[path] += f"{content.strip()}\n"
        return
    if path.endswith(f"/{_SCHEMATA}"):
        resource = content.partition(":")[0].strip()
        others = [
            line
            for line in plain[path].splitlines()
            if line.strip() and line.partition(":")[0].strip() != resource
        ]
        plain[path] = "".join(f"{line}\n" for line in (*others, content.strip()))
        return
    plain[path] = content
