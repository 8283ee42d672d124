"""Keeps a directory in step with a ref of a repository, in git-sync's layout, for as long as it runs."""

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

from koordpolicy.source.git import address as addresses
from koordpolicy.source.git.environment import GitCredentials, git_for
from koordpolicy.source.git.program import Git, GitFailed
from koordpolicy.source.git.signatures import Signers, Verifier
from koordpolicy.source.git.size import SyncLimits
from koordpolicy.source.git.store import FETCHED, GitStore
from koordpolicy.source.git.trouble import SyncError, at_home, explained, is_corrupt
from koordpolicy.source.place import COMMIT

_REF: Final = re.compile(r"(?!-)(?!.*(\.\.|@\{|//|/\.|\.lock(/|$)|\.$|/$))[^\x00-\x20\x7f~^:?*\[\\]+")
_KEYS: Final = "koordpolicy-keys"


@dataclass(frozen=True, slots=True)
class SyncSettings:
    """What to keep in step with what. Times in seconds.

    `ref` is a branch, a tag, a full name below `refs/`, HEAD, or a whole commit, which is fetched once. `link` is
    relative to `directory` (default: the last element of the repository's address). `depth` 0 fetches all
    history. `paths` limit the trees to parts of the repository. `signers` makes signatures a condition.
    """

    repository: str
    directory: Path
    ref: str = "HEAD"
    link: str = ""
    depth: int = 1
    paths: tuple[str, ...] = ()
    submodules: bool = False
    signers: Signers | None = None
    credentials: GitCredentials = field(default_factory=GitCredentials)
    period: float = 10.0
    longest_wait: float = 300.0
    """Between attempts after failures, before jitter."""
    stale_after: float = 300.0
    """A tree stays for so long after the link leads elsewhere, for readers that are still at it."""
    timeout: float = 120.0
    """Of one command of Git's."""
    limits: SyncLimits = field(default_factory=SyncLimits)
    pause: float = 0.5
    """At least so long from the end of one sync to the next, however often it is triggered."""


