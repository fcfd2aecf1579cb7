"""Hardware counters of this thread and those it starts, where the kernel allows them.

Linux's `perf_event_open` (perf_event_open(2)) through ctypes, one file descriptor a counter. Many
machines refuse (containers, virtual machines, perf_event_paranoid): then `Counters.why_not` says
so, and nothing else changes.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = ["HARDWARE", "SOFTWARE", "Counters"]

# name -> (type, config) of perf_event_attr
HARDWARE: Mapping[str, tuple[int, int]] = {
    "cycles": (0, 0),
    "instructions": (0, 1),
    "cache misses": (0, 3),
}
SOFTWARE: Mapping[str, tuple[int, int]] = {"task clock ns": (1, 1), "page faults": (1, 2)}

_CALLS = {"x86_64": 298, "aarch64": 241}  # number of perf_event_open
_ATTR_BYTES = 112  # PERF_ATTR_SIZE_VER5
# bits of the flags word: inherit (threads started later), exclude_kernel, exclude_hv
_FLAGS = (1 << 1) | (1 << 5) | (1 << 6)


@dataclass(frozen=True, slots=True)
class Counters:
    """Open counters by name; why_not: empty, or the reason that there are none."""

    files: Mapping[str, int]
    why_not: str

    @staticmethod
    def open(events: Mapping[str, tuple[int, int]] = HARDWARE) -> Counters:
        """All events, or none and the reason."""
        number = _CALLS.get(platform.machine())
        if number is None or platform.system() != "Linux":
            return Counters({}, f"no counters on {platform.system()} {platform.machine()}")
        call = ctypes.CDLL(None, use_errno=True).syscall
        files: dict[str, int] = {}
        for name, (kind, config) in events.items():
            head = struct.pack("=IIQQQQQ", kind, _ATTR_BYTES, config, 0, 0, 0, _FLAGS)
            attr = ctypes.create_string_buffer(head.ljust(_ATTR_BYTES, b"\0"), _ATTR_BYTES)
            found = call(ctypes.c_long(number), attr, 0, -1, -1, ctypes.c_ulong(0))
            if found < 0:
                reason = os.strerror(ctypes.get_errno())
                for opened in files.values():
                    os.close(opened)
                return Counters({}, f"perf_event_open refuses {name}: {reason}")
            files[name] = int(found)
        return Counters(files, "")

    def of(self, call: Callable[[], object]) -> dict[str, int]:
        """What one call adds to each counter; empty when there are none."""
        before = self._read()
        call()
        return {name: value - before[name] for name, value in self._read().items()}

    def _read(self) -> dict[str, int]:
        return {n: struct.unpack("=Q", os.read(f, 8))[0] for n, f in self.files.items()}

    def close(self) -> None:
        """Give the descriptors back."""
        for opened in self.files.values():
            os.close(opened)
