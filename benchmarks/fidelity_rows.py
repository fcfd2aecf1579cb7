"""Published figures beside simulated ones: rows, groups, and their tables."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

__all__ = ["DATA", "PROGRAMS", "Group", "Row", "summary", "table"]

DATA = Path(__file__).parent / "data"
PROGRAMS = Path(__file__).parent / "silicon"


def table(name: str) -> Iterator[dict[str, str]]:
    """Lines of data/<name>.csv; those that begin with # are comments."""
    lines = (DATA / f"{name}.csv").read_text().splitlines()
    return csv.DictReader(line for line in lines if not line.startswith("#"))


@dataclass(frozen=True, slots=True)
class Row:
    """A published figure. `high` > published: any value up to it agrees. `work`: instructions."""

    name: str
    published: float
    simulated: float
    unit: str
    work: str = ""
    high: float = 0.0

    @property
    def error(self) -> float:
        """Relative, to the nearer end of a published range."""
        nearest = min(max(self.simulated, self.published), max(self.published, self.high))
        return self.simulated / nearest - 1


@dataclass(slots=True)
class Group:
    """Rows judged together. A limit of None is not judged. `note` says what else to know."""

    name: str
    rows: list[Row] = field(default_factory=list)
    mean_limit: float | None = None
    worst_limit: float | None = None
    note: str = ""

    @property
    def mean(self) -> float:
        """Mean absolute error."""
        return float(np.mean([abs(row.error) for row in self.rows]))

    @property
    def worst(self) -> float:
        """The error that is farthest from 0, with its sign."""
        return max((row.error for row in self.rows), key=abs)

    @property
    def failed(self) -> bool:
        """Whether a limit is passed."""
        return any(
            limit is not None and abs(value) > limit
            for limit, value in ((self.mean_limit, self.mean), (self.worst_limit, self.worst))
        )

    def text(self) -> str:
        """The rows, one a line."""
        width = max(len(row.name) for row in self.rows)
        lines = [f"{self.name}", f"  {'':{width}} {'published':>13} {'simulated':>11} {'error':>7}"]
        for row in self.rows:
            published = _number(row.published)
            if row.high > row.published:
                published += f"-{_number(row.high)}"
            lines.append(
                f"  {row.name:{width}} {published:>13} {_number(row.simulated):>11} "
                f"{row.error:+7.1%}  {row.unit:14} {row.work}".rstrip()
            )
        if self.note:
            lines.append(f"  ({self.note})")
        return "\n".join(lines)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _limit(value: float | None) -> str:
    return "" if value is None else f"{value:.0%}"


def summary(groups: list[Group]) -> str:
    """Mean and worst error of each group, as a Markdown table."""
    lines = [
        "| group | rows | mean error | limit | worst | limit | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for group in groups:
        judged = group.mean_limit is not None or group.worst_limit is not None
        verdict = ("outside" if group.failed else "within") if judged else "not judged"
        cells = [group.name, str(len(group.rows)), f"{group.mean:.1%}", _limit(group.mean_limit)]
        cells += [f"{group.worst:+.1%}", _limit(group.worst_limit), verdict]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
