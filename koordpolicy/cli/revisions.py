"""Policies of a Git revision, of the working tree, or of a plain directory."""

import asyncio
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from koordpolicy.cli.bundle import told
from koordpolicy.cli.command import CannotRunError
from koordpolicy.diagnostics.render import render
from koordpolicy.graph import Compilation, Compiler, Layer
from koordpolicy.source import Tree, read_tree
from koordpolicy.source.git.program import Git, GitFailed, GitMissing

_SECONDS = 60.0
_MOST_ARGUMENTS = 500
_SUFFIXES = (".yaml", ".yml")
_LINK = "120000"
_SHORT = 12

OWN = "bundle"
"""The layer that a revision's own files make; of one name for both, so that their documents are the same ones."""


class RefusedSideError(CannotRunError):
    """A side has policies that are not taken: `what` says so in a line, `findings` why, as text of several lines."""

    def __init__(self, what: str, findings: str) -> None:
        super().__init__(f"{what}\n\n{findings}")
        self.what = what
        self.findings = findings


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: its name as given, its commit ("" where there is none), its files by path."""

    name: str
    commit: str
    files: dict[str, str]

    @property
    def title(self) -> str:
        """`main (0123456789ab)`; the name alone where it says the commit itself, or where there is none."""
        short = self.commit[:_SHORT]
        return f"{self.name} ({short})" if short and not self.commit.startswith(self.name) else self.name


def sides(old: str, new: str | None, paths: Sequence[str]) -> tuple[Side, Side]:
    """Both sides of a comparison, one of which may be empty. Raises `CannotRunError`, `RefusedSideError` for files.

    `old` and `new` are revisions as Git takes them, or directories. `A..B` names both at once, `A...B` takes what
    `B` has since it left `A`. Without a second one it is the working tree. `paths` narrow what is read of a
    revision or of the working tree.
    """
    before, after = _sides(old, new, paths)
    if not before.files and not after.files:
        where = " below " + ", ".join(f"`{path}`" for path in paths) if paths else ""
        raise CannotRunError(
            f"there is no policy file (*.yaml, *.yml){where} in {before.title} or {after.title}"
        )
    return before, after


def _sides(old: str, new: str | None, paths: Sequence[str]) -> tuple[Side, Side]:
    if new is None and "..." in old:
        left, _, right = old.partition("...")
        left, right = left or "HEAD", right or "HEAD"
        base = _Repository.here().base(left, right)
        return _side(base, paths, f"{left} as {right} left it"), _side(right, paths)
    if new is None and ".." in old and not Path(old).is_dir():
        left, _, right = old.partition("..")
        return _side(left or "HEAD", paths), _side(right or "HEAD", paths)
    if new is None and Path(old).is_dir():
        raise CannotRunError(f"`{old}` is a directory; name a second one to compare it with")
    return _side(old, paths), _side(new, paths) if new is not None else _working_tree(paths)


def compiled_side(side: Side, compiler: Compiler) -> Compilation:
    """The side's policies; raises `RefusedSideError` with the findings where they do not compile."""
    compilation = compiler.compile(Layer(OWN, side.files))
    if compilation.graph is None:
        raise RefusedSideError(
            f"the policies of {side.title} do not compile",
            render("text", compilation.found, compilation.sources),
        )
    return compilation


def _side(name: str, paths: Sequence[str], said: str = "") -> Side:
    if Path(name).is_dir():
        repository = _Repository.found()
        if os.sep not in name and repository is not None and repository.commit(name):
            raise CannotRunError(
                f"`{name}` is a directory and a revision; write `./{name}` for the one, `refs/heads/{name}` for the other"
            )
        return Side(name, "", _readable(read_tree([name]), name))
    repository = _Repository.here()
    commit = repository.commit(name)
    if not commit:
        raise CannotRunError(
            f"`{name}` is neither a revision of the repository nor a directory; "
            "in CI, fetch the branch first (a shallow clone has one commit)"
        )
    return Side(said or name, commit, repository.files(commit, paths))


