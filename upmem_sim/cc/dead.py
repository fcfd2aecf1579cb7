"""Dead code: results nobody reads, blocks nobody reaches."""

from __future__ import annotations

from upmem_sim.cc.flow import (
    SP,
    Block,
    Node,
    analyse,
    base_format,
    connect,
    liveness,
)

_PURE = frozenset(("alu", "shift", "unary", "shadd", "movd", "unit", "unit_unary"))


def is_pure(node: Node) -> bool:
    """Nothing but registers and flags change, and control goes on."""
    return not node.fixed and node.target is None and base_format(node.op)[1] in _PURE


def remove_dead(blocks: list[Block], address_taken: frozenset[str]) -> None:
    """Drop pure instructions whose registers and flags are not read (until none is left)."""
    changed = True
    while changed:
        connect(blocks, address_taken)
        liveness(blocks)
        changed = any([_sweep(block) for block in blocks])


def _sweep(block: Block) -> bool:
    live = block.live_out
    kept: list[Node] = []
    for node in reversed(block.nodes):
        if not node.defs & live and not node.defs & SP and is_pure(node):
            continue
        if node.args and node.args[0] == "zero" and base_format(node.op)[1] == "load":
            _give_register(node, live | node.uses)
        kept.append(node)
        live = (live & ~node.defs) | node.uses
    changed = len(kept) != len(block.nodes)
    block.nodes = kept[::-1]
    return changed


def _give_register(node: Node, live: int) -> None:
    """A (volatile) load whose result nobody wants still needs a register: take a dead one."""
    step = 2 if node.op == "ld" else 1
    mask = 3 if node.op == "ld" else 1
    for n in range(0, 14, step):
        if not live & (mask << n):
            node.args[0] = f"d{n}" if node.op == "ld" else f"r{n}"
            analyse(node)
            return


def remove_unreachable(blocks: list[Block], address_taken: frozenset[str]) -> list[Block]:
    """Blocks that control can reach from the first one or through a label's address."""
    connect(blocks, address_taken)
    work = [0] + [k for k, b in enumerate(blocks) if address_taken.intersection(b.labels)]
    seen = set(work)
    while work:
        for s in blocks[work.pop()].successors:
            if s not in seen:
                seen.add(s)
                work.append(s)
    return [block for k, block in enumerate(blocks) if k in seen]
