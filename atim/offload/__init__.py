"""Whole models: for every loop nest, host or PIM, by cost. `atim.offload(model, inputs, target)`.

The package is called like its function, so the module itself can be called. Names are loaded when
first used: the command line need not wait for TVM. The order of work is in `api.py`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from atim.offload.api import Result, offload
    from atim.offload.module import Offloaded, load
    from atim.offload.profile import HostFile, measure_host

__all__ = ["HostFile", "Offloaded", "Result", "load", "measure_host", "offload"]

_HOME = {
    "HostFile": "atim.offload.profile",
    "Offloaded": "atim.offload.module",
    "Result": "atim.offload.api",
    "load": "atim.offload.module",
    "measure_host": "atim.offload.profile",
    "offload": "atim.offload.api",
}


class _CallableModule(ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name not in _HOME:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        return getattr(import_module(_HOME[name]), name)

    def __call__(self, *args: Any, **kwargs: Any) -> Result:
        return self.offload(*args, **kwargs)  # type: ignore[no-any-return]


sys.modules[__name__].__class__ = _CallableModule
