"""Random programs on the cycle engine and on the plain interpreter: same state, same cycles.

A full run takes 10,000 programs, a quick one 500. Registers, flags, program counters, RUN and
atomic bits, WRAM, MRAM, instructions and cycles are compared, for the engine's fast and its plain
loop.
"""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.program_generator import MRAM_BYTES, Generated, generate
from upmem_sim.disasm import format_insn
from upmem_sim.dpu import Dpu
from upmem_sim.encoding import encode_row
from upmem_sim.errors import SimFault
from upmem_sim.interpreter import Fault, Interpreter
from upmem_sim.isa import ROW, Sym
from upmem_sim.params import DpuParams
from upmem_sim.program import Program, Symbol
from upmem_sim.rows import to_row

FULL, QUICK = 10_000, 500
MAX_CYCLES = 2_000_000
PARAMS = DpuParams(
    mram_bytes=MRAM_BYTES,
    multiply32_slots=1,
    float_add_slots=1,
    float_mul_slots=1,
    float_div_slots=1,
)
SLOW_UNITS = replace(PARAMS, multiply32_slots=4, float_div_slots=9)  # for every eighth program


def _no_symbols(symbol: Sym) -> int:
    raise ValueError(f"unresolved {symbol}")


def assembled(made: Generated) -> Program:
    """Engine rows and 48-bit words of generated instructions."""
    rows = [to_row(insn, _no_symbols, pc) for pc, insn in enumerate(made.insns)]
    return Program(
        words=np.array([encode_row(row) for row in rows], np.uint64),
        rows=np.array(rows, ROW),
        wram=made.wram,
        mram=made.mram,
        symbols=_stacks(made),
        nr_tasklets=made.tasklets,
        mram_start=made.mram_start,
    )


def _stacks(made: Generated) -> dict[str, Symbol]:
    if made.stack is None:
        return {}
    base, size = made.stack
    places = {f"__sys_stack_thread_{t}": base for t in range(made.tasklets)}
    places |= {f"STACK_SIZE_TASKLET_{t}": size for t in range(made.tasklets)}
    return {name: Symbol(name, value, 0, "*ABS*") for name, value in places.items()}


def engine_state(program: Program, plain: bool, params: DpuParams = PARAMS) -> dict[str, Any]:
    """Everything that a program can change, after a run on the engine; or where it faulted."""
    dpu = Dpu(program, params)
    try:
        run = dpu.run(MAX_CYCLES, plain=plain)
    except SimFault as fault:
        return {"fault": (fault.tasklet, fault.pc), "kind": fault.kind}
    state: dict[str, Any] = {"cycles": run.cycles, "instructions": run.instructions}
    for t in range(PARAMS.tasklets):
        tasklet = dpu.machine.tasklet(t)
        state |= {f"tasklet {t} r{i}": x for i, x in enumerate(tasklet["registers"])}
        state |= {f"tasklet {t} {k}": int(tasklet[k]) for k in ("pc", "zero", "carry", "running")}
    state["atomic bits"] = dpu.machine.atomic.tobytes()
    state["WRAM"], state["MRAM"] = dpu.wram.tobytes(), dpu.mram.tobytes()
    return state


def interpreter_state(program: Program, params: DpuParams = PARAMS) -> dict[str, Any]:
    """The same of the interpreter, which decodes the words itself."""
    machine = Interpreter.of(program, params)
    try:
        cycles = machine.run(MAX_CYCLES)
    except Fault as fault:
        return {"fault": (fault.tasklet, fault.pc), "kind": fault.kind}
    state: dict[str, Any] = {"cycles": cycles, "instructions": machine.instructions}
    for t in machine.threads:
        state |= {f"tasklet {t.index} r{i}": x for i, x in enumerate(t.regs)}
        flags = {"pc": t.pc, "zero": t.zf, "carry": t.cf, "running": int(t.run)}
        state |= {f"tasklet {t.index} {name}": value for name, value in flags.items()}
    state["atomic bits"] = bytes(machine.atomic)
    state["WRAM"], state["MRAM"] = bytes(machine.wram), bytes(machine.mram)
    return state


def differences(seed: int) -> list[str]:
    """What differs for the program of a seed; empty if nothing does."""
    program = assembled(generate(seed))
    params = PARAMS if seed % 8 else SLOW_UNITS
    want = interpreter_state(program, params)
    out = []
    for loop in ("fast", "plain"):
        got = engine_state(program, loop == "plain", params)
        out += [
            f"{loop} loop: {key}: engine {_show(got.get(key))}, interpreter {_show(value)}"
            for key, value in want.items()
            if got.get(key) != value
        ]
    return out


def _show(value: Any) -> str:
    return f"{len(value)} bytes" if isinstance(value, bytes) else str(value)


def listing(seed: int) -> str:
    """Assembly text of the program of a seed, to look into a difference."""
    insns = generate(seed).insns
    return "\n".join(f"{pc:4d}  {format_insn(insn)}" for pc, insn in enumerate(insns))


def run(quick: bool) -> int:
    """Print disagreements and a summary; exit status 1 if there are any."""
    count = QUICK if quick else FULL
    bad, start = 0, time.perf_counter()
    with ProcessPoolExecutor() as pool:
        for seed, found in enumerate(pool.map(differences, range(count), chunksize=50)):
            bad += bool(found)
            for line in found[:5]:
                print(f"seed {seed}: {line}", flush=True)
    seconds = time.perf_counter() - start
    print(f"{count:,} programs, {bad} disagree, {seconds:.0f} s")
    return 1 if bad else 0
