"""Times between host and DPUs, and of launches: what the models say beside what was measured.

PrIM's programs on 1 to 64 DPUs (prim_transfers.csv) with the model fitted to that server; the
tables of a cloud server on 64 to 2560 DPUs, looked up; ATiM's column pieces on 2048 DPUs; launches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks import fidelity_loops, pieces
from benchmarks.fidelity_rows import Group, Row, summary, table
from upmem_sim import TransferModel
from upmem_sim.transfer import measured_points

__all__ = ["groups", "run"]

IN_LIMIT, OUT_LIMIT, LOOK_UP_LIMIT, PIECES_LIMIT = 0.27, 0.15, 0.05, 0.25
ARGUMENTS = 16  # bytes of the structure that every PrIM program pushes first
BINS = 256  # of a histogram
RESULTS = 256  # bytes of RED: one structure of 16 for each of 16 tasklets
COLUMNS = 64  # of GEMV

# program -> bytes of each push to one DPU, and of each pull from it, for `share` elements
Calls = tuple[list[float], list[float]]


def calls(program: str, share: float) -> Calls:
    """What PrIM's host programs move between the times they take (CMU-SAFARI/prim-benchmarks).

    share: elements of one DPU, rows for GEMV. No pulls for RED and SEL, which fetch results in
    other ways; nothing for TRNS, which pushes each of thousands of matrix rows on its own.
    """
    moved: dict[str, Calls] = {
        "VA": ([4 * share, 4 * share], [4 * share]),
        "RED": ([8 * share], []),
        "SEL": ([8 * share], []),
        "SCAN-RSS": ([8 * share], [8 * share]),
        "HST-S": ([4 * share], [4 * BINS]),
        "GEMV": ([4 * COLUMNS * share, 4 * COLUMNS], [4 * share]),
    }
    if program not in moved:
        return [], []
    inward, outward = moved[program]
    return [ARGUMENTS, *inward], outward


def _prim() -> Iterator[Group]:
    model = TransferModel.preset("kern")
    inward = Group("PrIM, host to DPUs, 1 to 64 DPUs", mean_limit=IN_LIMIT)
    outward = Group("PrIM, DPUs to host, 1 to 64 DPUs", mean_limit=OUT_LIMIT)
    wram = Group("PrIM RED, 256 bytes of WRAM from each DPU", mean_limit=OUT_LIMIT)
    for row in table("prim_transfers"):
        dpus, size = int(row["dpus"]), int(row["size"])
        name = f"{row['program']} {dpus:2} DPUs {size:9}"
        pushes, pulls = calls(row["program"], size / dpus)
        if pushes:
            ms = float(np.sum(model.to_dpus(np.array(pushes), dpus))) * 1e3
            inward.rows.append(Row(name, float(row["in_ms"]), ms, "ms"))
        if pulls:
            ms = float(np.sum(model.from_dpus(np.array(pulls), dpus))) * 1e3
            outward.rows.append(Row(name, float(row["out_ms"]), ms, "ms"))
        if row["program"] == "RED":
            ms = model.from_wram(RESULTS, dpus) * 1e3
            wram.rows.append(Row(name, float(row["out_ms"]), ms, "ms"))
    yield from (inward, outward, wram)


def _cloud() -> Iterator[Group]:
    model = TransferModel.preset("cloud-2024")
    look_up = {
        ("in", "mram"): model.to_dpus,
        ("out", "mram"): model.from_dpus,
        ("in", "wram"): model.to_wram,
        ("out", "wram"): model.from_wram,
    }
    groups = {
        key: Group(f"cloud server, {key[1].upper()} {key[0]}, looked up", mean_limit=LOOK_UP_LIMIT)
        for key in look_up
    }
    for (way, memory, size, dpus), seconds in measured_points().items():
        simulated = look_up[way, memory](size, dpus)
        row = Row(f"{size:8} B {dpus:4} DPUs", seconds * 1e6, simulated * 1e6, "us")
        groups[way, memory].rows.append(row)
    for group in groups.values():
        group.note = "more DPUs never take less time here, as they do in some places of the table"
        yield group


def _pieces() -> Iterator[Group]:
    model = TransferModel.preset(pieces.PRESET)
    inward = Group("MTV by column pieces, 2048 DPUs, vector in", mean_limit=PIECES_LIMIT)
    outward = Group("MTV by column pieces, 2048 DPUs, results out", mean_limit=PIECES_LIMIT)
    for count, measured in pieces.published().items():
        vector, results = 4 * pieces.SIZE // count, 4 * pieces.SIZE * count // pieces.DPUS
        for group, ms, call, size in (
            (inward, measured.h2d * 1e3, model.to_dpus, vector),
            (outward, measured.d2h * 1e3, model.from_dpus, results),
        ):
            group.rows.append(Row(f"{count} pieces", ms, call(size, pieces.DPUS) * 1e3, "ms"))
    yield from (inward, outward)


def groups() -> list[Group]:
    """All of them; nothing runs, so none is left out in a quick run."""
    return [*_prim(), *_cloud(), *_pieces(), fidelity_loops.launches()]


def run(quick: bool = False) -> int:
    """Print all groups and their errors (only the errors if quick); 1 when a limit is passed."""
    found = groups()
    if not quick:
        for group in found:
            print(group.text(), end="\n\n")
    print(summary(found))
    return int(any(group.failed for group in found))
