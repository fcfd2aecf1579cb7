"""64-bit sums and differences: RV32's compare-and-add becomes the DPU's add/addc and sub/subc.

RV32 has no carry: `add lo, a, b; sltu c, lo, a; add t, ah, bh; add hi, t, c`. The comparison equals
the carry of the first addition, so the group becomes `add lo, a, b; addc hi, ah, bh`. The two must
stand together, since most instructions write CF: each may move over what it does not depend on.
"""

from __future__ import annotations

from dataclasses import dataclass

from upmem_sim.cc.flow import CF, MASK, REGISTERS, ZF, Block, Node, live_after_each, make
from upmem_sim.cc.merge import only_reader, plain


@dataclass(frozen=True, slots=True)
class _Group:
    """Indices of the parts in their block, and the pair that replaces them.

    low     the 32-bit sum or difference of the low words
    test    the comparison that yields its carry or borrow
    middle  sum or difference of the high words without carry, None if there is none of its own
    top     adds (subtracts) the carry
    high    replacement of `middle` and `top`: addc or subc
    """

    low: int
    test: int
    middle: int | None
    top: int
    high: Node


def form_carries(blocks: list[Block]) -> None:
    """Replace every carry group that can be brought together. Liveness must be known."""
    for block in blocks:
        start: int | None = 0
        while start is not None:
            start = _form_one(block, start)


def _form_one(block: Block, start: int) -> int | None:
    """Replace the first group at or after `start`; where to go on, None at the end."""
    nodes = block.nodes
    if not any(node.op == "sub" and node.cc for node in nodes[start:]):
        return None
    after = live_after_each(block)
    for i in range(start, len(nodes)):
        if nodes[i].op != "sub" or nodes[i].cc is None or nodes[i].target is not None:
            continue
        if nodes[i].fixed:
            continue
        for find in (_sum_group, _difference_group):
            group = find(nodes, i, after)
            if group is None or _flags_used(group, after):
                continue
            if _bring_together(block, group):
                return max(0, i - 2)
    return None


# ------------------------------------------------------------------------ recognition


def _last_definition(nodes: list[Node], before: int, mask: int) -> int | None:
    for i in range(before - 1, -1, -1):
        if nodes[i].defs & mask:
            return i
    return None


def _written(nodes: list[Node], low: int, high: int, mask: int) -> bool:
    return any(nodes[i].defs & mask for i in range(low, high))


def _plain(node: Node, op: str) -> bool:
    return node.op == op and plain(node, 3)


def _mask(operand: object) -> int:
    return MASK.get(operand, 0) if isinstance(operand, str) else 0


def _is_carry(test: Node, low: Node) -> bool:
    """`test` computes the carry of the addition `low` (from its result)."""
    _, left, right = test.args
    result, a, b = low.args
    if left != result:
        return False
    if test.cc == "z":
        return right == 0 and b == 1
    if test.cc != "ltu":
        return False
    if isinstance(right, str):
        return right in (a, b) and right != result
    return right == b and right != 0


def _sum_group(nodes: list[Node], i: int, after: list[int]) -> _Group | None:
    test = nodes[i]
    left = test.args[1]
    low = _last_definition(nodes, i, _mask(left))
    if low is None or not _plain(nodes[low], "add") or not _is_carry(test, nodes[low]):
        return _decrement_group(nodes, i, after)
    if _written(nodes, low + 1, i, _mask(test.args[2])):
        return None
    top = only_reader(nodes, i, after)
    if top is None or not _plain(nodes[top], "add"):
        return None
    carry = test.args[0]
    hi, a, b = nodes[top].args
    other = b if a == carry else a
    if other == carry or carry not in (a, b):
        return None
    middle = _middle(nodes, top, other, "add", after)
    if middle is not None:
        return _Group(low, i, middle, top, _carry_node("addc", hi, nodes[middle]))
    if isinstance(other, str):
        high = make("addc", hi, other, 0, like=nodes[top])
    else:
        high = make("addc", hi, "zero", other, like=nodes[top])
    return _Group(low, i, None, top, high)


def _decrement_group(nodes: list[Node], i: int, after: list[int]) -> _Group | None:
    """`seqz c, lo; sub hi, h, c; addi lo, lo, -1`: add -1 carries unless lo was 0."""
    test = nodes[i]
    if test.cc != "z" or test.args[2] != 0 or not isinstance(test.args[1], str):
        return None
    source = test.args[1]
    low = _same_operands(nodes, i, "add", source, -1)
    top = only_reader(nodes, i, after)
    if low is None or top is None or not _plain(nodes[top], "sub"):
        return None
    hi, a, b = nodes[top].args
    if b != test.args[0] or a == b or not isinstance(a, str):
        return None
    return _Group(low, i, None, top, make("addc", hi, a, -1, like=nodes[top]))


def _difference_group(nodes: list[Node], i: int, after: list[int]) -> _Group | None:
    test = nodes[i]
    carry, left, right = test.args
    if test.cc == "nz" and right == 0:
        left, right = 0, left  # 0 <u x: the borrow of 0 - x
    elif test.cc != "ltu":
        return None
    low = _same_operands(nodes, i, "sub", left, right)
    top = only_reader(nodes, i, after)
    if low is not None and top is not None and left == 0:
        negation = _negation(nodes, (low, i, top), after)
        if negation is not None:
            return negation
    if low is None or top is None or not _plain(nodes[top], "sub"):
        return None
    hi, a, b = nodes[top].args
    if b != carry or a == carry or not isinstance(a, str):
        return None
    middle = _middle(nodes, top, a, "sub", after)
    if middle is not None:
        return _Group(low, i, middle, top, _carry_node("subc", hi, nodes[middle]))
    return _Group(low, i, None, top, make("subc", hi, a, 0, like=nodes[top]))


