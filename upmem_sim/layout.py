"""Where sections go: IRAM, WRAM, MRAM and atomic bits, as the SDK's linker script places them.

WRAM order (UPMEM SDK, `dpu.lds`; manual page "DPU ABI"): null bytes, immediate memory, rodata, bss,
kept data, data, host variables, stack table, stacks, one 8-byte cache a tasklet, heap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from upmem_sim.errors import LinkError
from upmem_sim.objfile import Section
from upmem_sim.params import DpuParams
from upmem_sim.program import ATOMIC_BASE, MRAM_BASE

_CHIP = DpuParams()
IRAM_INSNS = _CHIP.iram_instructions
WRAM_BYTES = _CHIP.wram_bytes
MRAM_BYTES = _CHIP.mram_bytes
ATOMIC_BITS = _CHIP.atomic_bits
MAX_TASKLETS = _CHIP.tasklets
ATOMIC_RESERVED = 200  # bits that the run time reaches by hash
IMMEDIATE_END = 2048  # reach of the 12-bit offset of stores of constants
NULL_BYTES = 8
CACHE_BYTES = 8  # per tasklet, for MRAM variables used directly
STACK_TABLE = "__sys_thread_stack_table_ptr"

HOST = ".data.__sys_host"
# Output sections in WRAM, in order: (name, prefixes of input sections).
WRAM_ORDER: tuple[tuple[str, tuple[str, ...]], ...] = (
    (".immediate_memory", (".data.immediate_memory",)),
    (".rodata", (".rodata", ".srodata", ".data.rel.ro")),
    (".bss", (".bss", ".sbss")),
    (".data.__sys_keep", (".data.__sys_keep",)),
    (".data", ()),
    (HOST, (".dpu_host", ".data.__sys_host")),
)
# WRAM that no file sets.
RESERVED_SECTIONS = (".data.stacks", ".data.sw_cache", ".data.heap_pointer_reset")
_LINKER_SECTIONS = {
    "__rodata_start_addr": ".data",
    "__rodata_end_addr": ".data",
    "__sw_cache_buffer": ".data.sw_cache",
    "__sys_heap_pointer_reset": ".data.heap_pointer_reset",
    "__sys_used_mram_end": ".mram",
    STACK_TABLE: ".data",
}


def output_section(name: str) -> str:
    """The output section an input section goes to."""
    if name.startswith(".text"):
        return ".text"
    if name.startswith(".mram.noinit"):
        return ".mram.noinit"
    for prefix in (".mram", ".atomic"):
        if name.startswith(prefix):
            return prefix
    for output, prefixes in WRAM_ORDER:
        if name.startswith(prefixes):
            return output
    return ".data"


def file_section(output: str) -> str:
    """The section of the linked file that an output section goes to: most of WRAM is `.data`."""
    return ".data" if output in (name for name, _ in WRAM_ORDER if name != HOST) else output


def linker_section(name: str) -> str:
    """The section of a name that the linker defines, "*ABS*" if it is just a number."""
    if name.startswith("__sys_stack_thread_"):
        return ".data.stacks"
    if name.startswith("__atomic_"):
        return ".atomic"
    return _LINKER_SECTIONS.get(name, "*ABS*")


@dataclass(slots=True, eq=False)
class Piece:
    """A section of a unit, and where it goes.

    `at` is an instruction index or an address, `length` counts instructions or bytes.
    """

    unit: int
    section: Section
    output: str
    labels: dict[str, int]
    length: int
    at: int = -1


def _up(value: int, align: int) -> int:
    return -(-value // align) * align


def linker_symbols(nr_tasklets: int, stacks: list[int]) -> dict[str, int]:
    """Names that the linker defines; addresses follow in `_place`."""
    values = {"NR_TASKLETS": nr_tasklets, "__atomic_start_addr": ATOMIC_BASE}
    values["__atomic_used_addr"] = ATOMIC_BASE + ATOMIC_RESERVED  # first bit of the program's
    for tasklet in range(MAX_TASKLETS):
        values[f"STACK_SIZE_TASKLET_{tasklet}"] = stacks[tasklet] if tasklet < nr_tasklets else 0
        if tasklet < nr_tasklets:
            values[f"__sys_stack_thread_{tasklet}"] = 0
    for name in ("__rodata_start_addr", "__rodata_end_addr", "__sys_heap_pointer_reset"):
        values[name] = 0
    for name in (
        "__sys_heap_pointer_end",
        "__sys_used_mram_end",
        "__sw_cache_buffer",
        "__atomic_end_addr",
    ):
        values[name] = 0
    values[STACK_TABLE] = 0
    return values


def _place_text(pieces: list[Piece]) -> None:
    at = 0
    for piece in pieces:
        if piece.output == ".text":
            piece.at = at
            at += piece.length
    if at > IRAM_INSNS:
        raise LinkError(
            f"IRAM: {at} instructions needed, limit {IRAM_INSNS}, {at - IRAM_INSNS} too many"
        )


def _place_output(pieces: list[Piece], output: str, at: int) -> int:
    for piece in pieces:
        if piece.output == output:
            piece.at = _up(at, piece.section.align)
            at = piece.at + piece.length
    return at


def _place_wram(
    pieces: list[Piece], values: dict[str, int], stacks: Sequence[int], table: bool
) -> int:
    """Place WRAM; the end of the loaded part in bytes."""
    at = NULL_BYTES
    for output, _ in WRAM_ORDER:
        start = _up(at, 8)
        at = _place_output(pieces, output, start)
        if output == ".immediate_memory" and at > IMMEDIATE_END:
            raise LinkError(f"WRAM: immediate memory ends at {at}, limit {IMMEDIATE_END}")
        if output == ".rodata":
            values["__rodata_start_addr"] = start
            values["__rodata_end_addr"] = at
    if table:
        values[STACK_TABLE] = _up(at, 8)
        at = _up(at, 8) + 8 * len(stacks)
    loaded = at = _up(at, 8)
    for tasklet, size in enumerate(stacks):
        values[f"__sys_stack_thread_{tasklet}"] = at
        at += size
    values["__sw_cache_buffer"] = at
    at += CACHE_BYTES * len(stacks)
    values["__sys_heap_pointer_reset"] = at
    values["__sys_heap_pointer_end"] = WRAM_BYTES
    if at > WRAM_BYTES:
        raise LinkError(
            f"WRAM: {at} bytes needed, limit {WRAM_BYTES}, {at - WRAM_BYTES} too many "
            f"({loaded} of variables, {sum(stacks)} of stacks: {len(stacks)} tasklets)"
        )
    return loaded


def _place_mram(pieces: list[Piece], values: dict[str, int]) -> tuple[int, int]:
    """Place MRAM; (start, end) of the initialised part as offsets in bytes."""
    start = _up(_place_output(pieces, ".mram.noinit", MRAM_BASE), 8)
    end = _place_output(pieces, ".mram", start)
    values["__sys_used_mram_end"] = _up(end, 8)
    used = _up(end, 8) - MRAM_BASE
    if used > MRAM_BYTES:
        raise LinkError(
            f"MRAM: {used} bytes needed, limit {MRAM_BYTES}, {used - MRAM_BYTES} too many"
        )
    return start - MRAM_BASE, end - MRAM_BASE


def _place_atomic(pieces: list[Piece], values: dict[str, int]) -> None:
    at = ATOMIC_BASE + ATOMIC_RESERVED
    for piece in pieces:
        if piece.output == ".atomic":
            piece.at, at = at, at + piece.length
    values["__atomic_end_addr"] = at  # start-up releases the program's bits
    used, free = at - ATOMIC_BASE - ATOMIC_RESERVED, ATOMIC_BITS - ATOMIC_RESERVED
    if used > free:
        raise LinkError(f"atomic bits: {used} needed, limit {free}, {used - free} too many")


@dataclass(frozen=True, slots=True)
class Extent:
    """Loaded parts: WRAM from 0 to `wram_end`, MRAM offsets `mram_start` to `mram_end`."""

    wram_end: int
    mram_start: int
    mram_end: int


def place(
    pieces: list[Piece], values: dict[str, int], stacks: Sequence[int], table: bool
) -> Extent:
    """Give every piece its place (`Piece.at`) and the linker's symbols their values.

    stacks  bytes of each tasklet's stack; table: the stack table is needed.
    Errors: LinkError when a memory does not suffice.
    """
    _place_text(pieces)
    wram_end = _place_wram(pieces, values, stacks, table)
    mram_start, mram_end = _place_mram(pieces, values)
    _place_atomic(pieces, values)
    return Extent(wram_end, mram_start, mram_end)
