"""Options of a run: profile, timeline, and checks of what hardware would let pass."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from harness import booted, program

from upmem_sim.dpu import Dpu
from upmem_sim.errors import SimFault
from upmem_sim.program import MRAM_BASE, Program, Symbol
from upmem_sim.timeline import KINDS, write_perfetto

END = "\nend: stop true, end"
DATA = {"data": Symbol("data", MRAM_BASE + 64, 16, ".mram")}


def fault_of(loaded: Program, check: str, **host: bytes) -> SimFault | None:
    """The fault with the check on; without it the program must run."""
    dpu = Dpu(loaded)
    for name, data in host.items():
        dpu.write(name, data)
    dpu.run()
    dpu = Dpu(loaded)
    for name, data in host.items():
        dpu.write(name, data)
    try:
        dpu.run(checks=[check])
    except SimFault as fault:
        return fault
    return None


def test_options_do_not_change_the_run() -> None:
    body = "lsl r0, id8, 6\nldma r0, r2, 3\nacquire zero, 9, nz, .\nlw r1, r0, 4\nsw r0, 8, r1\n"
    loaded = program(booted(body + "release zero, 9, nz, .+1" + END, 12), tasklets=12)
    plain = Dpu(loaded).run()
    assert Dpu(loaded).run(profile=True, trace=True, checks=["races"]) == plain


def test_unknown_check_is_refused() -> None:
    with pytest.raises(ValueError, match="checks: typos unknown, known are uninitialised, races"):
        Dpu(program("nop" + END)).run(checks=["typos"])


# ---- timeline


def test_spans_cover_each_tasklet_from_boot_to_end() -> None:
    body = "lsl r0, id8, 8\nldma r0, r2, 127\nnop\nsdma r0, r2, 15\nnop"
    dpu = Dpu(program(booted(body + END, 3), tasklets=3))
    result = dpu.run(trace=True)
    assert result.trace is not None
    for tasklet in range(3):
        spans = result.trace[result.trace["tasklet"] == tasklet]
        kinds = [KINDS[kind] for kind in spans["kind"]]
        assert kinds == ["run", "dma read", "run", "dma write", "run"]
        assert (spans["begin"][1:] == spans["end"][:-1]).all()
        waits = spans[spans["kind"] > 0]
        assert (waits["end"] - waits["begin"]).sum() == result.tasklets[tasklet].dma
        assert waits["bytes"].tolist() == [1024, 128]


def test_sleep_and_lock_are_spans() -> None:
    body = """
      jneq id, 1, other
      stop true, woken
    woken:
      acquire zero, 7, nz, .
      release zero, 7, nz, end
    other:
      acquire zero, 7, nz, .
      nop
      resume one, 0
      nop
      nop
      release zero, 7, nz, .+1
    end: stop true, end
    """
    result = Dpu(program(booted(body, 2), tasklets=2)).run(trace=True)
    assert result.trace is not None
    spans = result.trace[result.trace["tasklet"] == 1]
    assert [KINDS[k] for k in spans["kind"]] == ["run", "sleep", "lock", "run"]
    asleep = spans[spans["kind"] == KINDS.index("sleep")]
    assert (asleep["end"] - asleep["begin"]).sum() == result.tasklets[1].asleep


def test_perfetto_file(tmp_path: Path) -> None:
    loaded = program("ldma r0, r2, 127" + END)
    result = Dpu(loaded).run(trace=True)
    assert result.trace is not None
    write_perfetto(tmp_path / "trace.json", {0: result.trace}, loaded, 350.0)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = [e["args"]["name"] for e in events if e["ph"] == "M"]
    assert names == ["DPU 0", "tasklet 0"]
    read = next(e for e in events if e["name"] == "dma read")
    assert read["args"] == {
        "cycle": 1,
        "cycles": result.tasklets[0].dma,
        "pc": 0,
        "line": "test.s:1",
        "bytes": 1024,
    }
    assert read["dur"] == pytest.approx(result.tasklets[0].dma / 350)


# ---- uninitialised memory


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("lw r0, zero, 512", "lw reads WRAM 0x200, which nothing has written"),
        ("sb zero, 513, r0\nlw r0, zero, 512", None),
        ("move r2, 64\nldma r0, r2, 0\nld d4, r0, 0", None),
        (
            "move r2, 72\nldma r0, r2, 0\nld d4, r0, 0",
            "ld reads WRAM 0x0, copied from MRAM 0x8000048 (data + 8), which nothing has written",
        ),
        (
            "move r2, 80\nmove r0, 512\nldma r0, r2, 1\nlbu r1, r0, 11",
            "lbu reads WRAM 0x20b, copied from MRAM 0x800005b, which nothing has written",
        ),
        ("move r0, 512\nsdma r0, r2, 0\nldma r0, r2, 0", None),
    ],
)
def test_reads_of_unwritten_memory(text: str, found: str | None) -> None:
    fault = fault_of(program(text + END, symbols=DATA), "uninitialised", data=bytes(8))
    assert (fault is None) == (found is None)
    if fault is not None and found is not None:
        assert fault.kind == "uninitialised"
        assert found in fault.message


def test_loaded_image_and_view_writes_count_as_written() -> None:
    dpu = Dpu(program("lw r0, zero, 4\nlw r1, zero, 16" + END, wram=bytes(8)))
    dpu.wram[17] = 1
    dpu.run(checks=["uninitialised"])


# ---- races

_LOCKED = """
  acquire zero, 7, nz, .
  lw r0, zero, 64
  add r0, r0, 1
  sw zero, 64, r0
  release zero, 7, nz, .+1
"""
_RESUMED = """
  jneq id, 1, other
  stop true, woken
woken:
  lw r0, zero, 64
  jump end
other:
  sw zero, 64, r0
  resume one, 0
"""


@pytest.mark.parametrize(
    ("body", "racy"),
    [
        (_LOCKED, False),
        (_LOCKED.replace("acquire zero, 7, nz, .", "nop"), True),
        (_LOCKED.replace("acquire zero, 7", "acquire id, 7"), True),
        (_RESUMED, False),
        (_RESUMED.replace("resume one, 0", "resume one, 0\nsw zero, 64, r0"), True),
        ("lsl r1, id8, 0\nsw r1, 64, r0\nlw r0, r1, 64", False),
        ("sb id, 64, r0", False),
        ("lw r0, zero, 64", False),
        ("sw zero, 64, r0", True),
        ("lsl r0, id8, 2\nldma r0, r2, 7", True),
        ("lsl r0, id8, 3\nldma r0, r2, 7", False),
    ],
)
def test_races(body: str, racy: bool) -> None:
    fault = fault_of(program(booted(body + END, 2), tasklets=2), "races")
    assert (fault is not None) == racy
    if fault is not None:
        assert fault.kind == "race"
        assert "without synchronisation in between" in fault.message


def test_what_was_written_before_boot_may_be_read() -> None:
    text = "jneq id, 0, main\nsw zero, 64, r0\nboot zero, 1\nmain: lw r0, zero, 64" + END
    assert fault_of(program(text, tasklets=2), "races") is None


def test_histogram_is_per_instruction() -> None:
    result = Dpu(program("move r0, 3\nloop: add r0, r0, -1, nz, loop" + END)).run(profile=True)
    assert result.histogram is not None
    assert result.histogram.dtype == np.uint64
    assert int(result.histogram.sum()) == result.instructions
