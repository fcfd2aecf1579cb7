"""Random DPU programs that end: any instruction, form and condition, with several tasklets.

Out: `Generated`, resolved instructions and memory images. A program is a chain of boots, registers
loaded from WRAM, a body of atoms (groups that nothing jumps into), and an end where tasklet 0
resumes the others until each has reported. Jumps go forward, loops count down in r21, and nobody
sleeps with a lock.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from upmem_sim.encoding import encode
from upmem_sim.errors import AsmError
from upmem_sim.isa import JUMP_CLASSES, OPERATIONS, SET_CLASSES, SPECIAL, Arg, Insn, Operation, Sym
from upmem_sim.rows import to_row

GENERAL = [f"r{i}" for i in range(24) if i not in (20, 21)]  # r20, r21: jumps and loops
PAIRS = [f"d{i}" for i in range(0, 24, 2) if i != 20]
ANY = [*GENERAL, *SPECIAL]
SEEDS = 0xE000  # WRAM: initial registers, 96 bytes a tasklet
DONE = 0xFF00  # WRAM: one byte a tasklet, set when its body is over
OVERLAY = 3000  # instruction index that ldmai loads to
OVERLAY_MRAM = 0x110000  # beyond what other transfers reach
MRAM_BYTES = 0x120000
NEXT = "next atom"
Atom = list[Insn]


@dataclass(frozen=True, slots=True)
class Generated:
    """insns: targets are instruction indices. wram from 0; mram from `mram_start`; stack: where
    that of every tasklet is, (address, bytes), if the program says so."""

    insns: list[Insn]
    wram: bytes
    mram: bytes
    mram_start: int
    tasklets: int
    stack: tuple[int, int] | None = None


def _edge(rng: Random, bits: int, signed: bool = True) -> int:
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return rng.choice([low, high, 0, 1, rng.randint(low, high), rng.randint(low, high)])


def _exists(insn: Insn) -> bool:
    target = 0 if insn.target is not None else None
    try:
        to_row(Insn(insn.op, insn.args, insn.cc, target, insn.big), _no_symbols)
    except AsmError:
        return False
    return True


def _no_symbols(symbol: Sym) -> int:
    raise AsmError(f"symbol {symbol}")


# ------------------------------------------------------------------------------ single results

_SIMPLE = {"unary": "a", "shadd": "gau", "step": "apu", "movd": "p"}
_SIMPLE |= {"unit": "ag", "unit_unary": "a"}
_RESULTS = [row for row in OPERATIONS.values() if row.fmt in ("alu", "shift", *_SIMPLE)]


def _condition(rng: Random, row: Operation, shape: str) -> tuple[str | None, str | None]:
    """(condition, target) of a plain, set or jump form."""
    kind = rng.choice(("plain", "set", "jump"))
    jump = "imm_shift" if row.fmt == "shift" and shape[-1] == "u" else row.jump
    if kind == "set" and row.set:
        return rng.choice(SET_CLASSES["zero" if shape[0] == "i" else row.set]), None
    if kind == "jump" and jump:
        return rng.choice([cc for cc in JUMP_CLASSES[jump] if cc != "false"]), NEXT
    return None, None


def result(rng: Random, jumps: bool = True) -> Insn:
    """One instruction that computes a register: arithmetic, logic, shifts, steps, moves."""
    while True:
        row = rng.choice(_RESULTS)
        shape = _SIMPLE.get(row.fmt) or rng.choice(
            ("ag", "ai", "ai", "ia") if row.fmt == "alu" else ("ag", "au")
        )
        suffix = rng.choice(("", "", ".s", ".u")) if row.pair else ""
        pair = bool(suffix) or row.fmt in ("step", "movd")
        dest = rng.choice(PAIRS if pair else [*GENERAL, *["zero"] * 3])
        cc, target = _condition(rng, row, shape)
        bits = 32 if cc is None else 24 if target is None else 11 if dest == "zero" else 8
        args: list[Arg] = [dest, *(_operand(rng, kind, bits) for kind in shape)]
        insn = Insn(row.name + suffix, args, cc, target)
        if _exists(insn) and (jumps or target is None):
            return insn


def _operand(rng: Random, kind: str, bits: int) -> Arg:
    if kind in "gap":
        return rng.choice({"g": GENERAL, "a": ANY, "p": PAIRS}[kind])
    return _edge(rng, bits) if kind == "i" else rng.randrange(32)


# -------------------------------------------------------------------------------------- atoms


def _one(rng: Random) -> Atom:
    return [result(rng)]


def _memory(rng: Random) -> Atom:
    """A load or store at a legal address, which a mask and an aligned offset give."""
    row = rng.choice([r for r in OPERATIONS.values() if r.fmt in ("load", "store", "store_id")])
    base, big = rng.choice(GENERAL), rng.random() < 0.3
    size = {"b": 1, "h": 2, "w": 4, "d": 8}[row.name[1]]
    offset = size * rng.randrange(-16, 16)
    suffix = rng.choice(("", ".s", ".u")) if row.pair else ""
    args: list[Arg]
    if row.fmt == "load":
        args = [rng.choice(PAIRS if suffix or row.name == "ld" else GENERAL), base, offset]
    else:
        args = [base, offset]
        immediate = _edge(rng, row.imm)
        if row.fmt == "store":
            source = rng.choice(PAIRS if row.name == "sd" else GENERAL)
            args.append(rng.choice((source, immediate)))
        elif rng.random() < 0.5:
            args.append(immediate)
    masked = [Insn("and", [base, base, 0x7FF8]), Insn("add", [base, base, 256])]
    return [*masked, Insn(row.name + suffix, args, big=big)]


def _dma(rng: Random) -> Atom:
    near, far = rng.sample(GENERAL, 2)
    length = rng.randrange(4) << 24  # added to the length field
    return [
        Insn("and", [near, near, 0x7FF8]),
        Insn("add", [near, near, length]),
        Insn("and", [far, far, 0xFFFF8]),
        Insn("add", [far, far, rng.choice((0, 0x08000000))]),
        Insn(rng.choice(("ldma", "sdma")), [near, far, rng.randrange(rng.choice((4, 252)))]),
    ]


def _bit(rng: Random) -> Atom:
    """An atomic bit from 128 up, whatever it holds; locks are below."""
    register = rng.choice(GENERAL)
    op = rng.choice(("acquire", "release"))
    cc = "nz" if op == "release" else rng.choice(("true", "z", "nz"))
    mask = Insn("and", [register, register, 0x7F])
    return [mask, Insn(op, [register, 0x80], cc, NEXT)]


def _lock(rng: Random) -> Atom:
    bit = rng.randrange(4)
    inside = [result(rng, jumps=False) for _ in range(rng.randrange(4))]
    return [
        Insn("acquire", ["zero", bit], "nz", Sym(".")),
        *inside,
        Insn("release", ["zero", bit], "nz", NEXT),
    ]


def _sleep(rng: Random) -> Atom:
    """Everybody but tasklet 0 stops, to be resumed by it or by chance."""
    stop = rng.choice(
        (
            Insn("stop"),
            Insn("stop", [], rng.choice(("true", "z", "nz")), NEXT),
            Insn("clr_run", ["id", 0]),
        )
    )
    return [Insn("jeq", ["id", 0], None, NEXT), stop]


def _thread(rng: Random) -> Atom:
    """Look at any tasklet, or resume one that was booted before this one."""
    cc, target = rng.choice(((None, None), *((c, NEXT) for c in JUMP_CLASSES["step"][1:])))
    if rng.random() < 0.5:
        return [Insn("read_run", ["zero", rng.randrange(24)], cc, target)]
    below = rng.randrange(8)
    guard = Insn("jltu", ["id", below], None, NEXT)
    return [guard, Insn("resume", ["id", -below], cc, target)]


def _time(rng: Random) -> Atom:
    suffix = rng.choice(("", ".s", ".u"))
    dest = rng.choice(PAIRS if suffix else [*GENERAL, "zero"])
    jump = rng.choice(((None, None), ("true", NEXT)))
    if rng.random() < 0.5:
        return [Insn("time" + suffix, [dest], *jump)]
    return [Insn("time_cfg" + suffix, [dest, rng.choice(GENERAL)], *jump)]


def _call(rng: Random) -> Atom:
    """On to the next atom by a call or a computed jump."""
    register = rng.choice(GENERAL)
    offset = rng.randrange(-100, 100)
    if rng.random() < 0.3:
        return [Insn("call", ["r20"], None, NEXT)]
    move = Insn("move", [register, Sym(NEXT, -offset)])
    if rng.random() < 0.3:
        return [move, Insn("move", ["r20", offset]), Insn("call", ["r20", register, "r20"])]
    return [move, Insn("call", [rng.choice(("zero", "r20")), register, offset])]


def _overlay(rng: Random) -> Atom:
    """Code from MRAM: loaded with ldmai, then called."""
    a, b = rng.sample(GENERAL, 2)
    load = [
        Insn("move", [a, 8 * OVERLAY]),
        Insn("move", [b, OVERLAY_MRAM]),
        Insn("ldmai", [a, b, 7]),
    ]
    return [*load, Insn("call", ["r20"], None, OVERLAY)]


def _nothing(rng: Random) -> Atom:
    return [rng.choice((Insn("nop"), Insn("tell", [rng.choice(ANY), rng.randrange(99)])))]


def _broken(rng: Random) -> Atom:
    """The end of the program: a fault, asked for or not."""
    size = rng.choice("hwd")
    misaligned = Insn(f"l{size}{'u' * (size == 'h')}", ["d2" if size == "d" else "r2", "zero", 1])
    outside = Insn("sb", ["mneg", rng.randrange(99), 1])
    return [rng.choice((Insn("fault", [rng.randrange(9)]), misaligned, outside))]


def _loop(rng: Random) -> Atom:
    inner = _place([rng.choice(_INNER)(rng) for _ in range(rng.randrange(1, 6))], rng, 1)
    start = Insn("move", ["r21", rng.randrange(1, 6)])
    back = Insn("add", ["r21", "r21", -1], "nz", Sym(".", -len(inner)))
    return [start, *inner, back]


_Maker = Callable[[Random], Atom]
_INNER: list[_Maker] = [*[_one] * 6, _memory, _memory, _dma, _bit, _time]
_ATOMS: list[_Maker] = [*[_one] * 16, *[_memory] * 6, _dma, _dma, _bit, _time, _call]
_ATOMS += [_nothing, _loop, _loop]
_SHARED: list[_Maker] = [_lock, _lock, _sleep, _sleep, _thread]


def _place(atoms: list[Atom], rng: Random, start: int) -> Atom:
    """One list; NEXT targets become offsets from "." to the start of one of the next four atoms."""
    ends = [0]
    for atom in atoms:
        ends.append(ends[-1] + len(atom))
    out: Atom = []
    for index, atom in enumerate(atoms):
        for insn in atom:
            to = ends[rng.randrange(index + 1, min(index + 5, len(ends)))]
            if insn.target == NEXT:
                insn.target = Sym(".", to - len(out))
            insn.args = [
                Sym("..", to + arg.addend - len(out)) if isinstance(arg, Sym) else arg
                for arg in insn.args
            ]
            out.append(insn)
    return out


def _resolve(insns: Atom) -> None:
    """Offsets from "." become indices."""
    for pc, insn in enumerate(insns):
        if isinstance(insn.target, Sym):
            insn.target = pc + insn.target.addend
        insn.args = [pc + arg.addend if isinstance(arg, Sym) else arg for arg in insn.args]


# ----------------------------------------------------------------------------------- programs


def _prologue(rng: Random, tasklets: int) -> Atom:
    """Each tasklet boots the next, then loads every register from its seeds."""
    boot = [
        Insn("jgeu", ["id", tasklets - 1], None, Sym(".", 2)),
        Insn("boot", ["id", 1], *rng.choice(((None, None), ("true", Sym(".", 1))))),
        Insn("lsl", ["r20", "id", 7]),
    ]
    boot.insert(0, Insn("ld", ["d22", "id8", 0]))  # as start-up code takes its stack
    pairs = [*(i for i in range(0, 24, 2) if i != 20), 20]
    return boot + [Insn("ld", [f"d{i}", "r20", SEEDS + 4 * i]) for i in pairs]


def _frame(rng: Random) -> Atom:
    """Writes the stack pointer as compilers do."""
    kind = rng.random()
    if kind < 0.03:
        return [Insn("add", ["r22", rng.choice(("r14", "r16")), rng.randrange(64)])]
    if kind < 0.2:
        step = rng.choice((8, -16, 16))
        return [Insn("sub", ["r7", "r22", step]), Insn("move", ["r22", "r7"])]
    amount: Arg = "r5" if kind > 0.97 else rng.choice((-16, 8, 16))
    return [Insn(rng.choice(("add", "add", "sub")), ["r22", "r22", amount])]


def _touches_stack(atom: Atom) -> bool:
    return any(arg in ("r22", "r23", "d22") for insn in atom for arg in insn.args)


def _epilogue(tasklets: int) -> Atom:
    """Report; tasklet 0 resumes each of the others until it has reported."""
    ending = 5 * (tasklets - 1)
    out = [
        Insn("sb", ["id", DONE, "r20"]),
        Insn("jneq", ["id", 0], None, Sym(".", ending + 1)),
    ]
    out[0:0] = [Insn("move", ["r20", 1])]
    for k in range(1, tasklets):
        out += [
            Insn("move", ["r20", k]),
            Insn("lbu", ["r21", "r20", DONE]),
            Insn("jneq", ["r21", 0], None, Sym(".", 3)),
            Insn("resume", ["r20", 0]),
            Insn("jneq", ["r21", 1], None, Sym(".", -3)),
        ]
    return [*out, Insn("stop", [], "true", Sym("."))]


def _overlay_image(rng: Random) -> bytes:
    insns = [result(rng, jumps=False) for _ in range(7)] + [Insn("call", ["zero", "r20", 0])]
    return b"".join(encode(insn).to_bytes(8, "little") for insn in insns)


def generate(seed: int) -> Generated:
    """The program of a seed: 40 to 400 instructions, 1 to 24 tasklets."""
    rng = Random(seed)
    tasklets = rng.choice((1, 1, 2, 3, 4, 11, 12, 16, 24))
    choices = _ATOMS + (_SHARED if tasklets > 1 else [])
    if rng.random() < 0.2:
        choices = [*choices, _overlay]
    if rng.random() < 0.05:
        choices = [*choices, _broken]
    makers = [rng.choice(choices) for _ in range(rng.randrange(5, 60))]
    atoms = [maker(rng) for maker in makers]
    stack = None
    if rng.random() < 0.1:
        stack = (rng.choice((0, 0xE000)), rng.choice((64, 1 << 12)))
        for i, maker in enumerate(makers):
            while _touches_stack(atoms[i]):
                atoms[i] = maker(rng)
        atoms = [part for atom in atoms for part in (atom, _frame(rng))]
    insns = [*_prologue(rng, tasklets), *_place(atoms, rng, 0), *_epilogue(tasklets)]
    _resolve(insns)
    wram = bytearray(rng.randbytes(1 << 16))
    for i in range(0, 128 * 24, 4):  # registers: small, large and random values
        value = rng.choice((_edge(rng, 32), _edge(rng, 32), rng.randrange(-9, 9), _edge(rng, 16)))
        wram[SEEDS + i : SEEDS + i + 4] = (value & 0xFFFFFFFF).to_bytes(4, "little")
    wram[DONE : DONE + 24] = bytes(24)
    return Generated(insns, bytes(wram), _overlay_image(rng), OVERLAY_MRAM, tasklets, stack)
