"""Certificates for the loopback address, made by the `openssl` program."""

import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Pair:
    """A certificate that is its own authority, and its key, both as PEM."""

    pem: bytes
    key: bytes


def certificate(serial: int, subject: str = "") -> Pair:
    """A new pair, of a subject as openssl writes it (`/O=group/CN=name`); skips by name where there is no openssl."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("no `openssl` on this machine (Debian: openssl)")
    with tempfile.TemporaryDirectory() as folder:
        pem, key = Path(folder) / "pem", Path(folder) / "key"
        request = (
            f"req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -set_serial {serial}"
        )
        names = ["-subj", subject or f"/CN=test {serial}", "-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-out", str(pem), "-keyout", str(key)]
        subprocess.run([program, *request.split(), *names, *files], check=True, capture_output=True)
        return Pair(pem.read_bytes(), key.read_bytes())
