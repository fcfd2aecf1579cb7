"""The `atim` command: tune, tune-tasks, report; more commands are in commands_*.py.

Whatever a user gets wrong is one line on standard error (what was asked, the limit, the value) and
an exit status that is not zero. Results go to standard output, progress to standard error.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from atim import commands_machine, commands_records, commands_run, workloads
from atim.errors import AtimError, UsageError
from atim.offload import command as commands_offload
from atim.target import Target
from atim.tuner.arguments import check_arguments, check_search, require_run

__all__ = ["cli", "main", "run"]

INTERRUPTED = 130  # 128 + SIGINT, as shells report it
INTERNAL = 70  # EX_SOFTWARE of sysexits.h


def sizes(context: click.Context | None, option: click.Parameter | None, value: str | None) -> Any:
    """ "4096,777" -> (4096, 777)."""
    if value is None:
        return None
    try:
        numbers = tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a list of integers such as 4096,777") from None
    for number in numbers:
        if number < 1:
            raise click.BadParameter(f"size {number} in {value!r}, at least 1 needed")
    return numbers


AT_LEAST_1 = click.IntRange(min=1)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="atim", message="%(prog)s %(version)s")
def cli() -> None:
    """Find the fastest way to run a tensor program on UPMEM DIMMs."""


for command in (
    *(commands_run.export, commands_run.explain, commands_run.trace),
    *(commands_machine.doctor, commands_machine.calibrate),
    *(commands_records.merge, commands_records.tvm_export, commands_records.tvm_import),
    *(commands_records.worker, commands_records.tracker),
    commands_offload.offload,
):
    cli.add_command(command)


def together(*options: Any) -> Callable[[Any], Any]:
    """Several options as one decorator."""

    def decorate(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


MACHINE = together(
    click.option("--target", "target_name", default="upmem-v1a", show_default=True, help="Chip"),
    click.option("--dpus", type=int, default=2048, show_default=True, help="DPUs at most"),
    click.option("--tasklets", type=int, help="Tasklets at most [default: the chip's]"),
    click.option("--transfer", default="common", show_default=True, help="Host transfer preset"),
    click.option("--hardware", is_flag=True, help="Measure on DIMMs, with the UPMEM SDK"),
)
MEASURING = together(
    click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True),
    click.option("--workers", type=AT_LEAST_1, help="Processes [default: 2, of a tracker 64]"),
    click.option("--tracker", metavar="HOST:PORT", help="Measure with the workers known there"),
    click.option("--key", default="upmem", show_default=True, help="Of these workers"),
)
SHOWING = together(
    click.option("--quiet", is_flag=True, help="No progress display"),
    click.option("--json", "as_json", is_flag=True, help="Progress and result as JSON lines"),
)


def _target(options: Mapping[str, Any]) -> Target:
    return Target(
        options["target_name"],
        dpus=options["dpus"],
        tasklets=tasklets_asked(options["tasklets"]),
        transfer=options["transfer"],
        hardware=options["hardware"],
    )


def _check(target: Target, options: Mapping[str, Any]) -> None:
    check_arguments(target, options["trials"], options["workers"], options["seed"])


def _measuring(options: Mapping[str, Any]) -> dict[str, Any]:
    """What `tune` and `tune_tasks` take alike."""
    return {
        **{name: options[name] for name in ("trials", "seed", "workers", "tracker", "key")},
        "progress": "json" if options["as_json"] else not options["quiet"],
    }


@cli.command()
@click.argument("program", metavar="WORKLOAD|FILE.py:FUNCTION")
@click.option("--shape", callback=sizes, help="Sizes, e.g. 4096,4096 [default: the workload's]")
@click.option("--dtype", help="Element type, e.g. int32 [default: the workload's]")
@MACHINE
@click.option("--trials", type=AT_LEAST_1, default=64, show_default=True, help="To measure")
@MEASURING
@click.option("--work-dir", type=click.Path(path_type=Path), help="Records [default: runs/NAME]")
@click.option("--resident", help="Inputs that lie on the DPUs already, e.g. A,B")
@click.option("--count-all", is_flag=True, help="Count the transfer of every input")
@click.option("--search", default="evolutionary", show_default=True, help="Or random, tvm, ...")
@click.option(
    "--model", type=click.Path(path_type=Path), help="What earlier runs taught: FILE.json"
)
@SHOWING
def tune(program: str, shape: tuple[int, ...] | None, dtype: str | None, **options: Any) -> None:
    """Tune a workload, or a function of a file that returns te tensors, or a PrimFunc."""
    import atim  # TVM takes seconds to import: what arguments alone can tell need not wait for it

    if options["resident"] and options["count_all"]:
        raise UsageError("--resident and --count-all contradict each other: give one of them")
    target = _target(options)
    _check(target, options)
    check_search(options["search"])
    name, thing = load_program(program, shape, dtype)
    resident = options["resident"].split(",") if options["resident"] else None
    folder = options["work_dir"] or Path("runs") / name
    run = atim.tune(
        thing,
        target,
        resident=[] if options["count_all"] else resident,
        work_dir=folder,
        name=name if ".py:" in program else "",
        search=options["search"],
        model=options["model"],
        **_measuring(options),
    )
    if options["as_json"]:
        run.best  # noqa: B018 (raises when nothing was valid)
        return
    _tell(folder)
    from atim.tuner import Run

    if isinstance(run, Run):
        run.best.build().export(folder / "best", data=False)
        click.echo(f"wrote {folder / 'best'}: kernel.c, host.c, a Makefile")
    click.echo(f"C with data and a check program: atim export {folder}")
    click.echo("again: the same command, or .best.build() of what atim.tune returns, takes seconds")


@cli.command()
@click.argument("programs", metavar="PROGRAM[=SIZES][@COUNT] ...", nargs=-1, required=True)
@MACHINE
@click.option("--trials", type=AT_LEAST_1, default=256, show_default=True, help="Of all together")
@MEASURING
@click.option(
    "--work-dir", type=click.Path(path_type=Path), default=Path("runs/tasks"), show_default=True
)
@SHOWING
def tune_tasks(programs: tuple[str, ...], work_dir: Path, **options: Any) -> None:
    """Tune several programs together, as the layers of a model.

    Each is given as to `atim tune`, with its sizes and how often it occurs, as in mtv=4096,4096@28;
    trials go where they help the sum of all most.
    """
    import atim

    target = _target(options)
    _check(target, options)
    for program in programs:  # all of them before the first is built
        _parse_task(program)
    given = [_task(program) for program in programs]
    runs = atim.tune_tasks(
        [thing for _, thing, _ in given],
        target,
        weights=[count for *_, count in given],
        names=[
            name if ".py:" in text else "" for text, (name, *_) in zip(programs, given, strict=True)
        ],
        work_dir=work_dir,
        **_measuring(options),
    )
    totals = [run.best.timing.total for run in runs]  # raises when nothing was valid
    if options["as_json"]:
        return
    width = max(len(name) for name, *_ in given)
    for (name, _, count), run, total_s in zip(given, runs, totals, strict=True):
        run.best.build().export(work_dir / name, data=False)
        click.echo(f"{name:{width}} {total_s * 1e3:10.3f} ms x {count:<5g} {work_dir / name}")
    all_s = sum(total_s * count for total_s, (*_, count) in zip(totals, given, strict=True))
    click.echo(f"{'all':{width}} {all_s * 1e3:10.3f} ms")


def _task(text: str) -> tuple[str, Any, float]:
    """(name, program, how often) of PROGRAM[=SIZES][@COUNT]."""
    program, shape, count = _parse_task(text)
    name, thing = load_program(program, shape, None)
    return name, thing, count


def _parse_task(text: str) -> tuple[str, tuple[int, ...] | None, float]:
    """(program, sizes, how often), checked as far as the text alone allows."""
    rest, at, count = text.rpartition("@") if "@" in text else (text, "", "1")
    program, _, sizes_text = rest.partition("=")
    if not count.isdigit() or int(count) < 1:
        raise UsageError(f"{text}: {at}{count} is no count; at least 1 needed, as in mtv@28")
    shape = sizes(None, None, sizes_text or None)
    _check_program(program, shape, None)
    return program, shape, float(count)


@cli.command()
@click.argument("folder", metavar="RUN", type=click.Path(path_type=Path))
def report(folder: Path) -> None:
    """Print the table of a run; draw its curve and breakdown (PNG, HTML) into its folder."""
    require_run(folder)
    from atim.report import read, write

    _tell(folder)
    for path in write(read(folder), folder):
        click.echo(f"wrote {path}")


def _tell(folder: Path) -> None:
    from atim.report import read, text

    story = read(folder)
    click.echo(text(story))
    if story.best is None:
        raise AtimError(f"no valid candidate among {len(story.trials)} trials; {story.why}")


def tasklets_asked(asked: int | None) -> int:
    """0 stands for "the chip's" inside, but is a mistake on a command line."""
    if asked is not None and asked < 1:
        raise UsageError(f"tasklets: {asked} requested, at least 1 needed")
    return asked or 0


def load_program(program: str, shape: tuple[int, ...] | None, dtype: str | None) -> tuple[str, Any]:
    """(name of the run, what `atim.tune` takes) for WORKLOAD or FILE.py:FUNCTION."""
    _check_program(program, shape, dtype)
    if ".py:" in program:
        return _load_function(program, shape, dtype)
    workload = workloads.get(program, shape, dtype)
    size = "x".join(map(str, workload.shape))
    return f"{program}-{size}-{workload.dtype}", workload


def _check_program(program: str, shape: tuple[int, ...] | None, dtype: str | None) -> None:
    """What is wrong with it by its text: an unknown name, sizes, a file that isn't there."""
    if program.endswith(".py"):
        raise UsageError(f"{program}: which function? {program}:NAME")
    if ".py:" not in program:
        workloads.check(program, shape, dtype)
    elif not Path(program.rpartition(":")[0]).is_file():
        raise UsageError(f"file {program.rpartition(':')[0]} does not exist")


