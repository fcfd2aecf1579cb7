"""The host side of a chain of stages: a unit for each stage, and host.c that runs them in turn.

In: stages and their moves (chain_plan.py). Out: C files with the plain interface of driver_c.py:
`int name(const T *input, ..., T *output)`. A stage's unit is its host half with the driver's
transfers; all share the set that host.c allocates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atim.codegen import Sources, Tensor, Tile, TransferPlan
from atim.codegen import chain_text as text
from atim.codegen.chain_kernel import ACTIVE
from atim.codegen.chain_plan import Move, Step, done_once
from atim.codegen.driver_c import (
    HostProgram,
    goes_to_all,
    header_text,
    parameter,
    send_text,
    words_of,
)
from atim.codegen.driver_groups import WHOLE
from atim.codegen.driver_text import DRIVER, GRID, INCLUDES, INIT, RECEIVE
from atim.codegen.host_stage import FUNCTION, HostStage
from atim.codegen.names import Names

__all__ = ["ChainProgram", "emit_chain"]


@dataclass(frozen=True, slots=True)
class ChainProgram:
    """`host` has host.c, the header and the arguments; `units`: file -> text of all the rest that
    is compiled or included with it."""

    host: HostProgram
    units: Mapping[str, str]


def emit_chain(
    steps: Sequence[Step],
    moves: Sequence[Move | None],
    name: str,
    title: str,
    *,
    outputs: Sequence[str],
    inputs: Sequence[str],
    resident: Sequence[str],
) -> ChainProgram:
    """Print the host side. The name becomes a legal C identifier."""
    return _Chain(steps, moves, name, title, inputs, outputs, resident).program()


class _Chain:
    """Prints the parts that depend on the stages."""

    def __init__(
        self,
        steps: Sequence[Step],
        moves: Sequence[Move | None],
        name: str,
        title: str,
        inputs: Sequence[str],
        outputs: Sequence[str],
        resident: Sequence[str],
    ) -> None:
        self.steps, self.moves, self.title = steps, moves, title
        self.resident = resident
        self.once, _ = done_once(steps, resident, outputs)
        tensors: dict[str, Tensor] = {}
        for step in steps:
            for t in step.tensors:
                if t.role != "intermediate":
                    made = Tensor(step.value(t.name), t.shape, t.dtype, t.role)
                    tensors.setdefault(made.name, made)
        self.tensors = tensors
        self.arguments = [Tensor(n, tensors[n].shape, tensors[n].dtype, "input") for n in inputs]
        self.arguments += [Tensor(n, tensors[n].shape, tensors[n].dtype, "output") for n in outputs]
        fixed = words_of(
            *(v for k, v in vars(text).items() if k.isupper()), DRIVER, *send_text(WHOLE, True)
        )
        taken = set(fixed)
        for step in steps:
            work = step.work
            taken |= words_of(work.host_c)
        names = Names(taken)
        self.name = names.new(name)
        self.text = {t.name: names.new(t.name) for t in self.arguments}
        self.held: dict[str, int] = {}  # C name of tensors that only host.c knows -> bytes
        self.names = names
        self.kept = [n for n in resident if self._host_reads(n)]

    @property
    def dpus(self) -> int:
        return max(s.work.plan.dpus for s in self.steps if isinstance(s.work, Sources))

    def program(self) -> ChainProgram:
        units = {}
        declared = []
        for number, step in enumerate(self.steps):
            prefix = self._prefix(number)
            title = f"{', '.join(step.reads())} -> {', '.join(step.writes())}"
            form = text.ON_DPUS if isinstance(step.work, Sources) else text.ON_HOST
            declared.append(form.format(prefix=prefix, stage=number, title=title, name=self.name))
            units[f"stage_{number}.c"] = self._unit(number, step)
        guard = f"{self.name.upper()}_STAGES_H"
        units[f"{self.name}_stages.h"] = text.STAGES_H.format(
            name=self.name, guard=guard, declared="\n".join(declared).rstrip()
        )
        header = header_text(
            self.name, self.title, self.dpus, self.arguments, self.text, self.resident, self.kept
        )
        host = HostProgram(self.name, self._host(), header, tuple(self.arguments))
        return ChainProgram(host, units)

    def _prefix(self, number: int) -> str:
        return f"{self.name}_stage_{number}"

    def _host_reads(self, value: str) -> bool:
        """In a call, not only when residents are loaded."""
        for number, step in enumerate(self.steps):
            if number in self.once:
                continue
            if isinstance(step.work, HostStage):
                touched = step.reads()
            else:
                plan = step.work.plan
                touched = [step.value(n) for n in (*plan.prepare_args, *plan.finish_args)]
            if value in touched:
                return True
        return False

    # units of stages --------------------------------------------------------------------------

    def _unit(self, number: int, step: Step) -> str:
        prefix = self._prefix(number)
        if isinstance(step.work, HostStage):
            work = text.HOST_WORK.format(prefix=prefix, function=FUNCTION)
            return "\n".join([INCLUDES + step.work.host_c, self._stages_h(), work])
        move, plan = self.moves[number], step.work.plan
        assert move is not None
        parts = {**WHOLE, "skip": text.SKIP if plan.dpus < self.dpus else ""}
        driver = DRIVER.format(name=self.name, dpus=plan.dpus, nr_groups="", **parts)
        own = "enum { DONE, REFUSED, NO_MEMORY, NOT_LOADED };\n"
        assert own in driver
        header = f'#include "{self.name}.h"'
        driver = driver.replace(own, "").replace(header, f'#include "{self.name}_stages.h"')
        pieces = [INCLUDES + step.work.host_c, driver]
        if move.loaded or move.pushed:
            pieces += send_text(parts, any(self._same(t, plan) for t in plan.tiles))
        if move.pulled:
            pieces.append(RECEIVE.format(**parts))
        pieces.append(self._routes(step.work, move))
        grid = ""
        if plan.grid_symbol is not None:
            symbol = move.kernel.symbols[plan.grid_symbol]
            pieces.append(GRID.format(symbol=symbol, skip=parts["skip"]))
            grid = "    status = status == DONE ? send_grid() : status;\n"
        pieces.append(text.STAGE.format(name=self.name, prefix=prefix, grid=grid))
        if move.loaded or move.pushed:
            pieces.append(text.SEND_TILE.format(prefix=prefix))
        if move.pulled:
            pieces.append(text.RECEIVE_TILE.format(prefix=prefix))
        for phase in ("prepare", "finish"):
            if getattr(plan, phase) is not None:
                pieces.append(text.WORK.format(prefix=prefix, phase=phase))
        return "\n".join(pieces)

    def _stages_h(self) -> str:
        return f'#include "{self.name}_stages.h"\n'

    def _same(self, tile: Tile, plan: TransferPlan) -> bool:
        """A broadcast goes to all DPUs of the chain, those that don't take part included."""
        return 1 < self.dpus == plan.dpus and goes_to_all(tile)

    def _routes(self, work: Sources, move: Move) -> str:
        lines = []
        for tile in work.plan.tiles:
            pack = f".pack = pack_{tile.symbol}, " if tile.mode != "out" else ""
            unpack = f".unpack = unpack_{tile.symbol}, " if tile.mode != "in" else ""
            pack += ".same = true, " if self._same(tile, work.plan) else ""
            symbol = move.kernel.symbols[tile.symbol]
            lines += [
                f"static struct route route_{tile.symbol} = {{",
                f'    .tile = &{tile.symbol}_tile, {pack}{unpack}.symbol = "{symbol}"}};',
            ]
        every = ", ".join(f"&route_{t.symbol}" for t in work.plan.tiles)
        return "\n".join([*lines, f"static struct route *const routes[] = {{{every}}};", ""])

    # host.c -----------------------------------------------------------------------------------

    def _host(self) -> str:
        run, load = self._run(), self._load()
        on_dpus = [n for n, m in enumerate(self.moves) if m is not None]
        sizes = [s.work.plan.dpus for s in self.steps if isinstance(s.work, Sources)]
        held = [f"static void *{name}; /* between stages */" for name in self.held]
        held += [f"static const void *kept_{self.text[n]};" for n in self.kept]
        clock = text.NOW if "now()" in run + load else f"#ifndef DPU_SIM\n{text.NOW}#endif\n"
        pieces = [
            text.HOST.format(
                now=clock,
                title=self.title,
                name=self.name,
                dpus=self.dpus,
                stages=len(on_dpus),
                loaded=", loaded" if self.resident else "",
                times=", ".join(f"{self._prefix(n)}_times" for n in on_dpus),
                held="\n".join(held) + "\n" if held else "",
            )
        ]
        partial = len(set(sizes)) > 1
        if partial:
            pieces.append(text.PARTS.format(sizes=", ".join(map(str, sizes)), symbol=ACTIVE))
        steps = ["    status = status == DONE ? send_parts() : status;"] if partial else []
        for n in on_dpus:
            call = f"{self._prefix(n)}_init(dpus, nr_threads)"
            steps.append(f"    status = status == DONE ? {call} : status;")
        for name, size in self.held.items():
            steps.append(f"    {name} = calloc({size}, 1);")
            steps.append(f"    status = {name} == NULL && status == DONE ? NO_MEMORY : status;")
        pieces.append(INIT.format(name=self.name, steps="\n".join(steps)))
        freed = ["    loaded = false;"] if self.resident else []
        freed += [f"    {self._prefix(n)}_free();" for n in on_dpus]
        for name in self.held:
            freed += [f"    free({name});", f"    {name} = NULL;"]
        pieces += [load, run] if load else [run]
        pieces.append(text.FREE.format(name=self.name, steps="\n".join(freed)))
        return "\n".join(pieces)

    def _place(self, step: Step, number: int, tensor: str) -> str:
        """C expression of the array that holds a stage's tensor."""
        role = next(t.role for t in step.tensors if t.name == tensor)
        value = step.value(tensor)
        if role != "intermediate" and value in self.kept:
            return f"kept_{self.text[value]}"
        if role != "intermediate" and value in self.text:
            return self.text[value]
        key = f"held_{number}_{tensor}" if role == "intermediate" else f"held_{value}"
        if key not in self.text:
            self.text[key] = self.names.new(key)
            kind = next(t for t in step.tensors if t.name == tensor)
            count = int(np.prod(kind.shape, dtype=np.int64))
            self.held[self.text[key]] = count * np.dtype(kind.dtype).itemsize
        return self.text[key]

    def _work(self, function: str, phase: str, args: Sequence[str], extra: str) -> list[str]:
        lines = ["    {", "        const double begin = now();"]
        lines.append("        void *const tensors[] = {")
        lines += [f"            (void *)(uintptr_t){place}," for place in args]
        lines += ["        };", f"        {function}(tensors{extra});"]
        return [*lines, f"        times.{phase} += now() - begin;", "    }"]

    def _moved(self, number: int, step: Step, way: str, tiles: Sequence[Tile]) -> list[str]:
        assert isinstance(step.work, Sources)
        symbols = [t.symbol for t in step.work.plan.tiles]
        lines = []
        for tile in tiles:
            place = self._place(step, number, tile.tensor)
            call = f"{self._prefix(number)}_{way}({symbols.index(tile.symbol)}, {place})"
            lines += [f"    if ((status = {call}) != DONE) {{", "        return status;", "    }"]
        return lines

    def _run(self) -> str:
        lines: list[str] = []
        for number, step in enumerate(self.steps):
            work, move = step.work, self.moves[number]
            if isinstance(work, HostStage):
                lines += [] if number in self.once else self._host_stage(number, step, work)
                continue
            assert move is not None
            lines += self._host_part(number, step, "prepare")
            lines += self._moved(number, step, "send", move.pushed)
            lines += ["    if ((status = launch()) != DONE) {", "        return status;", "    }"]
            lines += self._moved(number, step, "receive", move.pulled)
            lines += self._host_part(number, step, "finish")
        given = [t for t in self.arguments if t.name not in self.resident]
        residents = [self.text[n] for n in self.resident]
        check = text.RESIDENTS.format(
            name=self.name,
            given=" && ".join(f"{n} != NULL" for n in residents),
            arguments=", ".join(residents),
        )
        body = text.RUN.format(
            name=self.name,
            parameters="@",
            steps="\n".join(lines),
            residents=check if residents else "",
            arguments=", ".join(self.text[t.name] for t in given),
        )
        inner = ", ".join(parameter(t, self.text[t.name]) for t in given)
        outer = ", ".join(parameter(t, self.text[t.name]) for t in self.arguments)
        return body.replace("@", inner, 1).replace("@", outer, 1)

    def _host_stage(self, number: int, step: Step, work: HostStage) -> list[str]:
        args = [self._place(step, number, name) for name in work.args]
        return self._work(f"{self._prefix(number)}_work", "finish", args, ", nr_threads")

    def _host_part(self, number: int, step: Step, phase: str) -> list[str]:
        assert isinstance(step.work, Sources)
        plan = step.work.plan
        if getattr(plan, phase) is None:
            return []
        args = plan.prepare_args if phase == "prepare" else plan.finish_args
        places = [self._place(step, number, name) for name in args]
        return self._work(f"{self._prefix(number)}_{phase}", phase, places, "")

    def _load(self) -> str:
        if not self.resident:
            return ""
        lines = [f"    kept_{self.text[n]} = {self.text[n]};" for n in self.kept]
        for number, step in enumerate(self.steps):
            move = self.moves[number]
            if move is not None:
                lines += self._moved(number, step, "send", move.loaded)
            elif number in self.once and isinstance(step.work, HostStage):
                lines += self._host_stage(number, step, step.work)
        tensors = {t.name: t for t in self.arguments}
        parameters = ", ".join(parameter(tensors[n], self.text[n]) for n in self.resident)
        return text.LOAD.format(name=self.name, parameters=parameters, steps="\n".join(lines))
