"""What can go wrong while a repository is synced, in words that are fit for everybody's eyes.

Git's own words name addresses, proxies and sometimes passwords. They are sorted into reasons here; what no
reason fits is shown with everything that looks like an address left out.
"""

import re
from typing import Final

from koordpolicy.source.git.program import GitFailed, GitMissing, GitTookTooLong


class SyncError(Exception):
    """A sync that did not come to its end. `reason` is one CamelCase word, the message a phrase for people."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


_KNOWN: Final = (
    (r"couldn't find remote ref|no such ref was fetched", "RefNotFound", "has no `{ref}` (any more)"),
    (
        r"not our ref|unadvertised object|Server does not allow request for",
        "RefNotFound",
        "does not give the commit {ref}",
    ),
    (r"mismatched algorithms", "ObjectFormat", "names its objects by another hash"),
    (r"Host key verification failed", "HostKeyUnknown", "has a host key that is not among the known hosts"),
    (
        (
            r"Authentication failed|could not read (Username|Password)|Permission denied|terminal prompts disabled"
            r"|Invalid username or|returned error: 40[13]|access denied"
        ),
        "AccessDenied",
        "does not let us in; check credentials and rights",
    ),
    (
        r"[Rr]epository .*not found|returned error: 404|does not appear to be a git repository|not exported",
        "RepositoryNotFound",
        "is no repository, or none that may be seen with these credentials",
    ),
    (
        r"dubious ownership",
        "NotTrusted",
        "belongs to another user, and git's safe.directory does not name it",
    ),
    (
        r"Could not resolve|Name or service not known|name resolution",
        "Unreachable",
        "cannot be reached: no such host",
    ),
    (r"Connection refused", "Unreachable", "cannot be reached: the connection is refused"),
    (r"timed out|too slow|Operation too slow", "Unreachable", "cannot be reached: no answer in time"),
    (
        r"certificate|SSL|TLS|GnuTLS",
        "Unreachable",
        "cannot be reached safely: its certificate is not trusted, or no TLS is spoken",
    ),
    (r"returned error: 429", "Unreachable", "asks for fewer requests (429)"),
    (r"returned error: 5\d\d", "Unreachable", "answers with an error of its own (5xx)"),
    ("No space left|Disk quota exceeded", "DiskFull", "cannot be fetched: the disk is full"),
    (
        r"transport .* not allowed",
        "TransportNotAllowed",
        "leads to an address of a kind that is not permitted",
    ),
    (
        (
            r"Failed to connect|[Cc]onnection (reset|closed)|Couldn't connect|unreachable|hung up|early EOF"
            r"|unexpected disconnect|Empty reply|unable to access|Could not read from remote repository"
        ),
        "Unreachable",
        "cannot be reached",
    ),
)

_MISSING: Final = "there is no program `git`: install Git 2.34 or newer"
_FULL: Final = re.compile("No space left|Disk quota exceeded")
_CORRUPT: Final = re.compile(
    r"not a git repository|bad object|object file .* is empty|loose object .* corrupt|packfile .*(corrupt|cannot be)"
    r"|missing (blob|tree|commit)|unable to read (tree|sha1)|shallow file|invalid shallow|inflate|bad (ref|config|shallow)|index file (corrupt|smaller)"
    r"|Could not read [0-9a-f]{40}|did not send all necessary objects"
)
_ADDRESS: Final = re.compile(
    r"\w[\w+.-]*://\S+|\S+@\S+|\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b|\[?[0-9a-fA-F]*:[0-9a-fA-F:]*:[0-9a-fA-F:]*\]?"
    r"|\b(host|proxy|connect to|lookup)\b[ :]+\S+",
    re.IGNORECASE,
)


def is_corrupt(error: GitFailed) -> bool:
    """Whether Git complains about our own store, which can be made anew."""
    return _CORRUPT.search(error.said) is not None


def at_home(error: GitFailed, directory: str) -> SyncError:
    """Why Git failed in our own store below a directory."""
    if isinstance(error, GitMissing):
        return SyncError("GitMissing", _MISSING)
    if isinstance(error, GitTookTooLong):
        return SyncError("TimedOut", f"work in `{directory}` does not end: {error}")
    if _FULL.search(error.said):
        return SyncError("DiskFull", f"the disk below `{directory}` is full")
    return SyncError("GitFailed", f"git fails in `{directory}`: {scrubbed(error.said) or error}")


def explained(error: GitFailed, what: str, ref: str) -> SyncError:
    """Why Git failed with a repository that is called so in a sentence."""
    if isinstance(error, GitMissing):
        return SyncError("GitMissing", _MISSING)
    if isinstance(error, GitTookTooLong):
        return SyncError("TimedOut", f"{what} gives no answer in time: {error}")
    for pattern, reason, words in _KNOWN:
        if re.search(pattern, error.said):
            return SyncError(reason, f"{what} {words.format(ref=ref)}")
    return SyncError("GitFailed", f"git fails with {what}: {scrubbed(error.said) or error}")


def scrubbed(said: str) -> str:
    """The line of Git's words that says most, without addresses; "" where there is none."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:"))]
    if not lines:
        return ""
    line = (telling or lines)[-1].removeprefix("fatal: ").removeprefix("error: ")
    printable = "".join(one if one.isprintable() else " " for one in line)
    return _ADDRESS.sub("…", printable)[:300]
