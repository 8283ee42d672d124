"""From the text of kernel files to values and back, and when two of them mean the same.

A value is an integer (-1 is unlimited, as in cgroup v1), a set of CPUs, or text that is a line of its own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from koordpolicy.model.cpuset import cpuset_text, parse_cpuset
from koordpolicy.model.shares import shares_of_weight, weight_of_shares

FileValue: TypeAlias = int | frozenset[int] | str
"""What a file holds, whatever the version of cgroups."""

UNLIMITED: Final = -1
PRACTICALLY_UNLIMITED: Final = (1 << 63) - 4096 * 16
"""Bytes. Kernels of version 1 write the highest multiple of a page, of up to 64 KiB, for no limit."""

_MAX: Final = "max"


@dataclass(frozen=True, slots=True)
class Form:
    """How a file's text and its value belong together.

    `parse` raises ValueError for text that is none of it. `same` says whether what the file says already is
    what would be written. `key` tells lines of one file apart that are written by themselves. `before` is the text
    that brings back what the file said of that key; None where nothing does.
    """

    parse: Callable[[str], FileValue]
    render: Callable[[FileValue], str]
    same: Callable[[FileValue, str], bool]
    before: Callable[[FileValue, str], str | None]
    key: Callable[[FileValue], str] = lambda value: ""


def _form(parse: Callable[[str], FileValue], render: Callable[[FileValue], str]) -> Form:
    """A form in which two texts mean the same where their values are equal."""

    def same(value: FileValue, content: str) -> bool:
        try:
            return render(parse(content)) == render(value)
        except ValueError:
            return False

    def before(value: FileValue, content: str) -> str | None:
        del value
        try:
            return render(parse(content))
        except ValueError:
            return None

    return Form(parse, render, same, before)


def _integer(text: str) -> int:
    text = text.strip()
    if text == _MAX:
        return UNLIMITED
    value = int(text)
    return UNLIMITED if value >= PRACTICALLY_UNLIMITED else value


def _as_integer(value: FileValue) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise ValueError(f"{value!r} is not an integer")  # noqa: TRY004 - one error for whatever is no value of the file
    return UNLIMITED if value >= PRACTICALLY_UNLIMITED else value


def _or_max(value: FileValue) -> str:
    number = _as_integer(value)
    return _MAX if number == UNLIMITED else str(number)


def _plain(text: str) -> int:
    return int(text.strip())


def _decimal(value: FileValue) -> str:
    return str(_as_integer(value))


def _huge(value: FileValue) -> str:
    number = _as_integer(value)
    return str((1 << 63) - 1 if number == UNLIMITED else number)


def _cpus(value: FileValue) -> str:
    if not isinstance(value, frozenset):
        raise ValueError(f"{value!r} is not a set of CPUs")  # noqa: TRY004 - as above
    return cpuset_text(value)


def _line(value: FileValue) -> str:
    if not isinstance(value, str) or not value.strip() or "\n" in value.strip():
        raise ValueError(f"{value!r} is not one line of text")
    return value.strip()


def _weight(value: FileValue) -> str:
    return str(weight_of_shares(_as_integer(value)))


def _shares_of_text(text: str) -> int:
    # A group with cpu.idle has a weight of 0, which cannot be written.
    return shares_of_weight(max(1, int(text.strip())))


def _quota_of_max(text: str) -> int:
    return _integer(text.partition(" ")[0])


def _period_of_max(text: str) -> int:
    return int(text.partition(" ")[2])


def _fields(line: str) -> tuple[str, dict[str, str]]:
    """`8:0 rbps=1 wbps=max` as the device and its fields; a bare number is the field ``."""
    device, *rest = line.split() or [""]
    fields = {}
    for part in rest:
        name, equals, value = part.partition("=")
        fields[name if equals else ""] = value if equals else name
    return device, fields


def _same_number(one: str, other: str) -> bool:
    try:
        return float(one) == float(other)
    except ValueError:
        return one == other


def _same_device_line(value: FileValue, content: str) -> bool:
    """Whether the device's line holds all fields that would be written; one that is not listed holds zeros."""
    device, wanted = _fields(_line(value))
    for line in content.splitlines():
        name, fields = _fields(line)
        if name == device:
            return all(key in fields and _same_number(said, fields[key]) for key, said in wanted.items())
    return all(said in {"0", _MAX} for said in wanted.values())


def _same_schemata(value: FileValue, content: str) -> bool:
    """Whether the line of that resource says the same for all caches that would be written."""
    resource, _, wanted = _line(value).partition(":")
    for line in content.splitlines():
        name, _, said = line.strip().partition(":")
        if name.strip() == resource.strip():
            held = _by_cache(said)
            return all(held.get(cache) == mask for cache, mask in _by_cache(wanted).items())
    return False


