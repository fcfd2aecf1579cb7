"""Errors of the simulator package; every message is one line.

    SimError
      CompileError    C source that cannot be compiled
      AsmError        assembly text, or an instruction that does not exist
      LinkError       units that do not fit together, or do not fit the DPU
      ElfError        a file that is not a DPU program, or is damaged
      SimFault        the running program broke a rule of the hardware
"""

from __future__ import annotations


class SimError(Exception):
    """Base of all errors of this package."""


class CompileError(SimError):
    """C source that cannot be compiled."""


class AsmError(SimError):
    """Assembly text that is wrong, or an instruction that does not exist."""


class LinkError(SimError):
    """Units that do not fit together, or do not fit the DPU's memories."""


class ElfError(SimError):
    """A file that is not a DPU program, or is damaged."""


class SimFault(SimError):
    """The running program broke a rule of the hardware.

    kind     "memory", "dma", "deadlock", "breakpoint", ...
    dpu      index of the DPU
    tasklet  hardware thread
    pc       instruction index
    file, line   C source position, or None
    """

    def __init__(
        self,
        kind: str,
        dpu: int,
        tasklet: int,
        pc: int,
        file: str | None,
        line: int | None,
        message: str,
    ) -> None:
        where = f" ({file}:{line})" if file else ""
        super().__init__(f"{kind} fault: DPU {dpu} tasklet {tasklet} pc {pc}{where}: {message}")
        self.kind, self.dpu, self.tasklet, self.pc = kind, dpu, tasklet, pc
        self.file, self.line, self.message = file, line, message
