"""Files of the table, read by name."""

from koordpolicy.linux.cgroups.hierarchy import Hierarchy, LocatedFile
from koordpolicy.linux.errors import Malformed, NoSuchFile
from koordpolicy.linux.files.forms import FileValue
from koordpolicy.linux.root import KernelRoot


def read_located(
    root: KernelRoot, hierarchy: Hierarchy, name: str, target: str = ""
) -> tuple[LocatedFile, str]:
    """Where a file of the table is for a target, and what it says.

    Raises `NoSuchFile` where it is in none of the places where it could be.
    """
    # What an error says is kept, not the error: with its traceback it would hold itself until garbage is looked for.
    missing = None
    for place in hierarchy.located(name, target):
        try:
            return place, root.read(place.path)
        except NoSuchFile as error:
            missing = missing or (error.path, error.problem, error.number)  # the likeliest place is named
    raise NoSuchFile(*missing or (name, "no mounted version of cgroups has this file", 0))


def read_value(root: KernelRoot, hierarchy: Hierarchy, name: str, target: str = "") -> FileValue:
    """The value of a file of the table for a target, in the table's unit. Raises `KernelFileError`."""
    return _value_of(*read_located(root, hierarchy, name, target))


def _value_of(place: LocatedFile, content: str) -> FileValue:
    try:
        return place.entry.form.parse(content)
    except ValueError as error:
        raise Malformed(place.path, f"not as expected: {error}") from error


def number_of(place: LocatedFile, content: str) -> int:
    """The number in a file's text. Raises `Malformed`."""
    value = _value_of(place, content)
    if not isinstance(value, int):
        raise Malformed(place.path, "this file does not hold a number")
    return value


def read_number(root: KernelRoot, hierarchy: Hierarchy, name: str, target: str = "") -> int:
    """The number that a file of the table holds. Raises `KernelFileError`."""
    return number_of(*read_located(root, hierarchy, name, target))


def read_cpus(root: KernelRoot, hierarchy: Hierarchy, name: str, target: str = "") -> frozenset[int]:
    """The CPUs that a file of the table holds. Raises `KernelFileError`."""
    return cpus_of(*read_located(root, hierarchy, name, target))


def cpus_of(place: LocatedFile, content: str) -> frozenset[int]:
    """The CPUs in a file's text. Raises `Malformed`."""
    value = _value_of(place, content)
    if not isinstance(value, frozenset):
        raise Malformed(place.path, "this file does not hold CPUs")
    return value
