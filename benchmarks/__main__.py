"""`python -m benchmarks SUITE [--quick]`: run one suite, or list them all.

A suite is a module of this package with a function `run(quick: bool)`, which prints its table and
returns the exit status (None is 0). `sim_speed.py` is called sim-speed. Modules are imported only
when run; the list reads their first docstring line.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from pathlib import Path

import click


def suites() -> dict[str, str]:
    """Command-line name -> first line of the docstring, of every suite found."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        tree = ast.parse(path.read_text())
        defines_run = any(isinstance(n, ast.FunctionDef) and n.name == "run" for n in tree.body)
        if defines_run and not path.stem.startswith("_"):
            summary = (ast.get_docstring(tree) or "").splitlines()
            found[path.stem.replace("_", "-")] = summary[0] if summary else ""
    return found


def _numbers(_: click.Context, __: click.Parameter, text: str | None) -> tuple[int, ...] | None:
    """Of "91,145"."""
    if text is None:
        return None
    parts = text.split(",")
    if not all(part.isdecimal() and int(part) for part in parts):
        raise click.BadParameter(f"{text!r} are no whole numbers from 1, such as 91,145")
    return tuple(map(int, parts))


@click.command
@click.argument("suite", required=False)
@click.option("--quick", is_flag=True, help="Fewer and smaller cases.")
@click.option("--lengths", callback=_numbers, help="figure12: other values of L, as in 91,145.")
@click.option("--cases", type=click.IntRange(1), help="programs: how many candidates.")
@click.option("--seed", type=click.IntRange(0), help="programs: of shapes, candidates and arrays.")
def main(suite: str | None, quick: bool, **chosen: int | tuple[int, ...] | None) -> None:
    """Run SUITE and print its table; without SUITE, list the suites."""
    found = suites()
    if suite is None:
        width = max(map(len, found), default=0)
        for name, summary in found.items():
            click.echo(f"  {name:{width}}  {summary}")
        return
    if suite not in found:
        click.echo(f"error: no suite {suite!r}; there are {', '.join(found)}", err=True)
        sys.exit(2)
    module = importlib.import_module(f"benchmarks.{suite.replace('-', '_')}")
    options = {name: value for name, value in chosen.items() if value is not None}
    for name in options.keys() - inspect.signature(module.run).parameters.keys():
        click.echo(f"error: suite {suite} takes no --{name}", err=True)
        sys.exit(2)
    sys.exit(module.run(quick=quick, **options) or 0)


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
