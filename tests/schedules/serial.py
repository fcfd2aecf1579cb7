"""Run a scheduled module on the host: the grid and the tasklets as ordinary loops, WRAM as plain
memory.

Tells whether a schedule means the same as its program, without code generation for DPUs. Outputs
lie between guard bands, so that a nest writing out of bounds is seen even when the numbers are
right.
"""

from __future__ import annotations

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import Schedule

GUARD = 64
_FILL = 0x5A


def serial(schedule: Schedule) -> tvm.IRModule:
    """Thread-bound and parallel loops become serial ones."""

    def loop(node: tirx.For, mutator: object) -> tirx.For:
        body = mutator.mutate(node.body)
        return tirx.For(node.loop_var, node.min, node.extent, tirx.ForKind.SERIAL, body)

    flat = Schedule(schedule.mod)
    for block in _blocks(flat):
        for index in range(len(flat.get(block).writes)):
            if "." in flat.get(block).writes[index].source.scope() or (
                flat.get(block).writes[index].source.scope() == "local"
            ):
                flat.set_scope(block, index, "global")
    func = flat.mod["main"]
    body = tvm_ffi.structural_mutate(func.body, (tirx.For, loop))
    return tvm.IRModule({"main": func.with_body(body).with_attr("global_symbol", "main")})


def _blocks(schedule: Schedule) -> list[object]:
    names: list[str] = []
    body = schedule.mod["main"].body
    tvm_ffi.structural_walk(body, (tvm.s_tir.SBlock, lambda b: names.append(str(b.name_hint))))
    return [schedule.get_sblock(name) for name in dict.fromkeys(names) if name != "root"]


def run(
    schedule: Schedule, arrays: list[np.ndarray], out_shape: tuple[int, ...], dtype: str
) -> np.ndarray:
    """Output of the module on the arrays. Fails when a byte of a guard band has changed."""
    module = tvm.compile(serial(schedule), target="llvm")
    size = int(np.prod(out_shape)) * np.dtype(dtype).itemsize
    memory = np.full(size + 3 * GUARD + 64, _FILL, dtype=np.uint8)
    start = GUARD + (-(memory.ctypes.data + GUARD)) % 64
    view = memory[start : start + size].view(dtype).reshape(out_shape)
    output = tvm.runtime.from_dlpack(view) if size else view
    module["main"](*[tvm.runtime.tensor(a) for a in arrays], output)
    result = view.copy()
    view.view(np.uint8).reshape(-1)[:] = _FILL
    assert (memory == _FILL).all(), "a nest wrote outside of its output"
    return result
