"""Both words of a 64-bit value by one instruction: copies, constants and extended loads.

`movd` and `swapd` copy a register pair; `.s` and `.u` forms extend a 32-bit result into one. RV32
has neither, so that its code makes the words one after the other, in whatever registers.
"""

from __future__ import annotations

from upmem_sim.cc.flow import (
    CF,
    MASK,
    REGISTERS,
    ZF,
    Block,
    Node,
    base_format,
    make,
)
from upmem_sim.cc.merge import plain
from upmem_sim.isa import GENERAL

_SIGNED_LOADS = ("lw", "lhs", "lbs")
_UNSIGNED_LOADS = ("lw", "lhu", "lbu")
_MEMORY = frozenset(("load", "store", "store_id", "dma", "acquire", "thread", "call", "stop"))


def _is_plain(node: Node, ops: tuple[str, ...]) -> bool:
    return node.op in ops and plain(node, len(node.args)) and not node.big


def _is_sign(node: Node, low: object) -> bool:
    return node.op == "asr" and plain(node, 3) and node.args[1:] == [low, 31]


def join_words(blocks: list[Block]) -> None:
    """Replace two instructions that make the words of a pair by one. Liveness must be known."""
    for block in blocks:
        start = 0
        while start < len(block.nodes):
            start = _join_from(block, start)


def _join_from(block: Block, i: int) -> int:
    """Join the instruction at `i` with a later one if there is such; where to go on."""
    nodes = block.nodes
    name = nodes[i].args[0] if nodes[i].args else None
    if name not in GENERAL or not _may_start(nodes[i]):
        return i + 1
    partner = f"r{GENERAL[str(name)] ^ 1}"
    for j in range(i + 1, len(nodes)):
        if nodes[j].defs & MASK[partner]:
            _join(block, i, j)
            break
        if nodes[j].uses & MASK[partner] or nodes[j].defs & MASK[str(name)]:
            break
    return i + 1


def _may_start(node: Node) -> bool:
    return _is_plain(node, ("move", *_SIGNED_LOADS, *_UNSIGNED_LOADS))


def _join(block: Block, i: int, j: int) -> None:
    nodes = block.nodes
    first, second = nodes[i], nodes[j]
    if nodes[j].args[0] != f"r{GENERAL[str(first.args[0])] ^ 1}":
        return
    low_first = GENERAL[str(first.args[0])] % 2 == 1
    low, high = (first, second) if low_first else (second, first)
    joint = _joint(low, high)
    if joint is None or (second.uses & first.defs and not _is_sign(second, first.args[0])):
        return
    if _reads_flags(block, i, first.defs | joint.defs):
        return
    if _reads_flags(block, j, second.defs | joint.defs):
        return
    between = nodes[i + 1 : j]
    if all(_passes(node, second, first.defs) for node in between):
        nodes[i] = joint
    elif all(_passes(node, first, 0) for node in between):
        nodes[j] = joint
        del nodes[i]
        return
    else:
        return
    del nodes[j]


def _reads_flags(block: Block, i: int, flags: int) -> bool:
    """Whether one of the flags is read after the instruction at `i` before it is written."""
    flags &= ZF | CF
    for k in range(i + 1, len(block.nodes)):
        if not flags:
            return False
        if block.nodes[k].uses & flags:
            return True
        flags &= ~block.nodes[k].defs
    return bool(block.live_out & flags)


def _passes(node: Node, moved: Node, ignored: int) -> bool:
    """`moved` may change places with `node`; it does not need the registers `ignored`."""
    uses = moved.uses & ~ignored
    if REGISTERS & (moved.defs & (node.defs | node.uses) | uses & node.defs):
        return False
    if node.uses & (CF | ZF):
        return False
    return node.op == "move" or not (_touches_memory(moved) and _touches_memory(node))


def _touches_memory(node: Node) -> bool:
    return node.fixed or base_format(node.op)[1] in _MEMORY


def _joint(low: Node, high: Node) -> Node | None:
    pair = f"d{GENERAL[str(high.args[0])]}"
    if _is_sign(high, low.args[0]):
        if _is_plain(low, _SIGNED_LOADS):
            return make(f"{low.op}.s", pair, *low.args[1:], like=low)
        if _is_plain(low, ("move",)) and low.args[1] in GENERAL:
            return make("move.s", pair, low.args[1], like=low)
        return None
    if not _is_plain(high, ("move",)):
        return None
    word = high.args[1]
    if word == 0 and _is_plain(low, _UNSIGNED_LOADS):
        return make(f"{low.op}.u", pair, *low.args[1:], like=low)
    if not _is_plain(low, ("move",)):
        return None
    return _joint_move(pair, low, high)


def _joint_move(pair: str, low: Node, high: Node) -> Node | None:
    a, b = low.args[1], high.args[1]
    if a in GENERAL and b in GENERAL:
        source = GENERAL[str(a)]
        own = {low.args[0], high.args[0]}
        if source ^ 1 != GENERAL[str(b)] or own & {a, b}:
            return None
        return make("movd" if source % 2 else "swapd", pair, f"d{source & ~1}", like=low)
    if b == 0 and (a in GENERAL or isinstance(a, int)):
        return make("move.u", pair, a, like=low) if a not in {high.args[0]} else None
    if isinstance(a, int) and isinstance(b, int) and b == (-1 if a < 0 else 0):
        return make("move.s", pair, a, like=low)
    return None
