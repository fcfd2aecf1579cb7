"""A slow, plain interpreter of the DPU instruction set: the oracle the C++ engine is tested with.

In: instructions as written (`Insn`, labels resolved) and a WRAM image. Out: registers, flags,
memories and cycles. Everything is Python integers, one instruction after the other, with the plain
timing rule: one issue a cycle, a tasklet again 11 cycles later, one first-in-first-out DMA engine.
It shares nothing with the engine but `Insn` and the parameters: semantics are written from public
descriptions (UPMEM SDK manual, pages 201 and 210; upmem/qemu target/dpu; upmem/llvm-project
DPUInstrInfo.td).
"""

from __future__ import annotations

from upmem_sim.decoding import decode
from upmem_sim.interpreter_ops import HANDLERS, IRAM_INSNS
from upmem_sim.interpreter_state import Fault, Machine, Thread, Timing
from upmem_sim.params import FRACTION, DpuParams
from upmem_sim.program import Program

__all__ = ["Fault", "Interpreter", "Timing"]


class Interpreter(Machine):
    """One DPU. Load with the constructor, `run()`, then look at the public attributes."""

    @classmethod
    def of(cls, program: Program, params: DpuParams | None = None) -> Interpreter:
        """Loaded with the words of a program, decoded one by one."""
        mram = b"\0" * program.mram_start + program.mram
        insns = [decode(int(word)) for word in program.words]
        machine = cls(insns, program.wram, mram, params)
        for thread, (low, size) in zip(machine.threads, program.stacks, strict=False):
            thread.stack = range(low, low + size + 1)
        return machine

    def run(self, max_cycles: int | None = None) -> int:
        """Boot tasklet 0 and run until every tasklet has stopped; gives the cycles taken.

        Raises Fault; TimeoutError after `max_cycles`.
        """
        self.threads[0].run = True
        while any(t.run for t in self.threads):
            thread = self._pick()
            if thread is None:  # nothing issues until the first of them is ready
                self.cycle = -(-min(t.ready for t in self.threads if t.run) // FRACTION)
            else:
                self._issue(thread)
            if max_cycles is not None and self.cycle > max_cycles:
                raise TimeoutError(f"still running after {max_cycles} cycles")
        return self.cycle

    def _pick(self) -> Thread | None:
        """Round robin: the first tasklet after the last one issued that may issue now."""
        after = self._last + 1
        for thread in self.threads[after:] + self.threads[:after]:
            if thread.run and thread.ready <= self.cycle * FRACTION:
                return thread
        return None

    def _issue(self, thread: Thread) -> None:
        self._last = thread.index
        thread.ready = (self.cycle + self.timing.issue_distance) * FRACTION
        if thread.pc >= len(self.insns):
            raise self.fault(thread, "pc-range", "no instruction here")
        insn = self.insns[thread.pc]
        base = insn.op.split(".")[0]
        handler = HANDLERS.get(base)
        if handler is None:
            raise NotImplementedError(f"instruction {insn.op!r}")
        thread.pc = handler(self, thread, insn, base) % IRAM_INSNS
        thread.issued += 1
        self.instructions += 1
        self.cycle += 1
