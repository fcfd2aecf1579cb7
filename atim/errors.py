"""Every error that `atim` raises on purpose, in one tree.

    AtimError
    |- ScheduleError     this candidate breaks a hardware or schedule rule (expected in a search)
    |- UnsupportedError  this program can't be compiled for DPUs
    |- ToolchainError    a compiler or linker is missing or failed
    |- HardwareError     a run on real DPUs failed
    |- MismatchError     a kernel ran and gave wrong numbers
    |- RecordError       a record store can't be read or written
    '- UsageError        the caller asked for something that makes no sense

Messages are one line and say what was asked, the limit and the value. A fault of the simulated
machine is `upmem_sim.SimFault`, which is not part of this tree.
"""

from __future__ import annotations

__all__ = [
    "AtimError",
    "HardwareError",
    "MismatchError",
    "RecordError",
    "ScheduleError",
    "ToolchainError",
    "UnsupportedError",
    "UsageError",
]


class AtimError(Exception):
    """Root of the tree; `str()` is always a single line."""

    def __str__(self) -> str:
        return " ".join(super().__str__().split())


class ScheduleError(AtimError):
    """The candidate is illegal (a limit of the DPU is exceeded, or TVM refuses the schedule)."""


class UnsupportedError(AtimError):
    """The program holds something that can't be placed on DPUs."""


class ToolchainError(AtimError):
    """A compiler or linker is missing, or failed on the sources given to it."""


class HardwareError(AtimError):
    """A program built with the SDK did not run, or did not run to its end."""


class MismatchError(AtimError):
    """The outputs differ from the reference."""


class RecordError(AtimError):
    """The record store is damaged, locked or unwritable."""


class UsageError(AtimError, ValueError):
    """A bad argument: unknown name, impossible size, unsupported type."""
