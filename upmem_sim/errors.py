"""Errors of `upmem_sim`; the message of each is one line.

SimError            base of all
|- SimFault         a program broke a rule of the machine while it ran
|- CompileError     C source refused, or the compiler failed
|- AsmError         assembly text refused
|- LinkError        units do not fit together or into the memories
`- ElfError         file is not a usable DPU program
"""

from __future__ import annotations

__all__ = ["AsmError", "CompileError", "ElfError", "LinkError", "SimError", "SimFault"]


class SimError(Exception):
    """Base of every error that `upmem_sim` raises for a wrong input or program."""


class CompileError(SimError):
    """The C source cannot be compiled for the DPU."""


class AsmError(SimError):
    """The assembly text is not valid."""


class LinkError(SimError):
    """A symbol is missing or doubled, or a section does not fit."""


class ElfError(SimError):
    """The file is damaged, or is not a DPU program."""


class SimFault(SimError):
    """The machine stopped a program.

    kind      short name: "memory", "alignment", "dma-range", "dma-alignment", "dma-length",
              "deadlock", "cycle-limit", "fault", "illegal-instruction", "pc-range", ...
    dpu       index of the DPU in its run (0 for a lone one)
    tasklet   the tasklet at fault, -1 when it concerns all of them
    pc        instruction index, -1 when unknown
    file, line  place in the C source, None where the program carries none
    message   one line: what was asked, the limit, the value
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
        self.kind, self.dpu, self.tasklet, self.pc = kind, dpu, tasklet, pc
        self.file, self.line, self.message = file, line, message
        super().__init__(kind, dpu, tasklet, pc, file, line, message)

    def __str__(self) -> str:
        place = f"DPU {self.dpu}"
        if self.tasklet >= 0:
            place += f", tasklet {self.tasklet}"
        if self.pc >= 0:
            place += f", pc {self.pc}"
        if self.file is not None:
            place += f" ({self.file}:{self.line})"
        name = "program" if self.kind == "fault" else self.kind  # the instruction `fault`
        return f"{name} fault at {place}: {self.message}"
