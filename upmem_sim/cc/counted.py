"""Counted loops that only read their arrays: running pointers and a count down to zero.

UPMEM's compiler keeps the index in loops that store to an array by it (`lsl_add` for each access),
but turns reductions into pointers, whose count then costs one instruction instead of two (code of
SDK 2023.2 and 2025.1: int64 sum `ld, add, addc, add pointer, add count -1 nz`). LLVM's own pass
for this is off, since it would change the storing loops too.
"""

from __future__ import annotations

from dataclasses import dataclass

from upmem_sim.cc.flow import (
    CF,
    MASK,
    SP,
    ZF,
    Block,
    Node,
    base_format,
    ends_block,
    live_after_each,
    make,
)
from upmem_sim.cc.translate import signed
from upmem_sim.isa import GENERAL

_SCRATCH = 0x3FFF  # r0-r13


@dataclass(slots=True)
class _Loop:
    """A block that jumps to itself while an index runs from a constant to a limit.

    entry     block that leads into it (and nowhere else)
    index     register; `step` is the node that adds 1, `start` its first value
    limit     register or constant the last node compares it with
    accesses  nodes that add the index, scaled, to an invariant base: (node, base, shift)
    after     bits live where the loop is left
    """

    block: Block
    entry: Block
    index: str
    step: Node
    start: int
    limit: str | int
    accesses: list[tuple[Node, str, int]]
    after: int


def run_pointers(blocks: list[Block]) -> bool:
    """Rewrite the loops that qualify; whether there was one. Liveness must be known."""
    loops = (_counted_loop(blocks, k) for k in range(len(blocks)))
    return any([loop is not None and _rewrite(loop) for loop in loops])


def _counted_loop(blocks: list[Block], k: int) -> _Loop | None:
    block = blocks[k]
    if len(block.nodes) < 3 or k not in block.successors or len(block.successors) != 2:
        return None
    entry, last = _only_entry(blocks, k), block.nodes[-1]
    if entry is None or last.op != "jneq" or last.fixed:
        return None
    index, limit = last.args
    if not isinstance(index, str) or index not in GENERAL or not isinstance(limit, str | int):
        return None
    if isinstance(limit, str) and _written(block, limit):  # as when it is loaded from the stack
        return None
    exits = [s for s in block.successors if s != k]
    after = block.leaves | (blocks[exits[0]].live_in if exits else 0)
    start = _constant_at_end(entry, index)
    steps = [node for node in block.nodes if node.defs & MASK[index]]
    if start is None or len(steps) != 1 or after & MASK[index] or block.leaves:
        return None
    step = steps[0]
    if step.op != "add" or step.args != [index, index, 1] or step.fixed:
        return None
    accesses = _accesses(block, index, step)
    if not accesses or _flags_matter(block, [step, *(node for node, _, _ in accesses)]):
        return None
    return _Loop(block, entry, index, step, start, limit, accesses, after)


def _only_entry(blocks: list[Block], k: int) -> Block | None:
    """The block that leads into block k and nowhere else, if k has no other way in."""
    entries = [b for j, b in enumerate(blocks) if k in b.successors and j != k]
    # the function itself enters at its first block
    if k == 0 or len(entries) != 1 or entries[0].successors != [k] or entries[0].leaves:
        return None
    last = entries[0].nodes[-1] if entries[0].nodes else None
    # behind a jump of inline assembly nothing can be added
    return None if last is not None and ends_block(last) and last.op != "jump" else entries[0]


def _flags_matter(block: Block, changed: list[Node]) -> bool:
    """A changed instruction makes the carry of another (a 64-bit index), or flags cross an edge."""
    which = {id(node) for node in changed}
    after = live_after_each(block)
    flags = block.live_in | block.live_out
    for node, live in zip(block.nodes, after, strict=True):
        flags |= live if id(node) in which else 0
    return bool(flags & (CF | ZF))


def _constant_at_end(block: Block, name: str) -> int | None:
    for node in reversed(block.nodes):
        if node.defs & MASK[name]:
            constant = node.op == "move" and node.args[0] == name and not node.fixed
            return node.args[1] if constant and isinstance(node.args[1], int) else None
    return None


def _accesses(block: Block, index: str, step: Node) -> list[tuple[Node, str, int]] | None:
    """Every use of the index as an array access, None if it is used in any other way."""
    found: list[tuple[Node, str, int]] = []
    stepped = False
    for node in block.nodes[:-1]:
        if node is step:
            stepped = True
            continue
        if not node.uses & MASK[index]:
            continue
        access = _scaled(node, index)
        if stepped or access is None or node.fixed or _written(block, access[0]):
            return None
        found.append((node, *access))
    return None if _stores_by(block, found) else found


