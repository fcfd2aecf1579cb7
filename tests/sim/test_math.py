"""Functions that C programs call by name or through built-ins, against the C library here."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from upmem_sim.cc import compile_c
from upmem_sim.dpu import Dpu

COUNT = 320
LIBRARY = ctypes.CDLL(ctypes.util.find_library("m") or "libm.so.6")
REAL: dict[str, Any] = {"float": np.float32, "double": np.float64}
CTYPE = {"float": ctypes.c_float, "double": ctypes.c_double, "int": ctypes.c_int}
WORD = {"float": np.uint32, "double": np.uint64}


def special(kind: str) -> NDArray[Any]:
    """Values at which something changes."""
    info = np.finfo(REAL[kind])
    near = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 7.5, 2.0**22, 2.0**23, 2.0**52, 2.0**53, 1e9, 88.7]
    found = [float(info.max), float(info.tiny), float(info.smallest_subnormal), np.inf, np.nan]
    values = np.array(near + found, REAL[kind])
    with np.errstate(all="ignore"):
        more = [np.nextafter(values, REAL[kind](np.inf)), np.nextafter(values, REAL[kind](0))]
    every = np.concatenate([values, *more])
    return np.concatenate([every, -every])


def inputs(kind: str, rng: np.random.Generator) -> NDArray[Any]:
    """COUNT values: the special ones, any bits, and numbers of usual size."""
    chosen = special(kind)
    bits = rng.integers(0, 2 ** (8 * REAL[kind]().nbytes), COUNT, WORD[kind]).view(REAL[kind])
    usual = (rng.standard_normal(COUNT) * 10.0 ** rng.integers(-3, 6, COUNT)).astype(REAL[kind])
    mixed = np.where(rng.random(COUNT) < 0.5, bits, usual).astype(REAL[kind])
    mixed[: len(chosen)] = rng.permutation(chosen)
    return mixed


def on_dpu(name: str, kind: str, arguments: tuple[str, ...], data: list[NDArray[Any]]) -> Any:
    names = "xyz"[: len(arguments)]
    arrays = "\n".join(f"__host {t} {n}[{COUNT}];" for n, t in zip(names, arguments, strict=True))
    call = ", ".join(f"{n}[i]" for n in names)
    text = (
        f"#include <attributes.h>\n{kind} {name}({', '.join(arguments)});\n{arrays}\n"
        f"__host {kind} out[{COUNT}];\n"
        f"int main() {{ for (int i = 0; i < {COUNT}; i++) out[i] = {name}({call}); return 0; }}\n"
    )
    dpu = Dpu(compile_c(text))
    for n, values in zip(names, data, strict=True):
        dpu.write(n, values)
    dpu.run(10**9)
    return dpu.read("out", REAL[kind], COUNT)


def on_host(name: str, kind: str, arguments: tuple[str, ...], data: list[NDArray[Any]]) -> Any:
    function: Callable[..., float] = getattr(LIBRARY, name)
    function.restype = CTYPE[kind]  # type: ignore[attr-defined]
    function.argtypes = [CTYPE[t] for t in arguments]  # type: ignore[attr-defined]
    rows = zip(*(values.tolist() for values in data), strict=True)
    return np.array([function(*row) for row in rows], REAL[kind])


def same(got: NDArray[Any], want: NDArray[Any], kind: str) -> NDArray[np.bool_]:
    """Equal bits, or both not a number."""
    equal: NDArray[np.bool_] = got.view(WORD[kind]) == want.view(WORD[kind])
    return equal | (np.isnan(got) & np.isnan(want))


EXACT = [
    *((f"{n}{s}", (k,)) for n in ("floor", "ceil", "trunc", "round", "rint", "nearbyint")
      for s, k in (("f", "float"), ("", "double"))),
    ("fmodf", ("float", "float")),
    ("fmod", ("double", "double")),
    ("ldexpf", ("float", "int")),
    ("ldexp", ("double", "int")),
    ("scalbn", ("double", "int")),
    ("fmaf", ("float", "float", "float")),
    ("fma", ("double", "double", "double")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), EXACT, ids=[n for n, _ in EXACT])
def test_exact_functions(name: str, arguments: tuple[str, ...]) -> None:
    rng = np.random.default_rng(len(name))
    kind = arguments[0]
    data = [inputs(kind, rng)]
    for t in arguments[1:]:
        scale = rng.choice([3, 60, 300, 2200, 2**31 - 1], COUNT)
        whole = np.int32(np.clip(rng.uniform(-1, 1, COUNT) * scale, -(2**31), 2**31 - 1))
        data.append(whole if t == "int" else inputs(t, rng))
    if name.startswith("fma"):  # results that cancel, and halves that the addend decides
        with np.errstate(all="ignore"):
            products = data[0][::4].astype(float) * data[1][::4]
        data[2][::4] = -products.clip(-3e38, 3e38) if kind == "float" else -products
        data[2][1::8] = np.float32(1e-30)
    got, want = on_dpu(name, kind, arguments, data), on_host(name, kind, arguments, data)
    wrong = ~same(got, want, kind)
    assert not wrong.any(), [
        (*(d[i] for d in data), got[i], want[i]) for i in np.nonzero(wrong)[0][:3]
    ]


@pytest.mark.parametrize(("name", "reference"), [("expf", np.exp), ("logf", np.log)])
def test_functions_within_one_unit_of_the_last_place(
    name: str, reference: Callable[[Any], Any]
) -> None:
    rng = np.random.default_rng(7)
    x = inputs("float", rng)
    x[120:] = rng.uniform(-105, 90, 200) if name == "expf" else 1 + rng.uniform(-0.1, 0.1, 200)
    got = on_dpu(name, "float", ("float",), [x])
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64))
        want = exact.astype(np.float32)
    finite = np.isfinite(want)
    assert same(got[~finite], want[~finite], "float").all()
    step = np.spacing(np.abs(want[finite])).astype(np.float64)
    assert (np.abs(got[finite] - exact[finite]) <= step).all()


@pytest.mark.parametrize("kind", ["float", "double"])
def test_integer_powers(kind: str) -> None:
    name = f"__builtin_powi{'f' if kind == 'float' else ''}"
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, COUNT).astype(REAL[kind])
    n = rng.integers(-40, 40, COUNT, np.int32)
    text = (
        f"#include <attributes.h>\n__host {kind} x[{COUNT}], out[{COUNT}];\n"
        f"__host int n[{COUNT}];\n"
        f"int main() {{ for (int i = 0; i < {COUNT}; i++) out[i] = {name}(x[i], n[i]); return 0; }}"
    )
    dpu = Dpu(compile_c(text))
    dpu.write("x", x)
    dpu.write("n", n)
    dpu.run()
    got = dpu.read("out", REAL[kind], COUNT)
    for base, power, value in zip(x, n.tolist(), got, strict=True):
        want, square, left = REAL[kind](1), base, abs(power)
        while left:
            want = want * square if left & 1 else want
            square, left = square * square, left >> 1
        with np.errstate(all="ignore"):
            want = 1 / want if power < 0 else want
        assert value == want
