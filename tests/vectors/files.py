"""Reading vector files: YAML or JSON with one list `vectors`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

BESIDE = Path(__file__).resolve().parents[2].parent / "shared" / "vectors"
"""Where the files are found when they are there."""

Json = Mapping[str, object]


class UnreadableFile(Exception):
    """A file that is not there, or not a vector file."""


@dataclass(frozen=True, slots=True)
class Vector:
    """One case. `stem` is the name of its file without ending, a hint at its domain."""

    stem: str
    kind: str
    name: str
    input: Json
    expect: Json


def read(path: Path) -> list[Vector]:
    """All vectors of a file in order. Raises UnreadableFile with what is wrong and where."""
    try:
        source = path.read_text(encoding="utf-8")
        content = json.loads(source) if path.suffix == ".json" else YAML(typ="safe").load(source)
    except (OSError, ValueError, YAMLError) as error:
        raise UnreadableFile(f"{path}: {' '.join(str(error).split())}") from error
    listed = content.get("vectors") if isinstance(content, dict) else None
    if not isinstance(listed, list):
        raise UnreadableFile(f"{path}: expected a mapping with a list `vectors`")
    return list(_vectors(path, listed))


def known_files() -> list[Path]:
    """The files beside the project, chosen and random ones; empty when they are not there."""
    return sorted([*BESIDE.glob("*.yaml"), *BESIDE.glob("random/*.json")])


def _vectors(path: Path, listed: list[object]) -> Iterator[Vector]:
    for index, entry in enumerate(listed):
        match entry:
            case {"kind": str(kind), "name": str(name), "input": dict(given), "expect": dict(expect)}:
                yield Vector(path.stem, kind, name, given, expect)
            case _:
                raise UnreadableFile(f"{path}: vectors[{index}] needs `kind`, `name`, `input` and `expect`")
