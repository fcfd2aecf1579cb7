"""Commands on a finished run: export, explain, trace."""

from __future__ import annotations

from pathlib import Path

import click

from atim.tuner.arguments import require_run  # what it says need not wait for TVM

RUN = click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))


@click.command()
@RUN
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder [default: RUN/export]")
@click.option("--no-data", is_flag=True, help="No arrays for the check program")
def export(folder: Path, out: Path | None, no_data: bool) -> None:
    """Write the best schedule as C with a Makefile: it needs no Python."""
    require_run(folder)
    from atim.tuner.folder import open_best

    out = out or folder / "export"
    for path in open_best(folder).build().export(out, data=not no_data):
        click.echo(f"wrote {path}")
    click.echo(f"make -C {out} run: with the UPMEM SDK on PATH, or")
    click.echo(f'PATH="$(upmem-sim config --bin-dir):$PATH" make -C {out} run')


@click.command()
@RUN
def explain(folder: Path) -> None:
    """Say what bounds the best schedule, and how far from that bound it is."""
    require_run(folder)
    from atim.explain import explain as lines
    from atim.tuner.folder import open_best

    click.echo(lines(open_best(folder)))


@click.command()
@RUN
@click.option("-o", "--out", type=click.Path(path_type=Path), help="File [default: RUN/trace.json]")
def trace(folder: Path, out: Path | None) -> None:
    """Write what each tasklet did when, on the slowest DPU of the best schedule.

    The file opens in https://ui.perfetto.dev.
    """
    require_run(folder)
    from atim import runtime, toolchain
    from atim.errors import RecordError, UnsupportedError
    from atim.tuner.folder import open_best
    from atim.tuner.linked import StagedBest
    from atim.tuner.measure import sample_inputs
    from upmem_sim.timeline import write_perfetto

    best = open_best(folder)
    if isinstance(best, StagedBest):
        names = ", ".join(stage.outputs[-1] for stage in best.stages)
        raise UnsupportedError(f"trace: {len(best.stages)} stages ({names}), one kernel is needed")
    target = best.sketch.target
    artifact = toolchain.build(best.sources(), target)
    dpu, result = runtime.trace(artifact, sample_inputs(best.sketch.program.original))
    assert result.trace is not None
    out = out or folder / "trace.json"
    try:
        write_perfetto(out, {dpu: result.trace}, artifact.program, target.chip.clock_mhz)
    except OSError as error:
        raise RecordError(f"{out} can't be written: {error.strerror}") from error
    click.echo(f"DPU {dpu}: {result.cycles:,} cycles, {len(result.trace):,} spans")
    click.echo(f"wrote {out}: open it in https://ui.perfetto.dev")
