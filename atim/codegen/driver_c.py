"""The driver of an exported program: host.c that runs a kernel on DPUs, with a plain C interface.

In: `Sources` and a name. Out: `host.c` (the parts of host_c.py, then the driver) and its header. It
uses what SDK 2021.3 to 2025.1 have in common (dpu.h; manual, "Controlling the execution of DPUs
from host applications"). Equal slices go in one push, as parallel transfers need them (ATiM,
section 5.2.1); a box that lies in the tensor as it lies in MRAM is sent from there, without a copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from atim.codegen import Sources, Tensor, Tile, TransferPlan
from atim.codegen.c_values import c_type
from atim.codegen.driver_groups import GROUPED, LAUNCH_GROUP, WHOLE
from atim.codegen.driver_text import (
    BROADCAST,
    BROADCASTS,
    DRIVER,
    FREE,
    GRID,
    HEADER,
    INCLUDES,
    INIT,
    LAUNCH,
    LOAD,
    PHASES,
    RECEIVE,
    SEND,
)
from atim.codegen.names import Names

__all__ = [
    "HostProgram",
    "emit_program",
    "goes_to_all",
    "header_text",
    "parameter",
    "send_text",
    "words_of",
]


@dataclass(frozen=True, slots=True)
class HostProgram:
    """host.c and its header `name`.h; `arguments` are those of the C function, inputs first."""

    name: str
    host_c: str
    header: str
    arguments: tuple[Tensor, ...]


def emit_program(
    sources: Sources, name: str, title: str, resident: Sequence[str] = ()
) -> HostProgram:
    """The host side as a program's part: `int name(const T *input, ..., T *output)`.

    `resident` inputs can be loaded once and given as NULL afterwards. The name becomes a legal C
    identifier.
    """
    driver = _Driver(sources, name, [t for t in resident if _is_input(sources.plan, t)])
    host = "\n".join([INCLUDES + sources.host_c, *driver.pieces()])
    return HostProgram(driver.name, host, driver.header(title), tuple(driver.arguments))


def _is_input(plan: TransferPlan, name: str) -> bool:
    return any(t.name == name and t.role == "input" for t in plan.tensors)


def words_of(*texts: str) -> set[str]:
    """Identifiers of C texts, without comments and members of structs."""
    code = re.sub(r"/\*.*?\*/", " ", " ".join(texts), flags=re.S)
    return set(re.findall(r"[A-Za-z_]\w*", re.sub(r"(->|\.)\w+", " ", code)))


def parameter(tensor: Tensor, name: str) -> str:
    """The tensor as a parameter of a C function."""
    const = "const " if tensor.role == "input" else ""
    return f"{const}{c_type(tensor.dtype)} *{name}"


def goes_to_all(tile: Tile) -> bool:
    """One broadcast does for all DPUs of a plan."""
    return tile.mode != "out" and tile.broadcast


def send_text(parts: Mapping[str, str], same: bool) -> list[str]:
    """The functions that send tiles. `same`: some go to all DPUs alike."""
    broadcasts = BROADCASTS.format(**parts) if same else ""
    first = [BROADCAST.format(**parts)] if same else []
    return [*first, SEND.format(broadcasts=broadcasts, **parts)]


def header_text(
    name: str,
    title: str,
    dpus: int,
    arguments: Sequence[Tensor],
    text: Mapping[str, str],
    resident: Sequence[str],
    kept: Sequence[str],
) -> str:
    """name.h. `text`: tensor -> parameter; `kept`: residents that the host works on too."""
    shown = [f" *   {text[t.name]}: {t.dtype}[{', '.join(map(str, t.shape))}]" for t in arguments]
    width = max(map(len, PHASES)) + 1
    phases = [f"    double {phase + ';':{width}} /* {what} */" for phase, what in PHASES.items()]
    parameters = {t.name: parameter(t, text[t.name]) for t in arguments}
    load = optional = ""
    if resident:
        there = ", ".join(text[n] for n in kept)
        load = LOAD.format(
            name=name,
            parameters=", ".join(parameters[n] for n in resident),
            kept=f"\n * The host works on {there} too: leave it there." if kept else "",
        )
        names = " and ".join(text[n] for n in resident)
        optional = f" {names} may be NULL: what was loaded before."
    return HEADER.format(
        title=title,
        name=name,
        guard=f"{name.upper()}_H",
        dpus=dpus,
        phases="\n".join(phases),
        load=load,
        optional=optional,
        arguments="\n".join(shown),
        parameters=", ".join(parameters.values()),
    )


class _Driver:
    """Prints the parts that depend on the program."""

    def __init__(self, sources: Sources, name: str, resident: Sequence[str]) -> None:
        self.plan = sources.plan
        self.resident = resident
        own = f"{GRID} {INIT} {FREE} status before spent load loaded"
        own += " ".join(f"{phase}_begin {phase}_tensors " for phase in (" prepare", "finish"))
        self.groups = sources.plan.groups
        self.parts = GROUPED if self.groups > 1 else WHOLE
        fixed = words_of(
            DRIVER, BROADCAST, SEND, RECEIVE, LAUNCH, LAUNCH_GROUP, *GROUPED.values(), own
        )
        self.name = Names(words_of(sources.host_c) | fixed).new(name)
        tensors = self.plan.tensors
        self.arguments = [t for t in tensors if t.role == "input"]
        self.arguments += [t for t in tensors if t.role == "output"]
        self.partial = [t for t in tensors if t.role == "intermediate"]
        names = Names(fixed | {self.name, *(f"route_{t.symbol}" for t in self.plan.tiles)})
        self.text = {
            t.name: names.new(f"held_{t.name}" if t.role == "intermediate" else t.name)
            for t in tensors
        }
        at_work = {*self.plan.prepare_args, *self.plan.finish_args}
        self.kept = [t for t in resident if t in at_work]

    def pieces(self) -> Iterable[str]:
        """The text after the parts of host_c.py, in order."""
        count = f", NR_GROUPS = {self.groups}" if self.groups > 1 else ""
        yield DRIVER.format(name=self.name, dpus=self.plan.dpus, nr_groups=count, **self.parts)
        if self._tiles("in", "inout"):
            yield from send_text(self.parts, any(map(self._same, self.plan.tiles)))
        yield RECEIVE.format(**self.parts)
        yield LAUNCH_GROUP if self.groups > 1 else LAUNCH
        yield self._state()
        if self.plan.grid_symbol is not None:
            yield GRID.format(symbol=self.plan.grid_symbol, skip="")
        yield self._init()
        if self.resident:
            yield self._load()
        yield self._call()
        yield self._free()

    def header(self, title: str) -> str:
        text = self.text
        return header_text(
            self.name, title, self.plan.dpus, self.arguments, text, self.resident, self.kept
        )

    def _parameter(self, name: str) -> str:
        tensor = next(t for t in self.plan.tensors if t.name == name)
        return parameter(tensor, self.text[name])

    def _parameters(self) -> str:
        return ", ".join(self._parameter(t.name) for t in self.arguments)

    def _tiles(self, *modes: str) -> list[Tile]:
        return [t for t in self.plan.tiles if t.mode in modes]

    def _same(self, tile: Tile) -> bool:
        return self.plan.dpus > 1 and goes_to_all(tile)

    def _state(self) -> str:
        """Routes, partial results, resident operands."""
        lines = []
        for tile in self.plan.tiles:
            pack = f".pack = pack_{tile.symbol}, " if tile.mode != "out" else ""
            unpack = f".unpack = unpack_{tile.symbol}, " if tile.mode != "in" else ""
            pack += ".same = true, " if self._same(tile) else ""
            lines += [
                f"static struct route route_{tile.symbol} = {{",
                f'    .tile = &{tile.symbol}_tile, {pack}{unpack}.symbol = "{tile.symbol}"}};',
            ]
        every = ", ".join(f"&route_{t.symbol}" for t in self.plan.tiles)
        lines.append(f"static struct route *const routes[] = {{{every}}};")
        lines += [f"static void *{self.text[t.name]}; /* partial results */" for t in self.partial]
        if self.resident:
            lines.append("static bool loaded;")
        lines += [f"static const void *kept_{self.text[n]};" for n in self.kept]
        return "\n".join([*lines, ""])

    def _init(self) -> str:
        lines = ["    status = status == DONE ? plan_groups() : status;"] if self.groups > 1 else []
        lines += [
            "    for (size_t i = 0; status == DONE && i < sizeof routes / sizeof routes[0]; i++) {",
            "        status = plan_route(routes[i]);",
            "    }",
        ]
        for tensor in self.partial:
            name = self.text[tensor.name]
            count = int(np.prod(tensor.shape, dtype=np.int64))
            size = count * np.dtype(tensor.dtype).itemsize
            lines.append(f"    {name} = calloc({size}, 1);")
            lines.append(f"    status = {name} == NULL && status == DONE ? NO_MEMORY : status;")
        if self.plan.grid_symbol is not None:
            lines.append("    status = status == DONE ? send_grid() : status;")
        return INIT.format(name=self.name, steps="\n".join(lines))

    def _free(self) -> str:
        lines = ["    loaded = false;"] if self.resident else []
        for tensor in self.partial:
            name = self.text[tensor.name]
            lines += [f"    free({name});", f"    {name} = NULL;"]
        return FREE.format(name=self.name, steps="\n".join(lines))

    def _ready(self) -> list[str]:
        return [
            f"    int status = ready ? DONE : {self.name}_init(NULL, 0);",
            "    if (status != DONE) {",
            "        return status;",
            "    }",
        ]

    def _load(self) -> str:
        parameters = ", ".join(self._parameter(n) for n in self.resident)
        lines = [f"int {self.name}_load_resident({parameters}) {{", *self._ready()]
        lines += [f"    const struct {self.name}_times before = times;"]
        lines += ["    memset(&times, 0, sizeof times);"]
        for tile in self._tiles("in", "inout"):
            if tile.tensor in self.resident:
                lines += self._every([self._send(tile)])
                lines.append(f"    drop_slices(&route_{tile.symbol});")
        lines += [f"    kept_{self.text[n]} = {self.text[n]};" for n in self.kept]
        lines += [
            "    const double spent = times.pack + times.to_dpus;",
            "    times = before;",
            "    times.load = spent;",
            "    loaded = true;",
            "    return DONE;",
            "}",
            "",
        ]
        return "\n".join(lines)

    def _group(self) -> str:
        return ", &groups[g]" if self.groups > 1 else ""

    def _send(self, tile: Tile) -> str:
        return f"send(&route_{tile.symbol}, {self.text[tile.tensor]}{self._group()})"

    def _every(self, calls: Sequence[str]) -> list[str]:
        """The calls in order, for each group of ranks if there are several."""
        lines = [line for call in calls for line in self._step(call)]
        if self.groups == 1:
            return lines
        head = "    for (uint32_t g = 0; g < nr_groups; g++) {"
        return [head, *(f"    {line}" for line in lines), "    }"]

    def _step(self, call: str) -> list[str]:
        return [f"    if ((status = {call}) != DONE) {{", "        return status;", "    }"]

    def _call(self) -> str:
        lines = [f"int {self.name}({self._parameters()}) {{", *self._ready()]
        lines += self._residents()
        lines += ["    const double load = times.load;"]
        lines += ["    memset(&times, 0, sizeof times);", "    times.load = load;"]
        lines += self._work("prepare", self.plan.prepare, self.plan.prepare_args)
        inward = [t for t in self._tiles("in", "inout") if t.tensor not in self.resident]
        sent = [self._send(tile) for tile in inward]
        received = [
            f"receive(&route_{t.symbol}, {self.text[t.tensor]}{self._group()})"
            for t in self._tiles("out", "inout")
        ]
        if self.groups > 1:
            lines += self._every([*sent, "launch(&groups[g])"])
            lines += self._every(["wait_for(&groups[g])", *received])
        else:
            lines += self._every([*sent, "launch()", *received])
        lines += self._work("finish", self.plan.finish, self.plan.finish_args)
        return "\n".join([*lines, "    return DONE;", "}", ""])

    def _residents(self) -> list[str]:
        """Loads those that are given; all or none of them are."""
        if not self.resident:
            return []
        names = [self.text[n] for n in self.resident]
        given = " && ".join(f"{n} != NULL" for n in names)
        lines = [f"    if ({given}) {{"]
        lines.append(f"        status = {self.name}_load_resident({', '.join(names)});")
        lines += ["    } else if (!loaded) {", "        status = NOT_LOADED;", "    }"]
        return [*lines, "    if (status != DONE) {", "        return status;", "    }"]

    def _work(self, phase: str, function: str | None, args: Sequence[str]) -> list[str]:
        if function is None:
            return []
        kept = {n: f"kept_{self.text[n]}" for n in self.kept}
        passed = [f"        (void *)(uintptr_t){kept.get(n, self.text[n])}," for n in args]
        return [
            f"    const double {phase}_begin = now();",
            f"    void *const {phase}_tensors[] = {{",
            *passed,
            "    };",
            f"    {function}({phase}_tensors, nr_threads);",
            f"    times.{phase} = now() - {phase}_begin;",
        ]
