"""Instructions of one function as basic blocks: what each reads and writes, and what is live.

Registers, ZF and CF are bits of an `int`: bit n is rn, then ZF, then CF. What an instruction reads
and writes follows from its operand format (isa.py), so the model has no entry per mnemonic except
where an instruction departs from its format.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from upmem_sim.errors import CompileError
from upmem_sim.isa import GENERAL, JUMP_SUGAR, OPERATIONS, PAIRS, Insn, Label, Sym, split_mnemonic

ZF = 1 << 24
CF = 1 << 25
MASK = {name: 1 << n for name, n in GENERAL.items()}
MASK |= {name: 3 << n for name, n in PAIRS.items()}
REGISTERS = (1 << 24) - 1
SP, RA = MASK["r22"], MASK["r23"]
_ARGUMENTS = 0xFF  # r0-r7
_CALLEE_SAVED = sum(1 << n for n in range(14, 22))
_CALL_CLOBBERS = sum(1 << n for n in range(14)) | RA | ZF | CF
_RESULT = 0x3  # r0, r1
EVERYTHING = (1 << 26) - 1

_STORES = ("store", "store_id")
_NO_RESULT = frozenset(("store", "store_id", "dma", "acquire", "thread", "stop", "fault", "tell"))
_ZF_FORMATS = frozenset(("alu", "shift", "unary", "shadd", "acquire", "thread", "stop"))
_CF_WRITERS = frozenset(("add", "addc", "sub", "subc", "rsub", "rsubc"))
_CF_READERS = frozenset(("addc", "subc", "rsubc"))
_X_CONDITIONS = frozenset(("xz", "xnz", "xles", "xgts", "xleu", "xgtu"))

# Library routines with fewer arguments than a call may have (compiler-rt names): registers read.
_TWO, _FOUR = 0x3, 0xF
LIBRARY_ARGUMENTS = {
    **dict.fromkeys(("__mulsi3", "__divsi3", "__udivsi3", "__modsi3", "__umodsi3"), _TWO),
    **dict.fromkeys(("__addsf3", "__subsf3", "__mulsf3", "__divsf3"), _TWO),
    **dict.fromkeys(("__muldi3", "__divdi3", "__udivdi3", "__moddi3", "__umoddi3"), _FOUR),
    **dict.fromkeys(("__adddf3", "__subdf3", "__muldf3", "__divdf3"), _FOUR),
}


@dataclass(slots=True, eq=False)
class Node:
    """One DPU instruction while it may still change. Fields as in `isa.Insn`, and:

    fixed   from inline assembly: not rewritten, moved or dropped
    reads   of a call or return: argument or result registers it reads, None if unknown
    defs, uses   register and flag bits written and read (set by `analyse`)
    """

    op: str
    args: list[str | int | Sym]
    cc: str | None = None
    target: str | int | Sym | None = None
    big: bool = False
    line: tuple[str, int] | None = None
    fixed: bool = False
    reads: int | None = None
    defs: int = 0
    uses: int = 0

    def insn(self) -> Insn:
        return Insn(self.op, list(self.args), self.cc, self.target, self.big, self.line)


def make(op: str, *args: str | int | Sym, like: Node | None = None, **more: object) -> Node:
    """An analysed instruction, at the C line of `like`."""
    node = Node(op, list(args), line=like.line if like else None, **more)  # type: ignore[arg-type]
    return analyse(node)


def replace(node: Node, op: str, *args: str | int | Sym) -> None:
    """Turn `node` into another instruction in place; condition and target stay."""
    node.op, node.args = op, list(args)
    analyse(node)


def is_jump(op: str) -> bool:
    """Compare and jump: `jeq`, `jltu`, ..., but not `jump`."""
    return op in JUMP_SUGAR


def base_format(op: str) -> tuple[str, str]:
    """(operation without sugar and suffix, its operand format)."""
    base, _ = split_mnemonic(op)
    if base == "move":
        return "or", "unary"
    if base == "not":
        return "xor", "unary"
    if base == "neg":
        return "sub", "unary"
    if base in JUMP_SUGAR:
        return "sub", "compare"
    if base == "jump":
        return "call", "jump"
    if base == "bkp":
        return "fault", "fault"
    row = OPERATIONS.get(base)
    if row is None:
        raise CompileError(f"unknown DPU instruction {op!r}")
    return base, row.fmt


_FORMATS: dict[str, tuple[str, str]] = {}


def analyse(node: Node) -> Node:
    """Set `defs` and `uses` from the operation and the operands."""
    known = _FORMATS.get(node.op)
    if known is None:
        known = _FORMATS[node.op] = base_format(node.op)
    base, fmt = known
    args = node.args
    masks = [MASK.get(a, 0) if type(a) is str else 0 for a in args]
    if fmt in ("call", "jump"):
        node.defs, node.uses = _control(node, fmt, masks)
        return node
    defs, uses = 0, 0
    sources = masks
    if fmt not in _NO_RESULT and fmt != "compare" and masks:
        defs, sources = masks[0], masks[1:]
    for mask in sources:
        uses |= mask
    if fmt == "step":
        uses |= masks[0]  # the odd word is written only when the step is taken
        defs |= ZF if base == "mul_step" else 0
    elif fmt in _ZF_FORMATS or fmt == "compare":
        defs |= ZF
    if base in _CF_WRITERS:
        defs |= CF
    if base in _CF_READERS:
        uses |= CF
    cc = JUMP_SUGAR[node.op] if fmt == "compare" else node.cc
    if cc in _X_CONDITIONS:
        uses |= ZF
    node.defs, node.uses = defs, uses
    return node


def _control(node: Node, fmt: str, masks: list[int]) -> tuple[int, int]:
    if fmt == "jump":
        returns = node.args == ["r23"]
        known = node.reads if node.reads is not None else _RESULT if returns else _ARGUMENTS
        if masks:
            return 0, masks[0] | known | _CALLEE_SAVED | SP | RA
        local = isinstance(node.target, str) and node.target.startswith(".L")
        return 0, 0 if local else known | _CALLEE_SAVED | SP | RA
    uses = SP
    for mask in masks[1:]:
        uses |= mask
    name = node.target.name if isinstance(node.target, Sym) else node.target
    if node.reads is not None:
        uses |= node.reads
    else:
        uses |= LIBRARY_ARGUMENTS.get(name, _ARGUMENTS) if isinstance(name, str) else _ARGUMENTS
    return _CALL_CLOBBERS | masks[0], uses


def argument_mask(words: int) -> int:
    """Registers of the first `words` 32-bit arguments (or results): r1, r0, r3, r2, ..."""
    return sum(1 << (i ^ 1) for i in range(min(words, 8)))


@dataclass(slots=True, eq=False)
class Block:
    """Straight code: labels in front, one way in, a transfer of control only at the end."""

    labels: list[str]
    nodes: list[Node]
    successors: list[int] = field(default_factory=list)
    live_in: int = 0
    live_out: int = 0
    leaves: int = 0  # bits live where control leaves the function from here


def ends_block(node: Node) -> bool:
    return node.op in ("jump", "stop", "fault") or (node.target is not None and node.op != "call")


def never_falls_through(node: Node) -> bool:
    if node.op in ("jump", "fault"):
        return True
    return node.cc == "true" and node.target is not None and node.op != "call"


def split_blocks(items: Iterable[Node | Label]) -> list[Block]:
    """Cut a function's items into blocks, in layout order."""
    blocks: list[Block] = []
    current = Block([], [])
    for item in items:
        if isinstance(item, Label):
            if current.nodes:
                blocks.append(current)
                current = Block([], [])
            current.labels.append(item.name)
            continue
        current.nodes.append(item)
        if ends_block(item):
            blocks.append(current)
            current = Block([], [])
    if current.nodes or current.labels:
        blocks.append(current)
    return blocks


