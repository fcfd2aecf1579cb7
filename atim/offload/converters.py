"""Converters that mend PyTorch's importer: operator -> function (node, importer) -> Relax value.

TVM 0.27's importer translates some operators to programs with wrong numbers: negative positions of
`select` and `index` read out of bounds, matrix products of integers are summed in float32. Others
fail although Relax has what they need. Each row here replaces one; every row has a test that
compares it with PyTorch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax

from atim.errors import UnsupportedError
from atim.offload.state import emit_update

__all__ = ["CONVERTERS", "Converter", "dtype_of", "emit_attention", "index_put"]

# A torch.fx node, TVM's importer with .env and .block_builder, and the Relax value it emits
Converter = Callable[[Any, Any], Any]


def dtype_of(value: Any) -> str:
    """torch.int32 -> "int32", of a tensor's metadata."""
    return str(value.dtype).removeprefix("torch.")


def _emit(importer: Any, value: Any) -> Any:
    return importer.block_builder.emit(value)


def _argument(node: Any, position: int, name: str, default: Any) -> Any:
    if len(node.args) > position:
        return node.args[position]
    return node.kwargs.get(name, default)


def _shape(node: Any) -> list[int]:
    sizes = list(node.meta["val"].shape)
    if not all(isinstance(n, int) for n in sizes):
        raise UnsupportedError(f"{node.target}: shape {sizes} depends on the input")
    return sizes


def _select(node: Any, importer: Any) -> Any:
    x, axis, position = importer.env[node.args[0]], node.args[1], node.args[2]
    extent = x.ty.shape[axis]
    if position < 0:
        position = extent + position
    if isinstance(position, int):
        return _emit(importer, relax.op.take(x, relax.const(position, "int64"), axis, "clip"))
    if hasattr(position, "value"):
        return _emit(importer, relax.op.take(x, relax.const(int(position), "int64"), axis, "clip"))
    raise UnsupportedError(f"{node.target}: position from the end of a dynamic axis")


def _embedding(node: Any, importer: Any) -> Any:
    """Rows of a table. Positions outside, which PyTorch refuses, give a row of the table rather
    than what lies behind it."""
    weight, index = importer.env[node.args[0]], importer.env[node.args[1]]
    flat = _emit(importer, relax.op.reshape(index, (-1,)))
    rows = _emit(importer, relax.op.take(weight, flat, 0, "clip"))
    return _emit(importer, relax.op.reshape(rows, [*index.ty.shape, weight.ty.shape[1]]))


def _wrapped(importer: Any, index: Any, extent: Any) -> Any:
    """Positions counted from the start, as `take` wants them."""
    dtype = str(index.ty.dtype)
    negative = _emit(importer, relax.op.less(index, relax.const(0, dtype)))
    size = relax.const(int(extent), dtype) if hasattr(extent, "value") else None
    if size is None:
        raise UnsupportedError("index.Tensor: index into a dynamic axis")
    return _emit(importer, relax.op.where(negative, relax.op.add(index, size), index))


def _index(node: Any, importer: Any) -> Any:
    x = importer.env[node.args[0]]
    given = [(axis, importer.env[i]) for axis, i in enumerate(node.args[1]) if i is not None]
    for _, index in given:
        if str(index.ty.dtype) == "bool":
            raise UnsupportedError(f"{node.target}: a mask as index, its result has no fixed shape")
    wrapped = [_wrapped(importer, index, x.ty.shape[axis]) for axis, index in given]
    if len(given) == 1:
        return _emit(importer, relax.op.take(x, wrapped[0], given[0][0], "clip"))
    if [axis for axis, _ in given] == list(range(len(x.ty.shape))):
        return _emit(importer, relax.op.index_tensor(x, wrapped))
    if [axis for axis, _ in given] == list(range(len(given))):
        return _emit(importer, relax.op.index_tensor(x, wrapped))
    raise UnsupportedError(f"{node.target}: indices on some inner axes only")


def _cat(node: Any, importer: Any) -> Any:
    """Without parts of size zero, which would be nests of their own."""
    axis = _argument(node, 1, "dim", 0)
    parts = [importer.env[part] for part in node.args[0]]
    # PyTorch also lets an empty vector stand for nothing, whatever the rank of the others
    full = [p for p in parts if not any(_known([n]) and int(n) == 0 for n in p.ty.shape)]
    if len(full) < 2:
        return full[0] if full else parts[0]
    return _emit(importer, relax.op.concat(full, axis=axis))