def _scaled(node: Node, index: str) -> tuple[str, int] | None:
    """(base, shift) of `base + (index << shift)`."""
    if node.cc is not None or node.target is not None:
        return None
    if node.op == "lsl_add" and node.args[2] == index and isinstance(node.args[3], int):
        base, shift = node.args[1], node.args[3]
    elif node.op == "add" and index in node.args[1:]:
        base, shift = (node.args[1] if node.args[2] == index else node.args[2]), 0
    else:
        return None
    if not isinstance(base, str) or base not in GENERAL or base == index:
        return None
    return base, shift


def _written(block: Block, name: str) -> bool:
    return any(node.defs & MASK[name] for node in block.nodes)


def _stores_by(block: Block, accesses: list[tuple[Node, str, int]]) -> bool:
    """Some access is the address of a store."""
    nodes = {id(node) for node, _, _ in accesses}
    held: dict[str, bool] = {}
    for node in block.nodes:
        fmt = base_format(node.op)[1]
        if fmt in ("store", "store_id", "dma") and held.get(str(node.args[0])):
            return True
        if fmt == "dma" and held.get(str(node.args[1])):
            return True
        for name, number in GENERAL.items():
            if node.defs >> number & 1:
                held[name] = id(node) in nodes
    return False


def _rewrite(loop: _Loop) -> bool:
    keys = list(dict.fromkeys((base, shift) for _, base, shift in loop.accesses))
    pointers = _choose_registers(loop, keys)
    if pointers is None:
        return False
    block, like = loop.block, loop.step
    setup: list[Node] = []
    # the count first: a pointer may take the limit's register
    count = loop.limit if isinstance(loop.limit, str) else signed(loop.limit - loop.start)
    if isinstance(count, str) and loop.start:
        setup.append(make("add", loop.index, count, signed(-loop.start), like=like))
    else:
        setup.append(make("move", loop.index, count, like=like))
    for key, pointer in pointers.items():
        base, shift = key
        if loop.start:
            first = signed(loop.start << shift)
            setup.append(make("add", pointer, base, first, like=like))
        elif pointer != base:
            setup.append(make("move", pointer, base, like=like))
    for node, base, shift in loop.accesses:
        i = block.nodes.index(node)
        block.nodes[i] = make("move", node.args[0], pointers[base, shift], like=node)
    jump = block.nodes[-1]
    block.nodes = [node for node in block.nodes[:-1] if node is not loop.step]
    for (_, shift), pointer in pointers.items():
        block.nodes.append(make("add", pointer, pointer, 1 << shift, like=like))
    block.nodes.append(make("add", loop.index, loop.index, -1, like=like))
    block.nodes.append(make("jneq", loop.index, 0, like=jump, target=jump.target))
    entry = loop.entry.nodes
    at = len(entry) - 1 if entry and entry[-1].op == "jump" else len(entry)
    entry[at:at] = setup
    return True


def _choose_registers(
    loop: _Loop, keys: list[tuple[str, int]]
) -> dict[tuple[str, int], str] | None:
    """A register for each pointer: its base where that is not needed again, else a free one."""
    block = loop.block
    busy = block.live_in | loop.after | loop.entry.live_out
    for node in block.nodes:
        busy |= node.defs | node.uses
    free = [name for name in GENERAL if not MASK[name] & busy and MASK[name] & _SCRATCH]
    if isinstance(loop.limit, str) and _unused_but_for_limit(loop):
        free.append(loop.limit)
    access_nodes = {id(node) for node, _, _ in loop.accesses}
    chosen: dict[tuple[str, int], str] = {}
    for base, shift in keys:
        others = [
            node for node in block.nodes if node.uses & MASK[base] and id(node) not in access_nodes
        ]
        alone = sum(1 for other, _ in keys if other == base) == 1
        if alone and not others and not (loop.after | SP) & MASK[base]:
            chosen[base, shift] = base
        elif free:
            chosen[base, shift] = free.pop(0)
        else:
            return None
    return chosen


def _unused_but_for_limit(loop: _Loop) -> bool:
    """The limit's register is free once the count is known."""
    assert isinstance(loop.limit, str)
    mask = MASK[loop.limit]
    if loop.after & mask or any(base == loop.limit for _, base, _ in loop.accesses):
        return False
    return not any((node.uses | node.defs) & mask for node in loop.block.nodes[:-1])
