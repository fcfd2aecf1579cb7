"""C++ text of the numbers that the native host library shares with `params.py` and `transfer.py`.

The build runs this file and compiles what it prints, so every number exists once. Units are those
of the two modules.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple

from upmem_sim.params import DpuParams, SystemParams
from upmem_sim.transfer import PRESETS, TransferModel
from upmem_sim.transfer_costs import Curve, Table, WramCost


def _row(values: Iterable[float]) -> str:
    return "{" + ", ".join(repr(float(v)) for v in values) + "}"


def _cost(cost: Curve | Table | WramCost) -> str:
    """A `Cost` of system_model.h: one of its forms is set."""
    if isinstance(cost, Table):
        seconds = _row(s for row in cost.seconds_at for s in row)
        table = f"{_row(cost.nbytes)}, {_row(cost.dpus)}, {seconds}, {cost.below!r}"
        return f"Cost(Table{{{table}}})"
    numbers = ", ".join(repr(v) for v in astuple(cost) if not isinstance(v, str))
    return f"Cost({type(cost).__name__}{{{numbers}}})"


def _preset(name: str) -> str:
    m = TransferModel.preset(name)
    costs = ", ".join(_cost(c) for c in (m.inward, m.outward, m.wram_in, m.wram_out))
    numbers = f"{m.broadcast_gain!r}, {m.launch_ms!r}, {m.launch_per_rank_ms!r}"
    return f'    {{"{name}", {costs}, {numbers}}},'


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
    lines.append("#ifdef UPMEM_PRESETS  // in the one file that keeps them")
    lines.append("const std::vector<TransferPreset>& presets() {")
    lines.append("  static const auto* const all = new std::vector<TransferPreset>{")
    lines += map(_preset, PRESETS)
    return "\n".join([*lines, "  };", "  return *all;", "}", "#endif"])


if __name__ == "__main__":
    print(header())
