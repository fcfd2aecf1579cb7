"""The profile and the timeline of a program: what is counted adds up, and lines are the C's."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from upmem_sim.cc import compile_c
from upmem_sim.cli import invoke
from upmem_sim.dpu import Dpu
from upmem_sim.elf import write_elf
from upmem_sim.profile import CAUSES, instruction_mix, line_counts, report

SOURCE = """#include <barrier.h>
#include <defs.h>
#include <mram.h>
#include <stdint.h>
BARRIER_INIT(meet, NR_TASKLETS);
__mram_noinit uint32_t data[4096];
__host uint32_t sums[NR_TASKLETS];
int main() {
    __dma_aligned uint32_t block[64];
    uint32_t sum = 0;
    for (unsigned i = 64 * me(); i < 4096; i += 64 * NR_TASKLETS) {
        mram_read(data + i, block, sizeof(block));
        for (int j = 0; j < 64; j++)
            sum += block[j]; /* the hot line */
    }
    sums[me()] = sum;
    barrier_wait(&meet);
    return 0;
}
"""
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "sum.c"
    path.write_text(SOURCE)
    return path


@pytest.fixture
def binary(source: Path) -> Path:
    path = source.with_suffix(".dpu")
    path.write_bytes(write_elf(compile_c(source, nr_tasklets=4)))
    return path


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Cli:
    def call(*arguments: object) -> tuple[int, str, str]:
        return invoke([str(a) for a in arguments]), *capsys.readouterr()

    return call


def test_counts_add_up(source: Path) -> None:
    dpu = Dpu(compile_c(source, nr_tasklets=4))
    result = dpu.run(profile=True)
    for tasklet in result.tasklets:
        assert sum(getattr(tasklet, cause) for cause in CAUSES) == result.cycles
    assert sum(instruction_mix(dpu.program, result).values()) == result.instructions
    counts = line_counts(dpu.program, result)
    assert sum(c.slots for c in counts) == result.instructions
    assert {13, 14} == {c.line for c in counts[:2]}
    assert all(c.slots > 2 * 2048 - 64 for c in counts[:2])


def test_the_report_needs_a_profiled_run(source: Path) -> None:
    dpu = Dpu(compile_c(source))
    with pytest.raises(ValueError, match="ask for run"):
        report(dpu.program, dpu.run())


def test_profile_command(cli: Cli, binary: Path, source: Path) -> None:
    status, out, err = cli("profile", binary, "--hot", 1)
    assert (status, err) == (0, "")
    assert "transfers: 64 reads of 16,384 bytes, 0 writes of 0 bytes" in out
    assert "     256 bytes             64\n" in out
    listing = out.split(f"\n\n{source}:\n")[1]
    (hot,) = (line for line in listing.splitlines() if "the hot line" in line)
    assert int(hot.split()[0].replace(",", "")) >= 2048
    assert "   9      __dma_aligned" in out
    assert "DMA between MRAM and WRAM" not in out  # of headers the counted lines only


def test_profile_reads_inputs_from_files(cli: Cli, tmp_path: Path) -> None:
    source = tmp_path / "n.c"
    source.write_text(
        "#include <defs.h>\n__host unsigned n, out;\n"
        "int main() { for (unsigned i = 0; i < n; i++) out ^= i; return 0; }\n"
    )
    binary, data = tmp_path / "n.dpu", tmp_path / "n.bin"
    binary.write_bytes(write_elf(compile_c(source, opt="-O0")))
    data.write_bytes((5000).to_bytes(4, "little"))
    _, short, _ = cli("profile", binary)
    _, long, _ = cli("profile", binary, "--input", f"n={data}")
    cycles = [int(text.split()[0].replace(",", "")) for text in (short, long)]
    assert cycles[1] > cycles[0] + 5000 * 11
    assert (
        cli("profile", binary, "--input", "n")[2] == "upmem-sim: --input n: must be SYMBOL=FILE\n"
    )
    assert "symbol 'm': not in the program" in cli("profile", binary, "--input", f"m={data}")[2]


def test_trace_command(cli: Cli, binary: Path, tmp_path: Path) -> None:
    status, out, _ = cli("trace", binary, "-o", tmp_path / "t.json")
    assert status == 0
    assert " spans, " in out
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    assert {e["tid"] for e in spans} == {0, 1, 2, 3}
    reads = [e for e in spans if e["name"] == "dma read"]
    assert len(reads) == 64
    assert {e["args"]["bytes"] for e in reads} == {256}