class SyncOutcome(StrEnum):
    """What became of an attempt; the words of metrics."""

    SUCCESS = "success"
    NOOP = "noop"
    """There was nothing new."""
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to sync, when it is over. `at` in seconds since 1970."""

    outcome: SyncOutcome
    at: float
    seconds: float
    commit: str
    before: str = ""
    trouble: SyncError | None = None


@dataclass(frozen=True, slots=True)
class SyncState:
    """How things stand. `commit` is what the link leads to, "" where nothing was published (or may not be used).

    `failures` counts those in a row; times in seconds since 1970, 0 for never.
    """

    commit: str = ""
    trouble: SyncError | None = None
    failures: int = 0
    last_attempt: float = 0.0
    last_success: float = 0.0


class GitSync:
    """One repository, one ref, one directory.

    `environment` is what Git may know of the world, `jitter` gives numbers in [0, 1), `clock` the seconds since
    1970. Raises `ValueError` for settings that can never work.
    """

    def __init__(
        self,
        settings: SyncSettings,
        *,
        environment: Mapping[str, str],
        jitter: Callable[[], float],
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.settings = _checked(settings)
        self.address = addresses.parse(settings.repository)
        self.state = SyncState()
        self._git: Git = git_for(self.address, settings.credentials, environment)
        link = Path(settings.link or self.address.name)
        self.store = GitStore(
            self._git, settings.directory, _link(link), settings.timeout, self.settings.paths, settings.limits
        )
        self._verifier = None
        if settings.signers is not None:
            home = self.store.git_directory / _KEYS
            self._verifier = Verifier(settings.signers, self._git.environment or {}, home, settings.timeout)
        self._jitter = jitter
        self._clock = clock
        self._sleep = sleep
        self._one_at_a_time = asyncio.Lock()
        self._triggered = asyncio.Event()
        self._listeners: list[Callable[[Attempt], None]] = []
        self._verified: set[str] = set()

    @property
    def pinned(self) -> bool:
        """Whether the ref is a commit itself, which never changes."""
        return COMMIT.fullmatch(self.settings.ref) is not None

    def trigger(self) -> None:
        """Sync as soon as possible; many triggers are one."""
        self._triggered.set()

    def subscribe(self, listener: Callable[[Attempt], None]) -> Callable[[], None]:
        """Tell of each attempt, on the loop. Gives the way to end it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def close(self) -> None:
        """Let others work on the directory."""
        self.store.close()

    async def run(self, max_failures: int = -1, *, once: bool = False) -> None:
        """Sync for ever, each period and when triggered, or until it succeeds `once`.

        Waits grow longer with failures in a row. Raises the last `SyncError` after more failures in a row than `max_failures`; -1 never gives up.
        """
        try:
            while True:
                with contextlib.suppress(SyncError):
                    await self.sync()
                failures, trouble = self.state.failures, self.state.trouble
                if once and trouble is None:
                    return
                if trouble is not None and 0 <= max_failures < failures:
                    raise trouble
                await self._sleep(self.settings.pause)
                await self._wait(self._interval(failures) - self.settings.pause)
        finally:
            self.close()

    def _interval(self, failures: int) -> float:
        """Seconds to the next attempt: never quite the same, so that a fleet does not come all at once."""
        settings = self.settings
        if failures == 0:
            return settings.period * (0.9 + 0.2 * self._jitter())
        wait = max(settings.period, 1.0) * 2.0 ** min(failures - 1, 32)
        return min(wait, max(settings.longest_wait, settings.period)) * (0.5 + 0.5 * self._jitter())

    async def _wait(self, seconds: float) -> None:
        """Until the time is over, or a trigger comes."""
        waits = [
            asyncio.ensure_future(self._sleep(max(0.0, seconds))),
            asyncio.ensure_future(self._triggered.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    async def sync(self) -> Attempt:
        """Fetch, and publish what is new; raises `SyncError`, with everything as it was before."""
        async with self._one_at_a_time:
            self._triggered.clear()
            began = self._clock()
            try:
                before, commit = await self._sync()
                outcome = SyncOutcome.NOOP if before == commit else SyncOutcome.SUCCESS
                attempt = Attempt(outcome, began, self._clock() - began, commit, before)
                self.state = SyncState(commit, None, 0, began, self._clock())
            except SyncError as error:
                attempt = Attempt(
                    SyncOutcome.ERROR, began, self._clock() - began, self.state.commit, trouble=error
                )
                self.state = replace(
                    self.state, trouble=error, failures=self.state.failures + 1, last_attempt=began
                )
        for listener in tuple(self._listeners):
            listener(attempt)
        if attempt.trouble is not None:
            raise attempt.trouble
        return attempt

    async def _sync(self) -> tuple[str, str]:
        """The commit before and after."""
        try:
            await self.store.open()
            before = self.store.current
            if before and not self.state.commit:
                await self._resume(before)
            commit = before if self.pinned and before == self.settings.ref else await self._fetched()
            await self._verify(commit)
            await self._publish(commit)
            await self.store.collect(self._clock() - self.settings.stale_after)
        except GitFailed as error:
            raise at_home(error, str(self.store.directory)) from error
        except OSError as error:
            message = f"`{self.store.directory}` cannot be used: {error.strerror}"
            raise SyncError("DirectoryUnusable", message) from error
        return before, commit

    async def _resume(self, commit: str) -> None:
        """Take up what an earlier run published: it is good even if the repository cannot be reached now."""
        with contextlib.suppress(SyncError):
            await self._verify(commit)
            self.state = replace(self.state, commit=commit)

    async def _fetched(self) -> str:
        """The commit that the ref names now. A store that turns out to be broken is made anew, once."""
        try:
            return await self._fetch()
        except GitFailed as error:
            trouble = self._explained(error)
            if trouble.reason == "ObjectFormat":
                await self.store.begin_anew("sha256" if "server sha256" in error.said else "sha1")
            elif is_corrupt(error):
                await self.store.begin_anew()
            else:
                raise trouble from error
        try:
            return await self._fetch()
        except GitFailed as error:
            raise self._explained(error) from error

    def _explained(self, error: GitFailed) -> SyncError:
        return explained(error, f"`{self.address.shown}`", self.settings.ref)

    async def _fetch(self) -> str:
        depth = [f"--depth={self.settings.depth}"] if self.settings.depth else []
        try:
            await self.store.fetch(
                "--quiet", "--force", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
                *depth, "--", self.address.url, f"+{self.settings.ref}:{FETCHED}", what=f"`{self.address.shown}`",
            )  # fmt: skip
        except GitFailed as error:
            if not (self.pinned and self._explained(error).reason == "RefNotFound"):
                raise
            # A server that gives tips only: the commit may be below one of them.
            await self.store.fetch(
                "--quiet", "--force", "--no-recurse-submodules", "--no-write-fetch-head", "--",
                self.address.url, "+refs/heads/*:refs/koordpolicy/heads/*", "+refs/tags/*:refs/koordpolicy/tags/*",
                what=f"`{self.address.shown}`",
            )  # fmt: skip
            await self.store.run("update-ref", FETCHED, self.settings.ref)
        try:
            said = await self.store.run("rev-parse", "--quiet", "--verify", f"{FETCHED}^{{commit}}")
        except GitFailed as error:
            if is_corrupt(error):
                raise
            message = f"`{self.settings.ref}` of `{self.address.shown}` names no commit"
            raise SyncError("RefNotFound", message) from error
        return said.strip()

    async def _verify(self, commit: str) -> None:
        if self._verifier is None or commit in self._verified:
            return
        await self._verifier.verify(self.store.git_directory, commit)
        self._verified = {commit}

    async def _publish(self, commit: str) -> None:
        try:
            await self.store.check_out(commit, submodules=self.settings.submodules)
        except GitFailed as error:
            if not is_corrupt(error):
                raise
            await self.store.begin_anew()
            if await self._fetched() != commit:
                raise SyncError("Superseded", "the ref moved on while the store was made anew") from error
            await self.store.check_out(commit, submodules=self.settings.submodules)
        if self.store.current != commit:
            await asyncio.to_thread(self.store.publish, commit)


def _checked(settings: SyncSettings) -> SyncSettings:
    if not _REF.fullmatch(settings.ref):
        raise ValueError(f"`{settings.ref}` is no name of a branch, tag or commit")
    paths = tuple(path.strip("/") for path in settings.paths)
    for path in paths:
        parts = path.split("/")
        if not path or ".." in parts or "." in parts or ".git" in parts or "\n" in path:
            raise ValueError(f"`{path}` is no path within a repository")
    return replace(settings, paths=paths)


def _link(link: Path) -> Path:
    if link.name in {"", "..", ".git", ".worktrees", "tmp-link"} or {".git", ".worktrees"} & set(link.parts):
        raise ValueError(f"`{link}` is no name for the link")
    return link
