"""What moved and why, as text."""

from __future__ import annotations

from typing import Any

__all__ = ["text"]


def text(result: Any) -> str:
    problem = result.problem
    lines = []
    for verdict in result.placement.verdicts:
        nest = problem.graph.nests[verdict.nest]
        where = "PIM " if verdict.on_pim else "host"
        lines.append(f"{where} {nest.name}: {verdict.reason}")
    for name, placement in result.baselines.items():
        lines.append(f"{name:12} {placement.seconds * 1e3:10.3f} ms, {len(placement.moved)} moved")
    return "\n".join(lines)
