"""Stack frames: callee-saved registers are saved and restored in pairs.

RV32 saves one register at a time, and in an order that no `sd` matches. The slots of a frame's save
area are seen by the prologue and the epilogues alone, so they may be dealt out anew: both halves of
a pair get an aligned double word, and `sd`/`ld` replace two stores and two loads.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from upmem_sim.cc.flow import MASK, SP, Block, Node, base_format, replace

_SAVED = [f"r{n}" for n in range(14, 22)]
_RETURN = "r23"


@dataclass(slots=True)
class _Frame:
    """The save area of one function.

    saves     register -> (block, node) that stores it
    restores  register -> nodes that load it back, with their blocks
    slots     register -> offset from r22
    """

    saves: dict[str, tuple[Block, Node]] = field(default_factory=dict)
    restores: dict[str, list[tuple[Block, Node]]] = field(default_factory=dict)
    slots: dict[str, int] = field(default_factory=dict)


def pair_saves(blocks: list[Block]) -> None:
    """Rewrite saves and restores of register pairs; frames of another shape are left alone."""
    prologue = _prologue(blocks)
    if prologue is None:
        return
    frame = _save_area(*prologue)
    if len(frame.saves) < 2 or not _find_restores(blocks, frame):
        return
    pairs = [
        (low, high)
        for high, low in zip(_SAVED[::2], _SAVED[1::2], strict=True)
        if low in frame.saves and high in frame.saves and _are_together(frame, low, high)
    ]
    places = _aligned_places(frame.slots.values())
    pairs = pairs[: len(places)]
    if pairs:
        _deal_slots(frame, pairs, places)
        for low, high in pairs:
            _merge(frame, low, high)


def _prologue(blocks: list[Block]) -> tuple[Block, int] | None:
    """Where the frame is made, if r22 moves by one fixed amount only."""
    found: tuple[Block, int] | None = None
    size = 0
    restored: list[int] = []
    for block in blocks:
        for i, node in enumerate(block.nodes):
            if not node.defs & SP:
                continue
            step = node.args[2] if node.op == "add" and len(node.args) == 3 else None
            if node.args[:2] != ["r22", "r22"] or not isinstance(step, int) or node.fixed:
                return None
            if step > 0:
                restored.append(step)
            elif found is not None:
                return None
            else:
                found, size = (block, i), -step
    return found if all(step == size for step in restored) else None


def _is_save(node: Node) -> bool:
    if node.op != "sw" or node.args[0] != "r22" or node.fixed:
        return False
    return node.args[2] in (*_SAVED, _RETURN) and isinstance(node.args[1], int)


def _save_area(block: Block, start: int) -> _Frame:
    """Stores of registers that nothing has changed since the function began."""
    frame = _Frame()
    changed = 0
    for i, node in enumerate(block.nodes):
        if i > start and _is_save(node):
            name, offset = str(node.args[2]), node.args[1]
            assert isinstance(offset, int)
            if not changed & MASK[name] and name not in frame.saves:
                frame.saves[name] = (block, node)
                frame.slots[name] = offset
        changed |= node.defs
    return frame


def _find_restores(blocks: list[Block], frame: _Frame) -> bool:
    """Collect the loads of each slot; drop registers whose slot anything else touches."""
    owner = {offset: name for name, offset in frame.slots.items()}
    if len(owner) != len(frame.slots):
        return False
    own = {id(node) for _, node in frame.saves.values()}
    spoiled: set[str] = set()
    for block in blocks:
        for node in block.nodes:
            touched = _touched(node)
            if touched is None or id(node) in own:
                continue
            names = {owner[o] for o in touched if o in owner}
            if node.op == "lw" and names == {node.args[0]}:
                frame.restores.setdefault(str(node.args[0]), []).append((block, node))
            else:
                spoiled |= names
    for name in spoiled:
        del frame.saves[name], frame.slots[name]
    return True


def _touched(node: Node) -> range | None:
    """Offsets from r22 (multiples of 4) that a load or store may reach, None if it is neither."""
    fmt = base_format(node.op)[1]
    if fmt not in ("load", "store", "store_id"):
        return None
    base, offset = (node.args[1], node.args[2]) if fmt == "load" else node.args[:2]
    if base != "r22" or not isinstance(offset, int):
        return None
    size = 8 if node.op in ("ld", "sd", "sd_id") else 4
    return range(offset & ~3, offset + size, 4)


def _are_together(frame: _Frame, low: str, high: str) -> bool:
    """Wherever one of the pair is saved or restored, so is the other, with nothing in between."""
    places = [(frame.saves[low], frame.saves[high])]
    first, second = frame.restores.get(low, []), frame.restores.get(high, [])
    if len(first) != len(second):
        return False
    places += zip(first, second, strict=True)
    both = MASK[low] | MASK[high]
    for (block, a), (other, b) in places:
        if block is not other:
            return False
        i, j = sorted((block.nodes.index(a), block.nodes.index(b)))
        between = block.nodes[i + 1 : j]
        if any((node.defs | node.uses) & both or node.defs & SP for node in between):
            return False
    return True


def _aligned_places(offsets: object) -> list[int]:
    """Offsets of double words that the save area covers, highest first."""
    have = set(offsets)  # type: ignore[call-overload]
    return sorted((o for o in have if o % 8 == 0 and o + 4 in have), reverse=True)


def _deal_slots(frame: _Frame, pairs: list[tuple[str, str]], places: list[int]) -> None:
    free = set(frame.slots.values())
    new: dict[str, int] = {}
    for (low, high), place in zip(pairs, places, strict=False):
        new[low], new[high] = place, place + 4
        free -= {place, place + 4}
    rest = sorted((name for name in frame.slots if name not in new), key=frame.slots.__getitem__)
    new |= dict(zip(rest, sorted(free), strict=True))
    for name, offset in new.items():
        frame.slots[name] = offset
        replace(frame.saves[name][1], "sw", "r22", offset, name)
        for _, node in frame.restores.get(name, []):
            replace(node, "lw", name, "r22", offset)


def _merge(frame: _Frame, low: str, high: str) -> None:
    """The first of the two becomes the double access, the second goes."""
    pair, offset = f"d{high[1:]}", frame.slots[low]
    places = [(frame.saves[low], frame.saves[high])]
    places += zip(frame.restores.get(low, []), frame.restores.get(high, []), strict=True)
    for k, ((block, a), (_, b)) in enumerate(places):
        first, second = (a, b) if block.nodes.index(a) < block.nodes.index(b) else (b, a)
        if k == 0:
            replace(first, "sd", "r22", offset, pair)
        else:
            replace(first, "ld", pair, "r22", offset)
        block.nodes.remove(second)
