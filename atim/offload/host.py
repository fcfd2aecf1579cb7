"""Host code of a nest: the best of a scheduled loop nest (LLVM) and, for products, NumPy's BLAS.

The compiler's default schedule is several times slower than the machine; placement against it would
be worthless. Sums get eight rows at a time and vector lanes, everything else parallel outer loops.
"""

from __future__ import annotations

import ctypes
import functools
import os
from math import prod
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, s_tir, tirx
from tvm.target import codegen

from atim.errors import UnsupportedError
from atim.offload.split import REDUCE
from atim.schedules import analyse

__all__ = ["EINSUM", "host_target", "schedule", "subscripts", "threads", "view"]

Array = NDArray[Any]

EINSUM = "atim.host_einsum"
PARALLEL_ITERATIONS = 1 << 14
ROWS = 8
LEAST_REDUCTION = 64


def threads() -> int:
    """Threads that host nests use: $TVM_NUM_THREADS, by default half of the logical cores."""
    return int(os.environ.get("TVM_NUM_THREADS", 0)) or max((os.cpu_count() or 1) // 2, 1)


@functools.cache
def host_target() -> Any:
    """LLVM for this CPU; sums may be reassociated, which vectors need, as BLAS does too."""
    return tvm.target.Target(
        {
            "kind": "llvm",
            "mcpu": str(codegen.llvm_get_system_cpu()),
            "fast-math-reassoc": True,
            "fast-math-contract": True,
            "fast-math-nsz": True,
        }
    )


def schedule(func: Any) -> Any:
    """The function with its loops scheduled for the host; unchanged where TVM refuses."""
    if not isinstance(func.body, s_tir.SBlockRealize):
        return func
    try:
        sch = s_tir.Schedule(func, debug_mask="none", error_render_level="none")
        for handle in sch.get_child_blocks(sch.get_sblock("root")):
            block = sch.get(handle)
            reduced = [int(iv.iter_type) == REDUCE for iv in block.iter_vars]
            if not len(block.iter_vars):
                continue
            if _has_rows(block, reduced):
                _rows_at_a_time(sch, handle, len(reduced), _repeats(func, block))
            else:
                _outer_parallel(sch, handle, block, reduced)
        return sch.mod["main"]
    except (tvm.s_tir.ScheduleError, ValueError):
        return func


def _extent(iv: Any) -> int:
    return int(iv.dom.extent) if isinstance(iv.dom.extent, tirx.IntImm) else 0


def _has_rows(block: Any, reduced: list[bool]) -> bool:
    """One reduction, innermost, over rows that can be taken eight at a time."""
    if reduced.count(True) != 1 or not reduced[-1] or len(reduced) < 2:
        return False
    rows = _extent(block.iter_vars[-2])
    return _extent(block.iter_vars[-1]) >= LEAST_REDUCTION and rows >= 64 and rows % ROWS == 0


def _repeats(func: Any, block: Any) -> list[int]:
    """Loops that go over the same rows again: those of a product of matrices, whose rows would
    come from memory each time if these loops were outside."""
    try:
        program = analyse(func)
    except UnsupportedError:
        return []
    if len(program.axes) != len(block.iter_vars):
        return []
    rows = len(program.axes) - 2
    spatial = [n for n in range(rows) if program.axes[n].extent > 1]
    matrices = [o for o in program.inputs if o.uses(rows)]
    return [n for n in spatial if not any(o.uses(n) for o in matrices)]


def _rows_at_a_time(sch: Any, handle: Any, axes: int, repeats: list[int]) -> None:
    loops = sch.get_loops(handle)
    outer, inner = sch.split(loops[-2], [None, ROWS])
    leading = [loops[n] for n in range(axes - 2) if n not in repeats]
    again = [loops[n] for n in repeats]
    sch.reorder(*leading, outer, *again, loops[-1], inner)
    fused = sch.fuse(*leading, outer)
    sch.parallel(fused)
    sch.unroll(inner)
    sch.decompose_reduction(handle, loops[-1])


def _outer_parallel(sch: Any, handle: Any, block: Any, reduced: list[bool]) -> None:
    loops = sch.get_loops(handle)
    leading = reduced.index(True) if True in reduced else len(reduced)
    work = prod(max(_extent(iv), 1) for iv in block.iter_vars)
    if work < PARALLEL_ITERATIONS or not leading:
        return
    # the innermost of a nest without sums stays, for vectors
    long = [n for n in range(leading) if _extent(block.iter_vars[n]) > 1] or [0]
    keep = long[-1] if True not in reduced and len(long) > 1 else leading
    fused = sch.fuse(*loops[: max(keep, 1)]) if keep > 1 else loops[0]
    if len(long) == 1 and True not in reduced and keep == leading:
        fused = sch.split(fused, [threads() * 2, None])[0]
    sch.parallel(fused)


def subscripts(func: Any) -> str | None:
    """A product of two tensors as NumPy's einsum writes it ("ik,jk->ij"), None for other nests."""
    try:
        program = analyse(func)
    except UnsupportedError:
        return None
    plain = {name for name, _, _ in program.operations} == {"add", "mul"}
    if not plain or program.epilogue or len(program.inputs) != 2:
        return None
    if {o.dtype for o in program.inputs} != {"float32"} or program.output.dtype != "float32":
        return None
    order = [str(p.name) for p in func.params]
    inputs = sorted(program.inputs, key=lambda o: order.index(o.name))
    if [o.name for o in inputs] != order[:2]:
        return None
    texts = []
    for operand in (*inputs, program.output):
        letters = []
        for row, offset in zip(operand.index, operand.offset, strict=True):
            used = [axis for axis, coefficient in enumerate(row) if coefficient]
            if offset or len(used) != 1 or row[used[0]] != 1:
                return None
            letters.append(chr(ord("a") + used[0]))
        texts.append("".join(letters))
    return f"{texts[0]},{texts[1]}->{texts[2]}"


def view(tensor: Any) -> Array:
    """A NumPy view of a TVM tensor on this machine; NumPy's own DLPack import may crash."""
    shape = tuple(int(n) for n in tensor.shape)
    dtype = np.dtype(str(tensor.dtype))
    nbytes = prod(shape) * dtype.itemsize
    if not nbytes:
        return np.zeros(shape, dtype)
    memory = (ctypes.c_char * nbytes).from_address(int(tensor.data_ptr()))
    result: Array = np.frombuffer(memory, dtype=dtype).reshape(shape)  # type: ignore[call-overload]
    return result


@tvm.register_global_func(EINSUM)  # type: ignore[untyped-decorator]
def _einsum(text: Any, a: Any, b: Any, out: Any) -> None:
    np.einsum(str(text), view(a), view(b), out=view(out), optimize=True)


def string(text: str) -> Any:
    """A string as an argument of a packed call."""
    return ir.StringImm(text)
