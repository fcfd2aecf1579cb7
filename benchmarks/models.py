"""Whole models: all-host, all-PIM, two stages alone, greedy and ours, predicted and run.

For each model, number format, host and number of DPUs: the predicted time of a call by every
strategy, and the time with launches on the simulator where that can be waited for. Then GPT-J's
products against the published CPU column, and what-if cores beside Torch-PIM's abstract (arXiv
2609.34657). Fails when ours is more than 2 % slower than another strategy or than all-host, or when
a run takes other than predicted. runs/models/rows.json grows with every model: a suite that was
stopped goes on.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

import click

from atim import workloads
from atim.offload import HostFile, measure_host
from atim.offload.launches import Launch, Operand
from atim.offload.nests import features_of
from atim.offload.pricing import PriceBook
from atim.offload.profile import this_machine
from atim.target import Target
from benchmarks.model_rows import FOLDER, HERE, QUICK, Job, Progress, Row, prepared, rows_of
from benchmarks.model_zoo import DTYPES, MODELS

# GPT-J's products, M x K, and the CPU's and ATiM's ms of Figure 10 where the artefact has them
GPTJ_ROWS = (
    (12288, 4096, None, None),
    (4096, 4096, 5.168, 2.351),
    (16384, 4096, 18.195, 3.344),
    (4096, 16384, 17.586, 4.311),
    (21504, 7168, 37.855, 6.306),
    (7168, 7168, None, None),
    (28672, 7168, None, None),
    (7168, 28672, 51.726, 6.765),
)
ABSTRACT = {"operators": 8.6, "MLP": 2.9, "attention": 4.4, "GPT-J": 5.1, "LLaMA": 3.6}
MEMORY_OF_JOB = 5e9  # bytes, of a layer in float32 with its copies


def run(quick: bool) -> int:
    """Print the tables, write rows.json; 1 when a row is not what it should be."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    jobs = [
        Job(case, dtype, quick)
        for case in range(len(QUICK if quick else MODELS))
        for dtype in DTYPES
    ]
    progress = Progress.load(FOLDER / "rows.json")
    _measure(progress, jobs)
    for job in jobs:
        for row in progress.rows.get(job.label, []):
            click.echo(row.line())
    # the largest first: no process has to wait for another at the end
    waiting = sorted((j for j in jobs if j.label not in progress.rows), key=lambda j: -j.size)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(_processes(), mp_context=spawn, max_tasks_per_child=1) as pool:
        futures = {pool.submit(rows_of, job): job for job in waiting}
        for future in as_completed(futures):
            rows = future.result()
            for row in rows:
                click.echo(row.line())
            progress.rows[futures[future].label] = rows
            progress.save()
    return _closing([row for job in jobs for row in progress.rows[job.label]], quick)


def _closing(rows: Sequence[Row], quick: bool) -> int:
    _what_if(rows)
    if not quick:
        _gptj_products()
    bad = [(row, fault) for row in rows for fault in row.faults]
    for row, fault in bad:
        click.echo(f"{fault}: {row.line()}", err=True)
    compared = [row for row in rows if row.moved and "ours" in row.ran]
    click.echo(f"{len(rows)} rows, launches of ours run in {len(compared)} of them")
    click.echo(f"{len(bad)} not as they should be")
    return 1 if bad else 0


def _processes() -> int:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return max(1, min(os.cpu_count() or 1, int(memory / MEMORY_OF_JOB)))


def _measure(progress: Progress, jobs: Sequence[Job]) -> None:
    """Time the nests of all models on this machine, one after the other while it is idle."""
    here = HostFile.load(HERE) if HERE.exists() else None
    if here is None or (here.threads, here.description) != this_machine():
        here = None  # of another machine, or with other threads
        progress.measured.clear()
    for job in jobs:
        if job.label not in progress.measured:
            click.echo(f"measuring {job.label} on this machine", err=True)
            here = measure_host(prepared(job).graph, known=here, rounds=3)
            here.save(HERE)
            progress.measured.append(job.label)
            progress.save()


def _what_if(rows: Sequence[Row]) -> None:
    """Best speedups of 32 to 128 cores beside the abstract's, and those of real DPUs."""
    click.echo(
        "best speedups over all-host, papers' host, float32; Torch-PIM's host and cores are other"
        " ones, and what is not known of them is more than what is"
    )
    chosen = [r for r in rows if r.dtype == "float32" and r.host == "papers"]
    for core in dict.fromkeys(r.core for r in chosen):
        of_core = [r for r in chosen if r.core == core]
        words = []
        for name, published in ABSTRACT.items():
            mine = [r.speedup for r in of_core if r.model.startswith(name)]
            if name == "operators":
                mine = [r.operator[0] for r in of_core]
            if mine:
                words.append(f"{name} {max(mine):.2f}x ({published}x)")
        label = core or "UPMEM v1A, 32 to 2560 DPUs"
        click.echo(f"  {label}: {', '.join(words)}")


def _gptj_products() -> None:
    """GPT-J's products as launches of 2048 DPUs against the published CPU and ATiM columns."""
    click.echo("products of GPT-J, int32, 2048 DPUs: CPU, ATiM (published), ours (simulated), ms")
    book, host = PriceBook(Target(dpus=2048), FOLDER), HostFile.load("papers")
    published, everything = [], []
    for rows, columns, cpu, atim in GPTJ_ROWS:
        func = workloads.get("mtv", (rows, columns), "int32").func
        operands = (
            Operand("A", (rows, columns), ("w",), True),
            Operand("x", (columns,), ("x",), False),
        )
        price = book.price(Launch("nest", (0,), func, operands, ("y",)), "simulate")
        if isinstance(price, str):
            raise SystemExit(f"{rows} x {columns}: {price}")
        modelled = host.estimate("", features_of(func)).seconds * 1e3
        ratio = (cpu or modelled) / (price.total * 1e3)
        everything.append(ratio)
        published += [ratio] if cpu else []
        theirs = f"{atim:6.3f}" if atim else "     -"
        click.echo(
            f"  {rows:6} x {columns:6}  {cpu or modelled:7.3f}{' ' if cpu else '*'} {theirs}"
            f"  {price.total * 1e3:6.3f}  {ratio:5.2f}x the CPU"
        )
    click.echo(
        f"  geometric mean of the published five {_mean(published):.2f}x, of all eight"
        f" {_mean(everything):.2f}x (ATiM: 4.7x over either)"
    )
    click.echo("  * in the figure alone, not as a number: the papers' host file stands in for it")


def _mean(values: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


if __name__ == "__main__":
    sys.exit(run(quick="--quick" in sys.argv))
