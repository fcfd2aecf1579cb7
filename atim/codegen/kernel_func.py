"""The form every kernel pass takes and returns: a PrimFunc of grid variables and MRAM tiles.

Its attribute atim.grid holds the extents of the grid variables (its first parameters), its root
block owns the WRAM buffers, and its body is made of loops, `if`s, stores and DMA calls only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tvm import ir, tirx
from tvm.s_tir import SBlock, SBlockRealize
from tvm.tirx import For, IfThenElse, SeqStmt, Stmt

from atim.codegen.access import accesses, loop_ranges
from atim.codegen.split import guarded, operation, sequence, with_body

if TYPE_CHECKING:
    from atim.codegen.transfer import Tile

Tiles = Mapping[str, "Tile"]
KernelPass = Callable[[tirx.PrimFunc, Tiles], tirx.PrimFunc]


def grid_of(func: tirx.PrimFunc) -> dict[tirx.Var, int]:
    """Grid variable -> extent, in order."""
    extents = [int(n) for n in func.attrs["atim.grid"]]
    return dict(zip(func.params, extents, strict=False))


def body_of(func: tirx.PrimFunc) -> Stmt:
    return func.body.block.body


def ranges_of(func: tirx.PrimFunc) -> dict[tirx.Var, tuple[int, int]]:
    """Lowest and highest value of every loop and grid variable."""
    grid = {var: (0, extent - 1) for var, extent in grid_of(func).items()}
    return loop_ranges(body_of(func)) | grid


def local_buffers(func: tirx.PrimFunc) -> list[tirx.Var]:
    """WRAM and register buffers."""
    return list(func.body.block.alloc_buffers)


def mram_buffers(func: tirx.PrimFunc) -> list[tirx.Var]:
    return [p for p in func.params if tirx.is_buffer_var(p)]


def with_kernel_body(
    func: tirx.PrimFunc, body: Stmt, buffers: list[tirx.Var] | None = None
) -> tirx.PrimFunc:
    """The same kernel around another body, perhaps with other local buffers."""
    local = local_buffers(func) if buffers is None else buffers
    root = SBlock([], [], [], "root", body, alloc_buffers=local)
    return tirx.PrimFunc(func.params, SBlockRealize([], True, root), attrs=func.attrs)


def rewrite(stmt: Stmt, change: Callable[[Stmt], Stmt | None]) -> Stmt:
    """Rewrite from the inside out: `change` sees each loop, `if`, sequence and leaf after its parts
    were rewritten, and returns what takes its place (None: the statement goes)."""
    result = _rewrite(stmt, change)
    return tirx.Evaluate(tirx.IntImm("int32", 0)) if result is None else result


def _rewrite(stmt: Stmt, change: Callable[[Stmt], Stmt | None]) -> Stmt | None:
    new: Stmt | None = stmt
    if isinstance(stmt, For):
        body = _rewrite(stmt.body, change)
        if body is None:
            return None
        new = stmt if body.same_as(stmt.body) else with_body(stmt, body)
    elif isinstance(stmt, SeqStmt):
        parts = [_rewrite(s, change) for s in stmt.seq]
        same = all(p is not None and p.same_as(s) for p, s in zip(parts, stmt.seq, strict=True))
        new = stmt if same else sequence(parts)
    elif isinstance(stmt, IfThenElse):
        then = _rewrite(stmt.then_case, change)
        other = None if stmt.else_case is None else _rewrite(stmt.else_case, change)
        same = then is not None and then.same_as(stmt.then_case)
        if not (same and (other is None or other.same_as(stmt.else_case))):
            new = guarded(stmt.condition, then, other)
    return None if new is None else change(new)


def has_load(expr: ir.Expr) -> bool:
    """The expression depends on data."""
    return any(True for _ in accesses(tirx.Evaluate(expr), {}))


def external_name(call: ir.Call) -> str:
    """The function of an external call, '' for other calls."""
    external = operation(call) in ("call_extern", "call_pure_extern")
    return str(call.args[0].value) if external else ""
