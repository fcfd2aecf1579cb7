"""Programs with the structure of PrIM's, compiled by us, beside published kernel times.

16 tasklets, blocks of 1 KB, run-time trip counts. All DPUs of a run hold equally much: one of them
is simulated, with data of PrIM's kind, and its results are compared with NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.fidelity_rows import PROGRAMS, Group, Row, table
from upmem_sim import Dpu, DpuParams, Program, TransferModel, compile_c

__all__ = ["JUDGED", "groups", "simulate"]

TASKLETS = 16
HEAP = "DPU_MRAM_HEAP_POINTER_NAME"
JUDGED = ("SEL", "SCAN-RSS", "TRNS")
LIMIT = 0.05
COLUMNS = 64  # of GEMV
PIECES = 64  # of TRNS's matrix: as many DPUs as there are take a piece each, turn by turn
HEIGHT, WIDTH = 4, 8  # of its inner matrices
QUICK = 140_000  # largest number of elements a DPU

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Run:
    """What the launches of one program took on one DPU."""

    cycles: tuple[int, ...]
    instructions: int
    elements: int


class Session:
    """One DPU and the counts of its launches."""

    def __init__(self, program: Program, params: DpuParams | None) -> None:
        self.dpu = Dpu(program, params)
        self.cycles: list[int] = []
        self.instructions = 0

    def launch(self, **arguments: int) -> None:
        """Sets uint32 variables, then runs."""
        for name, value in arguments.items():
            self.dpu.write(name, np.uint32(value))
        result = self.dpu.run()
        self.cycles.append(result.cycles)
        self.instructions += result.instructions

    def expect(self, wanted: Array, offset: int) -> None:
        """Results at an offset of the heap."""
        got = self.dpu.read(HEAP, wanted.dtype, wanted.size, offset)
        if not np.array_equal(got, wanted.ravel()):
            raise ArithmeticError("results differ from NumPy's")


def _va(s: Session, n: int, rng: np.random.Generator) -> int:
    a, b = rng.integers(0, 1 << 30, (2, n)).astype("i4")
    s.dpu.write(HEAP, np.concatenate([a, b]))
    s.launch(bytes=a.nbytes)
    s.expect(a + b, a.nbytes)
    return n


def _red(s: Session, n: int, rng: np.random.Generator) -> int:
    a = rng.integers(0, 1 << 40, n)
    s.dpu.write(HEAP, a)
    s.launch(bytes=a.nbytes)
    if s.dpu.read("result", "i8", 1)[0] != a.sum():
        raise ArithmeticError("results differ from NumPy's")
    return n


def _sel(s: Session, n: int, rng: np.random.Generator) -> int:
    a = np.arange(1, n + 1)
    s.dpu.write(HEAP, a)
    s.launch(bytes=a.nbytes)
    s.expect(a[a % 2 == 1], a.nbytes)
    return n


def _scan(s: Session, n: int, rng: np.random.Generator) -> int:
    a, before = rng.integers(0, 1 << 40, n), 7
    s.dpu.write(HEAP, a)
    s.launch(bytes=a.nbytes, phase=0)
    s.dpu.write("carry", np.int64(before))
    s.launch(phase=1)
    s.expect(before + np.cumsum(a), a.nbytes)
    return n


def _hst(s: Session, n: int, rng: np.random.Generator) -> int:
    pixels = rng.integers(0, 4096, n).astype("u4")
    s.dpu.write(HEAP, pixels)
    s.launch(bytes=pixels.nbytes, bins=256)
    s.expect(np.bincount(pixels >> 4, minlength=256).astype("u4"), pixels.nbytes)
    return n


def _gemv(s: Session, rows: int, rng: np.random.Generator) -> int:
    a = rng.integers(0, 50, (rows, COLUMNS)).astype("i4")
    x = rng.integers(0, 50, COLUMNS).astype("i4")
    s.dpu.write(HEAP, np.concatenate([a.ravel(), x]))
    s.launch(rows=rows, columns=COLUMNS)
    s.expect(a @ x, a.nbytes + x.nbytes)
    return a.size


def _trns(s: Session, rows: int, rng: np.random.Generator) -> int:
    a = rng.integers(0, 1 << 40, (rows, HEIGHT, WIDTH))
    s.dpu.write(HEAP, a)
    s.launch(rows=rows, height=HEIGHT, width=WIDTH, phase=0)
    s.launch(phase=1)
    s.expect(a.transpose(2, 0, 1), 0)
    return a.size


_PROGRAMS: dict[str, tuple[str, Callable[[Session, int, np.random.Generator], int]]] = {
    "VA": ("va", _va), "RED": ("red", _red), "SEL": ("sel", _sel), "SCAN-RSS": ("scan", _scan),
    "HST-S": ("hst", _hst), "GEMV": ("gemv", _gemv), "TRNS": ("trns", _trns),
}  # fmt: skip


def simulate(name: str, size: int, params: DpuParams | None = None, sdk_form: bool = True) -> Run:
    """One DPU with `size` elements (GEMV, TRNS: rows) of program `name`."""
    stem, work = _PROGRAMS[name]
    defines = {"SDK_FORM": 1} if sdk_form else {}
    program = compile_c(
        PROGRAMS / f"prim_{stem}.c", nr_tasklets=TASKLETS, defines=defines, debug=False
    )
    session = Session(program, params)
    elements = work(session, size, np.random.default_rng(0))
    return Run(tuple(session.cycles), session.instructions, elements)


def _row(name: str, dpus: int, size: int, published: float, run: Run, clock_mhz: float) -> Row:
    """All turns of all launches: TRNS takes 64 pieces in turns of as many as there are DPUs."""
    turns = PIECES // dpus if name == "TRNS" else 1
    launch = TransferModel.preset().launch(dpus) * 1e3
    ms = turns * (sum(run.cycles) / (clock_mhz * 1e3) + launch * len(run.cycles))
    per_element = [count / run.elements for count in (run.instructions, sum(run.cycles))]
    work = f"{per_element[0]:6.2f} instr {per_element[1]:6.2f} cycles/element"
    return Row(f"{name}, {dpus} DPUs, {size:,}", published, ms, "ms", work)


def _name(form: str, sdk_form: bool) -> str:
    return f"PrIM {form}" if sdk_form else f"PrIM {form}, as clang has it"


def _program(name: str, sdk_form: bool, quick: bool, params: DpuParams | None) -> tuple[Group, Row]:
    """All rows of a program, and the slope of the most DPUs with three sizes."""
    clock, runs = (params or DpuParams()).clock_mhz, dict[int, Run]()
    judged = name in JUDGED and sdk_form
    group = Group(_name(name, sdk_form), mean_limit=LIMIT if judged else None)
    if not sdk_form:
        group.note = "3 instructions fewer: one test for zero instead of two"
    points: dict[int, list[tuple[int, float, int]]] = {}
    for line in table("prim"):
        dpus, size, ms = int(line["dpus"]), int(line["size"]), float(line["ms"])
        own = size if name == "TRNS" else size // dpus
        if line["program"] != name:
            continue
        if quick and own > (QUICK // COLUMNS if name == "GEMV" else QUICK):
            continue
        if own not in runs:
            runs[own] = simulate(name, own, params, sdk_form)
        run = runs[own]
        group.rows.append(_row(name, dpus, size, ms, run, clock))
        turns = PIECES // dpus if name == "TRNS" else 1
        points.setdefault(dpus, []).append((run.elements, ms / turns, sum(run.cycles)))
    dpus = max(count for count, found in points.items() if len(found) >= 3)
    elements, times, cycles = (np.array(column) for column in zip(*points[dpus], strict=True))
    slope = [float(np.polyfit(elements, y, 1)[0]) for y in (times * clock * 1e3, cycles)]
    largest = runs[max(runs)]
    work = f"{largest.instructions / largest.elements:.2f} instr/element"
    title = f"{_name(name, sdk_form)}, {dpus} DPUs"
    return group, Row(title, slope[0], slope[1], "cycles/element", work)


def groups(quick: bool = False, params: DpuParams | None = None) -> list[Group]:
    """A group for each program, the judged ones first; SEL also as clang translates it; then the
    slopes, from which launches and other fixed times drop out."""
    found, slopes = [], Group("PrIM, cycles an element (slope over the sizes)")
    names = [(name, True) for name in JUDGED] + [("SEL", False)]
    names += [(name, True) for name in _PROGRAMS if name not in JUDGED]
    for name, sdk_form in names:
        group, slope = _program(name, sdk_form, quick, params)
        found.append(group)
        slopes.rows.append(slope)
    return [*found, slopes]
