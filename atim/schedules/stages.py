"""A program of several reductions -> stages, one after another, each at most one reduction.

A kernel holds one reduction with what is element-wise around it. Longer programs (softmax,
normalisations, maxima with their places) are cut between their blocks: each stage is a PrimFunc of
its own, and tensors between stages lie on the host. Blocks that can't be placed on DPUs, and
functions of single elements between stages, become stages of the host, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import tvm
import tvm_ffi
from tvm import ir, s_tir, tirx
from tvm.s_tir import Schedule

from atim.errors import UnsupportedError
from atim.functions import KERNEL, on_dpus
from atim.schedules.arguments import rewrite_arguments
from atim.schedules.gathers import named_apart, with_gathers
from atim.schedules.loads import calls_of
from atim.schedules.normal import normal
from atim.schedules.program import analyse, is_reduction

__all__ = ["Stage", "stages_of"]

# arithmetic that is worth repeating for each reader rather than a tensor between stages
_CHEAP = 2

# TVM's nodes have no Python types worth naming
Node = Any


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of a program: reads `inputs`, writes `outputs` (names of its parameters, in order).

    `reason` says why it runs on the host, None for a stage of the DPUs.
    """

    name: str
    func: tirx.PrimFunc
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    reason: str | None


def stages_of(func: tirx.PrimFunc) -> tuple[Stage, ...]:
    """The stages of a program in order; one, the program itself, where a single kernel holds it.

    Raises `UnsupportedError` with every block's reason where nothing can be placed on DPUs.
    """
    func = _plain(normal(func))
    whole = _single(func)
    if whole is not None:
        return (whole,)
    apart = named_apart(rewrite_arguments(func))
    schedule = Schedule(apart, debug_mask="none", error_render_level="none")
    _inline(schedule)
    gathered = with_gathers(schedule.mod["main"])
    func = gathered.func
    schedule = Schedule(func, debug_mask="none", error_render_level="none")
    blocks = _blocks(schedule)
    _check_names(func, blocks)
    groups = _groups(func, blocks)
    nests = _nests(func)
    stages = []
    for at, group in enumerate(groups):
        later = [r.source for other in groups[at + 1 :] for i in other for r in blocks[i].reads]
        stages.append(_stage(func, blocks, nests, group, later))
        if stages[-1].outputs[-1] in gathered.reasons:
            stages[-1] = replace(stages[-1], reason=gathered.reasons[stages[-1].outputs[-1]])
    stages = _near_their_operands(stages, [[blocks[i] for i in group] for group in groups])
    if all(stage.reason for stage in stages):
        reasons = dict.fromkeys(str(stage.reason) for stage in stages)
        raise UnsupportedError(f"nothing can be placed on DPUs: {'; '.join(reasons)}")
    return tuple(stages)


def _plain(func: tirx.PrimFunc) -> tirx.PrimFunc:
    """The program with x * x for powers of 2, as NumPy computes them: no function of the host; and
    with an exclusive or for the complement."""

    def square(call: ir.Call, mutator: tvm_ffi.StructuralMutator) -> Node:
        name = str(getattr(call.op, "name", "")).rpartition(".")[2]
        power = call.args[1] if name == "pow" else None
        if isinstance(power, tirx.FloatImm) and float(power.value) == 2.0:
            base = mutator.mutate(call.args[0])
            return base * base
        return mutator.default_mutate(call)

    def complement(node: Node, mutator: tvm_ffi.StructuralMutator) -> Node:
        ones = tirx.max_value(str(node.ty)) if "u" in str(node.ty) else tirx.const(-1, str(node.ty))
        return mutator.mutate(node.a) ^ ones

    rows = [(ir.Call, square), (tirx.BitwiseNot, complement)]
    body = tvm_ffi.structural_mutate(func.body, rows)
    return func if body.same_as(func.body) else tirx.PrimFunc(func.params, body, attrs=func.attrs)


