"""Several kernels over one allocation of DPUs: values stay in MRAM where the tiles agree.

In: compiled stages in order, of the DPUs (`Sources`) or of the host (`HostStage`), and the names of
the values that pass between them. Out: a `Chain`, one callable and one exported program.

    chain = link([Step("max", sources_1), Step("exp", host_stage), ...], target,
                 outputs=["y"], resident=["W"])
    (y,), timing = chain({"x": x, "W": w})
    chain.export("out", name="softmax")

A tile is read where an earlier stage left it, or where the host brought it before, if both stages
put the same box of the value at the same place of every DPU; kernels whose results stay clear their
padding. Everything else goes through the host. The DPUs hold one program with all kernels
(`codegen/chain_kernel.py`), so stages follow each other without loading. Pushes, launches and pulls
of all stages add up: all DPUs work as one, whatever groups of ranks a stage alone would have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import upmem_sim
from atim import hardware, runtime, toolchain
from atim.codegen import Sources, Tensor
from atim.codegen.chain_c import emit_chain
from atim.codegen.chain_kernel import ACTIVE, COUNTER, dispatcher
from atim.codegen.chain_plan import (
    Move,
    Step,
    check_steps,
    clear_what_stays,
    done_once,
    plan_moves,
)
from atim.codegen.host_stage import FUNCTION, HostStage
from atim.errors import ScheduleError, ToolchainError, UnsupportedError, UsageError
from atim.export import Data, Kernels, write_files
from atim.outcome import Timing
from atim.target import Target
from atim.timing import model_of, pull_seconds, push_seconds

__all__ = ["Chain", "Move", "Step", "link"]

Array = NDArray[Any]

# the frame of the main that calls the stages
DISPATCHER_STACK = 32

NO_TIME = Timing(0.0, 0.0, 0.0, 0.0)


def link(
    steps: Sequence[Step],
    target: Target,
    *,
    outputs: Sequence[str],
    resident: Sequence[str] = (),
) -> Chain:
    """Connect and compile stages.

    Inputs are the values that no stage makes; `resident` ones lie on the DPUs before a call and
    their transfers take no time. What the host makes of residents alone is resident too: neither
    its work nor its transfers count. UsageError for names that don't fit, ScheduleError when the
    stages together exceed a DPU's memories, ToolchainError when a compiler fails.
    """
    inputs = check_steps(steps, outputs, resident)
    steps = clear_what_stays(steps)
    moves = plan_moves(steps, outputs, resident)
    on_dpus = [s.work for s in steps if isinstance(s.work, Sources)]
    tasklets = max(w.nr_tasklets for w in on_dpus)
    stack = max(w.stack_bytes for w in on_dpus) + DISPATCHER_STACK
    kernels = [m.kernel for m in moves if m is not None]
    partial = len({w.plan.dpus for w in on_dpus}) > 1
    texts = [*(k.text for k in kernels), dispatcher(kernels, tasklets, partial=partial)]
    program = _compile(texts, tasklets, stack, target)
    return Chain(
        tuple(steps),
        tuple(moves),
        target,
        inputs,
        tuple(outputs),
        tuple(resident),
        tuple(texts),
        tasklets,
        stack,
        program,
    )


def _compile(
    texts: Sequence[str], tasklets: int, stack_bytes: int, target: Target
) -> upmem_sim.Program:
    try:
        program = upmem_sim.compile_c(
            list(texts),
            nr_tasklets=tasklets,
            stack_bytes=stack_bytes,
            hypothetical=target.units,
        )
        upmem_sim.Dpu(program, target.chip)
    except upmem_sim.LinkError as error:
        raise ScheduleError(f"stages as one program: {error}") from error
    except upmem_sim.SimError as error:
        raise ToolchainError(f"stages as one program: {error}") from error
    frames = sorted(program.frames)
    if sum(frames[-3:]) > stack_bytes:
        raise ScheduleError(f"stack: {sum(frames[-3:])} bytes needed, limit {stack_bytes}")
    return program


@dataclass(frozen=True)
class Chain:
    """Linked stages. `moves` says what each transfers (None: a stage of the host); kernels are the
    units of the DPU program, the last one with `main`."""

    steps: tuple[Step, ...]
    moves: tuple[Move | None, ...]
    target: Target
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    resident: tuple[str, ...]
    kernels: tuple[str, ...]
    nr_tasklets: int
    stack_bytes: int
    program: upmem_sim.Program

    @property
    def dpus(self) -> int:
        """Of the allocation: of the stage with the most."""
        return max(s.work.plan.dpus for s in self.steps if isinstance(s.work, Sources))

    @property
    def moved_bytes(self) -> int:
        """Bytes between host and DPUs in one call."""
        total = 0
        for step, move in zip(self.steps, self.moves, strict=True):
            if move is not None and isinstance(step.work, Sources):
                each = sum(t.slice_bytes for t in (*move.pushed, *move.pulled))
                total += each * step.work.plan.dpus
        return total

    def __call__(
        self, arrays: Mapping[str, Array], threads: int = 2
    ) -> tuple[tuple[Array, ...], Timing]:
        """Run on arrays by name of the input. Returns the outputs in order and the time of all
        stages together: simulated, or measured for a target on hardware (see `atim.hardware`).
        UsageError for wrong arrays, upmem_sim.SimFault as runtime.run."""
        if self.target.hardware:
            program = self._exported(hardware.NAME)
            tensors = [t for t in program.program.arguments if _reads(t)]
            given = {t.name: _checked(t, arrays) for t in tensors}
            measured, timing, _ = hardware.measure(program, given, self.target.transfer)
            return tuple(measured[name] for name in self.outputs), timing
        results, timings = self.run(arrays, threads)
        phases = [(t.h2d, t.kernel, t.d2h, t.host) for t, _ in timings]
        h2d, kernel, d2h, host = (sum(column) for column in zip(*phases, strict=True))
        return tuple(results[name] for name in self.outputs), Timing(h2d, kernel, d2h, host)

    def run(
        self, arrays: Mapping[str, Array], threads: int = 2
    ) -> tuple[dict[str, Array], list[tuple[Timing, int]]]:
        """All values, and for each stage its Timing and the cycles of its slowest DPU (0: host);
        on simulated DPUs."""
        if self.target.hardware:
            raise UnsupportedError("chain: values between stages are not seen on hardware")
        missing = [name for name in self.inputs if name not in arrays]
        if missing or len(arrays) != len(self.inputs):
            raise UsageError(f"inputs given: {', '.join(arrays)}; needs {', '.join(self.inputs)}")
        values: dict[str, Array] = {n: np.ascontiguousarray(a) for n, a in arrays.items()}
        spent: list[tuple[Timing, int]] = []
        once, _ = done_once(self.steps, self.resident, self.outputs)
        for number, step in enumerate(self.steps):
            work, move = step.work, self.moves[number]
            if isinstance(work, HostStage):
                given = {t.name: values[step.value(t.name)] for t in work.tensors if _reads(t)}
                made, timing = on_host(work, given, self.target, threads)
                timing, cycles = (NO_TIME if number in once else timing), 0
            else:
                assert move is not None
                made, timing, cycles = self._on_dpus(number, step, work, move, values, threads)
            values |= {step.value(name): array for name, array in made.items()}
            spent.append((timing, cycles))
        return values, spent

    def _on_dpus(
        self,
        number: int,
        step: Step,
        work: Sources,
        move: Move,
        values: Mapping[str, Array],
        threads: int,
    ) -> tuple[dict[str, Array], Timing, int]:
        """Values that stay in MRAM are put where they are: the tiles agree, so it is the same."""
        plan, model = work.plan, model_of(self.target)
        given = {t.name: values[step.value(t.name)] for t in plan.tensors if _reads(t)}
        artifact = toolchain.Artifact(work, self.target, self._programs[number])
        outcome = runtime.run(artifact, given, threads=threads)
        assert outcome.outputs is not None
        cycles = outcome.counters["cycles"]
        some = plan.dpus < self.dpus
        h2d = sum((push_seconds(model, t, plan.dpus, some=some) for t in move.pushed), 0.0)
        d2h = sum((pull_seconds(model, t, plan.dpus) for t in move.pulled), 0.0)
        kernel = model.launch(self.dpus) + cycles / (self.target.chip.clock_mhz * 1e6)
        return outcome.outputs, Timing(h2d, kernel, d2h, outcome.timing.host), cycles

    def export(
        self, folder: str | Path, *, name: str = "chain", data: Data | None = None
    ) -> list[Path]:
        """Write the DPU program's units, host.c with a unit for each stage, a check program, a
        Makefile and a README; see `atim.export`. Returns the paths. RecordError when something
        can't be written."""
        return list(self._exported(name, data).write(Path(folder)))

    def _exported(self, name: str, data: Data | None = None) -> hardware.Exported:
        title = f"{', '.join(self.inputs)} -> {', '.join(self.outputs)}"
        printed = emit_chain(
            self.steps,
            self.moves,
            name,
            title,
            inputs=self.inputs,
            outputs=self.outputs,
            resident=self.resident,
        )
        *stages, main = self.kernels
        texts = {f"kernel_{n}.c": text for n, text in enumerate(stages)} | {"kernel.c": main}
        kernels = Kernels(texts, self.nr_tasklets, self.stack_bytes)

        def write(folder: Path) -> list[Path]:
            return write_files(
                folder, printed.host, kernels, self.dpus, title, self.resident, data, printed.units
            )

        return hardware.Exported(printed.host, kernels, write)

    @cached_property
    def _programs(self) -> dict[int, upmem_sim.Program]:
        """The program as each stage sees it: its own names, and its turn."""
        views = {}
        turn = 0
        for number, move in enumerate(self.moves):
            if move is None:
                continue
            wram, symbols = bytearray(self.program.wram), dict(self.program.symbols)
            at = symbols[COUNTER].address
            wram[at : at + 4] = np.uint32(turn).tobytes()
            if ACTIVE in symbols:
                at = symbols[ACTIVE].address + 4 * turn
                wram[at : at + 4] = np.uint32(1).tobytes()
            symbols |= {name: symbols[home] for name, home in move.kernel.symbols.items()}
            views[number] = replace(self.program, wram=bytes(wram), symbols=symbols)
            turn += 1
        return views


