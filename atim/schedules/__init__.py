"""Tensor program -> space of schedules -> scheduled TIR.

    program.py  analyse      PrimFunc -> Program (axes, operands, arithmetic; producers inlined)
    space.py    design_space Program, target -> sketches with their decisions
    sketch.py   Sketch       a program, the roles of its axes, its decisions
    shapes.py   shape_of     decisions -> sizes per DPU, tasklet and WRAM tile, for many candidates
    canonical.py canonical   equal schedules -> equal decisions
    rules.py    apply        sketch x decisions -> s_tir.Schedule
    memory.py   copies_of    DMAs and buffers of each operand
    terms.py    terms_of     closed forms: bytes, DMAs, instructions, balance, transfers
    verify.py   check        hardware limits, before TVM, with reasons
    manual.py   prim_style   hand schedules in the style of PrIM

Four structures: "elementwise"; "rows" (spatial axes over DPUs and tasklets); "rows_split" (and
pieces of the reduction over DPUs, added by the host); "reduce" (the reduction over DPUs and
tasklets).

What a scheduled module looks like (the contract with code generation):

- The child of the root block with `blockIdx` loops is the kernel; the others are host nests, in
  program order. Buffers of scope "global" allocated in the root block are intermediates of the
  host, e.g. `y_rf[pieces, ...]`, the partial results that the kernel writes and a host nest adds.
- `blockIdx.x/y/z` is the DPU grid. Tasklets are `threadIdx.x`, or `threadIdx.y` around
  `threadIdx.x` where two axes are spread. A kernel may hold several such nests one after another:
  the extents of the largest count, a smaller one leaves tasklets out, and what lies outside of
  them is done by tasklet 0. Shared buffers order the nests (barriers).
- Scopes (names in `atim.target`): "local.wram" one WRAM buffer a tasklet, "shared.wram" one a DPU;
  "local" a few accumulators of one tasklet, indices constant after unrolling (registers).
- Copy blocks (`cache_read`, `cache_write`) between a global tensor and WRAM are DMAs: innermost
  loop contiguous, starts aligned to 8 bytes and sizes multiples of 8 bytes *of the unclipped tile*.
  Their `T.where` only clips at the end of the tensor. Where a whole tensor dimension is shorter
  than the tile, TVM shortens the loop to the dimension: round such sizes up to 8 bytes.
- Tiles are unclipped: a DPU's box can reach over the tensor's end; the storage is padded.
- Loop kinds: "unroll" = write the body out; "parallel" (host nests only) = over host threads,
  extent = threads. No other annotation is used.
- Reductions are decomposed: `NAME_init` before the outermost reduction loop, then `NAME_update`.
"""

from atim.schedules.program import Axis, Operand, Program, analyse
from atim.schedules.sketch import Decision, Sketch
from atim.schedules.space import design_space

__all__ = ["Axis", "Decision", "Operand", "Program", "Sketch", "analyse", "design_space"]