def _single(func: tirx.PrimFunc) -> Stage | None:
    """The program as one stage of the DPUs, if it has one output and a kernel can hold it."""
    try:
        program = analyse(func)
    except UnsupportedError:
        return None
    last = program.output if program.epilogue is None else program.epilogue.output
    names = [str(p.name) for p in func.params]
    if last.name != names[-1] or program.output.name in names[:-1]:
        return None
    after = program.epilogue
    if after and not after.fused and prod(after.output.shape) > program.results:
        return None  # the host finishes results, and what is larger is no finish
    return Stage(program.block, func, tuple(names[:-1]), (last.name,), None)


def _near_their_operands(stages: Sequence[Stage], blocks: Sequence[Sequence[Node]]) -> list[Stage]:
    """Functions of single elements between stages are the host's, if DPUs have anything else to do:
    their operands and results are there anyway, and a DPU takes a thousand instructions for one. So
    are copies of what the host has put in order."""
    at_host = {name for stage in stages if stage.reason is not None for name in stage.outputs}
    slow = [
        [name for block in group for name, _ in _calls(block) if name in KERNEL]
        + ["a copy" for block in group if _is_copy(block, at_host)]
        if not any(is_reduction(block) for block in group)
        else []
        for group in blocks
    ]
    if not any(s.reason is None and not names for s, names in zip(stages, slow, strict=True)):
        return list(stages)
    return [
        replace(s, reason=f"block {s.name}: {names[0]} is done on the host, where its operand is")
        if names and s.reason is None
        else s
        for s, names in zip(stages, slow, strict=True)
    ]


def _is_copy(block: Node, made: Collection[str]) -> bool:
    """Elements of one of these tensors, as they are."""
    value = block.body.value if isinstance(block.body, tirx.BufferStore) else None
    return isinstance(value, ir.TensorLoad) and str(value.source.name) in made


def _blocks(schedule: Schedule) -> list[Node]:
    handles = schedule.get_child_blocks(schedule.get_sblock("root"))
    return [schedule.get(handle) for handle in handles]


def _nests(func: tirx.PrimFunc) -> list[Node]:
    body = func.body.block.body
    return list(body.seq) if isinstance(body, tirx.SeqStmt) else [body]


def _check_names(func: tirx.PrimFunc, blocks: Sequence[Node]) -> None:
    """Tensors between stages are known by name."""
    known: dict[str, Node] = {str(p.name): p for p in func.params}
    for block in blocks:
        for region in (*block.reads, *block.writes):
            buffer = region.source
            if not known.setdefault(str(buffer.name), buffer).same_as(buffer):
                raise UnsupportedError(
                    f"block {block.name_hint}: two tensors are named {buffer.name}"
                )


def _calls(block: Node) -> list[tuple[str, str]]:
    """(name, type) of the functions in the block."""
    return calls_of(block.body.value) if isinstance(block.body, tirx.BufferStore) else []


def _host_call(block: Node) -> str | None:
    """A function in the block that kernels don't have."""
    return next((name for name, dtype in _calls(block) if not on_dpus(name, dtype)), None)


def _operations(block: Node) -> int:
    count = 0

    def visit(node: Node) -> None:
        nonlocal count
        count += hasattr(node, "a") and hasattr(node, "b")

    tvm_ffi.structural_walk(block.body.value, [(ir.Expr, visit)])
    return count + sum(KERNEL.get(name, 0) for name, _ in _calls(block))


def _inline(schedule: Schedule) -> None:
    """Element-wise blocks into the blocks that read them, where no work of weight is repeated."""
    refused: set[str] = set()
    while True:
        blocks = _blocks(schedule)
        names = [str(block.name_hint) for block in blocks]
        chosen = next(
            (
                n
                for n, b in zip(names, blocks, strict=True)
                if n not in refused and _may_inline(schedule, blocks, b)
            ),
            None,
        )
        if chosen is None:
            return
        try:
            schedule.compute_inline(schedule.get_sblock(chosen))
        except tvm.s_tir.ScheduleError:
            refused.add(chosen)


