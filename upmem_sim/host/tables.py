"""C++ text of the numbers that the native host library shares with `params.py` and `transfer.py`.

The build runs this file and compiles what it prints, so every number exists once. Units are those
of the two modules. Systems that are measured tables, not curves, are left out.
"""

from __future__ import annotations

from dataclasses import astuple

from upmem_sim.params import DpuParams, SystemParams
from upmem_sim.transfer import PRESETS, TransferModel
from upmem_sim.transfer_costs import Curve, WramCost


def _braces(cost: Curve | WramCost) -> str:
    return "{" + ", ".join(repr(v) for v in astuple(cost) if not isinstance(v, str)) + "}"


def _preset(name: str) -> str | None:
    m = TransferModel.preset(name)
    if not isinstance(m.inward, Curve) or not isinstance(m.outward, Curve):
        return None
    if not isinstance(m.wram_in, WramCost) or not isinstance(m.wram_out, WramCost):
        return None
    curves = ", ".join(_braces(c) for c in (m.inward, m.outward))
    wram = ", ".join(_braces(c) for c in (m.wram_in, m.wram_out))
    numbers = f"{m.broadcast_gain!r}, {m.launch_ms!r}, {m.launch_per_rank_ms!r}"
    return f'    {{"{name}", {curves}, {wram}, {numbers}}},'


def header() -> str:
    """The text of tables.inc."""
    chip, system = DpuParams(), SystemParams()
    lines = ["// Printed by upmem_sim/host/tables.py: do not change.", "#pragma once"]
    lines.append(f"inline constexpr double kClockHz = {chip.clock_mhz * 1e6!r};")
    lines.append(f"inline constexpr uint32_t kSystemDpus = {system.dpus};")
    lines.append(f"inline constexpr uint32_t kDpusPerRank = {system.dpus_per_rank};")
    lines.append("inline constexpr ChipNumber kChip[] = {")
    lines += [f'    {{"{name}", {value}}},' for name, value in chip.resolved().items()]
    lines.append("};")
    lines.append("inline constexpr TransferPreset kPresets[] = {")
    lines += [row for row in map(_preset, PRESETS) if row is not None]
    return "\n".join([*lines, "};"])


if __name__ == "__main__":
    print(header())
