"""built_ins.h: every macro assembles, with operands of the kinds that its name says."""

from __future__ import annotations

import re

import numpy as np
import pytest

from upmem_sim.cc import compile_c
from upmem_sim.cc.clang import INCLUDE_DIR
from upmem_sim.dpu import Dpu
from upmem_sim.isa import JUMP_CLASSES, OPERATIONS, SET_CLASSES, UNIT_OF

_DEFINE = re.compile(r"#define __builtin_(\w+)\(([^)]*)\)")


def macros() -> list[tuple[str, list[str]]]:
    found = _DEFINE.findall((INCLUDE_DIR / "built_ins.h").read_text())
    return [(name, [p.strip() for p in params.split(",") if p.strip()]) for name, params in found]


def operation(name: str) -> tuple[str, str, str]:
    """(operation, suffix, form) of a macro's name."""
    for op in sorted(OPERATIONS, key=len, reverse=True):
        if name == op or name.startswith(op + "_"):
            rest = name[len(op) :].lstrip("_")
            suffix = rest[0] if rest[:2] in ("s_", "u_") else ""
            return op, suffix, rest[2:] if suffix else rest
    raise AssertionError(name)


def argument(parameter: str, op: str, suffix: str, form: str) -> str:
    """A C operand for a macro's parameter."""
    row = OPERATIONS[op]
    pair = suffix or row.fmt in ("step", "movd") or op in ("ld", "sd")
    if parameter == "d":
        return "w" if pair else "x"
    if parameter == "b":
        return "v" if row.fmt in ("step", "movd") or op == "sd" else "y"
    if parameter == "c":
        choices = SET_CLASSES[row.set] if form.endswith("c") else JUMP_CLASSES[row.jump or "true"]
        return f'"{choices[0]}"'
    fixed = {"a": "z", "t": '".+1"', "e": '"!big"', "o": '"8"', "n": '"1"', "i": '"5"'}
    return fixed[parameter]


@pytest.mark.parametrize("part", range(4))
def test_every_macro_assembles(part: int) -> None:
    lines = []
    for name, parameters in macros()[part::4]:
        op, suffix, form = operation(name)
        arguments = ", ".join(argument(p, op, suffix, form) for p in parameters)
        lines.append(f"void f_{name}(void) {{ __builtin_{name}({arguments}); }}")
    text = "#include <stdint.h>\n#include <built_ins.h>\nuint32_t x, y, z; uint64_t w, v;\n"
    compile_c(text + "\n".join(lines) + "\nint main() { return 0; }", debug=False)


def test_the_table_is_covered() -> None:
    assert len(macros()) > 600
    covered = {operation(name)[0] for name, _ in macros()}
    assert covered | {"call", "tell"} == set(OPERATIONS) - set(UNIT_OF)


def test_macros_compute() -> None:
    text = """
    #include <stdint.h>
    #include <defs.h>
    #include <built_ins.h>
    __host int64_t out[8];
    __host uint32_t a = 0x80FF0302, b = 0x80FE0403;
    int main() {
        uint32_t r; uint64_t w;
        __builtin_mul_uh_ul_rrr(r, a, b); out[0] = r;
        __builtin_cmpb4_rrr(r, a, b); out[1] = r;
        __builtin_cao_rr(r, a); out[2] = r;
        __builtin_lsl_add_rrri(r, a, b, "3"); out[3] = r;
        __builtin_add_s_rri(w, a, "1"); out[4] = w;
        __builtin_sub_rrrc(r, a, b, "gtu"); out[5] = r;
        __builtin_lw_erri("!big", r, &a, "0"); out[6] = r;
        uint64_t d = (uint64_t)5 << 32; __builtin_mul_step_drdi(d, a, d, "2"); out[7] = d;
        return 0;
    }"""
    dpu = Dpu(compile_c(text))
    dpu.run()
    a, b = 0x80FF0302, 0x80FE0403
    expected = [3 * 3, 0x01000000, a.bit_count(), (a + (b << 3)) & 0xFFFFFFFF, a + 1 - (1 << 32), 1,
                0x0203FF80, 2 << 32 | (a << 2) & 0xFFFFFFFF]  # fmt: skip
    assert dpu.read("out", np.int64, 8).tolist() == expected
