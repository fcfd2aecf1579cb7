"""What a tuning run found: a table for the terminal, two plots, one self-contained HTML page.

A `Story` goes in: plain values, wherever they were kept. Times are shown in milliseconds, bars and
ratios compare totals. The tuning curve is the best total so far over the measured trials.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atim.errors import RecordError
from atim.runtime import Timing
from atim.tuner.arguments import runs_in
from atim.tuner.database import FILE_NAME, Database, Record, StoredRun
from atim.tuner.folder import linked_in, newest, stages_in
from atim.tuner.linked import total_of
from atim.tuner.trial import told_failures

__all__ = ["Story", "page", "read", "text", "write"]

PHASES = ("h2d", "kernel", "d2h", "host")
PHASE_WORDS = {
    "h2d": "host to DPUs",
    "kernel": "kernel, launch included",
    "d2h": "DPUs to host",
    "host": "host finish",
}
COLOURS = {"h2d": "#4c78a8", "kernel": "#f58518", "d2h": "#72b7b2", "host": "#b279a2"}


@dataclass(frozen=True, slots=True)
class Story:
    """One run, ready to be told.

    trials     total seconds of each trial in the order measured, None for a failed one
    failed     (reason, what it said) of each failed trial: the limit that it broke, and its value
    baseline   (name, timing) of the hand schedule; None if it could not be built
    best       timing of the best valid trial; None if there is none
    decisions  of the best trial, with its sketch's name first
    stages     of a program of several: (name, timing, how it is done) of each
    notes      lines for the end: where the records are, how to rebuild, why the search stopped
    """

    title: str
    trials: tuple[float | None, ...]
    failed: tuple[tuple[str, str], ...]
    baseline: tuple[str, Timing] | None
    best: Timing | None
    sketch: str = ""
    decisions: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    stages: tuple[tuple[str, Timing, str], ...] = ()

    @property
    def why(self) -> str:
        """What the first failed trial said, "" when none failed."""
        return ": ".join(self.failed[0]) if self.failed else ""

    @property
    def rows(self) -> list[tuple[str, Timing]]:
        """The lines of the table: baseline, then best, then the stages of the best."""
        rows = [self.baseline] if self.baseline else []
        rows += [("best", self.best)] if self.best else []
        return rows + [(f"  {name}", timing) for name, timing, _ in self.stages]

    @property
    def ratio(self) -> float | None:
        """How many times faster the best is than the baseline."""
        if self.baseline is None or self.best is None:
            return None
        return self.baseline[1].total / self.best.total


def read(folder: Path) -> Story:
    """The story of the newest run recorded in a folder; RecordError when there is none."""
    with Database(folder, write=False) as database:
        runs = runs_in(database, folder)
        run = newest(runs)
        facts = stages_in(run)
        by_key = {stored.key.text(): stored for stored in runs}
        kernels = [by_key[fact["key"]] for fact in facts if fact.get("key") in by_key]
        kernels = kernels if facts else [run]
        stories = [_of_kernel(folder, part, database.records(part.id)) for part in kernels]
    return _of_stages(folder, run, stories) if facts else stories[0]


def _of_kernel(folder: Path, run: StoredRun, all_records: Sequence[Record]) -> Story:
    """The story of one search."""
    records = [r for r in all_records if r.status != "pending"]
    valid = [r for r in records if r.timing is not None]
    best = min(valid, key=lambda r: r.objective_s, default=None)
    if run.winner is not None:
        best = next(r for r in records if r.number == run.winner)
    return Story(
        title=f"{run.key.workload} on {run.key.target}",
        trials=tuple(None if r.timing is None else r.objective_s for r in records),
        failed=tuple((r.reason, r.message) for r in records if r.timing is None),
        baseline=_baseline(run.facts),
        best=None if best is None or best.timing is None else Timing(*best.timing),
        sketch="" if best is None else best.sketch,
        decisions={} if best is None else dict(best.decisions),
        notes=_notes(folder, run),
    )


def _notes(folder: Path, run: StoredRun) -> tuple[str, ...]:
    return (
        f"ended: {run.ended or 'no, interrupted'} (asked for {run.trials} trials)",
        f"records: {folder / FILE_NAME}",
        f"plots and page: atim report {folder}",
    )


def _of_stages(folder: Path, run: StoredRun, kernels: Sequence[Story]) -> Story:
    """The story of a program of several stages: sums over them. A trial counts as its stage's time
    beside the best of all other stages."""
    left = iter(kernels)
    told: list[tuple[str, Timing | None, str, Timing | None]] = []
    for number, fact in enumerate(stages_in(run), 1):
        if "timing" in fact:
            spent = Timing(*fact["timing"])
            once = ", once, not counted" if fact.get("once") else ""
            told.append((f"{number} {fact['name']}", spent, f"host{once}: {fact['reason']}", spent))
            continue
        story = next(left, None)
        name = str(fact["name"]).rpartition("(")[2].rstrip(")")
        how = "" if story is None else _chosen(story)
        timing = None if story is None else story.best
        by_hand = story.baseline[1] if story and story.baseline else None
        told.append((f"{number} {name}", timing, how, by_hand))
    best, by_hand = _sum([t for _, t, _, _ in told]), _sum([t for *_, t in told])
    linked = linked_in(run)
    if linked is not None:
        best = total_of(linked.timings)
        if len(linked.timings) == len(told):
            within = zip(told, linked.timings, strict=True)
            told = [(name, t, how, hand) for (name, _, how, hand), t in within]
    whole = None if best is None else best.total
    trials: list[float | None] = []
    for story in kernels:
        own = story.best.total if story.best else 0.0
        trials += [None if whole is None or s is None else whole - own + s for s in story.trials]
    return Story(
        title=f"{run.key.workload} on {run.key.target}",
        trials=tuple(trials),
        failed=tuple(failure for story in kernels for failure in story.failed),
        baseline=None if by_hand is None else ("PrIM-style stages", by_hand),
        best=best,
        notes=_notes(folder, run),
        stages=tuple((name, t, how) for name, t, how, _ in told if t is not None),
    )


def _sum(timings: Sequence[Timing | None]) -> Timing | None:
    """None when one is missing."""
    known = [timing for timing in timings if timing is not None]
    return total_of(known) if len(known) == len(timings) else None


def _chosen(story: Story) -> str:
    chosen = ", ".join(f"{name} {value}" for name, value in story.decisions.items())
    return f"sketch {story.sketch}: {chosen}"


def _baseline(facts: Mapping[str, object]) -> tuple[str, Timing] | None:
    found = facts.get("baseline")
    if not isinstance(found, Mapping):
        return None
    return str(found["name"]), Timing(*found["timing"])


def text(story: Story) -> str:
    """The report for a terminal."""
    lines = [story.title, "", *_table(story)]
    if story.decisions:
        lines += ["", f"best: {_chosen(story)}"]
    if story.stages:
        lines += ["", *(f"{name}: {how}" for name, _, how in story.stages)]
    lines += ["", _count(story), *told_failures(story.failed), *story.notes]
    return "\n".join(lines)


def _table(story: Story) -> list[str]:
    width = max([len("milliseconds"), *(len(name) for name, _ in story.rows)])
    lines = [f"{'milliseconds':<{width}}" + "".join(f"{n:>10}" for n in (*PHASES, "total"))]
    for name, timing in story.rows:
        values = [*(getattr(timing, phase) for phase in PHASES), timing.total]
        lines.append(f"{name:<{width}}" + "".join(f"{value * 1e3:10.3f}" for value in values))
    if story.ratio is not None:
        assert story.baseline is not None
        lines.append(f"best is {story.ratio:.2f}x as fast as {story.baseline[0]}")
    if story.best is None:
        lines.append("no valid trial")
    return lines


def _count(story: Story) -> str:
    count = len(story.failed)
    line = f"trials: {len(story.trials)} measured, {len(story.trials) - count} valid"
    return line + (f", {count} failed" if count else "")


def best_so_far(trials: Sequence[float | None]) -> list[float]:
    """Best total after each trial; infinity until the first valid one."""
    best = float("inf")
    curve = []
    for seconds in trials:
        best = best if seconds is None else min(best, seconds)
        curve.append(best)
    return curve


def draw(story: Story) -> Any:
    """The figure: tuning curve on the left, breakdown on the right."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.2), layout="constrained")
    curve, bars = figure.subplots(1, 2)
    _draw_curve(curve, story)
    _draw_bars(bars, story)
    return figure


