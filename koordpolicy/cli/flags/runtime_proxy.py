"""The flags of `koordpolicy runtime-proxy`."""

import argparse
from pathlib import Path

from koordpolicy.cli.command import Usage
from koordpolicy.cli.flags.process import LOG_FORMATS
from koordpolicy.model.protocol import SKIP_HOOK_SERVER

_EPILOG = "exit code: 0 stopped when told to, 1 failed, 2 could not start"


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen",
        metavar="PATH",
        type=Path,
        default=Path("/var/run/koord-runtimeproxy/runtimeproxy.sock"),
        help="the Unix socket for the kubelet's --container-runtime-endpoint (/var/run/koord-runtimeproxy/runtimeproxy.sock)",
    )
    parser.add_argument(
        "--runtime",
        metavar="PATH",
        type=Path,
        default=Path("/var/run/containerd/containerd.sock"),
        help="the Unix socket of the runtime, which speaks CRI v1 (/var/run/containerd/containerd.sock)",
    )
    parser.add_argument(
        "--hooks",
        metavar="DIR",
        type=Path,
        default=Path("/etc/runtime/hookserver.d"),
        help="where hook servers announce themselves, a JSON file each; asked in order of file name "
        "(/etc/runtime/hookserver.d)",
    )
    parser.add_argument(
        "--records",
        metavar="DIR",
        type=Path,
        help="keep there what is known of pods and containers, so that a restarted proxy knows it; environments stand in it, and a "
        "reboot should empty it (`records` beside the socket of --listen)",
    )
    parser.add_argument(
        "--hook-timeout",
        metavar="DURATION",
        default="5s",
        help="what a hook server may take, within what the kubelet grants; then its failure policy holds (5s)",
    )
    parser.add_argument(
        "--skip-label",
        metavar="KEY=VALUE",
        default=f"{SKIP_HOOK_SERVER}=true",
        help=f"hooks are not asked about pods with this label, such as the hook server's own ({SKIP_HOOK_SERVER}=true)",
    )
    parser.add_argument("--log-format", choices=LOG_FORMATS, default="text", help="of the log (text)")
    parser.add_argument("--verbose", action="store_true", help="log more")


USAGE = Usage(_add, _EPILOG)
"""What `koordpolicy runtime-proxy` takes."""
