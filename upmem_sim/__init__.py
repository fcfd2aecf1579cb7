"""Open cycle-level simulator of the UPMEM machine: compile C, run it on DPUs, look inside.

    from upmem_sim import Dpu, compile_c
    dpu = Dpu(compile_c("task.c", nr_tasklets=16))
    dpu.write("n", np.uint32(1000))
    print(dpu.run().cycles)

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from upmem_sim.asm import assemble
    from upmem_sim.cc import compile_c
    from upmem_sim.dpu import Dpu, RunResult, run_many
    from upmem_sim.elf import read_elf, write_elf
    from upmem_sim.errors import (
        AsmError,
        CompileError,
        ElfError,
        LinkError,
        SimError,
        SimFault,
    )
    from upmem_sim.log import read_log
    from upmem_sim.params import DpuParams, SystemParams
    from upmem_sim.program import Program, Symbol
    from upmem_sim.system import System, SystemResult
    from upmem_sim.transfer import TransferModel

__all__ = [
    "AsmError",
    "CompileError",
    "Dpu",
    "DpuParams",
    "ElfError",
    "LinkError",
    "Program",
    "RunResult",
    "SimError",
    "SimFault",
    "Symbol",
    "System",
    "SystemParams",
    "SystemResult",
    "TransferModel",
    "assemble",
    "compile_c",
    "read_elf",
    "read_log",
    "run_many",
    "write_elf",
]

_MODULES = {
    "upmem_sim.asm": ("assemble",),
    "upmem_sim.cc": ("compile_c",),
    "upmem_sim.dpu": ("Dpu", "RunResult", "run_many"),
    "upmem_sim.elf": ("read_elf", "write_elf"),
    "upmem_sim.errors": (
        "AsmError",
        "CompileError",
        "ElfError",
        "LinkError",
        "SimError",
        "SimFault",
    ),
    "upmem_sim.log": ("read_log",),
    "upmem_sim.params": ("DpuParams", "SystemParams"),
    "upmem_sim.program": ("Program", "Symbol"),
    "upmem_sim.system": ("System", "SystemResult"),
    "upmem_sim.transfer": ("TransferModel",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'upmem_sim' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value
