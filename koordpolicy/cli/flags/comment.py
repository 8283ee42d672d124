"""The flags of `koordpolicy comment`."""

import argparse
import re
from typing import Final

from koordpolicy.cli.command import Usage

TOKEN: Final = "KOORDPOLICY_COMMENT_TOKEN"  # noqa: S105 - the name of a variable
"""The variable of the environment that holds the token; never a flag, which whoever lists processes would read."""

_NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_NAME: Final = 63


def _add(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file",
        metavar="FILE",
        help="the comment in Markdown, as `koordpolicy diff -o markdown` writes it; `-` is standard input",
    )
    parser.add_argument(
        "--about",
        metavar="NAME",
        type=_name,
        default="diff",
        help="which comment of the merge request: there is one of each name, which the next run edits (default: diff)",
    )


def _name(text: str) -> str:
    """The name of a comment, which stands in the comment itself."""
    if not _NAME.fullmatch(text) or len(text) > _LONGEST_NAME:
        raise argparse.ArgumentTypeError(
            f"`{text}` is no name: it has lower-case letters, digits and `-` between them"
        )
    return text


USAGE = Usage(
    _add,
    "Runs in a job of GitHub Actions (for `pull_request`) or of GitLab CI (for `merge_request_event`), whose variables say which"
    f" merge request is meant. {TOKEN} is the token that writes: GitHub's with `pull-requests: write`, or one of a GitLab project with"
    " the scope `api` and the role Reporter. The comment that it edits is one of the same account that begins with its hidden"
    " mark; comments of others are never touched. exit code: 0 written, or there already, 2 could not run",
)
