"""The flags that say which cluster a command asks."""

from koordpolicy.cli.flags.repository import Flags


def add_cluster_flags(parser: Flags, kubeconfig: Flags | None = None) -> None:
    """Declare them; `kubeconfig` is the group that the first belongs to, where something else may stand in its place."""
    (kubeconfig or parser).add_argument(
        "--kubeconfig",
        metavar="FILE",
        help="how to reach the cluster (default: as kubectl does: KUBECONFIG, ~/.kube/config, the pod's service account)",
    )
    parser.add_argument("--context", metavar="NAME", help="the context of the kubeconfig (default: its own)")
