"""All that somebody who helps wants to see of a cluster, in one archive, without Secrets, environments or logs."""

import io
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from koordpolicy import __version__
from koordpolicy.cli.doctoring.check import Examination
from koordpolicy.diagnostics.escaping import json_text
from koordpolicy.files import replace_file
from koordpolicy.kube import resources
from koordpolicy.kube.errors import Forbidden, NotFound
from koordpolicy.kube.port import Object
from koordpolicy.kube.scrubbing import scrubbed_object
from koordpolicy.kube.snapshot import take_snapshot, write_snapshot

_PLACE: Final = "koordpolicy-support"
_OBJECTS: Final = (
    *resources.POLICIES,
    resources.POLICY_REVISIONS,
    resources.LEASES,
    resources.MUTATING_WEBHOOKS,
    resources.VALIDATING_WEBHOOKS,
)
"""Beside what a snapshot has: policies, who runs what, and which requests the manager is asked about."""
_OURS: Final = "koordpolicy"


async def support_files(examination: Examination, told: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of the archive by name; `told` is what else is known, as plain data by name. Raises KubeError, SnapshotError."""
    objects: dict[str, Sequence[Object]] = {}
    for resource in _OBJECTS:
        try:
            found = await examination.all(resource)
        except (NotFound, Forbidden):
            continue
        if not resource.custom:
            found = [one for one in found if str(one["metadata"].get("name", "")).startswith(_OURS)]
        objects[resource.name] = [scrubbed_object(resource, one) for one in found]
    snapshot = await take_snapshot(examination.cluster, examination.now(), lambda resource, number: None)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "snapshot.json.gz"
        write_snapshot(snapshot, file)
        packed = file.read_bytes()
    files = {"version.txt": f"koordpolicy {__version__}\n".encode(), "snapshot.json.gz": packed}
    for name, data in (*told.items(), ("objects", objects)):
        files[f"{name}.json"] = (json_text(data, indent=2) + "\n").encode()
    return files


def write_archive(files: Mapping[str, bytes], path: Path, now: int) -> None:
    """A gzipped tar archive, put into place whole. Raises OSError."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in sorted(files):
            entry = tarfile.TarInfo(f"{_PLACE}/{name}")
            entry.size, entry.mtime = len(files[name]), now // 10**9
            archive.addfile(entry, io.BytesIO(files[name]))
    replace_file(path, packed.getvalue())
