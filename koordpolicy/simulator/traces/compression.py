"""Files of workloads as text, compressed or not: their first bytes say which, whatever their names end with."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, TextIO, cast

from koordpolicy.simulator.workload import WorkloadError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

MAX_BYTES: Final = 1 << 30
"""Of a file, unpacked."""

COMPRESSED: Final = (".gz", ".bz2", ".xz")
"""How names of files end that are unpacked on the way."""

_UNPACKED: Final[tuple[tuple[bytes, Callable[[BinaryIO], BinaryIO]], ...]] = (
    (b"\x1f\x8b", lambda file: cast("BinaryIO", gzip.GzipFile(fileobj=file))),
    (b"BZh", lambda file: cast("BinaryIO", bz2.BZ2File(file))),
    (b"\xfd7zXZ\x00", lambda file: cast("BinaryIO", lzma.LZMAFile(file))),  # noqa: SIM115  # `opened` closes it
)
_NOT_UNPACKED: Final = (
    (b"\x28\xb5\x2f\xfd", "compressed by Zstandard", "zstd -d"),
    (b"\x04\x22\x4d\x18", "compressed by LZ4", "lz4 -d"),
    (b"PK\x03\x04", "a ZIP archive", "unzip"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "7z x"),
)
_TAR: Final = 257, b"ustar"
"""Where an archive of tar says so, and how."""
_MOST_MAGIC: Final = 512
_AT_ONCE: Final = 1 << 16


def name_of(file: Path) -> Path:
    """The file's name without what says that it is compressed."""
    return file.with_suffix("") if file.suffix.lower() in COMPRESSED else file


@contextmanager
def opened(file: Path, newline: str | None = None) -> Iterator[TextIO]:
    """The text of a file, unpacked; `newline` as for `open`.

    Raises WorkloadError for what cannot be read or unpacked, has more than `MAX_BYTES`, or is no text, while it is read, too.
    """
    try:
        with (
            file.open("rb") as raw,
            _unpacked(file, raw) as unpacked,
            io.BufferedReader(_Limited(file, unpacked), _AT_ONCE) as limited,
            io.TextIOWrapper(limited, encoding="utf-8-sig", newline=newline) as text,
        ):
            yield text
    except UnicodeDecodeError as error:
        raise WorkloadError(f"{file}: not UTF-8 at byte {error.start}") from None
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise WorkloadError(f"{file}: it cannot be unpacked, get it anew: {error}") from None
    except OSError as error:
        raise WorkloadError(f"{file}: {error.strerror or error}") from None


def _unpacked(file: Path, raw: io.BufferedReader) -> BinaryIO:
    """What a file holds that may be compressed. Raises WorkloadError for what cannot be unpacked, with what does."""
    begin = raw.peek(_MOST_MAGIC)[:_MOST_MAGIC]
    for magic, what, remedy in _NOT_UNPACKED:
        if begin.startswith(magic):
            raise WorkloadError(
                f"{file}: it is {what}, which is not unpacked here; unpack it first: `{remedy} {file}`"
            )
    unpack = next((unpack for magic, unpack in _UNPACKED if begin.startswith(magic)), None)
    plain = cast("BinaryIO", raw) if unpack is None else unpack(raw)
    at, magic = _TAR
    within = io.BufferedReader(cast("io.RawIOBase", plain), _MOST_MAGIC) if unpack is not None else raw
    if within.peek(_MOST_MAGIC)[at : at + len(magic)] == magic:
        raise WorkloadError(
            f"{file}: it is an archive of files; unpack it first: `tar -xf {file}`, and name one of them"
        )
    return cast("BinaryIO", within)


class _Limited(io.RawIOBase):
    """A stream that ends in a WorkloadError where it has too much: a few MB can become more than memory holds."""

    def __init__(self, file: Path, stream: BinaryIO) -> None:
        self._file = file
        self._stream = stream
        self._left = MAX_BYTES

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """As of any stream. Raises WorkloadError."""
        room = memoryview(buffer).cast("B")
        part = self._stream.read(len(room))
        self._left -= len(part)
        if self._left < 0:
            raise WorkloadError(f"{self._file}: larger than {MAX_BYTES >> 20} MiB")
        room[: len(part)] = part
        return len(part)
