"""Hardware constants of a DPU and of the system around it: value, unit, meaning, source, evidence
and range.

`DpuParams.resolved()` turns them into the integers that the native core uses (cycles with a
fraction become multiples of 1 / `FRACTION` cycle), so no floating point reaches the cycle loop.
Sources: UPMEM SDK manual; PrIM (Gomez-Luna et al., IEEE Access 2022); uPIMulator (Hyun et al.,
HPCA 2024); ATiM (2025). "Fitted" values were fitted by us to run times published for those.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from typing import Any

from upmem_sim.arguments import number

__all__ = ["DPU_PRESETS", "FRACTION", "DpuParams", "SystemParams", "params_of"]

FRACTION = 1 << 10
"""Fixed-point denominator of fractional cycles in the core."""


def _constant(
    value: Any, unit: str, meaning: str, source: str, evidence: str, low: float, high: float
) -> Any:
    """A dataclass field that carries unit, meaning, source, evidence and allowed range."""
    return field(
        default=value,
        metadata={
            "unit": unit,
            "meaning": meaning,
            "source": source,
            "evidence": evidence,
            "range": (low, high),
        },
    )


def _check_ranges(params: Any) -> None:
    for f in fields(params):
        low, high = f.metadata["range"]
        value = getattr(params, f.name)
        number(f.name, value, whole_only=type(f.default) is int)
        if not low <= value <= high:
            raise ValueError(f"{f.name}: {value} {f.metadata['unit']}, limit {low} to {high}")


_SDK = "UPMEM SDK manual"
_WHAT_IF = "hypothetical"
_CLOCKS_MHZ = (200.0, 500.0)  # of DIMMs that were sold or announced


def _slots(what: str) -> Any:
    """Issue slots that an instruction of a hypothetical unit takes; 0: there is no such unit."""
    meaning = f"issue slots of {what}; 0: no such unit"
    return _constant(0, "slots", meaning, _WHAT_IF, "none", 0, 64)


_FIT = "fitted to loops and DMA sweeps measured on a 350 MHz DPU"


@dataclass(frozen=True, slots=True)
class DpuParams:
    """One DPU. The defaults are the v1A chip that PrIM and ATiM were measured on."""

    clock_mhz: float = _constant(
        350.0,
        "MHz",
        "clock of the pipeline",
        _SDK,
        "int32 add loop of 6 instructions at 58.5 MOPS (PrIM)",
        1.0,
        5000.0,
    )
    tasklets: int = _constant(
        24, "threads", "hardware threads a program may use", _SDK, "hardware threads", 1, 24
    )
    iram_instructions: int = _constant(
        4096, "instructions", "instruction memory", _SDK, "24 KB of 48 bits", 8, 4096
    )
    wram_bytes: int = _constant(
        65536, "B", "working memory, shared by the tasklets", _SDK, "64 KB", 1024, 65536
    )
    mram_bytes: int = _constant(
        64 << 20, "B", "DRAM bank behind the DMA engine", _SDK, "64 MB", 8, 64 << 20
    )
    atomic_bits: int = _constant(
        256,
        "bits",
        "bits of acquire and release",
        _SDK,
        "acquire and release index 8 bits",
        256,
        256,
    )

    issue_distance_cycles: int = _constant(
        11,
        "cycles",
        "from an instruction to the next of the same tasklet",
        "PrIM section 2.2",
        "throughput saturates at 11 tasklets",
        1,
        63,
    )
    # A request waits for the engine, then occupies it; its tasklet goes on after the latency, which
    # overlaps with the next request. All five numbers are of a DMA engine between two refreshes.
    dma_read_latency_cycles: float = _constant(
        64.0,
        "cycles",
        "fixed part of a read, issue to next issue of the tasklet, engine free",
        _FIT,
        "single reads of 32 B to 1 KB within 5 %",
        0.0,
        10000.0,
    )
    dma_write_latency_cycles: float = _constant(
        36.0,
        "cycles",
        "fixed part of a write, issue to next issue of the tasklet, engine free",
        _FIT,
        "VA loop, one tasklet, 1 %",
        0.0,
        10000.0,
    )
    dma_cycles_per_byte: float = _constant(
        0.522,
        "cycles/B",
        "added to that latency by each byte",
        _FIT,
        "single reads of 32 B to 1 KB within 5 %",
        0.0,
        100.0,
    )
    dma_occupancy_cycles: float = _constant(
        36.0,
        "cycles",
        "fixed part of how long a request keeps the engine from the next one",
        _FIT,
        "saturated 8 B reads take 42.5 cycles",
        0.0,
        10000.0,
    )
    dma_occupancy_cycles_per_byte: float = _constant(
        0.522,
        "cycles/B",
        "added to that occupancy by each byte",
        _FIT,
        "saturated reads, 8 B to 1 KB, within 2 %",
        0.0,
        100.0,
    )
    dma_max_bytes: int = _constant(
        2048, "B", "largest transfer", _SDK, "8-bit length field of 8 B units", 8, 2048
    )
    dma_align_bytes: int = _constant(
        8,
        "B",
        "addresses and lengths are multiples of it",
        _SDK,
        "low 3 address bits are dropped",
        8,
        8,
    )

    # DRAM refresh: the DMA engine stands still at the end of every period. 0 = off.
    refresh_period_cycles: int = _constant(
        2730,
        "cycles",
        "from one DRAM refresh to the next; 0: none",
        "JEDEC DDR4 tREFI 7.8 us",
        "error 1.9 -> 1.1 % on 107 points",
        0,
        10**6,
    )
    refresh_window_cycles: int = _constant(
        122,
        "cycles",
        "how long a refresh stops the engine, at the end of the period",
        "JEDEC DDR4 tRFC 350 ns",
        "error 1.9 -> 1.1 % on 107 points",
        0,
        10**6,
    )

    # Rules of other simulators that published loop times contradict: switches, off by default.
    parity_conflict_cycles: int = _constant(
        0,
        "slots",
        "for two different sources of one parity",
        "uPIMulator",
        "contradicted: histogram loop +34 % with 1",
        0,
        16,
    )
    dma_steal_bytes: int = _constant(
        0,
        "B per stolen slot",
        "transferred bytes that cost one issue slot; 0: none",
        "hypothesis",
        "contradicted: VA loop +10 % with 8",
        0,
        2048,
    )
    taken_jump_cycles: int = _constant(
        0,
        "slots",
        "issue slots of a taken jump beyond its own",
        "hypothesis",
        "contradicted: array sum +29 % with 3",
        0,
        63,
    )

    silicon_dma_alignment: bool = _constant(
        False,
        "",
        "wrong addresses and lengths of DMA are rounded instead of a fault",
        _SDK,
        "silicon drops low bits of addresses and lengths; by default such a DMA faults",
        0,
        1,
    )
    silicon_stack: bool = _constant(
        False,
        "",
        "a stack pointer that leaves its tasklet's stack goes on instead of a fault",
        _SDK,
        "silicon does not look; by default leaving the stack faults",
        0,
        1,
    )

    # What-if cores. No chip has these; a core with any of them is not UPMEM's.
    multiply32_slots: int = _slots("32-bit products (mul32, mulhs32, mulhsu32, mulhu32)")
    float_add_slots: int = _slots("float32 sums, comparisons and conversions (fadd, flt, f2s, ...)")
    float_mul_slots: int = _slots("float32 products (fmul)")
    float_div_slots: int = _slots("float32 quotients (fdiv)")
    mram_bandwidth_scale: float = _constant(
        1.0,
        "",
        "times as many bytes a cycle between MRAM and WRAM; latencies stay",
        _WHAT_IF,
        "none",
        0.01,
        100.0,
    )

    def __post_init__(self) -> None:
        _check_ranges(self)
        if self.refresh_period_cycles and self.refresh_window_cycles >= self.refresh_period_cycles:
            raise ValueError(
                f"refresh_window_cycles: {self.refresh_window_cycles} cycles, limit less than "
                f"refresh_period_cycles ({self.refresh_period_cycles})"
            )

    @property
    def hypothetical(self) -> str:
        """What no UPMEM chip has, for the label of every time; empty for a chip that there is."""
        units = [
            f"{name} {value}"
            for name in ("multiply32", "float_add", "float_mul", "float_div")
            if (value := getattr(self, f"{name}_slots"))
        ]
        if self.mram_bandwidth_scale != 1:
            units.append(f"mram_bandwidth_scale {self.mram_bandwidth_scale:g}")
        low, high = _CLOCKS_MHZ
        if not low <= self.clock_mhz <= high:
            units.append(f"clock {self.clock_mhz:g} MHz")
        return ", ".join(units)

    @property
    def refresh_stretch(self) -> float:
        """Mean factor by which refresh lengthens a long stretch of DMA work."""
        if not self.refresh_period_cycles:
            return 1.0
        return self.refresh_period_cycles / (
            self.refresh_period_cycles - self.refresh_window_cycles
        )

    def resolved(self) -> dict[str, int]:
        """The integers of the native core; fractional cycles in units of 1 / FRACTION."""
        names = (
            "tasklets iram_instructions wram_bytes mram_bytes issue_distance_cycles "
            "refresh_period_cycles refresh_window_cycles parity_conflict_cycles "
            "dma_steal_bytes taken_jump_cycles silicon_dma_alignment "
            "multiply32_slots float_add_slots float_mul_slots float_div_slots"
        )
        out = {name: int(getattr(self, name)) for name in names.split()}
        for name in (
            "dma_read_latency_cycles",
            "dma_write_latency_cycles",
            "dma_cycles_per_byte",
            "dma_occupancy_cycles",
            "dma_occupancy_cycles_per_byte",
        ):
            scale = self.mram_bandwidth_scale if name.endswith("per_byte") else 1.0
            out[name] = round(getattr(self, name) / scale * FRACTION)
        return out


def params_of(settings: Iterable[str]) -> DpuParams:
    """The default chip with constants changed as `name=value` says. ValueError for others."""
    known = {f.name: f.default for f in fields(DpuParams)}
    values: dict[str, Any] = {}
    for text in settings:
        name, _, value = text.partition("=")
        if name not in known:
            raise ValueError(f"{text}: no constant of a DPU, see docs/hardware.md")
        try:
            values[name] = float(value) if isinstance(known[name], float) else int(value)
        except ValueError:
            raise ValueError(f"{text}: a number is needed") from None
    return DpuParams(**values)


_UNITS: dict[str, Any] = {
    f"{unit}_slots": 1 for unit in ("multiply32", "float_add", "float_mul", "float_div")
}

DPU_PRESETS: dict[str, DpuParams] = {
    "v1A": DpuParams(),
    "v1A without refresh": DpuParams(
        dma_read_latency_cycles=70.0,
        dma_write_latency_cycles=40.0,
        dma_cycles_per_byte=0.545,
        dma_occupancy_cycles=38.0,
        dma_occupancy_cycles_per_byte=0.545,
        refresh_period_cycles=0,
    ),
    "v1B": DpuParams(
        clock_mhz=400.0,
        tasklets=16,
        iram_instructions=3968,
        wram_bytes=63488,
        refresh_period_cycles=3120,
        refresh_window_cycles=140,
    ),
    "what-if units": DpuParams(**_UNITS),
    "what-if units, 1 GHz": DpuParams(
        clock_mhz=1000.0, refresh_period_cycles=7800, refresh_window_cycles=350, **_UNITS
    ),
}
"""Named chips, and cores that nobody made: a v1A with a 32-bit multiplier and a float unit. v1B
timing is assumed equal to v1A in cycles, refresh equal in nanoseconds. Without refresh, its mean
effect is in the latencies and occupancies: both models move long streams of data at the same
rate."""


@dataclass(frozen=True, slots=True)
class SystemParams:
    """The DIMMs around the DPUs."""

    dpus: int = _constant(2560, "DPUs", "DPUs of a system", _SDK, "20 DIMMs of 128", 1, 2560)
    dpus_per_rank: int = _constant(
        64, "DPUs", "DPUs that one command reaches", _SDK, "8 chips of 8 DPUs", 1, 64
    )
    launch_ms: float = _constant(
        0.10,
        "ms",
        "added to the cycles by a synchronous launch",
        "fitted to PrIM and ATiM kernels",
        "within 0.05 ms",
        0.0,
        1000.0,
    )
    launch_ms_per_rank: float = _constant(
        0.006,
        "ms/rank",
        "added to that by each rank of the launch",
        "fixed part of ATiM's MTV by column pieces, 2048 DPUs, less the kernel's own start",
        "0.29 ms there, 0.28 left by VA and RED of ATiM on as many, 0.19 by VA on 1024",
        0.0,
        1000.0,
    )

    def __post_init__(self) -> None:
        _check_ranges(self)
