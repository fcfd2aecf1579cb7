"""State: tensors that a model changes from call to call, kept by the placed module.

Buffers updated in place are state; so are inputs whose new value is an output (the caches of a
functional decoder), when asked for. Writing whole rows of a tensor (`cache[:, :, position] = k`,
`index_copy_`, a slice) is one packed call here, not a loop nest: it copies the rows alone, and a
launch whose operand is kept in MRAM needs nothing else of the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import tvm
from numpy.typing import NDArray
from tvm import ir, relax

from atim.codegen import Tile, TransferPlan
from atim.errors import UsageError
from atim.offload.host import view
from atim.offload.imported import Imported, State
from upmem_sim import SystemParams, TransferModel

__all__ = ["Kept", "Update", "emit_update", "keep_state", "send_rows_s", "write_rows"]

Array = NDArray[Any]

DPUS_PER_RANK = SystemParams().dpus_per_rank

UPDATE = "atim.update_rows"
UPDATE_IN_PLACE = "atim.update_rows_in_place"


@dataclass(frozen=True, slots=True)
class Update:
    """base with `rows` written along `axis`, at `positions` (a value of the graph), or from `start`
    on where positions is empty."""

    base: str
    rows: str
    positions: str
    axis: int
    start: int

    @property
    def sent(self) -> tuple[str, ...]:
        """Values that a launch takes instead of the whole tensor."""
        return (self.rows, self.positions) if self.positions else (self.rows,)


@dataclass(frozen=True, slots=True)
class Kept:
    """A state of `shape` that an operand keeps in MRAM: each call sends `rows` rows of it."""

    update: Update
    shape: tuple[int, ...]
    rows: int

    def send_s(self, plan: TransferPlan, tensor: str, transfer: str) -> float:
        """Seconds to send the rows."""
        return send_rows_s(plan, tensor, self.shape, self.update.axis, self.rows, transfer)

    def write(self, array: Array, rows: Array, positions: Array | None = None) -> None:
        """Write what is sent into the operand's array."""
        update = self.update
        whole = array.reshape(self.shape)
        assert np.shares_memory(whole, array)
        write_rows(whole, update.axis, update.start, rows, positions)


def emit_update(importer: Any, x: Any, rows: Any, axis: int, positions: Any | int) -> Any:
    """Relax: x with rows written along an axis; positions: an int64 vector, or the first of them.

    rows broadcast to the shape of x but for the axis.
    """
    count = 1 if isinstance(positions, int) or not len(positions.ty.shape) else None
    if isinstance(positions, int):
        count = int(rows.ty.shape[axis])
    elif count is None:
        count = int(positions.ty.shape[0])
    shape = [int(n) for n in x.ty.shape]
    shape[axis] = count
    emit = importer.block_builder.emit
    if [int(n) for n in rows.ty.shape] != shape:
        rows = emit(relax.op.broadcast_to(rows, shape))
    start = positions if isinstance(positions, int) else -1
    arguments = [ir.StringImm(f"{axis} {start}"), x, rows]
    if not isinstance(positions, int):
        arguments.append(positions)
    kind = relax.TensorType(list(x.ty.shape), str(x.ty.dtype))
    return emit(relax.call_dps_packed(UPDATE, arguments, kind))


def read_update(call: Any, names: Callable[[Any], tuple[str, ...]]) -> Update | None:
    """The update that a Relax call is, if it is one and its rows are a value of the graph."""
    if getattr(getattr(call, "op", None), "name", "") != "relax.call_dps_packed":
        return None
    if str(getattr(call.args[0], "global_symbol", "")) != UPDATE:
        return None
    text, base, rows, *positions = call.args[1].fields
    found = [names(expr) for expr in (base, rows, *positions)]
    if not all(found):
        return None
    axis, start = (int(n) for n in str(text.value).split())
    return Update(found[0][0], found[1][0], found[2][0] if positions else "", axis, start)


