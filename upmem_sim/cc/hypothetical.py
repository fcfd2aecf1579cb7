"""RV32 multiplications -> those of hypothetical cores (isa.py, `UNITS`).

clang makes them only where the unit is asked for (clang.py, `HYPOTHETICAL`). A DPU takes special
registers as first source only; a product with zero is zero.
"""

from __future__ import annotations

from upmem_sim.cc.flow import make
from upmem_sim.cc.translate import Handler, Item, register


def _product(op: str) -> Handler:
    def handle(o: list[str], _: str) -> list[Item]:
        d, a, b = register(o[0]), register(o[1]), register(o[2])
        return [make("move", d, 0) if "zero" in (a, b) else make(op, d, a, b)]

    return handle


TABLE: dict[str, Handler] = {
    "mul": _product("mul32"),
    "mulh": _product("mulhs32"),
    "mulhsu": _product("mulhsu32"),
    "mulhu": _product("mulhu32"),
}
