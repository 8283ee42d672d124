"""What was proved before: a file in the user's cache, so that `check` proves only what changed."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from koordpolicy import __version__
from koordpolicy.files import replace_file
from koordpolicy.graph import Compilation

_MOST: Final = 5_000
_LARGEST: Final = 2 << 20


@contextmanager
def kept_proofs() -> Iterator[dict[str, str]]:
    """The proofs of earlier runs by this very program; those that are added are kept."""
    file = _file()
    proofs = _read(file)
    known = len(proofs)
    yield proofs
    if len(proofs) > known:
        _write(file, dict(list(proofs.items())[-_MOST:]))


def with_proofs(compilation: Compilation) -> Compilation:
    """The compilation with what is said of its invariants that do not hold, or that are not proved."""
    if compilation.graph is None or not compilation.invariants:
        return compilation
    with kept_proofs() as proofs:
        whole = f"all of {compilation.graph.digest}"
        if whole in proofs:
            return compilation
        # What proves takes a while to load, and most runs of `check` find everything proved before.
        from koordpolicy.graph.proof import ProofBudget  # noqa: PLC0415
        from koordpolicy.graph.proof.judging import findings_of, judge, one_for_each_slip  # noqa: PLC0415

        judged = judge(compilation.graph, compilation.invariants, ProofBudget(), proofs)
        own = max(compilation.units, key=lambda unit: unit.layer).layer_name
        said = findings_of(judged, compilation.graph, own)
        if not list(said):
            proofs[whole] = ""
            return compilation
    return replace(compilation, found=one_for_each_slip(compilation.found, said))


def _file() -> Path:
    """One file for each edition of the prover: a proof is worth as much as the program that found it."""
    digest = hashlib.sha256(__version__.encode())
    package = Path(__file__).parents[1] / "graph" / "proof"
    for source in sorted(package.glob("*.py")):
        digest.update(source.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "koordpolicy" / "proofs" / f"{digest.hexdigest()[:16]}.json"


def _read(file: Path) -> dict[str, str]:
    try:
        if file.stat().st_size > _LARGEST:
            return {}
        data = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(key): str(name) for key, name in data.items()} if isinstance(data, dict) else {}


def _write(file: Path, proofs: dict[str, str]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, json.dumps(proofs).encode())
    except OSError:
        return  # what cannot be kept is proved again
