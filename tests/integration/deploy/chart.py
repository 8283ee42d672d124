"""The chart of `deploy/chart`, as helm renders it, and the folders of `deploy/`, as kubectl does."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec.yaml

from tests.conftest import REPOSITORY
from tests.parts.table import find

Key: TypeAlias = tuple[str, str, str]
Object: TypeAlias = dict[str, Any]

CHART: Final = REPOSITORY / "deploy" / "chart"
VALUES: Final = {file.stem: file for file in sorted((Path(__file__).parent / "values").glob("*.yaml"))}
"""Sets of values by name, each a way to install."""

_OF_HELM: Final = ("app.kubernetes.io/managed-by", "app.kubernetes.io/version", "helm.sh/chart")


def helm(*words: str | Path, kubeconfig: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Helm's own program; the caller looks at how it ended."""
    environment = {"HOME": "/nonexistent", "PATH": "/usr/bin:/bin", "HELM_CACHE_HOME": "/tmp"}  # noqa: S108
    if kubeconfig is not None:
        environment["KUBECONFIG"] = str(kubeconfig)
    return subprocess.run(
        [find("helm").path, *words], capture_output=True, text=True, timeout=120, check=False, env=environment
    )


def rendered(*words: str | Path) -> list[Object]:
    """The objects that helm makes of the chart with these arguments, in the release's namespace `default`."""
    done = helm("template", "koordpolicy", CHART, "--kube-version=1.36.0", *words)
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def kustomized(folder: str) -> list[Object]:
    """The objects that kustomize makes of a folder of `deploy/`."""
    done = subprocess.run(
        [find("kubectl").path, "kustomize", REPOSITORY / "deploy" / folder],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return documents(done.stdout)


def documents(text: str) -> list[Object]:
    """The objects of a stream of YAML; libyaml reads it, since definitions are long."""
    return [one for part in text.split("\n---\n") if (one := msgspec.yaml.decode(part))]


def by_key(objects: Iterable[Object]) -> Mapping[Key, Object]:
    """Objects by kind, namespace and name; no two are the same."""
    found: dict[Key, Object] = {}
    for one in objects:
        metadata = one["metadata"]
        key = (one["kind"], metadata.get("namespace", ""), metadata["name"])
        assert key not in found, key
        found[key] = one
    return found


def without_helms_labels(one: Object) -> Object:
    """An object without the labels that the chart adds to each."""
    labels = {
        name: value for name, value in one["metadata"].get("labels", {}).items() if name not in _OF_HELM
    }
    metadata = {name: value for name, value in one["metadata"].items() if name != "labels"}
    return {**one, "metadata": {**metadata, "labels": labels}}


def workloads(objects: Iterable[Object]) -> Sequence[Object]:
    """Deployments and DaemonSets."""
    return [one for one in objects if one["kind"] in {"Deployment", "DaemonSet"}]
