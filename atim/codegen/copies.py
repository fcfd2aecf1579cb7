"""Copies between MRAM and WRAM: recognised as loop nests, emitted as DMA transfers.

A DMA moves 8 to 2048 bytes, a multiple of 8, between addresses that are multiples of 8 (UPMEM SDK
manual, mram.h). So a nest becomes DMA only where unit stride, alignment and size are proved from
its linear indices; what can't be proved is a ScheduleError with the reason, never a transfer of the
wrong bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from tvm import ir, tirx
from tvm.tirx import For, ForKind, IfThenElse, SeqStmt, Stmt

from atim.codegen.access import largest_extent, storage
from atim.codegen.affine import Affine, Ranges, affine
from atim.codegen.split import conjuncts, sequence, with_body
from atim.errors import ScheduleError
from atim.target import DMA_ALIGN_BYTES, DMA_MAX_BYTES

READ, WRITE = "mram_read", "mram_write"


@dataclass(frozen=True, slots=True)
class Copy:
    """`for loops: if guards: store`, where the store moves one element between MRAM and WRAM."""

    loops: tuple[For, ...]
    guards: tuple[ir.Expr, ...]
    store: tirx.BufferStore

    @property
    def load(self) -> ir.TensorLoad:
        return self.store.value

    @property
    def reads_mram(self) -> bool:
        return in_mram(self.load.source)

    @property
    def item_bytes(self) -> int:
        return item_bytes(self.store.buffer)


def in_mram(buffer: tirx.Var) -> bool:
    return str(buffer.scope()).endswith(".mram")


def in_wram(buffer: tirx.Var) -> bool:
    return str(buffer.scope()).endswith(".wram")


def item_bytes(buffer: tirx.Var) -> int:
    """Bytes of one element; TIR's bool is one byte."""
    return int(np.dtype(str(buffer.dtype)).itemsize)


def match_copy(stmt: Stmt) -> Copy | None:
    """The copy that a nest consists of, None if it does anything else."""
    loops, guards, store = chain(stmt)
    if store is None or not isinstance(store.value, ir.TensorLoad):
        return None
    ends = (store.value.source, store.buffer)
    if {in_mram(b) for b in ends} != {True, False} or not any(in_wram(b) for b in ends):
        return None
    return Copy(loops, guards, store)


def chain(
    stmt: Stmt,
) -> tuple[tuple[For, ...], tuple[ir.Expr, ...], tirx.BufferStore | None]:
    """(loops, guards, store) of a nest that holds nothing but one store; the store is None
    otherwise."""
    loops: list[For] = []
    guards: list[ir.Expr] = []
    while True:
        if isinstance(stmt, For) and stmt.kind in (ForKind.SERIAL, ForKind.UNROLLED):
            loops.append(stmt)
            stmt = stmt.body
        elif isinstance(stmt, IfThenElse) and stmt.else_case is None:
            guards.extend(conjuncts(stmt.condition))
            stmt = stmt.then_case
        else:
            store = stmt if isinstance(stmt, tirx.BufferStore) else None
            return tuple(loops), tuple(guards), store


def rewrite_nests(stmt: Stmt, change: Callable[[Stmt], Stmt]) -> Stmt:
    """Apply `change` to every nest that holds nothing but one store, as a whole."""
    if chain(stmt)[2] is not None:
        return change(stmt)
    if isinstance(stmt, For):
        return with_body(stmt, rewrite_nests(stmt.body, change))
    if isinstance(stmt, SeqStmt):
        return SeqStmt([rewrite_nests(s, change) for s in stmt.seq])
    if isinstance(stmt, IfThenElse):
        other = None if stmt.else_case is None else rewrite_nests(stmt.else_case, change)
        return IfThenElse(stmt.condition, rewrite_nests(stmt.then_case, change), other)
    return stmt


def flat_index(buffer: tirx.Var, indices: Sequence[ir.Expr], ranges: Ranges) -> Affine | None:
    """The element's position in the buffer as stored, None if it is not linear."""
    sizes = storage([int(n) for n in buffer.shape], item_bytes(buffer))
    position = Affine({}, 0)
    for size, index in zip(sizes, indices, strict=False):
        linear = affine(index, ranges)
        if linear is None:
            return None
        position = position * size + linear
    return position


