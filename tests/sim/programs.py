"""Random DPU programs that stay inside the rules and end, for comparing two executions of them.

Forms and operands come from `forms.py`; this file makes them safe: jumps go forward, loops count
down, addresses point into small regions, and nothing raises a fault.
"""

from __future__ import annotations

from random import Random

from forms import forms

from upmem_sim.isa import Insn

# Registers that keep loops and addresses in bounds; random instructions do not write them.
COUNTER, NEAR, FAR, BASE = "r20", "r21", "r22", "r18"
_KEPT = {"r18", "r19", "r20", "r21", "r22", "r23", "d18", "d20", "d22"}
_PLAIN = [
    (name, make)
    for name, make in forms()
    if name.split()[0].split(".")[0]
    not in {
        *("lbs", "lbu", "lhs", "lhu", "lw", "ld", "sb", "sh", "sw", "sd"),
        *("sb_id", "sh_id", "sw_id", "sd_id", "ldma", "ldmai", "sdma", "acquire", "release"),
        *("boot", "resume", "read_run", "clr_run", "stop", "call", "fault", "time_cfg"),
    }
]
_LOADS = ["lbs", "lbu", "lhs", "lhu", "lw", "ld", "lbs.s", "lbu.u", "lhs.s", "lhu.u", "lw.s"]
_STORES = ["sb", "sh", "sw", "sd", "sb_id", "sh_id", "sw_id", "sd_id"]
_SIZE = {"b": 1, "h": 2, "w": 4, "d": 8}


def _writes_kept(insn: Insn) -> bool:
    return bool(insn.args) and insn.args[0] in _KEPT


def _plain(rng: Random) -> Insn:
    while True:
        insn = rng.choice(_PLAIN)[1](rng)
        if not _writes_kept(insn):
            return insn


def every_form(rng: Random, chunk: int = 60) -> list[list[Insn]]:
    """Straight programs in which each form of each plain operation occurs once."""
    out = []
    for start in range(0, len(_PLAIN), chunk):
        insns = [Insn("ld", [f"d{n}", "zero", 8 * rng.randrange(1000)]) for n in range(0, 18, 2)]
        for _, make in _PLAIN[start : start + chunk]:
            insn = make(rng)
            while _writes_kept(insn):
                insn = make(rng)
            if insn.target is not None:
                insn.target = len(insns) + 1
            insns.append(insn)
        insns.append(Insn("stop", [], "true", len(insns)))
        out.append(insns)
    return out


def _memory(rng: Random, sharing: float) -> Insn:
    """A load or store in the 512 bytes all tasklets share, or in the tasklet's own."""
    op = rng.choice(_LOADS + _STORES)
    size = _SIZE[op[1]]
    base = "zero" if rng.random() < sharing else BASE
    offset = rng.randrange(0, 512, size)
    big = rng.random() < 0.2 and "_id" not in op
    if op[0] == "l":
        wide = op == "ld" or "." in op
        dest = f"{'d' if wide else 'r'}{rng.randrange(0, 18, 2 if wide else 1)}"
        return Insn(op, [dest, base, offset], big=big)
    if "_id" in op:
        return Insn(op, [base, offset, rng.randrange(-128, 128)])
    if rng.random() < 0.3:
        return Insn(op, [base, offset, rng.randrange(-128, 128)], big=big)
    source = f"d{rng.randrange(0, 24, 2)}" if op == "sd" else f"r{rng.randrange(24)}"
    return Insn(op, [base, offset, source], big=big)


