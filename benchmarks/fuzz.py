"""Damaged ELF files, assembly text and C sources: an error message each, never a crash or a hang.

Each case runs in a process of its own group with a limit of time; a case is fine if it is refused
with an error of `upmem_sim` on one line, or accepted. Programs that are accepted run on a DPU with
a limit of cycles. Whatever else happens (another exception, a signal, no answer) is printed.
"""

from __future__ import annotations

import multiprocessing
import random
import struct
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing.connection import Connection

from benchmarks import program_generator
from benchmarks.c_runs import program
from upmem_sim.asm import assemble
from upmem_sim.bare import bare_program
from upmem_sim.cc import compile_c
from upmem_sim.cc.library import RT_DIR
from upmem_sim.disasm import disassemble, format_insn
from upmem_sim.dpu import Dpu
from upmem_sim.elf import read_elf, seal, write_elf
from upmem_sim.errors import SimError
from upmem_sim.program import Program

FULL = {"elf": 10_000, "assembly": 10_000, "c": 1_000}
QUICK = {"elf": 400, "assembly": 400, "c": 30}
SECONDS = 60.0  # for one case; the slowest take a fraction of it
BATCH = 50
MAX_CYCLES = 200_000
LIBRARY = sorted(RT_DIR.glob("*.s"))
NOTE = struct.pack("<III", 12, 8, 1) + b"upmem_sim\0\0\0"  # start of the note with the checksum

_WORDS = (
    "int", "long", "*", "(", ")", "{", "}", "[", "]", ";", ",", "0", "-1", "1e999", "0x", "<<", "/",
    "%", "struct", "return", "__mram_ptr", "__host", "goto", "asm", '"', "'", "#include <mram.h>\n",
    "#define A A A\n", "__int128", "_Complex", "volatile", "sizeof", "\\\n", "float", "a", "\0",
    "#include <missing.h>\n", "#pragma unroll(N)\n", "void", "const", "case", "??=", "99999999999",
)  # fmt: skip
_ASM_WORDS = (
    "r0", "r23", "r24", "d0", "d1", "zero", "id8", "add", "ld", "sdma", "jump", "move", ",", ":",
    ".word", ".zero 99999999999", ".p2align 99", ".section", ".set a, a", "a", "-1", "0x1ffffffff",
    "true", "nz", "(", "+", "%", "'", '"', ".ascii", "\\", "!big", "1/0", "<<", ".globl",
)  # fmt: skip

SOURCE = """#include <barrier.h>
#include <defs.h>
#include <mram.h>
BARRIER_INIT(meet, NR_TASKLETS);
__mram_noinit int data[256];
__host int sum;
int main() {
    __dma_aligned int block[16];
    for (unsigned i = 16 * me(); i < 256; i += 16 * NR_TASKLETS) {
        mram_read(data + i, block, sizeof(block));
        for (int j = 0; j < 16; j++) sum += block[j] * 3.5f;
    }
    barrier_wait(&meet);
    return 0;
}
"""


def _damaged_bytes(rng: random.Random, image: bytes) -> bytes:
    data = bytearray(image)
    for _ in range(rng.choice((1, 1, 2, 8, 64))):
        place = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[place] = rng.getrandbits(8)
        elif kind == 1:
            data[place : place + 4] = rng.choice((b"\xff" * 4, bytes(4), b"\x80\0\0\0"))
        elif kind == 2:
            del data[place : place + rng.choice((1, 4, 100, len(data)))]
        else:
            data[place:place] = data[rng.randrange(len(data)) :][: rng.choice((1, 8, 300))]
        if not data:
            break
    head = rng.random() < 0.5  # headers and tables are the interesting part
    for _ in range(3 if head else 0):
        if len(data) > 52:
            data[rng.randrange(16, 52)] = rng.getrandbits(8)
    return bytes(data)


