"""From a candidate to C: every stage in order. The file to read first.

schedule   sketch x decisions -> scheduled TIR             (ordinary TVM schedules)
split      host nests | one DPU kernel                     codegen/split.py
copies     as long as their tiles, no longer than results  codegen/compact.py, widen.py, narrow.py
place      each DPU's tiles, kernel in local coordinates   codegen/transfer.py
boundary   copies to DMA, guards out of the loops          codegen/boundary.py
lower      accumulators in registers, tasklets, barriers   codegen/registers.py, lower.py
forms      inner loops in the DPU's forms of arithmetic    codegen/products.py, lanes.py
emit       kernel.c, host.c                                codegen/kernel_c.py, host_c.py
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tvm import tirx

from atim.codegen import Sources, TransferPlan
from atim.codegen.boundary import BOUNDARY_PASSES
from atim.codegen.compact import compact_buffers
from atim.codegen.host_c import emit_host
from atim.codegen.kernel_c import emit_kernel
from atim.codegen.lanes import join_lanes
from atim.codegen.lower import drop_repeated_guards, lift_inits, spread_tasklets
from atim.codegen.narrow import narrow_copies
from atim.codegen.products import form_products
from atim.codegen.registers import promote_sums, unroll_registers
from atim.codegen.split import split
from atim.codegen.transfer import place
from atim.codegen.widen import widen_copies
from atim.errors import ScheduleError
from atim.schedules.rules import apply
from atim.schedules.sketch import Sketch
from atim.target import Target

BOUNDARY_LEVEL = max(p.level for p in BOUNDARY_PASSES)
ATIM_LEVEL = 4  # ATiM's own passes end here; beyond, sums also move from WRAM to registers


def compile(
    sketch: Sketch,
    decisions: Mapping[str, int],
    target: Target,
    boundary_level: int = BOUNDARY_LEVEL,
) -> Sources:
    """The C sources of one candidate.

    Raises `ScheduleError` when the candidate breaks a rule of the hardware, `UnsupportedError` when
    the program can't be placed on DPUs.
    """
    schedule = apply(sketch, decisions)
    return compile_func(schedule.mod["main"], target, boundary_level)


def compile_func(
    func: tirx.PrimFunc, target: Target, boundary_level: int = BOUNDARY_LEVEL
) -> Sources:
    """The same for any scheduled PrimFunc. `boundary_level` as in boundary.py, 0 to 5."""
    parts = narrow_copies(widen_copies(compact_buffers(split(func))))
    placed = place(parts)
    kernel, tiles = unroll_registers(placed.kernel, placed.tiles), placed.tiles
    for boundary_pass in BOUNDARY_PASSES:
        if boundary_pass.level <= boundary_level:
            kernel = boundary_pass.run(kernel, tiles)
    kernel = lift_inits(kernel, tiles)
    if boundary_level > ATIM_LEVEL:
        kernel = promote_sums(drop_repeated_guards(kernel, tiles), tiles)
    spread = join_lanes(form_products(spread_tasklets(kernel, target.tasklets)))

    title = describe(placed.plan)
    kernel_text = emit_kernel(spread, tiles, title)
    host_text = emit_host(parts, placed, title)
    stacks = spread.nr_tasklets * target.stack_bytes
    if kernel_text.wram_bytes + stacks > target.wram_bytes:
        raise ScheduleError(
            f"WRAM: buffers {kernel_text.wram_bytes} and stacks {stacks} bytes requested,"
            f" limit {target.wram_bytes} (tasklets={spread.nr_tasklets})"
        )
    plan = replace(
        placed.plan,
        grid_symbol=kernel_text.grid_symbol,
        prepare="prepare" if parts.before else None,
        prepare_args=host_text.prepare_args,
        finish="finish" if parts.after else None,
        finish_args=host_text.finish_args,
        host_threads=host_text.threads,
    )
    return Sources(
        kernel_text.text,
        host_text.text,
        plan,
        spread.nr_tasklets,
        target.stack_bytes,
        kernel_text.wram_bytes,
    )


def describe(plan: TransferPlan) -> str:
    """The program in a few words: inputs -> outputs."""
    names = [[t.name for t in plan.tensors if t.role == r] for r in ("input", "output")]
    return " -> ".join(", ".join(group) for group in names)