def connect(blocks: list[Block], address_taken: frozenset[str]) -> None:
    """Fill `successors` and `leaves`. `address_taken`: labels an indirect jump may reach."""
    where = {name: k for k, block in enumerate(blocks) for name in block.labels}
    indirect = [where[name] for name in address_taken if name in where]
    for k, block in enumerate(blocks):
        block.successors, block.leaves = _exits(blocks, k, where, indirect)


def _exits(
    blocks: list[Block], k: int, where: dict[str, int], indirect: list[int]
) -> tuple[list[int], int]:
    last = blocks[k].nodes[-1] if blocks[k].nodes else None
    following = [k + 1] if k + 1 < len(blocks) else []
    # code after the end of a function is unknown
    falls_out = 0 if following else EVERYTHING
    if last is None or not ends_block(last):
        return following, falls_out
    successors, leaves = [], 0
    if last.op == "jump" and last.args:
        successors += indirect if last.args != ["r23"] else []
        leaves |= last.uses
    elif last.target is not None:
        name = last.target if isinstance(last.target, str) else ""
        if name in where:
            successors.append(where[name])
        else:
            leaves |= last.uses if last.op == "jump" else EVERYTHING
    if not never_falls_through(last):
        successors += following
        leaves |= falls_out
    return successors, leaves


def liveness(blocks: list[Block]) -> None:
    """Set `live_in` and `live_out` of every block (successors must be known)."""
    gens, kills = [], []
    predecessors: list[list[int]] = [[] for _ in blocks]
    for k, block in enumerate(blocks):
        gen = kill = 0
        for node in reversed(block.nodes):
            gen = (gen & ~node.defs) | node.uses
            kill |= node.defs
        gens.append(gen)
        kills.append(kill)
        block.live_in = block.live_out = 0
        for s in block.successors:
            predecessors[s].append(k)
    work = list(range(len(blocks)))
    queued = [True] * len(blocks)
    while work:
        k = work.pop()
        queued[k] = False
        block = blocks[k]
        out = block.leaves
        for s in block.successors:
            out |= blocks[s].live_in
        block.live_out = out
        live_in = gens[k] | (out & ~kills[k])
        if live_in != block.live_in:
            block.live_in = live_in
            for p in predecessors[k]:
                if not queued[p]:
                    queued[p] = True
                    work.append(p)


def live_after_each(block: Block) -> list[int]:
    """Bits live after each node of the block."""
    live = block.live_out
    after = [0] * len(block.nodes)
    for i in range(len(block.nodes) - 1, -1, -1):
        after[i] = live
        node = block.nodes[i]
        live = (live & ~node.defs) | node.uses
    return after


def joined(blocks: list[Block]) -> list[Insn | Label]:
    """The blocks as one list again."""
    out: list[Insn | Label] = []
    for block in blocks:
        out += [Label(name) for name in block.labels]
        out += [node.insn() for node in block.nodes]
    return out
