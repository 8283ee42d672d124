"""The flags of `koordpolicy explain`."""

import argparse

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.cluster import add_cluster_flags
from koordpolicy.cli.flags.facts import add_given
from koordpolicy.cli.flags.moment import add_moment
from koordpolicy.cli.flags.paths import add_paths

_AGENT = "http://127.0.0.1:9316"
_SHOWN = 5
"""Best nodes that are shown unless said otherwise."""


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        help="a diagnostic code (KP204), a decision (Overcommit/batch.cpu), what a document is about "
        "(Overcommit/batch), a kind, a fact (node.usage.prod.cpu), a function, `pod`, `move`, `migration`, `gang`, `quota` or `node` with the name of one, "
        "or `node` with --agent or --record",
    )
    _add_pod(parser)
    _add_node(parser)
    add_paths(parser, option=True)
    add_given(parser)
    add_moment(parser)
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="format of the explanation"
    )


def _add_pod(parser: argparse.ArgumentParser) -> None:
    """Declare what only a question about a pod needs."""
    group = parser.add_argument_group(
        "of a cluster",
        "with `pod`, `move`, `migration`, `gang`, `quota` or `node` and its name, or a decision and the name of a node or pod; without a picture, live; with `pod -f FILE` and no"
        " name: what admission makes of the file's pods, and by which rules",
    )
    group.add_argument(
        "name",
        nargs="?",
        metavar="NAME",
        help="the pod (`move`: that is to leave its node or not; `migration`: that is to, or its PodMigrationJob) or gang, with `NAMESPACE/` before it where not `default`, the quota, or the node that is decided about",
    )
    group.add_argument(
        "-n", "--namespace", metavar="NAMESPACE", default="", help="that of NAME, as kubectl takes it"
    )
    group.add_argument("-s", "--snapshot", metavar="FILE", help="a file of `koordpolicy snapshot`")
    group.add_argument(
        "-f",
        "--filename",
        metavar="PATH",
        action="append",
        help="manifests of nodes, pods and whatever else there is; may be repeated; for admission beside `--snapshot`, too",
    )
    group.add_argument(
        "--policies-from-cluster",
        action="store_true",
        help="answer by the policy objects of the cluster (default: by what -p names, else by those objects where"
        " schedulers follow them, else by the directory that they follow where this machine has it with the same content,"
        " else by the built-in pack alone; the answer says by which)",
    )
    add_cluster_flags(group)
    group.add_argument(
        "--top",
        type=int,
        default=_SHOWN,
        metavar="N",
        help=f"how many of the best nodes are shown ({_SHOWN})",
    )


def _add_node(parser: argparse.ArgumentParser) -> None:
    """Declare where a node's kernel files are told of."""
    group = parser.add_argument_group(
        "of a node's kernel",
        "with `node`: every kernel file under policy, its value, the rule and line behind it",
    )
    group.add_argument(
        "--agent",
        metavar="URL",
        nargs="?",
        const=_AGENT,
        default="",
        help=f"ask the node's agent ({_AGENT})",
    )
    group.add_argument(
        "--record",
        metavar="FILE",
        default="",
        help="a saved record, of `koordpolicy agent --once --output json` or `GET /node` of an agent; `-` for the input",
    )


USAGE = Usage(_add, compiles=True)