def _damaged_text(rng: random.Random, text: str, words: tuple[str, ...]) -> str:
    for _ in range(rng.choice((1, 1, 2, 5, 30))):
        place = rng.randrange(len(text) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            text = text[:place] + " " + rng.choice(words) + " " + text[place:]
        elif kind == 1:
            text = text[:place] + text[place + rng.choice((1, 5, 40)) :]
        elif kind == 2:
            other = rng.randrange(len(text) + 1)
            text = text[:place] + text[other : other + rng.choice((3, 30))] + text[place:]
        elif kind == 3:
            text = text[:place] + chr(rng.choice((0, 9, 34, 92, 127, 233, 0x10348))) + text[place:]
        else:
            text = text[:place]
    return text


def _try(loaded: Program) -> None:
    disassemble(loaded)
    Dpu(loaded).run(MAX_CYCLES)


def _elf_case(rng: random.Random, image: bytes) -> None:
    data = _damaged_bytes(rng, image)
    if len(data) == len(image) and rng.random() < 0.8:
        data = seal(data, image.index(NOTE))  # the checksum hides what is behind it
    _try(read_elf(data))


def _assembly_case(rng: random.Random, _: bytes) -> None:
    if rng.random() < 0.5:
        text = rng.choice(LIBRARY).read_text()
        assemble(_damaged_text(rng, text, _ASM_WORDS), "fuzz.s")
        return
    text = "\n".join(map(format_insn, program_generator.generate(rng.randrange(10**6)).insns))
    _try(bare_program(_damaged_text(rng, text, _ASM_WORDS), name="fuzz.s"))


def _c_case(rng: random.Random, _: bytes) -> None:
    base = SOURCE if rng.random() < 0.5 else program(rng.randrange(10**6), functions=1, rows=1)
    _try(compile_c(_damaged_text(rng, base, _WORDS), opt=rng.choice(("-O0", "-O2"))))


_CASES: dict[str, Callable[[random.Random, bytes], None]] = {
    "elf": _elf_case,
    "assembly": _assembly_case,
    "c": _c_case,
}


def outcome(kind: str, seed: int, image: bytes) -> str:
    """ "accepted", "refused", or what is wrong with the answer."""
    try:
        _CASES[kind](random.Random(f"{kind} {seed}"), image)
    except SimError as error:
        text = str(error)
        return "refused" if text and "\n" not in text else f"message {text!r}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


def _work(kind: str, seeds: range, image: bytes, results: Connection) -> None:
    for seed in seeds:
        results.send(outcome(kind, seed, image))
    results.close()


def batch(kind: str, seeds: range, image: bytes) -> list[str]:
    """Outcomes of some cases in another process; it is started anew after a crash or a hang."""
    out: list[str] = []
    context = multiprocessing.get_context("fork")
    while len(out) < len(seeds):
        mine, theirs = context.Pipe(duplex=False)
        rest = seeds[len(out) :]
        process = context.Process(target=_work, args=(kind, rest, image, theirs))
        process.start()
        theirs.close()
        try:
            while len(out) < len(seeds):
                if not mine.poll(SECONDS):
                    process.kill()
                    out.append(f"no answer within {SECONDS:.0f} s")
                    break
                out.append(mine.recv())
        except EOFError:
            process.join()
            out.append(f"the process ended with {process.exitcode}")
        process.join()
    return out


def run(quick: bool) -> int:
    """Print each wrong answer and the counts; exit status 1 if there is one."""
    image = write_elf(compile_c(SOURCE, nr_tasklets=4))
    bad = 0
    for kind, count in (QUICK if quick else FULL).items():
        start, counts = time.perf_counter(), Counter[str]()
        for first in range(0, count, BATCH):
            seeds = range(first, min(first + BATCH, count))
            for seed, result in zip(seeds, batch(kind, seeds, image), strict=True):
                good = result in ("accepted", "refused")
                counts[result if good else "wrong"] += 1
                if not good:
                    print(f"{kind} {seed}: {result}", flush=True)
        bad += counts["wrong"]
        seconds = time.perf_counter() - start
        print(
            f"{kind:<10}{count:>7,} cases: {counts['refused']:,} refused, "
            f"{counts['accepted']:,} accepted, {counts['wrong']} wrong, {seconds:.0f} s",
            flush=True,
        )
    return 1 if bad else 0