def in_place(call: Any, arguments: Sequence[Any]) -> Any:
    """The same update of a tensor that nobody reads afterwards."""
    return relax.op.call_inplace_packed(
        UPDATE_IN_PLACE, *arguments, inplace_indices=[1], ty_args=[call.ty_args[0]]
    )


def write_rows(array: Array, axis: int, start: int, rows: Array, positions: Array | None) -> None:
    """array[..., positions, ...] = rows, in place. IndexError for a position outside."""
    if positions is None:
        positions = np.arange(start, start + rows.shape[axis])
    array[(slice(None),) * axis + (positions.reshape(-1),)] = rows


def _update(text: Any, array: Array, tensors: Sequence[Any]) -> None:
    axis, start = (int(n) for n in str(text).split())
    rows, *positions = (view(t) for t in tensors)
    write_rows(array, axis, start, rows, positions[0] if positions else None)


@tvm.register_global_func(UPDATE)  # type: ignore[untyped-decorator]
def _out_of_place(text: Any, x: Any, *tensors: Any) -> None:
    out = view(tensors[-1])
    out[...] = view(x)
    _update(text, out, tensors[:-1])


@tvm.register_global_func(UPDATE_IN_PLACE)  # type: ignore[untyped-decorator]
def _in_place(text: Any, x: Any, *tensors: Any) -> Any:
    _update(text, view(x), tensors)
    return x