def _checked(tensor: Tensor, arrays: Mapping[str, Array]) -> Array:
    """The array of an input; UsageError if it is missing or of another kind."""
    array = arrays.get(tensor.name)
    if array is None:
        raise UsageError(f"input {tensor.name} is missing: got {', '.join(arrays) or 'none'}")
    if array.shape != tensor.shape or array.dtype != np.dtype(tensor.dtype):
        raise UsageError(
            f"input {tensor.name}: got {array.dtype}{list(array.shape)},"
            f" needs {tensor.dtype}{list(tensor.shape)}"
        )
    return np.ascontiguousarray(array)


def _reads(tensor: Any) -> bool:
    return bool(tensor.role == "input")


def on_host(
    host: HostStage, inputs: Mapping[str, Array], target: Target, threads: int = 2
) -> tuple[dict[str, Array], Timing]:
    """Run a stage of the host. Its time is modelled as one pass over the elements, like the
    addition of partial results."""
    arrays: dict[str, Array] = {}
    for tensor in host.tensors:
        if tensor.role != "input":
            arrays[tensor.name] = np.zeros(tensor.shape, tensor.dtype)
            continue
        arrays[tensor.name] = _checked(tensor, inputs)
    library = toolchain.HostLibrary(toolchain.compile_host(host.host_c))
    library.work(FUNCTION, [arrays[name].ctypes.data for name in host.args], threads)
    results = {t.name: arrays[t.name] for t in host.tensors if t.role == "output"}
    widest = max(array.itemsize for array in arrays.values())
    seconds = float(model_of(target).host_reduce(host.elements, widest, host.threads))
    return results, Timing(0.0, 0.0, 0.0, seconds)