def _dma(rng: Random) -> list[Insn]:
    size = rng.choice([8, 8, 16, 64, 256, 1024])
    return [
        Insn("move", [NEAR, 8 * rng.randrange(0, 256)]),
        Insn("move", [FAR, (rng.random() < 0.5) * 0x08000000 + 8 * rng.randrange(0, 1024)]),
        Insn(rng.choice(["ldma", "sdma"]), [NEAR, FAR, size // 8 - 1]),
    ]


def _shared(rng: Random) -> Insn:
    """Atomic bits, thread control, the clock: what ties tasklets together."""
    kind = rng.randrange(6)
    if kind < 2:
        return Insn("acquire", ["zero", rng.randrange(4)], rng.choice(["z", "nz", "true"]), 0)
    if kind == 2:
        return Insn("release", ["zero", rng.randrange(4)], "nz", 0)
    if kind == 3:
        op = rng.choice(["resume", "boot", "read_run", "resume"])
        cc = rng.choice(["z", "nz", "xz", "true", "snz"])
        return Insn(op, ["zero", rng.randrange(24)], cc, 0)
    if kind == 4:
        setting = rng.choice([NEAR, "r1", "r2"])
        return Insn(rng.choice(["time_cfg", "time_cfg.u"]), ["d4", setting])
    return Insn("time", ["r3"])


def _body(rng: Random, length: int, threads: bool, sharing: float) -> list[Insn]:
    out: list[Insn] = []
    while len(out) < length:
        what = rng.random()
        if what < 0.62:
            out.append(_plain(rng))
        elif what < 0.86:
            out.append(_memory(rng, sharing))
        elif what < 0.90:
            out += _dma(rng)
        elif what < 0.94 and threads:
            out.append(_shared(rng))
        elif what < 0.96:
            out.append(Insn("call", ["r23"], None, 0))
        elif what < 0.97 and threads and rng.random() < 0.2:
            out.append(Insn("stop", [], "true", 0))
    for insn in out:
        if insn.op.split(".")[0] == "time_cfg" and insn.args[0] == "d4" and insn.op == "time_cfg":
            insn.args[0] = "r4"
    return out


def _aim(insns: list[Insn], rng: Random, first: int, last: int) -> None:
    """Jumps within insns[first:last] go forward, at most to `last`."""
    for pc in range(first, last):
        insn = insns[pc]
        if insn.target is not None:
            insn.target = min(last, pc + rng.choice([1, 2, 3, 5]))


def random_program(rng: Random, tasklets: int, sharing: float = 0.5) -> list[Insn]:
    """A program that boots `tasklets` tasklets; each runs a few counted loops of random code.

    `sharing` is the part of the loads and stores that go to memory all tasklets use.
    """
    insns = [
        Insn("jgeu", ["id", tasklets - 1], None, 2),
        Insn("boot", ["id", 1]),
        Insn("lsl", [BASE, "id8", 6]),
        Insn("add", [BASE, BASE, 512]),
    ]
    for number in range(0, 18, 2):
        insns.append(Insn("ld", [f"d{number}", BASE, 8 * number]))
    for _ in range(rng.randint(1, 3)):
        insns.append(Insn("move", [COUNTER, rng.randint(1, 6)]))
        first = len(insns)
        insns += _body(rng, rng.randint(4, 24), tasklets > 1, sharing)
        _aim(insns, rng, first, len(insns))
        insns.append(Insn("add", [COUNTER, COUNTER, -1], "nz", first))
    end = len(insns)
    insns.append(Insn("stop", [], "true", end))
    return insns


def racy_program(rng: Random, tasklets: int) -> list[Insn]:
    """Tasklets that compute for some time, then touch the same 16 bytes, without any event.

    Each tasklet has its own code, so that the accesses fall into any order.
    """
    insns = [
        Insn("jgeu", ["id", tasklets - 1], None, 2),
        Insn("boot", ["id", 1]),
        Insn("lsl", [BASE, "id8", 6]),
        Insn("add", [BASE, BASE, 512]),
    ]
    insns += [Insn("move", [f"r{k}", rng.getrandbits(16)]) for k in range(8)]
    table = len(insns)
    insns += [Insn("jeq", ["id", t], None, 0) for t in range(tasklets)]
    for t in range(tasklets):
        insns[table + t].target = len(insns)
        for _ in range(rng.randint(1, 3)):
            insns += [Insn("add", ["r8", "r8", 1])] * rng.choice([0, 1, 5, 20, 60])
            op = rng.choice(["lw", "sw", "lbu", "sb", "lhu", "sh", "ld", "sd", "sw"])
            offset = rng.randrange(0, 16, _SIZE[op[1]])
            register = f"d{2 * rng.randrange(4)}" if op[1] == "d" else f"r{rng.randrange(8)}"
            args = [register, "zero", offset] if op[0] == "l" else ["zero", offset, register]
            insns.append(Insn(op, args))
        if rng.random() < 0.2:
            insns.append(Insn(rng.choice(["ldma", "sdma"]), ["zero", "r9", 0]))
        insns += [Insn("sd", [BASE, 8 * k, f"d{2 * k}"]) for k in range(4)]
        end = len(insns)
        insns.append(Insn("stop", [], "true", end))
    return insns