def _load_function(
    program: str, shape: tuple[int, ...] | None, dtype: str | None
) -> tuple[str, Any]:
    """A function, called with the sizes of --shape and, if given, dtype=...; or a PrimFunc."""
    from tvm import tirx

    path, _, name = program.rpartition(":")
    module = _load_module(Path(path))
    found = getattr(module, name, None)
    if found is None:
        names = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise UsageError(f"{path} has no {name!r} (it has: {', '.join(names) or 'no function'})")
    title = "-".join([Path(path).stem, name, *map(str, shape or ())])
    if isinstance(found, tirx.PrimFunc):
        if shape or dtype:
            raise UsageError(f"{program} is TVMScript of fixed sizes: no --shape, no --dtype")
        return title, found
    keywords = {} if dtype is None else {"dtype": dtype}
    try:
        tensors = found(*(shape or ()), **keywords)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{program}: {type(error).__name__}: {error}") from error
    if not isinstance(tensors, list | tuple) or not tensors:
        kind = type(tensors).__name__
        raise UsageError(f"{program} gave {kind}, needs a list of te tensors, the output last")
    return title, tensors


def _load_module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{path}: {type(error).__name__}: {error}") from error
    return module


def run(arguments: Sequence[str]) -> int:
    """Run one command line; returns the exit status and never raises an Exception."""
    from upmem_sim.errors import SimError

    try:
        with cli.make_context("atim", list(arguments)) as context:
            cli.invoke(context)
    except click.exceptions.Exit as end:
        return end.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return error.exit_code
    except click.ClickException as error:
        return _fail(error.format_message(), error.exit_code)
    except (AtimError, SimError) as error:
        return _fail(str(error), 1)
    except KeyboardInterrupt:
        return _fail("interrupted; what was measured is kept", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or Python complains again at exit
        return 1
    except Exception as error:
        if os.environ.get("ATIM_DEBUG"):
            traceback.print_exc()
        place = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(place.filename)}:{place.lineno}"
        kind = type(error).__name__
        return _fail(
            f"internal error: {kind}: {error} ({where}); ATIM_DEBUG=1 shows more", INTERNAL
        )
    return 0


def _fail(message: str, status: int) -> int:
    print("atim: " + " ".join(message.split()), file=sys.stderr)
    return status


def main() -> None:
    """Entry point of the `atim` command."""
    sys.exit(run(sys.argv[1:]))