def index_put(node: Any, importer: Any) -> Any | None:
    """x[:, positions] = rows: whole rows along one axis; None for other forms."""
    x, rows = importer.env[node.args[0]], importer.env[node.args[2]]
    given = [(axis, i) for axis, i in enumerate(node.args[1]) if i is not None]
    if len(given) != 1 or _argument(node, 3, "accumulate", False):
        return None
    axis, positions = given[0][0], importer.env[given[0][1]]
    rank = len(positions.ty.shape)
    sizes = [*x.ty.shape, *rows.ty.shape, *positions.ty.shape]
    if str(positions.ty.dtype) == "bool" or rank > 1 or not _known(sizes):
        return None
    if rank == 0:  # the result of such an index lacks the axis
        shape = [int(n) for n in x.ty.shape]
        rows = _emit(importer, relax.op.broadcast_to(rows, shape[:axis] + shape[axis + 1 :]))
        rows = _emit(importer, relax.op.expand_dims(rows, axis))
    return emit_update(importer, x, rows, axis, positions)


def _slice_scatter(node: Any, importer: Any) -> Any:
    x, rows = (importer.env[argument] for argument in node.args[:2])
    axis, start, step = (_argument(node, n, name, d) for n, name, d in _SLICE)
    rank = len(x.ty.shape)
    axis = axis + rank if axis < 0 else axis
    if not _known([*x.ty.shape, *rows.ty.shape]) or step != 1:
        raise UnsupportedError(f"{node.target}: steps and dynamic sizes are not supported")
    extent = int(x.ty.shape[axis])
    start = min(start or 0, extent)
    return emit_update(importer, x, rows, axis, start + extent if start < 0 else start)


_SLICE = ((2, "dim", 0), (3, "start", 0), (5, "step", 1))


def _known(sizes: list[Any]) -> bool:
    return all(hasattr(n, "value") for n in sizes)


def _matmul(node: Any, importer: Any) -> Any:
    a, b = (importer.env[argument] for argument in node.args[:2])
    dtype = dtype_of(node.meta["val"])
    return _emit(importer, relax.op.matmul(a, b, out_dtype=dtype))


def _linear(node: Any, importer: Any) -> Any:
    x, weight = (importer.env[argument] for argument in node.args[:2])
    dtype = dtype_of(node.meta["val"])
    turned = _emit(importer, relax.op.permute_dims(weight))
    product = _emit(importer, relax.op.matmul(x, turned, out_dtype=dtype))
    bias = _argument(node, 2, "bias", None)
    return product if bias is None else _emit(importer, relax.op.add(product, importer.env[bias]))


def _add_matmul(node: Any, importer: Any) -> Any:
    c, a, b = (importer.env[argument] for argument in node.args[:3])
    dtype = dtype_of(node.meta["val"])
    product = _emit(importer, relax.op.matmul(a, b, out_dtype=dtype))
    for name, factor in (("alpha", product), ("beta", c)):
        value = node.kwargs.get(name, 1)
        if value != 1:
            scaled = _emit(importer, relax.op.multiply(factor, relax.const(value, dtype)))
            product, c = (scaled, c) if name == "alpha" else (product, scaled)
    return _emit(importer, relax.op.add(product, c))


def _filled(position: int) -> Converter:
    """full, full_like, new_full: also with infinity, which TVM's own `full` can't hold."""

    def convert(node: Any, importer: Any) -> Any:
        value = _argument(node, position, "fill_value", None)
        if not isinstance(value, int | float):
            raise UnsupportedError(f"{node.target}: filled with a computed value")
        constant = relax.const(np.array(value), dtype_of(node.meta["val"]))
        return _emit(importer, relax.op.broadcast_to(constant, _shape(node)))

    return convert


def _extremum(operator: Callable[..., Any]) -> Converter:
    def convert(node: Any, importer: Any) -> Any:
        axes = _argument(node, 1, "dim", None)
        keep = bool(_argument(node, 2, "keepdim", False))
        x = importer.env[node.args[0]]
        return _emit(importer, operator(x, axis=list(axes) if axes else None, keepdims=keep))

    return convert


def _clamp(node: Any, importer: Any) -> Any:
    """Between two scalars or tensors, either of which may be missing."""
    dtype, given = dtype_of(node.meta["val"]), importer.env[node.args[0]]
    if str(given.ty.dtype) != dtype:
        given = _emit(importer, relax.op.astype(given, dtype))
    result = given
    for position, name, operator in _BOUNDS:
        bound = _argument(node, position, name, None)
        if bound is None:
            continue
        if isinstance(bound, int | float):
            if np.issubdtype(dtype, np.integer) and np.array(bound).astype(dtype) != bound:
                raise ValueError(f"{node.target}: {name} {bound} is no {dtype}")  # to PyTorch
            bound = relax.const(bound, dtype)
        else:
            bound = _emit(importer, relax.op.astype(importer.env[bound], dtype))
        result = _emit(importer, operator(result, bound))
    if np.issubdtype(dtype, np.floating):  # the smaller and the larger of NaN and x are x in TVM
        result = _emit(importer, relax.op.where(relax.op.isnan(given), given, result))
    return result


