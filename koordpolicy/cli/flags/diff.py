"""The flags of `koordpolicy diff`."""

import argparse

from koordpolicy.cli.command import DIFFERENT, GAVE_UP, Usage
from koordpolicy.cli.flags.moment import add_moment
from koordpolicy.cli.flags.workload import add_course, add_workload


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "old",
        metavar="OLD",
        help="a revision as Git names it (main, HEAD~1, a tag), or a directory; `A...B` compares B with what it "
        "left A at, as a pull request does",
    )
    parser.add_argument(
        "new",
        metavar="NEW",
        nargs="?",
        help="the same; the working tree when it is left out",
    )
    parser.add_argument(
        "-p",
        "--policies",
        action="append",
        default=[],
        metavar="PATH",
        help="where the policies stand in the repository; may be repeated (default: .)",
    )
    parser.add_argument(
        "-c",
        "--cluster",
        metavar="FILE",
        help="a file of `koordpolicy snapshot`, or what `kubectl get nodes,pods -A -o json|yaml` gives (which has"
        " no usage): ask both revisions about its nodes and pods",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=("text", "json", "markdown"),
        default="text",
        help="format of the result; markdown, for `koordpolicy comment`, tells of a revision that does not compile, too",
    )
    parser.add_argument(
        "--exit-code",
        action="store_true",
        help=f"exit with {DIFFERENT} when the revisions differ, with {GAVE_UP} when that could not be told",
    )
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="simulate both revisions on the same days, and tell what that changes: by --nodes and --pods, by --generate, else the"
        " nodes and pods of --cluster, else `--generate 20`",
    )
    add_workload(parser)
    add_course(parser, "--simulate")
    add_moment(parser, " and at which examples take place")


USAGE = Usage(
    _add,
    f"exit code: 0 well, {DIFFERENT} different and {GAVE_UP} gave up (both with --exit-code), 2 could not run, 130 interrupted"
    " (Ctrl-C, SIGTERM): with --simulate after what is known, which says how far it came",
    compiles=True,
)
