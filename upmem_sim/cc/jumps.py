"""Control flow: fused jumps, 64-bit equality, jump threading and layout.

A DPU operation can test its own result and jump, so a comparison with zero right after it is free.
Comparisons of 64-bit values become sub/subc with a condition that looks at both words.
"""

from __future__ import annotations

from upmem_sim.cc.flow import (
    CF,
    MASK,
    REGISTERS,
    ZF,
    Block,
    Node,
    analyse,
    base_format,
    is_jump,
    make,
)
from upmem_sim.isa import JUMP_CLASSES, OPERATIONS

INVERSE = {
    "eq": "neq", "neq": "eq", "lts": "ges", "ges": "lts", "les": "gts", "gts": "les",
    "ltu": "geu", "geu": "ltu", "leu": "gtu", "gtu": "leu", "z": "nz", "nz": "z",
    "pl": "mi", "mi": "pl", "xz": "xnz", "xnz": "xz", "xles": "xgts", "xgts": "xles",
    "xleu": "xgtu", "xgtu": "xleu",
}  # fmt: skip
_ON_RESULT = {"eq": "z", "neq": "nz", "lts": "mi", "ges": "pl"}
_FUSED_BITS = 8  # immediate of a fused jump whose result is wanted


def _fits(number: object, bits: int) -> bool:
    return isinstance(number, int) and -(1 << (bits - 1)) <= number < 1 << (bits - 1)


def fuse(blocks: list[Block]) -> None:
    """Merge each final comparison with zero into what made the value. Liveness must be known."""
    for block in blocks:
        last = block.nodes[-1] if block.nodes else None
        if last is None or not is_jump(last.op) or last.fixed:
            continue
        if not _fuse_equality(block) and not _fuse_comparison(block):
            _fuse_result(block)


def _last_definition(nodes: list[Node], end: int, mask: int) -> int | None:
    for i in range(end - 1, -1, -1):
        if nodes[i].defs & mask:
            return i
    return None


def _can_sink(nodes: list[Node], i: int, end: int) -> bool:
    """Instruction i may move down to just before `end`."""
    node = nodes[i]
    for other in nodes[i + 1 : end]:
        if REGISTERS & (node.defs & (other.defs | other.uses) | node.uses & other.defs):
            return False
        if other.uses & (CF | ZF) or (node.uses & CF and other.defs & CF):
            return False
    return True


def _movable(node: Node) -> bool:
    return not node.fixed and node.cc is None and node.target is None


def _fuse_result(block: Block) -> None:
    nodes = block.nodes
    jump = nodes[-1]
    name, zero = jump.args
    cc = _ON_RESULT.get(jump.op[1:])
    if cc is None or zero != 0 or not isinstance(name, str) or name not in MASK:
        return
    end = len(nodes) - 1
    i = _last_definition(nodes, end, MASK[name])
    if i is None or nodes[i].args[0] != name or not _movable(nodes[i]):
        return
    node = nodes[i]
    wanted = bool(block.live_out & MASK[name])
    if not _has_fused_form(node, cc, wanted) or not _can_sink(nodes, i, end):
        return
    args = node.args if wanted else ["zero", *node.args[1:]]
    fused = Node(node.op, list(args), cc, jump.target, line=node.line)
    del nodes[end], nodes[i]
    nodes.append(analyse(fused))


def _has_fused_form(node: Node, cc: str, wanted: bool) -> bool:
    base, fmt = base_format(node.op)
    if fmt not in ("alu", "shift", "unary") or node.op not in (base, "move"):
        return False
    row = OPERATIONS[base]
    if row.jump is None or cc not in JUMP_CLASSES[row.jump]:
        return False
    if node.op == "move":
        return isinstance(node.args[1], str)
    if fmt == "unary":
        return True
    a, b = node.args[1], node.args[2]
    if fmt == "shift" or isinstance(b, str):
        return isinstance(a, str) or (wanted and _fits(a, _FUSED_BITS))
    return isinstance(a, str) and _fits(b, _FUSED_BITS if wanted else row.zero)


def _fuse_equality(block: Block) -> bool:
    """`(a ^ c) | (b ^ d)` compared with 0: sub a, c then subc b, d with xz or xnz."""
    nodes = block.nodes
    jump = nodes[-1]
    end = len(nodes) - 1
    if jump.op not in ("jeq", "jneq") or jump.args[1] != 0 or not isinstance(jump.args[0], str):
        return False
    either = _last_definition(nodes, end, MASK.get(jump.args[0], 0))
    if either is None or nodes[either].op != "or" or not _movable(nodes[either]):
        return False
    words = [_difference_word(block, either, name, end) for name in nodes[either].args[1:]]
    low, high = words[0], words[1] if len(words) > 1 else None
    if low is None or high is None or low == high:
        return False
    if block.live_out & MASK[jump.args[0]] or _read_between(nodes, either, end):
        return False
    if not _fits_compare(nodes[high]) or not all(isinstance(x, str) for x in nodes[low].args[1:]):
        return False
    first = make("sub", "zero", *nodes[low].args[1:], like=jump)
    second = make("subc", "zero", *nodes[high].args[1:], like=jump)
    second.cc = "xz" if jump.op == "jeq" else "xnz"
    second.target = jump.target
    kept = [n for i, n in enumerate(nodes[:end]) if i not in (low, high, either)]
    block.nodes = [*kept, first, analyse(second)]
    return True


