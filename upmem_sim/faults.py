"""What the core found wrong, as a debugger would tell it: `SimFault` with one line of words.

In: the fault record and state of a native `Machine`, and the `Program` it ran. Kinds and codes
follow the exceptions page of the UPMEM SDK manual.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from upmem_sim._core import OPS
from upmem_sim.errors import SimFault
from upmem_sim.program import IRAM_BASE, IRAM_INSN_BYTES, Program

FAULT_CODES = {
    0: "breakpoint",
    1: "heap full",
    2: "division by zero",
    3: "assertion failed",
    4: "halt",
    5: "print buffer full",
    6: "profiling started twice",
    7: "profiling stopped without start",
    8: "MRAM access with wrong alignment",
}
_MEMORIES = ("WRAM", "MRAM", "IRAM")


@dataclass(frozen=True, slots=True)
class Place:
    """A fault as the core recorded it, with what is needed to describe it."""

    machine: Any
    program: Program
    params: Any
    tasklet: int
    pc: int
    address: int
    size: int
    other: int
    max_cycles: int

    def source(self, pc: int) -> tuple[str | None, int | None]:
        """C file and line of an instruction, (None, None) where unknown."""
        lines = self.program.lines
        line = lines[pc] if 0 <= pc < len(lines) else None
        return line if line is not None else (None, None)

    def source_or_call(self, tasklet: int, pc: int) -> tuple[str | None, int | None]:
        """The same; of library code, which has no lines, those that it was called from."""
        lined = [line is not None for line in self.program.lines]
        if tasklet < 0 or not any(lined):
            return self.source(pc)
        return self.source(self.machine.lined_caller(tasklet, pc, lined))

    def function(self, pc: int) -> str:
        """ " in NAME", empty if the program does not say."""
        at = IRAM_BASE + pc * IRAM_INSN_BYTES
        symbols = self.program.symbols.values()
        before = [(-s.address, s.name) for s in symbols if s.section == ".text" and s.address <= at]
        return f" in {min(before)[1]}" if before else ""

    def instruction(self) -> str:
        rows = self.program.rows
        op = int(rows[self.pc]["op"]) if 0 <= self.pc < len(rows) else -1
        return OPS[op] if 0 <= op < len(OPS) else "instruction"

    def base(self) -> str:
        """The address register and its value, empty where there is none."""
        rows = self.program.rows
        if not 0 <= self.pc < len(rows) or int(rows[self.pc]["ra"]) >= 24:
            return ""
        ra = int(rows[self.pc]["ra"])
        return f" (r{ra} = {self.machine.tasklet(self.tasklet)['registers'][ra]:#x})"


def _memory(p: Place) -> str:
    return (
        f"{p.instruction()} of {p.size} bytes at {p.address:#x}{p.base()}: "
        f"WRAM has {p.params.wram_bytes} bytes{_hint(p)}"
    )


def _hint(p: Place) -> str:
    return ", an MRAM address used as WRAM" if p.address >> 27 == 1 else ""


def _alignment(p: Place) -> str:
    return (
        f"{p.instruction()} at {p.address:#x}{p.base()}: "
        f"address must be a multiple of {p.size}, remainder {p.address % p.size}"
    )


def _dma_range(p: Place) -> str:
    limit = (p.params.wram_bytes, p.params.mram_bytes, 8 * p.params.iram_instructions)[p.other]
    return (
        f"{p.instruction()} of {p.size} bytes at {_MEMORIES[p.other]} {p.address:#x}: "
        f"{_MEMORIES[p.other]} has {limit} bytes{_hint(p) if p.other == 0 else ''}"
    )


def _dma_alignment(p: Place) -> str:
    return (
        f"{p.instruction()} of {p.size} bytes at {_MEMORIES[p.other]} {p.address:#x}: "
        f"address must be a multiple of 8, remainder {p.address % 8}"
    )


def _dma_length(p: Place) -> str:
    dma = OPS[int(p.program.rows[p.size]["op"])]
    return (
        f"{dma} at pc {p.size} of {p.address} bytes{p.base()}: "
        "the length must be a multiple of 8 from 8 to 2048"
    )


def _thread(p: Place) -> str:
    return f"{p.instruction()} of tasklet {p.address}: limit {p.params.tasklets - 1}"


def _code(p: Place) -> str:
    meaning = FAULT_CODES.get(p.address, "of the program")
    own = p.source(p.pc)[0] is not None
    return f"code {p.address}, {meaning}{'' if own else p.function(p.pc)}"


def _pc_range(p: Place) -> str:
    return f"no instruction at {p.pc}: the program has {p.size}"


def _deadlock(p: Place) -> str:
    waits = []
    for t in range(p.params.tasklets):
        state = p.machine.tasklet(t)
        if not state["booted"] or state["ended"]:
            continue
        pc = state["pc"]
        file, line = p.source_or_call(t, pc)
        place = f" ({file}:{line})" if file is not None else ""
        doing = "spins" if state["running"] else "sleeps"
        waits.append(f"tasklet {t} {doing}{p.function(pc)} at pc {pc}{place}")
    return "nobody is left to wake them: " + "; ".join(waits)


def _cycle_limit(p: Place) -> str:
    return f"not finished after {p.max_cycles} cycles"


def _uninitialised(p: Place) -> str:
    read = f"{p.instruction()} reads WRAM {p.address:#x}"
    if not p.other:
        return f"{read}, which nothing has written"
    return f"{read}, copied from MRAM {p.other:#x}{_within(p, p.other)}, which nothing has written"


def _within(p: Place, address: int) -> str:
    """ " (NAME + OFFSET)" of the MRAM variable an address is in, empty if in none."""
    for s in p.program.symbols.values():
        if s.section.startswith(".mram") and s.address <= address < s.address + s.size:
            return f" ({s.name} + {address - s.address})"
    return ""


def _race(p: Place) -> str:
    return (
        f"{p.instruction()} of {p.size} bytes at WRAM {p.address:#x}: tasklet {p.other} used it "
        "without synchronisation in between, and one of both writes"
    )


def _stack(p: Place) -> str:
    return (
        f"stack pointer r22 becomes {p.address:#x}, limits of this tasklet's stack: "
        f"{p.size:#x} to {p.other:#x}"
    )


# In the order of FaultKind in core/machine.h.
_KINDS: tuple[tuple[str, Callable[[Place], str]], ...] = (
    ("none", lambda p: "no fault"),
    ("memory", _memory),
    ("alignment", _alignment),
    ("dma-range", _dma_range),
    ("dma-alignment", _dma_alignment),
    ("thread", _thread),
    ("fault", _code),
    ("illegal-instruction", lambda p: "not an instruction of the DPU"),
    ("pc-range", _pc_range),
    ("deadlock", _deadlock),
    ("cycle-limit", _cycle_limit),
    ("uninitialised", _uninitialised),
    ("race", _race),
    ("stack-overflow", _stack),
    ("dma-length", _dma_length),
)


def sim_fault(machine: Any, program: Program, params: Any, dpu: int, max_cycles: int) -> SimFault:
    """The exception for the fault that `machine` stopped with."""
    kind, tasklet, pc, address, size, other = machine.fault
    place = Place(machine, program, params, tasklet, pc, address, size, other, max_cycles)
    name, describe = _KINDS[kind]
    file, line = place.source_or_call(tasklet, pc)
    return SimFault(name, dpu, tasklet, pc, file, line, describe(place))
