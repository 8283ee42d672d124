"""Who signed a commit, and whether that is somebody who may."""

import asyncio
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from koordpolicy.source.git.program import Git, GitFailed
from koordpolicy.source.git.trouble import SyncError, scrubbed

_KEY_FILES: Final = (".asc", ".gpg", ".pgp", ".key")
_OWN_FILES: Final = ("pubring.kbx", "pubring.gpg")
_WORDS: Final = {
    "N": "is not signed",
    "B": "has a bad signature: it is not what was signed",
    "U": "is signed by none of the permitted signers",
    "X": "has a signature that has expired",
    "Y": "is signed with a key that has expired",
    "R": "is signed with a key that was revoked",
    "E": "is signed by none of the permitted signers",
}
"""What `git log --format=%G?` answers, but for "G", which alone is good."""


@dataclass(frozen=True, slots=True)
class Signers:
    """Who may sign.

    `ssh` is a file of allowed signers as ssh-keygen reads it. `gpg` is a directory of exported public keys
    (`*.asc`, `*.gpg`), or a GnuPG home: whoever's key is in it may sign. A kind that is not given is refused.
    """

    ssh: Path | None = None
    gpg: Path | None = None


class Verifier:
    """Verifies commits in a store; keeps its keyring in `home`, a directory of its own."""

    def __init__(self, signers: Signers, environment: Mapping[str, str], home: Path, seconds: float) -> None:
        self._signers = signers
        self._environment = {**environment, "GNUPGHOME": str(home), "LC_ALL": "C"}
        self._home = home
        self._seconds = seconds
        self._imported: object = None

    async def verify(self, git_directory: Path, commit: str) -> str:
        """Who signed the commit; raises `SyncError` unless a permitted signer did."""
        settings = {"gpg.x509.program": "false", "gpg.minTrustLevel": "undefined"}
        ssh, gpg = self._signers.ssh, self._signers.gpg
        if ssh is not None and not os.access(ssh, os.R_OK):
            raise SyncError("SignersMissing", f"the allowed signers `{ssh}` cannot be read")
        settings["gpg.ssh.allowedSignersFile"] = str(ssh.absolute() if ssh is not None else os.devnull)
        if gpg is None:
            settings |= {"gpg.program": "false", "gpg.openpgp.program": "false"}
        else:
            settings |= {"gpg.program": "gpg", "gpg.openpgp.program": "gpg"}
            await self._import(gpg)
        git = Git(environment=self._environment, settings=settings)
        try:
            said = await git.run(
                f"--git-dir={git_directory}", "log", "-1", "--no-show-signature", "--format=%G?%x00%GS", commit, "--",
                seconds=self._seconds,
            )  # fmt: skip
        except GitFailed as error:
            raise SyncError(
                "SignatureUnknown", f"commit {commit} cannot be verified: {scrubbed(error.said)}"
            ) from error
        code, _, signer = said.strip("\n").partition("\0")
        if code != "G":
            words = _WORDS.get(code, "has a signature that cannot be checked")
            raise SyncError("SignatureInvalid", f"commit {commit} {words}")
        return signer

    async def _import(self, directory: Path) -> None:
        """Make a keyring of what is in the directory, unless that is as it was."""
        files, stamp = await asyncio.to_thread(_key_files, directory)
        if stamp == self._imported:
            return
        gpg = Git(environment=self._environment, program="gpg")
        try:
            await asyncio.to_thread(_fresh_home, self._home)
            if not files:
                exported = self._home / "exported"
                await gpg.run(
                    "--batch", "--quiet", "--no-permission-warning", "--lock-never", "--homedir", str(directory),
                    "--output", str(exported), "--export",
                    seconds=self._seconds,
                )  # fmt: skip
                files = [exported]
            await gpg.run("--batch", "--quiet", "--import", *map(str, files), seconds=self._seconds)
        except (GitFailed, OSError) as error:
            why = scrubbed(error.said) if isinstance(error, GitFailed) else str(error.strerror)
            raise SyncError(
                "SignersMissing", f"the keys in `{directory}` cannot be read: {why or error}"
            ) from error
        self._imported = stamp


def _key_files(directory: Path) -> tuple[list[Path], object]:
    """The files with exported keys, none where the directory is a home of GnuPG; and what changes when they do."""
    try:
        entries = sorted(directory.iterdir())
    except OSError as error:
        raise SyncError(
            "SignersMissing", f"the keys in `{directory}` cannot be read: {error.strerror}"
        ) from error
    own = [entry for entry in entries if entry.name in _OWN_FILES]
    files = (
        [] if own else [one for one in entries if one.suffix in _KEY_FILES and not one.name.startswith(".")]
    )
    if not own and not files:
        raise SyncError("SignersMissing", f"there is no key (*.asc, *.gpg) in `{directory}`")
    looked = [(one, one.stat()) for one in own or files]
    return files, [(str(one), now.st_ino, now.st_mtime_ns, now.st_size) for one, now in looked]


def _fresh_home(home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700, parents=True)
    # The directory that was named is the list of those who may; nothing else says whom to trust.
    (home / "gpg.conf").write_text("trust-model always\nno-auto-key-retrieve\nno-autostart\n")
