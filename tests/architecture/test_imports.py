"""Imports run downwards only, and every third party has one door."""

import re
from collections.abc import Callable, Iterable, Iterator

from tests.architecture.source import SOURCES, Source

LAYERS = (
    ("cli",),
    ("console",),
    ("simulator", "language_server"),
    ("scheduler", "manager", "agent", "descheduler", "yarn_operator", "runtime_proxy"),
    ("cluster",),
    ("runtime",),
    ("source", "kube", "linux", "cri", "yarn"),
    ("graph",),
    ("language",),
    ("algorithms",),
    ("model",),
    ("diagnostics",),
)
"""The house from the top down. A part may import what lies below it, and nothing beside it."""

ONLY = {part: {"model", "diagnostics"} for part in ("source", "kube", "linux", "cri", "yarn")}
"""Parts that may import less than what lies below them: they are blind to the meaning of policies."""

GROUND = {"__init__", "files", "resources"}
"""Modules at the package's root that import nothing of ours and are open to all."""

ROOF = {"__main__": {"cli"}}
"""Modules at the package's root that start something."""

DOORS: dict[str, set[str]] = {
    "ruamel": {"language"},
    "kubernetes": {"kube"},
    "yaml": {"kube"},
    "watchfiles": {"source"},
    "prometheus_client": {"runtime"},
    "aiohttp": {"kube", "runtime", "yarn"},
    "grpc": {"cri"},
    "opentelemetry": {"runtime"},
    "uvloop": {"runtime"},
    "shtab": {"cli"},
    "pygls": {"language_server"},
    "lsprotocol": {"language_server"},
    "msgspec": {"kube", "runtime"},
    "z3": {"graph"},
    # The referees of our CEL stand in the tests; the product must not lean on them. Only
    # `koordpolicy test --referee` asks one, for those who want a second opinion (see ONE_DOOR).
    "celpy": {"graph"},
    "cel_expr_python": set(),
    "hypothesis": set(),
    "pytest": set(),
    # Clock, randomness and environment are inputs: whoever needs them is given them.
    "time": {"runtime", "cli"},
    "random": {"runtime", "cli"},
    "secrets": {"runtime", "cli"},
    "uuid.uuid1": {"runtime", "cli"},
    "uuid.uuid4": {"runtime", "cli"},
    "os.environ": {"runtime", "cli"},
    "os.getenv": {"runtime", "cli"},
    "os.urandom": {"runtime", "cli"},
    # What is imported by a computed name escapes this check; the command line may import all there is.
    "importlib.import_module": {"cli"},
}
"""Third parties, and the parts through which they come in."""

ONE_DOOR = {
    "celpy": "koordpolicy/graph/testing/celpython.py",
    "opentelemetry": "koordpolicy/runtime/spans.py",
}
"""Third parties that a single module may import."""

WORLD = re.compile(
    r"os\.(environ|environb|getenv|putenv|urandom)"
    r"|(datetime|datetime\.datetime)\.(now|utcnow|today)|(date|datetime\.date)\.today"
    r"|uuid\.uuid[14]"
    r"|(np|numpy)\.random(\..*)?"
)
"""Ways to clock, randomness and environment that need no import of their own."""

KERNEL_FILE = re.compile(r"/(proc|sys)/.*")
WIRE_NAME = re.compile(r"([a-z0-9-]+\.)*koordinator\.sh/(?!v\d)[\w./-]*|kubernetes\.io/(batch|mid)-\w+")
"""Labels, annotations and resources. A group and version is another matter: it names a type, in `kube`."""


def level(part: str) -> int:
    return next(depth for depth, parts in enumerate(LAYERS) if part in parts)


def permitted(part: str) -> set[str]:
    """The parts that `part` may import."""
    if part in GROUND:
        return set()
    if part in ROOF:
        return ROOF[part]
    below = {other for parts in LAYERS[level(part) + 1 :] for other in parts}
    return {part, *GROUND, *ONLY.get(part, below)}


def imported_parts(source: Source) -> Iterator[tuple[int, str]]:
    for line, name in source.imports():
        parts = name.split(".")
        if parts[0] == "koordpolicy":
            inner = parts[1] if len(parts) > 1 else "__init__"
            yield line, "__init__" if inner.startswith("__version") else inner


def complaints(
    find: Callable[[Source], Iterable[tuple[int, str]]], is_wrong: Callable[[Source, str], bool]
) -> list[str]:
    return [
        f"{source.name}:{line}: {found}"
        for source in SOURCES
        for line, found in find(source)
        if is_wrong(source, found)
    ]


def test_every_part_has_its_place() -> None:
    known = {part for parts in LAYERS for part in parts} | GROUND | set(ROOF)
    assert {source.part for source in SOURCES} <= known


def test_imports_run_downwards() -> None:
    assert complaints(imported_parts, lambda source, part: part not in permitted(source.part)) == []


def test_third_parties_come_in_by_their_door() -> None:
    def passes_by(source: Source, name: str) -> bool:
        return any(
            (name == party or name.startswith(f"{party}.")) and source.part not in parts
            for party, parts in DOORS.items()
        )

    assert complaints(Source.imports, passes_by) == []


def test_what_has_one_door_is_imported_by_one_module() -> None:
    def passes_by(source: Source, name: str) -> bool:
        return source.name != ONE_DOOR.get(name.partition(".")[0], source.name)

    assert complaints(Source.imports, passes_by) == []


def test_the_world_is_an_argument() -> None:
    def reaches_out(source: Source, name: str) -> bool:
        return source.part not in {"runtime", "cli"} and bool(WORLD.fullmatch(name))

    assert complaints(Source.attributes, reaches_out) == []


def test_kernel_files_are_named_in_one_place() -> None:
    def is_kernel_file(source: Source, text: str) -> bool:
        return source.part != "linux" and bool(KERNEL_FILE.fullmatch(text))

    assert complaints(Source.texts, is_kernel_file) == []


def test_wire_names_stand_once() -> None:
    def is_wire_name(source: Source, text: str) -> bool:
        return source.name != "koordpolicy/model/protocol.py" and bool(WIRE_NAME.fullmatch(text))

    assert complaints(Source.texts, is_wire_name) == []
