"""Every form of every instruction, with random operands: the input of the table tests.

`forms()` lists (name, maker) pairs; a maker takes a random.Random and returns a canonical `Insn`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

from upmem_sim.isa import JUMP_CLASSES, OPERATIONS, SET_CLASSES, SPECIAL, Arg, Insn, Operation

Maker = Callable[[Random], Insn]

GENERAL = [f"r{i}" for i in range(24)]
PAIR = [f"d{i}" for i in range(0, 24, 2)]
ANY = GENERAL + list(SPECIAL)


def edge(rng: Random, bits: int, signed: bool = True) -> int:
    """A number of so many bits, the extremes being likely."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    return rng.choice([low, high, 0, 1, low // 2, rng.randint(low, high), rng.randint(low, high)])


def conditions(row: Operation, jump: str | None, set_: str | None) -> Iterator[tuple[str, str]]:
    yield "plain", ""
    for cc in SET_CLASSES[set_] if set_ else ():
        yield "set", cc
    for cc in JUMP_CLASSES[jump] if jump else ():
        if cc != "false":
            yield "jump", cc


def immediate_bits(row: Operation, kind: str, dest: str, ra: str, suffix: str, rir: bool) -> int:
    """Widths as the instruction reference lists them, written down a second time."""
    special = ra in SPECIAL
    if dest == "zero":
        wide = row.imm == 32 or row.name in ("sub", "subc")
        if kind == "jump":
            return row.zero
        return 32 if kind == "plain" and wide and not special else 16 + row.zero
    if kind != "plain":
        return {"set": 24, "jump": 8}[kind]
    if suffix:
        if row.name == "and":
            return 32 if special else 24
        return 32 if row.name in ("add", "or") and not special else 24
    if row.name == "and" and special:
        return 24
    return 32 if rir or row.imm == 32 else 24


def _build(op: str, args: list[Arg], kind: str, cc: str, rng: Random) -> Insn:
    target = edge(rng, 16, signed=False) if kind == "jump" else None
    return Insn(op, args, cc or None, target)


def _alu(row: Operation) -> Iterator[tuple[str, Maker]]:
    for suffix in ("", ".s", ".u"):
        for zero in (False, True) if not suffix else (False,):
            for shape in ("rr", "ri", "ir", "ki", "ik"):
                reverse = shape in ("ir", "ik")
                if ("i" in shape and not row.imm) or (reverse and row.name[:3] != "sub"):
                    continue
                set_ = "zero" if reverse else row.set
                for kind, cc in conditions(row, row.jump, set_):
                    yield _alu_form(row, suffix, zero, shape, kind, cc)


def _alu_form(
    row: Operation, suffix: str, zero: bool, shape: str, kind: str, cc: str
) -> tuple[str, Maker]:
    def make(rng: Random) -> Insn:
        dest = "zero" if zero else rng.choice(PAIR if suffix else GENERAL)
        ra = rng.choice(list(SPECIAL) if "k" in shape else ANY if shape == "rr" else GENERAL)
        if shape == "rr":
            args: list[Arg] = [dest, ra, rng.choice(GENERAL)]
        else:
            reverse = shape[0] == "i"
            imm = edge(rng, immediate_bits(row, kind, dest, ra, suffix, reverse))
            args = [dest, imm, ra] if reverse else [dest, ra, imm]
        return _build(row.name + suffix, args, kind, cc, rng)

    return f"{row.name}{suffix} {'z' if zero else ''}{shape} {kind} {cc}", make


def _shift(row: Operation) -> Iterator[tuple[str, Maker]]:
    for suffix in ("", ".s", ".u"):
        for shape, jump in (("rr", "shift"), ("ri", "imm_shift")):
            for kind, cc in conditions(row, jump, row.set):

                def make(
                    rng: Random,
                    suffix: str = suffix,
                    shape: str = shape,
                    kind: str = kind,
                    cc: str = cc,
                ) -> Insn:
                    dest = rng.choice(PAIR) if suffix else rng.choice([*GENERAL, "zero"])
                    amount = rng.choice(GENERAL) if shape == "rr" else edge(rng, 5, signed=False)
                    args: list[Arg] = [dest, rng.choice(ANY), amount]
                    return _build(row.name + suffix, args, kind, cc, rng)

                yield f"{row.name}{suffix} {shape} {kind} {cc}", make


