"""The run-time library: every file in rt/ is a unit, linked only where a symbol of it is needed."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

from upmem_sim.asm import assemble
from upmem_sim.cc import cache, clang, ir, ir_text
from upmem_sim.cc.unit import build_unit
from upmem_sim.isa import Insn, Sym
from upmem_sim.objfile import Unit

RT_DIR = Path(__file__).parent / "rt"
START = "__bootstrap"


def defined(unit: Unit) -> set[str]:
    """Names a unit offers to others."""
    return unit.globals | unit.weak


def needed(unit: Unit) -> set[str]:
    """Names a unit uses, its own included."""
    names: set[str] = set(unit.aliases.values())
    for section in unit.sections:
        names.update(sym.name for _, _, sym in section.relocs)
        for item in section.insns:
            if isinstance(item, Insn):
                names.update(arg.name for arg in item.args if isinstance(arg, Sym))
                if isinstance(item.target, str):
                    names.add(item.target)
                elif isinstance(item.target, Sym):
                    names.add(item.target.name)
    return names


@functools.cache
def _units() -> tuple[list[Unit], dict[str, int], list[frozenset[str]]]:
    """All library units, symbol -> number of the unit that defines it, names each one needs."""
    sources = sorted([*RT_DIR.glob("*.s"), *RT_DIR.glob("*.c")])
    texts = [path.read_text() for path in sources]
    name = cache.key(["library", clang.version(), *texts])
    units = cache.load(name)
    if units is None:
        units = [_build(path, text) for path, text in zip(sources, texts, strict=True)]
        cache.store(name, units)
    owners: dict[str, int] = {}
    for number, unit in enumerate(units):
        for symbol in defined(unit):
            owners.setdefault(symbol, number)
    return units, owners, [frozenset(needed(unit)) for unit in units]


def _build(path: Path, text: str) -> Unit:
    if path.suffix == ".s":
        return assemble(text, path.name)
    options = clang.Options(debug=False)
    module = ir.rewrite(clang.to_ir(text, options), path.name)
    return build_unit(clang.to_assembly(module, options), path.name, ir_text.signatures(module))


def select(units: Iterable[Unit]) -> list[Unit]:
    """Library units that `units` and the start-up code need, directly or through each other."""
    library, owners, needs = _units()
    have: set[str] = set()
    todo: set[str] = {START}
    for unit in units:
        have |= defined(unit)
        todo |= needed(unit)
    chosen: list[int] = []
    while todo:
        name = todo.pop()
        number = owners.get(name)
        if number is None or number in chosen or name in have:
            continue
        chosen.append(number)
        todo |= needs[number]
    return [library[number] for number in sorted(chosen)]