def _draw_curve(axes: Any, story: Story) -> None:
    numbers = range(1, len(story.trials) + 1)
    valid = [(n, s * 1e3) for n, s in zip(numbers, story.trials, strict=True) if s is not None]
    if valid:
        axes.plot(*zip(*valid, strict=True), ".", color="#999999", markersize=4, label="trial")
        curve = best_so_far(story.trials)
        first = valid[0][0]
        best = [1e3 * s for s in curve[first - 1 :]]
        axes.step(range(first, len(curve) + 1), best, where="post", color="#e45756", label="best")
        axes.set_yscale("log")
    if story.baseline:
        name, timing = story.baseline
        axes.axhline(timing.total * 1e3, color="#54a24b", linestyle="--", label=name)
    axes.set(xlabel="trial", ylabel="total, ms", title="Tuning curve")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False)


def _draw_bars(axes: Any, story: Story) -> None:
    names = [name for name, _ in story.rows]
    left = [0.0] * len(names)
    for phase in PHASES:
        widths = [getattr(timing, phase) * 1e3 for _, timing in story.rows]
        axes.barh(names, widths, left=left, color=COLOURS[phase], label=PHASE_WORDS[phase])
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.invert_yaxis()
    axes.set(xlabel="ms", title="Where the time goes")
    if names:
        axes.legend(frameon=False, fontsize="small")