# Operand kinds of the remaining formats: g general, G general or zero, p pair, a any, numbers.
_OPERANDS = {
    "unary": "D a", "shadd": "D g a u5", "step": "p a p u5", "movd": "p p", "dma": "a g u8",
    "acquire": "a s16", "thread": "a s8", "stop": "", "time": "D", "time_cfg": "D g",
    "fault": "s24", "tell": "a s24", "nop": "",
    "unit": "D a g", "unit_unary": "D a",
}  # fmt: skip


def _operand(kind: str, suffix: str, rng: Random) -> Arg:
    if kind == "D":
        return rng.choice(PAIR) if suffix else rng.choice([*GENERAL, "zero"])
    if kind in "gpa":
        return rng.choice({"g": GENERAL, "p": PAIR, "a": ANY}[kind])
    return edge(rng, int(kind[1:]), signed=kind[0] == "s")


def _simple(row: Operation) -> Iterator[tuple[str, Maker]]:
    for suffix in ("", ".s", ".u") if row.pair else ("",):
        for kind, cc in conditions(row, row.jump, row.set):
            if row.fmt == "acquire" and kind == "plain":
                continue

            def make(rng: Random, suffix: str = suffix, kind: str = kind, cc: str = cc) -> Insn:
                args = [_operand(k, suffix, rng) for k in _OPERANDS[row.fmt].split()]
                return _build(row.name + suffix, args, kind, cc, rng)

            yield f"{row.name}{suffix} {kind} {cc}", make


def _memory(row: Operation) -> Iterator[tuple[str, Maker]]:
    for big in (False, True):
        if row.fmt == "load":
            for suffix in ("", ".s", ".u") if row.pair else ("",):
                wide = bool(suffix) or row.name == "ld"

                def load(
                    rng: Random, suffix: str = suffix, wide: bool = wide, big: bool = big
                ) -> Insn:
                    dest = rng.choice(PAIR if wide else GENERAL)
                    args: list[Arg] = [dest, rng.choice(ANY), edge(rng, 24)]
                    return Insn(row.name + suffix, args, big=big)

                yield f"{row.name}{suffix} {big}", load
            continue

        def store_imm(rng: Random, big: bool = big) -> Insn:
            return Insn(row.name, [rng.choice(ANY), edge(rng, 12), edge(rng, row.imm)], big=big)

        yield f"{row.name} i {big}", store_imm
        if row.fmt == "store":

            def store(rng: Random, big: bool = big) -> Insn:
                source = rng.choice(PAIR if row.name == "sd" else GENERAL)
                return Insn(row.name, [rng.choice(ANY), edge(rng, 24), source], big=big)

            yield f"{row.name} r {big}", store


def _call(row: Operation) -> Iterator[tuple[str, Maker]]:
    plain = [r for r in ANY if r != "zero"]
    for dest in ("r", "zero"):
        bits = 24 if dest == "r" else 28

        def d(rng: Random, dest: str = dest) -> str:
            return rng.choice(GENERAL) if dest == "r" else "zero"

        yield f"call {dest} target", lambda g, d=d, b=bits: Insn("call", [d(g)], None, edge(g, b))
        yield (
            f"call {dest} base",
            lambda g, d=d, b=bits: Insn("call", [d(g), g.choice(plain), edge(g, b)]),
        )
        yield (
            f"call {dest} register",
            lambda g, d=d: Insn("call", [d(g), g.choice(ANY), g.choice(GENERAL)]),
        )


def forms() -> list[tuple[str, Maker]]:
    """(name, maker) of every form; some 2,800."""
    out: list[tuple[str, Maker]] = []
    makers = {"alu": _alu, "shift": _shift, "load": _memory, "store": _memory}
    makers |= {"store_id": _memory, "call": _call}
    for row in OPERATIONS.values():
        out += makers.get(row.fmt, _simple)(row)
    return out
