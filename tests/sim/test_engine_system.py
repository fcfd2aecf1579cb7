"""DPUs as a host sees them: symbols, memories, relaunch, many at once."""

from __future__ import annotations

import resource

import numpy as np
import pytest
from harness import booted, program, rows_of

from upmem_sim.asm import assemble
from upmem_sim.cc import compile_c
from upmem_sim.dpu import Dpu, run_many
from upmem_sim.encoding import encode
from upmem_sim.errors import SimError
from upmem_sim.isa import Insn
from upmem_sim.params import DpuParams, SystemParams
from upmem_sim.program import MRAM_BASE, Program, Symbol
from upmem_sim.system import System

SYMBOLS = {
    "n": Symbol("n", 64, 4, ".dpu_host"),
    "data": Symbol("data", MRAM_BASE + 128, 32, ".mram"),
    "__sys_used_mram_end": Symbol("__sys_used_mram_end", MRAM_BASE + 4096, 0, ".mram"),
    "main": Symbol("main", 0x80000000, 8, ".text"),
    "NR_TASKLETS": Symbol("NR_TASKLETS", 11, 0, "*ABS*"),
}
COUNT = "lw r0, zero, 64\nadd r0, r0, id\nadd r0, r0, 1\nsw zero, 64, r0\nend: stop true, end"


def loaded(text: str = COUNT.replace("add r0, r0, id\n", "")) -> Program:
    return program(text, wram=bytes(64) + b"\x05\0\0\0", symbols=SYMBOLS)


def test_symbols_are_read_and_written() -> None:
    dpu = Dpu(loaded())
    assert dpu.read("n", np.uint32)[0] == 5
    dpu.write("n", np.uint32(41))
    dpu.run()
    assert dpu.read("n", np.uint32).tolist() == [42]
    dpu.write("data", np.arange(4, dtype=np.int64))
    assert dpu.mram[128:160].view(np.int64).tolist() == [0, 1, 2, 3]
    assert dpu.read("data", np.int64, 2, offset=16).tolist() == [2, 3]
    dpu.write("DPU_MRAM_HEAP_POINTER_NAME", b"abcdefgh", offset=8)
    assert dpu.mram[4104:4112].tobytes() == b"abcdefgh"


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("nothing", 4, "symbol 'nothing': not in the program"),
        ("main", 4, "symbol 'main': in section .text, not a host's memory"),
        ("NR_TASKLETS", 4, "symbol 'NR_TASKLETS': in section"),
        ("n", 8, "symbol 'n': 8 bytes at offset 0, limit 4"),
        ("data", 40, "symbol 'data': 40 bytes at offset 0, limit 32"),
    ],
)
def test_wrong_symbol_access(name: str, size: int, message: str) -> None:
    with pytest.raises(SimError, match=message):
        Dpu(loaded()).write(name, bytes(size))


def test_memories_keep_their_values_from_run_to_run() -> None:
    dpu = Dpu(loaded())
    cycles = {dpu.run().cycles for _ in range(3)}
    assert dpu.read("n", np.uint32)[0] == 8
    assert len(cycles) == 1


def test_clock_gives_seconds_and_the_host_writes_its_rate() -> None:
    symbols = {"CLOCKS_PER_SEC": Symbol("CLOCKS_PER_SEC", 96, 4, ".dpu_host")}
    dpu = Dpu(program("nop\nend: stop true, end", symbols=symbols), DpuParams(clock_mhz=400.0))
    assert dpu.run().seconds == pytest.approx(12 / 400e6)
    assert dpu.read("CLOCKS_PER_SEC", np.uint32)[0] == 400_000_000


