"""A linked DPU program: what the linker makes, the ELF file holds, and a `Dpu` loads."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from upmem_sim.isa import OP_INDEX, OPS, SPECIAL, UNIT_OF, USE_IMM

IRAM_BASE = 0x8000_0000
MRAM_BASE = 0x0800_0000
ATOMIC_BASE = 0xF000_0000
IRAM_INSN_BYTES = 8  # an instruction in the ELF file and in link addresses (48 bits count)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A name in the link map.

    address  link address: IRAM from 0x80000000 (8 bytes an instruction), MRAM from 0x08000000,
             WRAM from 0, atomic bits from 0xF0000000; the number itself for absolute symbols
    size     bytes
    section  output section (".text", ".data", ".data.__sys_host", ".mram", ...), or "*ABS*"
    """

    name: str
    address: int
    size: int
    section: str


@dataclass(frozen=True, eq=False)
class Program:
    """A program ready to load; two programs are equal only if they are the same object.

    words       uint64[n]: encoded instructions, 48 bits each
    rows        ROW[n]: the same instructions as the engine wants them
    wram        initial WRAM from address 0 (zeroed variables included)
    mram        initial MRAM from offset `mram_start`
    symbols     name -> Symbol
    nr_tasklets tasklets that start
    lines       per instruction: (C file, line) or None
    mram_start  MRAM offset in bytes of the first initialised byte (variables without initial
                value come first and keep what MRAM held)
    """

    words: NDArray[np.uint64]
    rows: NDArray[np.void]
    wram: bytes
    mram: bytes
    symbols: dict[str, Symbol]
    nr_tasklets: int
    lines: list[tuple[str, int] | None] = field(default_factory=list)
    mram_start: int = 0

    @property
    def frames(self) -> list[int]:
        """Bytes of stack that each function with a frame takes, in program order: what it subtracts
        from the stack pointer r22 when it is entered."""
        rows = self.rows
        entered = (rows["op"] == OP_INDEX["add"]) & (rows["rd"] == 22) & (rows["ra"] == 22)
        return [-int(n) for n in rows["imm"][entered & (rows["rb"] == USE_IMM)] if n < 0]

    @property
    def wram_used(self) -> int:
        """Bytes of WRAM with the stacks of all tasklets, up to where the heap begins."""
        heap = self.symbols.get("__sys_heap_pointer_reset")
        return max(len(self.wram), heap.address if heap is not None else 0)

    @property
    def mram_used(self) -> int:
        """Bytes of MRAM from its start to the last initialised one."""
        return self.mram_start + len(self.mram)

    @property
    def stacks(self) -> list[tuple[int, int]]:
        """(lowest address, bytes) of the stack of each tasklet, none if the program does not say or
        does not keep a stack pointer in r22: take it from the linker's table, and then write it
        only as compilers do (`keeps_stack` in core/code.cc)."""
        symbols = self.symbols
        written = np.flatnonzero(self.rows["rd"] == 22)
        rows, before = self.rows[written], self.rows[np.maximum(written - 1, 0)]
        op, ra, immediate = rows["op"], rows["ra"], rows["rb"] == USE_IMM
        load, add = op == OP_INDEX["ld"], op == OP_INDEX["add"]
        table = load & (ra == SPECIAL["id8"])
        moves = (add | (op == OP_INDEX["sub"])) & (ra == 22)
        frames = add & immediate & (ra >= 14) & (ra < 22)
        copies = (op == OP_INDEX["or"]) & immediate & (rows["imm"] == 0) & (written > 0)
        copies &= (before["rd"] == ra) & (before["ra"] == 22) & (ra != 22)
        kept = load | ((rows["flags"] == 0) & (moves | frames | copies))
        bases = [symbols.get(f"__sys_stack_thread_{t}") for t in range(self.nr_tasklets)]
        sizes = [symbols.get(f"STACK_SIZE_TASKLET_{t}") for t in range(self.nr_tasklets)]
        if not table.any() or not kept.all() or None in bases or None in sizes:
            return []
        return [(b.address, s.address) for b, s in zip(bases, sizes, strict=True) if b and s]

    @property
    def units(self) -> tuple[str, ...]:
        """Parameters of `DpuParams` that must give a core the units that its instructions are of;
        empty for a program that real DPUs can run."""
        used = {OPS[op] for op in np.unique(self.rows["op"]).tolist() if op < len(OPS)}
        return tuple(sorted({UNIT_OF[name] for name in used & UNIT_OF.keys()}))

    @property
    def host_symbols(self) -> dict[str, Symbol]:
        """Symbols a host may read and write: `__host` variables in WRAM, and MRAM."""
        visible = (".data.__sys_host", ".dpu_host", ".mram", ".mram.noinit")
        return {name: s for name, s in self.symbols.items() if s.section in visible}
