"""The flags of `koordpolicy agent`."""

import argparse
import os
from pathlib import Path

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.process import EPILOG, add_process_flags

_SOURCES = ("kubelet", "apiserver")


def add_node_flags(parser: argparse.ArgumentParser) -> None:
    """Where the node's own trees are: what `explain node` takes as well."""
    node = parser.add_argument_group("node")
    node.add_argument(
        "--node",
        metavar="NAME",
        default=os.environ.get("NODE_NAME", ""),
        help="the node that this agent is on (default: NODE_NAME, as the DaemonSet sets it)",
    )
    node.add_argument(
        "--cgroup-root",
        metavar="DIR",
        type=Path,
        help="where the node's /sys/fs/cgroup is mounted here (default: /sys/fs/cgroup)",
    )
    node.add_argument(
        "--root",
        metavar="DIR",
        type=Path,
        help="a directory with the node's /proc and /sys below it (default: /); --cgroup-root goes first",
    )
    node.add_argument(
        "--kubelet-dir",
        metavar="DIR",
        type=Path,
        help="where the node's /var/lib/kubelet is mounted here: a kubelet that places CPUs by itself says there which "
        "(default: /var/lib/kubelet)",
    )
    node.add_argument(
        "--kubelet-cgroup-root",
        metavar="GROUP",
        type=_group,
        default="",
        help="the kubelet's --cgroup-root, where it is not the hierarchy's own",
    )


def _group(said: str) -> str:
    """A group below the hierarchy's own, without slashes around it. Raises ArgumentTypeError."""
    group = said.strip("/")
    if any(part in {"", ".", ".."} for part in group.split("/")) and group:
        raise argparse.ArgumentTypeError(
            f"{said!r} is no group below /sys/fs/cgroup: a path as /custom/root has no empty, `.` or `..` part"
        )
    return group


def _add(parser: argparse.ArgumentParser) -> None:
    add_process_flags(parser, elects=False, port=9316)
    policies = parser.add_argument_group("policies of an agent, in place of those above")
    policies.add_argument(
        "--policies-from-manager",
        action="store_true",
        help="follow what the manager publishes for agents: the part of its policies that nodes need",
    )
    policies.add_argument(
        "--policies-from-node-slo",
        action="store_true",
        help="obey the NodeSLO object of the node, as a koord-manager writes it",
    )
    add_node_flags(parser)
    parser.add_argument(
        "--terway-dir",
        metavar="DIR",
        type=Path,
        default=Path("/var/lib/terway/qos"),
        help="what Terway reads of the node, where policy keeps classes apart by it (/var/lib/terway/qos)",
    )
    devices = parser.add_argument_group("devices")
    devices.add_argument(
        "--device-infos",
        metavar="DIR",
        type=Path,
        default=Path("/var/run/koordlet/xpu-device-infos"),
        help="where vendors' daemons put files about accelerators (/var/run/koordlet/xpu-device-infos)",
    )
    devices.add_argument(
        "--nvml",
        metavar="LIBRARY",
        default="libnvidia-ml.so.1",
        help="NVIDIA's library of GPUs, by name or path (libnvidia-ml.so.1)",
    )
    pods = parser.add_argument_group("pods")
    pods.add_argument(
        "--pods-from",
        choices=_SOURCES,
        default="kubelet",
        help="who tells of the node's pods; the other one does while this one is silent (kubelet)",
    )
    pods.add_argument(
        "--kubelet-url",
        metavar="URL",
        default="",
        help="where the node's kubelet is, such as https://127.0.0.1:10250; without it only the API server is asked",
    )
    pods.add_argument(
        "--kubelet-token-file",
        metavar="FILE",
        type=Path,
        help="the token for it, read at each request (default: the pod's service account, if there is one)",
    )
    pods.add_argument(
        "--kubelet-ca-file",
        metavar="FILE",
        type=Path,
        help="the authority that signed its certificate (default: the system's)",
    )
    pods.add_argument(
        "--kubelet-server-name",
        metavar="NAME",
        default="",
        help="the name that its certificate shows where it is not the one in --kubelet-url",
    )
    pods.add_argument(
        "--kubelet-insecure-tls",
        action="store_true",
        help="take any certificate of it, where kubelets sign their own; whoever listens there then hears our token",
    )
    hooks = parser.add_argument_group("hooks, where containers start")
    hooks.add_argument(
        "--hook-socket",
        metavar="PATH",
        type=Path,
        help="answer runtime proxies at this Unix socket, such as /var/run/koordlet/koordlet.sock (default: nobody asks; what runs is "
        "kept as policies say all the same)",
    )
    hooks.add_argument(
        "--hook-socket-on-node",
        metavar="PATH",
        type=Path,
        help="where that socket is on the node, if the agent's container has it in another place",
    )
    hooks.add_argument(
        "--hook-dir",
        metavar="DIR",
        type=Path,
        default=Path("/etc/runtime/hookserver.d"),
        help="announce it there (/etc/runtime/hookserver.d)",
    )
    hooks.add_argument(
        "--nri-socket",
        metavar="PATH",
        type=Path,
        help="be a plugin of the runtime's NRI at this Unix socket, such as /var/run/nri/nri.sock; in place of a proxy, not beside it",
    )
    modes = parser.add_argument_group("looking first")
    modes.add_argument(
        "--dry-run", action="store_true", help="write nothing to the kernel and evict nobody: plan, and tell"
    )
    modes.add_argument(
        "--once",
        action="store_true",
        help="one round of everything as a dry run: print what it would do, and end",
    )
    modes.add_argument(
        "--doctor",
        action="store_true",
        help="print what this kernel supports, and what policies will not do without the rest; asks no cluster",
    )
    modes.add_argument(
        "--output", choices=("text", "json"), default="text", help="how --once and --doctor print (text)"
    )
    audit = parser.add_argument_group("audit")
    audit.add_argument(
        "--audit-log", metavar="FILE", default="", help="write what is done to the node there as JSON lines"
    )
    audit.add_argument(
        "--audit-size",
        metavar="SIZE",
        default="16Mi",
        help="put the file aside before it grows larger, and keep as much in memory for GET /events, of which `size` "
        "(1 to 2048 events; 256) and `pageToken` of the page before choose a part (16Mi)",
    )


USAGE = Usage(_add, EPILOG)
