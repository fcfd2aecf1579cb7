"""`python -m benchmarks SUITE [--quick]`: run one suite, or list them all.

A suite is a module of this package with a function `run(quick: bool) -> int` (the exit status).
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from types import ModuleType

import benchmarks


def suites() -> dict[str, ModuleType]:
    """Name -> module of every suite; sim_speed is called sim-speed on the command line."""
    names = [m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name != "__main__"]
    modules = {name: importlib.import_module(f"benchmarks.{name}") for name in names}
    return {name.replace("_", "-"): m for name, m in modules.items() if hasattr(m, "run")}


def main() -> int:
    """Parse the command line and run the suite."""
    found = suites()
    lines = [f"  {name:<12} {(m.__doc__ or '').splitlines()[0]}" for name, m in found.items()]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__.splitlines()[0] if __doc__ else None,
        epilog="suites:\n" + "\n".join(lines),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("suite", choices=sorted(found))
    parser.add_argument("--quick", action="store_true", help="fewer and smaller cases")
    arguments = parser.parse_args()
    return int(found[arguments.suite].run(quick=arguments.quick))


if __name__ == "__main__":
    sys.exit(main())
