"""The host dialect: packing of tiles, and the host's own loop nests, as one C11 file.

Order in the file: a small fork-join over pthreads, the tiles as tables with pack and unpack
functions, then `prepare` and `finish`. The signatures are those of `Sources`. Work is cut into
ranges that write disjoint elements in a fixed order, so results don't depend on the number of
threads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from tvm import ir, tirx
from tvm.tirx import For, ForKind, Stmt

from atim.codegen.access import accesses, loop_ranges
from atim.codegen.boundary import hoist
from atim.codegen.c_values import BUILTIN_FLOAT, PRODUCT, c_type
from atim.codegen.emit import Emitter
from atim.codegen.host_text import HEAD, MOVE, PACK_TILE, RANGE, TILE, UNPACK_TILE
from atim.codegen.lower import lift
from atim.codegen.names import Names
from atim.codegen.split import Nest, Split, operation
from atim.codegen.transfer import Placed, Tensor, Tile
from atim.functions import HOST
from atim.target import MAX_HOST_THREADS


@dataclass(frozen=True, slots=True)
class HostText:
    """host.c, the tensors that its work functions take, in order, and how many threads can share
    them."""

    text: str
    prepare_args: tuple[str, ...]
    finish_args: tuple[str, ...]
    threads: int


def head_text(title: str) -> str:
    """What every host.c begins with: its purpose, and the fork-join that its work is done by."""
    return HEAD.format(title=title, max_threads=MAX_HOST_THREADS)


def emit_host(parts: Split, placed: Placed, title: str) -> HostText:
    """Print the host side of a split program."""
    plan = placed.plan
    pieces = [head_text(title)]
    pieces.append(
        MOVE.format(
            axes=max((len(t.extent) for t in plan.tiles), default=1),
            grid_axes=len(plan.grid),
            grid=_row(plan.grid),
        )
    )
    if any(t.mode != "out" for t in plan.tiles):
        pieces.append(RANGE.format(way="pack", pack="true"))
    if any(t.mode != "in" for t in plan.tiles):
        pieces.append(RANGE.format(way="unpack", pack="false"))
    for tile in plan.tiles:
        pieces += _tile_functions(tile)
    helpers: dict[str, str] = {}
    prepare, prepare_args = host_work("prepare", parts.before, placed.tensors, helpers)
    finish, finish_args = host_work("finish", parts.after, placed.tensors, helpers)
    text = "\n".join([*pieces, *helpers.values(), *prepare, *finish])
    threads = max((_threads(nest) for nest in (*parts.before, *parts.after)), default=1)
    return HostText(text, prepare_args, finish_args, threads)


def _row(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))


def _tile_functions(tile: Tile) -> list[str]:
    pieces = [
        TILE.format(
            symbol=tile.symbol,
            axes=len(tile.extent),
            item_bytes=np.dtype(tile.dtype).itemsize,
            slice_bytes=tile.slice_bytes,
            shape=_row(tile.host_shape),
            extent=_row(tile.extent),
            padded=_row(tile.padded),
            base=_row(tile.offset_base),
            coeffs=", ".join("{" + _row(row) + "}" for row in tile.offset_coeffs),
        )
    ]
    if tile.mode != "out":
        pieces.append(PACK_TILE.format(symbol=tile.symbol))
    if tile.mode != "in":
        pieces.append(UNPACK_TILE.format(symbol=tile.symbol))
    return pieces


# host nests --------------------------------------------------------------------------------------


def host_work(
    name: str,
    nests: Sequence[Nest],
    tensors: Mapping[tirx.Var, Tensor],
    helpers: dict[str, str],
) -> tuple[list[str], tuple[str, ...]]:
    """A function that runs the nests in order, and the tensors it takes. Nothing for no nests. The
    functions that they call go to `helpers`, by name."""
    if not nests:
        return [], ()
    args = _arguments(nests, tensors)
    pieces, calls = [], []
    for i, nest in enumerate(nests):
        body = lift(hoist(nest.body))
        parallel = isinstance(body, For) and body.kind == ForKind.PARALLEL
        emitter = Host(body, nest, args, tensors)
        pieces.append(emitter.function(f"{name}_{i}"))
        helpers |= emitter.helpers
        if parallel:
            calls.append(
                f"    fork_join({name}_{i}, (void *)tensors, {int(body.extent)}, threads);"
            )
        else:
            calls.append(f"    {name}_{i}((void *)tensors, 0, 1);")
    unused = [] if any("threads)" in c for c in calls) else ["    (void)threads;"]
    head = f"LOCAL void {name}(void *const *tensors, uint32_t threads) {{"
    pieces.append("\n".join([head, *unused, *calls, "}\n"]))
    return pieces, tuple(tensors[buffer].name for buffer in args)


def _threads(nest: Nest) -> int:
    """Extent of the parallel loop around a nest, 1 without."""
    body = lift(hoist(nest.body))
    return int(body.extent) if isinstance(body, For) and body.kind == ForKind.PARALLEL else 1


def _arguments(nests: Sequence[Nest], tensors: Mapping[tirx.Var, Tensor]) -> list[tirx.Var]:
    """The tensors that the nests touch, in order of first use."""
    args: list[tirx.Var] = []
    for nest in nests:
        for access in accesses(nest.body, {}):
            if access.buffer in tensors and access.buffer not in args:
                args.append(access.buffer)
    return args


class Host(Emitter):
    """C11 for the host's compiler; 64-bit indices."""

    index_type = "int64_t"
    unroll = unroll_some = "#pragma GCC unroll 8"
    rolled = "#pragma GCC unroll 1"
    where = "host code"
    functions: ClassVar[Mapping[str, str]] = {name: name for name in HOST}

    def __init__(
        self,
        body: Stmt,
        nest: Nest,
        args: Sequence[tirx.Var],
        tensors: Mapping[tirx.Var, Tensor],
    ) -> None:
        super().__init__(Names(["begin", "end", "tensors", "context"]), loop_ranges(body))
        self.body, self.nest, self.args = body, nest, args
        found = list(accesses(body, {}))
        self.mine = [b for b in args if any(a.buffer is b or a.buffer.same_as(b) for a in found)]
        self.written = {a.buffer for a in found if a.store}
        for buffer in self.mine:
            self.text[buffer] = self.names.new(tensors[buffer].name)
        for buffer in nest.buffers:
            self.text[buffer] = self.names.new(str(buffer.name))

    def call(self, expr: ir.Call) -> tuple[str, int]:
        """Functions that C writes as expressions."""
        name, dtype = operation(expr), str(expr.ty)
        if name not in ("rsqrt", "sigmoid") or dtype not in BUILTIN_FLOAT:
            return super().call(expr)
        suffix, value = BUILTIN_FLOAT[dtype], self.expr(expr.args[0])
        if name == "rsqrt":
            return f"1.0{suffix} / sqrt{suffix}({value})", PRODUCT
        return f"1.0{suffix} / (1.0{suffix} + exp{suffix}(-({value})))", PRODUCT

    def element(self, buffer: tirx.Var, indices: Sequence[ir.Expr]) -> str:
        shown = "".join(f"[{self.expr(i)}]" for i in indices) or "[0]"
        return f"{self.text[buffer]}{shown}"

    def function(self, name: str) -> str:
        """A work function over the range [begin, end) of the outermost parallel loop."""
        body = self.body
        parallel = isinstance(body, For) and body.kind == ForKind.PARALLEL
        if parallel:
            self.iterate(body, "begin", "end")
        else:
            self.stmt(body)
        lines = [f"static void {name}(void *context, int64_t begin, int64_t end) {{"]
        lines.append("    void *const *tensors = context;")
        lines += [self._argument(b) for b in self.mine]
        lines += [self._allocation(b) for b in self.nest.buffers]
        if not parallel:
            lines += ["    (void)begin;", "    (void)end;"]
        frees = [f"    free({self.text[b]});" for b in self.nest.buffers]
        return "\n".join([*lines, *self.lines, *frees, "}\n"])

    def _argument(self, buffer: tirx.Var) -> str:
        position = next(i for i, b in enumerate(self.args) if b.same_as(buffer))
        const = "" if buffer in self.written else "const "
        sizes = "".join(f"[{int(n)}]" for n in list(buffer.shape)[1:])
        name = self.text[buffer]
        declared = f"(*restrict {name}){sizes}" if sizes else f"*restrict {name}"
        return f"    {const}{c_type(str(buffer.dtype))} {declared} = tensors[{position}];"

    def _allocation(self, buffer: tirx.Var) -> str:
        sizes = "".join(f"[{int(n)}]" for n in list(buffer.shape)[1:])
        name, first = self.text[buffer], int(buffer.shape[0]) if len(buffer.shape) else 1
        declared = f"(*{name}){sizes}" if sizes else f"*{name}"
        return f"    {c_type(str(buffer.dtype))} {declared} = malloc({first} * sizeof *{name});"