@dataclass(frozen=True, slots=True)
class _End:
    """One side of a transfer: the buffer, its indices, the flat position of the first element."""

    buffer: tirx.Var
    indices: tuple[ir.Expr, ...]
    flat: Affine

    def start(self, moving: set[tirx.Var], ranges: Ranges) -> tuple[ir.Expr, ...]:
        """The indices with the moving variables at 0."""
        zeroed = []
        for index in self.indices:
            linear = affine(index, ranges)
            assert linear is not None, index
            rest = Affine({v: c for v, c in linear.terms.items() if v not in moving}, linear.const)
            zeroed.append(rest.expr(str(index.ty)))
        return tuple(zeroed)


def to_dma(copy: Copy, ranges: Ranges, sole: bool) -> Stmt:
    """The copy as DMA transfers. `ranges` covers its loops; `sole`: nothing else stores to the
    target.

    Raises `ScheduleError` where a rule of the DMA engine can't be proved.
    """
    what = f"DMA {copy.load.source.name} to {copy.store.buffer.name}"
    if copy.guards:
        raise ScheduleError(f"{what}: guard {copy.guards[0]} can't be lifted out of the copy")
    ends = []
    for buffer, indices in (
        (copy.load.source, copy.load.indices),
        (copy.store.buffer, copy.store.indices),
    ):
        flat = flat_index(buffer, indices, ranges)
        if flat is None:
            raise ScheduleError(f"{what}: index of {buffer.name} is not affine")
        ends.append(_End(buffer, tuple(indices), flat))
    run, rows, count = _contiguous(copy, ends, what)
    moving = {loop.loop_var for loop in run}
    for end in ends:
        base = end.flat - end.flat.only(moving)
        if not (base * copy.item_bytes).divisible(DMA_ALIGN_BYTES):
            raise ScheduleError(f"{what}: {end.buffer.name}[{base.expr()}] is not 8-byte aligned")
    body = _Transfer(copy, (ends[0], ends[1]), moving, count, ranges, sole, what).stmt()
    for loop in reversed(rows):
        body = with_body(loop, body)
    return body


def _contiguous(
    copy: Copy, ends: Sequence[_End], what: str
) -> tuple[list[For], list[For], ir.Expr]:
    """Loops that together run over consecutive elements on both sides, the others, and the run's
    length."""
    steps = {
        loop.loop_var: tuple(e.flat.coefficient(loop.loop_var) for e in ends) for loop in copy.loops
    }
    run: list[For] = []
    count: ir.Expr = tirx.IntImm("int32", 1)
    length = 1
    rest = list(copy.loops)
    while (
        loop := next((p for p in rest if steps[p.loop_var] == (length, length)), None)
    ) is not None:
        rest.remove(loop)
        run.append(loop)
        if not isinstance(loop.extent, tirx.IntImm):
            if length != 1:
                raise ScheduleError(f"{what}: rows of clipped number can't be one transfer")
            return run, rest, loop.extent
        length *= int(loop.extent)
        count = tirx.IntImm("int32", length)
    if not run and rest and copy.item_bytes % DMA_ALIGN_BYTES:
        shown = ", ".join(f"{p.loop_var.name}: {steps[p.loop_var]}" for p in rest)
        raise ScheduleError(f"{what}: not contiguous, element steps (from, to) are {shown}")
    return run, rest, count


