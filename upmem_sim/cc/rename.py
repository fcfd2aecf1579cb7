"""Values that live within one block move to registers that suit their users better.

RV32's register allocator does not know that a load with its sign word fills a pair here (pairs.py),
and likes to give a temporary the register of a loop's sum, which is then copied out of the way.
"""

from __future__ import annotations

from dataclasses import dataclass

from upmem_sim.cc.flow import MASK, Block, analyse, base_format, live_after_each
from upmem_sim.cc.merge import plain
from upmem_sim.isa import GENERAL

_SCRATCH = range(14)
_EXTENDED = ("lw", "lhs", "lbs")
_RENAMED = frozenset(("alu", "shift", "unary", "shadd", "compare", "store", "load"))


@dataclass(frozen=True, slots=True)
class _Range:
    """A value: the instruction that makes it, its register, and the instructions that read it."""

    made: int
    name: str
    readers: list[int]

    @property
    def last(self) -> int:
        return max([self.made, *self.readers])


def rename_temporaries(blocks: list[Block]) -> bool:
    """Both renamings; whether anything changed. Liveness must be known, and stays true."""
    changed = False
    for block in blocks:
        for i in range(len(block.nodes)):
            changed |= _pair_extended_load(block, i) or _spare_source(block, i)
    return changed


def _range(block: Block, made: int, name: str) -> _Range | None:
    """The value that is made there, None if not all of its readers can read another register."""
    mask = MASK[name]
    readers = []
    for k in range(made + 1, len(block.nodes)):
        node = block.nodes[k]
        if node.uses & mask:
            if node.fixed or name not in node.args or base_format(node.op)[1] not in _RENAMED:
                return None
            readers.append(k)
        if node.defs & mask:
            return _Range(made, name, readers)
    return None if block.live_out & mask else _Range(made, name, readers)


def _free(block: Block, first: int, last: int) -> int:
    """Bits of the registers that hold nothing from one instruction to another."""
    after = live_after_each(block)
    busy = 0
    for k in range(first, last + 1):
        busy |= after[k] | block.nodes[k].defs | block.nodes[k].uses
    return ~busy


def _rename(block: Block, value: _Range, new: str) -> None:
    block.nodes[value.made].args[0] = new
    analyse(block.nodes[value.made])
    for k in value.readers:
        node = block.nodes[k]
        first = 0 if base_format(node.op)[1] in ("store", "compare") else 1
        node.args[first:] = [new if a == value.name else a for a in node.args[first:]]
        analyse(node)


def _renamable(block: Block, made: int) -> bool:
    node = block.nodes[made]
    single = bool(node.args) and node.args[0] in GENERAL
    kinds = ("alu", "shift", "unary", "shadd", "load")
    return single and not node.fixed and node.target is None and base_format(node.op)[1] in kinds


def _pair_extended_load(block: Block, j: int) -> bool:
    """`asr high, low, 31` of a loaded word: both go to one pair."""
    node = block.nodes[j]
    if node.op != "asr" or not plain(node, 3) or node.args[2] != 31:
        return False
    high, low = str(node.args[0]), str(node.args[1])
    if low not in GENERAL or GENERAL[low] == GENERAL[high] | 1:
        return False
    i = next((k for k in range(j - 1, -1, -1) if block.nodes[k].defs & MASK[low]), None)
    if i is None or block.nodes[i].op not in _EXTENDED or not _renamable(block, i):
        return False
    word, sign = _range(block, i, low), _range(block, j, high)
    if word is None or sign is None:
        return False
    free = _free(block, i, max(word.last, sign.last))
    even = next((n for n in _SCRATCH if n % 2 == 0 and free >> n & 3 == 3), None)
    if even is None:
        return False
    _rename(block, word, f"r{even + 1}")
    _rename(block, sign, f"r{even}")
    return True


def _spare_source(block: Block, i: int) -> bool:
    """`move x, y` where a temporary takes y before x is last read: that goes elsewhere."""
    node = block.nodes[i]
    if node.op != "move" or not plain(node, 2) or node.args[1] not in GENERAL:
        return False
    copy, source = _range(block, i, str(node.args[0])), str(node.args[1])
    if copy is None or node.args[0] == source:
        return False
    changed = False
    for k in range(i + 1, copy.last):
        if not block.nodes[k].defs & MASK[source]:
            continue
        value = _range(block, k, source) if _renamable(block, k) else None
        free = _free(block, k, value.last) if value else 0
        new = next((n for n in _SCRATCH if free >> n & 1), None)
        if value is None or new is None:
            return changed
        _rename(block, value, f"r{new}")
        changed = True
    return changed
