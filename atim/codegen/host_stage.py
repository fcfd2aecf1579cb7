"""A part of a program that stays on the host, as one C function over whole tensors.

The loops of each block are its own, the outermost spatial one cut over threads.
"""

from __future__ import annotations

from dataclasses import dataclass

import tvm
from tvm import tirx
from tvm.s_tir import Schedule
from tvm.tirx import SeqStmt

from atim.codegen.access import accesses
from atim.codegen.host_c import head_text, host_work
from atim.codegen.split import FRONT_PASSES, dissolve
from atim.codegen.transfer import Role, Tensor
from atim.errors import UnsupportedError

__all__ = ["FUNCTION", "HostStage", "host_stage"]

FUNCTION = "work"
_SPATIAL = 0


@dataclass(frozen=True, slots=True)
class HostStage:
    """`host_c` defines `void work(void *const *tensors, uint32_t threads)`; the tensors are those
    named in `args`, in order. `elements` of their loops are run in all, by `threads` threads."""

    host_c: str
    tensors: tuple[Tensor, ...]
    args: tuple[str, ...]
    elements: int
    threads: int


def host_stage(func: tirx.PrimFunc, threads: int) -> HostStage:
    """C of an unscheduled PrimFunc. Raises `UnsupportedError` for what has no C form."""
    schedule = Schedule(func, debug_mask="none", error_render_level="none")
    elements = 0
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        size = 1
        for iv in schedule.get(block).iter_vars:
            size *= int(iv.dom.extent)
        elements += size
        loops = schedule.get_loops(block)
        kinds = [int(iv.iter_type) for iv in schedule.get(block).iter_vars]
        if loops and kinds[0] == _SPATIAL:
            schedule.parallel(schedule.split(loops[0], [threads, None])[0])
    module = tvm.IRModule({"main": schedule.mod["main"]})
    for front_pass in FRONT_PASSES:
        module = front_pass(module)
    lowered = module["main"]
    root = lowered.body.block
    children = list(root.body.seq) if isinstance(root.body, SeqStmt) else [root.body]
    nests = [dissolve(child, {}) for child in children]
    written = {a.buffer for nest in nests for a in accesses(nest.body, {}) if a.store}
    tensors: dict[tirx.Var, Tensor] = {}
    for buffer in (*lowered.params, *root.alloc_buffers):
        role: Role = "output" if buffer in written else "input"
        if any(buffer.same_as(b) for b in root.alloc_buffers):
            role = "intermediate"
        shape = tuple(int(n) for n in buffer.shape)
        tensors[buffer] = Tensor(str(buffer.name), shape, str(buffer.dtype), role)
    if len({t.name for t in tensors.values()}) < len(tensors):
        raise UnsupportedError("host stage: two tensors have the same name")
    title = " and ".join(t.name for t in tensors.values() if t.role == "output")
    helpers: dict[str, str] = {}
    pieces, args = host_work(FUNCTION, nests, tensors, helpers)
    text = "\n".join([head_text(title), *helpers.values(), *pieces])
    return HostStage(text, tuple(tensors.values()), args, elements, threads)