def send_rows_s(
    plan: TransferPlan, tensor: str, shape: Sequence[int], axis: int, rows: int, transfer: str
) -> float:
    """Seconds to write rows of a tensor of `shape` that lies in MRAM tile by tile.

    A DPU's part of the rows is contiguous behind the axis; each piece before it is one push to the
    DPUs that hold the rows (a push skips those without a buffer), wherever these may be.
    """
    model = TransferModel.preset(transfer)
    seconds = 0.0
    for tile in plan.tiles:
        if tile.tensor != tensor:
            continue
        at = _same_axis(tile.host_shape, shape, axis)
        item = np.dtype(tile.dtype).itemsize
        pieces = prod(tile.extent[:at])
        nbytes = min(rows, tile.extent[at]) * prod(tile.padded[at + 1 :]) * item
        dpus = min(_most_ranks(plan, tile, at, rows) * DPUS_PER_RANK, plan.dpus)
        seconds += pieces * model.to_dpus(-(-nbytes // 8) * 8, dpus)
    return seconds


def _most_ranks(plan: TransferPlan, tile: Tile, at: int, rows: int) -> int:
    """The most ranks that hold any of some successive rows."""
    start, extent = (part[:, at] for part in plan.boxes(tile))
    ranks = np.arange(plan.dpus) // DPUS_PER_RANK
    most = 0
    for low in np.unique(np.maximum(start + extent - rows, 0)):
        holds = (extent > 0) & (start < low + rows) & (low < start + extent)
        most = max(most, len(np.unique(ranks[holds])))
    return most


def _same_axis(found: Sequence[int], shape: Sequence[int], axis: int) -> int:
    """The axis of a reshaped tensor that holds `axis` of the original (unit axes differ alone)."""
    before = prod(shape[:axis])
    for at, size in enumerate(found):
        if prod(found[:at]) == before and size == shape[axis]:
            return at
    raise AssertionError(f"{list(shape)} is not {list(found)} but for unit axes")


Pairs = Sequence[tuple[int, int]]


def keep_state(imported: Imported, state: str | Pairs | None) -> Imported:
    """The model with its state among the parameters, behind them.

    state: (input, output) pairs counted as the caller does, or "auto": inputs of which rows are
    written to make an output. Buffers that the model updates are kept in any case. Raises
    UsageError for pairs that are none.
    """
    kept = dict(imported.updated)
    if isinstance(state, str):
        if state != "auto":
            raise UsageError(f"state: {state!r} given, pairs of numbers or 'auto' needed")
        kept.update(_written_inputs(imported))
    for pair in () if state is None or isinstance(state, str) else state:
        source, output = _pair(pair)
        kept[source + imported.hidden] = output + len(imported.updated)
    return _moved(imported, kept) if kept else imported


def _pair(pair: Any) -> tuple[int, int]:
    try:
        source, output = (int(n) for n in pair)
    except (TypeError, ValueError):
        raise UsageError(f"state: {pair!r} given, (input, output) needed") from None
    if source < 0 or output < 0:
        raise UsageError(f"state: {pair!r} given, numbers from 0 on needed")
    return source, output


def _flat_outputs(main: Any) -> list[Any]:
    """The variables that main returns, one a tensor, None for what is none."""
    bound = {}
    for block in main.body.blocks:
        for binding in block.bindings:
            bound[binding.var] = getattr(binding, "value", None)

    def leaves(expr: Any) -> list[Any]:
        while isinstance(bound.get(expr), relax.Tuple | ir.Var):
            expr = bound[expr]
        if isinstance(expr, relax.Tuple):
            return [leaf for item in expr.fields for leaf in leaves(item)]
        return [expr]

    return [(leaf, bound.get(leaf)) for leaf in leaves(main.body.body)]


def _written_inputs(imported: Imported) -> dict[int, int]:
    main = imported.module["main"]
    inputs = list(main.params)[: len(imported.examples)]
    found = {}
    for output, (_, value) in enumerate(_flat_outputs(main)):
        update = read_update(value, lambda e: ("",) if isinstance(e, ir.Var) else ())
        base = value.args[1].fields[1] if update is not None else None
        for number, variable in enumerate(inputs):
            if base is not None and base.same_as(variable):
                found[number] = output
    return found


def _moved(imported: Imported, kept: dict[int, int]) -> Imported:
    main = imported.module["main"]
    count, outputs = len(imported.examples), _flat_outputs(main)
    names = [str(p.name) for p in list(main.params)[:count]]
    for source, output in kept.items():
        if source >= count or output >= len(outputs):
            own, updated = imported.hidden, len(imported.updated)
            raise UsageError(
                f"state: ({source - own}, {output - updated}) given, the model has"
                f" {count - own} inputs and {len(outputs) - updated} outputs"
            )
        before, after = main.params[source].ty, outputs[output][0].ty
        if str(before) != str(after):
            raise UsageError(
                f"state: input {names[source]} is {_words(before)}, its new value {_words(after)}:"
                " a cache of fixed size needed, with the position as an input"
            )
    order = [n for n in range(count) if n not in kept]
    params = [main.params[n] for n in order] + list(main.params)[count:]
    params += [main.params[n] for n in kept]
    module = imported.module.clone()
    function = relax.Function(params, main.body, main.ret_ty, main.is_pure, main.attrs)
    module["main"] = function.with_attr("num_input", len(order))
    first = len(imported.parameters)
    initial = [imported.examples[n] for n in kept]
    reference = imported.reference

    def merged(*given: Array) -> list[Array]:
        assert reference is not None
        arrays = dict(zip(order, given, strict=True)) | dict(zip(kept, initial, strict=True))
        return reference(*(arrays[n] for n in range(count)))

    return replace(
        imported,
        module=module,
        parameters=(
            *imported.parameters,
            *(tvm.runtime.tensor(np.asarray(a, order="C")) for a in initial),
        ),
        examples=tuple(imported.examples[n] for n in order),
        reference=None if reference is None else merged,
        states=tuple(
            State(names[source], first + number, output)
            for number, (source, output) in enumerate(kept.items())
        ),
    )


def _words(ty: Any) -> str:
    sizes = [str(n.value) if hasattr(n, "value") else str(n) for n in ty.shape]
    return f"{ty.dtype}[{', '.join(sizes)}]"
