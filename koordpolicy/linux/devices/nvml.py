"""NVIDIA's management library (NVML) of a node's GPUs, loaded from where their driver has put it.

Only what an agent needs of it is known here, by the names and structures of nvml.h.
"""

import ctypes
import errno
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from koordpolicy.linux.errors import KernelFileError, NoSuchFile

LIBRARY: Final = "libnvidia-ml.so.1"

_DONE, _NOT_SUPPORTED, _NOT_FOUND, _TOO_SMALL, _TIMED_OUT = 0, 3, 6, 7, 10
_XID: Final = 0x8
"""nvmlEventTypeXidCriticalError."""
_TEXT: Final = 96
_MOST_PROCESSES: Final = 4096
_MOST_EVENTS: Final = 256
_ATTEMPTS: Final = 3
_UNKNOWN_MEMORY: Final = 2**64 - 1

_T = TypeVar("_T", bound=ctypes.Structure)


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Pci(ctypes.Structure):
    _fields_ = (
        ("legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("identity", ctypes.c_uint),
        ("subsystem", ctypes.c_uint),
        ("address", ctypes.c_char * 32),
    )


class _Process(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute", ctypes.c_uint),
    )


class _Sample(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("time", ctypes.c_ulonglong),
        ("cores", ctypes.c_uint),
        ("memory", ctypes.c_uint),
        ("encoder", ctypes.c_uint),
        ("decoder", ctypes.c_uint),
    )


class _Event(ctypes.Structure):
    _fields_ = (
        ("device", ctypes.c_void_p),
        ("type", ctypes.c_ulonglong),
        ("data", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute", ctypes.c_uint),
    )


@dataclass(frozen=True, slots=True)
class GPUFigures:
    """What the library says of one GPU. `memory` and `used` in bytes, `busy` in percent, None where it does not tell.

    `address` is on the PCI bus, in small letters. `processes` are percent of cores and bytes, by PID as the node counts.
    """

    uuid: str
    minor: int
    model: str
    memory: int
    used: int
    address: str
    busy: int | None = None
    processes: Mapping[int, tuple[int, int]] = field(default_factory=dict)


class NvidiaLibrary:
    """The library, begun. One thread at a time. Every method raises `KernelFileError`, told by the library's name.

    Raises `NoSuchFile` where there is no such library: a node without NVIDIA's driver.
    """

    def __init__(self, library: str = LIBRARY) -> None:
        self.name = library
        try:
            self._library = ctypes.CDLL(library)
        except OSError as error:
            problem = str(error).removeprefix(f"{library}: ")
            if os.strerror(errno.ENOENT) in problem:
                raise NoSuchFile(library, "there is no such library") from error
            raise KernelFileError(library, problem) from error
        self._seen: dict[int, int] = {}
        self._events = ctypes.c_void_p()
        self._listens: set[str] = set()
        self.silent: set[str] = set()
        """UUIDs of those that tell of no errors."""
        self._call("nvmlInit_v2")

    def close(self) -> None:
        """Be done with it."""
        if self._events.value is not None:
            self._library.nvmlEventSetFree(self._events)
            self._events = ctypes.c_void_p()
        self._library.nvmlShutdown()

    def driver(self) -> str:
        """The version of the driver."""
        return self._text("nvmlSystemGetDriverVersion")

    def count(self) -> int:
        """How many GPUs there are."""
        found = ctypes.c_uint()
        self._call("nvmlDeviceGetCount_v2", ctypes.byref(found))
        return found.value

    def figures(self, index: int) -> GPUFigures:
        """What there is to say of one GPU, by its index from 0."""
        device = self._device(index)
        memory, pci, minor = _Memory(), _Pci(), ctypes.c_uint()
        uuid = self._text("nvmlDeviceGetUUID", device)
        self._call("nvmlDeviceGetMinorNumber", device, ctypes.byref(minor))
        self._call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory))
        self._call("nvmlDeviceGetPciInfo_v3", device, ctypes.byref(pci))
        address = pci.legacy or pci.address
        return GPUFigures(
            uuid,
            minor.value,
            self._text("nvmlDeviceGetName", device),
            memory.total,
            memory.used,
            address.decode(errors="replace").lower(),
            self._busy(device),
            self._processes(index, device),
        )

    def errors(self) -> Sequence[tuple[str, int]]:
        """The errors that GPUs had since the last call: a UUID ("" for all of them), and NVIDIA's number (Xid)."""
        if self._events.value is None:
            self._call("nvmlEventSetCreate", ctypes.byref(self._events))
        for index in range(self.count()):
            with suppress(KernelFileError):  # one that is lost has told of it already
                self._listen(index)
        found = []
        for _ in range(_MOST_EVENTS):
            event = _Event()
            result = self._result("nvmlEventSetWait_v2", self._events, ctypes.byref(event), ctypes.c_uint(0))
            if result == _TIMED_OUT:
                break
            if result != _DONE:
                raise self._error("nvmlEventSetWait_v2", result)
            if event.type == _XID:
                found.append((self._uuid_of(event.device), int(event.data)))
        return found

    def _listen(self, index: int) -> None:
        device = self._device(index)
        uuid = self._text("nvmlDeviceGetUUID", device)
        if uuid in self._listens or uuid in self.silent:
            return
        result = self._result("nvmlDeviceRegisterEvents", device, ctypes.c_ulonglong(_XID), self._events)
        if result not in (_DONE, _NOT_SUPPORTED):
            raise self._error("nvmlDeviceRegisterEvents", result)
        (self._listens if result == _DONE else self.silent).add(uuid)

    def _uuid_of(self, device: int | None) -> str:
        try:
            return "" if not device else self._text("nvmlDeviceGetUUID", ctypes.c_void_p(device))
        except KernelFileError:
            return ""

    def _device(self, index: int) -> ctypes.c_void_p:
        device = ctypes.c_void_p()
        self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(device))
        return device

    def _busy(self, device: ctypes.c_void_p) -> int | None:
        found = _Utilization()
        result = self._result("nvmlDeviceGetUtilizationRates", device, ctypes.byref(found))
        return int(found.gpu) if result == _DONE else None

    def _processes(self, index: int, device: ctypes.c_void_p) -> dict[int, tuple[int, int]]:
        """Of those that hold memory of the GPU; one that has not worked lately has used none of its cores."""
        name = "nvmlDeviceGetComputeRunningProcesses_v3"
        held = self._list(lambda count, listed: self._result(name, device, count, listed), _Process)
        cores = self._cores(index, device) if held else {}
        return {
            one.pid: (cores.get(one.pid, 0), 0 if one.memory == _UNKNOWN_MEMORY else int(one.memory))
            for one in held
        }

    def _cores(self, index: int, device: ctypes.c_void_p) -> dict[int, int]:
        name, since = "nvmlDeviceGetProcessUtilization", ctypes.c_ulonglong(self._seen.get(index, 0))
        found = self._list(lambda count, listed: self._result(name, device, listed, count, since), _Sample)
        self._seen[index] = max((one.time for one in found), default=self._seen.get(index, 0))
        latest = sorted(found, key=lambda one: int(one.time))
        return {one.pid: int(one.cores) for one in latest}

    def _list(self, ask: Callable[[Any, Any], int], kind: type[_T]) -> list[_T]:
        """A list whose length the library tells by a refusal; none where it does not know such a list."""
        length = 0
        for _ in range(_ATTEMPTS):
            count, listed = ctypes.c_uint(length), (kind * max(length, 1))()
            result = ask(ctypes.byref(count), listed if length else None)
            if result == _DONE:
                return list(listed[: min(count.value, length)])
            if result != _TOO_SMALL:
                return []
            length = min(max(count.value, 1) + 8, _MOST_PROCESSES)
        return []

    def _text(self, name: str, *device: ctypes.c_void_p) -> str:
        text = ctypes.create_string_buffer(_TEXT)
        self._call(name, *device, text, ctypes.c_uint(_TEXT))
        return text.value.decode(errors="replace")

    def _call(self, name: str, *arguments: Any) -> None:
        result = self._result(name, *arguments)
        if result != _DONE:
            raise self._error(name, result)

    def _result(self, name: str, *arguments: Any) -> int:
        try:
            return int(getattr(self._library, name)(*arguments))
        except AttributeError:
            raise KernelFileError(self.name, f"has no {name}: the driver is too old") from None

    def _error(self, name: str, result: int) -> KernelFileError:
        try:
            said = self._library.nvmlErrorString
            said.restype = ctypes.c_char_p
            words = (said(ctypes.c_int(result)) or b"").decode(errors="replace")
        except AttributeError:
            words = ""
        return KernelFileError(self.name, f"{name}: {words or f'error {result}'}", result)
