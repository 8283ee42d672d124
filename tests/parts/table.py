"""Every part, in the order in which they are prepared, and the way from a name to a program."""

from collections.abc import Mapping

from tests.parts import cache
from tests.parts.cache import Tell, tell
from tests.parts.debian import DebianPackages, Installed
from tests.parts.finding import CannotMake, Found, Missing, Part, new_enough, version_of
from tests.parts.golang import GoModule
from tests.parts.maven import MavenProject

_KUBERNETES = GoModule(
    "kubernetes",
    {
        **{
            name: f"k8s.io/kubernetes/cmd/{name}"
            for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
        },
        # Made for the same Kubernetes: by one list of versions what they share with it is compiled once.
        "kwok": "sigs.k8s.io/kwok/cmd/kwok",
        "kustomize-controller": "github.com/fluxcd/kustomize-controller",
        "helm": "helm.sh/helm/v3/cmd/helm",
    },
    {
        "k8s.io/component-base/version.gitVersion": "v1.36.3",
        "k8s.io/component-base/version.gitMajor": "1",
        "k8s.io/component-base/version.gitMinor": "36",
        "sigs.k8s.io/kwok/pkg/consts.Version": "v0.8.0",
        "helm.sh/helm/v3/internal/version.version": "v3.21.4",
    },
)
_ARGO = GoModule("gitops-agent", {"gitops-agent": "github.com/argoproj/gitops-engine/agent"})
_CONTAINERD = GoModule(
    "containerd",
    {
        "containerd-2": "github.com/containerd/containerd/v2/cmd/containerd",
        "containerd-shim-runc-v2": "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
    },
    {"github.com/containerd/containerd/v2/version.Version": "2.4.2"},
)
_DESCHEDULER = GoModule("descheduler", {"descheduler-pass": "."})
_KOORD_MANAGER = GoModule(
    "koord-manager", {"koord-manager": "github.com/koordinator-sh/koordinator/cmd/koord-manager"}
)
_COLLECTOR = GoModule("otel-collector", {"otel-collector": "."})
_CEL = GoModule("cel", {"cel-go": "."})
_KUBERNETES_CEL = GoModule(
    "kubernetes-cel",
    {"kubernetes-cel": "."},
    borrows="cel",
    instead={"cel.dev/cel-go": "github.com/google/cel-go"},
)

_NEW = (1, 34)
"""The oldest Kubernetes whose programs the tests are known to run with."""

PARTS: Mapping[str, Part] = {
    part.name: part
    for part in (
        Part("git", "sources in Git", ("--version",), (2, 30), Installed("git")),
        Part("chromium", "a browser for the console", ("--version",), (120,), Installed("chromium")),
        Part(
            "etcd",
            "what the API server keeps its objects in",
            ("--version",),
            (3, 4),
            DebianPackages(("etcd-server",), "usr/bin/etcd"),
        ),
        Part(
            "lua",
            "health scripts",
            ("-v",),
            (5, 1),
            DebianPackages(("lua5.4", "liblua5.4-0", "libreadline8"), "usr/bin/lua5.4"),
            names=("lua5.4", "lua5.3", "lua5.1", "lua"),
        ),
        Part("kube-apiserver", "a real API server", ("--version",), _NEW, _KUBERNETES),
        Part(
            "kube-controller-manager",
            "garbage collection, namespaces, Deployments, disruption budgets",
            ("--version",),
            _NEW,
            _KUBERNETES,
        ),
        Part("kube-scheduler", "the peer of the scheduler", ("--version",), _NEW, _KUBERNETES),
        Part("kubectl", "what users type", ("version", "--client"), (1, 30), _KUBERNETES),
        Part("kwok", "kubelets", ("--version",), (0, 7), _KUBERNETES),
        Part("kustomize-controller", "Flux applies policies", ("--help",), (), _KUBERNETES),
        Part("helm", "installs the chart", ("version", "--short"), (3, 14), _KUBERNETES),
        Part(
            "prometheus",
            "scrapes processes, fires alerts",
            ("--version",),
            (2, 40),
            DebianPackages(("prometheus",), "usr/bin/prometheus"),
        ),
        Part("otel-collector", "takes the spans of pods", ("--version",), (), _COLLECTOR),
        Part(
            "containerd",
            "runs the image's processes, with runc",
            ("--version",),
            (1, 6),
            DebianPackages(("containerd", "runc", "libseccomp2"), "usr/bin/containerd"),
            names=(),
        ),
        Part("containerd-2", "a runtime with NRI", ("--version",), (2, 0), _CONTAINERD),
        Part("containerd-shim-runc-v2", "starts its containers", ("-v",), (2, 0), _CONTAINERD),
        Part(
            "busybox",
            "what the containers of tests run",
            ("--help",),
            (1, 30),
            DebianPackages(("busybox-static",), "bin/busybox"),
            names=(),
        ),
        Part(
            "hadoop-yarn",
            "ResourceManager and NodeManager, which share batch resources",
            ("version",),
            (3, 3),
            MavenProject("hadoop-yarn"),
        ),
        Part(
            "descheduler-pass",
            "the peer of the descheduler: one pass of Kubernetes' own",
            ("--version",),
            (),
            _DESCHEDULER,
            of_benchmarks=True,
        ),
        Part(
            "koord-manager",
            "the peer of the manager's webhook: Koordinator's own",
            ("--help",),
            (),
            _KOORD_MANAGER,
            of_benchmarks=True,
            ends_with=2,
        ),
        Part("cel-go", "a referee of expressions", ("--version",), (), _CEL),
        Part(
            "kubernetes-cel", "a referee of the functions of Kubernetes", ("--version",), (), _KUBERNETES_CEL
        ),
        Part("gitops-agent", "Argo CD's engine applies policies", ("--help",), (), _ARGO),
    )
}


def there(part: Part) -> Found | None:
    """The part if the machine has it or the cache holds it; nothing is made. Raises CannotMake when it does not run."""
    for path, origin in part.candidates():
        try:
            version = version_of(path, part.probe, part.ends_with)
        except CannotMake:
            continue
        if new_enough(version, part.at_least):
            return Found(path, origin, version)
    made = part.maker.made(part.name)
    return (
        None if made is None else Found(made, part.maker.says(), version_of(made, part.probe, part.ends_with))
    )


def find(name: str, told: Tell = tell) -> Found:
    """The part of that name, made if need be. Raises Missing with the reason where it cannot be had.

    A failure holds for a quarter of an hour, so that a suite without network fails once and not in every test.
    """
    part = PARTS[name]
    note = cache.directory() / name
    try:
        if found := there(part):
            return found
    except CannotMake as error:
        raise Missing(name, str(error)) from error
    if reason := cache.failure(note):
        raise Missing(name, reason)
    return prepare(name, told)


def prepare(name: str, told: Tell = tell) -> Found:
    """The part of that name, made if need be, whatever failed before. Raises Missing."""
    part = PARTS[name]
    note = cache.directory() / name
    try:
        if found := there(part):
            return found
        part.maker.make(name, told)
        cache.note_failure(note, "")
        found = there(part)
        assert found is not None
        return found
    except CannotMake as error:
        cache.note_failure(note, str(error))
        raise Missing(name, str(error)) from error