def _by_cache(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(";") if part.strip())
    return {cache.strip(): mask.strip().lower().lstrip("0") or "0" for cache, _, mask in pairs}


def _throttle_line(key: str) -> Callable[[FileValue], str]:
    """`8:0 1048576` as `8:0 rbps=1048576`, and 0, which is no limit, as `max`."""

    def render(value: FileValue) -> str:
        device, fields = _fields(_line(value))
        limit = fields.get("", "")
        if not limit.isdigit():
            raise ValueError(f"{value!r} is not a device and a limit")
        return f"{device} {key}={_MAX if int(limit) == 0 else limit}"

    return render


def _device(value: FileValue) -> str:
    return _fields(_line(value))[0]


def _device_line_before(value: FileValue, content: str) -> str | None:
    """The device's line; one that is not listed had no limits: the same fields with zeros."""
    device, wanted = _fields(_line(value))
    for line in content.splitlines():
        if _fields(line)[0] == device:
            return line.strip()
    zeros = ("enable=0",) if "enable" in wanted else tuple(f"{key}=0" if key else "0" for key in wanted)
    return " ".join((device, *zeros))


def _device_weight_before(value: FileValue, content: str) -> str | None:
    """The device's weight; one that is not listed has the group's own."""
    lines = (line.strip() for line in content.splitlines())
    return next((line for line in lines if _fields(line)[0] == _device(value)), f"{_device(value)} default")


def _resource(value: FileValue) -> str:
    return _line(value).partition(":")[0].strip()


def _schemata_before(value: FileValue, content: str) -> str | None:
    lines = (line.strip() for line in content.splitlines())
    return next((f"{line}\n" for line in lines if line.partition(":")[0].strip() == _resource(value)), None)


def _switch(value: FileValue) -> str:
    return _line(value).removeprefix("NO_")


def _switch_before(value: FileValue, content: str) -> str | None:
    name = _switch(value)
    return next((word for word in content.split() if word in {name, f"NO_{name}"}), None)


def throttle_v2(key: str) -> Form:
    """A limit of a device in `io.max`, under its key there."""
    render = _throttle_line(key)

    def before(value: FileValue, content: str) -> str:
        device = _device(value)
        lines = (_fields(line) for line in content.splitlines())
        held = next((fields for name, fields in lines if name == device), {})
        return f"{device} {key}={held.get(key, _MAX)}"

    return Form(
        str.strip,
        render,
        lambda value, content: _same_device_line(render(value), content),
        before,
        lambda value: f"{_device(value)} {key}",
    )


INTEGER: Final = _form(_plain, _decimal)
UNLIMITED_AS_MINUS_ONE: Final = _form(_integer, _decimal)
UNLIMITED_AS_HUGE: Final = _form(_integer, _huge)
UNLIMITED_AS_MAX: Final = _form(_integer, _or_max)
SHARES_AS_WEIGHT: Final = Form(
    _shares_of_text,
    _weight,
    # Shares made of a weight are another weight again: only weights are compared, and given back.
    lambda value, content: content.strip() == _weight(value),
    lambda value, content: content.strip(),
)
QUOTA_OF_MAX: Final = _form(_quota_of_max, _or_max)
"""The first field of `cpu.max`; written alone, the kernel keeps the period."""
PERIOD_OF_MAX: Final = _form(_period_of_max, _decimal)
CPUS: Final = _form(parse_cpuset, _cpus)
TEXT: Final = Form(
    str.strip,
    _line,
    lambda value, content: content.strip() == _line(value),
    lambda value, content: content.strip() or None,
)
DEVICE_LINE: Final = Form(str.strip, _line, _same_device_line, _device_line_before, _device)
"""A line a device, `8:0 1048576` or `8:0 enable=1 ctrl=user`; a device that is not listed has no limits."""
DEVICE_WEIGHT: Final = Form(str.strip, _line, _same_device_line, _device_weight_before, _device)
"""A line a device, `8:0 100`, beside one for all others, `default 100`."""
SCHEMATA: Final = Form(
    str.strip, lambda value: f"{_line(value)}\n", _same_schemata, _schemata_before, _resource
)
"""A line a resource, `L3:0=f;1=f`, as resctrl has it."""
MEMBER: Final = Form(
    str.strip,
    _line,
    lambda value, content: _line(value) in content.split(),
    lambda value, content: None,
    _line,
)
"""A task that is put into a group: whether it is there is seen in the list, where it was before is not."""
FEATURE: Final = Form(
    str.strip, _line, lambda value, content: _line(value) in content.split(), _switch_before, _switch
)
"""A word of a list that its own name switches on and `NO_` before it off."""