_BOUNDS = ((1, "min", relax.op.maximum), (2, "max", relax.op.minimum))


def _shift(operator: Callable[..., Any]) -> Converter:
    """By a constant: a product with a power of two, or the floor of a quotient."""

    def convert(node: Any, importer: Any) -> Any:
        x, dtype, count = importer.env[node.args[0]], dtype_of(node.meta["val"]), node.args[1]
        bits = np.iinfo(dtype).bits
        if not isinstance(count, int) or not 0 <= count < bits - 1 or str(x.ty.dtype) != dtype:
            raise ValueError(f"{node.target}: not by a constant of 0 to {bits - 2}")  # to PyTorch
        return _emit(importer, operator(x, relax.const(1 << count, dtype)))

    return convert


def _triangle(upper: bool) -> Converter:
    def convert(node: Any, importer: Any) -> Any:
        diagonal = _argument(node, 1, "diagonal", 0)
        x, (rows, columns) = importer.env[node.args[0]], _shape(node)[-2:]
        keep = np.tri(rows, columns, diagonal - 1 if upper else diagonal, dtype=bool)
        mask = relax.const(~keep if upper else keep)
        zero = relax.const(0, str(x.ty.dtype))
        return _emit(importer, relax.op.where(mask, x, zero))

    return convert


def emit_attention(importer: Any, q: Any, k: Any, v: Any, options: dict[str, Any]) -> Any:
    """Scaled dot product attention as matrix products and a softmax.

    options: mask (Relax value or None), causal, scale, gqa. TVM's own operator copies K and V.
    """
    heads, kv_heads = int(q.ty.shape[-3]), int(k.ty.shape[-3])
    if options["gqa"] and heads != kv_heads:
        k, v = (_emit(importer, relax.op.repeat(t, heads // kv_heads, -3)) for t in (k, v))
    rank = len(k.ty.shape)
    turned = _emit(importer, relax.op.permute_dims(k, [*range(rank - 2), rank - 1, rank - 2]))
    dtype = str(q.ty.dtype)
    scale = options["scale"] or 1.0 / math.sqrt(int(q.ty.shape[-1]))
    scores = _emit(importer, relax.op.matmul(q, turned))
    scores = _emit(importer, relax.op.multiply(scores, relax.const(scale, dtype)))
    mask = options["mask"]
    if options["causal"]:
        mask = relax.const(np.tri(int(q.ty.shape[-2]), int(k.ty.shape[-2]), dtype=bool))
    if mask is not None and str(mask.ty.dtype) == "bool":
        least = relax.const(np.array(-np.inf), dtype)
        scores = _emit(importer, relax.op.where(mask, scores, least))
    elif mask is not None:
        scores = _emit(importer, relax.op.add(scores, mask))
    weights = _emit(importer, relax.op.nn.softmax(scores, -1))
    return _emit(importer, relax.op.matmul(weights, v))


def _attention(node: Any, importer: Any) -> Any:
    q, k, v = (importer.env[argument] for argument in node.args[:3])
    if _argument(node, 4, "dropout_p", 0.0):
        raise UnsupportedError(f"{node.target}: dropout, only evaluation is supported")
    mask = _argument(node, 3, "attn_mask", None)
    options = {
        "mask": None if mask is None else importer.env[mask],
        "causal": _argument(node, 5, "is_causal", False),
        "scale": node.kwargs.get("scale"),
        "gqa": node.kwargs.get("enable_gqa", False),
    }
    return emit_attention(importer, q, k, v, options)


CONVERTERS: dict[str, Converter] = {
    "select.int": _select,
    "cat.default": _cat,
    "index.Tensor": _index,
    "embedding.default": _embedding,
    "slice_scatter.default": _slice_scatter,
    "linear.default": _linear,
    "matmul.default": _matmul,
    "mm.default": _matmul,
    "bmm.default": _matmul,
    "_int_mm.default": _matmul,
    "addmm.default": _add_matmul,
    "baddbmm.default": _add_matmul,
    "full.default": _filled(1),
    "full_like.default": _filled(1),
    "new_full.default": _filled(2),
    "amax.default": _extremum(relax.op.max),
    "amin.default": _extremum(relax.op.min),
    "clamp.default": _clamp,
    "clamp.Tensor": _clamp,
    "__lshift__.Scalar": _shift(relax.op.multiply),
    "__rshift__.Scalar": _shift(relax.op.floor_divide),
    "bitwise_left_shift.Tensor_Scalar": _shift(relax.op.multiply),
    "bitwise_right_shift.Tensor_Scalar": _shift(relax.op.floor_divide),
    "triu.default": _triangle(True),
    "tril.default": _triangle(False),
    "scaled_dot_product_attention.default": _attention,
}
"""Rows replace the importer's own."""