def _may_inline(schedule: Schedule, blocks: Sequence[Node], block: Node) -> bool:
    result = block.writes[0].source
    if is_reduction(block) or any(result.same_as(p) for p in schedule.mod["main"].params):
        return False
    readers = [b for b in blocks if any(r.source.same_as(result) for r in b.reads)]
    if not readers or _host_call(block):
        return False
    repeated = len(readers) > 1 or len(readers[0].iter_vars) > len(block.iter_vars)
    after_sum = any(
        is_reduction(b) and b.writes[0].source.same_as(r.source)
        for b in blocks
        for r in block.reads
    )
    # what follows a reduction is its epilogue, unless its readers want more than one element of it
    return not (repeated and (_operations(block) > _CHEAP or after_sum)) and not (
        after_sum and any(is_reduction(b) for b in readers)
    )


def _groups(func: tirx.PrimFunc, blocks: Sequence[Node]) -> list[list[int]]:
    """Positions of the blocks of each stage: a reduction with its epilogue, or one block."""
    groups: list[list[int]] = []
    for at in range(len(blocks)):
        last = groups[-1] if groups else []
        if len(last) == 1 and _is_epilogue(func, blocks, last[0], at):
            last.append(at)
        else:
            groups.append([at])
    return groups


def _is_epilogue(func: tirx.PrimFunc, blocks: Sequence[Node], main: int, at: int) -> bool:
    """Block `at` only finishes the results of the reduction `main`, element by element."""
    first, after = blocks[main], blocks[at]
    if not is_reduction(first) or is_reduction(after) or _host_call(first) or _host_call(after):
        return False
    result = first.writes[0].source
    if any(result.same_as(p) for p in func.params):
        return False
    readers = [
        b for b in blocks if any(r.source.same_as(result) for r in b.reads) and not b.same_as(first)
    ]
    same = [int(n) for n in result.shape] == [int(n) for n in after.writes[0].source.shape]
    return len(readers) == 1 and readers[0].same_as(after) and same


def _stage(
    func: tirx.PrimFunc,
    blocks: Sequence[Node],
    nests: Sequence[Node],
    group: Sequence[int],
    later: Sequence[Node],
) -> Stage:
    """The blocks of a group as a program of their own."""
    mine = [blocks[i] for i in group]
    name = ", ".join(str(block.name_hint) for block in mine)
    piece, inputs, outputs = _piece(func, mine, [nests[i] for i in group], later)
    reason = None
    calls = [(str(b.name_hint), c) for b in mine if (c := _host_call(b))]
    if calls:
        reason = f"block {calls[0][0]}: {calls[0][1]} is done on the host"
    else:
        try:
            analyse(piece)
        except UnsupportedError as error:
            reason = str(error)
    return Stage(name, piece, inputs, outputs, reason)


def _piece(
    func: tirx.PrimFunc, blocks: Sequence[Node], nests: Sequence[Node], later: Sequence[Node]
) -> tuple[tirx.PrimFunc, tuple[str, ...], tuple[str, ...]]:
    """(function, names of inputs, names of outputs) of some nests; `later` is read after them."""
    reads = {str(r.source.name): r.source for b in blocks for r in b.reads}
    writes = {str(w.source.name): w.source for b in blocks for w in b.writes}
    kept = {str(b.name) for b in (*func.params, *later)}
    inputs = {name: b for name, b in reads.items() if name not in writes}
    outputs = {name: b for name, b in writes.items() if name in kept}
    private = [b for name, b in writes.items() if name not in kept]
    body = tirx.SeqStmt(list(nests)) if len(nests) > 1 else nests[0]
    root = s_tir.SBlock([], [], [], "root", body, alloc_buffers=private)
    piece = tirx.PrimFunc(
        [*inputs.values(), *outputs.values()], s_tir.SBlockRealize([], True, root)
    )
    piece = s_tir.renew_defs(piece.with_attr("global_symbol", "main").with_attr("s_tir", True))
    return piece, tuple(inputs), tuple(outputs)
