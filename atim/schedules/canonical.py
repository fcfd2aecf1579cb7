"""Equal schedules -> equal decisions: what a search compares, counts and records."""

from __future__ import annotations

import numpy as np

from atim.schedules.products import emitted_forms
from atim.schedules.shapes import VECTOR_BLOCK, VECTOR_ROW, one_group, shape_of
from atim.schedules.sketch import Column, Sketch

__all__ = ["canonical"]


def canonical(sketch: Sketch, matrix: Column) -> Column:
    """Candidates with requested counts replaced by those used, choices that make no difference set
    to 0, and forms of products as they are emitted: equal schedules become equal rows."""
    columns = sketch.columns(matrix)
    shape, row = shape_of(sketch, columns), sketch.roles.row
    used = {f"dpus_{sketch.program.axes[a].name}": shape.grid[a] for a in sketch.roles.grid}
    used["tasklets"] = shape.tasklets
    used["tasklets_outer"] = shape.spread
    used["tile"] = shape.tile[sketch.roles.tile]
    used["unroll"] = shape.unroll
    used["row_block"] = shape.block
    used["host_threads"] = shape.host
    if sketch.roles.across is not None:
        used["across"] = shape.tile[sketch.roles.across]
    if sketch.roles.piece is not None:
        used["pieces"] = shape.grid[sketch.roles.piece]
    if "multiply" in columns:
        used["multiply"] = emitted_forms(sketch, shape, columns)
    if "cyclic" in columns:
        used["cyclic"] = np.where((shape.steps == 1) | (shape.tasklets == 1), 0, columns["cyclic"])
    if "vector" in columns:
        # one group of rows: nothing to keep the vector for, unless other tasklets share it
        alone = one_group(sketch, shape)
        kept = columns["vector"]
        kept = np.where(alone & (kept == VECTOR_BLOCK), VECTOR_ROW, kept)
        alone = alone & (shape.threads == 1) & (shape.steps == 1)
        for axis, extent in enumerate(shape.dpu):
            alone = alone & ((extent == 1) | (axis in (row, sketch.roles.tile)))
        used["vector"] = np.where(alone, VECTOR_ROW, kept)
    return np.stack([used.get(name, columns[name]) for name in sketch.names], axis=1)
