"""The shape of the source tree: who imports whom, file sizes, public names, the file map."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("atim", "upmem_sim", "benchmarks", "examples")


def read_levels() -> dict[str, int]:
    """The table of docs/architecture.md."""
    page = (ROOT / "docs/architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (`.*?`) \|", page, re.M)
    return {name: int(level) for level, names in rows for name in re.findall(r"`([\w.]+)`", names)}


LEVELS = read_levels()
# Third parties that only some rows may use.
ONLY = {
    "tvm": ("atim",),
    "tvm_ffi": ("atim",),
    "xgboost": ("atim.tuner",),
    "matplotlib": ("atim.report", "atim.offload", "benchmarks"),
    "torch": ("atim.offload",),
}
UPMEM_SIM_MAY = {"numpy", "elftools", "ziglang", "click"}
LINE_LIMIT = 400
FUNCTION_LIMIT = 60
# Tables of facts may be longer.
TABLES = {"upmem_sim/core/isa.def", "upmem_sim/cc/include/built_ins.h"}


def python_files() -> list[Path]:
    return sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def row_of(module: str) -> str:
    rows = [r for r in LEVELS if module == r or module.startswith(r + ".")]
    # "atim" itself is the package's public face, not a home for modules without a row
    rows = [r for r in rows if r != "atim" or module == "atim"]
    assert rows, f"{module} has no row in LEVELS"
    return max(rows, key=len)


def imports(path: Path) -> Iterator[str]:
    """Modules that a file imports, also inside functions."""
    known = {module_name(p) for p in python_files()}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module


@pytest.mark.parametrize("path", python_files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    module = module_name(path)
    row = row_of(module)
    for name in imports(path):
        top = name.split(".")[0]
        if top in ("atim", "upmem_sim", "benchmarks"):
            other = row_of(name)
            assert other == row or LEVELS[other] < LEVELS[row], f"{module} imports {name}"
        allowed = ONLY.get(top)
        if allowed is not None and row != "examples" and row != "benchmarks":
            assert any(row == a or row.startswith(a + ".") for a in allowed), (module, name)


def test_no_modules_import_each_other() -> None:
    """Nor in a circle: imports inside functions and for types alone count as well."""
    files = {module_name(path): path for path in python_files()}
    uses = {name: {n for n in imports(path) if n in files} for name, path in files.items()}
    left = set(files)
    while free := {name for name in left if not uses[name] & left}:
        left -= free
    used = set().union(*(uses[name] & left for name in left))
    assert sorted(left & used) == [], "modules of an import circle, or between two"


def test_the_simulator_stands_alone() -> None:
    for path in sorted((ROOT / "upmem_sim").rglob("*.py")):
        for name in imports(path):
            top = name.split(".")[0]
            fine = top in sys.stdlib_module_names or top in UPMEM_SIM_MAY | {"upmem_sim"}
            assert fine, f"{path.relative_to(ROOT)} imports {name}"


def code_files() -> list[Path]:
    kinds = ("*.py", "*.cc", "*.h", "*.def", "*.c", "*.s", "*.S")
    folders = [ROOT / p for p in (*PACKAGES, "tests", "scripts")]
    return sorted(p for folder in folders for kind in kinds for p in folder.rglob(kind))


def test_files_stay_readable() -> None:
    long = {
        str(p.relative_to(ROOT)): n
        for p in code_files()
        if (n := len(p.read_text().splitlines())) > LINE_LIMIT
    }
    assert {k: n for k, n in long.items() if k not in TABLES} == {}


def test_functions_stay_readable() -> None:
    long = []
    for path in python_files():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                assert node.end_lineno is not None
                lines = node.end_lineno - node.lineno + 1
                if lines > FUNCTION_LIMIT:
                    long.append(f"{path.relative_to(ROOT)}:{node.lineno} {node.name} {lines}")
    assert long == []


@pytest.mark.parametrize("package", ["atim", "upmem_sim"])
def test_public_names_are_declared_sorted_and_there(package: str) -> None:
    module = importlib.import_module(package)
    assert list(module.__all__) == sorted(module.__all__)
    assert [n for n in module.__all__ if not hasattr(module, n)] == []


def test_every_declared_name_exists() -> None:
    for path in sorted([*(ROOT / "atim").rglob("*.py"), *(ROOT / "upmem_sim").rglob("*.py")]):
        module = importlib.import_module(module_name(path))
        missing = [n for n in getattr(module, "__all__", []) if not hasattr(module, n)]
        assert missing == [], path


def test_the_file_map_names_every_file_and_no_other() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    named = set(re.findall(r"^\| `([^`]+)` \|", text, flags=re.M))
    kinds = (".py", ".cc", ".h", ".def", ".c", ".s", ".S", ".csv")
    there = {
        str(p.relative_to(ROOT))
        for package in PACKAGES
        for p in (ROOT / package).rglob("*")
        if p.suffix in kinds
    }
    assert there - named == set(), "run: .venv/bin/python scripts/file_map.py"
    assert named - there == set(), "docs/architecture.md names files that are gone"


def test_the_hardware_page_is_what_the_parameters_say() -> None:
    printed = runpy.run_path(str(ROOT / "scripts/hardware.py"))["document"]()
    advice = "run: .venv/bin/python scripts/hardware.py > docs/hardware.md"
    assert (ROOT / "docs/hardware.md").read_text() == printed, advice
