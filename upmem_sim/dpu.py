"""One DPU: a program, its memories, and runs of it, cycle by cycle.

In: a `Program` and `DpuParams`; the host writes symbols or the memory views. Out: `RunResult` with
each tasklet's cycles split by cause, or a `SimFault`. Timing and its evidence are in `params.py`.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from upmem_sim._core import Code, Exit, Machine
from upmem_sim._core import run as run_machines
from upmem_sim.arguments import array_bytes, instance, item_type, names, whole
from upmem_sim.errors import SimError
from upmem_sim.faults import sim_fault
from upmem_sim.params import FRACTION, DpuParams
from upmem_sim.program import MRAM_BASE, Program, Symbol
from upmem_sim.timeline import SPAN

__all__ = [
    "CHECKS",
    "DEFAULT_MAX_CYCLES",
    "DmaCounters",
    "Dpu",
    "RunResult",
    "TaskletCycles",
    "run_many",
]

DEFAULT_MAX_CYCLES = 10**11
"""Limit of a run unless another is asked for: 286 s of a 350 MHz DPU."""
_MOST_CYCLES = (1 << 62) // FRACTION  # what the core can count

# Bits of what a run records and checks, as WatchBit in core/watch.h.
_PROFILE, _TRACE = 1, 2
CHECKS = {"uninitialised": 4, "races": 8}
"""Names for `Dpu.run(checks=...)`: reads of memory nothing has written, accesses to WRAM by two
tasklets that nothing orders."""

_ALIASES = {"DPU_MRAM_HEAP_POINTER_NAME": "__sys_used_mram_end"}


@dataclass(frozen=True, slots=True)
class TaskletCycles:
    """Where the cycles of a run went for one tasklet; the parts add up to `total`.

    issue     its instructions, one cycle each
    lock      failed attempts at an atomic bit, with the wait until the next attempt
    pipeline  waiting until it may issue again (11 cycles after the last)
    slots     could have issued, but other tasklets had the slots
    dma       waiting for its own transfers
    asleep    stopped until another tasklet resumed it: barrier, semaphore, handshake
    idle      not yet booted, or finished
    """

    instructions: int
    issue: int
    lock: int
    pipeline: int
    slots: int
    dma: int
    asleep: int
    idle: int

    @property
    def total(self) -> int:
        """All of them: the cycles of the run."""
        waits = self.pipeline + self.slots + self.dma + self.asleep + self.idle
        return self.issue + self.lock + waits


@dataclass(frozen=True, slots=True)
class DmaCounters:
    """Transfers of a run. `sizes[i]` counts those of 8 * (i + 1) bytes; reads are MRAM to WRAM."""

    reads: int
    writes: int
    read_bytes: int
    write_bytes: int
    busy_cycles: int
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RunResult:
    """One run of one DPU.

    seconds    cycles over the clock, without the host's launch
    hypothetical  what of the core no UPMEM chip has; empty for a chip that there is
    tasklets   one entry per hardware thread that the parameters give
    histogram  executions of each instruction, only with `profile=True`
    trace      what each tasklet did when (`SPAN` of timeline.py), only with `trace=True`
    """

    cycles: int
    instructions: int
    seconds: float
    tasklets: tuple[TaskletCycles, ...]
    dma: DmaCounters
    histogram: NDArray[np.uint64] | None = field(default=None, compare=False)
    trace: NDArray[np.void] | None = field(default=None, compare=False)
    hypothetical: str = ""


_codes: dict[int, Any] = {}


def _code_of(program: Program) -> Any:
    """The pre-decoded program, shared by all DPUs that run it."""
    key = id(program)
    if key not in _codes:
        _codes[key] = Code(program.rows.tobytes())
        weakref.finalize(program, _codes.pop, key, None)
    return _codes[key]


def _name(symbol: str | Symbol) -> str:
    return symbol.name if isinstance(symbol, Symbol) else symbol


class Dpu:
    """A DPU with `program` loaded. Memories start as the program's image, zero elsewhere.

    `wram` and `mram` are writable NumPy uint8 views; host memory is used only for MRAM pages that
    are touched.
    """

    def __init__(
        self, program: Program, params: DpuParams | None = None, *, index: int = 0
    ) -> None:
        instance("program", program, Program)
        instance("params", params, (DpuParams, type(None)))
        self.program = program
        self.params = params if params is not None else DpuParams()
        self.index = whole("index", index, 0)
        self._written: set[tuple[bool, int, int]] = set()
        self._check_size()
        self.machine = Machine(_code_of(program), self.params.resolved())
        self._load()

    def _check_size(self) -> None:
        limits = (
            ("IRAM instructions", len(self.program.rows), self.params.iram_instructions),
            ("WRAM bytes", self.program.wram_used, self.params.wram_bytes),
            ("MRAM bytes", self.program.mram_used, self.params.mram_bytes),
            ("tasklets", self.program.nr_tasklets, self.params.tasklets),
        )
        for what, value, limit in limits:
            if value > limit:
                raise SimError(f"program needs {value} {what}, limit {limit}")
        for unit in self.program.units:
            if not getattr(self.params, unit):
                raise SimError(f"program needs a hypothetical core: {unit} is 0, at least 1 needed")

    def _load(self) -> None:
        wram, mram = self.program.wram, self.program.mram
        self.wram[: len(wram)] = np.frombuffer(wram, np.uint8)
        if mram:
            start = self.program.mram_start
            self.mram[start : start + len(mram)] = np.frombuffer(mram, np.uint8)
        if not self.params.silicon_stack:
            for t, (low, size) in enumerate(self.program.stacks):
                self.machine.set_stack(t, low, size)
        if "CLOCKS_PER_SEC" in self.program.symbols:
            self.write("CLOCKS_PER_SEC", np.uint32(self.params.clock_mhz * 1e6))

    @property
    def wram(self) -> NDArray[np.uint8]:
        """WRAM, writable."""
        view: NDArray[np.uint8] = self.machine.wram
        return view

    @property
    def mram(self) -> NDArray[np.uint8]:
        """MRAM, writable."""
        view: NDArray[np.uint8] = self.machine.mram
        return view

    # ---- symbols

    def _place(self, symbol: str | Symbol, offset: int, size: int | None) -> tuple[bool, slice]:
        """(in MRAM, bytes) of a part, without `size` all that follows.

        A symbol of size 0 reaches to its memory's end.
        """
        instance("symbol", symbol, (str, Symbol))
        whole("offset", offset)
        name = _name(symbol)
        found = self.program.symbols.get(_ALIASES.get(name, name))
        if isinstance(symbol, Symbol):
            found = symbol
        if found is None:
            raise SimError(f"symbol {name!r}: not in the program")
        if found.address >= MRAM_BASE << 1 or found.section == "*ABS*":
            raise SimError(f"symbol {name!r}: in section {found.section}, not a host's memory")
        in_mram = found.address >= MRAM_BASE
        start = found.address - (MRAM_BASE if in_mram else 0)
        limit = found.size or (len(self.mram) if in_mram else len(self.wram)) - start
        if size is None:
            size = max(0, limit - offset)
        if offset < 0 or size < 0 or offset + size > limit:
            raise SimError(f"symbol {name!r}: {size} bytes at offset {offset}, limit {limit}")
        return in_mram, slice(start + offset, start + offset + size)

    def _integer(self, symbol: str | Symbol, number: int) -> bytes:
        _, place = self._place(symbol, 0, None)
        size = int(place.stop - place.start)
        if size not in (1, 2, 4, 8) or not -(1 << (8 * size - 1)) <= number < 1 << 8 * size:
            raise SimError(
                f"symbol {_name(symbol)!r}: {size} bytes, cannot hold the integer {number}"
            )
        return (number & ((1 << 8 * size) - 1)).to_bytes(size, "little")

    def write(self, symbol: str | Symbol, data: ArrayLike | bytes, offset: int = 0) -> None:
        """Copies `data` (an array or a NumPy number, as they lie in memory, or bytes) to `offset`
        bytes into a symbol.

        A Python integer takes the size of the symbol, which must be 1, 2, 4 or 8 bytes. Python's
        floats, bools and lists are a TypeError: they do not say how large an item is.
        """
        if isinstance(data, int) and not isinstance(data, bool):
            data = self._integer(symbol, data)
        raw = array_bytes(f"data for {_name(symbol)!r}", data)
        in_mram, part = self._place(symbol, offset, raw.size)
        (self.mram if in_mram else self.wram)[part] = raw
        self._written.add((in_mram, part.start, raw.size))

    def read(
        self,
        symbol: str | Symbol,
        dtype: DTypeLike = np.uint8,
        count: int | None = None,
        offset: int = 0,
    ) -> NDArray[Any]:
        """A copy of `count` items from `offset` bytes into a symbol; 1-D of `dtype`.

        Without `count`, all that the symbol's size holds from there, which must be whole items.
        """
        kind = item_type("dtype", dtype)
        size = None if count is None else whole("count", count, 0) * kind.itemsize
        in_mram, part = self._place(symbol, offset, size)
        held = (self.mram if in_mram else self.wram)[part]
        if len(held) % kind.itemsize:
            raise SimError(
                f"symbol {_name(symbol)!r}: {len(held)} bytes from offset {offset}, no whole "
                f"number of {kind} ({kind.itemsize} bytes)"
            )
        return held.copy().view(kind.newbyteorder("<")).astype(kind, copy=False)

    # ---- runs

    def run(
        self,
        max_cycles: int | None = None,
        *,
        profile: bool = False,
        trace: bool = False,
        checks: str | Collection[str] = (),
        plain: bool = False,
    ) -> RunResult:
        """Runs from the boot of tasklet 0 until every tasklet has stopped. Raises SimFault.

        Memories keep their values from run to run. `profile` counts executions of each instruction,
        `trace` records a timeline, `checks` names some of CHECKS; `plain` asks for the plain cycle
        loop, which these use too: slower, and equal to the cycle. The check "uninitialised" knows
        what `write` wrote, and bytes that are not zero.
        """
        checks = names("checks", checks, CHECKS)
        limit = _limit(max_cycles)
        self.machine.watch(
            _PROFILE * bool(profile)
            | _TRACE * bool(trace)
            | sum(CHECKS[name] for name in set(checks))
        )
        if "uninitialised" in checks:
            self._mark_written()
        self.machine.start()
        _finish([self], run_machines([self.machine], 1, limit, plain), 1, limit, plain)
        return self._result(profile, trace)

    def _mark_written(self) -> None:
        """Tells the core which bytes hold something."""
        program, machine = self.program, self.machine
        known = self._written | {(False, 0, len(program.wram))}
        known.add((True, program.mram_start, len(program.mram)))
        for in_mram, start, size in known:
            valid = machine.mram_valid if in_mram else machine.wram_valid
            valid[start : start + size] = 1
        chunk = 1 << 16
        for memory, valid in ((self.wram, machine.wram_valid), (self.mram, machine.mram_valid)):
            for start in range(0, len(memory), chunk):
                part = memory[start : start + chunk]
                if part.any():
                    valid[start : start + chunk] |= part != 0

    def _result(self, profile: bool = False, trace: bool = False) -> RunResult:
        cycles = int(self.machine.cycle)
        return RunResult(
            cycles=cycles,
            instructions=int(self.machine.instructions),
            seconds=cycles / (self.params.clock_mhz * 1e6),
            tasklets=tuple(
                _split(self.machine.counters(t), cycles, self.params.issue_distance_cycles)
                for t in range(self.params.tasklets)
            ),
            dma=_dma_counters(self.machine.dma),
            histogram=self.machine.histogram[: len(self.program.rows)].copy() if profile else None,
            trace=np.frombuffer(self.machine.spans, SPAN) if trace else None,
            hypothetical=self.params.hypothetical,
        )


def run_many(
    dpus: Sequence[Dpu], threads: int | None = None, max_cycles: int | None = None
) -> list[RunResult]:
    """Runs each DPU from its start, over `threads` threads (default: the processors there are).

    Raises the SimFault of the first DPU, in the order given, that stopped with one.
    """
    limit = _limit(max_cycles)
    threads = threads if threads is not None else len(os.sched_getaffinity(0))
    whole("threads", threads, 1)
    instance("dpus", dpus, Iterable)
    dpus = list(dpus)
    for number, dpu in enumerate(dpus):
        instance(f"dpus[{number}]", dpu, Dpu)
    if len(set(map(id, dpus))) < len(dpus):
        raise ValueError(f"dpus: {len(dpus)} given, one of them twice")
    for dpu in dpus:
        dpu.machine.watch(0)
        dpu.machine.start()
    machines = [dpu.machine for dpu in dpus]
    _finish(dpus, run_machines(machines, threads, limit), threads, limit, False)
    return [dpu._result() for dpu in dpus]


def _limit(max_cycles: int | None) -> int:
    limit = DEFAULT_MAX_CYCLES if max_cycles is None else max_cycles
    return whole("max_cycles", limit, 1, _MOST_CYCLES)


def _finish(dpus: Sequence[Dpu], exits: list[Any], threads: int, limit: int, plain: bool) -> None:
    """Goes on with those that need code decoded, then raises the first fault."""
    waiting = list(range(len(dpus)))
    exits = list(exits)
    while waiting := [i for i in waiting if exits[i] == Exit.IRAM]:
        for i in waiting:
            _load_code(dpus[i].machine)
        again = run_machines([dpus[i].machine for i in waiting], threads, limit, plain)
        for i, status in zip(waiting, again, strict=True):
            exits[i] = status
    for dpu, status in zip(dpus, exits, strict=True):
        if status == Exit.FAULTED:
            raise sim_fault(dpu.machine, dpu.program, dpu.params, dpu.index, limit)


def _load_code(machine: Any) -> None:
    """Puts the instructions an `ldmai` fetched into IRAM; meaningless words fault when executed."""
    from upmem_sim.decoding import decode
    from upmem_sim.isa import ROW
    from upmem_sim.rows import to_row

    rows = np.zeros(len(machine.iram_words), ROW)
    for i, word in enumerate(machine.iram_words):
        try:
            rows[i] = to_row(decode(word & (1 << 48) - 1), lambda symbol: 0)
        except SimError:
            rows[i]["op"] = 254
    machine.set_rows(rows.tobytes())


def _split(c: dict[str, Any], cycles: int, distance: int) -> TaskletCycles:
    """Cycles by cause from the core's counters; what is left over waited for a slot."""
    idle, asleep = c["idle"], c["asleep"]
    if not c["booted"]:
        idle = cycles
    elif not c["running"]:
        tail = max(0, cycles - c["stopped_at"] - 1)
        idle, asleep = (idle + tail, asleep) if c["ended"] else (idle, asleep + tail)
    lock = c["retries"] * distance
    issue = c["issued"] - c["retries"]
    pipeline = (issue - c["dmas"] - c["stops"]) * (distance - 1)
    slots = cycles - issue - lock - pipeline - c["dma"] - asleep - idle
    if slots < 0:  # stopped by another tasklet, or at a limit, before its wait was over
        pipeline, slots = pipeline + slots, 0
    return TaskletCycles(c["issued"], issue, lock, pipeline, slots, c["dma"], asleep, idle)


def _dma_counters(c: dict[str, Any]) -> DmaCounters:
    return DmaCounters(**{**c, "sizes": tuple(c["sizes"])})
