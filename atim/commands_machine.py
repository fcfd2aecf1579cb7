"""Commands on this machine: doctor, calibrate."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
def doctor() -> None:
    """Say what was found (compiler, SDK, ranks, simulator) and what is missing."""
    from atim.machine import doctor as look

    findings = look.examine()
    click.echo(look.text(findings))
    if any(f.needed and not f.ok for f in findings):
        raise click.exceptions.Exit(1)


@click.command()
@click.argument("out", metavar="NAME.json", type=click.Path(path_type=Path))
@click.option("--dpus", type=click.IntRange(min=2), help="DPUs at most [default: all]")
@click.option("--repeats", type=click.IntRange(1, 101), default=9, show_default=True)
@click.option(
    "--megabytes", type=click.IntRange(min=1), default=256, show_default=True, help="Of one copy"
)
def calibrate(out: Path, dpus: int | None, repeats: int, megabytes: int) -> None:
    """Measure copies and launches of the DPUs found, and write them as a transfer preset.

    Use it with --transfer NAME.json, or Target(transfer="NAME.json").
    """
    from atim.errors import UsageError
    from atim.machine import calibrate as system

    if out.suffix != ".json":
        raise UsageError(f"{out}: a name that ends with .json needed")
    measured = system.measure(dpus or 0, repeats=repeats, bytes_in_all=megabytes << 20)
    content = system.values(measured, out.stem)
    system.save(out, content)
    click.echo(
        f"{'ms of a copy to MRAM':24}" + "".join(f"{n:>10}" for n in measured.dpus) + " DPUs"
    )
    table = content["to_mram"]
    for size, row in zip(table["bytes"], table["seconds"], strict=True):
        click.echo(f"{size:20,} B  " + "".join(f"{seconds * 1e3:10.3f}" for seconds in row))
    click.echo(
        f"launch {content['launch_ms']:.3f} ms and {content['launch_per_rank_ms']:.4f} ms a rank;"
        f" broadcast {content['broadcast_gain']:.2f} times as fast as a push"
    )
    click.echo(f"wrote {out}: for --transfer {out}")
