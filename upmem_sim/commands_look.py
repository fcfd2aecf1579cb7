"""Commands that look inside a run: `upmem-sim profile` and `upmem-sim trace`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from upmem_sim.errors import SimError

if TYPE_CHECKING:
    from upmem_sim.dpu import Dpu

__all__ = ["profile", "trace", "with_inputs", "write_inputs"]


with_inputs = click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="SYMBOL=FILE",
    help="Write a file's bytes to a symbol before the run; repeatable",
)


def _with_run_options(command: Callable[..., None]) -> Callable[..., None]:
    """What both commands take."""
    options: list[Any] = [
        click.argument("program", type=click.Path(path_type=Path)),
        with_inputs,
        click.option("--max-cycles", type=click.IntRange(min=1), help="Stop after so many"),
        click.option(
            "--core",
            multiple=True,
            metavar="NAME=VALUE",
            help="What-if core: a constant of docs/hardware.md",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def _loaded(program: Path, inputs: tuple[str, ...], core: tuple[str, ...]) -> Dpu:
    from upmem_sim.dpu import Dpu
    from upmem_sim.elf import read_elf
    from upmem_sim.params import params_of

    dpu = Dpu(read_elf(program), params_of(core))
    write_inputs([dpu], inputs)
    return dpu


def write_inputs(dpus: Iterable[Dpu], inputs: tuple[str, ...]) -> None:
    """Writes files to symbols of every DPU: texts SYMBOL=FILE. Errors: SimError, OSError."""
    for text in inputs:
        symbol, equals, file = text.partition("=")
        if not (symbol and equals and file):
            raise SimError(f"--input {text}: must be SYMBOL=FILE")
        data = Path(file).read_bytes()
        for dpu in dpus:
            dpu.write(symbol, data)


@click.command
@_with_run_options
@click.option("--hot", type=click.IntRange(min=0), default=10, show_default=True, help="Hot lines")
def profile(
    program: Path,
    inputs: tuple[str, ...],
    max_cycles: int | None,
    core: tuple[str, ...],
    hot: int,
) -> None:
    """Run a program on one DPU and print where its cycles went.

    Cycles by cause for each tasklet (they add up to the run), instructions by operation, transfers
    by size, the hottest C lines, and each C file with the issue slots of every line.
    """
    from upmem_sim.profile import report

    dpu = _loaded(program, inputs, core)
    click.echo(report(dpu.program, dpu.run(max_cycles, profile=True), hot=hot), nl=False)


@click.command
@_with_run_options
@click.option("-o", "--output", type=click.Path(path_type=Path), required=True, help="JSON file")
def trace(
    program: Path,
    inputs: tuple[str, ...],
    max_cycles: int | None,
    core: tuple[str, ...],
    output: Path,
) -> None:
    """Run a program on one DPU and write a timeline of its tasklets.

    Open the file at https://ui.perfetto.dev: one track for each tasklet, with times in
    microseconds and the C line that each span began with.
    """
    from upmem_sim.timeline import write_perfetto

    dpu = _loaded(program, inputs, core)
    result = dpu.run(max_cycles, trace=True)
    assert result.trace is not None
    write_perfetto(output, {0: result.trace}, dpu.program, dpu.params.clock_mhz)
    click.echo(f"{output}: {len(result.trace):,} spans, {result.cycles:,} cycles")
    if result.hypothetical:
        click.echo(f"HYPOTHETICAL: no UPMEM chip has {result.hypothetical}")
