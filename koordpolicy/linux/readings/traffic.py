"""Queueing of network traffic: the disciplines and classes of devices, as the `tc` program tells them."""

import itertools
import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from koordpolicy.linux.errors import KernelFileError, Malformed

_SECONDS: Final = 10
_MOST_NAME: Final = 15
"""Characters of a network device's name, by the kernel."""

_SENT: Final = re.compile(r"Sent (\d+) bytes \d+ pkt \(dropped (\d+), overlimits (\d+)")
_RATE: Final = re.compile(r"([0-9.]+)([KMGTkmgt])?(i)?bit")

TcProgram: TypeAlias = Callable[[Sequence[str]], str]
"""Runs `tc` with arguments and gives what it prints; raises `KernelFileError` where it fails."""


@dataclass(frozen=True, slots=True)
class TrafficQueue:
    """A discipline or class. `handle` and `parent` as `tc` writes them, `1:2`; rates in bytes a second, None without any.

    `sent` bytes, `dropped` and `over_limit` packets since it was made.
    """

    kind: str
    handle: str
    parent: str
    rate: int | None = None
    ceiling: int | None = None
    priority: int | None = None
    sent: int = 0
    dropped: int = 0
    over_limit: int = 0


def run_tc(arguments: Sequence[str]) -> str:
    """Run this machine's `tc`, without a shell and for at most ten seconds."""
    command = " ".join(("tc", *arguments))
    try:
        done = subprocess.run(  # noqa: S603 - arguments are ours, and no shell reads them
            ["tc", *arguments],  # noqa: S607 - found by PATH, as distributions put it in different places
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise KernelFileError(command, f"cannot be run: {error}") from error
    if done.returncode != 0:
        raise KernelFileError(command, done.stderr.strip() or f"ended with {done.returncode}")
    return done.stdout


def read_disciplines(device: str, run: TcProgram = run_tc) -> tuple[TrafficQueue, ...]:
    """The queueing disciplines of a device. Raises `KernelFileError`."""
    return _queues("qdisc", device, run)


def read_classes(device: str, run: TcProgram = run_tc) -> tuple[TrafficQueue, ...]:
    """The classes of a device's disciplines. Raises `KernelFileError`."""
    return _queues("class", device, run)


def _queues(sort: str, device: str, run: TcProgram) -> tuple[TrafficQueue, ...]:
    command = f"tc {sort} show dev {device}"
    if not 0 < len(device) <= _MOST_NAME or device.startswith("-") or "/" in device:
        raise KernelFileError(command, f"{device!r} is not the name of a network device")
    printed = run(["-s", "-j", sort, "show", "dev", device]).strip()
    try:
        if printed.startswith("class "):
            return tuple(_printed(printed))
        # Without any, some versions print nothing at all.
        return tuple(_queue(sort, one) for one in json.loads(printed or "[]"))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise Malformed(command, f"not as expected: {error}") from error


def _printed(text: str) -> Iterator[TrafficQueue]:
    """Classes as people read them: some versions print those of HTB so whatever is asked."""
    for part in re.split(r"^class ", text, flags=re.MULTILINE)[1:]:
        first, _, rest = part.partition("\n")
        kind, handle, *words = first.split()
        said = dict(itertools.pairwise(words))
        found = _SENT.search(rest)
        if found is None:
            raise ValueError(f"nothing is said of what `{handle}` has sent")
        counts = [int(number) for number in found.groups()]
        yield TrafficQueue(
            kind,
            handle,
            said.get("parent", "root" if "root" in words else ""),
            _bytes(said["rate"]) if "rate" in said else None,
            _bytes(said["ceil"]) if "ceil" in said else None,
            int(said["prio"]) if "prio" in said else None,
            *counts,
        )


def _bytes(rate: str) -> int:
    """`8Kbit` in bytes a second."""
    found = _RATE.fullmatch(rate)
    if found is None:
        raise ValueError(f"{rate!r} is no rate")
    number, unit, binary = found.groups()
    power = " KMGT".index((unit or " ").upper())
    return int(float(number) * (1024 if binary else 1000) ** power) // 8


def _queue(sort: str, said: Mapping[str, Any]) -> TrafficQueue:
    options = said.get("options", {})
    kind = said["kind"] if sort == "qdisc" else said["class"]
    counts = said.get("stats", said)
    return TrafficQueue(
        str(kind),
        str(said["handle"]),
        str(said.get("parent", "root" if said.get("root") else "")),
        _number(said, options, "rate"),
        _number(said, options, "ceil"),
        _number(said, options, "prio"),
        int(counts.get("bytes", 0)),
        int(counts.get("drops", 0)),
        int(counts.get("overlimits", 0)),
    )


def _number(said: Mapping[str, Any], options: Mapping[str, Any], name: str) -> int | None:
    found = said.get(name, options.get(name))
    return None if found is None else int(found)