@dataclass(frozen=True, slots=True)
class _Transfer:
    """A contiguous run of `count` elements: size rules, and the statements that move it."""

    copy: Copy
    ends: tuple[_End, _End]
    moving: set[tirx.Var]
    count: ir.Expr
    ranges: Ranges
    sole: bool
    what: str

    def stmt(self) -> Stmt:
        most = largest_extent(self.count)
        if most is None:
            raise ScheduleError(f"{self.what}: length {self.count} has no constant limit")
        size = most * self.copy.item_bytes
        if size % DMA_ALIGN_BYTES:
            self._check_rounding(most)
            size += DMA_ALIGN_BYTES - size % DMA_ALIGN_BYTES
        if isinstance(self.count, tirx.IntImm):
            return self._constant(size)
        return self._clipped(size)

    def _check_rounding(self, count: int) -> None:
        """A size may be rounded up if what it adds exists on both sides, and overwrites only
        padding behind the destination's row or, with no other store around, elements that are never
        written."""
        ends_row = True
        step = DMA_ALIGN_BYTES // self.copy.item_bytes
        rounded = -(-count // step) * step
        for end in self.ends:
            shape = [int(n) for n in end.buffer.shape]
            axis = max((i for i, n in enumerate(shape) if n != 1), default=len(shape) - 1)
            start = affine(end.start(self.moving, self.ranges)[axis], self.ranges)
            bounds = start.bounds(self.ranges) if start is not None else None
            stored = storage(shape, self.copy.item_bytes)[axis]
            if len(self.moving) > 1 or bounds is None or bounds[1] + rounded > stored:
                ends_row = False
                break
            ends_row = bounds[0] + count >= shape[axis]
        else:
            if ends_row or (self.sole and self.copy.reads_mram and not self._in_steps()):
                return
        size = count * self.copy.item_bytes
        raise ScheduleError(f"{self.what}: {size} bytes, multiple of 8 needed")

    def _in_steps(self) -> bool:
        """Other parts of the same buffer are filled by other iterations of the copy."""
        return bool(self.ends[1].flat.terms.keys() - self.moving)

    def _constant(self, size: int) -> Stmt:
        """Equal pieces if the size allows it, else full pieces and a rest."""
        if size <= DMA_MAX_BYTES:
            return self._dma(None, 0, tirx.IntImm("int32", size))
        pieces = -(-size // DMA_MAX_BYTES)
        piece = size // pieces if size % (pieces * DMA_ALIGN_BYTES) == 0 else DMA_MAX_BYTES
        var = tirx.Var("piece", "int32")
        whole = self._dma(var, piece, tirx.IntImm("int32", piece))
        loop = For(var, 0, size // piece, ForKind.SERIAL, whole)
        if size % piece == 0:
            return loop
        rest = self._dma(None, size // piece * piece, tirx.IntImm("int32", size % piece))
        return sequence([loop, rest])

    def _clipped(self, most: int) -> Stmt:
        """A run-time length: rounded up on the way in, proved a multiple of 8 on the way out."""
        item = self.copy.item_bytes
        size = self.count if item == 1 else self.count * tirx.IntImm("int32", item)
        if not _multiple(self.count, item, self.ranges):
            if not self.copy.reads_mram:
                raise ScheduleError(f"{self.what}: {size} bytes is not always a multiple of 8")
            size = (size + tirx.IntImm("int32", 7)) & tirx.IntImm("int32", -DMA_ALIGN_BYTES)
        some = tirx.GT(self.count, tirx.IntImm("int32", 0))
        if most <= DMA_MAX_BYTES:
            return IfThenElse(some, self._dma(None, 0, size), None)
        var = tirx.Var("piece", "int32")
        done = var * tirx.IntImm("int32", DMA_MAX_BYTES)
        part = self._dma(
            var, DMA_MAX_BYTES, tirx.Min(tirx.IntImm("int32", DMA_MAX_BYTES), size - done)
        )
        body = IfThenElse(tirx.LT(done, size), part, None)
        return For(var, 0, -(-most // DMA_MAX_BYTES), ForKind.SERIAL, body)

    def _dma(self, piece: tirx.Var | None, step: int, size: ir.Expr) -> Stmt:
        """One transfer, `step` bytes (for each piece) after the first element."""
        offset: ir.Expr = tirx.IntImm("int32", step // self.copy.item_bytes)
        offset = offset if piece is None else piece * offset
        source, target = (
            tirx.address_of(tirx.BufferLoad(e.buffer, list(e.start(self.moving, self.ranges))))
            for e in self.ends
        )
        name = READ if self.copy.reads_mram else WRITE
        return tirx.Evaluate(tirx.call_extern("void", name, source, offset, target, offset, size))


def _multiple(count: ir.Expr, item: int, ranges: Ranges) -> bool:
    """count * item is a multiple of 8 for every value of the variables."""
    if isinstance(count, tirx.Min):
        return _multiple(count.a, item, ranges) and _multiple(count.b, item, ranges)
    linear = affine(count, ranges)
    return linear is not None and (linear * item).divisible(DMA_ALIGN_BYTES)


def without_guards(copy: Copy) -> Copy:
    return replace(copy, guards=())
