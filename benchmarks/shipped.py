"""The schedules that ATiM's artefact ships, as decisions of our sketches.

The published table (data/shipped.csv) holds the factors of TVM's splits: for a reduction S S S R S
R S R, for element-wise work S S S S S, outer to inner, the first over DPUs and the second of the
last spatial axis over tasklets. It doesn't say at which of two loops the caches sit (by ATiM's
rules inside the fourth or the sixth level of a reduction, the third or fourth of element-wise
work), so every `reading` is one possible meaning, and the fastest may count for ATiM. A place whose
caches pass the WRAM that ATiM's verifier allows can't be meant. What our sketches can't express:
sums kept in WRAM between tiles (ours are in registers; atim_code.py has ATiM's loops as they are),
tiles below 8 bytes (rounded up), the vector cached at another loop than the matrix, and the code of
a loop that TVM unrolls in part.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from atim.schedules import Sketch
from atim.schedules.verify import explain

__all__ = ["Shipped", "Task", "readings", "table"]

DATA = Path(__file__).parent / "data" / "shipped.csv"
REGISTER_ROWS = 8  # rows whose sums our kernels keep in registers
LONGEST_UNROLL = 64
ATIM_WRAM_BYTES = 24_576  # ATiM's verifier: caches of all tasklets

Task = tuple[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class Shipped:
    """One row: splits are ("T2" or "T", factors outer to inner), one for each axis and rfactor."""

    op: str
    shape: tuple[int, ...]
    grid: tuple[int, ...]
    tasklets: int
    splits: tuple[tuple[str, tuple[int, ...]], ...]
    unroll: int


def table() -> dict[tuple[str, tuple[int, ...]], Shipped]:
    """(op, shape) -> its schedule."""
    lines = [line for line in DATA.read_text().splitlines() if not line.startswith("#")]
    found = {}
    for row in csv.DictReader(lines):
        splits = re.findall(r"(T2?)\[([\dx]+)\]", row["tiles"])
        shipped = Shipped(
            row["op"],
            _sizes(row["shape"]),
            _sizes(row["grid"]),
            int(row["tasklets"]),
            tuple((kind, _sizes(factors)) for kind, factors in splits),
            int(row["unroll"]),
        )
        found[shipped.op, shipped.shape] = shipped
    return found


def readings(shipped: Shipped, sketches: Sequence[Sketch]) -> list[Task]:
    """(sketch, decisions) of every legal meaning of a row."""
    by_name = {sketch.name: sketch for sketch in sketches}
    if shipped.op in ("va", "geva"):
        name, found = "elementwise", _elementwise(shipped, by_name["elementwise"])
    elif shipped.op == "red":
        name, found = "reduce", _reduce(shipped)
    else:
        name = "rows_split" if shipped.splits[0][0] == "T2" else "rows"
        found = _rows(shipped, by_name[name])
    sketch = by_name[name]
    neutral = {"even": 1, "host_threads": 1, "tasklets_outer": 1, "cyclic": 0, "multiply": 0}
    whole = []
    for decisions in found:
        filled = {n: (neutral | decisions)[n] for n in sketch.names}
        if explain(sketch, filled, sketch.target) is None and (name, filled) not in whole:
            whole.append((name, filled))
    return whole


def _rows(shipped: Shipped, sketch: Sketch) -> Iterator[dict[str, int]]:
    """Matrix times vector, one matrix or many."""
    splits = [factors for kind, factors in shipped.splits if kind == "T"]
    *spatial, (_, r1, r2) = splits
    fixed = {"tasklets": shipped.tasklets}
    for axis, factors in zip(sketch.program.spatial, spatial, strict=True):
        fixed[f"dpus_{sketch.program.axes[axis].name}"] = factors[0]
    if shipped.splits[0][0] == "T2":
        fixed["pieces"] = shipped.splits[0][1][0]
    _, _, s2, s3, s4 = spatial[-1]
    blocks = sorted({s4, *(b for b in (s3 * s4, s2 * s3 * s4) if b <= REGISTER_ROWS)})
    places = ((r1 * r2, s3 * s4), (r2, s4))
    held = [(tile, tile * rows + tile + rows) for tile, rows in places]
    for tile, block, vector in product(_allowed(held, shipped.tasklets, 4), blocks, (0, 1)):
        for unroll in _unrolls(shipped, tile, block):
            yield fixed | {"tile": tile, "row_block": block, "vector": vector, "unroll": unroll}


def _elementwise(shipped: Shipped, sketch: Sketch) -> Iterator[dict[str, int]]:
    ((_, (dpus, tasklets, _, s3, s4)),) = shipped.splits
    (axis,) = sketch.roles.grid
    fixed = {f"dpus_{sketch.program.axes[axis].name}": dpus, "tasklets": tasklets}
    for tile in _allowed([(s3 * s4, 3 * s3 * s4), (s4, 3 * s4)], tasklets, 4):
        for unroll in _unrolls(shipped, tile, 1):
            yield fixed | {"tile": tile, "unroll": unroll}


def _reduce(shipped: Shipped) -> Iterator[dict[str, int]]:
    (_, (pieces, _)), (_, (tasklets, _)), (_, (_, r1, r2)) = shipped.splits
    for tile in _allowed([(r1 * r2, r1 * r2), (r2, r2)], tasklets, 8):
        for unroll in _unrolls(shipped, tile, 1):
            yield {"pieces": pieces, "tasklets": tasklets, "tile": tile, "unroll": unroll}


def _allowed(places: Sequence[tuple[int, int]], tasklets: int, item: int) -> list[int]:
    """Tiles of the places, each with the elements that its caches hold, that ATiM allows."""
    return sorted({tile for tile, held in places if held * tasklets * item <= ATIM_WRAM_BYTES})


def _unrolls(shipped: Shipped, tile: int, block: int) -> set[int]:
    """Copies of the body: the rolled loop, what the unroll step allows, and all of them, as the
    SDK's compiler makes of a short loop whose length it knows."""
    most = min(max(1, shipped.unroll // block), LONGEST_UNROLL)
    return {1, math.gcd(tile, 1 << int(math.log2(most))), math.gcd(tile, LONGEST_UNROLL)}


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split("x"))
