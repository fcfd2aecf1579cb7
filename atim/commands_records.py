"""`atim merge`, `tvm-export`, `tvm-import`: records; `atim worker`, `tracker`: many machines."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from atim.errors import UsageError
from atim.tuner.arguments import require_run  # what it says need not wait for TVM

__all__ = ["merge", "tracker", "tvm_export", "tvm_import", "worker"]

FOLDER = click.Path(path_type=Path)
KEY = "upmem"  # as in tuner.remote, which brings NumPy


@click.command()
@click.argument("folders", metavar="RUN...", nargs=-1, required=True, type=FOLDER)
@click.option("--into", required=True, type=FOLDER, help="Folder of the result; may hold records")
def merge(folders: tuple[Path, ...], into: Path) -> None:
    """Put the records of several folders into one. The folders stay as they are."""
    from atim.tuner.merge import merge as merge_folders

    for run, known, added in merge_folders(folders, into):
        key = run.key
        click.echo(
            f"{key.workload} on {key.target}, seed {key.seed}, version {key.version}:"
            f" {added} trials added, {known} known"
        )


@click.command("tvm-export")
@click.argument("folder", metavar="RUN", type=FOLDER)
@click.argument("into", metavar="FOLDER", type=FOLDER)
def tvm_export(folder: Path, into: Path) -> None:
    """Write valid records as a JSONDatabase of TVM's MetaSchedule: traces that TVM replays."""
    require_run(folder)
    from atim.tuner.exchange import export_records

    written, skipped = export_records(folder, into)
    click.echo(f"wrote {written} records to {into}")
    if skipped:
        click.echo(f"{skipped} records are of sketches that this version does not know: left out")


@click.command("tvm-import")
@click.argument("source", metavar="FOLDER", type=FOLDER)
@click.argument("into", metavar="RUN", type=FOLDER)
def tvm_import(source: Path, into: Path) -> None:
    """Take records over from a JSONDatabase that `atim tvm-export` wrote."""
    from atim.tuner.exchange import import_records

    counts = import_records(source, into)
    click.echo(f"{counts['added']} records added to {into}, {counts['known']} known")
    for what, meaning in (
        ("of another version", "of another software version: kept, not used"),
        ("foreign", "without a note of atim: left out"),
        ("refused", "whose decisions give another trace: left out"),
    ):
        if counts[what]:
            click.echo(f"{counts[what]} records {meaning}")


@click.command()
@click.option("--tracker", "address", required=True, metavar="HOST:PORT", help="Of `atim tracker`")
@click.option("--key", default=KEY, show_default=True, help="What tuners ask for")
@click.option("--slots", type=click.IntRange(min=1), default=1, show_default=True, help="Builders")
@click.option("--address", "own", help="Where tuners reach this machine [default: as seen]")
def worker(address: str, key: str, slots: int, own: str | None) -> None:
    """Measure candidates for tuners on other machines, until interrupted.

    Whoever reaches the ports can run programs here: use a trusted network.
    """
    from atim.tuner.remote import Fleet
    from atim.tuner.worker import serve

    with contextlib.suppress(KeyboardInterrupt):
        serve(Fleet.at(address, key), slots=slots, address=own, say=_say)


@click.command()
@click.option("--host", default="0.0.0.0", show_default=True, help="Address to listen at")
@click.option("--port", type=int, default=9190, show_default=True)
def tracker(host: str, port: int) -> None:
    """TVM's RPC tracker, where workers and tuners meet, until interrupted."""
    from atim.tuner.worker import serve_tracker

    if not 0 < port < 65536:
        raise UsageError(f"port {port} requested, limit 65535")
    with contextlib.suppress(KeyboardInterrupt):
        serve_tracker(host, port, say=_say)


def _say(line: str) -> None:
    click.echo(line, err=True)
