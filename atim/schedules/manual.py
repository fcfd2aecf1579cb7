"""Hand schedules in the style of PrIM, expressed as a sketch and decisions on the common road.

PrIM (Gomez-Luna et al., IEEE Access 2022; github.com/CMU-SAFARI/prim-benchmarks): 16 tasklets,
1024-byte blocks, rows (or elements) only over the DPUs in equal padded slices, the vector re-read
block by block for every row, element-wise blocks dealt to tasklets in turn. ATiM's artefact adds
TTV and MMTV in the same manner, the leading axis over DPUs first.
"""

from __future__ import annotations

from collections.abc import Sequence

from atim.errors import UnsupportedError, UsageError
from atim.schedules.program import item_bytes
from atim.schedules.shapes import VECTOR_ROW
from atim.schedules.sketch import Sketch
from atim.schedules.space import design_space
from atim.target import MULTIPLY_LIBRARY, Target
from atim.workloads import Workload

__all__ = [
    "BLOCK_BYTES",
    "PRIM_DPUS",
    "TASKLETS",
    "prim_choices",
    "prim_of",
    "prim_pieces",
    "prim_style",
]

TASKLETS = 16
BLOCK_BYTES = 1024
# ATiM's evaluation takes the best of these for PrIM (prim_autotune.py of its artefact)
PRIM_DPUS = (256, 512, 1024, 2048)


def prim_style(
    workload: Workload, target: Target, dpus: int | None = None
) -> tuple[Sketch, dict[str, int]]:
    """The PrIM-like schedule of a named workload on `dpus` DPUs (all of the target by default).

    A sum of everything (RED) is cut over DPUs and tasklets; everything else by rows or elements.
    Raises `UnsupportedError` where the program has no such sketch.
    """
    return prim_of(design_space(workload.func, target, workload.resident), target, dpus)


def prim_of(
    sketches: Sequence[Sketch], target: Target, dpus: int | None = None
) -> tuple[Sketch, dict[str, int]]:
    """As `prim_style`, for the sketches of any program."""
    for sketch in sketches:
        if not sketch.split_reduction or len(sketches) == 1:
            return sketch, _decide(sketch, target, _within(target, dpus))
    raise UnsupportedError(f"{sketches[0].program.block}: no schedule in the style of PrIM")


def prim_choices(
    sketches: Sequence[Sketch], target: Target
) -> list[tuple[int, Sketch, dict[str, int]]]:
    """(DPUs, sketch, decisions) for each number of DPUs that ATiM's evaluation tries, without
    those that use no more DPUs than an earlier one; all DPUs of a target that has fewer."""
    tried = [dpus for dpus in PRIM_DPUS if dpus <= target.dpus] or [target.dpus]
    choices: list[tuple[int, Sketch, dict[str, int]]] = []
    for dpus in tried:
        sketch, decisions = prim_of(sketches, target, dpus)
        if all(decisions != earlier for _, _, earlier in choices):
            choices.append((dpus, sketch, decisions))
    return choices


def prim_pieces(
    workload: Workload, target: Target, pieces: int, dpus: int | None = None
) -> tuple[Sketch, dict[str, int]]:
    """The PrIM-like inner loop with the reduction cut into column pieces over the DPUs, as in the
    motivation study of ATiM (ISCA 2025): `dpus / pieces` row groups, tiles of at most one piece.

    Raises `UsageError` unless pieces divides the number of DPUs.
    """
    dpus = _within(target, dpus)
    if pieces < 1 or dpus % pieces:
        raise UsageError(f"pieces: {pieces} requested, a divisor of {dpus} DPUs needed")
    if pieces == 1:
        return prim_style(workload, target, dpus)
    for sketch in design_space(workload.func, target, workload.resident):
        if sketch.split_reduction and sketch.roles.piece is not None:
            decisions = _decide(sketch, target, dpus // pieces)
            columns = -(-sketch.program.axes[sketch.roles.piece].extent // pieces)
            decisions |= {"pieces": pieces, "tile": min(decisions["tile"], columns)}
            return sketch, decisions
    raise UnsupportedError(f"{workload.name}: no reduction to cut into pieces")


def _within(target: Target, dpus: int | None) -> int:
    dpus = target.dpus if dpus is None else dpus
    if not 1 <= dpus <= target.dpus:
        raise UsageError(f"DPUs: {dpus} requested, limit {target.dpus}")
    return dpus


def _decide(sketch: Sketch, target: Target, dpus: int) -> dict[str, int]:
    """Decisions common to all: DPUs dealt to the leading axes first, blocks of 1024 bytes."""
    program = sketch.program
    decisions = dict.fromkeys(sketch.names, 1)
    for axis in sketch.roles.grid:
        share = min(program.axes[axis].extent, dpus)
        decisions[f"dpus_{program.axes[axis].name}"] = share
        dpus //= share
    decisions["tasklets"] = min(TASKLETS, target.tasklets)
    widest = max(item_bytes(o.dtype) for o in program.inputs or (program.output,))
    decisions["tile"] = max(BLOCK_BYTES // widest, 1)
    fixed = {"even": 0, "cyclic": 1, "vector": VECTOR_ROW, "multiply": MULTIPLY_LIBRARY}
    if sketch.name == "reduce":
        fixed["pieces"] = dpus
    return decisions | {name: value for name, value in fixed.items() if name in decisions}
