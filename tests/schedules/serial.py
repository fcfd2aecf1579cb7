"""Run a scheduled module on the host: the grid and the tasklets as ordinary loops, WRAM as plain
memory.

Tells whether a schedule means the same as its program, without code generation for DPUs. Arrays lie
between guard bands, so that an access out of bounds is seen even when the numbers are right.
"""

from __future__ import annotations

import numpy as np
import tvm
import tvm_ffi
from tvm import tirx
from tvm.s_tir import Schedule

GUARD = 256
_FILL = 0x5A
# compile times matter here, not the speed of the result
_HOST = tvm.target.Target({"kind": "llvm", "opt-level": 0})


def serial(schedule: Schedule) -> tvm.IRModule:
    """Thread-bound and parallel loops become serial ones."""

    def loop(node: tirx.For, mutator: object) -> tirx.For:
        body = mutator.mutate(node.body)
        return tirx.For(node.loop_var, node.min, node.extent, tirx.ForKind.SERIAL, body)

    func = schedule.mod["main"]
    body = tvm_ffi.structural_mutate(func.body, (tirx.For, loop))
    return tvm.IRModule({"main": func.with_body(body).with_attr("global_symbol", "main")})


def run(
    schedule: Schedule, arrays: list[np.ndarray], out_shape: tuple[int, ...], dtype: str
) -> np.ndarray:
    """Output of the module on the arrays. Fails when a byte of a guard band has changed."""
    module = tvm.compile(serial(schedule), target=_HOST)
    inputs = [_framed(array)[1] for array in arrays]
    memory, view = _framed(np.zeros(out_shape, dtype))
    module["main"](*[tvm.runtime.from_dlpack(a) for a in (*inputs, view)])
    result = view.copy()
    view.view(np.uint8).reshape(-1)[:] = _FILL
    assert (memory == _FILL).all(), "a nest wrote outside of its output"
    return result


def _framed(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A copy of the array aligned to 64 bytes between guard bands: (all bytes, the copy)."""
    memory = np.full(array.nbytes + 3 * GUARD, _FILL, dtype=np.uint8)
    start = GUARD + (-(memory.ctypes.data + GUARD)) % 64
    view = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return memory, view
