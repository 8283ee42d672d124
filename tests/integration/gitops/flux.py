"""Flux's kustomize-controller, and what stands for its source-controller: a GitRepository whose artifact we serve.

The contract is Flux's documented one: `status.artifact` of a source names a gzipped tar by address, digest and
revision, and whoever consumes the source fetches it from there. The definitions below are the least that the
controller needs; it writes and reads everything else by itself.
"""

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.integration.gitops.site import Site
from tests.parts.deployed import DEPLOY, apply, manifests
from tests.parts.http_answers import answering
from tests.parts.processes import free_port

NAMESPACE = "flux-system"
SOURCES = f"/apis/source.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/gitrepositories"
KUSTOMIZATIONS = f"/apis/kustomize.toolkit.fluxcd.io/v1/namespaces/{NAMESPACE}/kustomizations"


def definition(group: str, kind: str, plural: str) -> dict[str, Any]:
    """A definition of a kind of Flux that takes everything."""
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


DEFINITIONS = (
    definition("source.toolkit.fluxcd.io", "GitRepository", "gitrepositories"),
    definition("source.toolkit.fluxcd.io", "OCIRepository", "ocirepositories"),
    definition("source.toolkit.fluxcd.io", "Bucket", "buckets"),
    definition("kustomize.toolkit.fluxcd.io", "Kustomization", "kustomizations"),
)


def shipped(kind: str) -> dict[str, Any]:
    """The example for users of that kind, in `deploy/flux`."""
    return next(dict(one) for one in manifests(DEPLOY / "flux") if one["kind"] == kind)


class Flux:
    """The running controller, and a source whose content the test sets."""

    def __init__(self, site: Site, artifacts: dict[str, bytes], url: str) -> None:
        self.site = site
        self._artifacts = artifacts
        self._url = url

    def publish(self, name: str, files: Mapping[str, str]) -> str:
        """Let a source have these files; gives the revision. What a commit and a fetch do elsewhere."""
        archive = _archive(files)
        digest = hashlib.sha256(archive).hexdigest()
        commit = hashlib.sha1(repr(sorted(files.items())).encode(), usedforsecurity=False).hexdigest()
        revision = f"main@sha1:{commit}"
        path = f"/gitrepository/{name}/{commit}.tar.gz"
        self._artifacts[path] = archive
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        if self.site.get(f"{SOURCES}/{name}") is None:
            self.site.send("POST", SOURCES, {**shipped("GitRepository"), "metadata": {"name": name}})
        artifact = {
            "url": f"{self._url}{path}",
            "path": path,
            "revision": revision,
            "digest": f"sha256:{digest}",
            "size": len(archive),
            "lastUpdateTime": now,
        }
        ready = {"type": "Ready", "status": "True", "reason": "Succeeded", "message": f"stored {revision}"}
        status = {
            "artifact": artifact,
            "conditions": [{**ready, "lastTransitionTime": now}],
            "observedGeneration": 1,
        }
        self.site.send("PATCH", f"{SOURCES}/{name}/status", {"status": status})
        return revision

    def reconcile(self, name: str, path: str = "") -> None:
        """Apply that source from now on, and wait for health, as the Kustomization that we ship says.

        `path` is the part of it, that of the Kustomization when empty.
        """
        made = shipped("Kustomization")
        # What fails for other reasons than ours, on a busy machine, is tried again soon.
        spec = {**made["spec"], "sourceRef": {"kind": "GitRepository", "name": name}, "retryInterval": "5s"}
        spec["path"] = path or spec["path"]
        self.site.send("POST", KUSTOMIZATIONS, {**made, "spec": spec, "metadata": {"name": name}})

    def kustomization(self, name: str) -> dict[str, Any] | None:
        """The object as the controller left it."""
        return self.site.get(f"{KUSTOMIZATIONS}/{name}")

    def forget(self, name: str) -> None:
        """Stop applying the source; what was applied goes with it."""
        for path in (f"{KUSTOMIZATIONS}/{name}", f"{SOURCES}/{name}"):
            if self.site.get(path) is not None:
                self.site.send("DELETE", path)
        self.site.eventually(lambda: self.kustomization(name) is None, "the Kustomization is gone")


@contextmanager
def flux(site: Site, program: Path) -> Iterator[Flux]:
    """Start the controller on a site."""
    apply(
        site.access,
        [*DEFINITIONS, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}],
    )
    artifacts: dict[str, bytes] = {}
    with answering(lambda path, _: (200 if path in artifacts else 404, artifacts.get(path, b""))) as url:
        command: list[str | Path] = [
            program,
            "--watch-all-namespaces",
            "--log-level=info",
            f"--metrics-addr=127.0.0.1:{free_port()}",
            f"--health-addr=127.0.0.1:{free_port()}",
        ]
        environment = {
            "KUBECONFIG": str(site.access.kubeconfig("admin")),
            "RUNTIME_NAMESPACE": NAMESPACE,
            "HOME": str(site.folder),
            "PATH": "/usr/bin:/bin",
        }
        with site.run(command, "kustomize-controller", **environment) as running:
            yield Flux(site, artifacts, url)
        site.programs.remove(running)


def _archive(files: Mapping[str, str]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for path, text in sorted(files.items()):
            entry = tarfile.TarInfo(path)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(out.getvalue(), mtime=0)
