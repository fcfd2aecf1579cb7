"""The `upmem-sim` command: cc, run, profile, trace, disasm, config.

Whatever goes wrong is one line on standard error and an exit status that is not zero.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from upmem_sim import commands_look
from upmem_sim.errors import SimError

FAILED = 1
USAGE = 2
INTERNAL = 70  # EX_SOFTWARE of sysexits.h
INTERRUPTED = 130  # 128 + SIGINT

# no -h: click would find it inside an option of the compiler, as in -Wshadow
_RAW = {"ignore_unknown_options": True, "help_option_names": ["--help"]}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="atim", prog_name="upmem-sim", message="%(prog)s %(version)s")
def cli() -> None:
    """Compile, run and look into programs for UPMEM DPUs, without the hardware."""


@cli.command(context_settings=_RAW)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="SOURCE...")
def cc(arguments: tuple[str, ...]) -> None:
    """Compile C sources (and .s files, and objects of -c) to one DPU program.

    \b
    -c -S -E                    stop after objects, assembly text, preprocessing
    -o FILE                     program to write [a.out]
    -DNR_TASKLETS=n             tasklets [1]
    -DSTACK_SIZE_DEFAULT=b      bytes of stack for each tasklet [1024]
    -DSTACK_SIZE_TASKLET_i=b    bytes of stack for tasklet i
    -DNAME[=value] -UNAME       macros
    -I DIR                      folder with headers
    -O0 -O1 -O2 -O3 -Os         optimisation [-O2]
    -Werror                     warnings are errors
    -mcpu=v1A|v1B               chip, for the limit of tasklets
    -mhypothetical=mul32,float  instructions of units that no DPU has; see run --core
    -g -W... -std=... -f...-sections -flto are accepted without effect.
    """
    from upmem_sim import cc_driver

    cc_driver.run(arguments)


@cli.command()
@click.argument("program", type=click.Path(path_type=Path))
@click.option("--dpus", default=1, show_default=True, help="DPUs that run the program")
@click.option("--threads", type=click.IntRange(min=1), help="Processors to use [default: all]")
@click.option("--max-cycles", type=click.IntRange(min=1), help="Stop with an error after so many")
@click.option(
    "--core",
    multiple=True,
    metavar="NAME=VALUE",
    help="What-if core: a constant of docs/hardware.md (multiply32_slots=1, clock_mhz=1000)",
)
@click.option(
    "--check",
    "checks",
    multiple=True,
    type=click.Choice(["uninitialised", "races"]),
    help="Report as a fault: reads of memory never written, races between tasklets (slower;"
    " repeatable)",
)
@commands_look.with_inputs
def run(
    program: Path,
    dpus: int,
    threads: int | None,
    max_cycles: int | None,
    checks: tuple[str, ...],
    inputs: tuple[str, ...],
    core: tuple[str, ...],
) -> None:
    """Run a program from start to end and print what it took.

    With several DPUs the cycles are those of the slowest, the instructions those of all.
    """
    from upmem_sim.elf import read_elf
    from upmem_sim.log import read_log
    from upmem_sim.params import params_of
    from upmem_sim.system import System

    system = System(read_elf(program), dpus, params_of(core))
    commands_look.write_inputs(system, inputs)
    result = system.run(threads, max_cycles, checks)
    for dpu in system:
        text = read_log(dpu)
        if text:
            if dpus > 1:
                click.echo(f"=== DPU#{dpu.index:#x} ===")
            click.echo(text, nl=not text.endswith("\n"))
    click.echo(f"cycles        {result.cycles:,}")
    click.echo(f"instructions  {sum(r.instructions for r in result.dpus):,}")
    click.echo(f"time          {result.seconds * 1e3:.6f} ms")
    if result.hypothetical:
        click.echo(f"HYPOTHETICAL  no UPMEM chip has {result.hypothetical}")


@cli.command()
@click.argument("program", type=click.Path(path_type=Path))
def disasm(program: Path) -> None:
    """Print a program's code as assembly text, with symbols and C lines."""
    from upmem_sim.disasm import disassemble
    from upmem_sim.elf import read_elf

    click.echo(disassemble(read_elf(program)), nl=False)


@cli.command()
@click.option("--cflags", is_flag=True, help="Options for the compiler of host programs")
@click.option("--libs", is_flag=True, help="Options for their linker")
@click.option("--bin-dir", is_flag=True, help="Folder with the SDK's tool names, for PATH")
@click.option("--home", type=click.Path(path_type=Path), help="Make a folder like an SDK's home")
def config(cflags: bool, libs: bool, bin_dir: bool, home: Path | None) -> None:
    """Print what building a host program against the simulator needs.

    --home FOLDER makes a folder laid out as an installed SDK, for builds that want $UPMEM_HOME or
    CMake's toolchain file, and prints its path: source FOLDER/upmem_env.sh.
    """
    from upmem_sim.host import places
    from upmem_sim.host.home import write_home
    from upmem_sim.host.pkg_config import VERSION

    if home is not None:
        click.echo(write_home(home, VERSION))
        return
    if not (cflags or libs or bin_dir):
        raise click.UsageError("give --cflags, --libs, --bin-dir or --home")
    asked = ((cflags, places.cflags), (libs, places.libs), (bin_dir, places.bin_dir))
    click.echo(" ".join(str(text()) for wanted, text in asked if wanted))


cli.add_command(commands_look.profile)
cli.add_command(commands_look.trace)


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def invoke(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit status. Errors are printed, one line each."""
    try:
        status = cli.main(args=arguments, prog_name="upmem-sim", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return USAGE
    except click.ClickException as error:
        message, status = error.format_message(), USAGE
    except (SimError, ValueError) as error:
        message, status = str(error), FAILED
    except (click.Abort, KeyboardInterrupt):
        message, status = "interrupted", INTERRUPTED
    except BrokenPipeError:
        # the reader has gone; keep Python from complaining when it closes standard output
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        message, status = f"{error.filename or 'output'}: {error.strerror}", FAILED
    except Exception as error:
        message, status = f"internal error: {type(error).__name__}: {error}", INTERNAL
    print(f"upmem-sim: {_one_line(message)}", file=sys.stderr)
    return status


def main() -> None:
    """Entry point of the `upmem-sim` script."""
    sys.exit(invoke())