def _working_tree(paths: Sequence[str]) -> Side:
    return Side("the working tree", "", _readable(read_tree(list(paths) or ["."]), "the working tree"))


def _readable(tree: Tree, name: str, prefix: str = "") -> dict[str, str]:
    """The files of a tree that was read without fault, the prefix taken from their names."""
    if tree.found.has_errors:
        why = "\n".join(told(one).replace(prefix, "") if prefix else told(one) for one in tree.found)
        raise RefusedSideError(f"the files of {name} cannot be read", why)
    return {file.removeprefix(prefix): text for file, text in tree.files.items()}


class _Repository:
    """The Git repository state the current directory."""

    def __init__(self, root: str, prefix: str) -> None:
        self._root = root
        self._prefix = prefix

    @classmethod
    def here(cls) -> "_Repository":
        """The repository; raises `CannotRunError` where there is none."""
        found = cls.found()
        if found is None:
            raise CannotRunError("this is no Git repository; name two directories, or go to the repository")
        return found

    @classmethod
    def found(cls) -> "_Repository | None":
        """The repository, None where there is none."""
        try:
            root, prefix = _git("rev-parse", "--show-toplevel", "--show-prefix").split("\n")[:2]
        except GitFailed:
            return None
        return cls(root, prefix)

    def commit(self, revision: str) -> str:
        """The commit that a revision names; "" where it names none."""
        try:
            return self._run(
                "rev-parse", "--verify", "--quiet", "--end-of-options", revision + "^{commit}"
            ).strip()
        except GitFailed:
            return ""

    def base(self, left: str, right: str) -> str:
        """The commit from which two revisions went apart."""
        for name in (left, right):
            if not self.commit(name):
                raise CannotRunError(f"`{name}` is no revision of the repository")
        try:
            return self._run("merge-base", self.commit(left), self.commit(right)).strip()
        except GitFailed:
            raise CannotRunError(
                f"`{left}` and `{right}` have no common commit here; fetch more of their history"
            ) from None

    def files(self, commit: str, paths: Sequence[str]) -> dict[str, str]:
        """The policy files of a commit below the paths, by their paths from the root of the repository."""
        wanted = [os.path.normpath(self._prefix + path) for path in (paths or ["."])]
        try:
            listed = self._run("ls-tree", "-r", "-z", "--full-tree", commit, "--", *_unless_root(wanted))
            entries = [line.partition("\t") for line in listed.split("\0") if line]
            names = [name for entry, _, name in entries if _is_wanted(entry, name)]
            with tempfile.TemporaryDirectory(prefix="koordpolicy-") as folder:
                tree = f"{folder}/tree/"
                Path(tree).mkdir()
                index = {"GIT_INDEX_FILE": f"{folder}/index"}
                self._run("read-tree", commit, **index)
                for at in range(0, len(names), _MOST_ARGUMENTS):
                    some = names[at : at + _MOST_ARGUMENTS]
                    self._run("checkout-index", "--quiet", f"--prefix={tree}", "--", *some, **index)
                return _readable(read_tree([tree]), commit[:_SHORT], tree)
        except GitFailed as error:
            raise CannotRunError(f"git: {error.said.strip() or error}") from None

    def _run(self, *arguments: str, **environment: str) -> str:
        return _git("-C", self._root, *arguments, **environment)


def _unless_root(paths: list[str]) -> list[str]:
    return [] if "." in paths else paths


def _is_wanted(entry: str, name: str) -> bool:
    """Whether an entry of a tree is a policy file, or a link that may lead to some."""
    hidden = any(part.startswith(".") for part in name.split("/"))
    return not hidden and (name.endswith(_SUFFIXES) or entry.startswith(_LINK))


def _git(*arguments: str, **environment: str) -> str:
    """What Git says; raises `GitFailed`, and `CannotRunError` where there is no Git."""
    kept = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", **environment}
    try:
        return asyncio.run(Git(environment=kept).run(*arguments, seconds=_SECONDS))
    except GitMissing:
        raise CannotRunError("there is no program `git`; install it, or compare two directories") from None