def _negation(nodes: list[Node], parts: tuple[int, int, int], after: list[int]) -> _Group | None:
    """`neg lo, x; snez c, x; add t, h, c; neg hi, t`: 0 - (h + borrow)."""
    low, test, add = parts
    top = only_reader(nodes, add, after)
    if top is None or not _plain(nodes[add], "add") or not _plain(nodes[top], "sub"):
        return None
    total, a, b = nodes[add].args
    carry = nodes[test].args[0]
    high = b if a == carry else a
    if nodes[top].args[1:] != [0, total] or high == carry or carry not in (a, b):
        return None
    replacement = make("subc", nodes[top].args[0], 0, high, like=nodes[top])
    return _Group(low, test, add, top, replacement) if isinstance(high, str) else None


def _same_operands(nodes: list[Node], i: int, op: str, a: object, b: object) -> int | None:
    """The `op` of just these operands with the values they have at `i`, before or after it."""
    mask = _mask(a) | _mask(b)
    for step in (1, -1):
        if step > 0 and nodes[i].defs & mask:
            continue
        j = i + step
        while 0 <= j < len(nodes):
            if step < 0 and nodes[j].defs & mask:
                break
            if _plain(nodes[j], op) and nodes[j].args[1:] == [a, b]:
                return j
            if nodes[j].defs & mask:
                break
            j += step
    return None


def _middle(nodes: list[Node], top: int, name: object, op: str, after: list[int]) -> int | None:
    """Where the high words are combined, if only `top` reads the result."""
    mask = _mask(name)
    made = _last_definition(nodes, top, mask) if mask else None
    if made is None or not _plain(nodes[made], op) or only_reader(nodes, made, after) != top:
        return None
    a, b = nodes[made].args[1:]
    if op == "sub" and not isinstance(b, str):
        return None
    return made if isinstance(a, str) or isinstance(b, str) else None


def _carry_node(op: str, hi: str | int | object, middle: Node) -> Node:
    return make(op, hi, *middle.args[1:], like=middle)  # type: ignore[arg-type]


def _flags_used(group: _Group, after: list[int]) -> bool:
    """Some part already belongs to another pair."""
    parts = (group.low, group.test, group.middle, group.top)
    return any(after[i] & (CF | ZF) for i in parts if i is not None)


# --------------------------------------------------------------------------- placement


def _bring_together(block: Block, group: _Group) -> bool:
    """Put low and high side by side at the first place where nothing changes by it."""
    nodes = block.nodes
    parts = {group.low, group.test, group.middle, group.top}
    first = min(i for i in parts if i is not None)
    last = max(i for i in parts if i is not None)
    others = [i for i in range(first, last + 1) if i not in parts]
    for split in range(len(others) + 1):
        if _may_stand(nodes, group, others[:split], others[split:]):
            before, behind = others[:split], others[split:]
            block.nodes[first : last + 1] = [
                *(nodes[i] for i in before),
                nodes[group.low],
                group.high,
                *(nodes[i] for i in behind),
            ]
            return True
    return False


def _independent(a: Node, b: Node) -> bool:
    """a and b may change places (flags apart)."""
    return not REGISTERS & (a.defs & (b.defs | b.uses) | a.uses & b.defs)


def _may_stand(nodes: list[Node], group: _Group, before: list[int], behind: list[int]) -> bool:
    low, high, top = nodes[group.low], group.high, nodes[group.top]
    if _flags_cross(nodes, behind):
        return False
    middle = nodes[group.middle] if group.middle is not None else None
    # the high word may not need the low result, except where it already came after it
    reader = group.middle if group.middle is not None else group.top
    high_reads = (middle.uses if middle is not None else high.uses) & REGISTERS
    if reader < group.low and low.defs & high_reads:
        return False
    if group.top < group.low and (low.uses | low.defs) & high.defs & REGISTERS:
        return False
    for i in before + behind:
        is_before = i in before
        if is_before != (i < group.low) and not _independent(nodes[i], low):
            return False
        if is_before != (i < group.top) and not _independent(nodes[i], top_shape(top, high)):
            return False
        if middle is not None and group.middle is not None:
            # its operands must be the same where the high word now reads them
            moved = is_before != (i < group.middle)
            if moved and nodes[i].defs & middle.uses & REGISTERS:
                return False
        elif is_before != (i < group.top) and nodes[i].defs & high.uses & REGISTERS:
            return False
    return True


def top_shape(top: Node, high: Node) -> Node:
    """What moves with `top`: it writes the high word; its sources are checked apart."""
    shape = Node(top.op, [])
    shape.defs, shape.uses = high.defs, 0
    return shape


def _flags_cross(nodes: list[Node], behind: list[int]) -> bool:
    """Flags made in front of the pair are read behind it."""
    for i in behind:
        if nodes[i].uses & (CF | ZF):
            return True
        if nodes[i].defs & CF:
            return False
    return False