def _fits_compare(node: Node) -> bool:
    return isinstance(node.args[1], str) and (
        isinstance(node.args[2], str) or _fits(node.args[2], 11)
    )


def _read_between(nodes: list[Node], made: int, end: int) -> bool:
    mask = nodes[made].defs & REGISTERS
    return any(n.uses & mask or n.uses & (CF | ZF) for n in nodes[made + 1 : end])


def _difference_word(block: Block, either: int, name: object, end: int) -> int | None:
    """The xor that made `name`, if only `either` reads it and its operands last to the end."""
    nodes = block.nodes
    if not isinstance(name, str) or name not in MASK:
        return None
    mask = MASK[name]
    i = _last_definition(nodes, either, mask)
    if i is None or nodes[i].op != "xor" or not _movable(nodes[i]) or len(nodes[i].args) != 3:
        return None
    sources = nodes[i].uses & REGISTERS
    for j in range(i, end):
        # `either` and the xors go away, so what they overwrite stays
        if j != i and j != either and nodes[j].uses & mask:
            return None
        if j != i and j != either and nodes[j].defs & sources and nodes[j].op != "xor":
            return None
        if j != i and nodes[j].op == "xor" and nodes[j].defs & sources:
            return None
    live_later = block.live_out & mask and not nodes[either].defs & mask
    return None if live_later else i


def _fuse_comparison(block: Block) -> bool:
    """A 0 or 1 of comparing 64-bit values that only the jump reads: compare and jump at once."""
    nodes = block.nodes
    jump = nodes[-1]
    name, zero = jump.args
    if jump.op not in ("jeq", "jneq") or zero != 0 or not isinstance(name, str):
        return False
    end, mask = len(nodes) - 1, MASK.get(name, 0)
    i = _last_definition(nodes, end, mask)
    if i is None or i == 0 or block.live_out & mask:
        return False
    low, high = nodes[i - 1], nodes[i]
    if high.op != "subc" or high.cc not in INVERSE or high.target is not None or high.fixed:
        return False
    if low.op != "sub" or low.args[0] != "zero" or low.fixed or not _fits_compare(high):
        return False
    behind = nodes[i + 1 : end]
    if any(
        n.defs & (low.uses | high.uses) & REGISTERS or n.uses & (mask | CF | ZF) for n in behind
    ):
        return False
    fused = make("subc", "zero", *high.args[1:], like=high)
    fused.cc = high.cc if jump.op == "jneq" else INVERSE[high.cc]
    fused.target = jump.target
    block.nodes = [*nodes[: i - 1], *behind, low, analyse(fused)]
    return True


# ------------------------------------------------------------------------------ layout


def straighten(blocks: list[Block]) -> list[Block]:
    """Thread jumps to jumps, drop jumps to the next block, turn conditions round."""
    places = {name: k for k, block in enumerate(blocks) for name in block.labels}
    for k in range(len(blocks)):
        _invert_over_jump(blocks, k)
    for block in blocks:
        if block.nodes:
            _thread(blocks, places, block.nodes[-1])
    for k in range(len(blocks)):
        _invert_over_jump(blocks, k)
        _drop_jump_to_next(blocks, k)
    return blocks


def _alone(block: Block) -> Node | None:
    """The jump that is all a block holds."""
    if len(block.nodes) == 1 and block.nodes[0].op == "jump" and not block.nodes[0].fixed:
        return block.nodes[0]
    return None


def _thread(blocks: list[Block], places: dict[str, int], last: Node) -> None:
    if last.fixed or last.op == "call":
        return
    for _ in range(8):  # a chain may be a loop
        if not isinstance(last.target, str) or last.target not in places:
            return
        jump = _alone(blocks[places[last.target]])
        if jump is None or jump is last:
            return
        if jump.args:
            if last.op == "jump":
                last.target, last.args, last.reads = None, list(jump.args), jump.reads
                analyse(last)
            return
        if not isinstance(jump.target, str) or not jump.target.startswith(".L"):
            return
        last.target = jump.target


def _invert_over_jump(blocks: list[Block], k: int) -> None:
    """jcc L1; jump L2; L1: -> jncc L2; L1:"""
    if k + 2 >= len(blocks) or not blocks[k].nodes:
        return
    last, middle = blocks[k].nodes[-1], blocks[k + 1]
    jump = _alone(middle)
    if jump is None or middle.labels or last.fixed or last.target not in blocks[k + 2].labels:
        return
    if jump.args or not isinstance(jump.target, str) or not jump.target.startswith(".L"):
        return
    if is_jump(last.op) and last.op[1:] in INVERSE:
        last.op = "j" + INVERSE[last.op[1:]]
    elif last.cc in INVERSE and last.op != "acquire":
        last.cc = INVERSE[last.cc]
    else:
        return
    last.target = jump.target
    analyse(last)
    middle.nodes.clear()


def _drop_jump_to_next(blocks: list[Block], k: int) -> None:
    following = k + 1
    while following < len(blocks) and not blocks[following].nodes and following > k + 1:
        following += 1
    names = {name for block in blocks[k + 1 : following + 1] for name in block.labels}
    nodes = blocks[k].nodes
    if not nodes or nodes[-1].fixed or nodes[-1].target not in names:
        return
    last = nodes[-1]
    if last.op == "jump" or is_jump(last.op):
        nodes.pop()
    elif last.cc in _ON_RESULT.values() and base_format(last.op)[1] in ("alu", "shift", "unary"):
        if last.args[0] == "zero":
            nodes.pop()
        else:
            last.cc = last.target = None
            analyse(last)
