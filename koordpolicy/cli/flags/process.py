"""The flags that all long-running commands share."""

import argparse
import os
from pathlib import Path

from koordpolicy.cli.flags.cluster import add_cluster_flags
from koordpolicy.cli.flags.max_cost import add_max_cost
from koordpolicy.cli.flags.repository import add_repository_flags
from koordpolicy.cli.flags.serving import add_serving_flags

EPILOG = "exit code: 0 stopped when told to, 1 failed, 2 could not start"
LOG_FORMATS = ("text", "json")
_NAMESPACE = "koordpolicy-system"
_TRIAL_CPU = 60.0
_TRIAL_MEMORY = "1024Mi"
_UNREADY_AFTER = 30.0
_SAMPLING = 0.1


def add_process_flags(
    parser: argparse.ArgumentParser,
    *,
    elects: bool = True,
    port: int = 8080,
    traces: bool = True,
    unless: str = "",
) -> None:
    """Declare them; `elects` says whether replicas elect a leader, `port` where status is served by default, `traces` whether
    the process makes spans. `unless` is said of that place where something else may be the default.
    """
    policies = parser.add_argument_group("policies").add_mutually_exclusive_group()
    policies.add_argument(
        "-p",
        "--policies",
        metavar="PATH",
        default="",
        help="directory, git-sync link or volume to follow (default: the built-in pack alone)",
    )
    policies.add_argument(
        "--policies-from-cluster", action="store_true", help="follow the policy objects in the cluster"
    )
    policies.add_argument(
        "--policies-repo", metavar="URL", default="", help="follow a Git repository (HTTPS, SSH, or a path)"
    )
    repository = parser.add_argument_group("the repository of --policies-repo")
    repository.add_argument(
        "--policies-dir",
        metavar="DIR",
        default="",
        help="keep it there, a directory of its own (default: `repository` in --state-dir)",
    )
    add_repository_flags(repository, "policies-")
    repository.add_argument(
        "--policies-webhook-secret-file",
        metavar="FILE",
        type=Path,
        help="serve POST /webhook, which syncs at once, for those who know this secret",
    )
    parser.add_argument(
        "--no-policy-tests", action="store_true", help="take revisions whose policy tests fail"
    )
    parser.add_argument(
        "--policy-trial-cpu",
        metavar="SECONDS",
        type=float,
        default=_TRIAL_CPU,
        help="CPU time in which a revision must compile, pass its tests and be evaluated, in a process of its own"
        f" beforehand; 0 takes revisions untried (default: {_TRIAL_CPU:g})",
    )
    parser.add_argument(
        "--policy-trial-memory",
        metavar="QUANTITY",
        default=_TRIAL_MEMORY,
        help="memory that it may take for that, such as 512Mi; never more than 80 %% of what the container has left"
        f" (default: {_TRIAL_MEMORY})",
    )
    add_max_cost(parser)
    parser.add_argument(
        "--state-dir", metavar="DIR", default="", help="keep the last good policies there, for restarts"
    )
    cluster = parser.add_argument_group("cluster")
    add_cluster_flags(cluster)
    cluster.add_argument(
        "--namespace", metavar="NAME", default=_NAMESPACE, help=f"namespace of koordpolicy ({_NAMESPACE})"
    )
    if elects:
        cluster.add_argument(
            "--leader-elect",
            action=argparse.BooleanOptionalAction,
            default=True,
            help="work only while leading, when there are several replicas (default: yes)",
        )
    add_serving_flags(parser.add_argument_group("serving"), f"127.0.0.1:{port}", unless=unless)
    shown = parser.add_argument_group("observing")
    shown.add_argument(
        "--unready-after",
        metavar="SECONDS",
        type=float,
        default=_UNREADY_AFTER,
        help="/readyz says so when the API server has not answered, or has refused us, for so long"
        f" (default: {_UNREADY_AFTER:g})",
    )
    shown.add_argument("--log-format", choices=LOG_FORMATS, default="text", help="of the log (text)")
    shown.add_argument("--verbose", action="store_true", help="log more")
    shown.add_argument(
        "--decision-log", metavar="FILE", default="", help="write decisions there as JSON lines; - is stdout"
    )
    shown.add_argument(
        "--decision-log-every",
        metavar="N",
        type=int,
        default=100,
        help="write each N-th decision of a name (default: 100)",
    )
    shown.add_argument(
        "--decision-log-size",
        metavar="SIZE",
        default="100Mi",
        help="put the file aside as FILE.1 before it grows larger, in place of the one before; 0 lets it grow (100Mi)",
    )
    if traces:
        _add_tracing(shown)
    shown.add_argument(
        "--instance",
        metavar="NAME",
        default=os.uname().nodename,
        help="what tells this replica from others (default: the host's name, which is the pod's)",
    )


def _add_tracing(shown: argparse._ArgumentGroup) -> None:
    shown.add_argument(
        "--tracing-endpoint",
        metavar="URL",
        default="",
        help="send spans of pods there, by OTLP over HTTP, such as http://collector:4318 (default: no traces)",
    )
    shown.add_argument(
        "--tracing-sampling",
        metavar="PART",
        type=float,
        default=_SAMPLING,
        help=f"of pods, from 0 to 1, that are traced (default: {_SAMPLING:g}); a pod with koordpolicy.io/traceparent is"
        " traced as that says",
    )
