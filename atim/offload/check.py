"""Is the imported model the original? Compared on the example inputs before anything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import tvm_ffi
from numpy.typing import NDArray
from tvm import ir, relax

from atim.errors import MismatchError
from atim.offload.host import host_target
from atim.offload.imported import Imported
from atim.offload.lowering import lower
from atim.offload.module import Offloaded
from atim.offload.nests import read_graph
from atim.offload.profile import HostFile
from atim.offload.rewrite import build, rewrite

__all__ = ["check_import", "compare"]

Array = NDArray[Any]

# of the largest value: float32 sums in another order, and values rounded to integers after them
RELATIVE = 1e-3
RELATIVE_HALF = 1e-2  # float16 has 10 bits


def compare(got: Sequence[Array], wanted: Sequence[Array]) -> str | None:
    """The first difference in words, None when all outputs agree: exactly for integers, floats
    within RELATIVE of the largest value (float16 ones RELATIVE_HALF)."""
    if len(got) != len(wanted):
        return f"{len(got)} outputs, {len(wanted)} expected"
    for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
        difference = _difference(a, b)
        if difference is not None:
            return f"output {number}: {difference}"
    return None


def _difference(a: Array, b: Array) -> str | None:
    if a.shape != b.shape or a.dtype != b.dtype:
        return f"{a.dtype}{list(a.shape)}, {b.dtype}{list(b.shape)} expected"
    if b.dtype.kind not in "fc":
        wrong = a != b
    else:
        finite = np.isfinite(b)
        scale = float(np.max(np.abs(b[finite]), initial=0.0))
        with np.errstate(invalid="ignore"):
            allowed = RELATIVE_HALF if b.dtype == np.float16 else RELATIVE
            close = np.abs(a.astype(np.float64) - b) <= allowed * scale
        wrong = ~np.where(finite, close, (a == b) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return None
    at = tuple(int(n) for n in np.argwhere(wrong)[0])
    where = f" at {list(at)}" if at else ""
    return f"{a[at]}{where}, {b[at]} expected ({int(wrong.sum())} of {wrong.size} differ)"


def check_import(imported: Imported, outputs: Sequence[Array]) -> None:
    """Compare what the host module computed with the original.

    Raises MismatchError, which names the first nest whose value differs, and its operator.
    """
    if imported.reference is None:
        return
    difference = compare(outputs, imported.reference(*imported.examples))
    if difference is None:
        return
    place = _first_difference(imported) if imported.trace else None
    where = place or "no operator differs alone: the fault is in the lowering"
    raise MismatchError(f"import is not the model: {difference}; first: {where}")


def _first_difference(imported: Imported) -> str | None:
    """The first nest, in program order, whose value differs from PyTorch's, with its operator.

    Every operator's value becomes an output, so each is that of a nest.
    """
    assert imported.trace is not None
    wanted = imported.trace()
    blocks = imported.module["main"].body.blocks
    made = {str(binding.var.name) for block in blocks for binding in block.bindings}
    known = [
        (place, value, name)
        for place, value, name in imported.values
        if name in wanted and isinstance(value, relax.Var) and str(value.name) in made
    ]
    everything = replace(imported, module=_with_all_values(imported, [v for _, v, _ in known]))
    lowered = lower(replace(everything, states=()))
    graph = read_graph(lowered.module)
    module = rewrite(lowered.module, graph, (), HostFile.load("papers"))
    values = Offloaded(build(module, host_target()), lowered.parameters, ())
    found = values.call_flat(*imported.examples)
    makers = {value: nest.name for nest in graph.nests for value in nest.outputs}
    for (place, _, name), output, value in zip(known, graph.outputs, found, strict=True):
        difference = _difference(value, wanted[name])
        if difference is not None:
            nest = makers.get(output, "no nest")
            return f"nest {nest}, operator {place}: {difference}"
    return None


def _with_all_values(imported: Imported, variables: list[Any]) -> Any:
    """The module with a main that returns every operator's value."""
    main = imported.module["main"]
    names = {str(v.name) for v in variables}
    builder = relax.BlockBuilder()
    renamed: list[tuple[Any, Any]] = []

    def new(variable: Any) -> Any:
        return next((n for old, n in renamed if old.same_as(variable)), variable)

    found = {}
    with builder.function("main", list(main.params), attrs=dict(main.attrs or {})):
        for block in main.body.blocks:
            for binding in block.bindings:
                value = tvm_ffi.structural_map(binding.value, (ir.Var, new))
                emitted = builder.emit(value)
                renamed.append((binding.var, emitted))
                if str(binding.var.name) in names:
                    found[str(binding.var.name)] = emitted
        values = relax.Tuple([found[str(v.name)] for v in variables])
        builder.emit_func_output(builder.emit(values))
    return builder.get()
