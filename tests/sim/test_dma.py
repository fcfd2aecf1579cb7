"""DMA timing and rules: latency, occupancy, first in first out, refresh, alignment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from harness import Steps, booted, program

from upmem_sim.dpu import Dpu
from upmem_sim.errors import SimFault
from upmem_sim.params import DPU_PRESETS, DpuParams

P = DpuParams()
PER_BYTE = P.dma_cycles_per_byte


def latency(op: str, size: int) -> int:
    """Cycles from the issue of one transfer to the next issue, engine free."""
    steps = Steps(program(f"{op} r0, r2, {size // 8 - 1}\nnop\nend: stop true, end"))
    steps.assert_earliest_issue_at(0)
    _, at = steps.issue()
    return at


@pytest.mark.parametrize("size", [8, 16, 64, 256, 1024, 2048])
@pytest.mark.parametrize(
    ("op", "alpha"), [("ldma", P.dma_read_latency_cycles), ("sdma", P.dma_write_latency_cycles)]
)
def test_latency_is_a_line(op: str, alpha: float, size: int) -> None:
    assert latency(op, size) == pytest.approx(alpha + PER_BYTE * size, abs=1)


@pytest.mark.parametrize(("size", "silicon"), [(32, 87), (256, 212), (512, 340), (1024, 614)])
def test_mean_latency_matches_silicon(size: int, silicon: float) -> None:
    """One tasklet, reads at all phases of the refresh period; the model is within 5 %."""
    text = f"move r1, 400\nloop:\nldma r0, r2, {size // 8 - 1}\nnop\nnop\n"
    text += "add r1, r1, -1, nz, loop\nend: stop true, end"
    cycles = Dpu(program(text)).run().cycles / 400 - 33
    assert cycles == pytest.approx(silicon, rel=0.05)


def test_gate_is_tight() -> None:
    steps = Steps(program("ldma r0, r2, 0\nnop\nend: stop true, end"))
    steps.assert_earliest_issue_at(0)
    steps.assert_earliest_issue_at(69)  # 64 + 0.522 * 8 = 68.18


def saturated(size: int, tasklets: int = 16, params: DpuParams = P) -> float:
    """Cycles per transfer with many tasklets doing nothing but reading."""
    body = f"""
      move r1, 50
      lsl r0, id8, 8
    loop:
      ldma r0, r2, {size // 8 - 1}
      add r1, r1, -1, nz, loop
    end: stop true, end
    """
    result = Dpu(program(booted(body, tasklets), tasklets=tasklets), params).run()
    assert result.dma.reads == 50 * tasklets
    assert result.dma.read_bytes == 50 * tasklets * size
    assert result.dma.sizes[size // 8 - 1] == 50 * tasklets
    return result.cycles / result.dma.reads


@pytest.mark.parametrize(
    ("size", "silicon"),
    [(8, 42.5), (16, 47), (32, 56), (64, 74), (128, 110), (256, 178), (512, 319), (1024, 597)],
)
def test_saturated_reads_match_silicon(size: int, silicon: float) -> None:
    """Back-to-back reads measured on a 350 MHz DPU; the model is within 3 %."""
    assert saturated(size) == pytest.approx(silicon, rel=0.03)
    assert saturated(size) == pytest.approx((36 + 0.522 * size) * P.refresh_stretch, rel=0.01)
    still = DPU_PRESETS["v1A without refresh"]
    assert saturated(size, params=still) == pytest.approx(38 + 0.545 * size, rel=0.01)


def test_two_tasklets_saturate_1_kb_reads() -> None:
    """PrIM: MRAM copies by DMA saturate at two tasklets."""
    assert saturated(1024, 2) == pytest.approx(saturated(1024, 16), rel=0.02)
    assert saturated(1024, 1) > 1.04 * saturated(1024, 2)


def test_requests_are_served_first_in_first_out() -> None:
    text = "jgtu id, 0, main\nboot zero, 1\nmain:\nldma r0, r2, 255\nnop\nend: stop true, end"
    steps = Steps(program(text, tasklets=2), DPU_PRESETS["v1A without refresh"])
    steps.skip(2)
    assert steps.issue() == (1, 12)
    assert steps.issue() == (0, 22)
    assert steps.issue() == (1, 23)
    first = 22 + 70 + 0.545 * 2048
    second = 22 + 38 + 0.545 * 2048 + 70 + 0.545 * 2048
    assert steps.issue() == (0, pytest.approx(first, abs=1))
    steps.skip(1)
    assert steps.issue() == (1, pytest.approx(second, abs=1))


def test_waiting_is_booked_as_dma() -> None:
    result = Dpu(program("ldma r0, r2, 127\nnop\nend: stop true, end")).run()
    wait = latency("ldma", 1024) - 1
    assert result.tasklets[0].dma == wait
    assert result.tasklets[0].total == result.cycles == 1 + wait + 1 + 10 + 1


def test_refresh_stops_the_engine() -> None:
    assert P.refresh_stretch == pytest.approx(2730 / (2730 - 122))
    assert saturated(1024) == pytest.approx((36 + 0.522 * 1024) * P.refresh_stretch, rel=0.01)


def test_refresh_delays_work_across_a_window() -> None:
    params = replace(
        DPU_PRESETS["v1A without refresh"], refresh_period_cycles=1000, refresh_window_cycles=100
    )
    steps = Steps(program("ldma r0, r2, 0\nldma r0, r2, 255\nnop\nend: stop true, end"), params)
    steps.assert_earliest_issue_at(0)
    steps.assert_earliest_issue_at(75)  # 74.36 cycles
    _, at = steps.issue()  # 1186 cycles from 75: a window begins at 900
    assert at == pytest.approx(75 + 70 + 0.545 * 2048 + 100, abs=1)


def test_a_request_within_a_window_waits_for_its_end() -> None:
    params = replace(
        DPU_PRESETS["v1A without refresh"], refresh_period_cycles=100, refresh_window_cycles=95
    )
    steps = Steps(program("nop\nsdma r0, r2, 0\nnop\nend: stop true, end"), params)
    steps.skip(2)  # the write issues in cycle 11, the window ends at 100, 5 cycles of each 100 work
    _, at = steps.issue()
    assert at == 100 + 8 * 100 + 5  # 44.36 cycles are 8 periods and 4.36 cycles


def test_data_move_both_ways() -> None:
    text = """
      move r0, 64
      move r2, 0x08000100
      ldma r0, r2, 1
      lw r3, r0, 4
      add r3, r3, 1
      sw r0, 4, r3
      move r2, 0x200
      sdma r0, r2, 1
      end: stop true, end
    """
    dpu = Dpu(program(text))
    data = np.arange(4, dtype=np.uint32)
    dpu.mram[0x100:0x110] = data.view(np.uint8)
    result = dpu.run()
    assert dpu.mram[0x200:0x210].view(np.uint32).tolist() == [0, 2, 2, 3]
    assert (result.dma.reads, result.dma.writes) == (1, 1)
    assert (result.dma.read_bytes, result.dma.write_bytes) == (16, 16)


def test_length_comes_from_field_and_top_byte() -> None:
    text = "move r1, 2\nlsl_add r0, r0, r1, 24\nldma r0, r2, 255\nend: stop true, end"
    assert Dpu(program(text)).run().dma.read_bytes == 8 * (1 + (255 + 2) % 256)


@pytest.mark.parametrize(
    ("setup", "kind", "message"),
    [
        ("move r0, 0x10004", "dma-alignment", "WRAM 0x10004: address must be a multiple of 8"),
        ("move r2, 0x13", "dma-alignment", "MRAM 0x13: address must be a multiple of 8"),
        ("move r0, 0xfff8", "dma-range", "of 16 bytes at WRAM 0xfff8: WRAM has 65536 bytes"),
        ("move r2, 0x3fffff8", "dma-range", "at MRAM 0x3fffff8: MRAM has 67108864 bytes"),
        ("move r2, 0x10000000", "dma-range", "at MRAM 0x10000000: MRAM has 67108864 bytes"),
    ],
)
def test_wrong_transfers_fault(setup: str, kind: str, message: str) -> None:
    dpu = Dpu(program(f"{setup}\nldma r0, r2, 1\nend: stop true, end"))
    with pytest.raises(SimFault, match=message) as caught:
        dpu.run()
    assert (caught.value.kind, caught.value.tasklet, caught.value.pc) == (kind, 0, 1)
    assert (caught.value.file, caught.value.line) == ("test.s", 2)


def test_silicon_rounds_misaligned_addresses() -> None:
    params = DpuParams(silicon_dma_alignment=True)
    dpu = Dpu(program("move r0, 13\nmove r2, 0x13\nldma r0, r2, 0\nend: stop true, end"), params)
    dpu.mram[16:24] = np.arange(1, 9)
    dpu.run()
    assert dpu.wram[8:16].tolist() == [1, 2, 3, 4, 5, 6, 7, 8]


_SDK = """
move r1, -1
move r2, {far}
move r3, {size}
lsr_add r4, r1, r3, 3
add r7, r7, 1
lsl_add r4, r5, r4, 24
ldma r4, r2, 0
end: stop true, end"""


@pytest.mark.parametrize(("size", "moved"), [(8, 8), (12, 8), (2047, 2040), (2048, 2048)])
def test_lengths_as_other_compilers_compute_them(size: int, moved: int) -> None:
    """A remainder may be what is left of a mask that was dropped."""
    assert Dpu(program(_SDK.format(far=0, size=size))).run().dma.read_bytes == moved


@pytest.mark.parametrize("size", [0, 7, 2056, 1 << 20])
def test_impossible_lengths_of_other_compilers(size: int) -> None:
    for plain in (False, True):
        with pytest.raises(SimFault, match=f"ldma at pc 6 of {size} bytes") as caught:
            Dpu(program(_SDK.format(far=0, size=size))).run(plain=plain)
        assert (caught.value.kind, caught.value.pc) == ("dma-length", 3)


def test_the_wram_side_of_a_length_known_at_run_time() -> None:
    text = "move r5, 0x08000010\n" + _SDK.format(far=0, size=16)
    with pytest.raises(SimFault, match=r"WRAM 0x8000010: .*an MRAM address used as WRAM"):
        Dpu(program(text)).run()


@pytest.mark.parametrize(
    "text",
    [
        "move r3, 5\nlsr r3, r3, 3\nadd r3, r3, -1\nmove r4, r3",  # no transfer follows
        "move r3, 5\nlsr r3, r3, 3\nmove r3, 0\nlsl_add r3, r0, r3, 24\nldma r3, r2, 0",
        "move r1, 4\nmove r3, 2\nlsr_add r4, r1, r3, 3\nlsl_add r4, r0, r4, 24\nldma r4, r2, 0",
        "move r3, 9\nlsl r3, r3, 24\nldma r3, r2, 0",  # a length of 80 bytes, not an MRAM address
    ],
)
def test_what_only_looks_like_a_wrong_length(text: str) -> None:
    Dpu(program(text + "\nend: stop true, end")).run()