def page(story: Story, png: bytes) -> str:
    """One HTML page that needs no other file and no network."""
    image = base64.b64encode(png).decode()
    title = html.escape(story.title)
    head = "".join(f"<th>{html.escape(PHASE_WORDS[p])}</th>" for p in PHASES)
    rows = ""
    for name, timing in story.rows:
        values = [*(getattr(timing, phase) for phase in PHASES), timing.total]
        cells = "".join(f"<td>{value * 1e3:.3f}</td>" for value in values)
        rows += f"<tr><th>{html.escape(name)}</th>{cells}</tr>\n"
    ratio = "" if story.ratio is None else f"<p class=big>{story.ratio:.2f}x</p>"
    chosen = "".join(
        f"<tr><th>{html.escape(name)}</th><td>{value}</td></tr>\n"
        for name, value in story.decisions.items()
    )
    chosen += "".join(
        f"<tr><th>{html.escape(name)}</th><td>{html.escape(how)}</td></tr>\n"
        for name, _, how in story.stages
    )
    heading = story.sketch or (f"{len(story.stages)} stages" if story.stages else "none")
    told = (_count(story), *told_failures(story.failed), *story.notes)
    notes = "".join(f"<li>{html.escape(line)}</li>\n" for line in told)
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; color: #222; }}
table {{ border-collapse: collapse; margin: 1rem 0; }}
th, td {{ padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #ddd; }}
th:first-child {{ text-align: left; }}
img {{ max-width: 100%; }}
.big {{ font-size: 2rem; margin: 0; }}
</style></head><body>
<h1>{title}</h1>
{ratio}
<table><tr><th>milliseconds</th>{head}<th>total</th></tr>
{rows}</table>
<img alt="tuning curve and time breakdown" src="data:image/png;base64,{image}">
<h2>Best schedule: {html.escape(heading)}</h2>
<table>{chosen}</table>
<ul>{notes}</ul>
</body></html>
"""


def write(story: Story, folder: Path) -> tuple[Path, Path]:
    """Write report.png and report.html into `folder`; RecordError when it cannot be written."""
    buffer = io.BytesIO()
    draw(story).savefig(buffer, format="png", dpi=130)
    png, web = folder / "report.png", folder / "report.html"
    try:
        png.write_bytes(buffer.getvalue())
        web.write_text(page(story, buffer.getvalue()))
    except OSError as error:
        raise RecordError(f"report: {folder} cannot be written: {error.strerror}") from error
    return png, web
