"""What a DPU and its tasklets are to the interpreter: registers, memories, the plain timing rule.

Used by `interpreter_ops.py`, which says what instructions do to it, and by `interpreter.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from upmem_sim.decoding import decode
from upmem_sim.interpreter_alu import CONDITION, M32, Seen
from upmem_sim.isa import UNITS, Insn
from upmem_sim.params import FRACTION, DpuParams

SPECIAL = {"zero": 0, "one": 1, "lneg": M32, "mneg": 1 << 31}
ID_SCALE = {"id": 1, "id2": 2, "id4": 4, "id8": 8}


class Fault(Exception):
    """The program broke a rule; kinds are those of `SimFault`."""

    def __init__(self, kind: str, tasklet: int, pc: int, message: str) -> None:
        super().__init__(f"{kind} fault: tasklet {tasklet} pc {pc}: {message}")
        self.kind, self.tasklet, self.pc = kind, tasklet, pc


@dataclass(frozen=True, slots=True)
class Timing:
    """Cycles; DMA parts in units of 1 / FRACTION cycle.

    A transfer starts when the engine is free, occupies it for occupancy + occupancy_per_byte, and
    its tasklet may issue again latency + per_byte after the start. In the last refresh_window of
    each refresh_period (0: never) the engine stands still. No penalties.
    """

    issue_distance: int
    read_latency: int
    write_latency: int
    per_byte: int
    occupancy: int
    occupancy_per_byte: int
    refresh_period: int
    refresh_window: int

    @classmethod
    def of(cls, params: DpuParams) -> Timing:
        """The plain rules with the numbers of `params`."""
        p = params.resolved()
        return cls(
            p["issue_distance_cycles"],
            p["dma_read_latency_cycles"],
            p["dma_write_latency_cycles"],
            p["dma_cycles_per_byte"],
            p["dma_occupancy_cycles"],
            p["dma_occupancy_cycles_per_byte"],
            p["refresh_period_cycles"] * FRACTION,
            p["refresh_window_cycles"] * FRACTION,
        )

    def after(self, start: int, work: int) -> int:
        """When `work` that begins at `start` is done: stretch by stretch between refreshes."""
        now, left = start, work
        while self.refresh_period:
            closing = now - now % self.refresh_period + self.refresh_period - self.refresh_window
            if now < closing:
                if left <= closing - now:
                    break
                left -= closing - now
            now = closing + self.refresh_window
        return now + left


@dataclass(slots=True)
class Thread:
    """State of one tasklet. `ready` is when it may issue again, in cycles / FRACTION."""

    index: int
    regs: list[int] = field(default_factory=lambda: [0] * 24)
    zf: int = 0
    cf: int = 0
    pc: int = 0
    run: bool = False
    ready: int = 0
    issued: int = 0
    stack: range | None = None  # of its stack pointer, None if that is not known


class Machine:
    """One DPU: its state, and what instructions read and write."""

    def __init__(
        self,
        insns: Sequence[Insn],
        wram: bytes = b"",
        mram: bytes = b"",
        params: DpuParams | None = None,
    ) -> None:
        params = params or DpuParams()
        self.insns = list(insns)
        self.wram = bytearray(wram.ljust(params.wram_bytes, b"\0"))
        self.mram = bytearray(mram.ljust(params.mram_bytes, b"\0"))
        self.atomic = [0] * 256
        self.threads = [Thread(i) for i in range(params.tasklets)]
        self.timing = Timing.of(params)
        self.units = {name: int(getattr(params, name)) for name in UNITS}
        self.cycle = 0
        self.instructions = 0
        self.engine_free = 0
        self.counter_mode, self.counter_value, self.counter_start = 1, 0, 0
        self._last = params.tasklets - 1

    def fault(self, t: Thread, kind: str, message: str) -> Fault:
        return Fault(kind, t.index, t.pc, message)

    def counter(self) -> int:
        """The 36-bit counter behind `time`: cycles or instructions since it was last set."""
        now = {1: self.cycle, 2: self.instructions}.get(self.counter_mode, self.counter_start)
        return (self.counter_value + now - self.counter_start) & ((1 << 36) - 1)

    def configure_counter(self, setting: int) -> None:
        """Bit 0 resets; bits 1-2: 0 keep, 1 count cycles, 2 count instructions, 3 stop."""
        self.counter_value = 0 if setting & 1 else self.counter()
        self.counter_mode = (setting >> 1 & 3) or self.counter_mode
        self.counter_start = {1: self.cycle, 2: self.instructions}.get(self.counter_mode, 0)

    def load_code(self, start: int, image: bytes) -> None:
        """`ldmai`: decode instructions of 8 bytes each into IRAM from index `start`."""
        for i in range(0, len(image), 8):
            while len(self.insns) <= start + i // 8:
                self.insns.append(Insn("nop"))
            self.insns[start + i // 8] = decode(int.from_bytes(image[i : i + 8], "little"))

    # ---- operands and results

    def get(self, t: Thread, arg: object) -> int:
        """Unsigned 32-bit value of a register name or an immediate."""
        if isinstance(arg, int):
            return arg & M32
        name = str(arg)
        if name[0] == "r":
            return t.regs[int(name[1:])]
        return SPECIAL[name] if name in SPECIAL else ID_SCALE[name] * t.index

    def get_pair(self, t: Thread, arg: object) -> tuple[int, int]:
        """(even register = high word, odd register = low word)."""
        n = int(str(arg)[1:])
        return t.regs[n], t.regs[n + 1]

    def put_pair(self, t: Thread, arg: object, even: int, odd: int) -> None:
        n = int(str(arg)[1:])
        t.regs[n], t.regs[n + 1] = even & M32, odd & M32

    def put(self, t: Thread, insn: Insn, value: int) -> None:
        """Write a 32-bit result to the destination: register, `zero`, or extended to a pair."""
        dest = str(insn.args[0])
        if insn.op.endswith((".s", ".u")):
            high = M32 if insn.op.endswith(".s") and value >> 31 else 0
            self.put_pair(t, dest, high, value)
        elif dest != "zero":
            if dest == "r22" and t.stack and t.regs[22] in t.stack and value & M32 not in t.stack:
                raise self.fault(t, "stack-overflow", f"stack pointer {value & M32:#x}")
            t.regs[int(dest[1:])] = value & M32

    def finish(self, t: Thread, insn: Insn, seen: Seen, write: bool = True) -> int:
        """Condition, destination (unless written already), next pc. Flags are the caller's."""
        holds = insn.cc is not None and CONDITION[insn.cc](seen)
        if write:
            is_set = insn.cc is not None and insn.target is None
            self.put(t, insn, int(holds) if is_set else seen.x)
        if holds and insn.target is not None:
            return int(insn.target)  # type: ignore[arg-type]
        return t.pc + 1
