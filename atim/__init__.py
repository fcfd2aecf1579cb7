"""ATiM: an autotuning compiler for tensor programs on UPMEM DIMMs.

Names are loaded when first used, so that `import atim` costs no TVM. The FFI version is checked
here because the wrong one crashes the interpreter later, without a word.
"""

from __future__ import annotations

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atim import offload
    from atim.errors import (
        AtimError,
        MismatchError,
        RecordError,
        ScheduleError,
        ToolchainError,
        UnsupportedError,
        UsageError,
    )
    from atim.schedules.space import design_space
    from atim.target import Target
    from atim.tuner import tune, tune_tasks

__all__ = [
    "AtimError",
    "MismatchError",
    "RecordError",
    "ScheduleError",
    "Target",
    "ToolchainError",
    "UnsupportedError",
    "UsageError",
    "design_space",
    "offload",
    "tune",
    "tune_tasks",
]

_HOME = {
    "AtimError": "atim.errors",
    "MismatchError": "atim.errors",
    "RecordError": "atim.errors",
    "ScheduleError": "atim.errors",
    "Target": "atim.target",
    "ToolchainError": "atim.errors",
    "UnsupportedError": "atim.errors",
    "UsageError": "atim.errors",
    "design_space": "atim.schedules.space",
    "tune": "atim.tuner",
    "tune_tasks": "atim.tuner",
}

FFI_VERSION = "0.1.14.post1"


def check_ffi(version: str) -> None:
    """Raises `ImportError` unless the version is the one that works with the pinned TVM."""
    if version != FFI_VERSION:
        raise ImportError(
            f"apache-tvm-ffi: {version} installed, {FFI_VERSION} needed (0.1.15 crashes in "
            f"tvm.ir.save_json); pip install 'apache-tvm-ffi=={FFI_VERSION}'"
        )


def _installed(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "nothing"


check_ffi(_installed("apache-tvm-ffi"))


def __getattr__(name: str) -> Any:
    if name == "offload":  # a package that can be called
        return import_module("atim.offload")
    if name not in _HOME:
        raise AttributeError(f"module 'atim' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