def test_counter_counts_cycles_and_instructions() -> None:
    text = """
      time_cfg r1, r0
      nop
      nop
      time r2
      move r0, 5
      time_cfg r3, r0
      nop
      time r4
      sw zero, 0, r2
      sw zero, 4, r3
      sw zero, 8, r4
      end: stop true, end
    """
    loops = "nop\n" * 40
    dpu = Dpu(program("move r0, 3\n" + text.replace("nop\n", loops)))
    dpu.run()
    cycles, old, instructions = dpu.wram[:12].view(np.uint32).tolist()
    assert cycles == 81 * 11 // 16
    assert old == 83 * 11 // 16
    assert instructions == 41 // 16


def test_profile_counts_executions() -> None:
    result = Dpu(program("move r0, 7\nloop: add r0, r0, -1, nz, loop\nend: stop true, end")).run(
        profile=True
    )
    assert result.histogram is not None
    assert result.histogram.tolist() == [1, 7, 1]


def test_code_loaded_by_dma_runs() -> None:
    """ldmai puts instructions from MRAM over the one that follows it; other DPUs keep theirs."""
    text = "ldmai r0, r2, 0\nnop\nnop\nend: stop true, end"
    patched = Dpu(program(text.replace("ldmai r0", "move r0, 24\nldmai r0")))
    word = encode(assemble("sw zero, 64, 9", "t").sections[0].insns[0])
    patched.mram[:8] = np.array([word], np.uint64).view(np.uint8)
    other = Dpu(patched.program)
    patched.run()
    assert patched.wram[64] == 9
    assert patched.run().dma.reads == 1
    other.mram[:8] = np.array([encode(Insn("nop"))], np.uint64).view(np.uint8)
    other.run()
    assert other.wram[64] == 0


def test_system_scatters_runs_and_gathers() -> None:
    system = System(loaded(), 6)
    system.scatter("n", np.arange(10, 16, dtype=np.uint32))
    result = system.run(threads=2)
    assert system.gather("n", np.uint32)[:, 0].tolist() == [11, 12, 13, 14, 15, 16]
    assert result.cycles == max(r.cycles for r in result.dpus)
    system.broadcast("n", np.uint32(1))
    assert system.gather("n", np.uint32)[:, 0].tolist() == [1] * 6
    assert len(system) == 6
    assert system[2].index == 2


def test_system_limits() -> None:
    with pytest.raises(ValueError, match="dpus: 5000, limit 1 to 2560"):
        System(loaded(), 5000)
    with pytest.raises(ValueError, match="scatter: 2 pieces, limit exactly 3 DPUs"):
        System(loaded(), 3).scatter("n", [1, 2])
    assert SystemParams().dpus == 2560


def test_many_dpus_cost_only_the_memory_they_touch() -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    system = System(loaded(), 2048)
    system.broadcast("data", np.arange(4, dtype=np.int64))
    system.run()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < 2048 * 64 * 1024


def test_threads_do_not_change_results() -> None:
    count = COUNT.replace("r0, r0, id", "r0, id, r0")
    text = booted("ldma r0, r2, 31\nlw r1, r0, 0\n" + count, 11)
    dpus = [Dpu(program(text, tasklets=11), index=i) for i in range(8)]
    alone = [dpu.run() for dpu in dpus]
    assert run_many(dpus, threads=3) == alone == run_many(dpus, threads=1)


def test_rows_are_the_size_the_core_expects() -> None:
    assert rows_of([Insn("nop")]).tobytes().__len__() == 16


def test_an_integer_takes_the_size_of_its_symbol() -> None:
    source = "#include <defs.h>\n__host short s; __host long l; __host char c[3];"
    dpu = Dpu(compile_c(source + "int main(void) { return s + (int)l + c[0]; }"))
    dpu.write("s", -2)
    dpu.write("l", 1 << 40)
    assert dpu.read("s", np.int16).tolist() == [-2]
    assert dpu.read("l", np.int64).tolist() == [1 << 40]
    with pytest.raises(SimError, match="symbol 's': 2 bytes, cannot hold the integer 65536"):
        dpu.write("s", 65536)
    with pytest.raises(SimError, match="symbol 'c': 3 bytes, cannot hold the integer 1"):
        dpu.write("c", 1)
