"""A shift whose one reader is an addition or subtraction becomes part of it.

fold.py does this where the unshifted value is still in a register. Here the shift overwrites it
(`slli a1, a1, 7; add a0, a0, a1`): the shift is dropped, so that its register keeps the old value.
"""

from __future__ import annotations

from upmem_sim.cc.flow import CF, MASK, REGISTERS, ZF, Block, Node, live_after_each, replace
from upmem_sim.isa import GENERAL


def merge_shifts(blocks: list[Block]) -> None:
    """Form lsl_add, lsr_add and lsl_sub. Liveness must be known."""
    for block in blocks:
        if any(node.op in ("lsl", "lsr") for node in block.nodes):
            _merge(block)


def plain(node: Node, operands: int) -> bool:
    """No condition, no target, and not from inline assembly."""
    return node.cc is None and node.target is None and not node.fixed and len(node.args) == operands


def only_reader(nodes: list[Node], made: int, after: list[int]) -> int | None:
    """Index of the one instruction that reads the register made at `made`."""
    mask = nodes[made].defs & REGISTERS
    for i in range(made + 1, len(nodes)):
        if nodes[i].uses & mask:
            dead = not after[i] & mask or nodes[i].defs & mask == mask
            return i if dead else None
        if nodes[i].defs & mask:
            return None
    return None


def _merge(block: Block) -> None:
    nodes = block.nodes
    after = live_after_each(block)
    dropped: set[int] = set()
    for i, node in enumerate(nodes):
        if node.op not in ("lsl", "lsr") or not plain(node, 3) or after[i] & node.defs & (ZF | CF):
            continue
        if not isinstance(node.args[2], int):
            continue
        j = only_reader(nodes, i, after)
        if j is None or after[j] & nodes[j].defs & (ZF | CF):
            continue
        source = MASK.get(str(node.args[1]), 0)
        if any(other.defs & source for other in nodes[i + 1 : j]):
            continue
        if _take_shift(nodes[j], node):
            dropped.add(i)
    if dropped:
        block.nodes = [node for i, node in enumerate(nodes) if i not in dropped]


def _take_shift(node: Node, shift: Node) -> bool:
    """Make `node` do the work of `shift` too."""
    if node.op not in ("add", "sub") or not plain(node, 3):
        return False
    shifted, source, amount = shift.args
    d, a, b = node.args
    if node.op == "add" and a == shifted:
        a, b = b, a
    if b != shifted or a == shifted or a not in GENERAL:
        return False
    if node.op == "sub" and shift.op == "lsr":
        return False
    replace(node, f"{shift.op}_{node.op}", d, a, source, amount)
    return True
