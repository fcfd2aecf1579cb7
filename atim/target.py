"""The machine that a program is compiled for: how many DPUs and tasklets may be used, and chip
limits.

Hardware numbers are those of `upmem_sim.params` (each with its source); this file only names
presets and checks what a user asks for. The scopes and loop tags that schedules and code
generation share are here too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from atim.errors import UsageError
from upmem_sim.params import DPU_PRESETS, DpuParams, SystemParams
from upmem_sim.transfer import PRESETS, TransferModel

__all__ = [
    "ANNOTATE_MULTIPLY",
    "ANNOTATE_ROLLED",
    "ATTRIBUTE_MARGINS",
    "DMA_ALIGN_BYTES",
    "DMA_MAX_BYTES",
    "MRAM_RESERVE_BYTES",
    "MULTIPLY_BYTES",
    "MULTIPLY_FLOAT",
    "MULTIPLY_LIBRARY",
    "MULTIPLY_NARROW",
    "MULTIPLY_STEPS",
    "MULTIPLY_STEPS_SECOND",
    "MULTIPLY_WORDS",
    "SCOPE_REGISTERS",
    "SCOPE_SHARED",
    "SCOPE_TASKLET",
    "STACK_BYTES",
    "TARGETS",
    "WRAM_RESERVE_BYTES",
    "Target",
]

DMA_ALIGN_BYTES = DpuParams().dma_align_bytes
DMA_MAX_BYTES = DpuParams().dma_max_bytes

# Emitted kernels keep their buffers static and call leaf routines only (multiply, float): 512 bytes
# hold the saved registers and some spills, and leave PrIM's three 1 KB blocks room at 16 tasklets.
STACK_BYTES = 512

# WRAM of the runtime itself: scheduler words, barriers, constants and alignment of the sections.
WRAM_RESERVE_BYTES = 1024

# MRAM kept free after the operands, where the last DMA may read past the end of one.
MRAM_RESERVE_BYTES = 1 << 16

# Threads of the host at work at once: what a schedule may ask for, and what emitted code starts.
MAX_HOST_THREADS = 256

# Memory scopes of scheduled TIR
SCOPE_TASKLET = "local.wram"  # one buffer a tasklet, in WRAM
SCOPE_SHARED = "shared.wram"  # one buffer a DPU, in WRAM, written by all tasklets
SCOPE_REGISTERS = "local"  # a few accumulators of one tasklet, meant to stay in registers

# Attribute of a PrimFunc: input's name -> its margin in front of each axis, then its true shape
ATTRIBUTE_MARGINS = "atim.margins"

# Annotation of a loop, with any value: the compiler is told to leave it rolled
ANNOTATE_ROLLED = "atim.rolled"

# Annotation of a block: how `sum += a * b` multiplies. All are exact for every value.
ANNOTATE_MULTIPLY = "atim.multiply"
MULTIPLY_LIBRARY = 0  # the compiler's routine
# int32
MULTIPLY_STEPS = 1  # mul_step in place, as many steps as the first factor has significant bits
MULTIPLY_STEPS_SECOND = 2  # the same with the second factor
MULTIPLY_BYTES = 3  # ten products of bytes, whatever the values
MULTIPLY_NARROW = 4  # one product of bytes until a factor turns up that is none, then ten
# 8 and 16 bits: byte products of eight bytes at a time
MULTIPLY_WORDS = 5
# float32: the sum stays unpacked, the routine is written out
MULTIPLY_FLOAT = 6

TARGETS = {
    "upmem-v1a": "v1A",
    "upmem-v1b": "v1B",
    "hypothetical-units": "what-if units",
    "hypothetical-units-1ghz": "what-if units, 1 GHz",
}
"""Preset name -> chip of `upmem_sim.params.DPU_PRESETS`."""


@dataclass(frozen=True, slots=True)
class Target:
    """A set of DPUs.

    name         preset: upmem-v1a (350 MHz, 24 tasklets) or upmem-v1b (400 MHz, 16 tasklets);
                 hypothetical-units and hypothetical-units-1ghz are a v1A with a 32-bit multiplier
                 and a float unit, which nobody made: kernels are compiled for them and simulated
    dpus         DPUs that may be used, 1 to 2560 (20 DIMMs)
    tasklets     tasklets that may be used, 1 to the chip's; 0 means the chip's
    stack_bytes  WRAM stack of each tasklet, a multiple of 8
    transfer     preset of `upmem_sim.transfer`: the system whose host-side times are modelled;
                 or a file that `atim calibrate` wrote (a name that ends with .json)
    hardware     programs run on DIMMs through the UPMEM SDK, and times are measured there
    """

    name: str = "upmem-v1a"
    dpus: int = 2048
    tasklets: int = 0
    stack_bytes: int = STACK_BYTES
    transfer: str = "common"
    hardware: bool = False

    def __post_init__(self) -> None:
        if self.name not in TARGETS:
            raise UsageError(f"target: {self.name!r} unknown, known: {', '.join(TARGETS)}")
        if self.hardware and self.chip.hypothetical:
            raise UsageError(f"target {self.name}: hypothetical, no DIMMs to run on")
        if self.tasklets == 0:
            object.__setattr__(self, "tasklets", self.chip.tasklets)
        _check("DPUs", self.dpus, 1, SystemParams().dpus)
        _check("tasklets", self.tasklets, 1, self.chip.tasklets)
        _check("stack bytes", self.stack_bytes, 64, self.chip.wram_bytes // self.tasklets)
        if self.stack_bytes % DMA_ALIGN_BYTES:
            raise UsageError(f"stack bytes: {self.stack_bytes} requested, multiple of 8 needed")
        if self.transfer.endswith(".json"):
            _check_file(self.transfer)
        elif self.transfer not in PRESETS:
            known = ", ".join(PRESETS)
            raise UsageError(
                f"transfer: {self.transfer!r} unknown, known: {known}, and files NAME.json of"
                " atim calibrate"
            )

    def on_hardware(self) -> Target:
        """The same DPUs as real ones: runs need the SDK's tools (UPMEM_HOME, or on PATH)."""
        return replace(self, hardware=True)

    @property
    def chip(self) -> DpuParams:
        """Timing and sizes of one DPU."""
        return DPU_PRESETS[TARGETS[self.name]]

    @property
    def label(self) -> str:
        """The name, and what no UPMEM chip has: for every output that carries times."""
        what = self.chip.hypothetical
        return f"{self.name} (HYPOTHETICAL: no UPMEM chip has {what})" if what else self.name

    @property
    def units(self) -> tuple[str, ...]:
        """Hypothetical instructions that kernels are compiled to."""
        return ("mul32", "float") if self.chip.multiply32_slots else ()

    @property
    def wram_bytes(self) -> int:
        return self.chip.wram_bytes

    @property
    def mram_bytes(self) -> int:
        return self.chip.mram_bytes

    @property
    def iram_instructions(self) -> int:
        return self.chip.iram_instructions


def _check_file(path: str) -> None:
    try:
        TransferModel.preset(path)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _check(what: str, value: int, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise UsageError(f"{what}: integer expected, {value!r} given")
    if value < low:
        raise UsageError(f"{what}: {value} requested, at least {low} needed")
    if value > high:
        raise UsageError(f"{what}: {value} requested, limit {high}")
